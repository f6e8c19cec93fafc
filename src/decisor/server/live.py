"""One run while it runs: what happened so far, what is being written, what waits to be allowed, and who watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from decisor.definitions.readings.open import OpenReading
from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.recording import after
from decisor.server.responses import State
from decisor.trace.events import ActionStart, Entry, FailedCall, LMCall
from decisor.trace.writing import Writing
from decisor.types import Action, Usage

REFUSED = "A person refused this."
READING_SECONDS = 600.0


@dataclass(eq=False)
class WaitingQuery:
    """A query that waits. ``reply``: '' where it may be run, else why not."""

    number: int
    action: Action
    reply: asyncio.Future[str]


@dataclass(eq=False)
class OpenWords:
    """Words of the question that wait for what they mean. ``reply``: '' where nobody says."""

    number: int
    reading: OpenReading
    reply: asyncio.Future[str]


@dataclass(eq=False)
class LiveRun:
    """``past``: what the history will have of it. ``id``: its number there, or a name of its own where there is none.
    ``texts``: of its entries, as its streams send them. ``approvals``, ``readings``: all there were, by number;
    ``writings``: the last of each call that is under way.
    ``is_kept``: the history has it."""

    past: PastRun
    id: str
    connections: tuple[str, ...] = ()
    state: State = "waiting"
    entries: Sequence[Entry] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    writings: dict[int, Writing] = field(default_factory=dict)
    approvals: dict[int, WaitingQuery] = field(default_factory=dict)
    readings: dict[int, OpenWords] = field(default_factory=dict)
    watchers: set[asyncio.Event] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    started: float = field(default_factory=time.monotonic)
    is_kept: bool = False

    @property
    def is_over(self) -> bool:
        return self.state not in ("waiting", "running")

    @property
    def waiting(self) -> list[WaitingQuery]:
        return [one for one in self.approvals.values() if not one.reply.done()]

    @property
    def seconds(self) -> float:
        return self.past.seconds if self.is_over else time.monotonic() - self.started

    @property
    def spent(self) -> Usage:
        """So far."""
        if self.past.usage.calls or self.is_over:
            return self.past.usage
        calls = [one.event.usage for one in self.entries if isinstance(one.event, LMCall | FailedCall)]
        actions = sum(isinstance(one.event, ActionStart) for one in self.entries)
        return sum(calls, Usage(actions=actions))

    def check_kept(self) -> None:
        """Raises SetupError where the history does not have it yet."""
        if not self.is_kept:
            raise SetupError("A run is marked, approved and shown to others when it is over and in the history.")

    def hear(self, entry: Entry) -> None:
        """Called by the trace with each entry."""
        assert isinstance(self.entries, list)
        self.entries.append(entry)
        self.past = after(self.past, entry)
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
        one = WaitingQuery(len(self.approvals) + 1, action, asyncio.get_running_loop().create_future())
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

    async def read(self, reading: OpenReading) -> str:
        """Waits, not for ever, until somebody says what is meant; '' where nobody does."""
        one = OpenWords(len(self.readings) + 1, reading, asyncio.get_running_loop().create_future())
        self.readings[one.number] = one
        self.wake()
        try:
            return await asyncio.wait_for(one.reply, READING_SECONDS)
        except TimeoutError:
            return ""
        finally:
            one.reply.cancel()
            self.wake()

    def say(self, number: int, answer: str) -> bool:
        """Whether such words waited."""
        one = self.readings.get(number)
        if one is None or one.reply.done():
            return False
        one.reply.set_result(answer)
        self.wake()
        return True

    def end(self, state: State, error: str = "") -> None:
        """``state``: where it came to no decision."""
        past = self.past
        if past.state == "running":
            past = replace(past, state="failed" if state == "failed" else "interrupted", why=error)
        self.past = replace(past, entries=len(self.entries), seconds=round(time.monotonic() - self.started, 3),
                            usage=self.spent)  # fmt: skip
        self.state = state_of(self.past)
        self.writings.clear()
        self.over.set()
        self.wake()

    def wake(self) -> None:
        for watcher in self.watchers:
            watcher.set()


def state_of(past: PastRun) -> State:
    """What a client is told."""
    match past.state:
        case "running" | "failed":
            return past.state
        case "interrupted":
            return "stopped"
        case _:
            return "finished"


def from_past(past: PastRun, entries: Sequence[Entry], connections: tuple[str, ...]) -> LiveRun:
    """A run of the history, to be read as if it had just ended."""
    own = tuple(name for name in connections if name in past.tools)
    return LiveRun(past, str(past.number), own, state_of(past), entries, is_kept=True)
