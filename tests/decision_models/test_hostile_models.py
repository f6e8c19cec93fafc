"""A model file of somebody who means harm: neither its copy queries nor its statements act on anything."""

import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from decisor.decision_models.model_file import load, parse_model, read_model
from decisor.decision_models.scratch import Scratch, content
from decisor.errors import SetupError
from decisor.tools.databases.sandbox.blocking import open_scratch
from decisor.tools.databases.sql import SqlTool
from decisor.types import Table
from servers.sql_databases import mysql_database, postgres_database

NAME = f"decisor_hostile_{os.getpid()}"
MODEL = 'measure = "n"\ngoal = "min"\ncandidates = "SELECT 1"\noutcome = "SELECT 1"\n[copy]\n'
SITES = {"site": Table(("name", "rent"), (("a", 2.5), ("b", 1.5)))}
RENT = "SELECT rent FROM site WHERE name = :candidate"


@asynccontextmanager
async def scratch(
    outcome: str = RENT, change: tuple[str, ...] = (), candidates: str = "SELECT name FROM site", seconds: float = 20.0
) -> AsyncIterator[Scratch]:
    model = Scratch("rent", "min", await open_scratch(content(SITES, candidates, change, outcome, (), seconds)),
                    seconds * (len(change) + 3))  # fmt: skip
    yield model
    model.close()


SITE = ("CREATE TABLE site AS SELECT 'a' AS name",)


@pytest.fixture
def postgres() -> Iterator[str]:
    with postgres_database(SITE) as url:
        yield url


@pytest.fixture
def mysql() -> Iterator[str]:
    with mysql_database(SITE) as url:
        yield url


async def copied(url: str, query: str) -> None:
    sql = await SqlTool.open(url)
    try:
        model = await load(parse_model(f"{MODEL}site = '''{query}'''"), sql, open_scratch)
        model.close()
        assert (await sql.fetch("SELECT count(*) FROM site")).rows == ((1,),)
    finally:
        await sql.close()


@pytest.mark.slow
@pytest.mark.parametrize("query", [
    "SELECT pg_read_file('/etc/hostname')", "SELECT dblink_exec('dbname=postgres', 'DROP TABLE site')",
    "DROP TABLE site", "SELECT pg_sleep(1)", "SELECT rolpassword FROM pg_authid", "SELECT 1; SELECT 2",
])  # fmt: skip
async def test_a_copy_query_meets_the_guard_on_postgresql(postgres: str, query: str) -> None:
    with pytest.raises(SetupError, match="site cannot be copied: Refused"):
        await copied(postgres, query)
    await copied(postgres, "SELECT * FROM site")


@pytest.mark.slow
@pytest.mark.parametrize("query", [
    "DROP TABLE site", "SELECT * FROM site INTO OUTFILE '/tmp/{}'", "SELECT load_file('/etc/hostname')",
    "SELECT 1 /*! INTO OUTFILE '/tmp/{}' */", "SELECT * FROM mysql.global_priv",
])  # fmt: skip
async def test_a_copy_query_meets_the_guard_on_mariadb(mysql: str, query: str) -> None:
    with pytest.raises(SetupError, match="site cannot be copied: Refused"):
        await copied(mysql, query.format(NAME))
    await copied(mysql, "SELECT * FROM site")


@pytest.mark.slow
@pytest.mark.parametrize("statement", [
    "SELECT fts3_tokenizer('simple', x'4141414141414141')", "SELECT printf('%.*c', 900000000, 'x')",
    "SELECT format('%.*c', 900000000, 'x')", "SELECT length(zeroblob(900000000))", "SELECT length(randomblob(9))",
    "SELECT load_extension('libm.so.6')", "COMMIT", "ROLLBACK", "BEGIN", "SAVEPOINT choice", "RELEASE choice",
    "ROLLBACK TO choice", "END", "ATTACH '/tmp/decisor_hostile.db' AS o", "DETACH main", "VACUUM",
    "VACUUM INTO '/tmp/decisor_hostile.db'", "PRAGMA writable_schema = ON", "SELECT * FROM pragma_table_info('site')",
    "CREATE VIRTUAL TABLE v USING fts5(a)", "CREATE TRIGGER t AFTER UPDATE ON site BEGIN SELECT 1; END",
    "UPDATE sqlite_master SET sql = 'x'", "SELECT * FROM dbstat", "SELECT * FROM fts3tokenize('simple', 'a')",
    "SELECT varied_by()", "ALTER TABLE site RENAME TO other", "ANALYZE", "SELECT sqlite_version()",
    "SELECT 1; COMMIT", "INSERT OR ROLLBACK INTO one VALUES (1), (1)", "SELECT ?1 + :other", "SELECT \x00",
])  # fmt: skip
@pytest.mark.parametrize("part", ["outcome", "change", "candidates"])
async def test_a_statement_does_nothing_beyond_the_copy(statement: str, part: str) -> None:
    change = ("CREATE TABLE one(a UNIQUE)", *([statement] if part == "change" else []))
    candidates = statement if part == "candidates" else "SELECT name FROM site"
    async with scratch(statement if part == "outcome" else RENT, change, candidates) as model:
        for _ in range(2):  # the copy is whole after a failure: it fails the same way again
            with pytest.raises(SetupError) as caught:
                model.outcomes(["a"])
            assert str(caught.value).startswith("The decision model cannot be computed: ")
            assert "\n" not in str(caught.value)
    assert not Path("/tmp/decisor_hostile.db").exists()


