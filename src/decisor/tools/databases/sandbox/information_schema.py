"""The catalog of a warehouse from its ``information_schema``: one query a kind, however many tables there are."""

from __future__ import annotations

from decisor.tools.databases.sandbox.dialect import Queries

NOBODY = "WHERE 1 = 0"
COLUMN_REFERENCES = """FROM {there}table_constraints AS k
    JOIN {there}key_column_usage AS c ON c.constraint_schema = k.constraint_schema
    AND c.constraint_name = k.constraint_name AND c.table_name = k.table_name
    LEFT JOIN {there}referential_constraints AS r ON r.constraint_schema = k.constraint_schema
    AND r.constraint_name = k.constraint_name
    LEFT JOIN {there}key_column_usage AS u ON u.constraint_schema = r.unique_constraint_schema
    AND u.constraint_name = r.unique_constraint_name AND u.ordinal_position = c.ordinal_position
    WHERE k.constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')"""


def information_schema(
    here: str, there: str = "information_schema.", ours: str = "", comments: bool = False, keys: bool = False
) -> Queries:
    """``here``: an expression for the default schema. ``there``: what stands before the name of a table of the catalog.
    ``ours``: more of a condition on ``table_schema``. ``comments``: a column's stands in ``comment``. ``keys``: its
    tables of constraints are as the standard has them."""
    own = f"lower({{0}}.table_schema) <> 'information_schema'{f' AND {ours}' if ours else ''}"
    named = f"CASE WHEN {{0}}.table_schema = {here} THEN '' ELSE concat({{0}}.table_schema, '.') END"
    view = "CASE WHEN t.table_type LIKE '%VIEW%' THEN 1 ELSE 0 END"
    away = "CASE WHEN {0}.table_schema = " + here + " THEN {1} ELSE {2} END"
    relation = f"concat({named}, {{0}}.table_name)"
    comment = "coalesce(c.comment, '')" if comments else "''"
    references = COLUMN_REFERENCES.format(there=there) if keys else ""
    return Queries(
        columns=f"""SELECT {relation.format("c")} AS relation, {view} AS is_view, c.column_name, c.data_type,
            CASE WHEN c.is_nullable = 'YES' THEN 1 ELSE 0 END AS nullable,
            {away.format("c", "''", "c.table_schema")} AS its_schema, {comment} AS its_comment
            FROM {there}columns AS c JOIN {there}tables AS t
            ON t.table_schema = c.table_schema AND t.table_name = c.table_name WHERE {own.format("c")}
            ORDER BY {view}, {away.format("c", "0", "1")}, c.table_schema, c.table_name, c.ordinal_position""",
        keys=f"""SELECT {relation.format("c")} AS relation, c.column_name,
            CASE WHEN u.table_name IS NULL THEN '' ELSE {relation.format("u")} END AS there,
            coalesce(u.column_name, '') AS its_column {references}"""
        if keys
        else f"SELECT '' AS a, '' AS b, '' AS c, '' AS d {NOBODY}",
        definitions=f"""SELECT t.table_name, CASE WHEN {view} = 0 THEN '' ELSE v.view_definition END AS its_text,
            CASE WHEN {view} = 0 THEN 'table' ELSE 'view' END AS kind, t.table_schema,
            {away.format("t", "1", "0")} AS alone
            FROM {there}tables AS t LEFT JOIN {there}views AS v
            ON v.table_schema = t.table_schema AND v.table_name = t.table_name WHERE {own.format("t")}""",
    )
