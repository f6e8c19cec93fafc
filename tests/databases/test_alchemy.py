"""Databases through SQLAlchemy: real servers, behind the strictest dialect there is."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from databases.test_sql_corpus import CAPS, build, fixture_statements, statements
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.sandbox.engine import Caps, build_policy
from decisor.sandbox.engines import parse_url
from decisor.sandbox.process import Worker
from servers.sql_databases import MYSQLS, mysql_database, postgres_database

pytest.importorskip("sqlalchemy")
SERVERS = ("postgres", *MYSQLS)


@contextmanager
def database(server: str, texts: list[str]) -> Iterator[str]:
    """Its URL, for SQLAlchemy."""
    if server == "postgres":
        pytest.importorskip("psycopg")
        with postgres_database(texts) as url:
            yield url.replace("postgresql://", "sqlalchemy+postgresql+psycopg://")
    else:
        with mysql_database(texts, MYSQLS[server]) as url:
            yield url.replace("mysql://", "sqlalchemy+mysql+pymysql://")


def shop(server: str) -> list[str]:
    texts = fixture_statements("postgres" if server == "postgres" else "mysql")
    return [text for text in texts if server != "mysql" or "SEQUENCE" not in text]


async def rows(worker: Worker) -> list[str]:
    """All of the shop, as our own statements see it."""
    names = ("customers", "orders", "products", "edges", "api_tokens")
    return [repr((await worker.run(f"SELECT * FROM {name}", trusted=True)).rows) for name in names]


async def not_refused(worker: Worker, dialect: str) -> list[str]:
    """Runs the hostile statements, but for those that are only long: which of them were not refused."""
    ran = []
    for row in statements("hostile", dialect):
        if row["expected"] == "bound":
            continue
        try:
            await worker.run(row["statement"])
        except ToolError as error:
            if error.refused:
                continue
        if row["expected"] != "allow_or_refuse":
            ran.append(row["id"])
    return ran


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_hostile_statements_have_no_effect_on_a_server(server: str) -> None:
    dialect = "postgres" if server == "postgres" else "mysql"
    box = Path("/tmp/guardbox")
    shutil.rmtree(box, ignore_errors=True)
    with database(server, shop(server)) as url:
        worker = Worker(*parse_url(url), CAPS)
        before = await rows(worker)
        assert await not_refused(worker, dialect) == []
        assert await rows(worker) == before and not box.exists()
        await worker.close()


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_harmless_queries_bring_what_the_engine_of_our_own_brings(server: str) -> None:
    """Statements beside queries are refused here, and so is a function that not every engine has."""
    own = "postgres" if server == "postgres" else "mysql"
    with database(server, shop(server)) as url:
        one = Worker(*parse_url(url), Caps(seconds=5.0))
        other = Worker(own, re.sub(r"sqlalchemy\+(\w+)\+\w+", r"\1", url), Caps(seconds=5.0))
        different, refused = [], []
        for row in statements("benign", own):
            if re.search(r"random\(|rand\(|now\(|current_", row["statement"], re.I):
                continue
            try:
                mine = await one.run(row["statement"])
            except ToolError:
                refused.append(row["statement"].split()[0].split("(")[0].upper())
                continue
            theirs = await other.run(row["statement"])
            if mine.columns != theirs.columns or sorted(map(repr, mine.rows)) != sorted(map(repr, theirs.rows)):
                different.append(row["id"])
        assert different == []
        assert set(refused) <= {"EXPLAIN", "SHOW", "DESC", "DESCRIBE", "SELECT"} and refused.count("SELECT") <= 1
        await one.close()
        await other.close()


WRITE = "INSERT INTO plant VALUES (9, 'Nowhere', 1)"
PLANTS = [
    "CREATE TABLE plant (id INT PRIMARY KEY, city VARCHAR(20), cost DECIMAL(9, 2))",
    "INSERT INTO plant VALUES (1, 'Ghent', 3.5), (2, '100%:x', 1)",
    "CREATE TABLE part (id INT PRIMARY KEY, plant INT REFERENCES plant (id))",
    "CREATE TABLE secrets (token VARCHAR(20))",
    "CREATE VIEW leak AS SELECT token FROM secrets",
]
ENDLESS = {"postgres": "SELECT pg_sleep(60)", "mysql": "SELECT sleep(60)", "mariadb": "SELECT sleep(60)"}
RUNNING = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()",
    "mysql": "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT sleep(60)%' "
    "AND db = database()",
}


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_is_described_and_asked_through_sqlalchemy(server: str) -> None:
    with database(server, PLANTS) as url:
        tool = await SqlTool.open(url, deny_tables=["secrets"])
        text = tool.describe()
        assert "table plant (2 rows)" in text and "secrets" not in text and "leak" not in text
        if server == "postgres":  # MySQL drops what REFERENCES says beside a column
            assert "references plant(id)" in text
        seen = await tool.call("SELECT City FROM plant WHERE city LIKE '%:x%' -- a comment")
        assert [tuple(record.fields.values()) for record in seen.records] == [("100%:x",)]
        for query in ("SELECT * FROM secrets", "SELECT * FROM leak", "SELECT table_name FROM pg_tables", WRITE):
            with pytest.raises(ToolError, match="Refused"):
                await tool.call(query)
        with pytest.raises(ToolError, match="citty"):
            await tool.call("SELECT citty FROM plant")
        assert (await tool.call("find Ghent")).records[0].fields["table"] == "plant"
        await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_the_server_itself_refuses_a_write_of_our_own(server: str) -> None:
    with database(server, PLANTS) as url:
        worker = Worker(*parse_url(url))
        with pytest.raises(ToolError, match=r"(?i)read.only|CURSOR FOR INSERT"):
            await worker.run(WRITE, trusted=True)
        assert (await worker.run("SELECT count(*) FROM plant")).rows == ((2,),)
        await worker.close()


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_a_query_that_is_given_up_ends_on_the_server_too(server: str) -> None:
    kind = "postgres" if server == "postgres" else "mysql"
    with database(server, PLANTS) as url:
        worker, watcher = Worker(*parse_url(url), Caps(seconds=30)), Worker(*parse_url(url))
        running = asyncio.create_task(worker.run(ENDLESS[server], trusted=True))
        async with asyncio.timeout(60):
            while (await watcher.run(RUNNING[kind], trusted=True)).rows != ((1,),):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            running.cancel()
            while (await watcher.run(RUNNING[kind], trusted=True)).rows != ((0,),):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (await worker.run("SELECT city FROM plant WHERE id = 1")).rows == (("Ghent",),)
        await worker.close()
        await watcher.close()


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_a_query_that_takes_too_long_is_ended_and_its_connection_lasts(server: str) -> None:
    with database(server, PLANTS) as url:
        worker = Worker(*parse_url(url))
        await worker.start()
        child = worker.child
        with pytest.raises(ToolError, match=r"more than 1 s|statement timeout"):
            await worker.run(ENDLESS[server], caps=Caps(seconds=1), trusted=True)
        assert (await worker.run("SELECT city FROM plant WHERE id = 1")).rows == (("Ghent",),)
        assert worker.child is child
        await worker.close()


async def test_a_connection_that_the_server_ends_is_opened_anew() -> None:
    with database("postgres", PLANTS) as url:
        worker, other = Worker(*parse_url(url)), Worker(*parse_url(url))
        await worker.start()
        ended = await other.run(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
            trusted=True,
        )
        assert ended.rows == ((1,),)
        assert (await worker.run("SELECT count(*) FROM plant")).rows == ((2,),)
        await worker.close()
        await other.close()


async def test_rows_and_bytes_are_capped() -> None:
    with database("postgres", PLANTS) as url:
        worker = Worker(*parse_url(url))
        many = await worker.run("SELECT generate_series(1, 100000000) AS x", caps=Caps(rows=3), trusted=True)
        assert many.rows == ((1,), (2,), (3,)) and many.truncated
        wide = "SELECT repeat('x', 1000) AS y FROM generate_series(1, 100000)"
        assert len((await worker.run(wide, caps=Caps(bytes=10_000), trusted=True)).rows) <= 10
        await worker.close()


async def test_tables_of_other_schemas_are_shown_with_their_schema() -> None:
    more = ["CREATE SCHEMA far", "CREATE TABLE far.away (id INT)", "COMMENT ON TABLE far.away IS 'a long way off'"]
    with database("postgres", [*PLANTS, *more]) as url:
        tool = await SqlTool.open(url)
        assert "table far.away" in tool.describe()
        assert ("far.away", "a long way off") in [(table.name, table.comment) for table in tool.tables]
        await tool.close()


async def test_what_cannot_be_opened_is_told_in_a_line(tmp_path: Path) -> None:
    for url, complaint in (
        ("sqlalchemy+sqlite:////tmp/x.db", "opened as sqlite:///PATH"),
        ("sqlalchemy+firebird://host/x", "nothing here parses its SQL"),
        ("sqlalchemy+hive://host/x", "a package that brings its dialect"),
        ("sqlalchemy+postgresql+psycopg://me:hunter22@127.0.0.1:1/x", "cannot be reached"),
    ):
        with pytest.raises(SetupError, match=complaint) as error:
            await SqlTool.open(url)
        assert "hunter22" not in str(error.value) and "\n" not in str(error.value)


async def test_rows_of_readers_are_refused_where_no_one_kept_to_them() -> None:
    with database("postgres", PLANTS) as url, pytest.raises(SetupError, match="not kept to on postgresql"):
        await SqlTool.open(url, policy=build_policy({"plant": "cost < 2"}, ()))


@pytest.mark.slow
async def test_duckdb_through_sqlalchemy_reads_no_other_file(tmp_path: Path) -> None:
    pytest.importorskip("duckdb_engine")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    path = tmp_path / "shop.duckdb"
    build("duckdb", path)
    before = path.read_bytes()
    worker = Worker(*parse_url(f"sqlalchemy+duckdb:///{path}"), CAPS)
    assert await not_refused(worker, "duckdb") == []
    with pytest.raises(ToolError, match=r"(?i)disabled"):
        await worker.run(f"SELECT * FROM '{tmp_path}/secret.csv'", trusted=True)
    assert (await worker.run("SELECT count(*) FROM orders")).rows == ((8,),)
    await worker.close()
    assert path.read_bytes() == before