async def test_what_a_model_does_to_its_own_copy_runs_and_is_undone() -> None:
    change = (
        "CREATE TEMP TABLE near AS SELECT name, rent FROM site WHERE name = :candidate",
        "CREATE TABLE far(name TEXT PRIMARY KEY, rent REAL CHECK (rent > 0))", "CREATE INDEX by_rent ON far(rent)",
        "INSERT INTO far SELECT name, rent FROM site WHERE true ON CONFLICT DO NOTHING",
        "UPDATE far SET rent = rent * 2",
        "CREATE VIEW whole AS SELECT sum(rent) AS rent FROM far", "DELETE FROM site", "DROP TABLE site",
    )  # fmt: skip
    outcome = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3)
        SELECT rent + (SELECT count(*) FROM n) + (SELECT sum(value) FROM json_each('[1, 2]'))
        + coalesce(round(sqrt(4)), 0) + ('{"a": 1}' ->> 'a') + (SELECT rent FROM near) FROM whole"""
    async with scratch(outcome, change) as model:
        assert model.outcomes(["a", "b", "a"]).tolist() == [19.5, 18.5, 19.5]


@pytest.mark.slow
async def test_a_bomb_is_stopped_in_time_and_the_next_request_works() -> None:
    many = "a" * 16
    big = f"replace(replace(replace('aaaaaaaa', 'a', '{many}'), 'a', '{many}'), 'a', '{many}')"
    rows = f"SELECT count(*) FROM (SELECT {big} || i AS x FROM n GROUP BY x)"
    bomb = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) {rows}"
    outcome = f"SELECT CASE :candidate WHEN 'a' THEN ({bomb}) ELSE 7 END"
    async with scratch(outcome, seconds=3.0) as model:
        began = time.monotonic()
        with pytest.raises(SetupError, match="cannot be computed"):
            model.outcomes(["a"])
        assert time.monotonic() - began < 30
        assert model.outcomes(["b"]).tolist() == [7.0]


async def test_the_same_seed_varies_the_same_way_and_leaves_the_copy_as_it_was() -> None:
    async with scratch() as model:
        once = model.varied(5, np.random.default_rng(3)).outcomes(["a", "b"]).tolist()
        assert once == model.varied(5, np.random.default_rng(3)).outcomes(["a", "b"]).tolist()
        assert once != model.varied(5, np.random.default_rng(4)).outcomes(["a", "b"]).tolist()
        assert model.outcomes(["a", "b"]).tolist() == [2.5, 1.5]


@pytest.mark.parametrize("tables", [
    {"sqlite_x": Table(("a",), ())}, {"t": Table(("a", "A"), ())}, {"t": Table((), ())},
])  # fmt: skip
async def test_tables_that_do_not_fit_are_one_line(tables: dict[str, Table]) -> None:
    with pytest.raises(SetupError, match="cannot be copied"):
        await open_scratch(content(tables, "SELECT 1", (), "SELECT 1", (), 20.0))


async def test_cells_of_every_kind_are_copied() -> None:
    row = (2**70, -(2**63), True, None, "x\x00y", [1], {"a": 1}, "\ud800", float("inf"))
    tables = {"t": Table(tuple("abcdefghi"), (row,))}
    text = content(tables, "SELECT 1", (), "SELECT a > 1e21 AND b < 0 AND c AND d IS NULL FROM t", (), 20.0)
    model = Scratch("n", "min", await open_scratch(text), 60.0)
    assert model.outcomes(model.candidates()).tolist() == [1.0]
    model.close()


@pytest.mark.parametrize("text", [
    "a = " + "[" * 100_000, "seconds = " + "9" * 5000, "seconds = nan", "seconds = 0", "seconds = inf", '"a\\nb" = 1',
    "measure = 'n'\ngoal = 'min'\ncandidates = 'x'\noutcome = 'x'\nseconds = inf", "x = '" + "y" * 2_000_000 + "'",
])  # fmt: skip
def test_a_file_made_to_break_its_reader_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(text)
    with pytest.raises(SetupError) as caught:
        read_model(tmp_path / "model.toml")
    assert "\n" not in str(caught.value)


def test_a_file_in_another_encoding_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_bytes(b'measure = "caf\xe9"')
    with pytest.raises(SetupError, match="can't decode"):
        read_model(tmp_path / "model.toml")
