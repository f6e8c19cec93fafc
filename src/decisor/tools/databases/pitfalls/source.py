"""What rows of a query come from, and which columns of it follow from which others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from decisor.tools.databases.sql_tables import TableInfo, key_of

if TYPE_CHECKING:
    from decisor.tools.databases.pitfalls.block import Block


@dataclass(eq=False)
class FromItem:
    """A table, or a part of the query whose rows are told apart by ``keys`` (each a set of columns; an empty one: there
    is one row at most).

    All names in lower case. ``columns``: None where they are not known. ``text``: what may stand behind FROM to look at
    it, '' where it cannot be looked at by itself. ``block``: of a part of the query, how it is made.
    ``any_key``: each of its columns tells its rows apart. ``many``: it has
    several rows for one of what it is called with.
    """

    name: str
    columns: tuple[str, ...] | None = None
    keys: tuple[frozenset[str], ...] = ()
    text: str = ""
    table: TableInfo | None = None
    block: Block | None = None
    any_key: bool = False
    many: bool = False


class FromColumn(NamedTuple):
    """A column of a source."""

    source: FromItem
    column: str


class Dependency(NamedTuple):
    """A column that has one value wherever the others have one; of no others: it is fixed."""

    of: frozenset[FromColumn]
    column: FromColumn


def table_source(table: TableInfo, text: str) -> FromItem:
    columns = tuple(column.name.lower() for column in table.columns)
    key = frozenset(column.name.lower() for column in key_of(table))
    keys = (key,) if key and not table.view else ()
    if table.exact and table.rows is not None and table.rows <= 1 and not table.view:
        keys = (*keys, frozenset())
    return FromItem(table.name, columns, keys, text, table)


def closure(
    sources: Sequence[FromItem],
    known: Iterable[FromColumn],
    reached: Iterable[FromItem],
    dependencies: Sequence[Dependency],
) -> tuple[set[FromColumn], list[FromItem]]:
    """The columns that have one value where those of ``known`` and one row of each of ``reached`` are fixed, and the
    sources that then have one row. Columns of other queries around this one are fixed."""
    own = set(sources)
    columns, single = set(known), [one for one in sources if one in set(reached)]

    def is_known(origin: FromColumn) -> bool:
        return origin in columns or origin.source in single or origin.source not in own

    grown = True
    while grown:
        grown = False
        for one in dependencies:
            if not is_known(one.column) and all(map(is_known, one.of)):
                columns.add(one.column)
                grown = True
        for source in sources:
            if source not in single and tells(source, {origin.column for origin in columns if origin.source is source}):
                single.append(source)
                grown = True
    return columns, single


def tells(source: FromItem, columns: Collection[str]) -> bool:
    """Whether one row at most has given values of these columns."""
    return any(key <= set(columns) for key in source.keys) or (source.any_key and bool(columns))
