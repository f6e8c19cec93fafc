"""What a tool may do beside being called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from decisor.types import Action, Observation, Tool


@runtime_checkable
class Describing(Protocol):
    """A tool that has more to say of its data than a prompt takes: ``about`` is the same tool, with a description of
    what the question is likely to need."""

    async def about(self, question: str) -> Tool: ...


@runtime_checkable
class Remembering(Protocol):
    """A tool that works with what the others bring: it is called with each observation ``o<number>``."""

    def remember(self, number: int, action: Action, observation: Observation, tool: Tool) -> None: ...


async def about(topic: str, tools: Sequence[Tool]) -> list[Tool]:
    """Each with a description of what the topic is likely to need, where it has more to say than a prompt takes."""
    return [await tool.about(topic) if isinstance(tool, Describing) else tool for tool in tools]
