"""Evaluations that are shown: their stores are read, never written, also while an evaluation fills them."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from decisor.evaluation.store.open import open_store
from decisor.evaluation.store.protocol import Store
from decisor.outcome import Outcome
from decisor.report.document import as_json, make
from decisor.report.page import write_page
from decisor.server.responses import CaseReply, EvaluationReply
from decisor.server.stream import ALIVE, ALIVE_SECONDS, Streams, event_text
from decisor.story.html import story

T = TypeVar("T")
POLL_SECONDS = 1.0
LONGEST_POLL = 30.0
MOST_STORY = 2_000_000


async def in_store(place: str, read: Callable[[Store], T]) -> T:
    """A store belongs to one thread. Raises SetupError where it cannot be opened."""

    def work() -> T:
        store = open_store(place, create=False)
        try:
            return read(store)
        finally:
            store.close()

    return await asyncio.to_thread(work)


def id_of(outcome: Outcome) -> str:
    """What a case is called in an address."""
    return hashlib.sha256(json.dumps(outcome.key).encode()).hexdigest()[:16]


def case_of(one: Outcome) -> CaseReply:
    return CaseReply(
        id=id_of(one), benchmark=one.benchmark, case=one.case, technique=one.technique, model=one.model,
        repeat=one.repeat, state=one.state, answer=one.answer, gold=one.gold, seconds=one.seconds,
        usage=one.usage,
    )  # fmt: skip


async def evaluation(name: str, place: str) -> EvaluationReply:
    def read(store: Store) -> EvaluationReply:
        outcomes = store.outcomes()
        report = as_json(make(outcomes, store.about())) if outcomes else None
        if report is not None:
            report.pop("outcomes", None)
        return EvaluationReply(
            name=name, finished=len(outcomes), cases=tuple(case_of(one) for one in outcomes), report=report
        )

    return await in_store(place, read)


async def page(place: str) -> str:
    """The report as one page."""

    def read(store: Store) -> str:
        out = io.StringIO()
        write_page(make(store.outcomes(), store.about()), lambda one: store.trace(one.key), out)
        return out.getvalue()

    return await in_store(place, read)


async def case_story(place: str, id: str) -> str | None:
    """The pieces of one case's story, as JSON; None where there is no such case."""

    def read(store: Store) -> str | None:
        one = next((one for one in store.each_outcome() if id_of(one) == id), None)
        return None if one is None else story(store.trace(one.key), MOST_STORY)

    return await in_store(place, read)


async def case_events(place: str, streams: Streams, is_closing: Callable[[], bool]) -> AsyncIterator[str]:
    """Each case when it is finished; those that are finished already first."""
    sent: set[str] = set()
    counted = -1

    def news(store: Store) -> Sequence[CaseReply]:
        return [case_of(one) for one in store.each_outcome() if id_of(one) not in sent]

    with streams.one():
        last = time.monotonic()
        while not is_closing():
            began = time.monotonic()
            cases = await in_store(place, news)
            took = time.monotonic() - began
            sent |= {one.id for one in cases}
            if len(sent) != counted:
                last, counted = time.monotonic(), len(sent)
                progress = event_text("progress", json.dumps({"finished": len(sent)}))
                yield "".join(event_text("case", one.model_dump_json()) for one in cases) + progress
            elif time.monotonic() - last > ALIVE_SECONDS:
                last = time.monotonic()
                yield ALIVE
            await asyncio.sleep(min(max(POLL_SECONDS, 10 * took), LONGEST_POLL))
