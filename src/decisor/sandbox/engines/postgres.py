"""PostgreSQL through psycopg: a READ ONLY transaction that is always rolled back, extended protocol, a cursor.

``DECLARE ... CURSOR FOR`` is a second parser: the server takes only reading queries there. Queries that only plan
(EXPLAIN) or show run without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import Expr, exp

from decisor.errors import SetupError, ToolError
from decisor.sandbox.catalog import QUERIES
from decisor.sandbox.dialect import COMMON, INFORMATION_SCHEMA, Dialect, StatementForms, word_set
from decisor.sandbox.engine import Caps, ConnectionLost, Engine
from decisor.sandbox.sql_guard import SqlGuard, build_guard
from decisor.sandbox.wire import bind_parameters, build_capped_table
from decisor.types import Table, Value

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[object, ...]]
    Cursor = psycopg.Cursor[tuple[object, ...]]

ROWS_AT_ONCE = 20
MOST_AT_ONCE = 5_000
SMALL_ROW = 1_000
CANCEL_SECONDS, LOOK_SECONDS = 3, 1
LONGEST_NAME = 63
BEGIN = """BEGIN READ ONLY; SET LOCAL statement_timeout = {ms}; SET LOCAL lock_timeout = {lock};
SET LOCAL idle_in_transaction_session_timeout = '60s'"""
END = "ROLLBACK; SELECT pg_advisory_unlock_all()"
OPTION = r"(FORMAT\s+(TEXT|JSON|YAML|XML)|(COSTS|VERBOSE)(\s+(ON|OFF|TRUE|FALSE))?)"
AS_TEXT = (
    "date time timetz timestamp timestamptz interval daterange tsrange tstzrange datemultirange tsmultirange "
    "tstzmultirange"
)
"""Types that hold more than Python's: infinity, years before 1, 24:00, a month. They come as the server writes them."""


def cut_long_names(tree: Expr) -> Expr:
    """Cut names to the bytes that the server reads of them."""
    for name in tree.find_all(exp.Identifier):
        if len(long := name.name.encode()) > LONGEST_NAME:
            name.set("this", long[:LONGEST_NAME].decode(errors="ignore"))
    return tree


READABLE = word_set(
    """pg_class pg_namespace pg_attribute pg_type pg_constraint pg_index pg_tables pg_views pg_indexes pg_enum
    pg_description"""
)
DIALECT = Dialect(
    name="postgres",
    prepare=cut_long_names,
    queries=QUERIES,
    schemas=True,
    functions=COMMON
    | word_set(
        """age array_agg array_append array_cat array_dims array_length array_lower array_ndims array_position
    array_positions array_prepend array_remove array_replace array_to_json array_to_string array_upper ascii
    bool_and bool_or btrim cardinality cbrt clock_timestamp concat_ws corr covar_pop covar_samp date_bin
    date_part date_trunc div encode decode factorial floor gcd generate_series generate_subscripts isfinite
    json_agg json_array_elements json_array_elements_text json_build_array json_build_object json_each
    json_each_text json_extract_path json_extract_path_text json_object_agg json_object_keys
    json_populate_record json_strip_nulls json_to_record json_to_recordset json_typeof jsonb_agg
    jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object
    jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_object_agg jsonb_object_keys
    jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first
    jsonb_pretty jsonb_set jsonb_strip_nulls jsonb_typeof jsonb_to_recordset justify_days justify_hours
    justify_interval lcm make_date make_interval make_time make_timestamp make_timestamptz md5 min_scale mode
    now num_nonnulls num_nulls numrange daterange int4range int8range tsrange tstzrange overlay percentile_cont
    percentile_disc position quote_ident quote_literal range_merge regexp_match regexp_matches regexp_replace
    regexp_split_to_array regexp_split_to_table regexp_substr regexp_instr regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy reverse row_to_json scale split_part
    starts_with statement_timestamp stddev_pop stddev_samp string_agg string_to_array string_to_table strpos
    timeofday timezone to_ascii to_hex to_json to_jsonb to_tsquery to_tsvector plainto_tsquery ts_rank
    transaction_timestamp translate trim_array trim_scale unnest upper_inc lower_inc isempty upper_inf lower_inf
    var_pop var_samp width_bucket bit_count chr grouping ceiling format_type col_description obj_description
    pg_typeof random row"""
    ),
    plan="EXPLAIN (FORMAT JSON)",
    forms=StatementForms(
        explain=rf"EXPLAIN(\s+\(\s*{OPTION}(\s*,\s*{OPTION})*\s*\)|(?=\s))",
        whole={r"SHOW\s+(?P<verb>server_version|search_path|timezone)": "SHOW {verb}"},
    ),
    catalogs={
        **INFORMATION_SCHEMA,
        "pg_catalog": READABLE,
    },
    closed=frozenset({"pg_toast"}),
    reserved=("pg_",),
    readable=READABLE,
    catalog_functions=word_set("format_type col_description obj_description"),
    function_schemas=word_set("pg_catalog public"),
    checks_views=True,
    folds="lower",
    bare=r"[a-z_][a-z0-9_]*",
    token="'masked_' || substr(encode(sha256(convert_to('{key}' || CAST({value} AS text), 'UTF8')), 'hex'), 1, 16)",
    fence="OFFSET 0",
    plain_forms=("SHOW ",),
    in_views="path",
    misspelt=(("table", "relation"), ("column", "column")),
)


