"""The environment of a run on databases: named tools, and ids for all they bring back (o3.r1)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TypeAlias

from decisor.calls.clock import in_line
from decisor.errors import ToolError
from decisor.tools.abilities import Remembering
from decisor.tools.databases.sandbox.audit import asked_by
from decisor.tools.row_values import RowValues, is_outward
from decisor.types import Action, Observation, Record, Tool

Approve: TypeAlias = "Callable[[Action], Awaitable[str]]"
"""Waits until a person has read an action: '' where it may be done, else why not."""
UNWATCHED = ("calculator",)
VERBATIM = re.compile(r"['\"`\[$#]|--|/[*/]")
QUERIED = ("sql", "cypher")
"""Forms of tools of which the same query brings the same rows, within a run."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a query brought, as ``o<number>``."""

    number: int
    observation: Observation


@dataclass
class Toolbox:
    """Tools by name. Forks share the connections and the counter, so an id is given once in a run, and what queries
    ``brought`` before. ``approve``: what a person says of each action before it is done; what only calculates is not
    put to them. ``first``: the number of the first observation. ``row_values``: what tools that are no sources get only
    where a person allows it."""

    members: Sequence[Tool]
    counter: Iterator[int] = field(default_factory=lambda: count(1))
    approve: Approve | None = None
    first: int = 1
    brought: dict[tuple[str, str], Brought] = field(default_factory=dict)
    row_values: RowValues = field(default_factory=RowValues)

    def __post_init__(self) -> None:
        if any(map(is_outward, self.members)):
            self.row_values.add_examples(self.members)

    def tools(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.members)

    def forms(self) -> dict[str, str]:
        """Of the tools that have one: sql, cypher, passages."""
        return {tool.name: form for tool in self.members if (form := getattr(tool, "form", ""))}

    def describe(self) -> str:
        return "\n\n".join(f"### Tool: {tool.name}\n{tool.describe().strip()}" for tool in self.members)

    async def step(self, action: Action) -> Observation:
        """A query that was asked of a database before is not asked again: its rows are the same, and the note says so.
        Raises ToolError where there is no such tool, or the tool refuses or fails."""
        for tool in self.members:
            if tool.name == action.tool:
                if is_outward(tool):
                    await self.row_values.check(action, tool, self.approve is not None)
                await self.check(action)
                number = next(self.counter)
                query = (tool.name, without_layout(action.input))
                before = self.brought.get(query)
                with asked_by("model"), self.learning(tool):
                    observation = numbered(before.observation if before else await tool.call(action.input), number)
                if before:
                    same = f"The same query as o{before.number}: it was not run again."
                    observation = replace(observation, note=f"{same} {before.observation.note}".strip())
                elif getattr(tool, "form", "") in QUERIED:
                    self.brought[query] = Brought(number, observation)
                self.row_values.learn(observation, tool, self.members)
                self.remember(number, action, observation)
                return observation
        near = difflib.get_close_matches(action.tool, self.tools(), 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ToolError(f"There is no tool {action.tool!r}; there is {', '.join(self.tools())}.{hint}")

    @contextmanager
    def learning(self, tool: Tool) -> Iterator[None]:
        """A complaint of a source may quote its rows too."""
        try:
            yield
        except ToolError as error:
            self.row_values.learn(Observation(note=str(error)), tool, self.members)
            raise

    def remember(self, number: int, action: Action, observation: Observation) -> None:
        """For the tools that work with what the others bring."""
        for tool in self.members if self.remembering else ():
            if tool.name == action.tool:
                for other in self.remembering:
                    other.remember(number, action, observation, tool)

    @cached_property
    def remembering(self) -> Sequence[Remembering]:
        return [tool for tool in self.members if isinstance(tool, Remembering)]

    def numbered_from(self, first: int) -> Toolbox:
        """The same with observations that are numbered from there on."""
        return self if first == self.first else replace(self, counter=count(first), first=first)

    async def check(self, action: Action) -> None:
        """Raises ToolError where a person refuses the action. The time that they take is not the run's."""
        if self.approve is None or action.tool in UNWATCHED:
            return
        with in_line():
            refusal = await self.approve(action)
        if refusal:
            raise ToolError(refusal, refused=True)

    def fork(self) -> Toolbox:
        return replace(self)

    async def close(self) -> None:
        for tool in self.members:
            await tool.close()


def without_layout(query: str) -> str:
    """The query on one line; as it is written where space could stand in a text, a name or beside a comment.

    >>> without_layout("SELECT title\\n  FROM kind ;"), without_layout("SELECT 'a  b';")
    ('SELECT title FROM kind', "SELECT 'a  b'")
    """
    return (query.strip() if VERBATIM.search(query) else " ".join(query.split())).rstrip("; ")


def numbered(observation: Observation, number: int) -> Observation:
    """Its records by the number of the observation: r1 is o3.r1."""
    records = tuple(
        Record(f"o{number}.{one.id.rpartition('.')[2]}", one.fields, one.text, one.source, one.score)
        for one in observation.records
    )
    return replace(observation, records=records)
