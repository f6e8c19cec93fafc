"""A database's schema, as definitions need it: protocols, for the tools that read it stand beside this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from decisor.decision_models.copying import ColumnOf, TableOf


class Column(ColumnOf, Protocol):
    """As ``tools.databases.sql_tables.ColumnInfo`` has it. ``examples``: values as JSON."""

    @property
    def references(self) -> str: ...
    @property
    def joins(self) -> str: ...
    @property
    def examples(self) -> Sequence[str]: ...


class Relation(TableOf, Protocol):
    """As ``tools.databases.sql_tables.TableInfo`` has it. ``rows``: None where that is not known."""

    @property
    def rows(self) -> int | None: ...
    @property
    def columns(self) -> Sequence[Column]: ...
