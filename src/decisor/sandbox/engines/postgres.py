"""PostgreSQL through psycopg: a READ ONLY transaction that is always rolled back, extended protocol, a cursor.

``DECLARE ... CURSOR FOR`` is a second parser: the server takes only reading queries there. Queries that only plan
(EXPLAIN) or show run without it.

Its queries of the catalog read tables, columns, keys, views and functions, and a fingerprint that changes when the
catalog does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import Expr, exp

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import COMMON, INFORMATION_SCHEMA, Dialect, Queries, StatementForms, word_set
from decisor.sandbox.engine import Caps, ConnectionLost, Engine
from decisor.sandbox.sql_guard import SqlGuard, build_guard
from decisor.sandbox.wire import bind_parameters, build_capped_table
from decisor.system.text import quote_identifier
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
IN_ROLE = """SELECT current_user::text = %s::text AND current_user <> session_user, r.rolsuper
FROM pg_catalog.pg_roles AS r WHERE r.rolname = session_user"""
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


USERS = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'"
OWN_FUNCTIONS = f"""(SELECT f.oid FROM pg_catalog.pg_proc AS f
        JOIN pg_catalog.pg_namespace AS n ON n.oid = f.pronamespace
        WHERE {USERS} AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d WHERE d.objid = f.oid
        AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e'))"""
CASTS_ITSELF = f"""c.oid IN (SELECT a.attrelid FROM pg_catalog.pg_cast AS k JOIN pg_catalog.pg_attribute AS a
        ON a.atttypid = k.castsource WHERE k.castcontext = 'i' AND k.castfunc IN {OWN_FUNCTIONS})"""
HERE = "pg_catalog.current_schema()::regnamespace::oid"
SEEN = f"{USERS} AND (n.oid = {HERE} OR pg_catalog.has_schema_privilege(n.oid, 'USAGE'))"
KIND = """pg_catalog.replace(pg_catalog.replace(
            pg_catalog.upper(pg_catalog.format_type(a.atttypid, a.atttypmod)), 'CHARACTER VARYING', 'VARCHAR'),
            ' WITHOUT TIME ZONE', '')"""


def sql_postgres_name(table: str, schema: str) -> str:
    """Return SQL for a table's name, with its schema unless that is the default one."""
    return f"CASE WHEN {table}.relnamespace = {HERE} THEN '' ELSE {schema}.nspname || '.' END || {table}.relname"


def sql_full_name(table: str) -> str:
    """Return SQL for a table's name with its schema."""
    return f"{table}.relnamespace::regnamespace::text || '.' || pg_catalog.quote_ident({table}.relname)"


def sql_schema_and_visibility(table: str) -> str:
    """Return SQL for a table's schema, and whether the table's name alone finds it."""
    schema = f"(SELECT o.nspname FROM pg_catalog.pg_namespace AS o WHERE o.oid = {table}.relnamespace)"
    return f"{schema}, pg_catalog.pg_table_is_visible({table}.oid)"


def sql_catalog_fingerprint(catalog: str, table: str, texts: str) -> str:
    """Return SQL for a row that changes when this catalog changes.

    It covers rows of visible tables that come, go or change.
    """
    return f"""SELECT '{catalog}', '', '', pg_catalog.count(*), pg_catalog.sum(t.xmin::text::bigint),
        pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', {table}, {texts})))
        FROM pg_catalog.{catalog} AS t JOIN pg_catalog.pg_class AS c ON c.oid = {table}
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE {SEEN}"""


QUERIES = Queries(
    fingerprint=f"""SELECT '', current_user::text, pg_catalog.current_schema()::text, 0, 0::numeric, 0::numeric
        UNION ALL
        {sql_catalog_fingerprint("pg_class", "t.oid", "t.relname, t.relkind, t.reltuples")} UNION ALL
        {sql_catalog_fingerprint("pg_attribute", "t.attrelid", "t.attname, t.attnum")} UNION ALL
        {sql_catalog_fingerprint("pg_constraint", "t.conrelid", "t.conname")} UNION ALL
        {sql_catalog_fingerprint("pg_description", "t.objoid", "t.description, t.objsubid")} UNION ALL
        SELECT 'enums', '', '', pg_catalog.count(*), pg_catalog.sum(t.xmin::text::bigint),
        pg_catalog.sum(pg_catalog.hashtext(t.enumlabel)) FROM pg_catalog.pg_enum AS t UNION ALL
        SELECT 'types', '', '', pg_catalog.count(*), pg_catalog.sum(t.xmin::text::bigint),
        pg_catalog.sum(pg_catalog.hashtext(t.typname)) FROM pg_catalog.pg_type AS t""",
    columns=f"""WITH enums AS (SELECT e.enumtypid AS id, 'ENUM(' || pg_catalog.string_agg(
            pg_catalog.quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) || ')' AS labels
            FROM pg_catalog.pg_enum AS e GROUP BY e.enumtypid)
            SELECT {sql_postgres_name("c", "n")}, c.relkind IN ('v', 'm'), a.attname,
            coalesce(e.labels, i.labels || '[]', {KIND}), NOT a.attnotnull,
            CASE WHEN c.relnamespace = {HERE} THEN '' ELSE n.nspname END, coalesce(d.description, '')
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
            LEFT JOIN enums AS e ON e.id = t.oid LEFT JOIN enums AS i ON i.id = t.typelem AND t.typlen = -1
            LEFT JOIN pg_catalog.pg_description AS d ON d.objoid = c.oid AND d.objsubid = a.attnum
            AND d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
            WHERE {SEEN} AND c.relkind IN ('r', 'p', 'v', 'm') AND a.attnum > 0 AND NOT a.attisdropped
            ORDER BY c.relkind IN ('v', 'm'), n.oid <> {HERE}, n.nspname, c.relname, a.attnum""",
    keys=f"""SELECT {sql_postgres_name("c", "n")}, a.attname,
            coalesce({sql_postgres_name("r", "m")}, ''), coalesce(b.attname, '')
            FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey)) AS u(here, there)
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.here
            LEFT JOIN pg_catalog.pg_class AS r ON r.oid = k.confrelid
            LEFT JOIN pg_catalog.pg_namespace AS m ON m.oid = r.relnamespace
            LEFT JOIN pg_catalog.pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = u.there
            WHERE k.contype IN ('p', 'f') AND {SEEN}""",
    tables=f"""SELECT {sql_postgres_name("c", "n")}, coalesce(d.description, ''), c.reltuples::bigint
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            LEFT JOIN pg_catalog.pg_description AS d ON d.objoid = c.oid AND d.objsubid = 0
            AND d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
            WHERE {SEEN} AND c.relkind IN ('r', 'p', 'v', 'm')
            AND (d.description IS NOT NULL OR c.relkind IN ('r', 'p', 'm'))""",
    # A partition holds rows of its parent, and its parent reads them. A column of a type that a user's function casts
    # without being asked to makes its table one that no query may read.
    definitions=f"""SELECT c.relname, CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid)
        WHEN {CASTS_ITSELF} THEN 'cast' ELSE '' END,
        CASE WHEN c.relkind IN ('v', 'm') OR {CASTS_ITSELF} THEN 'view' ELSE 'table' END,
        {sql_schema_and_visibility("c")}
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {USERS}
        UNION ALL SELECT c.relname, {sql_full_name("p")}, CASE WHEN c.relispartition THEN 'partition' ELSE 'table' END,
        {sql_schema_and_visibility("c")} FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid JOIN pg_catalog.pg_class AS p ON p.oid = i.inhparent
        WHERE c.relkind IN ('r', 'p', 'f')
        UNION ALL SELECT p.relname, {sql_full_name("c")}, 'table', {sql_schema_and_visibility("p")}
        FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid JOIN pg_catalog.pg_class AS p ON p.oid = i.inhparent
        WHERE c.relkind IN ('r', 'p', 'f')
        UNION ALL SELECT s.relname, {sql_full_name("t")}, 'table', {sql_schema_and_visibility("s")}
        FROM pg_catalog.pg_depend AS d
        JOIN pg_catalog.pg_class AS s ON s.oid = d.objid JOIN pg_catalog.pg_class AS t ON t.oid = d.refobjid
        WHERE s.relkind = 'S' AND d.deptype IN ('a', 'i')
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refclassid = d.classid""",
    functions=f"""SELECT f.proname, f.pronargs >= 1 AND f.pronargs - f.pronargdefaults <= 1
        AND t.typtype IN ('c', 'd', 'p') FROM pg_catalog.pg_proc AS f
        JOIN pg_catalog.pg_namespace AS n ON n.oid = f.pronamespace
        LEFT JOIN pg_catalog.pg_type AS t ON t.oid = f.proargtypes[0]
        WHERE {USERS} AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
        WHERE d.objid = f.oid AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e')""",
    operators=f"""SELECT o.oprname, '' FROM pg_catalog.pg_operator AS o WHERE o.oprcode::oid IN {OWN_FUNCTIONS}
        UNION ALL SELECT '', pg_catalog.format_type(pg_catalog.unnest(
        CASE WHEN k.castcontext = 'i' THEN ARRAY[k.castsource, k.casttarget] ELSE ARRAY[k.casttarget] END), NULL)
        FROM pg_catalog.pg_cast AS k WHERE k.castfunc IN {OWN_FUNCTIONS}""",
)


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
    catalogs={**INFORMATION_SCHEMA, "pg_catalog": READABLE},
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
    role: str = ""
    """Role that every statement runs in; '' for that of the account."""

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import psycopg

        if self.db.closed:
            try:
                self.db = connect_psycopg(self.url, self.role)
            except psycopg.Error as error:
                why = " ".join(str(error).split())
                raise ToolError(f"PostgreSQL cannot be reached: {why}", outage=True) from error
        text = bind_parameters(statement, parameters, "%({})s").rstrip().rstrip(";")
        try:
            # One round trip for the limits, and none of them outlives the transaction.
            begin = BEGIN.format(ms=max(1, int(caps.seconds * 1000)), lock=max(1, int(caps.seconds * 800)))
            # Again for each: a pool between us and the server may hand over the connection of another role.
            role = f"; SET LOCAL ROLE {quote_identifier(self.role)}" if self.role else ""
            with self.db.cursor() as cursor:
                cursor.execute((begin + role).encode())
                # DECLARE CURSOR takes queries only.
                if text.lstrip().upper().startswith(("EXPLAIN", "SHOW")):
                    cursor.execute(text.encode(), prepare=True)
                    return build_capped_table([column.name for column in cursor.description or ()], cursor, caps)
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


def connect_psycopg(url: str, role: str = "") -> Connection:
    """Open a connection that reads text as UTF-8. Without that, a database of the encoding SQL_ASCII gives bytes.

    Raises SetupError if it cannot read in the role alone.
    """
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
    if role:
        set_postgres_role(db, role)
    for name in AS_TEXT.split():
        if psycopg.adapters.types.get(name) is not None:
            db.adapters.register_loader(name, TextLoader)
    with contextlib.suppress(psycopg.Error):  # compiling a query of the catalog takes longer than running it
        db.execute("SET jit = off")
    with contextlib.suppress(psycopg.Error):  # since PostgreSQL 14: a query ends soon after its client has gone
        db.execute(f"SET client_connection_check_interval = '{LOOK_SECONDS}s'")
    return db


def set_postgres_role(db: Connection, role: str) -> None:
    """Set the role of a connection; raise SetupError unless its statements then have the rights of the role alone."""
    db.execute(f"SET ROLE {quote_identifier(role)}")
    # A role "none" is the account itself, and a long name is cut to another's: ask which role it is. A superuser may
    # take every role, so a person's name could be that of any.
    is_role, is_superuser = db.execute(IN_ROLE, (role,)).fetchall()[0]
    if not is_role or is_superuser:
        db.close()
        why = "its account is a superuser" if is_superuser else "that is another role, or the account itself"
        raise SetupError(f"PostgreSQL cannot be read in the role {role!r:.80}: {why}. See docs/access.md, Roles.")


def connect_postgres(url: str, caps: Caps) -> Postgres:
    """Open a PostgreSQL database. Raises SetupError if the server does not answer or refuses the account."""
    import psycopg
    import sqlglot.dialects.postgres  # noqa: F401  warm: the first query should not pay for it

    try:
        db = connect_psycopg(url, caps.role)
        guard = build_guard(DIALECT, caps, lambda query: db.execute(query.encode()).fetchall())
    except psycopg.Error as error:
        raise SetupError(f"PostgreSQL cannot be reached: {' '.join(str(error).split())}") from error
    return Postgres(url, guard, db, caps.role)


ENGINE = Engine(
    name="postgres",
    title="PostgreSQL",
    schemes=("postgresql", "postgres"),
    form="sql",
    connect=connect_postgres,
    server=True,
    probe="SELECT 1",
    dialect=DIALECT,
    has_roles=True,
    extra="postgres",
)
