"""Cells that Python's own types cannot hold, results that are wide in names, and queries that are given up."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.graphs.cypher import CypherTool
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker
from decisor.tools.calculator import CalculatorTool
from servers.neo4j_server import ask, neo4j_database
from servers.sql_databases import MYSQLS, mysql_database, postgres_database

SOON = 30.0
"""Seconds within which a server has begun a query, or ended what nobody waits for, however busy the machine is."""


async def cells(url: str, query: str) -> list[object]:
    tool = await SqlTool.open(url)
    try:
        return list((await tool.call(query)).records[0].fields.values())
    finally:
        await tool.close()


async def test_text_of_sqlite_that_is_not_utf_8_is_read_as_latin_1_with_a_note(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as db, db:
        db.execute("CREATE TABLE town(name TEXT, people INTEGER)")
        db.execute("INSERT INTO town VALUES (CAST(x'47656ee87665' AS TEXT), 7), ('Zürich', 8)")
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/old.db")
    seen = await tool.call("SELECT name, people FROM town ORDER BY people;")
    await tool.close()
    assert [dict(record.fields) for record in seen.records] == [
        {"name": "Genève", "people": 7},
        {"name": "Zürich", "people": 8},
    ]
    assert "Latin-1" in seen.note


async def test_times_of_postgresql_beyond_pythons_come_as_text() -> None:
    with postgres_database(["CREATE TABLE t(a INT)"]) as url:
        query = """SELECT 'infinity'::date, '-infinity'::timestamp, '0044-03-15 BC'::date, '24:00'::time,
            daterange('2024-01-01', 'infinity'), '1 month 2 days'::interval, '2024-01-03'::date,
            'infinity'::timestamptz, '{2024-01-01,infinity}'::date[]"""
        assert await cells(url, query) == [
            "infinity",
            "-infinity",
            "0044-03-15 BC",
            "24:00:00",
            "[2024-01-01,infinity)",
            "1 mon 2 days",
            "2024-01-03",
            "infinity",
            ["2024-01-01", "infinity"],
        ]


@pytest.mark.parametrize("server", MYSQLS)
async def test_negative_times_of_mysql_have_their_sign(server: str) -> None:
    statements = ["CREATE TABLE t(a TIME)", "INSERT INTO t VALUES ('-01:30:00'), ('120:00:01')"]
    with mysql_database(statements, MYSQLS[server]) as url:
        tool = await SqlTool.open(url)
        seen = await tool.call("SELECT a FROM t ORDER BY a")
        await tool.close()
    assert [record.fields["a"] for record in seen.records] == ["-01:30:00", "5 days 00:00:01"]


async def test_names_of_columns_count_in_the_cap_on_bytes(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "wide.duckdb")) as db:
        db.execute("CREATE TABLE t AS SELECT repeat('x', 900) || i AS k, 1 AS v FROM range(2000) r(i)")
    tool = await SqlTool.open(f"duckdb:///{tmp_path}/wide.duckdb")
    with pytest.raises(ToolError, match="names alone"):
        await tool.call("PIVOT t ON k USING sum(v)")
    await tool.close()


async def test_an_option_of_a_url_that_is_not_known_is_refused() -> None:
    with mysql_database(["CREATE TABLE t(a INT)"]) as url:
        for option in ("ssl_verfy_cert=true", "ssl_verify_cert=maybe", "useSSL=true"):
            with pytest.raises(SetupError, match="option"):
                await SqlTool.open(f"{url}?{option}")
        with pytest.raises(SetupError, match="cannot be reached"):
            await SqlTool.open(f"{url}?ssl_ca=/no/such.pem&ssl_verify_cert=true")


async def test_an_option_of_a_graph_servers_url_is_refused() -> None:
    with pytest.raises(SetupError, match="option encrypted"):
        await CypherTool.open("bolt://127.0.0.1:1/graph?encrypted=true")


@pytest.mark.parametrize("server", MYSQLS)
async def test_a_complaint_of_mysqls_with_a_high_number_is_no_broken_connection(server: str) -> None:
    """MySQL says 3636 of a recursion that is too deep; MariaDB stops at a thousand without a word."""
    deep = "WITH RECURSIVE s AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM s WHERE x < 5000) SELECT max(x) AS x FROM s"
    with mysql_database(["CREATE TABLE t(a INT)"], MYSQLS[server]) as url:
        worker = Worker("mysql", url)
        with pytest.raises(ToolError) as complaint:
            await worker.run("SELECT JSON_TABLE('[', '$[*]' COLUMNS(a INT PATH '$')) AS t", trusted=True)
        assert "broke off" not in str(complaint.value) and not complaint.value.outage
        process = worker.child
        if server == "mysql":
            with pytest.raises(ToolError, match="Recursive query aborted after 1001 iterations") as complaint:
                await worker.run(deep)
            assert not complaint.value.outage
        else:
            assert (await worker.run(deep)).rows[0][0] == 1001
        assert (await worker.run("SELECT 1 AS x")).rows == ((1,),) and worker.child is process
        await worker.close()


def running_on_postgres(url: str) -> bool:
    """The database is the test's own. The query is a cursor's, whose text is not what the server says that it runs."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND state = 'active' AND query LIKE 'FETCH%%' AND pid <> %s"
        )
        row = db.execute(query, (db.info.backend_pid,)).fetchone()
    return bool(row and row[0])


