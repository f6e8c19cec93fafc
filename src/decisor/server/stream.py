"""Server-sent events of runs, and runs in the form that a client reads.

Each stream reads the entries of a run at its own pace, so a slow reader makes nobody wait and nothing pile up.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count, zip_longest

from decisor.history.store import PastRun
from decisor.server.live import Asked, LiveRun, ReplyKey, state_for_client
from decisor.server.responses import ChangeReply, Mark, RunLine, RunReply, Waiting, WaitingWords
from decisor.server.runs import Runs
from decisor.server.users import User
from decisor.session.result import build_recorded_result
from decisor.system.serialization import json_text
from decisor.system.wording import format_count
from decisor.trace.events import ActionResult, ActionStart, GraphPlan, Plan, PlanChange, TraceEntry, Writing, events_of
from decisor.trace.prompts import common_affix_length
from decisor.types import Observation
from decisor.views.page import build_page_row
from decisor.views.results import decision_headline

Step = tuple[str, str]


def line_of_past(past: PastRun) -> RunLine:
    state, before, mark = state_for_client(past), str(past.before or ""), past.mark
    return RunLine(
        id=str(past.number),
        owner=past.owner,
        state=state,
        question=past.question.text,
        rules=past.question.rules,
        goal=past.question.goal,
        technique=past.technique,
        llm=past.llm,
        began=datetime.fromtimestamp(past.began, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=past.seconds,
        entries=past.entries,
        usage=past.usage,
        answer=past.answer,
        headline=decision_headline(past.question.text, past.answer),
        stopped="" if state in ("running", "stopped") else past.state,
        error=past.why if state in ("failed", "stopped") else "",
        follows="" if past.edit else before,
        changed_from=before if past.edit else "",
        edit=dict(past.edit),
        mark=Mark(mark=mark.verdict, answer=mark.answer, note=mark.came_of) if mark else None,
    )


def run_line_of(live: LiveRun) -> RunLine:
    own = {"id": live.id, "state": live.state, "connections": live.connections, "entries": len(live.entries)}
    if not live.is_over:
        own |= {"seconds": round(live.seconds, 3), "usage": live.spent, "stopped": ""}
    return line_of_past(live.past).model_copy(update=own)


def run_reply(live: LiveRun, with_result: bool = True) -> RunReply:
    has_result = with_result and live.is_over and live.past.state not in ("interrupted", "running") and live.entries
    waiting = [waiting_reply(one) for one in live.asked.values() if one.reply is None]
    return RunReply(
        **dict(run_line_of(live)),
        approvals=tuple(one for one in waiting if isinstance(one, Waiting)),
        readings=tuple(one for one in waiting if isinstance(one, WaitingWords)),
        result=build_recorded_result(live.entries).to_dict() if has_result else None,
    )


def waiting_reply(asked: Asked) -> Waiting | WaitingWords:
    if asked.query is not None:
        return Waiting(number=asked.number, tool=asked.query.tool, input=asked.query.input)
    words = asked.words
    assert words is not None
    return WaitingWords(number=asked.number, words=words.words, choices=tuple(words.choices), asks=words.asks)


def compare_steps(before: Sequence[TraceEntry], after: Sequence[TraceEntry]) -> tuple[ChangeReply, ...]:
    """Compare the plans, actions and observations of two runs side by side."""
    plans, new_plans = plans_of(before), plans_of(after)
    changed = [name for name in {**plans, **new_plans} if plans.get(name) != new_plans.get(name)]
    changes = [change_reply(name, plans.get(name), new_plans.get(name)) for name in changed]
    olds, news = list(summarise_steps(before)), list(summarise_steps(after))
    # autojunk would leave out steps that occur often in a long run.
    match = difflib.SequenceMatcher(a=[one[0] for one in olds], b=[one[0] for one in news], autojunk=False)
    number = count(1)
    for _, start, end, new_start, new_end in match.get_opcodes():
        for old, new in zip_longest(olds[start:end], news[new_start:new_end]):
            changes.append(change_reply(str(next(number)), *("\n-> ".join(one) if one else None for one in (old, new))))
    return tuple(changes)


def plans_of(entries: Sequence[TraceEntry]) -> dict[str, str]:
    """Return the steps of each plan by the plan's name, on lines of their own."""
    plans: dict[str, str] = {}
    for entry in entries:
        match entry.event:
            case Plan(steps=steps) | GraphPlan(steps=steps):
                plans["plan"] = "\n".join(steps)
            case PlanChange(after_step=after, steps=steps):
                plans[f"plan after step {after}"] = "\n".join(steps)
            case _:
                pass
    return plans


def change_reply(at: str, old: str | None, new: str | None) -> ChangeReply:
    """Return a change of a plan or step; None means that it is in the other run alone."""
    how = "added" if old is None else "removed" if new is None else "same" if old == new else "changed"
    return ChangeReply.model_validate({"at": at, "before": old or "", "after": new or "", "how": how})


def summarise_steps(entries: Sequence[TraceEntry]) -> Iterator[Step]:
    """Yield each action with its outcome in a few words."""
    results = {result.action: result.observation for result in events_of(entries, ActionResult)}
    for entry in entries:
        if isinstance(entry.event, ActionStart):
            came = results.get(entry.id, Observation(()))
            count_words = format_count(len(came.records), "record")
            yield (
                f"{entry.event.tool}: {entry.event.input}",
                came.note if came.error or not came.records else count_words,
            )


