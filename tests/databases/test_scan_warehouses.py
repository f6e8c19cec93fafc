"""What a query will read is asked first of warehouses too, or the limit is refused where nobody can tell."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

import decisor
from decisor.databases.scan_limits import check_limits
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import parse_max_scan
from decisor.sandbox.engine import Caps
from decisor.sandbox.engines import load_engine
from decisor.session.config import resolve_config
from decisor.session.data import open_data
from decisor.session.sources import build_sources
from servers.spark_server import spark_database
from servers.sql_databases import postgres_database
from servers.trino_server import trino_database

MANY = "SELECT * FROM event WHERE kind = 3 AND label LIKE '%y%'"
FEW = "SELECT title FROM kind"
EVENTS = "SELECT n AS id, n % 10 AS kind, 'label' AS label FROM {numbers}"


async def refuses(url: str, most: str, queries: Sequence[str] = (MANY,), run: Sequence[str] = (FEW,)) -> None:
    """It refuses the one kind, and runs the other."""
    tool = await SqlTool.open(url, caps=Caps(seconds=60))
    try:
        limited = tool.limited(parse_max_scan(most))
        for query in queries:
            with pytest.raises(ToolError, match="Not run: it would read about") as complaint:
                await limited.call(query)
            assert complaint.value.refused and str(parse_max_scan(most)) in str(complaint.value)
        for query in run:
            assert (await limited.call(query)).records
    finally:
        await tool.close()


@pytest.mark.slow
async def test_trino_is_asked_what_a_query_reads() -> None:
    numbers = "UNNEST(sequence(1, 5000)) AS t(n)"
    statements = (
        f"CREATE TABLE {{schema}}.event AS {EVENTS.format(numbers=numbers)}",
        "CREATE TABLE {schema}.kind AS SELECT 'one' AS title",
    )
    with trino_database(statements) as url:
        await refuses(url, "1000")
        await refuses(url, "5KB")
        await refuses(url, "10_000", queries=(), run=(FEW, "SELECT count(*) AS n FROM event"))


@pytest.mark.slow
async def test_spark_is_asked_what_a_query_reads() -> None:
    events = EVENTS.format(numbers="(SELECT id AS n FROM range(5000))")
    statements = (
        f"CREATE TABLE {{schema}}.event USING parquet AS {events}",
        "CREATE TABLE {schema}.kind USING parquet AS SELECT 'one' AS title",
    )
    with spark_database(statements) as url:
        await refuses(url, "2KB")
        await refuses(url, "1MB", queries=(), run=(FEW, "SELECT count(*) AS n FROM event"))


@pytest.fixture
def clickhouse(tmp_path: Path) -> str:
    pytest.importorskip("chdb_sqlalchemy")
    events = EVENTS.format(numbers="(SELECT number AS n FROM numbers(50000))")
    make = f"""
import sqlalchemy, sys
with sqlalchemy.create_engine(sys.argv[1]).connect() as db:
    for statement in (
        "CREATE DATABASE shop",
        "CREATE TABLE shop.event ENGINE = MergeTree ORDER BY id AS {events}",
        "CREATE TABLE shop.kind (title String) ENGINE = Log",
        "INSERT INTO shop.kind VALUES ('one')",
        "CREATE TABLE shop.log (line String) ENGINE = Log",
        "INSERT INTO shop.log SELECT toString(number) FROM numbers(3000)",
    ):
        db.exec_driver_sql(statement)
