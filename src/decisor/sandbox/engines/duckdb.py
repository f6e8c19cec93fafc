"""DuckDB: read_only, no external access, no extensions, configuration locked. Time is the parent's to watch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from sqlglot import Expr, exp

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import (
    COMMON,
    INFORMATION_SCHEMA,
    NAME,
    Dialect,
    FullName,
    Queries,
    StatementForms,
    sql_refusal,
    word_set,
)
from decisor.sandbox.engine import Caps, Engine
from decisor.sandbox.engines import database_file
from decisor.sandbox.sql_guard import SqlGuard, build_guard
from decisor.sandbox.wire import bind_parameters, build_capped_table
from decisor.types import Table, Value

if TYPE_CHECKING:
    import duckdb

ROWS_AT_ONCE = 64
HERE = "system.main.current_schema()"
PLACE = f"schema_name, schema_name = {HERE} AND database_name = system.main.current_database()"
OURS = "database_name = system.main.current_database() AND NOT internal"


def sql_duckdb_name(table: str) -> str:
    """Return SQL for a table's name, with its schema unless that is the default one."""
    return f"CASE WHEN schema_name = {HERE} THEN '' ELSE schema_name || '.' END || {table}"


QUERIES = Queries(
    columns=f"""SELECT {sql_duckdb_name("c.table_name")}, t.name IS NULL, c.column_name, c.data_type, c.is_nullable,
            CASE WHEN schema_name = {HERE} THEN '' ELSE schema_name END, coalesce(c.comment, '')
            FROM system.main.duckdb_columns() AS c LEFT JOIN
            (SELECT table_name AS name, schema_oid, database_oid FROM system.main.duckdb_tables()) AS t
            ON t.name = c.table_name AND t.schema_oid = c.schema_oid AND t.database_oid = c.database_oid
            WHERE {OURS} ORDER BY t.name IS NULL, schema_name <> {HERE}, schema_name, c.table_name, c.column_index""",
    # The text of a table has its columns, types and keys; of an estimate of rows only its digits count.
    fingerprint=f"""SELECT 'tables', {HERE}, count(*), bit_xor(hash((schema_name, table_name, comment, sql,
            length(CAST(estimated_size AS VARCHAR))))) FROM system.main.duckdb_tables() WHERE {OURS}
        UNION ALL SELECT 'views', '', count(*), bit_xor(hash((schema_name, view_name, comment, sql)))
            FROM system.main.duckdb_views() WHERE {OURS}
        UNION ALL SELECT 'comments', '', count(*), bit_xor(hash((schema_name, table_name, column_name, comment)))
            FROM system.main.duckdb_columns() WHERE {OURS} AND comment IS NOT NULL
        UNION ALL SELECT 'types', '', count(*), bit_xor(hash((schema_name, type_name, labels)))
            FROM system.main.duckdb_types() WHERE {OURS}""",
    keys=f"""SELECT {sql_duckdb_name("table_name")}, unnest(constraint_column_names),
            CASE WHEN coalesce(referenced_table, '') = '' THEN '' ELSE {sql_duckdb_name("referenced_table")} END,
            coalesce(unnest(referenced_column_names), '') FROM system.main.duckdb_constraints()
            WHERE constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
            AND database_name = system.main.current_database()""",
    tables=f"""SELECT {sql_duckdb_name("table_name")}, coalesce(comment, ''), estimated_size
            FROM system.main.duckdb_tables() WHERE {OURS}
            UNION ALL SELECT {sql_duckdb_name("view_name")}, comment, NULL FROM system.main.duckdb_views()
            WHERE {OURS} AND comment IS NOT NULL""",
    definitions=f"""SELECT view_name, sql, 'view', {PLACE} FROM system.main.duckdb_views() WHERE NOT internal
        UNION ALL SELECT table_name, '', 'table', {PLACE} FROM system.main.duckdb_tables()
        UNION ALL SELECT function_name, CASE function_type WHEN 'macro' THEN 'SELECT ' || macro_definition
        ELSE macro_definition END, function_type, {PLACE} FROM system.main.duckdb_functions()
        WHERE function_type IN ('macro', 'table_macro') AND NOT internal""",
)
TELLING = word_set("duckdb_tables duckdb_columns duckdb_views duckdb_constraints")
FUNCTIONS = (
    COMMON
    | TELLING
    | word_set(
        """age any_value arg_max arg_min array_agg array_length array_contains array_slice bar bit_count bool_and
    bool_or century concat_ws contains corr count_star covar_pop covar_samp current_date date_add date_diff
    date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear
    decade editdist3 element_at ends_with entropy epoch epoch_ms even fdiv favg first flatten floor fmod fsum
    gcd geomean geometric_mean greatest_common_divisor hamming histogram hour ilike_escape isfinite isinf isnan
    isodow isoyear jaccard jaro_similarity jaro_winkler_similarity json_extract json_extract_path
    json_extract_string json_keys json_structure kurtosis kurtosis_pop last last_day lcm least_common_multiple
    len like_escape list list_aggregate list_append list_avg list_concat list_contains list_count list_distinct
    list_extract list_filter list_has list_has_any list_max list_median list_min list_position list_reverse
    list_slice list_sort list_sum list_transform list_unique list_value list_zip mad make_date make_time
    make_timestamp map map_entries map_keys map_values max_by mean median min_by minute mode month monthname
    multiply nanosecond not_ilike_escape not_like_escape now ordinality parse_path percentile_cont
    percentile_disc position prefix product quantile quantile_cont quantile_disc quarter range regexp_extract
    regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array regr_count
    regr_intercept regr_r2 regr_slope round_even roundbankers row second sem signbit skewness starts_with
    stddev_pop stddev_samp str_split str_split_regex strftime string_agg string_split string_split_regex
    string_to_array strip_accents strlen strpos strptime struct_extract struct_pack suffix sumkahan time_bucket
    timezone to_days to_hours to_minutes to_months to_seconds to_weeks to_years today transaction_timestamp
    translate trim try_strptime typeof unnest var_pop var_samp week weekday weekofyear xor year yearweek
    generate_series generate_subscripts approx_count_distinct approx_quantile bitstring_agg json_array_elements
    json_each json_transform json_group_array json_group_object count_if grouping grouping_id union_value
    array_value"""
    )
)


