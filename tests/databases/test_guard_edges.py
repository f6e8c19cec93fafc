"""Where the guard and an engine could read one statement in two ways, and harmless words that must run."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from databases.test_hidden_tables import SHOP, database
from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from servers.sql_databases import MYSQLS, mysql_database, postgres_database

UNSEEN = ("\u200b", "\u2060", "\ufeff", "\u00ad", "\u202e", "\U000e0041")
SPACES = ("\u3000", "\u00a0", "\u2009")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgres", "mysql"])
async def test_characters_that_engines_take_for_white_space_or_letters_are_refused(kind: str, tmp_path: Path) -> None:
    with database(kind, tmp_path) as url:
        tool = await SqlTool.open(url, deny_tables=["secrets"])
        for odd in UNSEEN:
            for text in (
                f"SELECT * FROM plant AS x{odd}CROSS{odd}JOIN{odd}secrets",
                f"SELECT city{odd} FROM plant",
                f"SELECT 1 AS a{odd}b",
                f"SELECT EXTRACT(ye{odd}ar FROM city) FROM plant",
            ):
                with pytest.raises(ToolError) as complaint:
                    await tool.call(text)
                assert complaint.value.refused, text
        for odd in SPACES:
            with pytest.raises(ToolError) as complaint:
                await tool.call(f"SELECT * FROM plant AS x{odd}CROSS{odd}JOIN{odd}secrets")
            assert complaint.value.refused
        for odd in ("\u200b", "\ufeff"):
            seen = await tool.call(f"SELECT 'a{odd}b' AS text")
            assert seen.records[0].fields == {"text": f"a{odd}b"}
        await tool.close()


async def test_a_column_that_begins_with_a_byte_order_mark_is_read_by_its_quoted_name(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "csv.db")) as db, db:
        db.execute('CREATE TABLE t("\ufeffid" INTEGER)')
        db.execute("INSERT INTO t VALUES (7)")
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/csv.db")
    assert (await tool.call('SELECT "\ufeffid" AS n FROM t')).records[0].fields == {"n": 7}
    await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgres", "mysql"])
async def test_names_in_any_case_mean_what_they_meant(kind: str, tmp_path: Path) -> None:
    table, alias = ("plant", "p") if kind == "mysql" else ("PLANT", "P")  # MySQL's tables keep their case
    with database(kind, tmp_path) as url:
        tool = await SqlTool.open(url)
        query = f"sElEcT {alias}.City, CoUnT(*) N FROM {table} {alias} WHERE p.ID > 0 GROUP BY p.CITY ORDER BY n"
        seen = await tool.call(query)
        assert [{key.lower(): value for key, value in record.fields.items()} for record in seen.records] == [
            {"city": "Ghent", "n": 1}
        ]
        await tool.close()


async def test_a_column_without_an_alias_keeps_the_name_that_was_written(tmp_path: Path) -> None:
    with database("sqlite", tmp_path) as url:
        tool = await SqlTool.open(url)
        seen = await tool.call("SELECT max(id), city FROM plant")
        await tool.close()
    assert list(seen.records[0].fields) == ["MAX(id)", "city"]


async def test_a_misspelt_column_of_sqlite_is_an_error_and_no_text(tmp_path: Path) -> None:
    with database("sqlite", tmp_path) as url:
        tool = await SqlTool.open(url)
        for query in ("SELECT citty FROM plant", 'SELECT id FROM plant WHERE "citty" = 1'):
            with pytest.raises(ToolError, match="no such column"):
                await tool.call(query)
        await tool.close()


ROW_FUNCTIONS = (
    *SHOP,
    "CREATE FUNCTION naps(plant) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT max(token) FROM secrets'",
    """CREATE FUNCTION "Loud"(p plant, n int DEFAULT 1) RETURNS text LANGUAGE sql AS 'SELECT ''CANARY'' '""",
    """CREATE FUNCTION any_of(anyelement) RETURNS text LANGUAGE sql AS 'SELECT ''CANARY'' '""",
    """CREATE FUNCTION lower(plant) RETURNS text LANGUAGE sql AS 'SELECT ''CANARY'' '""",
)


CALLS_OF_ROWS = [
    "SELECT c.naps FROM plant c",
    'SELECT c."naps" FROM plant AS c',
    "SELECT (c).naps FROM plant c",
    "SELECT (SELECT x.NAPS) FROM plant x",
    "SELECT id FROM plant p ORDER BY p.naps",
    "SELECT plant.naps FROM plant",
    'SELECT c."Loud" FROM plant c',
    "SELECT c.any_of FROM plant c",
    "SELECT lower(c) FROM plant c",
    "SELECT pg_catalog.lower(c) FROM plant c",
    "SELECT naps(c) FROM plant c",
]


@pytest.mark.slow
async def test_a_function_of_a_row_is_not_called_as_a_column() -> None:
    with postgres_database(ROW_FUNCTIONS) as url:
        tool = await SqlTool.open(url)
        for query in CALLS_OF_ROWS:
            with pytest.raises(ToolError, match="function") as complaint:
                await tool.call(query)
            assert complaint.value.refused, query
        assert (await tool.call("SELECT city FROM plant")).total == 1
        await tool.close()


OWN_OPERATORS = (
    *SHOP,
    "CREATE TYPE mood AS ENUM ('glad', 'sad')",
    "CREATE TYPE tone AS ENUM ('high', 'low')",
    "CREATE FUNCTION peeks(text, int) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT max(token) FROM secrets'",
    "CREATE FUNCTION feels(mood) RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT length(max(token)) FROM secrets'",
    "CREATE FUNCTION sounds(tone) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT max(token) FROM secrets'",
    "CREATE OPERATOR + (LEFTARG = text, RIGHTARG = int, FUNCTION = peeks)",
    "CREATE OPERATOR <<>> (LEFTARG = text, RIGHTARG = int, FUNCTION = peeks)",
    "CREATE OPERATOR ~~ (LEFTARG = text, RIGHTARG = int, FUNCTION = peeks)",
    "CREATE CAST (mood AS int) WITH FUNCTION feels(mood)",
    "CREATE CAST (tone AS text) WITH FUNCTION sounds(tone) AS IMPLICIT",
    "CREATE TABLE sung(tone tone)",
    "INSERT INTO sung VALUES ('high')",
)


HIDDEN_CALLS = [
    "SELECT city + 1 FROM plant",
    "SELECT city <<>> 1 FROM plant",
    "SELECT city OPERATOR(public.+) 1 FROM plant",
    "SELECT city LIKE 1 FROM plant",
    "SELECT CAST('glad'::mood AS int)",
    "SELECT 'glad'::mood::integer",
    "SELECT int4('glad'::mood)",
    "SELECT upper(tone) FROM sung",
    "SELECT upper('high'::tone)",
    "SELECT concat('high'::tone::text)",
    "SELECT tone || 'x' FROM sung",
]


@pytest.mark.slow
async def test_an_operator_or_a_cast_does_not_call_a_function_of_a_user() -> None:
    with postgres_database(OWN_OPERATORS) as url:
        tool = await SqlTool.open(url)
        for query in HIDDEN_CALLS:
            with pytest.raises(ToolError) as complaint:
                await tool.call(query)
            assert complaint.value.refused, query
        assert (await tool.call("SELECT count(*) AS n, max(id * 2) AS m FROM plant WHERE city = 'Ghent'")).total == 1
        await tool.close()


async def test_a_view_that_does_what_a_query_may_not_is_not_read_by_a_query_either() -> None:
    reads = "CREATE VIEW leak AS SELECT pg_read_file('/etc/passwd') AS line"
    with postgres_database((*SHOP, reads, "CREATE VIEW over_leak AS SELECT line FROM leak")) as url:
        tool = await SqlTool.open(url)
        for name in ("leak", "over_leak"):
            with pytest.raises(ToolError, match="what a query may not do"):
                await tool.call(f"SELECT * FROM {name}")
        await tool.close()


@pytest.mark.parametrize("server", MYSQLS)
async def test_harmless_words_of_mysql_run(server: str) -> None:
    with mysql_database(SHOP, MYSQLS[server]) as url:
        tool = await SqlTool.open(url, deny_tables=["secrets"])
        for condition, number in (
            ("city REGEXP '^gh'", 1),
            ("city RLIKE 'x'", 0),
            ("city NOT REGEXP 'x'", 1),
            ("NOT city RLIKE '^G' OR id = 1", 1),
        ):
            seen = await tool.call(f"SELECT count(*) AS n FROM plant WHERE {condition}")
            assert seen.records[0].fields == {"n": number}, condition
        rows = await tool.call("VALUES ROW(1, 2), ROW(3, 4)")
        assert [tuple(record.fields.values()) for record in rows.records] == [(1, 2), (3, 4)]
        assert (await tool.call("VALUES (1, 2)")).total == 1
        assert (await tool.call("SELECT 1 AS one FROM DUAL")).records[0].fields == {"one": 1}
        tables = await tool.call("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()")
        assert {value for record in tables.records for value in record.fields.values()} == {"plant", "cities"}
        shown = await tool.call("SHOW TABLES")
        assert {value for record in shown.records for value in record.fields.values()} == {"plant", "cities"}
        await tool.close()


async def test_harmless_words_of_duckdb_run_and_keep_their_meaning(tmp_path: Path) -> None:
    with database("duckdb", tmp_path) as url:
        tool = await SqlTool.open(url)
        query = "SELECT city ~ 'Gh' AS whole, city ~ 'Gh.*' AS all_of_it, regexp_matches(city, 'Gh') AS part FROM plant"
        assert (await tool.call(query)).records[0].fields == {"whole": False, "all_of_it": True, "part": True}
        assert (await tool.call("SELECT city !~ 'Gh' AS n FROM plant")).records[0].fields == {"n": True}
        await tool.close()


async def test_harmless_words_of_postgresql_run() -> None:
    with postgres_database(SHOP) as url:
        tool = await SqlTool.open(url)
        assert (await tool.call("SHOW server_version")).total == 1
        await tool.close()


async def test_harmless_words_of_sqlite_run_and_bombs_in_views_do_not(tmp_path: Path) -> None:
    bomb = "CREATE VIEW bomb AS SELECT printf('%.*c', 900000000, 'x') AS a"
    with database("sqlite", tmp_path, (*SHOP, bomb)) as url:
        tool = await SqlTool.open(url)
        text = await tool.call("SELECT printf('%05.1f', id) AS p, format('%s!', city) AS f FROM plant")
        assert text.records[0].fields == {"p": "001.0", "f": "Ghent!"}
        assert (await tool.call("SELECT sum(value) AS s FROM generate_series(1, 4)")).records[0].fields == {"s": 10}
        for query in ("SELECT * FROM bomb", "SELECT printf('%.*c', 900000000, 'x')"):
            with pytest.raises(ToolError, match=r"not authorized|Refused"):
                await tool.call(query)
        await tool.close()
