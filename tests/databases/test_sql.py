"""The tool sql on real databases: what it shows, what it refuses, what it says of a mistake."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from decisor.databases.schema import ColumnInfo, TableInfo, close_names
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.sandbox.engines import NAMES, load_engine, parse_url
from decisor.sandbox.process import Worker, check_all_statements
from decisor.testing import PLANTS, check_engine
from servers.sql_databases import CONNECTING, MYSQLS, lacking, mysql_database

DATABASE = f"decisor_sql_{os.getpid()}"


def make_sqlite(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "plants.db")) as db, db:
        for statement in PLANTS:
            db.execute(statement)
    return f"sqlite:///{folder}/plants.db"


def make_duckdb(folder: Path) -> str:
    import duckdb

    with duckdb.connect(str(folder / "plants.duckdb")) as db:
        for statement in PLANTS:
            db.execute(statement)
    return f"{folder}/plants.duckdb"


def make_postgres(folder: Path) -> Iterator[str]:
    psycopg = pytest.importorskip("psycopg")
    try:
        admin = psycopg.connect("postgresql://postgres@127.0.0.1/postgres", autocommit=True, connect_timeout=CONNECTING)
    except psycopg.Error as error:
        lacking("PostgreSQL at 127.0.0.1:5432", error)
    with admin:
        admin.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(f"postgresql://postgres@127.0.0.1/{DATABASE}", autocommit=True) as db:
            for statement in PLANTS:
                db.execute(statement)
        yield f"postgresql://postgres@127.0.0.1/{DATABASE}"
        admin.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")


def make_mysql(server: str) -> Iterator[str]:
    with mysql_database([statement.replace('"', "`") for statement in PLANTS], server) as url:
        yield url


@pytest.fixture(params=["sqlite", "duckdb", "postgres", *MYSQLS])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    match request.param:
        case "sqlite":
            yield make_sqlite(tmp_path)
        case "duckdb":
            yield make_duckdb(tmp_path)
        case "postgres":
            yield from make_postgres(tmp_path)
        case kind:
            yield from make_mysql(MYSQLS[kind])


@pytest.mark.slow
async def test_each_engine_holds_what_an_engine_has_to(url: str) -> None:
    await check_engine(url)


@pytest.mark.slow
async def test_a_view_does_not_open_a_denied_table_of_an_embedded_database(url: str) -> None:
    if "127.0.0.1" in url:
        pytest.skip("a server's own rights govern its views")
    tool = await SqlTool.open(url, deny_tables=["Secrets"])
    with pytest.raises(ToolError):
        await tool.call("SELECT * FROM peek")
    await tool.close()


@pytest.mark.slow
async def test_verdicts_of_statements_come_without_running_them(url: str) -> None:
    worker = Worker(*parse_url(url))
    verdicts = await check_all_statements(worker, ["SELECT 1", "DROP TABLE plant", "SELECT * FROM plant"])
    await worker.close()
    assert [verdict.allowed for verdict in verdicts] == [True, False, True]
    assert verdicts[1].reason.startswith("Refused: ")


@pytest.mark.parametrize("name", ["sqlite:///{}/no.db", "duckdb:///{}/no.duckdb", "{}/no.sqlite", "oracle://{}", "{}"])
async def test_what_cannot_be_opened_is_one_line_and_makes_no_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as complaint:
        await SqlTool.open(name.format(tmp_path))
    assert "\n" not in str(complaint.value)
    assert not list(tmp_path.iterdir())


def hint_of(message: str, tables: tuple[TableInfo, ...]) -> str:
    """Of the first engine that complains like this."""
    dialects = [one.dialect for one in map(load_engine, NAMES) if one.dialect]
    return next(filter(None, (close_names(message, tables, dialect) for dialect in dialects)), "")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ('relation "plnt" does not exist', "plant"),
        ('column "costs" does not exist', "cost (in plant)"),
        ("Unknown column 'p.costt' in 'field list'", "cost (in plant)"),
        ("Table 'shop.plants' doesn't exist", "plant"),
        ("Catalog Error: Table with name plnt does not exist!", "plant"),
        ("no such column: kost", "cost (in plant)"),
    ],
)
def test_each_engines_complaint_is_understood(message: str, hint: str) -> None:
    tables = (TableInfo("plant", (ColumnInfo("cost", "REAL"),)),)
    assert hint_of(message, tables) == f" Did you mean: {hint}?"


async def test_a_database_that_knows_no_encoding_gives_text_all_the_same() -> None:
    psycopg = pytest.importorskip("psycopg")
    server, name = "postgresql://postgres@127.0.0.1", f"{DATABASE}_ascii"
    try:
        admin = psycopg.connect(f"{server}/postgres", autocommit=True, connect_timeout=CONNECTING)
    except psycopg.Error:
        pytest.skip("no PostgreSQL at 127.0.0.1:5432")
    with admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        try:
            with psycopg.connect(f"{server}/{name}", autocommit=True, client_encoding="UTF8") as db:
                db.execute("CREATE TABLE plant(city TEXT)")
                db.execute("INSERT INTO plant VALUES('Orléans')")
            tool = await SqlTool.open(f"{server}/{name}")
            assert tool.tables[0].columns == (ColumnInfo("city", "TEXT", examples=('"Orléans"',)),)
            assert (await tool.call("SELECT city FROM plant")).records[0].fields == {"city": "Orléans"}
            await tool.close()
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
