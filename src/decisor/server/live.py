"""One run while it runs: what happened so far, what is being written, what waits to be allowed, and who watches."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from decisor.server.responses import State
from decisor.trace.events import ActionStart, Conclusion, Entry, FailedCall, LMCall
from decisor.trace.writing import Writing
from decisor.types import Action, Usage

NOTHING = Usage()
REFUSED = "A person refused this."


@dataclass(frozen=True)
class About:
    """What a run is of. ``owner``: the name of a user."""

    id: str
    owner: str
    question: str
    rules: str = ""
    goal: str = ""
    connections: tuple[str, ...] = ()
    technique: str = ""
    lm: str = ""
    follows: str = ""
    changed_from: str = ""
    edit: dict[str, str] = field(default_factory=dict)
    began: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(eq=False)
class Approval:
    """A query that waits. ``reply``: '' where it may be run, else why not."""

    number: int
    action: Action
    reply: asyncio.Future[str]


@dataclass(eq=False)
class LiveRun:
    """``approvals``: all there were, by number; ``writings``: the last of each call that is under way. ``spent``: so
    far."""

    about: About
    state: State = "waiting"
    entries: list[Entry] = field(default_factory=list)
    writings: dict[int, Writing] = field(default_factory=dict)
    approvals: dict[int, Approval] = field(default_factory=dict)
    watchers: set[asyncio.Event] = field(default_factory=set)
    spent: Usage = NOTHING
    error: str = ""
    task: asyncio.Task[None] | None = None
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    @property
    def is_over(self) -> bool:
        return self.state not in ("waiting", "running")

    @property
    def waiting(self) -> list[Approval]:
        return [one for one in self.approvals.values() if not one.reply.done()]

    def hear(self, entry: Entry) -> None:
        """Called by the trace with each entry."""
        self.entries.append(entry)
        match entry.event:
            case LMCall(usage=usage) | FailedCall(usage=usage):
                self.spent = self.spent + usage
            case ActionStart():
                self.spent = self.spent + Usage(actions=1)
            case _:
                pass
        self.wake()

    def hear_text(self, writing: Writing) -> None:
        """Called while the LM writes."""
        if writing.is_over:
            self.writings.pop(writing.call, None)
        else:
            self.writings[writing.call] = writing
        self.wake()

    async def approve(self, action: Action) -> str:
        """Waits until somebody allows or refuses it: '' or why not."""
        loop = asyncio.get_running_loop()
        one = Approval(len(self.approvals) + 1, action, loop.create_future())
        self.approvals[one.number] = one
        self.wake()
        try:
            return await one.reply
        finally:
            one.reply.cancel()
            self.wake()

    def decide(self, number: int, allow: bool, why: str) -> bool:
        """Whether such a query waited."""
        one = self.approvals.get(number)
        if one is None or one.reply.done():
            return False
        one.reply.set_result("" if allow else f"{REFUSED} {why}".strip())
        self.wake()
        return True

    def end(self, state: State, error: str = "") -> None:
        self.state, self.error = state, error
        self.seconds = time.monotonic() - self.started
        self.writings.clear()
        self.wake()

    def wake(self) -> None:
        for watcher in self.watchers:
            watcher.set()

    @property
    def took(self) -> float:
        return self.seconds if self.is_over else time.monotonic() - self.started

    @property
    def conclusion(self) -> Conclusion | None:
        return conclusion_of(self.entries)


def conclusion_of(entries: list[Entry]) -> Conclusion | None:
    """The run's own decision, where it has come to one."""
    for entry in reversed(entries):
        if isinstance(entry.event, Conclusion) and entry.span == 0:
            return entry.event
    return None
