"""One run while it is under way, and the writer of the history that keeps it.

``LiveRun`` holds the events so far, texts that the LLM is writing, queries that wait to be allowed, and watchers. The
history is written in a thread beside, many runs in one transaction; no run waits for it. A sight says which data a run
may have seen, and decides whether another user may see all of them too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from decisor.errors import SetupError
from decisor.history.recorder import update_past_run
from decisor.history.store import History, PastRun, Sight
from decisor.semantics.readings import OpenReading
from decisor.server.responses import State
from decisor.server.uploads import may_use
from decisor.server.users import User
from decisor.session.access import Reader
from decisor.session.pool import Pool
from decisor.session.sources import apply_connections
from decisor.system.extras import logger
from decisor.system.wording import format_count
from decisor.trace.events import ActionStart, TraceEntry, Writing, sum_call_usage
from decisor.trace.file import Prompts, TraceFile, read_entries
from decisor.types import Action, Usage


def sight_of(pool: Pool, names: Sequence[str], reader: Reader) -> Sight:
    """Return the data that a run on these connections may see for this reader."""
    sources = apply_connections(pool.sources_of(names, reader))
    kept_back = {f"without {name}" for name in sources.deny_tables}
    if sources.tables:
        kept_back.add(f"only {', '.join(sorted(sources.tables))}")
    for place in sources.places:
        rows, mask = list(place.policy.rows), list(place.policy.mask)
        if place.connection is not None:
            rows += place.connection.rows.items()
            mask += place.connection.mask
        kept_back |= {f"{place.name}.{table} where {condition}" for table, condition in rows}
        kept_back |= {f"{place.name}.{column} masked" for column in mask}
        # What one role sees, another one may not.
        kept_back |= {f"{place.name} in the role {place.role}"} if place.role else set()
    return Sight(tuple(names), tuple(sorted(kept_back)))


def join_sights(one: Sight, before: Sight | None) -> Sight:
    """Join the sight of a run with that of the run that it goes on from.

    The result has no connections if the earlier sight is not known.
    """
    # An unknown sight may have been of anything, and a sight without connections is shown to nobody.
    if before is None or not before.connections:
        return Sight()
    # Kept back is only what neither of the runs saw.
    kept_back = tuple(name for name in one.kept_back if name in before.kept_back)
    return Sight(tuple(dict.fromkeys([*one.connections, *before.connections])), kept_back)


def may_see(user: User, sight: Sight | None, pool: Pool) -> bool:
    """Return whether the user may see all that a run with this sight may have seen."""
    if sight is None or not sight.connections:
        return False
    if not all(name in pool.members and may_use(user, name, pool) for name in sight.connections):
        return False
    # All that is kept from the user now must have been kept from the run.
    return set(sight_of(pool, sight.connections, user.reader).kept_back) <= set(sight.kept_back)


REFUSED, ENDED = "A person refused this.", "The run ended before somebody replied."
READING_SECONDS = 600.0


ReplyKind = Literal["query", "words", "stop"]
"""What a person's reply to a run is about."""
ReplyKey: TypeAlias = tuple[ReplyKind, int]


@dataclass(eq=False)
class Asked:
    """A query that waits to be allowed, or words of the question that wait for their meaning."""

    number: int
    query: Action | None = None
    words: OpenReading | None = None
    reply: str | None = None
    """Of a query: '' if it may run, else why not. Of words: their meaning, '' if nobody says. None while it waits."""

    @property
    def key(self) -> ReplyKey:
        return "words" if self.query is None else "query", self.number


@dataclass(frozen=True)
class Shown:
    """What a page shows of a run under way besides its entries."""

    state: State
    count: str = ""
    writings: tuple[Writing, ...] = ()
    asked: tuple[Asked, ...] = ()


