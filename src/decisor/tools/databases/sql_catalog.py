"""The catalog of a database, by plain queries through the fence: tables, columns, keys and views of the default schema.

One query per kind, whatever the number of tables. Nothing here runs a view. Only SQLite must bind one to tell its
columns, under the authorizer that bounds every query; a view that cannot be bound there is left out. Functions are
named with their schema, so that none of the database's own can stand in for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.forms import NAME
from decisor.tools.databases.sandbox.process import Worker
from decisor.types import Table, Value

WIDE = Caps(rows=1_000_000, bytes=200_000_000, cell_chars=100_000, seconds=60.0)
CREATE_VIEW = re.compile(
    rf"\s*CREATE\s+(TEMP(ORARY)?\s+)?VIEW\s+(IF\s+NOT\s+EXISTS\s+)?({NAME}\s*\.\s*)?{NAME.replace('name', 'own')}"
    r"\s*(\((?:[^()\"]|\"[^\"]*\")*\)\s*)?\bAS\b(?P<query>.*)",
    re.I | re.S,
)


@dataclass(frozen=True)
class Queries:
    """``columns``: table, is a view, column, type, nullable. ``keys``: table, column of the primary key, '', '', or
    table, column, table and column that it references. ``views``: view, its definition."""

    columns: str
    keys: str
    views: str


SQLITE_COLUMNS = """SELECT m.name, m.type = 'view', c.name, upper(c.type), c."notnull" = 0
    FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c
    WHERE m.type IN ('table', 'view') AND c.hidden <> 1 AND m.name NOT LIKE 'sqlite~_%' ESCAPE '~' AND """
QUERIES = {
    "sqlite": Queries(
        columns=f"{SQLITE_COLUMNS} m.rootpage > 0 ORDER BY m.name, c.cid",
        keys="""SELECT m.name, c.name, '', '' FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
            WHERE m.rootpage > 0 AND m.type = 'table' AND c.pk > 0
            UNION ALL SELECT m.name, f."from", f."table", f."to"
            FROM sqlite_master AS m JOIN pragma_foreign_key_list(m.name) AS f
            WHERE m.type = 'table' AND m.rootpage > 0""",
        views="SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND coalesce(rootpage, 0) = 0 "
        "ORDER BY type, name",
    ),
    "duckdb": Queries(
        columns="""SELECT c.table_name, t.name IS NULL, c.column_name, c.data_type, c.is_nullable
            FROM system.main.duckdb_columns() AS c LEFT JOIN
            (SELECT table_name AS name, schema_oid, database_oid FROM system.main.duckdb_tables()) AS t
            ON t.name = c.table_name AND t.schema_oid = c.schema_oid AND t.database_oid = c.database_oid
            WHERE NOT c.internal AND c.schema_name = system.main.current_schema()
            AND c.database_name = system.main.current_database()
            ORDER BY t.name IS NULL, c.table_name, c.column_index""",
        keys="""SELECT table_name, unnest(constraint_column_names), coalesce(referenced_table, ''),
            coalesce(unnest(referenced_column_names), '') FROM system.main.duckdb_constraints()
            WHERE constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
            AND schema_name = system.main.current_schema() AND database_name = system.main.current_database()""",
        views="""SELECT view_name, sql FROM system.main.duckdb_views() WHERE NOT internal
            AND schema_name = system.main.current_schema()
            AND database_name = system.main.current_database()""",
    ),
    "postgres": Queries(
        columns="""SELECT c.relname, c.relkind = 'v', a.attname,
            pg_catalog.replace(pg_catalog.replace(
            pg_catalog.upper(pg_catalog.format_type(a.atttypid, a.atttypmod)), 'CHARACTER VARYING', 'VARCHAR'),
            ' WITHOUT TIME ZONE', ''), NOT a.attnotnull
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
            WHERE c.relnamespace = pg_catalog.current_schema()::regnamespace::oid AND c.relkind IN ('r', 'p', 'v')
            AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relkind = 'v', c.relname, a.attnum""",
        keys="""SELECT c.relname, a.attname, coalesce(r.relname, ''), coalesce(b.attname, '')
            FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
            CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey)) AS u(here, there)
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.here
            LEFT JOIN pg_catalog.pg_class AS r ON r.oid = k.confrelid
            LEFT JOIN pg_catalog.pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = u.there
            WHERE k.contype IN ('p', 'f') AND c.relnamespace = pg_catalog.current_schema()::regnamespace::oid""",
        views="""SELECT c.relname, pg_catalog.pg_get_viewdef(c.oid) FROM pg_catalog.pg_class AS c
            WHERE c.relnamespace = pg_catalog.current_schema()::regnamespace::oid AND c.relkind = 'v'""",
    ),
    "mysql": Queries(
        columns="""SELECT c.table_name, t.table_type LIKE '%VIEW', c.column_name,
            concat(upper(c.data_type), substring(c.column_type, length(c.data_type) + 1)), c.is_nullable = 'YES'
            FROM information_schema.columns AS c JOIN information_schema.tables AS t
            ON t.table_schema = c.table_schema AND t.table_name = c.table_name
            WHERE c.table_schema = database() AND t.table_schema = database()
            ORDER BY t.table_type LIKE '%VIEW', c.table_name, c.ordinal_position""",
        keys="""SELECT table_name, column_name, coalesce(referenced_table_name, ''),
            coalesce(referenced_column_name, '') FROM information_schema.key_column_usage
            WHERE table_schema = database() AND (constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL)""",
        views="""SELECT table_name, view_definition FROM information_schema.views
            WHERE table_schema = database()""",
    ),
}


@dataclass(frozen=True, slots=True)
class Column:
    """``nullable`` as declared; ``references`` is table.column of another table, or ''."""

    name: str
    type: str
    nullable: bool
    key: bool
    references: str


@dataclass(frozen=True, slots=True)
class Relation:
    """``runs``: its rows may be read to show some of them; not so where a view does what a query may not do."""

    name: str
    view: bool
    columns: tuple[Column, ...]
    runs: bool = True


async def read_catalog(worker: Worker) -> tuple[Relation, ...]:
    """Tables, then views, without those denied and the views that may read them. Raises ToolError."""
    queries = QUERIES[worker.engine]
    columns = (await _rows(worker, queries.columns)).rows
    keys = (await _rows(worker, queries.keys)).rows
    views = {str(name): str(text or "") for name, text in (await _rows(worker, queries.views)).rows}
    if worker.engine == "sqlite":
        columns = (*columns, *[row for name in views for row in await _bound(worker, name)])
    hidden = {name.lower() for name in reaching(worker.caps.deny, views)}
    stopped = reaching([name for name, text in views.items() if not await _passes(worker, text)], views)
    primary = {(table, column) for table, column, there, _ in keys if not there}
    foreign = {(table, column): f"{there}.{to or column}" for table, column, there, to in keys if there}
    made: dict[tuple[str, bool], list[Column]] = {}
    for table, view, name, kind, nullable in columns:
        at = (table, name)
        column = Column(str(name), str(kind), bool(nullable), at in primary, foreign.get(at, ""))
        made.setdefault((str(table), bool(view)), []).append(column)
    return tuple(
        Relation(name, view, tuple(held), name not in stopped)
        for (name, view), held in made.items()
        if name.lower() not in hidden
    )


async def _rows(worker: Worker, query: str) -> Table:
    return await worker.run(query, caps=WIDE, trusted=True)


async def _bound(worker: Worker, name: str) -> Sequence[tuple[Value, ...]]:
    """The columns of a view or virtual table of SQLite; none where it cannot be bound."""
    try:
        query = f"{SQLITE_COLUMNS} m.name = :name ORDER BY c.cid"
        return (await worker.run(query, {"name": name}, caps=WIDE, trusted=True)).rows
    except ToolError:
        return ()


def reaching(names: Iterable[str], views: Mapping[str, str]) -> set[str]:
    """``names``, and the views that may read one of them: a name in a definition is enough.

    >>> sorted(reaching(["secrets"], {"a": "SELECT * FROM secrets", "b": "SELECT * FROM A", "c": "SELECT 1"}))
    ['a', 'b', 'secrets']
    """
    reached = fresh = set(names)
    while fresh:
        named = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in fresh), re.I)
        fresh = {view for view, text in views.items() if view not in reached and named.search(text)}
        reached = reached | fresh
    return reached


async def _passes(worker: Worker, definition: str) -> bool:
    made = CREATE_VIEW.fullmatch(definition)
    if re.match(r"\s*CREATE\s+VIRTUAL\s", definition, re.I):
        return True  # of SQLite, whose authorizer holds for what it reads
    try:
        await worker.check(made["query"] if made else definition)
    except ToolError:
        return False
    return True
