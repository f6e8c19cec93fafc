"""The abilities that a tool may have beside being called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeGuard, runtime_checkable

from decisor.types import Action, Observation, Tool

if TYPE_CHECKING:
    from decisor.databases.sql import SqlTool
    from decisor.graphs.cypher import CypherTool
    from decisor.tools.arguments import ToolArguments

Database: TypeAlias = "SqlTool | CypherTool"
"""A tool that knows its tables, is read in bulk too, and has more to say of its data than a prompt takes."""


@runtime_checkable
class Remembering(Protocol):
    """A tool that works with the records of other tools. It is called with each observation ``o<number>``."""

    def remember(self, number: int, action: Action, observation: Observation, tool: Tool) -> None: ...


@runtime_checkable
class RowSource(Protocol):
    """A tool that returns rows, nodes or passages of a source."""

    @property
    def form(self) -> str: ...

    @property
    def is_restricted(self) -> bool:
        """Whether parts of the source are hidden: tables, rows, columns, labels or documents."""
        ...

    def examples(self) -> Sequence[str]:
        """Return the values that the description of the tool shows."""
        ...


@runtime_checkable
class TypedTool(Protocol):
    """A tool whose input is a JSON object that a schema describes."""

    @property
    def arguments(self) -> ToolArguments: ...


def is_database_tool(tool: Tool) -> TypeGuard[Database]:
    return isinstance(tool, RowSource) and tool.form in ("sql", "cypher")


async def focus_databases(topic: str, databases: Sequence[Database]) -> list[Database]:
    """Return each database with a description of the data that a topic is likely to need.

    Only databases with more to describe than fits a prompt change.
    """
    return [await database.about(topic) for database in databases]