@dataclass(eq=False)
class LiveRun:
    """One run under way, or one read from the history."""

    past: PastRun
    """The run as the history will have it."""
    id: str
    """Its number in the history, or a name of its own if it has none."""
    connections: tuple[str, ...] = ()
    state: State = "waiting"
    entries: Sequence[TraceEntry] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """Texts of its entries, as its streams send them."""
    writings: dict[int, Writing] = field(default_factory=dict)
    """Last text of each LLM call under way."""
    count: str = ""
    """How far a decision model has computed, in words."""
    asked: dict[ReplyKey, Asked] = field(default_factory=dict)
    """All queries and words that waited or wait for a person."""
    watchers: set[asyncio.Event] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    started: float = field(default_factory=time.monotonic)
    is_kept: bool = False
    """Whether the history has the run."""
    written: int = 0
    """How many of its entries the history has."""
    given: Mapping[ReplyKey, str] = field(default_factory=dict)
    """What people replied while another process had the run."""
    pass_on: Callable[[ReplyKind, int, str], None] | None = None
    """Passes a reply on to the process that has the run; None for this one."""
    attempt: int = 0
    """Which attempt of the run its entries are of, where several processes may do it."""
    prompts: Prompts = field(default_factory=dict)
    """Prompts of entries that another process published, for later ones that add to them."""

    @property
    def is_own(self) -> bool:
        """Whether this process does the run, or did it."""
        return self.pass_on is None

    @property
    def is_over(self) -> bool:
        return self.state not in ("waiting", "running")

    @property
    def seconds(self) -> float:
        return self.past.seconds if self.is_over else time.monotonic() - self.started

    @property
    def spent(self) -> Usage:
        """Usage of the run so far."""
        if self.past.usage.calls or self.is_over:
            return self.past.usage
        actions = sum(isinstance(one.event, ActionStart) for one in self.entries)
        return sum_call_usage(self.entries) + Usage(actions=actions)

    def check_kept(self) -> None:
        """Raise SetupError if the history does not have the run yet."""
        if not self.is_kept:
            raise SetupError("A run is marked, approved and shown to others when it is over and in the history.")

    @property
    def shown(self) -> Shown:
        return Shown(self.state, self.count, tuple(self.writings.values()), tuple(self.asked.values()))

    def show(self, shown: Shown) -> None:
        """Show what the process that has the run published."""
        self.state, self.count = shown.state, shown.count
        self.writings = {one.call: one for one in shown.writings}
        for asked in shown.asked:
            # A reply that was given here may not have come there yet.
            if (before := self.asked.get(asked.key)) is None or before.reply is None:
                self.asked[asked.key] = asked

    def begin_anew(self, attempt: int) -> None:
        """Forget what an earlier attempt of the run did."""
        self.attempt, self.written = attempt, 0
        # Queries and words are counted from 1 again, and find their replies.
        self.entries, self.texts, self.prompts, self.writings, self.asked = [], [], {}, {}, {}

    def add(self, attempt: int, shown: Shown | None, lines: Sequence[str]) -> None:
        """Add what the process that has the run published since the last time."""
        if attempt > self.attempt:
            self.begin_anew(attempt)
        for entry in read_entries(lines, self.prompts):
            self.hear(entry)
        if shown is not None:
            self.show(shown)
        self.wake()

    def hear(self, entry: TraceEntry) -> None:
        """Add an entry; the trace calls it with each one."""
        assert isinstance(self.entries, list)
        self.entries.append(entry)
        self.past = update_past_run(self.past, entry)
        self.wake()

    def hear_text(self, writing: Writing) -> None:
        """Note a text that the LLM is writing."""
        if writing.is_over:
            self.writings.pop(writing.call, None)
        else:
            self.writings[writing.call] = writing
        self.wake()

    def hear_count(self, what: str, done: int, count: int) -> None:
        """Note how far a decision model has computed, as a ``tasks.COUNTER``: from the thread that computes."""
        self.count = f"Computed {done:,} of {format_count(count, what)}"
        if self.task is not None:
            self.task.get_loop().call_soon_threadsafe(self.wake)

    async def approve(self, action: Action) -> str:
        """Wait until somebody allows or refuses a query; return '' or why not."""
        return await self.wait_for_person(Asked(self.count_asked("query") + 1, query=action))

    async def read(self, reading: OpenReading) -> str:
        """Wait until somebody says a meaning, at most ``READING_SECONDS``; return '' if nobody does."""
        return await self.wait_for_person(Asked(self.count_asked("words") + 1, words=reading), READING_SECONDS)

    def count_asked(self, kind: ReplyKind) -> int:
        return sum(other == kind for other, _ in self.asked)

    async def wait_for_person(self, asked: Asked, seconds: float | None = None) -> str:
        """Return what a person replies, '' if nobody does within ``seconds``."""
        self.asked[asked.key], changed = asked, asyncio.Event()
        asked.reply = self.given.get(asked.key)
        self.wake()
        self.watchers.add(changed)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while asked.reply is None:
                        await changed.wait()
                        changed.clear()
            asked.reply = asked.reply or ""
            return asked.reply
        finally:
            # A run that is stopped while it waits leaves nothing to answer.
            asked.reply = ENDED if asked.reply is None else asked.reply
            self.watchers.discard(changed)
            self.wake()

    def answer(self, kind: ReplyKind, number: int, reply: str) -> bool:
        """Answer what waits; return False if nothing does."""
        asked = self.asked.get((kind, number))
        if asked is None or asked.reply is not None:
            return False
        asked.reply = reply
        if self.pass_on is not None:
            self.pass_on(kind, number, reply)
        self.wake()
        return True

    def end(self, state: State, error: str = "") -> None:
        """End the run. state: its end if it came to no decision."""
        past = self.past
        # The trace came to no conclusion: say how the run ended.
        if past.state == "running":
            past = replace(past, state="failed" if state == "failed" else "interrupted", why=error)
        self.past = replace(
            past, entries=len(self.entries), seconds=round(time.monotonic() - self.started, 3), usage=self.spent
        )
        self.state = state_for_client(self.past)
        self.writings.clear()
        self.over.set()
        self.wake()

    def wake(self) -> None:
        for watcher in self.watchers:
            watcher.set()


