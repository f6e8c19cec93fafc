"""Runs: read, watched, shared, compared."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from decisor.encoding import json_text
from decisor.history.store import words_of
from decisor.server.here import HereNow, Who
from decisor.server.live import LiveRun
from decisor.server.responses import CompareReply, RunList, RunReply
from decisor.server.runs import NotThere
from decisor.server.sharing import html_of, markdown_of
from decisor.server.showing import read
from decisor.server.stream import all_events, run_events
from decisor.server.telling import changes_of, line_of, line_of_past, reply_of
from decisor.session.recorded import recorded_result
from decisor.story.html import story
from decisor.story.run_page import script_policy
from decisor.trace.file import file_text, row_of

router = APIRouter(prefix="/api", tags=["runs"])
PAGE_POLICY = (
    f"default-src 'none'; {script_policy()}; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; "
    "sandbox allow-popups allow-scripts"
)
"""Of a run as a page of its own: the script that moves drawings may run, and reaches nothing of ours."""
STREAM = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}
MOST = Annotated[int, Query(ge=1, le=500)]
After = Annotated[int, Query(ge=0, le=10**9)]


@router.get("/runs")
async def runs(
    here: HereNow, who: Who, search: Annotated[str, Query(max_length=1_000)] = "", most: MOST = 50,
    before: Annotated[str, Query(max_length=80)] = "",
) -> RunList:  # fmt: skip
    """Your runs, the newest first; those that hold each word of ``search`` and began before the run ``before``."""
    number = int(before) if before.isascii() and before.isdecimal() and len(before) < 16 else 0
    past = await here.runs.past(who, search, most, number)
    live = here.runs.live
    lines = [line_of(live[str(one.number)]) if str(one.number) in live else line_of_past(one) for one in past]
    others = [] if number else [line_of(one) for one in here.runs.unkept_of(who) if holds(one, search)]
    return RunList(runs=tuple([*reversed(others), *lines][:most]))


def holds(live: LiveRun, search: str) -> bool:
    return all(word in words_of(live.past) for word in search.casefold().split())


@router.get("/runs/{id}")
async def run(id: str, here: HereNow, who: Who) -> RunReply:
    """One run, with its result when it is over."""
    return reply_of(await read(here.runs, who, id))


@router.delete("/runs/{id}", status_code=204)
async def forget(id: str, here: HereNow, who: Who) -> None:
    """Forget a run; one that runs is stopped."""
    await here.runs.forget(who, id)


@router.get("/runs/{id}/events", response_class=StreamingResponse)
async def events(
    id: str, here: HereNow, who: Who, after: After = 0,
    last_event_id: Annotated[str, Header(max_length=20)] = "",
) -> Response:  # fmt: skip
    """What happens in a run, as server-sent events; docs/server.md tells of each."""
    live = await read(here.runs, who, id)
    here.streams.check()
    is_again = last_event_id.isdecimal()
    sent = int(last_event_id) if is_again else after
    if is_again and live.is_over and sent >= len(live.entries):
        return Response(status_code=204)
    return StreamingResponse(run_events(live, sent, here.streams), headers=STREAM)


@router.get("/events", response_class=StreamingResponse)
async def every_run(here: HereNow, who: Who) -> Response:
    """Your runs at each change of their state, as server-sent events."""
    here.streams.check()
    return StreamingResponse(all_events(here.runs, who, here.streams), headers=STREAM)


@router.get("/runs/{id}/entries/{number}")
async def entry(id: str, number: int, here: HereNow, who: Who) -> Response:
    """One entry of the trace, whole, with the prompt of a call."""
    entries = (await read(here.runs, who, id)).entries
    if not 1 <= number <= len(entries):
        raise NotThere(f"Run {id[:80]!r} has no entry {number}.")
    return Response(json_text(row_of(entries[number - 1], whole=True)), media_type="application/json")


@router.get("/runs/{id}/page")
async def page(id: str, here: HereNow, who: Who, download: bool = False) -> Response:
    """The run as one page that needs nothing else."""
    headers = {"content-security-policy": PAGE_POLICY, **named(id, "html", download)}
    return Response(
        html_of((await read(here.runs, who, id)).entries), media_type="text/html; charset=utf-8", headers=headers
    )


@router.get("/runs/{id}/markdown")
async def markdown(id: str, here: HereNow, who: Who, download: bool = False) -> Response:
    """The run as Markdown."""
    text = markdown_of((await read(here.runs, who, id)).entries)
    return Response(text, media_type="text/markdown; charset=utf-8", headers=named(id, "md", download))


@router.get("/runs/{id}/json")
async def as_json(id: str, here: HereNow, who: Who, download: bool = False) -> Response:
    """The result, as ``decisor ask --json`` prints it."""
    result = recorded_result((await read(here.runs, who, id)).entries).as_object()
    return Response(json_text(result), media_type="application/json", headers=named(id, "json", download))


@router.get("/runs/{id}/trace")
async def trace(id: str, here: HereNow, who: Who, download: bool = False) -> Response:
    """The trace file, as ``decisor ask --trace`` writes it."""
    text = file_text((await read(here.runs, who, id)).entries)
    return Response(text, media_type="application/jsonl; charset=utf-8", headers=named(id, "jsonl", download))


@router.get("/runs/{id}/story")
async def as_story(id: str, here: HereNow, who: Who) -> Response:
    """What happened, as the pieces that a page draws: plan, queries with rows, replans, decision."""
    return Response(story((await read(here.runs, who, id)).entries, 2_000_000), media_type="application/json")


def named(id: str, suffix: str, download: bool) -> dict[str, Any]:
    return {"content-disposition": f'attachment; filename="decisor-{id}.{suffix}"'} if download else {}


@router.get("/compare")
async def compare(before: str, after: str, here: HereNow, who: Who) -> CompareReply:
    """Two runs side by side."""
    old, new = await read(here.runs, who, before), await read(here.runs, who, after)
    return CompareReply(before=reply_of(old), after=reply_of(new), changes=changes_of(old.entries, new.entries))
