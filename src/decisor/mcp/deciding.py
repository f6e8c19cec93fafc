"""A run that a client waits for: told step by step, stopped when the client stops waiting, and held where a question
has two readings until the person at the client says which is meant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult

from decisor.definitions.readings.open import OpenReading
from decisor.mcp.answering import Client
from decisor.plurals import counted
from decisor.render.text import one_line
from decisor.server.places import Places
from decisor.session.options import Options
from decisor.session.result import Result
from decisor.story.lines import event_lines
from decisor.trace.events import ActionStart, Entry, Event, Plan
from decisor.trace.graph_events import GraphPlan

STOP_SECONDS = 10.0
LINE = 200
KEY = "reading"
"""What the answer of a person is called."""


@dataclass(frozen=True, eq=False)
class Ask:
    """A reading that is put to a person, and where their answer goes."""

    one: OpenReading
    answer: asyncio.Future[str]

    def request(self) -> ElicitRequest:
        return ElicitRequest(
            params=ElicitRequestFormParams(message=self.one.line(), requested_schema=schema_of(self.one))
        )

    def settle(self, answer: str) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


def schema_of(one: OpenReading) -> dict[str, object]:
    """A form: one of the choices, or own words."""
    choices = [one_line(text, LINE) for text in one.choices]
    return {
        "type": "object",
        "properties": {
            "meaning": {"type": "string", "title": one_line(one.words, LINE), "enum": choices},
            "own_words": {"type": "string", "title": "Or in your own words"},
        },
    }


def answer_of(reply: ElicitResult, one: OpenReading) -> str:
    """What a person chose or wrote; '' where they do not say."""
    content: Mapping[str, object] = reply.content or {}
    if reply.action != "accept":
        return ""
    words, meaning = str(content.get("own_words") or ""), str(content.get("meaning") or "")
    numbers = {one_line(text, LINE): str(at) for at, text in enumerate(one.choices, 1)}
    return one_line(words, LINE) or numbers.get(meaning, one_line(meaning, LINE))


def progress_line(event: Event) -> str:
    """What happens, in one line: a query and a plan whole, of rows how many there are.

    >>> progress_line(Plan(("count the returns", "see what they cost")))
    'Plan: 1. count the returns 2. see what they cost'
    """
    lines = [" ".join(line.plain.split()) for line in event_lines(event)]
    if isinstance(event, Plan | GraphPlan):
        return one_line(": ".join([lines[0], " ".join(lines[1:])]), LINE)
    return one_line(" ".join(lines if isinstance(event, ActionStart) else lines[:1]), LINE)


class Deciding:
    """One run. Made in the event loop that it runs in."""

    def __init__(self, work: Callable[[Options], Awaitable[Result]], places: Places, is_anyone_there: bool) -> None:
        self.news: asyncio.Queue[str | Ask | None] = asyncio.Queue()
        self.steps = count(1)
        self.ask: Ask | None = None
        options = Options(on_event=self.hear)
        if is_anyone_there:
            options["reader"] = self.read
        self.task = asyncio.ensure_future(self.run(work, places, options))
        self.task.add_done_callback(lambda _: self.news.put_nowait(None))

    async def run(self, work: Callable[[Options], Awaitable[Result]], places: Places, options: Options) -> Result:
        if places.are_taken:
            self.news.put_nowait(f"Waits in line behind {counted(places.waiting, 'other')}: {places.most} at once")
        async with places:
            return await work(options)

    def hear(self, entry: Entry) -> None:
        if line := progress_line(entry.event):
            self.news.put_nowait(line)

    async def read(self, one: OpenReading) -> str:
        """A ``Reader``."""
        self.ask = Ask(one, asyncio.get_running_loop().create_future())
        self.news.put_nowait(self.ask)
        return await self.ask.answer

    async def follow(self, context: Client) -> Result | Ask:
        """The result, or what has to be asked before it. A client that stops waiting ends the run."""
        try:
            while (news := await self.news.get()) is not None:
                if isinstance(news, Ask):
                    return news
                await context.report_progress(next(self.steps), message=news)
            return await self.task
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Its queries and calls end, and the history says that it was interrupted."""
        import anyio

        self.task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self.task], timeout=STOP_SECONDS)
