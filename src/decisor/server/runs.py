"""All runs of a server: started, watched, stopped, gone on from, and handed to the history when they are over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import count

from decisor.errors import Error, SetupError
from decisor.history.past_run import Mark, PastRun
from decisor.log import logger
from decisor.secrets import redact
from decisor.server.asking import check_technique, chosen, edit_of, options_of, settings_of
from decisor.server.keeper import Keeper
from decisor.server.live import LiveRun, from_past
from decisor.server.places import Full, Places
from decisor.server.requests import AskBody, ChangeBody, HowToRun, MarkBody
from decisor.server.serving import Serving, connections_of
from decisor.server.sight import both, may_see, sight_of
from decisor.server.users import User
from decisor.server.watching import Watchers
from decisor.session.data import check_text
from decisor.session.following import following
from decisor.session.keeping import inputs_of
from decisor.session.options import Options
from decisor.session.pool import Pool
from decisor.session.recorded import recorded_result
from decisor.session.rerun import go_on
from decisor.trace.events import RunStart, events_of
from decisor.types import Question

Work = Callable[[Options], Awaitable[object]]
STOP_SECONDS = 2.0
MOST_UNKEPT = 200
"""Runs that the history does not have stay readable; so many of them."""
CLOSING = "The server was stopped."


def number_of(id: str) -> int:
    """Of a run in the history; 0 where it is none."""
    return int(id) if id.isascii() and id.isdecimal() and len(id) < 16 else 0


class NotThere(Exception):
    """There is no such thing, or it is somebody else's."""


