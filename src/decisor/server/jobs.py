"""Runs of all processes of a server, over one PostgreSQL.

A process does the runs that it is asked for itself, as long as it has a free place and no more than its share; others
wait in line for any process. The process that has a run publishes its entries and what a page shows of it, so that
every process can show it; what people say to it comes back the same way. The runs of a process that dies are put in
line again, and done anew with the replies that were bought and said.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from psycopg import AsyncConnection, OperationalError

from decisor.errors import Error, SetupError
from decisor.history.postgres import (
    ALIVE,
    CHANNEL,
    MOST_IN_LINE,
    News,
    PostgresPlace,
    Taken,
    Unreachable,
    Wish,
)
from decisor.history.store import PAST_RUN, PastRun
from decisor.llms.shared import Journal
from decisor.server.live import LiveRun, ReplyKind, Shown, state_for_client
from decisor.server.requests import Order
from decisor.server.runs import NotThere, Prepared, Runs
from decisor.server.settings import Full
from decisor.server.stream import wait_for_event
from decisor.server.users import SESSION, Sessions, User
from decisor.system.extras import logger
from decisor.system.secrets import redact
from decisor.system.serialization import DocumentFormat, json_text
from decisor.trace.events import TraceEntry
from decisor.trace.file import trace_line_format
from decisor.trace.telemetry import continue_trace, find_traceparent
from decisor.types import Completion

GATHER_SECONDS = 0.05
TICK_SECONDS = 0.15
"""How often what is new of runs is published."""
LOOK_SECONDS = 2.0
"""How often a process looks for runs that nobody does; what it finds twice is put in line again."""
CLOSE_SECONDS = 5.0
OWN_SHARE = 8
"""Runs that a process does itself; of more, twice its part of all."""
# Both sides see within seconds that a machine is gone, or a cable.
KEEPALIVE: Mapping[str, Any] = {
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "options": "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3",
}
# It would tell each connection that is gone; the log here says it once.
logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
COMPLETION, SHOWN = DocumentFormat(Completion), DocumentFormat(Shown)


@dataclass(eq=False)
class Own:
    """A run that this process has; a ``Book`` of the replies that LLMs gave it."""

    live: LiveRun
    purchases: Purchases
    bought: Mapping[str, str] = field(default_factory=dict)
    """Replies that an earlier attempt bought, as JSON."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    is_lost: bool = False
    """Whether another attempt of it has begun."""
    is_stored: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its end is stored, or it is lost."""

    def lose(self) -> None:
        """Stop doing it, for another attempt of it has begun."""
        self.is_lost = True
        self.is_stored.set()
        if self.live.task is not None:
            self.live.task.cancel()

    @property
    def is_changed(self) -> bool:
        """Whether there is something to store: of a run that is over, its end, once."""
        return not self.is_stored.is_set() if self.live.is_over else self.news.is_set()

    async def reply(self, key: str) -> Completion | None:
        return COMPLETION.decode(self.bought[key]) if key in self.bought else None

    async def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        if usable:
            await self.purchases.keep(self.live.past.number, key, json_text(reply))
        return reply

    def take_news(self) -> News:
        self.news.clear()
        live = self.live
        return News(live.past.number, live.attempt, live.written, live.entries[live.written :], json_text(live.shown))


@dataclass(eq=False)
class Purchases:
    """The replies of LLMs to the runs of this process, stored before a run goes on. Many are stored at once."""

    place: PostgresPlace
    waiting: list[tuple[tuple[int, str, str], asyncio.Future[None]]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def keep(self, number: int, key: str, reply: str) -> None:
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(((number, key, reply), stored))
        self.news.set()
        await stored

    async def work(self) -> None:
        """Store what waits, for ever. Meanwhile more comes, to be stored together."""
        while True:
            await self.news.wait()
            self.news.clear()
            batch, self.waiting = self.waiting, []
            fault: SetupError | None = None
            try:
                await until_reached(self.place.keep_bought, [row for row, _ in batch])
            except SetupError as error:
                fault = error
            for _, stored in batch:
                # Its run may have been stopped meanwhile.
                if not stored.done():
                    stored.set_exception(fault) if fault else stored.set_result(None)


async def until_reached(act: Any, *values: object) -> Any:
    """Call a function of the store in a thread, again and again while PostgreSQL cannot be reached."""
    while True:
        try:
            return await asyncio.to_thread(act, *values)
        except Unreachable as error:
            logger.warning("%s", error)
            await asyncio.sleep(1)


async def keep_going(work: Callable[[], Awaitable[None]]) -> None:
    """Do work that has no end; again after a fault, as where PostgreSQL was gone."""
    while True:
        try:
            await work()
        except (OperationalError, SetupError) as error:
            logger.warning("the store cannot be used: %s", error)
        except Exception as error:
            logger.error("a part of the line of runs begins again", exc_info=error)
        await asyncio.sleep(1)


class ProcessLine:
    """The line of runs, as one process sees it."""

    def __init__(self, runs: Runs, place: PostgresPlace) -> None:
        self.runs, self.place = runs, place
        self.process, self.processes = secrets.randbits(31), 1
        self.own: dict[int, Own] = {}
        self.purchases = Purchases(place)
        self.sessions = runs.serving.users.sessions = Sessions(place=place)
        self.is_heard = asyncio.Event()
        """Set while the store can be heard."""
        self.told_line = asyncio.Event()
        self.ending = asyncio.Event()
        self.turn = asyncio.Lock()
        """Of reading what is new of other processes' runs: the same lines are read once."""
        self.news: set[int] = set()
        self.told_news = asyncio.Event()
        self.doing: set[asyncio.Task[None]] = set()
        self.told: set[asyncio.Task[None]] = set()
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Begin to take runs."""
        # Built by one thread: pydantic is not made for several that build at once.
        for layout in (PAST_RUN, SHOWN, COMPLETION, SESSION, trace_line_format()):
            assert layout.adapter
        await until_reached(self.place.prepare)
        for work in (self.purchases.work, self.publish, self.hear, self.look, self.take, self.take_over):
            self.tasks.append(asyncio.create_task(keep_going(work)))
        # Before that its runs would be those of a process that is dead.
        await self.is_heard.wait()

    async def close(self) -> None:
        """Give the runs back to the line, and stop."""
        for own in self.own.values():
            if own.live.task is not None:
                own.live.task.cancel()
        if self.doing:
            await asyncio.wait(self.doing, timeout=CLOSE_SECONDS)
        for task in (*self.tasks, *self.doing):
            task.cancel()
        await asyncio.wait([*self.tasks, *self.doing], timeout=CLOSE_SECONDS)
        # Where it cannot be told, the others see that this process is gone.
        with suppress(SetupError):
            await asyncio.to_thread(self.place.leave, self.process)
        await asyncio.to_thread(self.place.close)

    # Runs that this process does.

    @property
    def is_reached(self) -> bool:
        return self.is_heard.is_set()

    @property
    def has_room(self) -> bool:
        return len(self.doing) < self.runs.serving.at_once and not self.runs.is_closing

    async def begin(self, prepared: Prepared, order: Order, user: User, key: str) -> LiveRun:
        past = prepared.past
        crowd, at_once = next(((name, one.at_once) for name, one in user.budgets if one.at_once), (None, None))
        wish = Wish(past, order.model_dump_json(), key, crowd, at_once, find_traceparent())
        process = self.process if self.has_room and not crowd else None
        # As long as this process has no more than twice its part of all.
        least = (len(self.doing) - OWN_SHARE) * self.processes / 2
        begun = await asyncio.to_thread(self.place.put_in_line, wish, process, least)
        if begun is None:
            raise Full(f"{MOST_IN_LINE:,} runs wait already: try again later.")
        number, is_new, is_own = begun
        if not is_new:
            return await self.runs.of_history(number, past.owner)
        past = replace(past, number=number)
        if is_own:
            return self.start(Taken(past, wish.job, traceparent=wish.traceparent), order, prepared)
        return self.find_live(past)

    async def take(self) -> None:
        """Take runs that wait as there is room, for ever."""
        while True:
            await self.told_line.wait()
            self.told_line.clear()
            # A run that this process has still is not done twice here: it is taken back, or lost first.
            while self.has_room and (taken := await asyncio.to_thread(self.place.take, self.process, [*self.own])):
                self.start(taken, Order.model_validate_json(taken.job))

    def start(self, taken: Taken, order: Order, prepared: Prepared | None = None) -> LiveRun:
        """Begin to do a run."""
        live = self.find_live(taken.past)
        if own := self.own.get(taken.past.number):
            # Put in line, and taken, before this process knew that it has the run: a look for strays finds a later one.
            if taken.attempt > live.attempt:
                own.lose()
            return live
        live.past, live.given, live.pass_on = taken.past, taken.replies, None
        live.begin_anew(taken.attempt)
        own = self.own[taken.past.number] = Own(live, self.purchases)
        with continue_trace(taken.traceparent):
            task = asyncio.create_task(self.carry_out(own, order, prepared))
        self.doing.add(task)
        task.add_done_callback(self.doing.discard)
        return live

    async def carry_out(self, own: Own, order: Order, prepared: Prepared | None) -> None:
        """Do one run, from its beginning to its end or to that of this process."""
        live = own.live
        try:
            live.watchers.add(own.news)
            if await self.decide(own, order, prepared):
                await self.end(own)
        except Exception as error:
            # It is found by a look for runs that nobody does.
            logger.error("run %s is left to another process", live.id, exc_info=error)
        finally:
            if live.task is not None and not live.task.done():
                live.task.cancel()
                await asyncio.wait([live.task])
            live.watchers.discard(own.news)
            del self.own[live.past.number]
            self.runs.live.pop(live.id, None)
            self.runs.wake(live)
            self.told_line.set()

    async def decide(self, own: Own, order: Order, prepared: Prepared | None) -> bool:
        """Do a run; return whether it came to its end, and was not lost or given back."""
        live, user = own.live, self.runs.serving.users.named(order.user, order.groups)
        if ("stop", 0) in live.given:
            live.end("stopped")
            return True
        try:
            if user is None:
                raise SetupError(f"There is no user {order.user!r} any more.")
            prepared = prepared or await self.runs.prepare(user, order)
        except Unreachable:
            return False
        except (Error, NotThere) as error:
            live.end("failed", redact(str(error)))
            return True
        live.connections = prepared.names
        if live.attempt > 1:
            own.bought = await until_reached(self.place.bought, live.past.number)
        if self.runs.is_closing or own.is_lost:
            return False
        live.task = asyncio.create_task(self.runs.run_work(live, user, order, prepared.work, Journal(own)))
        # Not awaited itself: the end of this task must not end it without a word.
        await asyncio.wait([live.task])
        if own.is_lost or (self.runs.is_closing and not live.is_over):
            return False
        if not live.is_over:
            live.end("stopped")
        return True

    async def end(self, own: Own) -> None:
        """Wait until the rest of a run that is over is stored."""
        self.runs.tell_end(own.live)
        self.ending.set()
        await own.is_stored.wait()
        own.live.is_kept = True

    async def publish(self) -> None:
        """Store what is new of this process's runs, again and again."""
        while True:
            # An end is told at once.
            await wait_for_event(self.ending, TICK_SECONDS)
            self.ending.clear()
            changed = [one for one in self.own.values() if one.is_changed]
            if not changed:
                continue
            news = [own.take_news() for own in changed]
            ends = [own.live.past for own in changed if own.live.is_over]
            lost = await until_reached(self.place.publish, self.runs.keeper.history, news, ends)
            for own, one in zip(changed, news, strict=True):
                if one.number in lost:
                    logger.warning("run %s was taken over by another process", one.number)
                    own.lose()
                elif not own.is_lost:
                    own.live.written += len(one.entries)
                    # A run that ended meanwhile is in the next round.
                    if own.live.past in ends:
                        own.is_stored.set()

    async def take_over(self) -> None:
        """Put runs that nobody does in line again, for ever."""
        seen = set[int]()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            # Seen twice: a process whose connection was cut has a new one by then, and a run that was put has begun.
            own = {number: one.live.attempt for number, one in self.own.items()}
            release = self.place.release_strays
            strays, freed, processes = await asyncio.to_thread(release, self.process, own, list(seen))
            for number in freed:
                logger.warning("run %s goes on in another process", number)
            seen, self.processes = strays - freed, max(1, processes)
            self.told_line.set()

    # Runs that others do.

    def find_live(self, past: PastRun) -> LiveRun:
        """Return a run under way as this process has it; one that is new to it is another process's, or waits."""
        number, id = past.number, str(past.number)
        if id not in self.runs.live:
            names = past.sight.connections if past.sight else ()
            live = LiveRun(past, id, tuple(name for name in names if name in self.runs.pool.members))
            live.pass_on = lambda kind, which, text: self.pass_on(number, kind, which, text)
            self.runs.live[id] = live
            self.runs.wake(live)
        return self.runs.live[id]

    def mirror_of(self, number: int) -> LiveRun | None:
        """Return a run that another process has, or that waits, as this one shows it; None if it does not."""
        live = self.runs.live.get(str(number))
        return live if live is not None and not live.is_own else None

    async def follow(self, past: PastRun) -> LiveRun | None:
        """Return a run that is under way anywhere, as it is now; None if it ended elsewhere."""
        live = self.find_live(past)
        await self.refresh(past.number)
        # What this process has of it may lack the last entries.
        return live if live.is_own or not live.is_over else None

    async def stop(self, live: LiveRun) -> None:
        # What it is if it waits in line: a copy, for its process may say otherwise.
        stopped = replace(live, watchers=set(), over=asyncio.Event(), writings={})
        stopped.end("stopped")
        await asyncio.to_thread(self.place.stop, self.runs.keeper.history, stopped.past)

    async def uses(self, user: User, name: str) -> bool:
        runs = await asyncio.to_thread(self.place.under_way, user.name)
        # The end of a run of this process may not be stored yet.
        over = {number for number, own in self.own.items() if own.live.is_over}
        return any(run.sight and name in run.sight.connections for run in runs if run.number not in over)

    async def count_waiting(self) -> int:
        return await asyncio.to_thread(self.place.count_waiting) if self.is_reached else 0

    def pass_on(self, number: int, kind: ReplyKind, which: int, text: str) -> None:
        task = asyncio.create_task(until_reached(self.place.reply, number, kind, which, text))
        self.told.add(task)
        task.add_done_callback(self.told.discard)

    async def refresh(self, *numbers: int) -> None:
        """Read what is new of runs that other processes have."""
        async with self.turn:
            known = {number: live for number in numbers if (live := self.mirror_of(number))}
            if not known:
                return
            read = [(number, live.attempt, len(live.entries)) for number, live in known.items()]
            news = await asyncio.to_thread(self.place.news_since, read)
            for number, (attempt, shown, lines) in news.items():
                # Meanwhile this process may have taken it.
                if self.mirror_of(number) is known[number]:
                    known[number].add(attempt, SHOWN.decode(shown) if shown else None, lines)
        for number in known.keys() - news:
            await self.check_end(known[number])

    async def check_end(self, live: LiveRun) -> None:
        """End a run whose process has stored its end."""
        number, history = live.past.number, self.runs.keeper.history
        entries: Sequence[TraceEntry] = ()
        try:
            past = await asyncio.to_thread(history.read, number, live.past.owner)
            if live.watchers:
                entries = await asyncio.to_thread(history.entries, number, live.past.owner)
        except Unreachable:
            return
        except SetupError:
            past = replace(live.past, state="interrupted", why="It was forgotten.")
        if past.state == "running" or self.mirror_of(number) is not live:
            return
        live.past, live.is_kept = past, True
        live.entries = entries or live.entries
        live.state = state_for_client(past)
        live.writings.clear()
        live.over.set()
        del self.runs.live[live.id]
        self.runs.wake(live)

    async def hear(self) -> None:
        """Hear what other processes tell, for ever."""
        try:
            async with await AsyncConnection.connect(self.place.url, autocommit=True, **KEEPALIVE) as connection:
                # Shared: a connection that is lost may hold it a while yet.
                await connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", (ALIVE, self.process))
                await connection.execute(f"LISTEN {CHANNEL}")
                self.is_heard.set()
                self.told_line.set()
                # What was told before this connection was open is read now.
                self.sessions.by_digest.clear()
                await self.refresh(*(live.past.number for live in self.runs.live.values()))
                for number in [*self.own]:
                    await self.give(number)
                async for notice in connection.notifies():
                    try:
                        await self.act(json.loads(notice.payload))
                    except Exception as error:
                        # One run that cannot be shown must not make this process deaf.
                        logger.error("what another process told crashed this one's view", exc_info=error)
        finally:
            self.is_heard.clear()

    async def act(self, message: dict[str, Any]) -> None:
        """Act on one message."""
        if reply := message.get("reply"):
            await self.give(reply)
        elif session := message.get("session"):
            self.sessions.by_digest.pop(session, None)
        elif "line" in message:
            self.told_line.set()
        elif "run" in message:
            if message["state"] == "waiting":
                self.told_line.set()
            await self.hear_of_run(message["run"], message["owner"], message["state"])
        else:
            self.news |= {number for number in message["news"] if (live := self.mirror_of(number)) and live.watchers}
            self.told_news.set()

    async def look(self) -> None:
        """Read the news of watched runs, those of several processes at once, for ever."""
        while True:
            await self.told_news.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self.told_news.clear()
            news, self.news = self.news, set()
            await self.refresh(*news)

    async def hear_of_run(self, number: int, owner: str, state: str) -> None:
        """Look at a run that waits, was taken or ended, as far as somebody here watches it."""
        if number in self.own:
            return
        live = self.mirror_of(number)
        if live is None:
            if any(watcher.owner == owner for watcher in self.runs.watchers.everybody):
                with suppress(NotThere):
                    self.runs.watchers.wake(await self.runs.of_history(number, owner))
        elif live.watchers:
            await self.refresh(number)
        elif state == "over":
            await self.check_end(live)
        else:
            live.state = "running" if state == "running" else "waiting"
            self.runs.wake(live)

    async def give(self, number: int) -> None:
        """Give a run of this process what people said to it."""
        own = self.own.get(number)
        if own is None:
            return
        live = own.live
        for (kind, which), text in (await asyncio.to_thread(self.place.replies, number)).items():
            if kind != "stop":
                live.answer(kind, which, text)
            elif live.task is not None:
                live.task.cancel()
