"""The environment of a run: named tools, and ids for all records that they return (o3.r1).

A query that was run before is answered from the cache. A person may have to approve each action, and row values reach
outward tools only as the policy allows. ``PersonTool`` asks the person at the terminal: one question, one line of
answer. ``describe_holdings`` describes a source in one line.
"""

from __future__ import annotations

import asyncio
import difflib
import re
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TypeAlias

from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from decisor.graphs.cypher import CypherTool
from decisor.runtime.budget import pause_clocks
from decisor.sandbox.process import set_asker
from decisor.system.text import fit_on_one_line
from decisor.tools.abilities import Remembering, RowSource, TypedTool, is_database_tool
from decisor.tools.row_values import RowValues, is_outward
from decisor.types import Action, Function, Observation, Record, Tool

Approve: TypeAlias = "Callable[[Action], Awaitable[str]]"
"""Waits until a person has read an action: '' where it may be done, else why not."""
UNWATCHED = ("calculator",)
VERBATIM = re.compile(r"['\"`\[$#]|--|/[*/]")


@dataclass(frozen=True, slots=True)
class CachedObservation:
    """An observation of an earlier query, with its number as in ``o<number>``."""

    number: int
    observation: Observation


@dataclass
class Toolbox:
    """The tools of a run by name, with ids for their records.

    Forks share connections, the counter (so an id is given once in a run) and cached observations.
    """

    members: Sequence[Tool]
    counter: Iterator[int] = field(default_factory=lambda: count(1))
    approve: Approve | None = None
    """Asks a person about each action before it is executed, calculations excepted."""
    first: int = 1
    """Number of the first observation."""
    cache: dict[tuple[str, str], CachedObservation] = field(default_factory=dict)
    under_way: defaultdict[tuple[str, str], asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """Of each query of a database, so that the same one twice at once is run once."""
    approval: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A person is asked about one action at a time."""
    row_values: RowValues = field(default_factory=RowValues)
    """Values of rows, which tools other than sources get only with a person's permission."""

    def __post_init__(self) -> None:
        if any(map(is_outward, self.members)):
            self.row_values.add_examples(self.members)

    def tools(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.members)

    def forms(self) -> dict[str, str]:
        """Return tool name to its language (sql, cypher, passages) for tools that have one."""
        return {tool.name: tool.form for tool in self.members if isinstance(tool, RowSource) and tool.form}

    def functions(self) -> tuple[Function, ...]:
        """Return the functions of tools whose input is a JSON object, with its schema."""
        return tuple(
            Function(tool.name, f"See {tool.name} under Data.", dict(tool.arguments.schema))
            for tool in self.members
            if isinstance(tool, TypedTool) and "$ref" not in str(tool.arguments.schema)
        )

    def describe(self) -> str:
        return "\n\n".join(f"### Tool: {tool.name}\n{tool.describe().strip()}" for tool in self.members)

    async def step(self, action: Action) -> Observation:
        """Execute an action; a repeated database query is answered from the cache, and the note says so.

        Raise ToolError if the tool does not exist, refuses or fails.
        """
        for tool in self.members:
            if tool.name == action.tool:
                # Before anything is waited for: actions at the same time are numbered in the order of their calls.
                number = next(self.counter)
                if is_outward(tool):
                    # Before the person is asked, so that nobody approves what must not be sent.
                    await self.row_values.check(action, tool, self.approve is not None)
                await self.check(action)
                query = (tool.name, normalize_layout(action.input))
                async with self.under_way[query] if is_database_tool(tool) else nullcontext():
                    before = self.cache.get(query)
                    with set_asker("model"), self.learning(tool):
                        observation = before.observation if before else await tool.call(action.input)
                    # Ids of the tool (r1) become ids of the run (o3.r1).
                    records = (
                        replace(record, id=f"o{number}.{record.id.rpartition('.')[2]}")
                        for record in observation.records
                    )
                    observation = replace(observation, records=tuple(records))
                    if before:
                        same = f"The same query as o{before.number}: it was not run again."
                        observation = replace(observation, note=f"{same} {before.observation.note}".strip())
                    elif is_database_tool(tool):  # the same query brings the same rows, within a run
                        self.cache[query] = CachedObservation(number, observation)
                # Also from the cache: the values were seen in this run all the same.
                self.row_values.learn(observation, tool, self.members)
                self.remember(number, action, observation)
                return observation
        near = difflib.get_close_matches(action.tool, self.tools(), 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ToolError(f"There is no tool {action.tool!r}; there is {', '.join(self.tools())}.{hint}")

    @contextmanager
    def learning(self, tool: Tool) -> Iterator[None]:
        """Learn the row values that a source quotes in a complaint."""
        try:
            yield
        except ToolError as error:
            self.row_values.learn(Observation(note=str(error)), tool, self.members)
            raise

    # Called with recorded observations too, when a run is resumed: combine must find what was fetched before.
    def remember(self, number: int, action: Action, observation: Observation) -> None:
        """Pass an observation to the tools that work with the records of others."""
        for tool in self.members if self.remembering else ():
            if tool.name == action.tool:
                for member in self.remembering:
                    member.remember(number, action, observation, tool)

    @cached_property
    def remembering(self) -> Sequence[Remembering]:
        return [tool for tool in self.members if isinstance(tool, Remembering)]

    def numbered_from(self, first: int) -> Toolbox:
        """Return the toolbox with observations numbered from ``first``."""
        return self if first == self.first else replace(self, counter=count(first), first=first)

    async def check(self, action: Action) -> None:
        """Raise ToolError if a person refuses the action. The time of waiting does not count for the run."""
        if self.approve is None or action.tool in UNWATCHED:
            return
        with pause_clocks():
            async with self.approval:
                refusal = await self.approve(action)
        if refusal:
            raise ToolError(refusal, refused=True)

    def fork(self) -> Toolbox:
        return replace(self)

    async def close(self) -> None:
        for tool in self.members:
            await tool.close()


def normalize_layout(query: str) -> str:
    """Put a query on one line. It stays as written if white space may matter in a text, a name or beside a comment.

    >>> normalize_layout("SELECT title\\n  FROM kind ;"), normalize_layout("SELECT 'a  b';")
    ('SELECT title FROM kind', "SELECT 'a  b'")
    """
    return (query.strip() if VERBATIM.search(query) else " ".join(query.split())).rstrip("; ")


CHARS = 160


def describe_holdings(tool: Tool) -> str:
    """Describe the tables of a database or the labels of a graph on one line.

    Documents are only named as such; empty for other tools.
    """
    match tool:
        case SqlTool():
            names = [table.name for table in tool.tables]
            what = f"{tool.worker.description.title}, {len(names)} table{'s' * (len(names) != 1)}:"
        case CypherTool():
            names = list(tool.schema.labels)
            what = "a graph of"
        case _:
            return "passages of documents" if isinstance(tool, RowSource) and tool.form == "passages" else ""
    return fit_on_one_line(f"{what} {', '.join(names)}", CHARS)


EMPTY = "The person does not know."


def is_person_present() -> bool:
    """Return whether a person at a terminal can read a question and answer it."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


@dataclass(frozen=True)
class PersonTool:
    """The person at the terminal as a tool.

    Satisfies ``types.Tool``. The question goes to standard error, so that standard output stays clean.
    """

    name: str = "person"

    def describe(self) -> str:
        return "The person who asks: a question that the rules leave open, answered in one line."

    async def call(self, text: str) -> Observation:
        answer = await asyncio.to_thread(ask_on_terminal, f"{' '.join(text.split())} ")
        return Observation((Record("r1", {"question": text, "answer": answer or EMPTY}, source=self.name),))

    async def close(self) -> None:
        """Close nothing; the tool holds nothing open."""


def ask_on_terminal(words: str) -> str:
    """Ask a question on the terminal and return the line of the answer; empty at the end of the input."""
    print(words, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()
