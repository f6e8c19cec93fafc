"""Tables and columns as the rest of the house sees them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """``references`` is table.column of another table; ``examples`` are values as JSON text. ``joins`` is table.column
    whose keys its values are, where nothing declares that. ``comment``: what the database says of it."""

    name: str
    type: str
    nullable: bool = True
    key: bool = False
    references: str = ""
    examples: tuple[str, ...] = ()
    joins: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class TableInfo:
    """``name`` is SCHEMA.TABLE where it is not in the default schema; then ``schema`` names it. ``rows`` is None
    where counting was not possible in time. ``runs``: its rows may be read; not so where a view does what no query
    may do."""

    name: str
    columns: tuple[ColumnInfo, ...]
    view: bool = False
    rows: int | None = None
    schema: str = ""
    comment: str = ""
    runs: bool = True


def key_of(table: TableInfo) -> tuple[ColumnInfo, ...]:
    """The columns of its primary key."""
    return tuple(column for column in table.columns if column.key)
