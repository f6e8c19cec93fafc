"""Reads the catalog of a database: of PostgreSQL by its own queries, of any other by SQLAlchemy's inspector.

The inspector reads in bulk if its dialect can, else table by table. Its rows have the columns of ``Queries``. They are
asked for by a word that no checked statement can be (``INSPECTED``). The queries for PostgreSQL read tables, columns,
keys, views and functions, and a fingerprint that changes when the catalog does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from decisor.sandbox.dialect import Queries, word_set

if TYPE_CHECKING:
    from sqlalchemy import Connection, Inspector


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
"""Schemas that hold no data of their own."""
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
