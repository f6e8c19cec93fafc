"""Tables and columns as the rest of the house sees them."""

from __future__ import annotations

from dataclasses import dataclass

from decisor.tools.databases.sandbox.dialect import Dialect


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
    may do. ``exact``: the rows were counted; else they are the engine's estimate. ``sampled``: some were looked at."""

    name: str
    columns: tuple[ColumnInfo, ...]
    view: bool = False
    rows: int | None = None
    schema: str = ""
    comment: str = ""
    runs: bool = True
    exact: bool = True
    sampled: bool = False

    @property
    def bare(self) -> str:
        """Its name without the schema."""
        return self.name[len(self.schema) + 1 :] if self.schema else self.name

    def place(self, dialect: Dialect) -> str:
        """As it stands in a query."""
        return ".".join(dialect.quoted(part) for part in (self.schema, self.bare) if part)


def key_of(table: TableInfo) -> tuple[ColumnInfo, ...]:
    """The columns of its primary key."""
    return tuple(column for column in table.columns if column.key)
