"""A user's own decision model, on a real SQLite file that must stay as it is."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from decisor.decision_models.model_file import load, parse_model, read_model
from decisor.decision_models.scratch import Scratch
from decisor.errors import SetupError
from decisor.tools.databases.sandbox.blocking import open_scratch
from decisor.tools.databases.sql import SqlTool
from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import BulkSource, Table
from servers.sql_databases import mysql_database

MODEL = """
measure = "monthly cost"
goal = "min"
candidates = "SELECT name FROM site WHERE is_open = 0"
change = ["UPDATE site SET is_open = 1 WHERE name = :candidate"]
outcome = '''
SELECT (SELECT sum(rent) FROM site WHERE is_open)
     + (SELECT sum((SELECT min(abs(s.place - c.place)) FROM site s WHERE s.is_open) * c.orders) FROM customer c)
'''
"""


Load = Callable[[str, BulkSource], Awaitable[Scratch]]


@dataclass(frozen=True)
class Lite:
    """Reads an SQLite file."""

    path: Path
    form: Literal["sql", "cypher"] = "sql"

    async def fetch(self, query: str, max_rows: int = 2_000_000, trusted: bool = False) -> Table:
        with closing(sqlite3.connect(self.path)) as database:
            cursor = database.execute(query)
            rows = tuple(cursor.fetchmany(max_rows))
            return Table(tuple(about[0] for about in cursor.description), rows)

    @property
    def tables(self) -> tuple[TableInfo, ...]:
        with closing(sqlite3.connect(self.path)) as database:
            names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return tuple(TableInfo(name, ()) for (name,) in names)

    def quoted(self, name: str) -> str:
        return f'"{name}"'


@pytest.fixture
def shop(tmp_path: Path) -> Lite:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE site(name TEXT, place DOUBLE, rent DOUBLE, is_open INT)")
        database.executemany("INSERT INTO site VALUES (?, ?, ?, ?)",
                             [("north", 0.0, 10.0, 1), ("middle", 5.0, 12.0, 0), ("south", 10.0, 2.0, 0)])  # fmt: skip
        database.execute("CREATE TABLE customer(place DOUBLE, orders INT)")
        database.executemany("INSERT INTO customer VALUES (?, ?)", [(0.0, 5), (5.0, 1), (9.0, 4)])
    return Lite(path)


@pytest.fixture
async def loaded() -> AsyncIterator[Load]:
    """Loads a model; its scratch copy is closed with the test."""
    async with AsyncExitStack() as stack:

        async def load_text(text: str, source: BulkSource) -> Scratch:
            scratch = await load(parse_model(text), source, open_scratch)
            stack.callback(scratch.close)
            return scratch

        yield load_text


async def test_each_candidate_is_measured_on_a_copy_and_undone(shop: Lite, loaded: Load) -> None:
    before = shop.path.read_bytes()
    model = await loaded(MODEL, shop)
    assert model.candidates() == ("middle", "south")
    assert model.outcomes(["middle", "south", "middle"]).tolist() == [22 + 16, 12 + 5 + 4, 22 + 16]
    assert shop.path.read_bytes() == before


async def test_varied_inputs_change_the_outcome_by_no_more_than_they_may(shop: Lite, loaded: Load) -> None:
    model = await loaded(MODEL, shop)
    varied = model.varied(1, np.random.default_rng(0)).outcomes(["south"])[0]
    assert varied != 21
    assert varied == pytest.approx(21, rel=0.06)
    assert model.outcomes(["south"])[0] == 21


async def test_only_the_named_columns_vary(shop: Lite, loaded: Load) -> None:
    model = await loaded(MODEL + 'vary = ["site.rent"]', shop)
    varied = model.varied(10, np.random.default_rng(0)).outcomes(["south"])[0]
    assert 9 + 10.8 <= varied <= 9 + 13.2


@pytest.mark.parametrize(("line", "complaint"), [
    ('outcome = "SELECT rent FROM site"', "must give one number; for middle it gives 3 rows"),
    ('outcome = "SELECT name FROM site LIMIT 1"', "must give a number; for middle it gives 'north'"),
    ('outcome = "SELECT cost FROM site"', "outcome fails: no such column: cost"),
    ('change = ["ATTACH \'other.db\' AS o"]', "change fails: not authorized"),
    ('change = ["DELETE FROM site; DELETE FROM site"]', "one statement at a time"),
    ('candidates = "SELECT name FROM site WHERE 0"', "gives no row"),
    ('candidates = "SELECT is_open FROM site"', "a candidate twice"),
])  # fmt: skip
async def test_a_model_that_does_not_fit_says_which_part(shop: Lite, loaded: Load, line: str, complaint: str) -> None:
    name = line.split(" ")[0]
    given = {"measure": '"cost"', "goal": '"min"', "candidates": '"SELECT name FROM site WHERE is_open = 0"',
             "change": "[]", "outcome": '"SELECT 1"'}  # fmt: skip
    text = "\n".join(f"{key} = {value}" for key, value in given.items() if key != name) + "\n" + line
    model = await loaded(text, shop)
    with pytest.raises(SetupError, match=complaint):
        model.outcomes(model.candidates())


@pytest.mark.parametrize(("text", "complaint"), [
    ("measure = ", "not TOML"), (MODEL + 'colour = "red"', "has no colour"), ('measure = "cost"', "needs goal"),
    (MODEL.replace('"min"', '"least"'), 'not "least"'), (MODEL + "seconds = 'long'", "seconds is to be a number"),
    (MODEL + "vary = [1]", "vary is to be a list of texts"),
])  # fmt: skip
def test_a_file_that_is_no_model_says_why(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text(text)
    with pytest.raises(SetupError, match=complaint) as caught:
        read_model(path)
    assert str(caught.value).startswith(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="No such file"):
        read_model(tmp_path / "none.toml")


async def test_a_query_that_takes_too_long_is_stopped(shop: Lite, loaded: Load) -> None:
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    text = f'measure = "n"\ngoal = "max"\ncandidates = "SELECT name FROM site"\noutcome = "{forever}"\nseconds = 0.1'
    with pytest.raises(SetupError, match=r"takes over 0\.1 s"):
        (await loaded(text, shop)).outcomes(["north"])


async def test_every_table_of_a_server_is_copied_where_none_is_named(loaded: Load) -> None:
    statements = (
        "CREATE TABLE `site log`(name VARCHAR(9), rent DOUBLE)",
        "INSERT INTO `site log` VALUES ('north', 3.0), ('south', 2.0)",
        "CREATE VIEW cheap AS SELECT name FROM `site log`",
    )
    text = """
measure = "rent"
goal = "min"
candidates = 'SELECT name FROM "site log"'
outcome = 'SELECT rent FROM "site log" WHERE name = :candidate'
"""
    with mysql_database(statements) as url:
        tool = await SqlTool.open(url)
        model = await loaded(text, tool)
        assert list(model.outcomes(model.candidates())) == [3.0, 2.0]
        await tool.close()
