"""Server-sent events: a run as it happens. Each stream reads what the run holds at its own pace, so a slow reader makes
nobody wait and nothing pile up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from decisor.encoding import json_text
from decisor.server.live import LiveRun
from decisor.server.runs import Runs
from decisor.server.telling import line_of, reply_of
from decisor.server.users import User
from decisor.trace.events import Entry, LMCall
from decisor.trace.file import row_of
from decisor.trace.prompts import common_length
from decisor.trace.writing import Writing

ALIVE_SECONDS = 15.0
PAUSE_SECONDS, MORE_SECONDS = 0.05, 0.004
"""How long news are gathered before they are sent: of one stream, and more for each other one that is open. That a run
is over is told at once."""
MOST_STREAMS = 256
MOST_AT_ONCE = 200
ALIVE = ": still here\n\n"


class Busy(Exception):
    """Too many streams are open."""


@dataclass(eq=False)
class Streams:
    """How many are open."""

    count: int = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1

    @property
    def pause(self) -> float:
        """Seconds."""
        return PAUSE_SECONDS + MORE_SECONDS * self.count

    def check(self) -> None:
        if self.count >= MOST_STREAMS:
            raise Busy("Too many streams are open: close one, or ask for the run itself.")


def event_text(name: str, data: str, id: int | None = None) -> str:
    """
    >>> event_text("state", "{}", 3)
    'id: 3\\nevent: state\\ndata: {}\\n\\n'
    """
    return f"{f'id: {id}' + chr(10) if id is not None else ''}event: {name}\ndata: {data}\n\n"


def entry_text(entry: Entry) -> str:
    """Without the messages of a call: they are long, and seldom read."""
    if isinstance(entry.event, LMCall):
        entry = replace(entry, event=replace(entry.event, messages=()))
    return event_text("entry", json_text(row_of(entry)), entry.id)


@dataclass(eq=False)
class StreamState:
    """What one stream has sent of a run. ``sent``: entries; ``texts``: of each call under way."""

    live: LiveRun
    sent: int = 0
    state: str = ""
    texts: dict[int, Writing] = field(default_factory=dict)
    approvals: dict[int, bool] = field(default_factory=dict)
    readings: dict[int, bool] = field(default_factory=dict)

    def news(self) -> Iterator[str]:
        """What is new since the last time."""
        if self.live.state != self.state and not self.live.is_over:
            self.state = self.live.state
            yield event_text("state", reply_of(self.live, with_result=False).model_dump_json())
        yield from self.writings()
        yield from self.decisions()
        yield from self.open_words()
        texts = self.live.texts
        texts += map(entry_text, self.live.entries[len(texts) : self.sent + MOST_AT_ONCE])
        yield from texts[self.sent : self.sent + MOST_AT_ONCE]
        self.sent = max(self.sent, min(len(texts), self.sent + MOST_AT_ONCE))

    @property
    def is_behind(self) -> bool:
        return self.sent < len(self.live.entries)

    def writings(self) -> Iterator[str]:
        for number, old in list(self.texts.items()):
            if number not in self.live.writings:
                del self.texts[number]
                yield writing_text(replace(old, is_over=True), len(old.text))
        for number, writing in list(self.live.writings.items()):
            before = self.texts.get(number)
            if before is None or before.text != writing.text:
                keep = common_length(before.text, writing.text, False) if before else 0
                self.texts[number] = writing
                yield writing_text(writing, keep)

    def decisions(self) -> Iterator[str]:
        for one in list(self.live.approvals.values()):
            was_decided = self.approvals.get(one.number)
            if was_decided is None and not one.reply.done():
                self.approvals[one.number] = False
                data: Mapping[str, object] = {"number": one.number, "tool": one.action.tool, "input": one.action.input}
                yield event_text("approval", json.dumps(data))
            elif was_decided is False and one.reply.done():
                self.approvals[one.number] = True
                why = "" if one.reply.cancelled() else one.reply.result()
                allow = not one.reply.cancelled() and not why
                yield event_text("approval", json.dumps({"number": one.number, "allow": allow, "why": why}))

    def open_words(self) -> Iterator[str]:
        for one in list(self.live.readings.values()):
            was_said = self.readings.get(one.number)
            if was_said is None and not one.reply.done():
                self.readings[one.number] = False
                data: Mapping[str, object] = {"number": one.number, "words": one.reading.words,
                                           "choices": list(one.reading.choices), "asks": one.reading.asks}  # fmt: skip
                yield event_text("reading", json.dumps(data))
            elif was_said is False and one.reply.done():
                self.readings[one.number] = True
                answer = "" if one.reply.cancelled() else one.reply.result()
                yield event_text("reading", json.dumps({"number": one.number, "answer": answer}))


def writing_text(writing: Writing, keep: int) -> str:
    data = {"call": writing.call, "span": writing.span, "keep": keep, "text": writing.text[keep:],
            "is_over": writing.is_over}  # fmt: skip
    return event_text("writing", json.dumps(data))


async def run_events(live: LiveRun, after: int, streams: Streams) -> AsyncIterator[str]:
    """Until the run is over and all of it was sent."""
    reader, changed = StreamState(live, sent=after), asyncio.Event()
    live.watchers.add(changed)
    try:
        with streams.one():
            while True:
                changed.clear()
                text = "".join(reader.news())
                if live.is_over and not reader.is_behind:
                    yield text + event_text("end", reply_of(live).model_dump_json())
                    break
                if text:
                    yield text
                if reader.is_behind:
                    continue
                if await waited(changed, ALIVE_SECONDS):
                    await waited(live.over, streams.pause)
                else:
                    yield ALIVE
    finally:
        live.watchers.discard(changed)


async def all_events(runs: Runs, user: User, streams: Streams) -> AsyncIterator[str]:
    """Every run of a user at each change of its state, until the server closes; those under way first."""
    with streams.one(), runs.watchers.one(user.name) as watcher:
        watcher.news |= {live.id: live for live in runs.live.values() if live.past.owner == user.name}
        yield ALIVE
        while not runs.is_closing:
            if news := watcher.take():
                yield "".join(event_text("run", line_of(live).model_dump_json()) for live in news)
            if await waited(watcher.changed, ALIVE_SECONDS):
                await asyncio.sleep(streams.pause)
            else:
                yield ALIVE


async def waited(event: asyncio.Event, seconds: float) -> bool:
    """Whether it came within so long."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
