"""An LM and an environment that first say again what they said in a recorded run, then go on for real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from decisor.errors import SetupError
from decisor.techniques.deciding import THINK
from decisor.techniques.past import Past, PastStep, number_of
from decisor.types import LM, Action, Completion, Environment, Message, Observation, Record, Sampling, Usage

FLAGS = {"sql": "--db", "cypher": "--graph", "passages": "--docs", "whatif": "--model"}
OWN = "--tools"


@dataclass
class Replaying:
    """The old replies first, without a call; then the LM. ``thought``: what the first new reply is to begin with."""

    held: LM
    replies: Sequence[tuple[str, str]]
    thought: str = ""
    played: int = 0

    @property
    def name(self) -> str:
        return self.held.name

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        if self.played < len(self.replies):
            text, finish = self.replies[self.played]
            self.played += 1
            return Completion((text,), Usage(), finish, self.name, replayed=True)
        if self.thought:
            last, given = messages[-1], f"\n\nYour thought for this step is:\n{self.thought}\nGo on from it.\n"
            messages, self.thought = [*messages[:-1], replace(last, content=last.content + given)], ""
        return await self.held.complete(messages, sampling)


@dataclass
class Later:
    """An environment after a past one: what was observed comes first, for as long as the same is done; then real ones,
    numbered on from there."""

    held: Environment
    past: Past
    seen: Sequence[PastStep] = ()
    played: int = 0
    shift: int = field(init=False)

    def __post_init__(self) -> None:
        names = [record.id for step in self.seen for record in step.observation.records]
        last = max((number_of(name) for name in names), default=0)
        self.shift = max(last, len(self.seen)) if self.seen else self.past.observations if self.past.answers else 0

    def tools(self) -> tuple[str, ...]:
        """With those that were there: a run is not to take another way because a tool is not named again."""
        return (*self.held.tools(), *self.missing())

    def missing(self) -> tuple[str, ...]:
        """Those that were there and are not now."""
        there = (*self.held.tools(), THINK)
        return tuple(tool for tool in self.past.tools if tool not in there)

    def describe(self) -> str:
        gone = [f"### Tool: {tool}\nNot at hand now: it cannot be used." for tool in self.missing()]
        return "\n\n".join([text for text in (self.held.describe(), *gone) if text])

    def need(self, tool: str) -> None:
        """Raises SetupError where the tool was there in the past and is not now."""
        if tool in self.missing():
            raise SetupError(f"To go on, the tool {tool} is needed: name its data again, with {FLAGS.get(tool, OWN)}.")

    async def step(self, action: Action) -> Observation:
        """Raises SetupError where the tool was there in the past and is not now."""
        if self.played < len(self.seen) and self.seen[self.played].action == action:
            self.played += 1
            return self.seen[self.played - 1].observation
        self.seen = ()
        self.need(action.tool)
        found = await self.held.step(action)
        return replace(found, records=tuple(shifted(record, self.shift) for record in found.records))

    def fork(self) -> Later:
        return replace(self, held=self.held.fork())


def shifted(record: Record, by: int) -> Record:
    _, dot, tail = record.id.partition(".")
    return replace(record, id=f"o{number_of(record.id) + by}{dot}{tail}") if number_of(record.id) else record