def running_on_mysql(url: str) -> bool:
    import pymysql

    with pymysql.connect(host="127.0.0.1", port=urlsplit(url).port or 0, user="root") as db, db.cursor() as cursor:
        query = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%%1234567%%' AND db = %s"
        cursor.execute(query, (urlsplit(url).path[1:],))
        return bool(cursor.fetchone()[0])


def running_on_neo4j(url: str) -> bool:
    running = ask("SHOW TRANSACTIONS YIELD currentQuery, status RETURN currentQuery, status")
    return any("1234567" in row["currentQuery"] for row in running)


TEN = "(SELECT 0 AS x UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5)"
ENDLESS_SQL = f"SELECT count(*) + 1234567 AS n FROM {', '.join(f'{TEN} AS a{n}' for n in range(20))}"
ENDLESS = "UNWIND range(1, 1000000) AS x UNWIND range(1, 10000000) AS y RETURN count(*) + 1234567 AS n"


@contextmanager
def server_of(kind: str) -> Iterator[str]:
    one = ["CREATE TABLE t(a INT)"]
    with (
        neo4j_database()
        if kind == "neo4j"
        else postgres_database(one)
        if kind == "postgres"
        else mysql_database(one, MYSQLS[kind])
    ) as url:
        yield url


@asynccontextmanager
async def worker_of(kind: str, url: str) -> AsyncIterator[Worker]:
    worker = Worker({"neo4j": "bolt"}.get(kind, kind if kind == "postgres" else "mysql"), url, Caps(seconds=60.0))
    await worker.start()
    try:
        yield worker
    finally:
        await worker.close()


async def until(is_so: Callable[[], bool], seconds: float) -> bool:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(is_so):  # noqa: ASYNC110  the server tells nobody
            await asyncio.sleep(0.05)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", *MYSQLS, "neo4j"])
@pytest.mark.parametrize("ending", ["cancelled", "out of time"])
async def test_a_query_that_is_given_up_ends_at_the_server(kind: str, ending: str) -> None:
    look: Callable[[], bool]
    with server_of(kind) as url:
        look = partial({"postgres": running_on_postgres, "neo4j": running_on_neo4j}.get(kind, running_on_mysql), url)
        async with worker_of(kind, url) as worker:
            task = asyncio.create_task(worker.run(ENDLESS if kind == "neo4j" else ENDLESS_SQL, trusted=True))
            assert await until(look, SOON)
            if ending == "cancelled":
                task.cancel()
            else:
                assert worker.child is not None
                worker.child._stop(ToolError("Stopped"))
            with pytest.raises((asyncio.CancelledError, ToolError)):
                await task
            assert await until(lambda: not look(), SOON)
            assert (await worker.run("RETURN 1 AS x" if kind == "neo4j" else "SELECT 1")).rows == ((1,),)


async def test_the_calculator_reads_so_many_lines_and_no_more() -> None:
    with pytest.raises(ToolError, match="at most 100 lines"):
        await CalculatorTool().call("1 + 1\n" * 101)
    assert len((await CalculatorTool().call("1 + 1\n" * 100)).records) == 100