def use_full_match(tree: Expr) -> Expr:
    """Replace ``a ~ b`` by a match of the whole text, as DuckDB means it.

    sqlglot would write it as a match of a part.
    """
    for node in list(tree.find_all(exp.RegexpLike)):
        if "start" not in node.meta:  # those written as a function know where
            node.replace(exp.Anonymous(this="regexp_full_match", expressions=[node.this, node.expression]))
    return tree


DIALECT = Dialect(
    name="duckdb",
    queries=QUERIES,
    schemas=True,
    functions=FUNCTIONS,
    plan="EXPLAIN (FORMAT JSON)",
    forms=StatementForms(
        explain=r"(EXPLAIN(\s+\(FORMAT\s+JSON\))?|DESCRIBE(?=\s+(SELECT|WITH|FROM)\b))(?=\s)",
        about={
            rf"(DESCRIBE|DESC)\s+(TABLE\s+)?{NAME}": "DESCRIBE FROM {name}",
            rf"SUMMARIZE\s+{NAME}": "SUMMARIZE FROM {name}",
            rf"SHOW\s+(?!TABLES\s*;?\s*$){NAME}": "DESCRIBE FROM {name}",
        },
        whole={r"SHOW\s+TABLES": "SHOW TABLES"},
    ),
    catalogs=INFORMATION_SCHEMA,
    closed=frozenset({"system", "temp", "pg_catalog"}),
    reserved=("duckdb_", "pragma_", "sqlite_", "pg_"),
    readable=TELLING
    | word_set(
        """sqlite_master sqlite_schema pg_attribute pg_class pg_constraint pg_index pg_indexes pg_namespace pg_tables
    pg_type pg_views"""
    ),
    catalog_functions=TELLING,
    function_schemas=frozenset({""}),
    odd_name=re.compile(
        r"[/\\:*?]|^\.|\.(csv|tsv|json|jsonl|ndjson|parquet|db|duckdb|sqlite|txt|gz|zst|xlsx|arrow)$", re.I
    ),
    rewrite=use_full_match,
    token="'masked_' || left(sha256('{key}' || CAST({value} AS VARCHAR)), 16)",
    fence="LIMIT 9223372036854775807",
    plain_forms=("DESCRIBE ", "SHOW TABLES"),
    in_views="home",
    misspelt=(("table", "Table with name"), ("column", "Referenced column")),
)


