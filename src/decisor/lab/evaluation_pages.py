"""Evaluations on the page: read, and watched while they fill.

Their run stores are read, never written, also while an evaluation fills them. A user from whom any row, column or
connection is kept sees none, as an evaluation holds rows of all its data.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.postgres_store import open_store
from decisor.lab.evaluation.store import RunStore
from decisor.lab.report.document import make_report, report_as_json
from decisor.lab.report.page import write_page
from decisor.server.responses import CaseReply, EvaluationList, EvaluationReply, StoryReply
from decisor.server.routes import STREAM, AppState, CurrentState, CurrentUser, describe_answer
from decisor.server.runs import NotThere
from decisor.server.security import User
from decisor.server.stream import ALIVE, ALIVE_SECONDS, Streams, event_text
from decisor.system.serialization import dataclass_values
from decisor.views.page_data import story_json

T = TypeVar("T")
POLL_SECONDS = 1.0
LONGEST_POLL = 30.0
MOST_STORY = 2_000_000


async def read_in_store(place: str, read: Callable[[RunStore], T]) -> T:
    """Open a store, read from it and close it, all in one thread.

    A store belongs to one thread. Raise SetupError if it cannot be opened.
    """

    def work() -> T:
        store = open_store(place, create=False)
        try:
            return read(store)
        finally:
            store.close()

    return await asyncio.to_thread(work)


def id_of_case(outcome: Outcome) -> str:
    """Return the name of a case in an address."""
    return hashlib.sha256(json.dumps(outcome.key).encode()).hexdigest()[:16]


def case_reply(outcome: Outcome) -> CaseReply:
    return CaseReply.model_validate({**dataclass_values(outcome), "id": id_of_case(outcome)})


async def evaluation_reply(name: str, place: str) -> EvaluationReply:
    def read(store: RunStore) -> EvaluationReply:
        outcomes = store.outcomes()
        report = report_as_json(make_report(outcomes, store.about())) if outcomes else None
        if report is not None:
            report.pop("outcomes", None)
        return EvaluationReply(name=name, finished=len(outcomes), cases=tuple(map(case_reply, outcomes)), report=report)

    return await read_in_store(place, read)


async def case_events(place: str, streams: Streams, is_closing: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield each case as an event when it finishes, after the cases that are finished already."""
    sent: set[str] = set()
    counted = -1

    def news(store: RunStore) -> Sequence[CaseReply]:
        return [case_reply(one) for one in store.each_outcome() if id_of_case(one) not in sent]

    with streams.one():
        last = time.monotonic()
        while not is_closing():
            began = time.monotonic()
            cases = await read_in_store(place, news)
            # A large store is read more rarely: polling takes a tenth of the time at most.
            took = time.monotonic() - began
            # Outcomes have no order of finishing, so what was sent is remembered by id.
            sent |= {one.id for one in cases}
            if len(sent) != counted:
                last, counted = time.monotonic(), len(sent)
                progress = event_text("progress", json.dumps({"finished": len(sent)}))
                yield "".join(event_text("case", one.model_dump_json()) for one in cases) + progress
            elif time.monotonic() - last > ALIVE_SECONDS:
                last = time.monotonic()
                yield ALIVE
            await asyncio.sleep(min(max(POLL_SECONDS, 10 * took), LONGEST_POLL))


router = APIRouter(prefix="/api/evaluations", tags=["evaluations"])
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; sandbox allow-scripts"
)


def find_evaluation(name: str, state: AppState, user: User) -> str:
    """Return the place of an evaluation; raise NotThere if the server shows this user none.

    An evaluation holds rows of all its data, so a user from whom something is kept sees none.
    """
    if not user.sees_all or name not in state.serving.evaluations:
        raise NotThere(f"There is no evaluation {name[:80]!r}: start the server with --evaluation RUN.")
    return state.serving.evaluations[name]


@router.get("")
async def list_evaluations(state: CurrentState, user: CurrentUser) -> EvaluationList:
    """List the evaluations of this server; the list is empty if anything is kept from you."""
    return EvaluationList(evaluations=tuple(state.serving.evaluations) if user.sees_all else ())


@router.get("/{name}")
async def show_evaluation(name: str, state: CurrentState, user: CurrentUser) -> EvaluationReply:
    """Show every finished case, and the tables of the report."""
    return await evaluation_reply(name, find_evaluation(name, state, user))


@router.get("/{name}/events", **describe_answer("events"))
async def stream_evaluation(name: str, state: CurrentState, user: CurrentUser) -> Response:
    """Send the cases of an evaluation as they finish, as server-sent events."""
    place = find_evaluation(name, state, user)
    state.streams.check()
    stream = case_events(place, state.streams, lambda: state.runs.is_closing)
    return StreamingResponse(stream, headers=STREAM)


@router.get("/{name}/page", **describe_answer("html"))
async def show_evaluation_page(name: str, state: CurrentState, user: CurrentUser) -> Response:
    """Show the report as one page.

    Its own policy lets only the script run that it names; the sandbox keeps it apart.
    """
    out = io.StringIO()

    def write(store: RunStore) -> None:
        write_page(make_report(store.outcomes(), store.about()), lambda one: store.trace(one.key), out)

    await read_in_store(find_evaluation(name, state, user), write)
    return Response(out.getvalue(), media_type="text/html; charset=utf-8", headers={"content-security-policy": POLICY})


@router.get("/{name}/cases/{id}/story", **describe_answer("json", StoryReply))
async def show_case_story(name: str, id: str, state: CurrentState, user: CurrentUser) -> Response:
    """Show the events of one case."""

    def read(store: RunStore) -> str | None:
        """Return the pieces of the case's story as JSON; None if there is no such case."""
        case = next((outcome for outcome in store.each_outcome() if id_of_case(outcome) == id), None)
        return None if case is None else story_json(store.trace(case.key), MOST_STORY)

    text = await read_in_store(find_evaluation(name, state, user), read)
    if text is None:
        raise NotThere(f"There is no case {id[:80]!r} in this evaluation.")
    return Response(text, media_type="application/json")
