"""Warehouses by the SQL that would be sent: what is let through, how it is written, and what doctor says of each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sqlglot

from decisor.cli.doctor import check_database
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.sandbox.access import Access
from decisor.sandbox.dialect import Dialect, FullName
from decisor.sandbox.engines import NAMES, engine_of, load_engine, parse_url
from decisor.sandbox.process import Worker
from decisor.sandbox.sql_guard import SqlGuard
from decisor.session.sources import build_sources

WAREHOUSES = [name for name in NAMES if load_engine(name).extra == "warehouse" and load_engine(name).warehouse]
READS = {
    "trino": "SELECT date_trunc('month', d) AS m, approx_distinct(c) AS n FROM sales GROUP BY 1 ORDER BY 2 LIMIT 3",
    "clickhouse": "SELECT toStartOfMonth(d) AS m, uniqExact(c), sumIf(x, x > 0) FROM sales GROUP BY m LIMIT 3",
}
EVERYWHERE = (
    "DROP TABLE sales",
    "DELETE FROM sales",
    "INSERT INTO sales VALUES (1)",
    "UPDATE sales SET x = 1",
    "CREATE TABLE t AS SELECT 1 AS x",
    "TRUNCATE TABLE sales",
    "ALTER TABLE sales ADD y INT",
    "GRANT SELECT ON sales TO x",
    "SELECT 1 AS a; DROP TABLE sales",
    "CALL danger()",
    "SELECT danger(1) FROM sales",
    "SELECT * FROM danger('x')",
    "EXECUTE IMMEDIATE 'DROP TABLE sales'",
    "SELECT * FROM secrets",
    "SELECT x.token FROM other.secrets AS x",
    "MERGE INTO sales USING other ON sales.id = other.id WHEN MATCHED THEN DELETE",
)
OWN = {
    "trino": ("SELECT * FROM system.runtime.queries", "SELECT * FROM TABLE(pg.system.query(query => 'DROP TABLE x'))"),
    "clickhouse": (
        "SELECT * FROM url('http://127.0.0.1/x', 'CSV')",
        "SELECT * FROM file('/etc/passwd', 'CSV')",
        "SELECT * FROM remote('h', 'd', 't')",
        "SELECT * FROM s3('http://x')",
        "SELECT * FROM system.users",
        "SELECT * FROM executable('sh')",
        "SELECT * FROM sales SETTINGS readonly = 0",
        "SELECT * FROM sales INTO OUTFILE 'x'",
        "SELECT * FROM sales FORMAT Native",
        "SELECT sleep(3)",
        "SELECT dictGet('d', 'a', 1)",
        "SYSTEM SHUTDOWN",
        "KILL QUERY WHERE 1",
        "SELECT * FROM mysql('h','d','t','u','p')",
    ),
}


def dialect_of(name: str) -> Dialect:
    dialect = load_engine(name).dialect
    assert dialect is not None
    return dialect


@pytest.mark.parametrize("name", WAREHOUSES)
def test_a_query_in_its_own_words_is_let_through(name: str) -> None:
    text = SqlGuard(dialect_of(name), Access(hidden=frozenset({FullName("", "secrets")}))).check(READS[name])
    assert sqlglot.parse_one(text, dialect=dialect_of(name).name)


@pytest.mark.parametrize("name", WAREHOUSES)
def test_what_writes_reaches_out_or_tells_of_others_is_refused(name: str) -> None:
    guard = SqlGuard(dialect_of(name), Access(hidden=frozenset({FullName("", "secrets")})))
    passed = []
    for statement in (*EVERYWHERE, *OWN[name]):
        try:
            passed.append(guard.check(statement))
        except ToolError:
            continue
    assert passed == []


@pytest.mark.parametrize("name", WAREHOUSES)
def test_the_catalog_is_read_by_reading_queries_that_parse(name: str) -> None:
    queries = dialect_of(name).queries
    for text in (queries.columns, queries.keys, queries.tables, queries.definitions):
        if text and not text.startswith("decisor_inspects_"):
            (tree,) = sqlglot.parse(text, dialect=dialect_of(name).name)
            assert isinstance(tree, sqlglot.exp.Query)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trino", 'SELECT "Region" FROM "orders"'),
    ],
)
def test_a_name_without_quotes_is_quoted_in_the_letters_it_means(name: str, text: str) -> None:
    assert SqlGuard(dialect_of(name)).check("SELECT Region FROM orders") == text


def test_other_catalogs_are_not_named_where_some_tables_may_not_be_read() -> None:
    for name in ("trino", "sqlalchemy:snowflake", "sqlalchemy:bigquery"):
        query = "SELECT a FROM elsewhere.shop.sales"
        assert SqlGuard(dialect_of(name)).check(query)
        with pytest.raises(ToolError, match="none may be named with its catalog"):
            SqlGuard(dialect_of(name), Access(hidden=frozenset({FullName("", "secrets")}))).check(query)


@pytest.mark.slow
@pytest.mark.parametrize("name", WAREHOUSES)
def test_doctor_says_what_holds_and_which_role_to_create_without_the_warehouse(name: str) -> None:
    check = check_database(build_sources(db=f"{load_engine(name).schemes[0]}://me:hunter22@127.0.0.1:1/shop"))
    assert not check.ok and "hunter22" not in check.error and "\n" not in check.error
    assert check.role and "hunter22" not in " ".join(check.role)
    assert sum(line.startswith("run on a real one") for line in check.layers) == 1


def test_a_url_keeps_its_driver() -> None:
    url = "trino+rest://me@host/shop"
    assert parse_url(url) == ("trino", url)
    assert parse_url("sqlalchemy+hive://host/x")[0] == "sqlalchemy:hive"
    assert engine_of("sqlalchemy+hive://host/x").dialect == load_engine("sqlalchemy:hive").dialect


MAKE_PLANTS = """
import sqlalchemy, sys
with sqlalchemy.create_engine(sys.argv[1]).connect() as db:
    for statement in (
        "CREATE DATABASE shop",
        "CREATE TABLE shop.plant (id UInt32, city String COMMENT 'where', cost Nullable(Decimal(9, 2))) "
        "ENGINE = MergeTree ORDER BY id",
        "INSERT INTO shop.plant VALUES (1, 'Ghent', 3.5), (2, '100%:x', 1)",
        "CREATE VIEW shop.cheap AS SELECT city FROM shop.plant WHERE cost < 2",
    ):
        db.exec_driver_sql(statement)