@dataclass(eq=False)
class Duck:
    """A read-only DuckDB database with one connection."""

    db: duckdb.DuckDBPyConnection
    guard: SqlGuard

    def check(self, statement: str) -> str:
        checked = self.guard.check(statement)
        # A second look by DuckDB's own binder, which follows views and macros that the guard knows by name only.
        if self.guard.access.narrow and checked.startswith(("SELECT", "WITH", "FROM", "VALUES", "(")):
            self._tables(checked)
        return checked

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import duckdb

        cursor = self.db.cursor()
        try:
            cursor.execute(bind_parameters(statement, parameters, "${}"), dict(parameters) or None)
            columns = [column[0] for column in cursor.description or ()]
            rows = chain.from_iterable(iter(lambda: cursor.fetchmany(ROWS_AT_ONCE), []))
            return build_capped_table(columns, rows, caps)
        except duckdb.Error as error:
            raise ToolError(str(error)) from error
        finally:
            cursor.close()

    def close(self) -> None:
        self.db.close()

    def _tables(self, statement: str) -> None:
        """Refuse a statement that reads denied tables, also through views.

        DuckDB resolves the views; a statement that it cannot resolve is refused. Tables are denied by their names, in
        every schema.
        """
        import duckdb

        try:
            names = self.db.get_table_names(statement)
        except duckdb.CatalogException:
            return  # a misspelt name: running it gives the better message
        except duckdb.Error as error:
            raise sql_refusal(f"the tables it reads cannot be told: {error}") from error
        read = {name.lower().split(".")[-1].strip('"') for name in names}
        if denied := sorted(name for name in read if FullName("", name) in self.guard.access.hidden):
            raise sql_refusal(f"the table {', '.join(denied)} may not be read.")


def duckdb_connection_settings(memory_mb: int) -> dict[str, str]:
    return {
        # Without it no file, URL or other database can be read, whatever function a statement finds.
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        # Half of the worker's: DuckDB then refuses a query by itself, and the process with its open file lives on.
        "memory_limit": f"{max(64, memory_mb // 2)}MB",
        "temp_directory": "",
    }


def connect_duckdb(url: str, caps: Caps) -> Duck:
    """Open a DuckDB file. Raises SetupError if there is no such file, or it is no database. Never makes a file."""
    path = database_file(url)
    import duckdb
    import sqlglot.dialects.duckdb  # noqa: F401  warm: the first query should not pay for it

    try:
        db = duckdb.connect(str(path), read_only=True, config=dict(duckdb_connection_settings(caps.memory_mb)))
        db.execute("SET python_enable_replacements = false")  # no option of connect
        # Last: it locks the settings above as well.
        db.execute("SET lock_configuration = true")
        guard = build_guard(DIALECT, caps, lambda query: db.execute(query).fetchall())
    except duckdb.Error as error:
        raise SetupError(f"{path} cannot be read as a DuckDB database: {' '.join(str(error).split())}") from error
    return Duck(db, guard)


ENGINE = Engine(
    name="duckdb",
    title="DuckDB",
    schemes=("duckdb",),
    form="sql",
    connect=connect_duckdb,
    endings=(".duckdb", ".ddb"),
    file=True,
    dialect=DIALECT,
)
