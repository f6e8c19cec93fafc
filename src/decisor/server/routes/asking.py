"""What may be asked of, and asking."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Response

from decisor.secrets import redact
from decisor.server.asking import rows
from decisor.server.here import HereNow, Who
from decisor.server.requests import ApprovalBody, AskBody, ChangeBody, HowToRun, MarkBody, ReadingBody
from decisor.server.responses import (
    Choices,
    ColumnReply,
    ConnectionReply,
    LimitsReply,
    RunReply,
    SchemaReply,
    SettingReply,
    TableReply,
    TechniqueReply,
)
from decisor.server.runs import NotThere
from decisor.server.serving import NO_LM
from decisor.server.telling import reply_of
from decisor.session.catalogue import Setting, TechniqueRow
from decisor.session.sources import Sources, name_from
from decisor.techniques import asks_lm, kind_of
from decisor.version import __version__

router = APIRouter(prefix="/api", tags=["ask"])
ConnectionForm = Literal["sql", "cypher", "passages", "tools"]


@router.get("/choices")
async def choices(here: HereNow, who: Who) -> Choices:
    """What may be asked of, and how."""
    serving, members = here.serving, here.pool.members
    limits = LimitsReply(**{name: getattr(serving.limits, name) for name in LimitsReply.model_fields})
    return Choices(
        version=__version__, user=who.name, lms=(*serving.lms, NO_LM), limits=limits,
        connections=tuple(connection_of(name, members[name]) for name in here.runs.connections(who)),
        techniques=tuple(technique_of(row) for row in rows().values()),
        evaluations=tuple(serving.evaluations) if who.sees_all else (),
    )  # fmt: skip


def connection_of(name: str, member: Sources) -> ConnectionReply:
    """A place is called by its last word: what stands before it is nobody's business."""
    place = member.places[0] if member.places else None
    form: ConnectionForm = place.form if place else "tools"
    label = redact(name_from(place.place)) if place else name
    return ConnectionReply(name=name, form=form, label=label, model=member.model is not None)


def technique_of(row: TechniqueRow) -> TechniqueReply:
    settings = tuple(setting_of(one) for one in row.settings if one.harmless or one.part)
    return TechniqueReply(name=row.name, about=row.about, asks_lm=asks_lm(kind_of(row.name)), settings=settings)


def setting_of(setting: Setting) -> SettingReply:
    is_truth = setting.type.startswith("bool")
    kind = "lm" if setting.part else "choice" if setting.choices else "yes or no" if is_truth else "number"
    return SettingReply.model_validate(
        {"name": setting.name, "kind": kind, "default": setting.default, "choices": setting.choices}
    )


@router.get("/connections/{name}")
async def schema(name: str, here: HereNow, who: Who) -> SchemaReply:
    """Tables with their columns, and the words in which an LM is shown them."""
    if name not in here.runs.connections(who):
        raise NotThere(f"There is no connection {name[:80]!r}.")
    data = await here.pool.member(name, who.reader)
    tool: object = data.tools[0]
    tables = tuple(table_of(table) for table in getattr(tool, "tables", ()))
    words = "\n\n".join(one.describe() for one in data.tools if one.name != "whatif")
    form = connection_of(name, here.pool.members[name]).form
    return SchemaReply(name=name, form=form, description=words, tables=tables, notes=tuple(getattr(tool, "notes", ())))


def table_of(table: Any) -> TableReply:
    columns = tuple(
        ColumnReply(name=one.name, type=one.type, nullable=one.nullable, key=one.key, references=one.references,
                    joins=one.joins, examples=one.examples)
        for one in table.columns
    )  # fmt: skip
    return TableReply(name=table.name, view=table.view, rows=table.rows, columns=columns)


@router.post("/ask", status_code=201)
async def ask(body: AskBody, here: HereNow, who: Who, response: Response) -> RunReply:
    """Start a run."""
    live = await here.runs.ask(who, body)
    response.headers["location"] = f"/api/runs/{live.id}"
    return reply_of(live)


@router.post("/runs/{id}/changes", status_code=201)
async def change(id: str, body: ChangeBody, here: HereNow, who: Who, response: Response) -> RunReply:
    """Change one thing in a run and go on from there, as a run of its own."""
    live = await here.runs.change(who, id, body)
    response.headers["location"] = f"/api/runs/{live.id}"
    return reply_of(live)


@router.post("/runs/{id}/resume", status_code=201)
async def resume(id: str, body: HowToRun, here: HereNow, who: Who, response: Response) -> RunReply:
    """Go on from a run that was stopped or failed: what it bought is not bought again."""
    live = await here.runs.resume(who, id, body)
    response.headers["location"] = f"/api/runs/{live.id}"
    return reply_of(live)


@router.post("/runs/{id}/stop")
async def stop(id: str, here: HereNow, who: Who) -> RunReply:
    """End a run. What it had stays."""
    return reply_of(await here.runs.stop(who, id))


@router.post("/runs/{id}/approvals/{number}")
async def approve(id: str, number: int, body: ApprovalBody, here: HereNow, who: Who) -> RunReply:
    """Allow or refuse a query that waits."""
    live = await here.runs.find(who, id)
    if not live.decide(number, body.allow, body.why):
        raise NotThere(f"No query {number} waits in run {id[:80]!r}.")
    return reply_of(live)


@router.post("/runs/{id}/readings/{number}")
async def say(id: str, number: int, body: ReadingBody, here: HereNow, who: Who) -> RunReply:
    """Say what words of the question mean."""
    live = await here.runs.find(who, id)
    if not live.say(number, body.answer):
        raise NotThere(f"No words {number} wait in run {id[:80]!r}.")
    return reply_of(live)


@router.post("/runs/{id}/mark")
async def mark(id: str, body: MarkBody, here: HereNow, who: Who) -> RunReply:
    """Say whether the decision was right, and what came of it."""
    return reply_of(await here.runs.mark(who, id, body))