def state_for_client(past: PastRun) -> State:
    """Return the state of a run as a client is told it."""
    match past.state:
        case "running" | "failed":
            return past.state
        case "interrupted":
            return "stopped"
        case _:
            return "finished"


def live_run_of_past(past: PastRun, entries: Sequence[TraceEntry], connections: tuple[str, ...]) -> LiveRun:
    """Return a run of the history, to be read as if it had just ended."""
    own = tuple(name for name in connections if name in past.tools)
    return LiveRun(past, str(past.number), own, state_for_client(past), entries, is_kept=True)


TICK_SECONDS = 1.0
"""How often the traces of runs that are under way are written."""


@dataclass(eq=False)
class HistoryWriter:
    """The writer of a server's history, with many runs in one transaction.

    All file access happens in one thread at a time.
    """

    history: History
    beginning: list[tuple[PastRun, asyncio.Future[int]]] = field(default_factory=list)
    """New runs that wait for the next transaction."""
    ending: list[tuple[LiveRun, asyncio.Future[None]]] = field(default_factory=list)
    """Finished runs that wait for the next transaction."""
    traces: dict[int, TraceFile] = field(default_factory=dict)
    """Open traces, by number of the run."""
    live: dict[int, LiveRun] = field(default_factory=dict)
    """Runs under way, by number."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    written_at: float = 0.0
    fault: str = ""

    async def begin(self, run: PastRun) -> int:
        """Return the number of a new run; 0 if the history cannot be written.

        Then ``fault`` says why, and the run goes on.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.beginning.append((run, future))
        self.news.set()
        return await future

    async def end(self, live: LiveRun) -> None:
        """Write all of a finished run before returning."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ending.append((live, future))
        self.news.set()
        await future

    async def work(self) -> None:
        """Write the history again and again until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self.news.wait()
            self.news.clear()
            await self.write()

    async def write(self) -> None:
        begun, ended = self.beginning, self.ending
        # Runs that come while the thread writes wait in new lists for the next transaction.
        self.beginning, self.ending = [], []
        open_runs = self.due()
        over = [live for live, _ in ended]
        numbers = await asyncio.to_thread(self.written, [run for run, _ in begun], open_runs, over)
        for (_, began), number in zip(begun, numbers, strict=True):
            # Whoever waited may have been cancelled meanwhile.
            if not began.done():
                began.set_result(number)
        for live, done in ended:
            self.live.pop(live.past.number, None)
            if not done.done():
                done.set_result(None)

    def due(self) -> Sequence[LiveRun]:
        """Return the runs under way whose traces were not written for a while."""
        now = time.monotonic()
        if now - self.written_at < TICK_SECONDS:
            return ()
        self.written_at = now
        return [live for number, live in self.live.items() if number in self.traces]

    def written(self, begun: Sequence[PastRun], live: Sequence[LiveRun], over: Sequence[LiveRun]) -> list[int]:
        """Write runs and return the numbers of the new ones. A fault here ends no run."""
        numbers = [0] * len(begun)
        for one in live:
            with self.survives():
                write_new_entries(self.traces[one.past.number], one)
        with self.survives():
            self.finish([one for one in over if one.past.number])
        if begun:
            with self.survives():
                numbers = self.history.begin_all(begun)
                self.fault = ""
                for number in numbers:
                    self.open(number)
        return numbers

    @contextmanager
    def survives(self) -> Iterator[None]:
        """Note any error: the other runs wait for this thread."""
        try:
            yield
        except Exception as error:
            self.fail(str(error) or type(error).__name__)

    def fail(self, why: str) -> None:
        if not self.fault:
            logger.warning("the history cannot be written: %s", why)
        self.fault = why

    def open(self, number: int) -> None:
        """Open the trace of a run. If that fails there is no trace, and the run goes on."""
        try:
            self.traces[number] = self.history.open_trace(number)
        except OSError as error:
            self.fail(error.strerror or str(error))

    def finish(self, over: Sequence[LiveRun]) -> None:
        """Write finished runs. One whose trace is not whole can be read from memory alone."""
        whole = set[int]()
        for one in over:
            trace = self.traces.pop(one.past.number, None)
            if trace is not None:
                with self.survives(), closing(trace):
                    write_new_entries(trace, one)
                    whole |= set() if trace.fault else {one.past.number}
        if over:
            self.history.write_all([one.past for one in over])
        for one in over:
            one.is_kept = one.past.number in whole

    async def close(self) -> None:
        """Write the rest and close all traces."""
        await self.write()
        for trace in self.traces.values():
            trace.close()


def write_new_entries(trace: TraceFile, live: LiveRun) -> None:
    if news := live.entries[live.written :]:
        trace.write(*news)
        live.written += len(news)
