"""What PostgreSQL is asked of its own catalog: tables, columns, keys, views, functions; and whether it changed."""

from __future__ import annotations

from decisor.tools.databases.sandbox.dialect import Queries

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


def named(table: str, schema: str) -> str:
    """SQL for a table's name, with its schema where that is not the default one."""
    return f"CASE WHEN {table}.relnamespace = {HERE} THEN '' ELSE {schema}.nspname || '.' END || {table}.relname"


def full(table: str) -> str:
    """SQL for a table's name with its schema."""
    return f"{table}.relnamespace::regnamespace::text || '.' || pg_catalog.quote_ident({table}.relname)"


def place(table: str) -> str:
    """SQL for a table's schema, and whether its name alone finds it."""
    schema = f"(SELECT o.nspname FROM pg_catalog.pg_namespace AS o WHERE o.oid = {table}.relnamespace)"
    return f"{schema}, pg_catalog.pg_table_is_visible({table}.oid)"


def marks(catalog: str, table: str, texts: str) -> str:
    """A row that is another when a row of this catalog, of a table that may be seen, comes, goes or changes."""
    return f"""SELECT '{catalog}', '', '', pg_catalog.count(*), pg_catalog.sum(t.xmin::text::bigint),
        pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', {table}, {texts})))
        FROM pg_catalog.{catalog} AS t JOIN pg_catalog.pg_class AS c ON c.oid = {table}
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE {SEEN}"""


QUERIES = Queries(
    fingerprint=f"""SELECT '', current_user::text, pg_catalog.current_schema()::text, 0, 0::numeric, 0::numeric
        UNION ALL
        {marks("pg_class", "t.oid", "t.relname, t.relkind, t.reltuples")} UNION ALL
        {marks("pg_attribute", "t.attrelid", "t.attname, t.attnum")} UNION ALL
        {marks("pg_constraint", "t.conrelid", "t.conname")} UNION ALL
        {marks("pg_description", "t.objoid", "t.description, t.objsubid")} UNION ALL
        SELECT 'enums', '', '', pg_catalog.count(*), pg_catalog.sum(t.xmin::text::bigint),
        pg_catalog.sum(pg_catalog.hashtext(t.enumlabel)) FROM pg_catalog.pg_enum AS t UNION ALL
        SELECT 'types', '', '', pg_catalog.count(*), pg_catalog.sum(t.xmin::text::bigint),
        pg_catalog.sum(pg_catalog.hashtext(t.typname)) FROM pg_catalog.pg_type AS t""",
    columns=f"""WITH enums AS (SELECT e.enumtypid AS id, 'ENUM(' || pg_catalog.string_agg(
            pg_catalog.quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) || ')' AS labels
            FROM pg_catalog.pg_enum AS e GROUP BY e.enumtypid)
            SELECT {named("c", "n")}, c.relkind IN ('v', 'm'), a.attname,
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
    keys=f"""SELECT {named("c", "n")}, a.attname, coalesce({named("r", "m")}, ''), coalesce(b.attname, '')
            FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey)) AS u(here, there)
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.here
            LEFT JOIN pg_catalog.pg_class AS r ON r.oid = k.confrelid
            LEFT JOIN pg_catalog.pg_namespace AS m ON m.oid = r.relnamespace
            LEFT JOIN pg_catalog.pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = u.there
            WHERE k.contype IN ('p', 'f') AND {SEEN}""",
    tables=f"""SELECT {named("c", "n")}, coalesce(d.description, ''), c.reltuples::bigint
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            LEFT JOIN pg_catalog.pg_description AS d ON d.objoid = c.oid AND d.objsubid = 0
            AND d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
            WHERE {SEEN} AND c.relkind IN ('r', 'p', 'v', 'm')
            AND (d.description IS NOT NULL OR c.relkind IN ('r', 'p', 'm'))""",
    # A partition holds rows of its parent, and its parent reads them. A column of a type that a user's function casts
    # without being asked to makes its table one that no query may read.
    definitions=f"""SELECT c.relname, CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid)
        WHEN {CASTS_ITSELF} THEN 'cast' ELSE '' END,
        CASE WHEN c.relkind IN ('v', 'm') OR {CASTS_ITSELF} THEN 'view' ELSE 'table' END, {place("c")}
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {USERS}
        UNION ALL SELECT c.relname, {full("p")}, CASE WHEN c.relispartition THEN 'partition' ELSE 'table' END,
        {place("c")} FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid JOIN pg_catalog.pg_class AS p ON p.oid = i.inhparent
        WHERE c.relkind IN ('r', 'p', 'f')
        UNION ALL SELECT p.relname, {full("c")}, 'table', {place("p")} FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid JOIN pg_catalog.pg_class AS p ON p.oid = i.inhparent
        WHERE c.relkind IN ('r', 'p', 'f')
        UNION ALL SELECT s.relname, {full("t")}, 'table', {place("s")} FROM pg_catalog.pg_depend AS d
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
