"""Any database that SQLAlchemy has a dialect for and sqlglot can parse:

``sqlalchemy+DIALECT(+DRIVER)://...``.

The guard stands before the database; there is one connection, and rows come as they are read. What keeps it to reading
and to its seconds beside the guard is the warehouse's own (``Warehouse``); if that has nothing, it is the rights of
the account and the worker process, which is killed. ``WAREHOUSES`` holds the limits of sessions and accounts by
dialect. Trino and ClickHouse, which have URLs of their own, also have allow lists, catalog queries, and the
expressions for rows and masks: ``TRINO``, ``CLICKHOUSE`` and ``OWN``. The catalog of any other is read by SQLAlchemy's
inspector; its queries are asked for by words that no checked statement can be (``INSPECTED``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import COMMON, INFORMATION_SCHEMA, Dialect, Queries, word_set
from decisor.sandbox.engine import SECONDS, Caps, ConnectionLost, Engine, Warehouse
from decisor.sandbox.sql_guard import SqlGuard, build_guard
from decisor.sandbox.wire import build_capped_table
from decisor.system.extras import format_pip_install, require_package
from decisor.types import Table, Value

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy import Connection, Inspector


PREFIX = "sqlalchemy+"
ROWS_AT_ONCE = 64
AS_IT_STANDS = {"stream_results": True, "max_row_buffer": ROWS_AT_ONCE, "no_parameters": True}
"""Rows come as they are read, and no colon or percent sign means anything."""
WITHOUT_LIMIT = ("tsql", "oracle")
"""Dialects of sqlglot whose engines write LIMIT in other words."""


@dataclass(eq=False)
class Alchemy:
    """A database behind SQLAlchemy: one connection, opened anew after it broke off."""

    title: str
    warehouse: Warehouse
    guard: SqlGuard
    pool: sqlalchemy.Engine
    db: sqlalchemy.Connection
    number: object = None
    """The connection's number at its server, by which a query is ended."""
    cursor: Any = field(default=None, repr=False)
    """The driver's cursor while a query runs."""

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        try:
            if self.db.closed:
                self.db = self.pool.connect()
                self.open(caps)
            self.say(self.warehouse.begins, caps)
            if (catalog := inspect_catalog(statement, self.db)) is not None:
                return build_capped_table(*catalog, caps)
            return self.rows(self.worded(statement), parameters, caps)
        except ToolError:
            raise
        except Exception as error:  # drivers have classes of their own
            complaint = driver_complaint(error)
            # Drivers do not agree on how a lost connection looks, so a probe decides.
            if getattr(error, "connection_invalidated", False) or not self.alive():
                with suppress(Exception):
                    self.db.invalidate()
                self.db.close()
                raise ConnectionLost(f"{self.title} cannot be reached: {complaint}") from error
            raise ToolError(complaint) from error
        finally:
            self.cursor = None
            if not self.db.closed:
                with suppress(Exception):
                    self.db.rollback()

    def rows(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        from sqlalchemy import text

        if parameters:
            result = self.db.execute(text(escape_other_colons(statement, parameters)), dict(parameters))
        else:
            is_plan = bool(self.guard.dialect.plan) and statement.startswith(self.guard.dialect.plan)
            options = {**AS_IT_STANDS, "stream_results": not is_plan}  # no cursor of a server's is of a plan
            result = self.db.exec_driver_sql(statement, execution_options=options)
        try:
            rows = chain.from_iterable(iter(lambda: result.fetchmany(ROWS_AT_ONCE), []))
            return build_capped_table(list(result.keys()), rows, caps)
        finally:
            result.close()

    def open(self, caps: Caps) -> None:
        """Prepare a new connection: set the warehouse's limits and read its number."""
        self.say(self.warehouse.opens, caps)
        if self.warehouse.number:
            self.number = self.db.exec_driver_sql(self.warehouse.number).scalar()
        self.db.rollback()

    def say(self, statements: Sequence[str], caps: Caps) -> None:
        seconds, ms = max(1, round(caps.seconds)), max(1, int(caps.seconds * 1000))
        for statement in statements:
            self.db.exec_driver_sql(statement.format(seconds=seconds, ms=ms, rows=caps.rows + 1))

    def worded(self, statement: str) -> str:
        """Return one of our own statements in the dialect's words: not every engine knows LIMIT."""
        name = self.guard.dialect.name
        if name not in WITHOUT_LIMIT:
            return statement
        import sqlglot

        return sqlglot.parse_one(statement, dialect=name).sql(dialect=name)

    def alive(self) -> bool:
        """Return whether the server answers on this connection."""
        try:
            self.db.rollback()
            self.rows(probe_of_dialect(self.guard.dialect), {}, Caps())
        except Exception:
            return False
        return True

    def cancel(self) -> None:
        if self.warehouse.kill:
            with self.pool.connect() as other:
                other.exec_driver_sql(self.warehouse.kill.format(number=self.number))
        elif self.cursor is not None:
            # psycopg cancels by its connection, Trino's driver by its cursor.
            for running in (self.cursor, self.cursor.connection):
                if hasattr(running, "cancel"):
                    running.cancel()
                    return

    def close(self) -> None:
        with suppress(Exception):
            self.db.close()


def escape_other_colons(statement: str, parameters: Mapping[str, Value]) -> str:
    """Return a statement with every colon escaped that begins no parameter.

    >>> escape_other_colons("SELECT 'at :a', x::int FROM t WHERE b = :a", {"a": 1})
    "SELECT 'at \\\\:a', x::int FROM t WHERE b = :a"
    """
    names = "|".join(map(re.escape, parameters))
    pattern = re.compile(rf"('(?:[^']|'')*')|(?<![:\w]):(?!(?:{names})\b)(?=\w)")
    return pattern.sub(lambda match: (match[1] or ":").replace(":", r"\:"), statement)


def driver_complaint(error: Exception) -> str:
    """Return the driver's own complaint on one line: its last argument if the first is a number."""
    own = getattr(error, "orig", None) or error
    numbered = len(own.args) > 1 and isinstance(own.args[0], int)
    text = getattr(own, "message", "") or (own.args[-1] if numbered else own)
    return " ".join(str(text).split()) or type(own).__name__


def build_warehouse_engine(
    name: str, title: str, schemes: Sequence[str], dialect: Dialect, warehouse: Warehouse
) -> Engine:
    """Build an engine that opens a warehouse through SQLAlchemy. schemes: SQLAlchemy's names of the dialect."""
    return Engine(
        name=name,
        title=title,
        schemes=tuple(schemes),
        form="sql",
        connect=partial(connect_warehouse, title, dialect=dialect, warehouse=warehouse),
        server=True,
        probe=probe_of_dialect(dialect),
        dialect=dialect,
        extra="warehouse",
        warehouse=warehouse,
        seconds=SECONDS,
    )


def probe_of_dialect(dialect: Dialect) -> str:
    return "SELECT 1 FROM dual" if dialect.name == "oracle" else "SELECT 1"


def connect_warehouse(title: str, url: str, caps: Caps, dialect: Dialect, warehouse: Warehouse) -> Alchemy:
    """Open a database through SQLAlchemy.

    Raises SetupError if a package is missing, the server does not answer, or a policy cannot be kept.
    """
    with require_package("SQLAlchemy", "warehouse"):
        import sqlalchemy
    from sqlalchemy import event
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    check_policy_support(title, caps, dialect)
    try:
        # NullPool: a connection that is closed is gone, and the next one is opened anew.
        pool = sqlalchemy.create_engine(url.removeprefix(PREFIX), poolclass=sqlalchemy.NullPool)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise SetupError(f"{title} needs {describe_missing_package(error, warehouse)}") from error
    except (ArgumentError, ValueError) as error:
        raise SetupError(f"{title} cannot read its URL: {driver_complaint(error)}") from error
    try:
        database = Alchemy(title, warehouse, SqlGuard(dialect), pool, pool.connect())
        event.listen(pool, "before_cursor_execute", lambda _, cursor, *rest: setattr(database, "cursor", cursor))
        # The limits of the warehouse hold before the first query of the catalog runs.
        database.open(caps)

        def rows(query: str) -> Iterator[Sequence[object]]:
            catalog = inspect_catalog(query, database.db)
            yield from catalog[1] if catalog else database.db.exec_driver_sql(query, execution_options=AS_IT_STANDS)

        database.guard = build_guard(dialect, caps, rows)
        database.db.rollback()
    except SetupError:
        raise
    except Exception as error:  # drivers have classes of their own
        raise SetupError(f"{title} cannot be reached: {driver_complaint(error)}") from error
    return database


def describe_missing_package(error: Exception, warehouse: Warehouse) -> str:
    """Return the package that SQLAlchemy lacks, and how to install it.

    >>> describe_missing_package(ModuleNotFoundError("No module named 'x'", name="x"), Warehouse())
    'the package x: install it.'
    """
    if warehouse.package:
        return f"a package of its own: {format_pip_install(*warehouse.package.split())}"
    if isinstance(error, ModuleNotFoundError):
        return f"the package {error.name}: install it."
    return "a package that brings its dialect of SQLAlchemy: install it."


def check_policy_support(title: str, caps: Caps, dialect: Dialect) -> None:
    """Raise SetupError if a policy has rows or masks that this dialect cannot keep."""
    what = "masks" if caps.policy.mask and not dialect.token else "rows"
    if caps.policy and (what == "masks" or (caps.policy.rows and not dialect.fence)):
        raise SetupError(f"Readers' {what} are not kept to on {title}: let the account read a view with only those.")


Row = tuple[object, ...]
INSPECTED = Queries(
    columns="decisor_inspects_columns",
    keys="decisor_inspects_keys",
    tables="decisor_inspects_tables",
    definitions="decisor_inspects_definitions",
)
SYSTEM = word_set(
    """information_schema pg_catalog pg_toast mysql performance_schema sys system temp ndbinfo sysibm syscat sysstat
    guest xdb ctxsys mdsys outln wmsys"""
)
"""Schemas that hold no data of their own, of any dialect."""
ONE_SCHEMA = ("mysql", "mariadb", "doris", "starrocks", "singlestoredb", "clickhouse", "hive", "impala")
"""Where a schema is a database, and others are somebody else's."""


def inspect_catalog(statement: str, connection: Connection) -> tuple[Sequence[str], Iterator[Row]] | None:
    """Return the columns and rows for one of the words in ``INSPECTED``; None for a statement."""
    from sqlalchemy import inspect

    readers = {
        INSPECTED.columns: (7, inspect_columns),
        INSPECTED.keys: (4, inspect_keys),
        INSPECTED.tables: (3, comments),
        INSPECTED.definitions: (5, inspect_definitions),
    }
    if statement not in readers:
        return None
    width, read = readers[statement]
    return [f"c{number}" for number in range(width)], read(inspect(connection))


def inspect_columns(inspector: Inspector) -> Iterator[Row]:
    views: list[Row] = []
    view_names = {shown: views_in(inspector, schema) for schema, shown in shown_schemas(inspector)}
    for schema, table, columns in read_reflection(inspector, "get_multi_columns"):
        is_view = table in view_names[schema]
        rows = [
            (
                full_name(schema, table),
                is_view,
                column["name"],
                inspected_type(column, inspector),
                column.get("nullable", True),
                schema,
                column.get("comment") or "",
            )
            for column in columns
        ]
        # Views come after all tables, as in the queries of the other engines.
        if is_view:
            views += rows
        else:
            yield from rows
    yield from views


def full_name(schema: str | None, table: str) -> str:
    return f"{schema}.{table}" if schema else table


def inspect_keys(inspector: Inspector) -> Iterator[Row]:
    for schema, table, key in read_reflection(inspector, "get_multi_pk_constraint"):
        for column in (key or {}).get("constrained_columns") or ():
            yield full_name(schema, table), column, "", ""
    for schema, table, foreign_keys in read_reflection(inspector, "get_multi_foreign_keys"):
        for key in foreign_keys:
            # SQLAlchemy leaves out the schema of a reference within the schema that is read.
            home = key.get("referred_schema") or schema
            target = full_name("" if home == inspector.default_schema_name else home, key["referred_table"])
            for column, target_column in zip(key["constrained_columns"], key["referred_columns"], strict=False):
                yield full_name(schema, table), column, target, target_column


def comments(inspector: Inspector) -> Iterator[Row]:
    for schema, table, comment in read_reflection(inspector, "get_multi_table_comment"):
        if (comment or {}).get("text"):
            yield full_name(schema, table), comment["text"], None


def inspect_definitions(inspector: Inspector) -> Iterator[Row]:
    """Yield the definitions of all schemas: a view of another schema may read a table that is denied here."""
    for number, schema in enumerate(data_schemas(inspector)):
        place = str(schema or "").rpartition(".")[2], number == 0
        for table in reflect_schema(inspector, "get_table_names", schema):
            yield table, "", "table", *place
        for view in views_in(inspector, schema):
            text = None
            with suppress(Exception):  # what the account may not see
                text = inspector.get_view_definition(view, schema)
            yield view, text, "view", *place


def data_schemas(inspector: Inspector) -> list[str | None]:
    """Return the schemas that hold data, the default one first. None stands for a default schema without a name."""
    names: list[str | None] = []
    with suppress(NotImplementedError):
        names += [name for name in inspector.get_schema_names() if name.lower() not in SYSTEM]
    default = inspector.default_schema_name
    return [default, *(name for name in names if name != default)]


def shown_schemas(inspector: Inspector) -> list[tuple[str | None, str]]:
    """Return each visible schema with its display name; '' for the default one."""
    default, *others = data_schemas(inspector)
    named = [] if inspector.dialect.name in ONE_SCHEMA and default else others
    return [(default, ""), *((name, str(name).rpartition(".")[2]) for name in named)]


def views_in(inspector: Inspector, schema: str | None) -> set[str]:
    methods = ("get_view_names", "get_materialized_view_names")
    return {view for method in methods for view in reflect_schema(inspector, method, schema)}


def reflect_schema(inspector: Inspector, method: str, schema: str | None, **options: object) -> Any:
    """Return the result of an inspector method for a schema; nothing if the dialect has none."""
    with suppress(NotImplementedError):
        return getattr(inspector, method)(schema=schema, **options)
    return {}


def read_reflection(inspector: Inspector, method: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the shown schema, the name and the entry of every table and view, '' for the default schema."""
    from sqlalchemy.engine.reflection import ObjectKind

    for schema, shown in shown_schemas(inspector):
        for (_, table), entry in reflect_schema(inspector, method, schema, kind=ObjectKind.ANY).items():
            yield shown, table, entry


def inspected_type(column: Any, inspector: Inspector) -> str:
    """Return the type of a column as the database calls it."""
    try:
        return str(column["type"].compile(dialect=inspector.dialect))
    except Exception:  # a type without a name in this dialect
        return str(column["type"])


PARSERS = {
    "postgresql": "postgres",
    "cockroachdb": "postgres",
    "mariadb": "mysql",
    "mssql": "tsql",
    "awsathena": "athena",
    "chdb": "clickhouse",
    "clickhousedb": "clickhouse",
    "sparksql": "spark",
    "impala": "hive",
    "ibm_db_sa": "postgres",
    "vertica": "postgres",
    "singlestoredb": "singlestore",
    "teradatasql": "teradata",
}
"""What sqlglot calls a dialect of SQLAlchemy, where that is another name."""
WAREHOUSES = {
    "postgresql": Warehouse(
        begins=("SET TRANSACTION READ ONLY", "SET LOCAL statement_timeout = {ms}"),
        reads_only="SET TRANSACTION READ ONLY",
        ends="statement_timeout",
        cancels=True,
        tried="PostgreSQL",
    ),
    "mysql": Warehouse(
        begins=("SET SESSION sql_select_limit = {rows}", "START TRANSACTION READ ONLY"),
        reads_only="START TRANSACTION READ ONLY",
        number="SELECT connection_id()",
        kill="KILL QUERY {number}",
        tried="MySQL and MariaDB",
    ),
    "duckdb": Warehouse(opens=("SET enable_external_access = false", "SET lock_configuration = true"), tried="DuckDB"),
}
WAREHOUSES["mariadb"] = WAREHOUSES["mysql"]
FOLDS: dict[str, Literal["lower", "upper"]] = {"postgres": "lower", "oracle": "upper", "snowflake": "upper"}
PATHS = word_set("parquet csv json orc text avro delta binaryfile iceberg jdbc dfs cp s3 file")
FILES: dict[str, frozenset[str]] = dict.fromkeys(PATHS, frozenset())
"""Schemas that some engines read files by: none of their tables may be read."""


PLANS = {
    "postgresql": "EXPLAIN (FORMAT JSON)",
    "duckdb": "EXPLAIN (FORMAT JSON)",
    "mysql": "EXPLAIN FORMAT=TRADITIONAL",
    "mariadb": "EXPLAIN FORMAT=TRADITIONAL",
}

TRINO = Dialect(
    name="trino",
    queries=Queries(
        columns="""SELECT concat(CASE WHEN c.table_schema = current_schema THEN '' ELSE concat(c.table_schema, '.') END,
            c.table_name) AS relation, CASE WHEN t.table_type LIKE '%VIEW%' THEN 1 ELSE 0 END AS is_view, c.column_name,
            c.data_type, CASE WHEN c.is_nullable = 'YES' THEN 1 ELSE 0 END AS nullable,
            CASE WHEN c.table_schema = current_schema THEN '' ELSE c.table_schema END AS its_schema, '' AS its_comment
            FROM information_schema.columns AS c JOIN information_schema.tables AS t
            ON t.table_schema = c.table_schema AND t.table_name = c.table_name
            WHERE lower(c.table_schema) <> 'information_schema'
            ORDER BY CASE WHEN t.table_type LIKE '%VIEW%' THEN 1 ELSE 0 END,
            CASE WHEN c.table_schema = current_schema THEN 0 ELSE 1 END,
            c.table_schema, c.table_name, c.ordinal_position""",
        keys="SELECT '' AS a, '' AS b, '' AS c, '' AS d WHERE 1 = 0",
        definitions="""SELECT t.table_name,
            CASE WHEN t.table_type LIKE '%VIEW%' THEN v.view_definition ELSE '' END AS its_text,
            CASE WHEN t.table_type LIKE '%VIEW%' THEN 'view' ELSE 'table' END AS kind,
            t.table_schema, CASE WHEN t.table_schema = current_schema THEN 1 ELSE 0 END AS alone
            FROM information_schema.tables AS t LEFT JOIN information_schema.views AS v
            ON v.table_schema = t.table_schema AND v.table_name = t.table_name
            WHERE lower(t.table_schema) <> 'information_schema'""",
    ),
    plan="EXPLAIN (TYPE IO, FORMAT JSON)",
    schemas=True,
    functions=COMMON
    | word_set(
        """all_match any_match approx_distinct approx_most_frequent approx_percentile arbitrary array_agg array_distinct
    array_intersect array_join array_max array_min array_position array_sort array_union bit_count bitwise_and
    bitwise_or bool_and bool_or cardinality cbrt ceil checksum codepoint contains contains_sequence corr count_if
    covar_pop covar_samp cosine_similarity current_timezone date_add date_diff date_format date_parse date_trunc
    day_of_month day_of_week day_of_year element_at entropy every filter flatten format_datetime format_number
    from_base from_iso8601_date from_iso8601_timestamp from_unixtime geometric_mean grouping hamming_distance
    histogram human_readable_seconds index infinity is_finite is_infinite is_nan json_array_contains
    json_array_get json_extract json_extract_scalar json_format json_parse json_size kurtosis last_day_of_month
    levenshtein_distance listagg localtime localtimestamp luhn_check map_agg map_concat map_entries map_filter
    map_from_entries map_keys map_union map_values max_by min_by month multimap_agg nan none_match normalize now
    numeric_histogram parse_datetime parse_duration quarter reduce reduce_agg regexp_extract regexp_extract_all
    regexp_position regexp_replace regexp_split regr_intercept regr_slope repeat reverse sequence shuffle skewness
    slice soundex split split_part split_to_map starts_with strpos timezone_hour timezone_minute to_base to_char
    to_iso8601 to_milliseconds to_unixtime transform translate try typeof unnest url_decode url_encode
    url_extract_host url_extract_parameter url_extract_path url_extract_query week week_of_year width_bucket
    wilson_interval_lower wilson_interval_upper with_timezone word_stem year_of_week yow zip zip_with"""
    ),
    closed=word_set("system jmx"),
    function_schemas=word_set("-"),
    checks_views=True,
    names_by_text=False,
    other_catalogs=True,
    token="'masked_' || substr(lower(to_hex(sha256(to_utf8('{key}' || CAST({value} AS VARCHAR))))), 1, 16)",
    fence="LIMIT 9223372036854775807",
    misspelt=(("table", "Table"), ("column", "Column")),
)
OURS = "database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema')"
NAMED = "if({0}database = currentDatabase(), '', concat({0}database, '.'))"
# A table of such an engine reads another one, or a file or a server.
OPAQUE = "engine IN ('Merge', 'Distributed', 'Buffer', 'Dictionary')"
OUTSIDE = """engine IN ('File', 'URL', 'S3', 'MySQL', 'PostgreSQL', 'ODBC', 'JDBC', 'HDFS', 'MongoDB', 'Executable',
    'ExecutablePool')"""
CLICKHOUSE = Dialect(
    name="clickhouse",
    queries=Queries(
        columns=f"""SELECT concat({NAMED.format("c.")}, c.table), t.engine LIKE '%View', c.name, c.type,
            c.type LIKE 'Nullable%', if(c.database = currentDatabase(), '', c.database), c.comment
            FROM system.columns AS c JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
            WHERE c.{OURS}
            ORDER BY t.engine LIKE '%View', c.database <> currentDatabase(), c.database, c.table, c.position""",
        keys="SELECT '', '', '', '' WHERE 1 = 0",  # its primary key sorts, and is not unique
        tables=f"SELECT concat({NAMED.format('')}, name), comment, total_rows FROM system.tables WHERE {OURS}",
        definitions=f"""SELECT name, multiIf(engine LIKE '%View', as_select, {OPAQUE}, NULL,
            {OUTSIDE}, create_table_query, ''),
            if(engine LIKE '%View' OR {OUTSIDE}, 'view', 'table'), database, database = currentDatabase()
            FROM system.tables WHERE {OURS}""",
    ),
    plan="EXPLAIN ESTIMATE",
    schemas=True,
    functions=COMMON
    | word_set(
        """adddays addhours addmonths addweeks addyears age any anylast argmax argmin arrayconcat arraycount
    arraydistinct arrayelement arrayexists arrayfilter arrayjoin arraymap arraymax arraymin arraysort arraysum
    avgweighted bitand bitor bitxor ceiling corr count countequal countif countsubstrings covarpop covarsamp
    datediff date_diff dateadd datename datesub datetrunc date_trunc empty endswith extract extractall
    formatdatetime fromunixtimestamp greatcircledistance greatest grouparray groupuniqarray has hasall hasany if
    indexof isfinite isinfinite isnan isnotnull isnull jsonextract jsonextractbool jsonextractfloat jsonextractint
    jsonextractraw jsonextractstring jsonhas jsonlength least length lengthutf8 like locate lower lowerutf8 match
    max2 median medianexact min2 multiif notempty now now64 plus minus multiply divide intdiv modulo position
    positioncaseinsensitive quantile quantileexact quantiles quantiletdigest replaceall replaceone
    replaceregexpall replaceregexpone reverse round roundbankers rounddown simplelinearregression skewpop skewsamp
    splitbychar splitbystring startswith stddevpop stddevsamp stringjaccardindex subtractdays subtracthours
    subtractmonths subtractweeks subtractyears sumif summap sumwithoverflow timediff timeslot todate todate32
    todatetime todatetime64 todayofmonth todayofweek todayofyear todecimal32 todecimal64 tofloat32 tofloat64
    tofloat64ornull tohour toint16 toint32 toint64 toint64ornull toint8 toisoweek toisoyear tolastdayofmonth
    tominute tomonday tomonth toquarter torelativedaynum tosecond tostartofday tostartofhour tostartofinterval
    tostartofminute tostartofmonth tostartofquarter tostartofweek tostartofyear tostring totypename touint16
    touint32 touint64 touint8 tounixtimestamp toweek toyear toyearweek toyyyymm toyyyymmdd trimboth trimleft
    trimright tupleelement uniq uniqcombined uniqexact uniqhll12 upperutf8 varpop varsamp yesterday today nullif
    coalesce ifnull assumenotnull tonullable numbers sha256 avgif minif maxif"""
    ),
    catalogs={},
    closed=word_set("system information_schema"),
    function_schemas=word_set("-"),
    checks_views=True,
    token="concat('masked_', substring(lower(hex(SHA256(concat('{key}', toString({value}))))), 1, 16))",
    fence="LIMIT 9223372036854775807",
    misspelt=(("table", "Unknown table expression identifier"), ("column", "Unknown expression identifier")),
)


def strict_dialect(name: str, plan: str = "") -> Dialect:
    """Return the strictest dialect for a name of sqlglot.

    It allows functions that mean the same everywhere, no catalog but information_schema, and no path as a table name.
    """
    from decisor.sandbox.engines import duckdb

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


OWN = {
    "trino": build_warehouse_engine(
        "trino",
        "Trino",
        ("trino",),
        TRINO,
        Warehouse(
            package="trino[sqlalchemy]",
            begins=("SET SESSION query_max_run_time = '{seconds}s'",),
            ends="query_max_run_time",
            cancels=True,
            role=(
                "-- in the rules of the coordinator's file-based access control:",
                '{"catalogs": [{"user": "decisor", "catalog": "CATALOG", "allow": "read-only"}]}',
            ),
            tried="Trino 435",
        ),
    ),
    "clickhouse": build_warehouse_engine(
        "clickhouse",
        "ClickHouse",
        ("clickhousedb", "clickhouse", "chdb"),
        CLICKHOUSE,
        Warehouse(
            package="clickhouse-connect[sqlalchemy]",
            role=(
                "CREATE USER decisor IDENTIFIED BY '...'",
                "    SETTINGS readonly = 2, max_execution_time = 60, cancel_http_readonly_queries_on_client_close = 1;",
                "GRANT SELECT ON shop.* TO decisor; GRANT SELECT ON system.tables TO decisor;",
                "GRANT SELECT ON system.columns TO decisor;",
            ),
            tried="ClickHouse 26.9 in the worker process (chDB); a server over HTTP never",
        ),
    ),
}
"""Engines with a URL of their own; each was run on a real one."""


@cache
def warehouse_engine_of(name: str) -> Engine:
    """Return the engine for SQLAlchemy's name of a dialect. Raises SetupError if sqlglot cannot parse the dialect."""
    from sqlglot.dialects import DIALECTS

    if name in OWN:
        return OWN[name]
    parser = PARSERS.get(name, name)
    if parser not in {one.lower() for one in DIALECTS}:
        raise SetupError(f"{PREFIX}{name}:// cannot be opened: nothing here parses its SQL, so nothing could guard it.")
    if parser == "sqlite":  # it takes a misspelt column for a text, which its own engine does not let it
        raise SetupError("A SQLite file is opened as sqlite:///PATH.")
    return build_warehouse_engine(
        f"sqlalchemy:{name}", name, (), strict_dialect(parser, PLANS.get(name, "")), WAREHOUSES.get(name, Warehouse())
    )


ENGINE = Engine(
    name="sqlalchemy",
    title="SQLAlchemy",
    schemes=("sqlalchemy",),
    form="sql",
    connect=partial(connect_warehouse, "SQLAlchemy", dialect=strict_dialect("postgres"), warehouse=Warehouse()),
    member=warehouse_engine_of,
    extra="warehouse",
)