@dataclass(eq=False)
class Runs:
    """``live``: those under way, and those that the history does not have, by id."""

    serving: Serving
    pool: Pool
    keeper: Keeper
    live: dict[str, LiveRun] = field(default_factory=dict)
    unkept: count[int] = field(default_factory=lambda: count(1))
    watchers: Watchers = field(default_factory=Watchers)
    places: Places = field(init=False)
    is_closing: bool = False

    def __post_init__(self) -> None:
        self.places = Places(self.serving.at_once)

    def connections(self, user: User) -> tuple[str, ...]:
        return connections_of(user, self.serving, self.pool.members)

    async def ask(self, user: User, body: AskBody) -> LiveRun:
        """A run that begins.

        Raises:
            SetupError: something that it names is not there.
            NotThere: the run that it follows is not there.
            Full: too many wait already.
        """
        names = chosen(body.connections, self.connections(user))
        technique = check_technique(body.technique)
        options = options_of(body, self.serving)
        options["technique"], options["settings"] = technique, settings_of(technique, body.settings, self.serving)
        if not body.question.strip():
            raise SetupError("What is to be decided? The question is empty.")
        question = Question(body.question.strip(), body.rules, body.goal)
        check_text(question)
        before = await self.find(user, body.follows) if body.follows else None
        if before is not None:
            question = following(recorded_result(before.entries), question)
        past = PastRun(question, technique=technique)

        async def work(options: Options) -> object:
            data = await self.pool.data(names, user.reader)
            return await data.ask(question, **options)

        return await self.begin(user, past, names, body, options, work, before)

    async def resume(self, user: User, id: str, body: HowToRun) -> LiveRun:
        """A run that goes on from one that was stopped or failed: what it bought is not bought again.

        Raises: as ``change``.
        """
        before = await self.find(user, id)
        if before.state not in ("stopped", "failed"):
            raise SetupError("This run was not interrupted: there is nothing to go on with.")
        names = chosen(before.connections, self.connections(user))
        old, start = before.past, next(events_of(before.entries, RunStart), None)
        options = options_of(body, self.serving)
        technique = options["technique"] = check_technique(old.technique)
        settings = {name: self.serving.name_of(text) for name, text in old.inputs.settings.items()}
        options["settings"] = settings_of(technique, settings, self.serving)
        past = PastRun(old.question, technique=old.technique)

        async def work(options: Options) -> object:
            data = await self.pool.data(names, user.reader)
            return await data.ask(start.question if start else old.question, past=before.entries, **options)

        return await self.begin(user, past, names, body, options, work, before)

    async def change(self, user: User, id: str, body: ChangeBody) -> LiveRun:
        """A run that goes on from another one with one thing changed.

        Raises:
            NotThere: there is no such run.
            SetupError: it is not over, or something that it names is not there.
            Full: too many wait already.
        """
        before = await self.find(user, id)
        if not before.is_over:
            raise SetupError("The run is under way: stop it first, or wait for its end.")
        options, edit = options_of(body, self.serving), edit_of(body)
        names = chosen(before.connections, self.connections(user))
        past = PastRun(before.past.question, technique=before.past.technique, edit=edit.texts())

        async def work(options: Options) -> object:
            data = await self.pool.data(names, user.reader)
            return await go_on(data, before.entries, edit, **options)

        return await self.begin(user, past, names, body, options, work, before)

    async def begin(
        self, user: User, past: PastRun, names: tuple[str, ...], body: HowToRun, options: Options, work: Work,
        before: LiveRun | None,
    ) -> LiveRun:  # fmt: skip
        if self.is_closing:
            raise Full(CLOSING)
        self.places.check()
        sight = sight_of(self.pool, names, user.reader)
        past = replace(
            past, owner=user.name, inputs=inputs_of(self.pool.sources_of(names), options), began=time.time(),
            before=before.past.number if before else 0, sight=both(sight, before.past.sight) if before else sight,
        )  # fmt: skip
        number = await self.keeper.begin(past)
        live = LiveRun(replace(past, number=number), str(number or f"t{next(self.unkept)}"), names)
        options["on_event"] = live.hear
        if body.stream:
            options["on_text"] = live.hear_text
        if body.approve:
            options["approve"] = live.approve
        if body.asks:
            options["reader"] = live.read
        self.live[live.id] = live
        if number:
            self.keeper.live[number] = live
        live.task = asyncio.create_task(self.run(live, options, work))
        self.wake(live)
        return live

    async def run(self, live: LiveRun, options: Options, work: Work) -> None:
        """Never raises: what ends a run is in its state."""
        try:
            async with self.places:
                live.state = "running"
                self.wake(live)
                await work(options)
            live.end("finished")
        except asyncio.CancelledError:
            live.end("stopped", CLOSING if self.is_closing else "")
        except Error as error:
            live.end("failed", redact(str(error)))
        except Exception as error:
            logger.error("run %s crashed", live.id, exc_info=error)
            live.end("failed", f"It crashed: {type(error).__name__}. The log of the server has more.")
        self.wake(live)
        await self.keeper.end(live)
        if live.is_kept:
            del self.live[live.id]
        else:
            self.drop_oldest()

    def drop_oldest(self) -> None:
        over = [live for live in self.live.values() if live.is_over and not live.is_kept]
        for live in over[:-MOST_UNKEPT]:
            del self.live[live.id]

    async def find(self, user: User, id: str) -> LiveRun:
        """One that is under way, or one of the history. Raises NotThere where there is none, or it is another's."""
        live = self.live.get(id)
        if live is not None and live.past.owner == user.name:
            return live
        if live is None and (number := number_of(id)):
            return await self.of_history(number, user.name)
        raise NotThere(f"There is no run {id[:80]!r}.")

    async def of_history(self, number: int, owner: str) -> LiveRun:
        """Raises NotThere where there is none."""
        history = self.keeper.history
        try:
            past = await asyncio.to_thread(history.read, number, owner)
            entries = await asyncio.to_thread(history.entries, number, owner)
        except SetupError as error:
            raise NotThere(str(error)) from error
        return from_past(past, entries, tuple(self.pool.members))

    async def past(self, user: User, words: str, most: int, before: int) -> list[PastRun]:
        """Of the history, the newest first: what it has of those under way, and those that others show them."""
        history = self.keeper.history
        try:
            runs = await asyncio.to_thread(history.list, user.name, words, most, before, bool(user.name))
        except SetupError:
            if not self.keeper.fault:
                raise
            return []
        return [one for one in runs if one.owner == user.name or may_see(user, one.sight, self.pool)]

    async def stop(self, user: User, id: str) -> LiveRun:
        """It is over when this returns, unless it takes long to end."""
        live = await self.find(user, id)
        if live.task is not None and not live.is_over:
            live.task.cancel()
            await asyncio.wait([live.task], timeout=STOP_SECONDS)
        return live

    def unkept_of(self, user: User) -> list[LiveRun]:
        """Those that the history does not have."""
        return [live for live in self.live.values() if not live.past.number and live.past.owner == user.name]

    async def find_kept(self, user: User, id: str) -> LiveRun:
        """Raises SetupError where the history does not have the run yet."""
        live = await self.find(user, id)
        live.check_kept()
        return live

    async def mark(self, user: User, id: str, body: MarkBody) -> LiveRun:
        live = await self.find_kept(user, id)
        mark = Mark(body.mark, body.note, body.answer) if body.mark else None
        await asyncio.to_thread(self.keeper.history.mark, live.past.number, mark, user.name)
        return await self.find(user, id)

    async def forget(self, user: User, id: str) -> None:
        live = await self.stop(user, id)
        self.live.pop(live.id, None)
        if live.past.number:
            await asyncio.to_thread(self.keeper.history.delete, [live.past.number], user.name)

    def wake(self, live: LiveRun) -> None:
        live.wake()
        self.watchers.wake(live)

    async def close(self) -> None:
        """Every run is stopped, every stream ends."""
        self.is_closing = True
        tasks = [live.task for live in self.live.values() if live.task is not None and not live.task.done()]
        for task in tasks:
            task.cancel()
        self.watchers.wake_all()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
