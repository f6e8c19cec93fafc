"""A denied table is neither read nor seen, by any way, on every engine."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from servers.sql_databases import MYSQLS, mysql_database, postgres_database

SHOP = (
    "CREATE TABLE plant(id INTEGER PRIMARY KEY, city VARCHAR(40))",
    "INSERT INTO plant VALUES (1, 'Ghent')",
    "CREATE TABLE secrets(token VARCHAR(40), plant INTEGER PRIMARY KEY REFERENCES plant(id))",
    "INSERT INTO secrets VALUES ('CANARY', 1)",
    "CREATE VIEW peek AS SELECT token AS t FROM secrets",
    "CREATE VIEW over_peek AS SELECT t FROM peek",
    "CREATE VIEW cities AS SELECT city FROM plant",
)
BADGE = "CREATE TABLE badge(id INTEGER PRIMARY KEY, holder INTEGER, FOREIGN KEY (holder) REFERENCES secrets(plant))"
KINDS = ("sqlite", "duckdb", "postgres", *MYSQLS)


@contextmanager
def database(kind: str, folder: Path, statements: Sequence[str] = SHOP) -> Iterator[str]:
    path = folder / f"shop.{kind}"
    if kind == "postgres":
        with postgres_database(statements) as url:
            yield url
    elif kind in MYSQLS:
        with mysql_database(statements, MYSQLS[kind]) as url:
            yield url
    elif kind == "duckdb":
        import duckdb

        with duckdb.connect(str(path)) as duck:
            for statement in statements:
                duck.execute(statement)
        yield f"duckdb:///{path}"
    else:
        with closing(sqlite3.connect(path)) as lite, lite:
            for statement in statements:
                lite.execute(statement)
        yield f"sqlite:///{path}"


async def everything_said(tool: SqlTool, statements: Sequence[str]) -> str:
    """What a model comes to know by trying them all."""
    texts = [tool.describe()]
    for statement in statements:
        try:
            seen = await tool.call(statement)
            texts += [str(dict(record.fields)) for record in seen.records] + [seen.note]
        except ToolError as error:
            texts.append(str(error).replace(statement, ""))
    return "\n".join(texts)


TRIES = (
    "SELECT * FROM peek",
    "SELECT * FROM over_peek",
    "SELECT token FROM secret",
    "SELECT tokn FROM plant",
    "SELECT * FROM plant JOIN (SELECT 1) AS x ON true, peek",
    "WITH a AS (SELECT 1 AS n) SELECT * FROM a, over_peek",
    "SELECT table_name FROM information_schema.tables",
    "SELECT column_name FROM information_schema.columns",
    "SELECT * FROM information_schema.table_constraints",
    "SELECT * FROM information_schema.views",
    "SELECT view_definition FROM information_schema.views",
    "SELECT * FROM information_schema.statistics",
    "SELECT count(*) FILTER (WHERE EXISTS (SELECT * FROM information_schema.tables))",
    "SELECT (SELECT count(*) FROM information_schema.columns)",
    "EXPLAIN SELECT * FROM information_schema.tables",
    "SELECT reverse(table_name) FROM information_schema.tables",
)
OWN_TRIES = {
    "sqlite": (
        "PRAGMA table_list",
        "PRAGMA foreign_key_list(plant)",
        "PRAGMA table_info(peek)",
        "SELECT name FROM pragma_table_info('sec' || 'rets')",
        "SELECT name FROM pragma_table_list",
        "SELECT sql FROM sqlite_master",
        "SELECT name FROM sqlite_schema",
        "SELECT * FROM sqlite_sequence",
        "SELECT name FROM pragma_table_info WHERE arg = 'secrets'",
        "PRAGMA foreign_key_list(badge)",
        "SELECT hex(name) FROM sqlite_master",
    ),
    "duckdb": (
        "SHOW TABLES",
        "SUMMARIZE peek",
        "DESCRIBE over_peek",
        "SHOW peek",
        "SELECT * FROM duckdb_tables()",
        "SELECT * FROM duckdb_columns()",
        "SELECT * FROM duckdb_views",
        "SELECT * FROM duckdb_constraints()",
        "FROM peek",
        "DESCRIBE SELECT * FROM peek",
        "SELECT count(*) FROM query_table('sec' || 'rets')",
        "PIVOT peek ON t USING count(*)",
        "SELECT look()",
        "SELECT sql FROM sqlite_master",
        "SELECT reverse(name) FROM sqlite_schema",
        "SELECT * FROM sqlite_temp_master",
        "SELECT relname FROM pg_class",
        "SELECT attname FROM pg_attribute",
        "SELECT * FROM main.sqlite_master",
        "SELECT tablename FROM pg_tables",
        "SHOW 'tables'",
        'DESCRIBE "TABLES"',
        "SUMMARIZE 'tables'",
        "DESCRIBE `schemas`",
    ),
    "postgres": (
        "SELECT relname FROM pg_class",
        "SELECT tablename FROM pg_catalog.pg_tables",
        "SELECT definition FROM pg_views",
        "SELECT attname FROM pg_attribute",
        "SELECT CAST('secrets' AS regclass)",
        "SELECT (NULL::secrets)",
        "SELECT json_populate_record(NULL::peek, '{}')",
        "SELECT obj_description(1)",
        "SELECT * FROM kept",
        "SELECT * FROM part_1",
        "SELECT typname FROM pg_type",
    ),
    "mysql": (
        "SHOW TABLES",
        "SHOW FULL TABLES",
        "DESCRIBE peek",
        "SHOW CREATE TABLE over_peek",
        "SHOW INDEX FROM peek",
        "SHOW COLUMNS FROM peek",
        "EXPLAIN peek",
        "SELECT * FROM information_schema.key_column_usage",
        "EXPLAIN FORMAT=JSON SELECT * FROM information_schema.tables",
        "SHOW CREATE TABLE badge",
    ),
}
OWN_TRIES["mariadb"] = OWN_TRIES["mysql"]
OWN_SHOP = {
    "sqlite": (),
    "duckdb": ("CREATE MACRO look() AS (SELECT max(token) FROM secrets)",),
    "postgres": ("CREATE MATERIALIZED VIEW kept AS SELECT token FROM secrets", "COMMENT ON TABLE secrets IS 'CANARY'"),
    **dict.fromkeys(MYSQLS, ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_denied_table_is_seen_by_no_way(kind: str, tmp_path: Path) -> None:
    with database(kind, tmp_path, (*SHOP, BADGE, *OWN_SHOP[kind])) as url:
        tool = await SqlTool.open(url, deny_tables=["Secrets"])
        text = await everything_said(tool, (*TRIES, *OWN_TRIES[kind]))
        fine = await tool.call("SELECT city FROM cities")
        await tool.close()
    assert "CANARY" not in text
    assert not [line for line in text.splitlines() if re.search("secrets|sterces|736563726574", line.lower())]
    assert "over_peek" not in tool.describe() and "token" not in tool.describe()
    assert [dict(record.fields) for record in fine.records] == [{"city": "Ghent"}]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_only_the_tables_that_are_named_are_read_and_seen(kind: str, tmp_path: Path) -> None:
    with database(kind, tmp_path) as url:
        tool = await SqlTool.open(url, tables=["plant"])
        text = await everything_said(tool, (*TRIES, *OWN_TRIES[kind]))
        own = "WITH best AS (SELECT city FROM plant) SELECT city FROM best"
        assert [dict(record.fields) for record in (await tool.call(own)).records] == [{"city": "Ghent"}]
        for query in (
            "SELECT * FROM secrets",
            "SELECT * FROM cities",
            "SELECT * FROM secrets, (WITH secrets AS (SELECT 1) SELECT * FROM secrets) AS x",
        ):
            with pytest.raises(ToolError, match="may not be read"):
                await tool.call(query)
        await tool.close()
    assert "CANARY" not in text and "secrets" not in text and "view cities" not in text


async def test_a_table_that_is_not_there_cannot_be_the_only_one(tmp_path: Path) -> None:
    with database("sqlite", tmp_path) as url, pytest.raises(SetupError, match="no table plants to read"):
        await SqlTool.open(url, tables=["plants"])


async def test_full_text_indexes_of_a_denied_table_are_hidden_with_their_shadows(tmp_path: Path) -> None:
    statements = (
        *SHOP,
        "CREATE VIRTUAL TABLE words USING fts5(token, content='secrets')",
        "INSERT INTO words(words) VALUES ('rebuild')",
        "CREATE VIRTUAL TABLE terms USING fts5vocab('words', 'row')",
        "CREATE VIRTUAL TABLE notes USING fts5(body)",
        "INSERT INTO notes VALUES ('fine')",
        "CREATE VIRTUAL TABLE diary USING fts5(body)",
        "INSERT INTO diary VALUES ('CANARY')",
    )
    with database("sqlite", tmp_path, statements) as url:
        tool = await SqlTool.open(url, deny_tables=["secrets", "diary"])
        tables = ("words('canary')", "words_data", "terms", "diary_content", "diary_data")
        tries = [*(f"SELECT * FROM {name}" for name in tables), "PRAGMA table_info(diary_content)"]
        text = await everything_said(tool, tries)
        assert (await tool.call("SELECT body FROM notes WHERE notes MATCH 'fine'")).total == 1
        await tool.close()
    assert "CANARY" not in text and "canary" not in text and "diary" not in tool.describe()


async def test_partitions_and_parents_of_a_denied_table_are_hidden() -> None:
    statements = (
        "CREATE TABLE sale(id INT, year INT) PARTITION BY LIST (year)",
        "CREATE TABLE sale_2024 PARTITION OF sale FOR VALUES IN (2024)",
        "INSERT INTO sale VALUES (77, 2024)",
    )
    for denied in ("sale", "sale_2024"):
        with postgres_database(statements) as url:
            tool = await SqlTool.open(url, deny_tables=[denied])
            text = await everything_said(tool, ["SELECT id FROM sale", "SELECT id FROM sale_2024"])
            await tool.close()
            assert "77" not in text


async def test_a_table_that_alone_may_be_read_is_read_with_its_partitions() -> None:
    statements = (
        "CREATE TABLE sale(id INT, year INT) PARTITION BY LIST (year)",
        "CREATE TABLE sale_2024 PARTITION OF sale FOR VALUES IN (2024) PARTITION BY LIST (id)",
        "CREATE TABLE sale_77 PARTITION OF sale_2024 FOR VALUES IN (77)",
        "INSERT INTO sale VALUES (77, 2024)",
        "CREATE TABLE other(sale TEXT DEFAULT 'CANARY')",
        "CREATE TABLE person(name TEXT)",
        "CREATE TABLE manager(bonus INT) INHERITS (person)",
        "INSERT INTO manager VALUES ('CANARY', 5)",
    )
    with postgres_database(statements) as url:
        tool = await SqlTool.open(url, tables=["sale"])
        assert {table.name for table in tool.tables} == {"sale", "sale_2024", "sale_77"}
        assert (await tool.call("SELECT id FROM sale")).records[0].fields == {"id": 77}
        text = await everything_said(tool, ["SELECT * FROM other", "SELECT * FROM person", "SELECT * FROM manager"])
        await tool.close()
    assert "CANARY" not in text and "bonus" not in text


@pytest.mark.parametrize("server", MYSQLS)
async def test_a_table_that_merges_a_denied_one_is_hidden(server: str) -> None:
    statements = (
        "CREATE TABLE vault(token VARCHAR(40)) ENGINE=MyISAM",
        "INSERT INTO vault VALUES ('CANARY')",
        "CREATE TABLE merged(token VARCHAR(40)) ENGINE=MERGE UNION=(vault)",
        *SHOP[:2],
    )
    with mysql_database(statements, MYSQLS[server]) as url:
        tool = await SqlTool.open(url)
        assert (await tool.call("SELECT token FROM merged")).total == 1
        await tool.close()
        tool = await SqlTool.open(url, deny_tables=["vault"])
        text = await everything_said(tool, ["SELECT token FROM merged", "SHOW TABLES", "SELECT city FROM plant"])
        await tool.close()
    assert "CANARY" not in text and "merged" not in tool.describe() and "Ghent" in text


async def test_a_table_that_stands_for_one_of_another_server_is_not_read() -> None:
    with mysql_database(SHOP, MYSQLS["mysql"]) as url, pymysql_of(url) as cursor:
        cursor.execute("SELECT support FROM information_schema.engines WHERE engine = 'FEDERATED'")
        assert cursor.fetchall() == (("YES",),), "make servers starts MySQL with it"
        there = url.replace("mysql://root@", "mysql://root:@") + "/secrets"
        cursor.execute(f"CREATE TABLE far(token VARCHAR(40), plant INT) ENGINE=FEDERATED CONNECTION='{there}'")
        cursor.execute("SELECT token FROM far")
        assert cursor.fetchall() == (("CANARY",),)
        tool = await SqlTool.open(url)
        with pytest.raises(ToolError, match="what a query may not do"):
            await tool.call("SELECT token FROM far")
        assert "far" in tool.describe() and (await tool.call("SELECT city FROM plant")).total == 1
        await tool.close()


@contextmanager
def pymysql_of(url: str) -> Iterator[Any]:
    import pymysql

    parts = urlsplit(url)
    with (
        pymysql.connect(host="127.0.0.1", port=parts.port or 0, user="root", database=parts.path[1:]) as db,
        db.cursor() as cursor,
    ):
        yield cursor


async def test_functions_and_views_that_do_not_reach_a_denied_table_still_work(tmp_path: Path) -> None:
    statements = (*SHOP, "CREATE MACRO twice(x) AS x * 2", "CREATE MACRO look() AS (SELECT max(token) FROM secrets)")
    with database("duckdb", tmp_path, statements) as url:
        tool = await SqlTool.open(url, deny_tables=["secrets"])
        assert (await tool.call("SELECT twice(id) AS n FROM plant")).records[0].fields == {"n": 2}
        assert (await tool.call("PIVOT plant ON city USING count(*)")).records[0].fields["Ghent"] == 1
        with pytest.raises(ToolError, match="look"):
            await tool.call("SELECT look()")
        await tool.close()


async def test_the_numbers_of_a_denied_table_are_not_told_by_its_sequence() -> None:
    statements = ("CREATE TABLE vault(id SERIAL, token TEXT)", "INSERT INTO vault(token) VALUES ('CANARY'), ('x')")
    query = "SELECT last_value * 1000 AS n FROM vault_id_seq"
    with postgres_database((*statements, *SHOP[:2])) as url:
        tool = await SqlTool.open(url)
        assert (await tool.call(query)).records[0].fields["n"] == 2000
        await tool.close()
        tool = await SqlTool.open(url, deny_tables=["vault"])
        text = await everything_said(tool, [query, "SELECT city FROM plant"])
        await tool.close()
    assert "2000" not in text and "Ghent" in text


async def test_sequences_of_mariadb_are_not_read_where_a_table_is_denied() -> None:
    with mysql_database(("CREATE SEQUENCE numbers START WITH 4321", *SHOP[:4]), MYSQLS["mariadb"]) as url:
        tool = await SqlTool.open(url, deny_tables=["secrets"])
        text = await everything_said(tool, ["SELECT start_value FROM numbers", "SELECT city FROM plant"])
        await tool.close()
    assert "4321" not in text and "Ghent" in text