@dataclass(eq=False)
class Postgres:
    """A PostgreSQL database with one connection, opened anew after it broke off."""

    url: str
    guard: SqlGuard
    db: Connection

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import psycopg

        if self.db.closed:
            try:
                self.db = connect_psycopg(self.url)
            except psycopg.Error as error:
                why = " ".join(str(error).split())
                raise ToolError(f"PostgreSQL cannot be reached: {why}", outage=True) from error
        text = bind_parameters(statement, parameters, "%({})s").rstrip().rstrip(";")
        try:
            # One round trip for the limits, and none of them outlives the transaction.
            with self.db.cursor() as cursor:
                cursor.execute(BEGIN.format(ms=max(1, int(caps.seconds * 1000)), lock=max(1, int(caps.seconds * 800))))
                # DECLARE CURSOR takes queries only.
                if text.lstrip().upper().startswith(("EXPLAIN", "SHOW")):
                    return self._whole(cursor, text, caps)
                return self._part(cursor, text, parameters, caps)
        except (psycopg.Error, UnicodeError) as error:
            # After a garbled reply the next answer could be read out of step.
            if self.db.closed or is_garbled_reply(error):
                self.db.close()
                raise ConnectionLost(f"The connection broke off: {' '.join(str(error).split())}") from error
            raise ToolError(str(error).strip()) from error
        finally:
            if not self.db.closed:
                with contextlib.suppress(psycopg.Error):
                    self.db.execute(END)

    def close(self) -> None:
        self.db.close()

    def cancel(self) -> None:
        import psycopg

        pid = self.db.info.backend_pid
        with psycopg.connect(self.url, autocommit=True, connect_timeout=CANCEL_SECONDS) as other:
            other.execute("SELECT pg_catalog.pg_cancel_backend(%s)", (pid,))

    def _whole(self, cursor: Cursor, text: str, caps: Caps) -> Table:
        cursor.execute(text.encode(), prepare=True)
        return build_capped_table([column.name for column in cursor.description or ()], cursor, caps)

    def _part(self, cursor: Cursor, text: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        # prepare=True: the extended protocol takes one statement, whatever it holds.
        query = f"DECLARE decisor NO SCROLL CURSOR FOR {text}"
        cursor.execute(query.encode(), dict(parameters) or None, prepare=not parameters)
        # A cursor tells its columns at the first FETCH, also if it has no rows.
        cursor.execute("FETCH FORWARD 0 FROM decisor")
        columns = [column.name for column in cursor.description or ()]
        return build_capped_table(columns, fetch_postgres_rows(cursor, caps.rows), caps)


def fetch_postgres_rows(cursor: Cursor, limit: int) -> Iterator[Sequence[object]]:
    """Yield rows in batches.

    The first batch is small, for one row may hold megabytes; small rows get larger batches.
    """
    # A caller that asks for many rows wants a table, not a look.
    at_once = ROWS_AT_ONCE if limit < 10_000 else MOST_AT_ONCE
    while True:
        rows = cursor.execute(f"FETCH FORWARD {at_once} FROM decisor".encode()).fetchall()
        yield from rows
        if len(rows) < at_once:
            return
        if sum(len(cell) for row in rows for cell in row if isinstance(cell, str | bytes)) < SMALL_ROW * len(rows):
            at_once = min(4 * at_once, MOST_AT_ONCE)


def is_garbled_reply(error: Exception) -> bool:
    """Return whether the server sent data without sense.

    Its own complaints have a code; complaints about our input are known classes.
    """
    import psycopg

    if isinstance(error, UnicodeError):
        return True
    ours = isinstance(error, psycopg.ProgrammingError | psycopg.DataError | psycopg.NotSupportedError)
    return isinstance(error, psycopg.Error) and error.sqlstate is None and not ours


def connect_psycopg(url: str) -> Connection:
    """Open a connection that reads text as UTF-8. Without that, a database of the encoding SQL_ASCII gives bytes."""
    import psycopg
    from psycopg.types.string import TextLoader

    db = psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=10,
        application_name="decisor",
        keepalives=1,
        keepalives_idle=30,
        client_encoding="UTF8",
    )
    for name in AS_TEXT.split():
        if psycopg.adapters.types.get(name) is not None:
            db.adapters.register_loader(name, TextLoader)
    with contextlib.suppress(psycopg.Error):  # compiling a query of the catalog takes longer than running it
        db.execute("SET jit = off")
    with contextlib.suppress(psycopg.Error):  # since PostgreSQL 14: a query ends soon after its client has gone
        db.execute(f"SET client_connection_check_interval = '{LOOK_SECONDS}s'")
    return db


def connect_postgres(url: str, caps: Caps) -> Postgres:
    """Open a PostgreSQL database. Raises SetupError if the server does not answer or refuses the account."""
    import psycopg
    import sqlglot.dialects.postgres  # noqa: F401  warm: the first query should not pay for it

    try:
        db = connect_psycopg(url)
        guard = build_guard(DIALECT, caps, lambda query: db.execute(query.encode()).fetchall())
    except psycopg.Error as error:
        raise SetupError(f"PostgreSQL cannot be reached: {' '.join(str(error).split())}") from error
    return Postgres(url, guard, db)


ENGINE = Engine(
    name="postgres",
    title="PostgreSQL",
    schemes=("postgresql", "postgres"),
    form="sql",
    connect=connect_postgres,
    server=True,
    probe="SELECT 1",
    dialect=DIALECT,
    extra="postgres",
)
