"""Evaluations: read, and watched while they fill."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from decisor.server import evaluations
from decisor.server.here import Here, HereNow, Who
from decisor.server.responses import EvaluationList, EvaluationReply
from decisor.server.routes.reading import STREAM
from decisor.server.runs import NotThere
from decisor.server.users import User

router = APIRouter(prefix="/api/evaluations", tags=["evaluations"])
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; sandbox allow-scripts"
)


def place_of(name: str, here: Here, who: User) -> str:
    """Raises NotThere where the server shows this user none of the name: an evaluation holds rows of all its data."""
    if not who.sees_all or name not in here.serving.evaluations:
        raise NotThere(f"There is no evaluation {name[:80]!r}: start the server with --evaluation RUN.")
    return here.serving.evaluations[name]


@router.get("")
async def names(here: HereNow, who: Who) -> EvaluationList:
    """The evaluations that this server shows to you: all, where nothing is kept from you."""
    return EvaluationList(evaluations=tuple(here.serving.evaluations) if who.sees_all else ())


@router.get("/{name}")
async def one(name: str, here: HereNow, who: Who) -> EvaluationReply:
    """Every finished case, and the tables of the report."""
    return await evaluations.evaluation(name, place_of(name, here, who))


@router.get("/{name}/events", response_class=StreamingResponse)
async def events(name: str, here: HereNow, who: Who) -> Response:
    """Its cases as they finish, as server-sent events."""
    place = place_of(name, here, who)
    here.streams.check()
    stream = evaluations.case_events(place, here.streams, lambda: here.runs.is_closing)
    return StreamingResponse(stream, headers=STREAM)


@router.get("/{name}/page")
async def page(name: str, here: HereNow, who: Who) -> Response:
    """The report as one page. Its own policy lets run only the script that it names; the sandbox keeps it apart."""
    text = await evaluations.page(place_of(name, here, who))
    return Response(text, media_type="text/html; charset=utf-8", headers={"content-security-policy": POLICY})


@router.get("/{name}/cases/{id}/story")
async def case_story(name: str, id: str, here: HereNow, who: Who) -> Response:
    """What happened in one case."""
    text = await evaluations.case_story(place_of(name, here, who), id)
    if text is None:
        raise NotThere(f"There is no case {id[:80]!r} in this evaluation.")
    return Response(text, media_type="application/json")
