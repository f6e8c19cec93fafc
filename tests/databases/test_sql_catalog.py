"""What opening a database shows of it, and what the views of a hostile one do meanwhile: nothing."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from decisor.databases.schema import TableInfo
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError
from servers.sql_databases import MYSQLS, mysql_database, postgres_database


@asynccontextmanager
async def opened(url: str, deny: Sequence[str] = ()) -> AsyncIterator[tuple[dict[str, TableInfo], str]]:
    """The tables by name, and the text that an LLM sees."""
    tool = await SqlTool.open(url, deny_tables=deny)
    try:
        yield {table.name: table for table in tool.tables}, tool.describe()
    finally:
        await tool.close()


KEYS = (
    "CREATE TABLE plant(id INTEGER PRIMARY KEY, city VARCHAR(40) NOT NULL, cost NUMERIC(8, 2))",
    "CREATE TABLE flow(plant INTEGER, day DATE, PRIMARY KEY (plant, day), FOREIGN KEY (plant) REFERENCES plant(id))",
    "CREATE VIEW cities AS SELECT city FROM plant WHERE id > 0",
    "INSERT INTO plant VALUES (1, 'Ghent', 2.5)",
)


def make(kind: str, folder: Path, statements: Sequence[str]) -> str:
    path = folder / f"shop.{kind}"
    if kind == "duckdb":
        import duckdb

        with duckdb.connect(str(path)) as duck:
            for statement in statements:
                duck.execute(statement)
    else:
        with closing(sqlite3.connect(path)) as lite, lite:
            for statement in statements:
                lite.execute(statement)
    return f"{kind}:///{path}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgres", *MYSQLS])
async def test_keys_references_types_and_views_are_told(kind: str, tmp_path: Path) -> None:
    if kind == "postgres":
        with postgres_database(KEYS) as url:
            await keys_are_told(url)
    elif kind in MYSQLS:
        with mysql_database(KEYS, MYSQLS[kind]) as url:
            await keys_are_told(url)
    else:
        await keys_are_told(make(kind, tmp_path, KEYS))


async def keys_are_told(url: str) -> None:
    async with opened(url) as (tables, text):
        assert list(tables) == ["flow", "plant", "cities"]
        identity, city, cost = tables["plant"].columns
        assert (identity.key, city.key, city.nullable, cost.nullable) == (True, False, False, True)
        assert [column.references for column in tables["flow"].columns] == ["plant.id", ""]
        assert [column.key for column in tables["flow"].columns] == [True, True]
        assert cost.type in ("NUMERIC(8, 2)", "DECIMAL(8,2)", "NUMERIC(8,2)")
        assert tables["cities"].view and tables["cities"].rows == 1
        assert "plant" in text and 'e.g. "Ghent"' in text and "view cities (1 row)" in text


async def test_a_view_of_a_duckdb_file_reads_no_other_file_while_it_opens(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("name\nnobody\n")
    read = f"SELECT * FROM read_csv('{secret}', header = false, columns = {{'line': 'VARCHAR'}})"
    url = make(
        "duckdb",
        tmp_path,
        [
            "CREATE TABLE plant(city VARCHAR)",
            "INSERT INTO plant VALUES ('Ghent')",
            f"CREATE VIEW leak AS {read}",
            "CREATE VIEW over_leak AS SELECT * FROM leak",
            f"CREATE VIEW auto AS SELECT * FROM read_csv('{secret}')",
            f"CREATE VIEW plain AS SELECT * FROM '{secret}'",
            "CREATE VIEW fine AS SELECT city FROM plant",
            f"CREATE MACRO lines() AS TABLE {read}",
            "CREATE VIEW by_macro AS SELECT * FROM lines()",
        ],
    )
    secret.write_text("CANARY_HEAD\nCANARY_LINE\n")
    async with opened(url) as (tables, text):
        assert "CANARY" not in text
        assert tables["fine"].rows == 1 and tables["plant"].rows == 1
        assert all(tables[name].rows is None for name in tables if name not in ("fine", "plant"))


async def test_macros_named_like_the_catalog_do_not_stand_in_for_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("CANARY\n")
    read = f"SELECT * FROM read_csv('{secret}', header = false, columns = {{'line': 'VARCHAR'}})"
    names = ("duckdb_columns", "duckdb_tables", "duckdb_constraints", "duckdb_views")
    url = make(
        "duckdb",
        tmp_path,
        [
            *KEYS,
            f"CREATE MACRO current_schema() AS (SELECT max(line) FROM ({read}))",
            *[f"CREATE MACRO {name}() AS TABLE {read}" for name in names],
        ],
    )
    await keys_are_told(url)


async def test_functions_named_like_the_catalogs_do_not_stand_in_for_them() -> None:
    stand_in = """CREATE FUNCTION unnest(smallint[]) RETURNS SETOF smallint LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'CANARY'; END $$"""
    with postgres_database((*KEYS, stand_in)) as url:
        await keys_are_told(url)


async def test_views_that_call_or_cannot_be_bound_do_not_stop_a_sqlite_file_from_opening(tmp_path: Path) -> None:
    url = make(
        "sqlite",
        tmp_path,
        [
            "CREATE TABLE plant(city TEXT)",
            "INSERT INTO plant VALUES ('Ghent')",
            "CREATE TABLE secrets(token TEXT)",
            "INSERT INTO secrets VALUES ('CANARY')",
            "CREATE VIEW fine AS SELECT city FROM plant",
            "CREATE VIEW calls AS SELECT load_extension('libm.so.6') AS a",
            "CREATE VIEW gone AS SELECT * FROM no_such",
            "CREATE VIEW bomb AS SELECT printf('%.*c', 900000000, 'x') AS a",
            "CREATE VIEW peek AS SELECT * FROM secrets",
            "CREATE VIEW over_peek AS SELECT * FROM peek",
            "CREATE VIRTUAL TABLE words USING fts5(body)",
        ],
    )
    async with opened(url, deny=["secrets"]) as (tables, text):
        assert "CANARY" not in text and "token" not in text
        assert tables["fine"].rows == 1 and tables["words"].columns[0].name == "body"
        assert not {"peek", "over_peek"} & tables.keys()
        assert not {"calls", "gone", "bomb"} & {name for name, one in tables.items() if one.rows}


SERVER_VIEWS = (
    "CREATE TABLE plant(city VARCHAR(40))",
    "INSERT INTO plant VALUES ('Ghent')",
    "CREATE TABLE secrets(token TEXT)",
    "INSERT INTO secrets VALUES ('CANARY')",
    "CREATE VIEW fine AS SELECT city FROM plant",
    "CREATE VIEW peek AS SELECT token FROM secrets",
    "CREATE VIEW over_peek AS SELECT token FROM peek",
)


async def test_a_view_of_postgresql_is_told_from_the_catalog_and_runs_only_what_a_query_may() -> None:
    reads = "CREATE VIEW leak AS SELECT pg_read_file('/etc/passwd') AS line"
    with postgres_database((*SERVER_VIEWS, reads, "CREATE VIEW over_leak AS SELECT * FROM leak")) as url:
        async with opened(url, deny=["secrets"]) as (tables, text):
            assert "CANARY" not in text and "root:" not in text
            assert tables["fine"].rows == 1 and tables["over_leak"].columns[0].name == "line"
            assert tables["leak"].rows is None and tables["over_leak"].rows is None
            assert not {"peek", "over_peek"} & tables.keys()


@pytest.mark.parametrize("server", MYSQLS)
async def test_a_view_of_mysql_is_told_from_the_catalog_and_runs_only_what_a_query_may(server: str) -> None:
    reads = "CREATE VIEW leak AS SELECT load_file('/etc/passwd') AS line"
    statements = (*SERVER_VIEWS, reads, "CREATE VIEW over_leak AS SELECT * FROM leak")
    with mysql_database(statements, MYSQLS[server]) as url:
        async with opened(url, deny=["secrets"]) as (tables, text):
            assert "CANARY" not in text and "root:" not in text
            assert tables["fine"].rows == 1 and tables["over_leak"].columns[0].name == "line"
            assert tables["leak"].rows is None and tables["over_leak"].rows is None
            assert not {"peek", "over_peek"} & tables.keys()


@pytest.mark.parametrize("server", MYSQLS)
async def test_an_invisible_column_is_not_told(server: str) -> None:
    with mysql_database(("CREATE TABLE plant(city VARCHAR(40), ord BIGINT INVISIBLE)",), MYSQLS[server]) as url:
        async with opened(url) as (tables, text):
            assert [column.name for column in tables["plant"].columns] == ["city"] and "ord" not in text


async def test_odd_names_are_told_as_they_are(tmp_path: Path) -> None:
    url = make(
        "sqlite",
        tmp_path,
        [
            'CREATE TABLE "a b"(x, "select" INT, c AS (x + 1))',
            "CREATE TABLE none(a)",
            'CREATE VIEW "v (x) AS y"(q) AS SELECT x FROM "a b"',
        ],
    )
    async with opened(url) as (tables, _):
        assert [column.name for column in tables["a b"].columns] == ["x", "select", "c"]
        assert tables["v (x) AS y"].rows == 0


async def test_a_file_whose_schema_is_damaged_is_one_line(tmp_path: Path) -> None:
    url = make("sqlite", tmp_path, ["CREATE TABLE plant(city TEXT)"])
    path = Path(url.removeprefix("sqlite:///"))
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE plant", b"CREATE TABLF plant"))
    with pytest.raises(SetupError) as caught:
        await SqlTool.open(url)
    assert "\n" not in str(caught.value)
