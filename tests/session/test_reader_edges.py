"""Rows that a condition with a query of its own allows, and tables that are named without FROM."""

import asyncio
from pathlib import Path

import apsw
import duckdb
import pytest

import decisor
from decisor.errors import ToolError

WORLD = """CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT);
CREATE TABLE newsletter (address TEXT);
CREATE TABLE allowed (customer INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, total INTEGER);
INSERT INTO customers VALUES (1, 'ann@private.example'), (2, 'bo@private.example');
INSERT INTO newsletter VALUES ('ann@private.example');
INSERT INTO allowed VALUES (1);
INSERT INTO orders VALUES (1, 1, 30), (2, 2, 7707);
CREATE VIEW all_orders AS SELECT * FROM orders;"""
ROWS = {"orders": "customer IN (SELECT customer FROM allowed)"}
MASK = ("customers.email", "newsletter.address")


def sqlite_world(folder: Path, more: str = "") -> str:
    path = folder / "edges.db"
    database = apsw.Connection(str(path))
    database.execute(WORLD + more)
    database.close()
    return f"sqlite:///{path}"


def duckdb_world(folder: Path) -> str:
    path = folder / "edges.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(WORLD)
    return f"duckdb:///{path}"


async def first_cells(url: str, *queries: str) -> list[object]:
    """Of each result; the complaint where one is refused."""
    cells: list[object] = []
    async with decisor.open(db=url, rows=ROWS, mask=MASK) as data:
        for query in queries:
            try:
                observation = await data.tools[0].call(query)
                cells.append(next(iter(observation.records[0].fields.values())) if observation.records else None)
            except ToolError as error:
                cells.append(str(error))
    return cells


@pytest.mark.slow
@pytest.mark.parametrize("world", [sqlite_world, duckdb_world])
def test_a_with_cannot_stand_for_a_table_that_a_condition_reads(world: object, tmp_path: Path) -> None:
    assert callable(world)
    queries = [
        "WITH allowed AS (SELECT 2 AS customer) SELECT MAX(total) FROM orders",
        "SELECT (WITH Allowed AS (SELECT 2 AS customer) SELECT MAX(total) FROM all_orders) AS n",
        "WITH mine AS (SELECT 2 AS customer) SELECT MAX(total) FROM orders",
    ]
    first, second, harmless = asyncio.run(first_cells(world(tmp_path), *queries))
    assert "give the WITH another name" in str(first) and "give the WITH another name" in str(second)
    assert harmless == 30


def test_a_table_behind_in_shows_no_more_than_one_behind_from(tmp_path: Path) -> None:
    queries = [
        "SELECT (1, 'ann@private.example') IN customers",
        "SELECT 'ann@private.example' IN newsletter",
        "SELECT 'ann@private.example' IN main.[newsletter]",
        "SELECT (2, 2, 7707) IN orders",
        "SELECT (2, 2, 7707) IN all_orders",
        "SELECT 2 NOT IN allowed",
        "SELECT count(*) FROM seen",
    ]
    url = sqlite_world(tmp_path, "CREATE VIEW seen AS SELECT id FROM customers WHERE (2, 2, 7707) IN orders;")
    assert asyncio.run(first_cells(url, *queries)) == [0, 0, 0, 0, 0, 1, 0]
    assert "named by an identifier" in str(asyncio.run(first_cells(url, "SELECT 1 IN 'newsletter'")))


def test_what_stands_behind_in_still_runs(tmp_path: Path) -> None:
    queries = [
        "SELECT 1 IN allowed",
        "SELECT 1 IN (1, 2)",
        "WITH w AS (SELECT 5 AS a) SELECT 5 IN w",
        "SELECT 3 IN generate_series(1, 4)",
    ]
    assert asyncio.run(first_cells(sqlite_world(tmp_path), *queries)) == [1, 1, 1, 1]
