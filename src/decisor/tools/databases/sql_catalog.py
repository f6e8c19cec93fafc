"""The catalog of a database, by plain queries in its worker: tables, columns, keys and views.

One query per kind, whatever the number of tables. Nothing here runs a view. Only SQLite must bind one to tell its
columns, under the authorizer that bounds every query; a view that cannot be bound there is left out. Functions are
named with their schema, so that none of the database's own can stand in for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.process import Worker
from decisor.types import Table, Value

WIDE = Caps(rows=1_000_000, bytes=200_000_000, cell_chars=100_000, seconds=60.0)


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """``nullable`` as declared; ``references`` is table.column of another table, or ''."""

    name: str
    type: str
    nullable: bool
    key: bool
    references: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CatalogRelation:
    """``schema``: its own, where that is not the default one; then it begins the name. ``runs``: its rows may be read
    to show some of them; not so where a view does what a query may not do. ``rows``: about how many, None where the
    catalog does not tell."""

    name: str
    view: bool
    columns: tuple[CatalogColumn, ...]
    runs: bool = True
    schema: str = ""
    comment: str = ""
    rows: int | None = None


async def read_catalog(worker: Worker) -> tuple[CatalogRelation, ...]:
    """Tables, then views, without those that may not be seen. Raises ToolError."""
    dialect = worker.description.dialect
    if dialect is None:
        raise ToolError(f"{worker.description.title} has no SQL.")
    queries = dialect.queries
    columns = (await _rows(worker, queries.columns)).rows
    keys = (await _rows(worker, queries.keys)).rows
    if queries.unbound:
        names = (await _rows(worker, queries.unbound)).rows
        columns = (*columns, *[row for (name,) in names for row in await _bound(worker, queries.bound, str(name))])
    about = {str(name): (str(comment), rows) for name, comment, rows in
             ((await _rows(worker, queries.tables)).rows if queries.tables else ())}  # fmt: skip
    if worker.caps.policy:  # an estimate counts the rows of others too
        about = {name: (comment, None) for name, (comment, _) in about.items()}
    primary = {(table, column) for table, column, there, _ in keys if not there}
    foreign = {
        (table, column): f"{there}.{to or column}"
        for table, column, there, to in keys
        if there and not {str(there).lower(), str(there).lower().rpartition(".")[2]} & worker.hidden
    }
    relations: dict[tuple[str, bool, str], list[CatalogColumn]] = {}
    for table, view, name, kind, nullable, *more in columns:
        at = (table, name)
        schema, comment = (str(text) for text in more) if more else ("", "")
        column = CatalogColumn(str(name), str(kind), bool(nullable), at in primary, foreign.get(at, ""), comment)
        relations.setdefault((str(table), bool(view), schema), []).append(column)
    return tuple(
        CatalogRelation(name, view, tuple(its_columns), name.lower() not in worker.closed, schema,
                 *_about(*about.get(name, ("", None))))
        for (name, view, schema), its_columns in relations.items() if name.lower() not in worker.hidden
    )  # fmt: skip


def _about(comment: str, rows: Value) -> tuple[str, int | None]:
    return comment, rows if isinstance(rows, int) and rows >= 0 else None


async def _rows(worker: Worker, query: str) -> Table:
    return await worker.run(query, caps=WIDE, trusted=True)


async def _bound(worker: Worker, query: str, name: str) -> Sequence[tuple[Value, ...]]:
    """The columns of a relation that must be bound to tell them; none where it cannot be."""
    try:
        return (await worker.run(query, {"name": name}, caps=WIDE, trusted=True)).rows
    except ToolError:
        return ()