"""


@pytest.fixture
def clickhouse(tmp_path: Path) -> str:
    """The engine of ClickHouse itself, as chDB brings it. A process keeps its folder for itself."""
    pytest.importorskip("chdb_sqlalchemy")
    place = f"chdb:///{tmp_path}/data"
    subprocess.run([sys.executable, "-c", MAKE_PLANTS, place], check=True)
    return place


async def test_clickhouse_in_the_worker_process(clickhouse: str) -> None:
    tool = await SqlTool.open(clickhouse)
    assert "view shop.cheap" in tool.describe() and tool.tables[0].columns[1].comment == "where"
    seen = await tool.call("SELECT city FROM shop.cheap WHERE city LIKE '%:x%'")
    assert seen.records[0].fields == {"city": "100%:x"}
    assert (await tool.call("SELECT count() AS n FROM shop.plant")).records[0].fields == {"n": 2}
    await tool.close()


async def test_a_denied_table_of_clickhouse_hides_its_view(clickhouse: str) -> None:
    tool = await SqlTool.open(clickhouse, deny_tables=["shop.plant"])
    assert "plant" not in tool.describe() and "cheap" not in tool.describe()
    for query in ("SELECT city FROM shop.plant", "SELECT city FROM shop.cheap", "SELECT city FROM plant"):
        with pytest.raises(ToolError, match="Refused"):
            await tool.call(query)
    await tool.close()


async def test_a_missing_driver_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(SetupError, match="snowflake needs a package that brings its dialect of SQLAlchemy"):
        await Worker(*parse_url("sqlalchemy+snowflake://project/shop")).start()