"""
    place = f"chdb:///{tmp_path}/data"
    subprocess.run([sys.executable, "-c", make, place], check=True)
    return place


async def test_clickhouse_is_asked_what_a_query_reads(clickhouse: str) -> None:
    queries = ("SELECT * FROM shop.event WHERE label LIKE '%y%'", "SELECT line FROM shop.log WHERE line = '7'")
    cheap = (
        "SELECT line FROM shop.log LIMIT 1",
        "SELECT * FROM shop.event WHERE id = 7",
        "SELECT count() FROM shop.event",
    )
    await refuses(clickhouse, "2500", queries, ("SELECT title FROM shop.kind",))
    await refuses(clickhouse, "40_000", queries[:1], cheap)
    await refuses(clickhouse, "100KB", queries[:1], cheap[2:])


async def test_a_database_through_sqlalchemy_is_asked_as_by_its_own_engine() -> None:
    events = EVENTS.format(numbers="generate_series(1, 5000) AS t(n)")
    schema = (f"CREATE TABLE event AS {events}", "CREATE TABLE kind AS SELECT 'one' AS title", "ANALYZE")
    with postgres_database(schema) as url:
        await refuses(f"sqlalchemy+postgresql+psycopg://{url.partition('://')[2]}", "1000")


@pytest.mark.parametrize(
    ("name", "limit", "complaint"),
    [
        ("sqlalchemy:teradatasql", "5M", "teradatasql does not tell ahead"),
    ],
)
def test_a_limit_that_nobody_can_hold_to_is_refused_with_the_way_out(name: str, limit: str, complaint: str) -> None:
    with pytest.raises(SetupError, match=complaint) as error:
        check_limits(load_engine(name), "sales", [parse_max_scan(limit)])
    assert "\n" not in str(error.value) and "sales" in str(error.value)


def log_file(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "log.db")) as db, db:
        db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, kind INTEGER, label TEXT)")
        db.execute("CREATE TABLE kind (title TEXT)")
        db.execute("CREATE VIEW recent AS SELECT e.label FROM event AS e WHERE e.kind > 3")
        db.executemany("INSERT INTO event VALUES (?, ?, 'x')", [(number, number % 10) for number in range(5000)])
        db.execute("INSERT INTO kind VALUES ('one')")
    return folder / "log.db"


@pytest.mark.parametrize(
    "query",
    [
        "/* all */ SELECT label FROM event",
        "-- all\nSELECT label FROM event",
        "SELECT label FROM recent",
    ],
)
async def test_no_way_of_writing_a_query_goes_past_the_limit(query: str, tmp_path: Path) -> None:
    await refuses(f"sqlite:///{log_file(tmp_path)}", "1000", (query,))


async def test_duckdbs_summary_of_a_table_is_a_query_too(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "log.duckdb")) as db:
        db.execute("CREATE TABLE event AS SELECT i AS id, i % 10 AS kind, 'x' AS label FROM range(5000) AS t(i)")
        db.execute("CREATE TABLE kind AS SELECT 'one' AS title")
    await refuses(f"duckdb:///{tmp_path}/log.duckdb", "1000", (MANY, "SUMMARIZE event"), (FEW,))


async def test_tables_of_a_large_schema_are_counted_when_they_are_asked(tmp_path: Path) -> None:
    with closing(sqlite3.connect(log_file(tmp_path))) as db, db:
        for number in range(410):
            db.execute(f"CREATE TABLE other_{number} (x INTEGER)")
    await refuses(f"sqlite:///{tmp_path}/log.db", "1000")


async def test_a_connection_has_a_limit_of_its_own_beside_that_of_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_file(tmp_path)
    home = tmp_path / "home" / "decisor"
    home.mkdir(parents=True)
    (home / "decisor.toml").write_text(f'[connections.log]\nurl = "{tmp_path}/log.db"\nmax_scan = "1000"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for most in ("", "1M"):
        llm = ScriptedLLM([f"Action: log\nAction input: {query}" for query in (MANY, FEW)] + ["Answer: one [o2.r1]"])
        async with open_data(build_sources(db=resolve_config().connection("log"))) as data:
            result = await data.ask(
                "Which?", llm=llm, technique="single_rag", settings={"calling": "text"}, max_scan=most
            )
        assert result.answer == "one" and "at most 1,000 rows are allowed" in str(result.trace)
    (home / "decisor.toml").write_text('[connections.log]\nurl = "log.db"\nmax_scan = "little"\n')
    with pytest.raises(SetupError, match="such as 5M or 2GB"):
        resolve_config()


async def test_a_graph_that_cannot_tell_what_it_reads_is_not_asked_with_a_limit(tmp_path: Path) -> None:
    kglite = pytest.importorskip("kglite")
    graph = kglite.KnowledgeGraph()
    graph.cypher("CREATE (:City {name: 'Oslo'})")
    graph.save(str(tmp_path / "g.kgl"))
    with pytest.raises(SetupError, match="kglite does not tell ahead"):
        async with decisor.open(graph=f"kglite:///{tmp_path}/g.kgl") as data:
            await data.ask("Which?", llm=ScriptedLLM([]), technique="single_rag", max_scan="5M")
