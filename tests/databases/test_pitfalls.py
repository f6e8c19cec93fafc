"""Queries that mean what they seem to, and such that do not, on five engines. Of each set one half was out of sight
while the rules were written."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from databases.pitfall_world import ENGINES, kinds, queries, world
from decisor.databases.pitfalls.fan_out import fan_out
from decisor.databases.pitfalls.rules import LOOKUP
from decisor.databases.sql import SqlTool
from decisor.errors import ToolError

FEWEST = 60
MISSES, FALSE_ALARMS = 3, 1
MEANT = 9


@pytest.fixture(scope="module", params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The engine, and the URL of a database there."""
    folder: Path = tmp_path_factory.mktemp("pitfalls")
    with world(request.param, folder) as url:
        yield request.param, url


async def runs(tool: SqlTool, query: str) -> bool:
    """MariaDB has no LATERAL."""
    try:
        await tool.worker.run(query)
    except ToolError:
        if "LATERAL" not in query:
            raise
        return False
    return True


@pytest.mark.slow
async def test_sums_over_multiplied_rows_are_noticed_and_others_are_not(place: tuple[str, str]) -> None:
    engine, url = place
    tool = await SqlTool.open(url)
    assert tool.pitfalls is not None
    wrong: dict[str, list[str]] = {"inflating": [], "harmless": []}
    for kind, mistakes in wrong.items():
        texts = [query for query in queries(kind, engine) if await runs(tool, query)]
        assert len(texts) >= FEWEST
        for query in texts:
            pitfalls = await tool.pitfalls.look(query, rules=(fan_out,))
            if bool(pitfalls) != (kind == "inflating"):
                mistakes.append(query)
    await tool.close()
    assert len(wrong["inflating"]) <= MISSES, wrong["inflating"]
    assert len(wrong["harmless"]) <= FALSE_ALARMS, wrong["harmless"]


@pytest.mark.slow
async def test_each_kind_of_wrong_query_is_noticed_nine_times_of_ten(place: tuple[str, str]) -> None:
    engine, url = place
    tool = await SqlTool.open(url)
    assert tool.pitfalls is not None
    right: dict[tuple[str, bool], list[bool]] = {}
    for rule, wrong, query in kinds(engine):
        table = await tool.worker.run(query)
        pitfalls = await tool.pitfalls.look(query, table)
        right.setdefault((rule, wrong), []).append(any(one.kind == rule for one in pitfalls) == wrong)
    await tool.close()
    assert {key: sum(marks) for key, marks in right.items() if len(marks) != 10 or sum(marks) < MEANT} == {}


async def test_a_value_that_rows_came_back_for_is_not_looked_up(tmp_path: Path) -> None:
    with world("sqlite", tmp_path) as url:
        tool = await SqlTool.open(url)
        assert tool.pitfalls is not None
        names = [
            str(record.fields["name"]) for record in (await tool.call("SELECT name FROM customers LIMIT 2")).records
        ]
        looks = len(tool.pitfalls.stored.results)
        assert (await tool.call(f"SELECT * FROM customers WHERE name = '{names[0]}' AND id > 0")).records
        assert len(tool.pitfalls.stored.results) == looks
        either = await tool.call(f"SELECT * FROM customers WHERE name = '{names[0]}' OR name = 'Nobody at all'")
        assert [one.kind for one in either.pitfalls] == ["unstored_value"]
        counted = await tool.call("SELECT COUNT(*) AS n FROM customers WHERE name = 'Nobody at all'")
        assert [one.kind for one in counted.pitfalls] == ["unstored_value"]
        await tool.close()


@pytest.mark.parametrize(
    ("statement", "is_lookup"),
    [
        ("SELECT name, city FROM customers WHERE id = 3 AND total=7.5;", True),
        ("select * from customers", True),
        ("SELECT name FROM customers c WHERE id = 3", False),
        ("SELECT COUNT(*) FROM customers", False),
        ("SELECT name FROM customers WHERE id = 3 OR id = 4", False),
        ("SELECT name FROM customers LIMIT 3", False),
        ("SELECT name FROM customers, orders", False),
        ("SELECT name FROM customers ORDER BY name", False),
        ("SELECT a / b FROM customers", False),
        ("SELECT name FROM customers WHERE name = 'x'", False),
        ("SELECT name FROM customers WHERE id <> 3", False),
        ("SELECT name FROM customers WHERE id = 3 UNION SELECT name FROM customers", False),
    ],
)
def test_only_columns_of_one_table_by_numbers_are_a_lookup(statement: str, is_lookup: bool) -> None:
    assert (LOOKUP.fullmatch(statement) is not None) == is_lookup


async def test_a_lookup_in_a_view_is_read_as_the_query_that_it_is(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript("""
            CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT);
            INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob');
            CREATE VIEW seen AS SELECT name FROM people LIMIT 1;
        """)
    tool = await SqlTool.open(f"sqlite:///{path}")
    in_view = await tool.call("SELECT name FROM seen")
    await tool.close()
    assert [one.kind for one in in_view.pitfalls] == ["limit_order"]