ALIVE_SECONDS = 15.0
# Measured with performance/serve.py, 200 runs at once: docs/measurements/speed.md.
PAUSE_SECONDS, MORE_SECONDS = 0.05, 0.004
"""Seconds for which a stream gathers news, and more for each stream that is open. The end is told at once."""
MOST_STREAMS = 256
MOST_AT_ONCE = 200
ALIVE = ": still here\n\n"


class Busy(Exception):
    """An error: too many streams are open."""


@dataclass(eq=False)
class Streams:
    """The number of open streams."""

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
        """Seconds for which a stream gathers news."""
        return PAUSE_SECONDS + MORE_SECONDS * self.count

    def check(self) -> None:
        if self.count >= MOST_STREAMS:
            raise Busy("Too many streams are open: close one, or ask for the run itself.")


def event_text(name: str, data: str, id: int | None = None) -> str:
    """Format a server-sent event.

    >>> event_text("state", "{}", 3)
    'id: 3\\nevent: state\\ndata: {}\\n\\n'
    """
    return f"{f'id: {id}' + chr(10) if id is not None else ''}event: {name}\ndata: {data}\n\n"


@dataclass(eq=False)
class StreamState:
    """The part of a run that one stream has sent."""

    live: LiveRun
    sent: int = 0
    """Number of entries."""
    state: str = ""
    count: str = ""
    texts: dict[int, Writing] = field(default_factory=dict)
    """Text of each LLM call under way."""
    answered: dict[ReplyKey, bool] = field(default_factory=dict)
    """Whether the answer was sent, of each query and words that were."""

    def news(self) -> Iterator[str]:
        """Yield the events that are new since the last time."""
        # The end has an event of its own, with the result.
        if self.live.state != self.state and not self.live.is_over:
            self.state = self.live.state
            yield event_text("state", run_reply(self.live, with_result=False).model_dump_json())
        if self.live.count != self.count:
            self.count = self.live.count
            yield event_text("count", json.dumps(self.count))
        yield from self.writings()
        yield from self.answers()
        # Each entry is formatted once for all streams of its run.
        texts = self.live.texts
        news = self.live.entries[len(texts) : self.sent + MOST_AT_ONCE]
        # Without the messages of a call: they are long, and seldom read.
        texts += [event_text("entry", json_text(build_page_row(entry)), entry.id) for entry in news]
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
                # Only the part that changed is sent.
                keep = common_affix_length(before.text, writing.text, False) if before else 0
                self.texts[number] = writing
                yield writing_text(writing, keep)

    def answers(self) -> Iterator[str]:
        """Yield what waits for a person, and later the answer."""
        for key, asked in list(self.live.asked.items()):
            event = "reading" if asked.query is None else "approval"
            if key not in self.answered and asked.reply is None:
                self.answered[key] = False
                yield event_text(event, waiting_reply(asked).model_dump_json())
            elif self.answered.get(key) is False and asked.reply is not None:
                self.answered[key] = True
                reply = (
                    {"answer": asked.reply} if asked.query is None else {"allow": not asked.reply, "why": asked.reply}
                )
                yield event_text(event, json.dumps({"number": asked.number, **reply}))


def writing_text(writing: Writing, keep: int) -> str:
    data = {
        "call": writing.call,
        "span": writing.span,
        "keep": keep,
        "text": writing.text[keep:],
        "is_over": writing.is_over,
    }
    return event_text("writing", json.dumps(data))


async def stream_run_events(live: LiveRun, after: int, streams: Streams) -> AsyncIterator[str]:
    """Yield the events of a run until it is over and all are sent."""
    reader, changed = StreamState(live, sent=after), asyncio.Event()
    live.watchers.add(changed)
    try:
        with streams.one():
            while True:
                # Clear before reading, so that news which come meanwhile end the next wait.
                changed.clear()
                text = "".join(reader.news())
                if live.is_over and not reader.is_behind:
                    yield text + event_text("end", run_reply(live).model_dump_json())
                    break
                if text:
                    yield text
                if reader.is_behind:
                    continue
                if await wait_for_event(changed, ALIVE_SECONDS):
                    # Gather news for a pause, but tell the end at once: it waited up to 0.85 s with 200 streams.
                    await wait_for_event(live.over, streams.pause)
                else:
                    yield ALIVE
    finally:
        live.watchers.discard(changed)


async def stream_all_events(runs: Runs, user: User, streams: Streams) -> AsyncIterator[str]:
    """Yield every run of a user at each change of its state, until the server closes. Runs under way come first."""
    with streams.one(), runs.watchers.one(user.name) as watcher:
        watcher.news |= {live.id: live for live in runs.live.values() if live.past.owner == user.name}
        yield ALIVE
        while not runs.is_closing:
            if news := watcher.take():
                yield "".join(event_text("run", run_line_of(live).model_dump_json()) for live in news)
            if await wait_for_event(watcher.changed, ALIVE_SECONDS):
                await asyncio.sleep(streams.pause)
            else:
                yield ALIVE


async def wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return whether it came within ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
