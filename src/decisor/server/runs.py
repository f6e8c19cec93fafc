"""All runs of a server: started, watched, stopped, gone on from, and kept when they are over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count

from decisor.errors import Error, SetupError
from decisor.log import logger
from decisor.secrets import redact
from decisor.server.asking import check_technique, chosen, edit_of, options_of, settings_of, texts_of
from decisor.server.live import About, LiveRun
from decisor.server.requests import AskBody, ChangeBody, HowToRun
from decisor.server.serving import IN_LINE, Serving, connections_of
from decisor.server.users import User
from decisor.session.options import Options
from decisor.session.pool import Pool
from decisor.session.rerun import go_on
from decisor.trace.events import Entry, RunStart, events_of
from decisor.types import Question

Work = Callable[[Options], Awaitable[object]]
STOP_SECONDS = 2.0
CLOSING = "The server was stopped."


class NotThere(Exception):
    """There is no such thing, or it is somebody else's."""


class Full(Exception):
    """Too many wait already."""


@dataclass(eq=False)
class Runs:
    """``by_id``: in the order in which they began."""

    serving: Serving
    pool: Pool
    by_id: dict[str, LiveRun] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(1))
    watchers: dict[asyncio.Event, str] = field(default_factory=dict)
    places: asyncio.Semaphore = field(init=False)
    is_closing: bool = False

    def __post_init__(self) -> None:
        self.places = asyncio.Semaphore(self.serving.at_once)

    def connections(self, user: User) -> tuple[str, ...]:
        return connections_of(user, self.serving, self.pool.members)

    def ask(self, user: User, body: AskBody) -> LiveRun:
        """A run that begins.

        Raises:
            SetupError: something that it names is not there.
            NotThere: the run that it follows is not there.
            Full: too many wait already.
        """
        names = chosen(body.connections, self.connections(user))
        technique = check_technique(body.technique)
        options = options_of(body, self.serving)
        options["technique"] = technique
        options["settings"] = settings_of(technique, body.settings, self.serving)
        if body.follows:
            self.entries(user, body.follows)
        if not body.question.strip():
            raise SetupError("What is to be decided? The question is empty.")
        about = About(
            str(next(self.numbers)), user.name, body.question.strip(), body.rules, body.goal, names, technique,
            follows=body.follows,
        )  # fmt: skip
        question = Question(about.question, about.rules, about.goal)

        async def work(options: Options) -> object:
            data = await self.pool.data(names)
            return await data.ask(question, **options)

        return self.begin(about, body, options, work)

    def change(self, user: User, id: str, body: ChangeBody) -> LiveRun:
        """A run that goes on from another one with one thing changed.

        Raises:
            NotThere: there is no such run.
            SetupError: it is not over, or something that it names is not there.
            Full: too many wait already.
        """
        entries = self.entries(user, id)
        before = self.by_id[id]
        if not before.is_over:
            raise SetupError("The run is under way: stop it first, or wait for its end.")
        options, edit = options_of(body, self.serving), edit_of(body)
        about = replace(before.about, id=str(next(self.numbers)), changed_from=id, edit=texts_of(edit), follows="",
                        began=datetime.now(UTC))  # fmt: skip

        async def work(options: Options) -> object:
            data = await self.pool.data(about.connections)
            return await go_on(data, entries, edit, **options)

        return self.begin(about, body, options, work)

    def begin(self, about: About, body: HowToRun, options: Options, work: Work) -> LiveRun:
        if self.is_closing:
            raise Full(CLOSING)
        if sum(run.state == "waiting" for run in self.by_id.values()) >= IN_LINE:
            raise Full(f"{IN_LINE:,} runs wait already: try again later.")
        live = LiveRun(about)
        options["on_event"] = live.hear
        if body.stream:
            options["on_text"] = live.hear_text
        if body.approve:
            options["approve"] = live.approve
        self.by_id[about.id] = live
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
            logger.log(logging.ERROR, "run %s crashed", live.about.id, exc_info=error)
            live.end("failed", f"It crashed: {type(error).__name__}. The log of the server has more.")
        finally:
            self.wake(live)

    def run_of(self, user: User, id: str) -> LiveRun:
        """Raises NotThere where there is none, or it is another's."""
        live = self.by_id.get(id)
        if live is None or live.about.owner != user.name:
            raise NotThere(f"There is no run {id[:80]!r}.")
        return live

    def entries(self, user: User, id: str) -> Sequence[Entry]:
        return self.run_of(user, id).entries

    def of_user(self, user: User) -> list[LiveRun]:
        """The newest first."""
        return [run for run in reversed(self.by_id.values()) if run.about.owner == user.name]

    def stop(self, user: User, id: str) -> LiveRun:
        live = self.run_of(user, id)
        if live.task is not None and not live.is_over:
            live.task.cancel()
        return live

    async def ended(self, live: LiveRun) -> None:
        if live.task is not None:
            await asyncio.wait([live.task], timeout=STOP_SECONDS)

    async def forget(self, user: User, id: str) -> None:
        live = self.stop(user, id)
        await self.ended(live)
        self.by_id.pop(id, None)

    def wake(self, live: LiveRun) -> None:
        live.wake()
        for watcher, owner in self.watchers.items():
            if owner == live.about.owner:
                watcher.set()

    async def close(self) -> None:
        """Every run is stopped, every stream ends."""
        self.is_closing = True
        tasks = [live.task for live in self.by_id.values() if live.task is not None and not live.is_over]
        for task in tasks:
            task.cancel()
        for watcher in self.watchers:
            watcher.set()
        if tasks:
            await asyncio.wait(tasks)


def start_of(entries: Sequence[Entry]) -> RunStart | None:
    return next(events_of(entries, RunStart), None)
