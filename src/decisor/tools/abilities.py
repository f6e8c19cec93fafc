"""What a tool may do beside being called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeGuard, runtime_checkable

from decisor.types import Action, Observation, Tool

if TYPE_CHECKING:
    from decisor.tools.databases.cypher import CypherTool
    from decisor.tools.databases.sql import SqlTool

Database: TypeAlias = "SqlTool | CypherTool"
"""A tool that knows its tables, is read in bulk too, and has more to say of its data than a prompt takes."""


@runtime_checkable
class Remembering(Protocol):
    """A tool that works with what the others bring: it is called with each observation ``o<number>``."""

    def remember(self, number: int, action: Action, observation: Observation, tool: Tool) -> None: ...


@runtime_checkable
class RowSource(Protocol):
    """A tool that brings rows, nodes or passages of a source."""

    @property
    def form(self) -> str: ...

    @property
    def is_restricted(self) -> bool:
        """Whether something of the source is kept back: tables, rows, columns, labels or documents."""
        ...

    def examples(self) -> Sequence[str]:
        """Return the values that its description shows."""
        ...


def is_database(tool: Tool) -> TypeGuard[Database]:
    return getattr(tool, "form", "") in ("sql", "cypher")


async def about(topic: str, databases: Sequence[Database]) -> list[Database]:
    """Each with a description of what the topic is likely to need, where it has more to say than a prompt takes."""
    return [await database.about(topic) for database in databases]
