"""Any database that SQLAlchemy has a dialect for and sqlglot can parse: ``sqlalchemy+DIALECT(+DRIVER)://...``."""

from __future__ import annotations

from functools import cache, partial
from typing import Literal

from decisor.errors import SetupError
from decisor.tools.databases.sandbox.dialect import INFORMATION_SCHEMA, Dialect
from decisor.tools.databases.sandbox.engine import Engine
from decisor.tools.databases.sandbox.inspecting import INSPECTED, SYSTEM
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import PREFIX, connect, warehouse_engine

PARSERS = {
    "postgresql": "postgres", "cockroachdb": "postgres", "mariadb": "mysql", "mssql": "tsql", "awsathena": "athena",
    "chdb": "clickhouse", "clickhousedb": "clickhouse", "trino": "trino", "sparksql": "spark", "impala": "hive",
    "ibm_db_sa": "postgres", "vertica": "postgres", "singlestoredb": "singlestore", "teradatasql": "teradata",
}  # fmt: skip
"""What sqlglot calls a dialect of SQLAlchemy, where that is another name."""
KNOWN = {
    "postgresql": Warehouse(
        begins=("SET TRANSACTION READ ONLY", "SET LOCAL statement_timeout = {ms}"),
        reads_only="SET TRANSACTION READ ONLY", ends="statement_timeout", cancels=True, tried="PostgreSQL",
    ),
    "mysql": Warehouse(
        begins=("SET SESSION sql_select_limit = {rows}", "START TRANSACTION READ ONLY"),
        reads_only="START TRANSACTION READ ONLY", number="SELECT connection_id()",
        kill="KILL QUERY {number}", tried="MySQL and MariaDB",
    ),
    "duckdb": Warehouse(
        opens=("SET enable_external_access = false", "SET lock_configuration = true"), tried="DuckDB",
    ),
}  # fmt: skip
KNOWN["mariadb"] = KNOWN["mysql"]
FOLDS: dict[str, Literal["lower", "upper"]] = {"postgres": "lower", "oracle": "upper", "snowflake": "upper"}
PATHS = words("parquet csv json orc text avro delta binaryfile iceberg jdbc dfs cp s3 file")
FILES: dict[str, frozenset[str]] = dict.fromkeys(PATHS, frozenset())
"""Schemas that some engines read files by: none of their tables may be read."""


PLANS = {
    "postgresql": "EXPLAIN (FORMAT JSON)", "duckdb": "EXPLAIN (FORMAT JSON)", "mysql": "EXPLAIN FORMAT=TRADITIONAL",
    "mariadb": "EXPLAIN FORMAT=TRADITIONAL",
}  # fmt: skip


def dialect_of(name: str, plan: str = "") -> Dialect:
    """The strictest: functions that mean the same everywhere, no catalog but information_schema, no path for a name."""
    from decisor.tools.databases.sandbox.engines import duckdb

    return Dialect(
        name=name,
        queries=INSPECTED,
        schemas=True,
        functions=COMMON,
        catalogs={**INFORMATION_SCHEMA, **FILES},
        closed=SYSTEM - {"information_schema"},
        reserved=("pg_", "sqlite_", "duckdb_", "pragma_", "sys_", "v$", "gv$", "dba_", "all_tab", "user_tab"),
        function_schemas=frozenset({"-"}),
        odd_name=duckdb.DIALECT.odd_name,
        odd_text=(r"/\*\s*M?!", "comments that MySQL executes (/*! ... */) are not allowed."),
        checks_views=True,
        quote="`" if name in ("mysql", "hive", "spark", "databricks", "bigquery", "doris", "starrocks") else '"',
        folds=FOLDS.get(name, ""),
        names_by_text=name in ("mysql", "duckdb"),
        other_catalogs=True,
        plan=plan,
    )


@cache
def member(name: str) -> Engine:
    """The engine for a dialect, as SQLAlchemy calls it. Raises SetupError where sqlglot cannot parse it."""
    from sqlglot.dialects import DIALECTS

    parser = PARSERS.get(name, name)
    if parser not in {one.lower() for one in DIALECTS}:
        raise SetupError(f"{PREFIX}{name}:// cannot be opened: nothing here parses its SQL, so nothing could guard it.")
    if parser == "sqlite":  # it takes a misspelt column for a text, which its own engine does not let it
        raise SetupError("A SQLite file is opened as sqlite:///PATH.")
    return warehouse_engine(
        f"alchemy:{name}", name, (), dialect_of(parser, PLANS.get(name, "")), KNOWN.get(name, Warehouse())
    )


ENGINE = Engine(
    name="alchemy",
    title="SQLAlchemy",
    schemes=("sqlalchemy",),
    form="sql",
    connect=partial(connect, "SQLAlchemy", dialect=dialect_of("postgres"), warehouse=Warehouse()),
    member=member,
    extra="warehouse",
)
