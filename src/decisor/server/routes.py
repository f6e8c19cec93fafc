"""The routes of the API: choices, questions, runs, drawings, decision models and decision records.

A route looks names up, calls the runs and the pool, and answers; it decides nothing. The guard has let only permitted
users through.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from decisor.decision_models.analyses import resolve_condition
from decisor.decision_models.client import OpenModel
from decisor.decision_models.ranking import rank_model
from decisor.decision_models.tool import ModelTool
from decisor.decision_record.approvals import check_approval
from decisor.decision_record.build import record_of_run
from decisor.decision_record.page import record_to_json, render_record_page
from decisor.decision_record.record import DecisionRecord
from decisor.history.store import searchable_text
from decisor.server import runs as showing
from decisor.server.live import LiveRun
from decisor.server.requests import (
    ApprovalBody,
    AskBody,
    ChangeBody,
    HowToRun,
    MarkBody,
    ReaderBody,
    ReadingBody,
    RecordApprovalBody,
    WhatIfBody,
    technique_row_of_name,
)
from decisor.server.responses import (
    ApprovalList,
    Choices,
    ColumnReply,
    CompareReply,
    ConnectionReply,
    InputReply,
    LimitsReply,
    MeasureReply,
    ModelReply,
    PictureReply,
    ReaderList,
    RecordReply,
    RunList,
    RunReply,
    SchemaReply,
    SettingReply,
    TableReply,
    TechniqueReply,
    VerifyReply,
    WhatIfReply,
)
from decisor.server.runs import NotThere, Runs, find_readable_run, html_of, markdown_of
from decisor.server.security import User
from decisor.server.settings import NO_LLM, ServerSettings
from decisor.server.stream import (
    Streams,
    compare_steps,
    line_of_past,
    run_line_of,
    run_reply,
    stream_all_events,
    stream_run_events,
)
from decisor.session.model_tools import SerializedTool
from decisor.session.result import build_recorded_result
from decisor.session.run_setup import TechniqueRow, TechniqueSetting
from decisor.session.sources import Sources, name_from_place
from decisor.system.secrets import redact
from decisor.system.serialization import finite_json_value, json_text, json_value
from decisor.techniques import asks_llm, find_technique_class
from decisor.trace.events import Conclusion
from decisor.trace.file import build_trace_row, format_trace_file
from decisor.types import Observation, Ranking, Tool
from decisor.version import __version__
from decisor.views.page import script_policy
from decisor.views.page_data import draw_picture, story_json
from decisor.views.rankings import ranking_html, study_html

if TYPE_CHECKING:
    from decisor.session.pool import Pool


@dataclass(eq=False)
class AppState:
    """The state of the application that every route uses."""

    serving: ServerSettings
    cookie: str
    """Name of the session cookie."""
    streams: Streams = field(default_factory=Streams)
    open_runs: Runs | None = None

    @property
    def runs(self) -> Runs:
        assert self.open_runs is not None, "the server has not started"
        return self.open_runs

    @property
    def pool(self) -> Pool:
        return self.runs.pool


async def current_state(request: Request) -> AppState:
    """Return the state of the application.

    A plain function would be called in a thread at each request, though this one waits for nothing.
    """
    state: AppState = request.app.state.decisor
    return state


async def current_user(request: Request) -> User:
    """Return the user of a request; the guard has let nobody else through."""
    user: User = request.scope["decisor_user"]
    return user


CurrentState = Annotated[AppState, Depends(current_state)]
CurrentUser = Annotated[User, Depends(current_user)]


ask_router = APIRouter(prefix="/api", tags=["ask"])
ConnectionForm = Literal["sql", "cypher", "passages", "tools"]


@ask_router.get("/choices")
async def list_choices(state: CurrentState, user: CurrentUser) -> Choices:
    """List the connections, LLMs, techniques and limits to choose from."""
    serving, members = state.serving, state.pool.members
    limits = LimitsReply.model_validate(serving.limits, from_attributes=True)
    return Choices(
        version=__version__,
        user=user.name,
        llms=(*serving.llms, NO_LLM),
        limits=limits,
        connections=tuple(connection_reply(name, members[name]) for name in state.runs.connections(user)),
        techniques=tuple(technique_reply(row) for row in technique_row_of_name().values()),
        evaluations=tuple(serving.evaluations) if user.sees_all else (),
    )


def connection_reply(name: str, member: Sources) -> ConnectionReply:
    """Describe a connection; its place is called by its last word. The words before it are nobody's business."""
    place = member.places[0] if member.places else None
    form: ConnectionForm = place.form if place else "tools"
    label = redact(name_from_place(place.place)) if place else name
    return ConnectionReply(name=name, form=form, label=label, model=member.model is not None)


def technique_reply(row: TechniqueRow) -> TechniqueReply:
    settings = tuple(setting_reply(one) for one in row.settings if one.harmless or one.part)
    return TechniqueReply(
        name=row.name, about=row.about, asks_llm=asks_llm(find_technique_class(row.name)), settings=settings
    )


def setting_reply(setting: TechniqueSetting) -> SettingReply:
    is_truth = setting.type.startswith("bool")
    kind = "llm" if setting.part else "choice" if setting.choices else "yes or no" if is_truth else "number"
    return SettingReply.model_validate(
        {"name": setting.name, "kind": kind, "default": setting.default, "choices": setting.choices}
    )


@ask_router.get("/connections/{name}")
async def show_schema(name: str, state: CurrentState, user: CurrentUser) -> SchemaReply:
    """Show the tables with their columns, and the text that an LLM is shown."""
    if name not in state.runs.connections(user):
        raise NotThere(f"There is no connection {name[:80]!r}.")
    data = await state.pool.member(name, user.reader)
    tool: object = data.tools[0]
    tables = tuple(table_reply(table) for table in getattr(tool, "tables", ()))
    words = "\n\n".join(one.describe() for one in data.tools if one.name != "whatif")
    form = connection_reply(name, state.pool.members[name]).form
    return SchemaReply(name=name, form=form, description=words, tables=tables, notes=tuple(getattr(tool, "notes", ())))


def table_reply(table: Any) -> TableReply:
    columns = tuple(ColumnReply.model_validate(column, from_attributes=True) for column in table.columns)
    return TableReply(name=table.name, view=table.view, rows=table.rows, columns=columns)


@ask_router.post("/ask", status_code=201)
async def start_run(body: AskBody, state: CurrentState, user: CurrentUser, response: Response) -> RunReply:
    """Start a run."""
    live = await state.runs.ask(user, body)
    response.headers["location"] = f"/api/runs/{live.id}"
    return run_reply(live)


@ask_router.post("/runs/{id}/changes", status_code=201)
async def edit_run(id: str, body: ChangeBody, state: CurrentState, user: CurrentUser, response: Response) -> RunReply:
    """Change one thing in a run and go on from there, as a run of its own."""
    live = await state.runs.change(user, id, body)
    response.headers["location"] = f"/api/runs/{live.id}"
    return run_reply(live)


@ask_router.post("/runs/{id}/resume", status_code=201)
async def resume_stopped_run(
    id: str, body: HowToRun, state: CurrentState, user: CurrentUser, response: Response
) -> RunReply:
    """Go on from a run that was stopped or failed. Its LLM calls are not bought again."""
    live = await state.runs.resume(user, id, body)
    response.headers["location"] = f"/api/runs/{live.id}"
    return run_reply(live)


@ask_router.post("/runs/{id}/stop")
async def stop_run(id: str, state: CurrentState, user: CurrentUser) -> RunReply:
    """End a run. The entries that it had stay."""
    return run_reply(await state.runs.stop(user, id))


@ask_router.post("/runs/{id}/approvals/{number}")
async def approve_query(id: str, number: int, body: ApprovalBody, state: CurrentState, user: CurrentUser) -> RunReply:
    """Allow or refuse a query that waits."""
    live = await state.runs.find(user, id)
    if not live.decide(number, body.allow, body.why):
        raise NotThere(f"No query {number} waits in run {id[:80]!r}.")
    return run_reply(live)


@ask_router.post("/runs/{id}/readings/{number}")
async def answer_reading(id: str, number: int, body: ReadingBody, state: CurrentState, user: CurrentUser) -> RunReply:
    """Tell the meaning of words of the question."""
    live = await state.runs.find(user, id)
    if not live.say(number, body.answer):
        raise NotThere(f"No words {number} wait in run {id[:80]!r}.")
    return run_reply(live)


@ask_router.post("/runs/{id}/mark")
async def mark_run(id: str, body: MarkBody, state: CurrentState, user: CurrentUser) -> RunReply:
    """Mark a decision as right or wrong, and note the consequences."""
    return run_reply(await state.runs.mark(user, id, body))


runs_router = APIRouter(prefix="/api", tags=["runs"])
PAGE_POLICY = (
    f"default-src 'none'; {script_policy()}; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; "
    "sandbox allow-popups allow-scripts"
)
"""Policy of a run as a page of its own: the script that moves drawings may run, and reaches nothing of ours."""
# Without x-accel-buffering nginx holds the events back.
STREAM = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}
MOST = Annotated[int, Query(ge=1, le=500)]
After = Annotated[int, Query(ge=0, le=10**9)]


@runs_router.get("/runs")
async def list_runs(
    state: CurrentState,
    user: CurrentUser,
    search: Annotated[str, Query(max_length=1_000)] = "",
    most: MOST = 50,
    before: Annotated[str, Query(max_length=80)] = "",
) -> RunList:
    """List your runs, the newest first. They hold each word of ``search`` and began before the run ``before``."""
    number = int(before) if before.isascii() and before.isdecimal() and len(before) < 16 else 0
    past = await state.runs.past(user, search, most, number)
    live = state.runs.live
    lines = [run_line_of(live[str(one.number)]) if str(one.number) in live else line_of_past(one) for one in past]
    others = [] if number else [run_line_of(one) for one in state.runs.unkept_of(user) if matches_search(one, search)]
    return RunList(runs=tuple([*reversed(others), *lines][:most]))


def matches_search(live: LiveRun, search: str) -> bool:
    return all(word in searchable_text(live.past) for word in search.casefold().split())


@runs_router.get("/runs/{id}")
async def show_run(id: str, state: CurrentState, user: CurrentUser) -> RunReply:
    """Show one run, with its result when it is over."""
    return run_reply(await find_readable_run(state.runs, user, id))


@runs_router.delete("/runs/{id}", status_code=204)
async def forget_run(id: str, state: CurrentState, user: CurrentUser) -> None:
    """Forget a run; if it is under way, it is stopped."""
    await state.runs.forget(user, id)


@runs_router.get("/runs/{id}/events", response_class=StreamingResponse)
async def stream_run(
    id: str,
    state: CurrentState,
    user: CurrentUser,
    after: After = 0,
    last_event_id: Annotated[str, Header(max_length=20)] = "",
) -> Response:
    """Send the events of a run, as server-sent events; docs/server.md describes each."""
    live = await find_readable_run(state.runs, user, id)
    state.streams.check()
    is_again = last_event_id.isdecimal()
    sent = int(last_event_id) if is_again else after
    # At 204 an EventSource does not come back.
    if is_again and live.is_over and sent >= len(live.entries):
        return Response(status_code=204)
    return StreamingResponse(stream_run_events(live, sent, state.streams), headers=STREAM)


@runs_router.get("/events", response_class=StreamingResponse)
async def stream_all_runs(state: CurrentState, user: CurrentUser) -> Response:
    """Send your runs at each change of their state, as server-sent events."""
    state.streams.check()
    return StreamingResponse(stream_all_events(state.runs, user, state.streams), headers=STREAM)


@runs_router.get("/runs/{id}/entries/{number}")
async def show_trace_entry(id: str, number: int, state: CurrentState, user: CurrentUser) -> Response:
    """Show one entry of the trace, whole, with the prompt of a call."""
    entries = (await find_readable_run(state.runs, user, id)).entries
    if not 1 <= number <= len(entries):
        raise NotThere(f"Run {id[:80]!r} has no entry {number}.")
    return Response(json_text(build_trace_row(entries[number - 1], whole=True)), media_type="application/json")


@runs_router.get("/runs/{id}/page")
async def show_run_page(id: str, state: CurrentState, user: CurrentUser, download: bool = False) -> Response:
    """Show the run as one page that needs nothing else."""
    headers = {"content-security-policy": PAGE_POLICY, **download_headers(id, "html", download)}
    return Response(
        html_of((await find_readable_run(state.runs, user, id)).entries),
        media_type="text/html; charset=utf-8",
        headers=headers,
    )


@runs_router.get("/runs/{id}/markdown")
async def show_run_markdown(id: str, state: CurrentState, user: CurrentUser, download: bool = False) -> Response:
    """Show the run as Markdown."""
    text = markdown_of((await find_readable_run(state.runs, user, id)).entries)
    return Response(text, media_type="text/markdown; charset=utf-8", headers=download_headers(id, "md", download))


@runs_router.get("/runs/{id}/json")
async def show_run_result(id: str, state: CurrentState, user: CurrentUser, download: bool = False) -> Response:
    """Show the result, as ``decisor ask --json`` prints it."""
    result = build_recorded_result((await find_readable_run(state.runs, user, id)).entries).as_object()
    return Response(json_text(result), media_type="application/json", headers=download_headers(id, "json", download))


@runs_router.get("/runs/{id}/trace")
async def show_run_trace(id: str, state: CurrentState, user: CurrentUser, download: bool = False) -> Response:
    """Show the trace file, as ``decisor ask --trace`` writes it."""
    text = format_trace_file((await find_readable_run(state.runs, user, id)).entries)
    return Response(
        text, media_type="application/jsonl; charset=utf-8", headers=download_headers(id, "jsonl", download)
    )


@runs_router.get("/runs/{id}/story")
async def show_run_story(id: str, state: CurrentState, user: CurrentUser) -> Response:
    """Show the pieces that a page draws: plan, queries with rows, replans, decision."""
    return Response(
        story_json((await find_readable_run(state.runs, user, id)).entries, 2_000_000), media_type="application/json"
    )


def download_headers(id: str, suffix: str, download: bool) -> dict[str, Any]:
    return {"content-disposition": f'attachment; filename="decisor-{id}.{suffix}"'} if download else {}


@runs_router.get("/compare")
async def compare_runs(before: str, after: str, state: CurrentState, user: CurrentUser) -> CompareReply:
    """Compare two runs side by side."""
    old, new = await find_readable_run(state.runs, user, before), await find_readable_run(state.runs, user, after)
    return CompareReply(before=run_reply(old), after=run_reply(new), changes=compare_steps(old.entries, new.entries))


models_router = APIRouter(prefix="/api/models", tags=["what if"])


@models_router.get("/{name}")
async def show_connection_model(name: str, state: CurrentState, user: CurrentUser) -> ModelReply:
    """Show the decision model of a connection: choice, measures, inputs, scenarios and what-if inputs."""
    tool = await find_model_tool(name, state, user)
    words = tool.describe().splitlines()
    opened = model_of_tool(tool)
    if opened is None:
        return ModelReply(name=name, decide="", lines=tuple(words), forms="")
    start = next((at for at, line in enumerate(words) if line.startswith("Input, one of")), len(words))
    file = opened.model
    inputs = tuple(
        InputReply(name=one.name, unit=one.unit, spread=str(one.spread or ""), raises=one.raises, lowers=one.lowers)
        for one in file.inputs
    )
    return ModelReply(
        name=name,
        decide=file.decide,
        lines=tuple(words[:start]),
        forms="\n".join(words[start:]),
        inputs=inputs,
        measures=tuple(MeasureReply(name=one.name, goal=one.goal, unit=one.unit) for one in file.measures),
        scenarios=tuple(one.name for one in file.scenarios),
    )


@models_router.post("/{name}/whatif")
async def ask_what_if(name: str, body: WhatIfBody, state: CurrentState, user: CurrentUser) -> WhatIfReply:
    """Rank, change an input, or ask why not another one. The data stay as they are: a copy is changed."""
    tool = await find_model_tool(name, state, user)
    observation = await tool.call(body.input)
    return what_if_reply(observation, await rank_changed_data(tool, body.input))


async def rank_changed_data(tool: Tool, text: str) -> tuple[Ranking, Ranking] | None:
    """Rank the data as they are, and as a change or a scenario leaves them; return None for another input."""
    inside = tool.tool if isinstance(tool, SerializedTool) else tool
    if not isinstance(tool, SerializedTool) or not isinstance(inside, ModelTool) or not inside.model.model.choice:
        return None
    wish = inside.wish(text)
    if wish.kind not in ("change", "scenario"):
        return None
    scenario, changes, _ = resolve_condition(inside.model, wish)
    # The scratch copy holds the change of one candidate at a time.
    async with tool.turn:
        inside.start_clock(inside.seconds)
        before = await asyncio.to_thread(rank_model, inside.model, trials=0)
        after = await asyncio.to_thread(rank_model, inside.model, trials=0, scenario=scenario, changes=changes)
    return before, after


async def find_model_tool(name: str, state: AppState, user: User) -> Tool:
    """Return the what-if tool of a connection; raise NotThere if there is none.

    The connection may be unknown or have no decision model.
    """
    if name in state.runs.connections(user):
        for tool in (await state.pool.member(name, user.reader)).tools:
            if tool.name == "whatif":
                return tool
    raise NotThere(f"There is no decision model {name[:80]!r}: start the server with --model FILE.")


def model_of_tool(tool: Tool) -> OpenModel | None:
    inside = tool.tool if isinstance(tool, SerializedTool) else tool
    return inside.model if isinstance(inside, ModelTool) else None


def what_if_reply(observation: Observation, change: tuple[Ranking, Ranking] | None) -> WhatIfReply:
    """Return an observation with its charts. change: the ranking before and after a change."""
    records = tuple(
        RecordReply(id=one.id, fields=finite_json_value(one.fields), text=one.text, source=one.source)
        for one in observation.records
    )
    before, changed = change or (None, None)
    ranking = changed or observation.ranking
    charts = study_html(observation.study) if observation.study else ""
    return WhatIfReply(
        note=observation.note,
        records=records,
        ranking=finite_json_value(observation.ranking),
        study=finite_json_value(observation.study),
        changed=finite_json_value(changed),
        charts=(ranking_html(ranking, before) or "") + charts if ranking else charts,
    )


@runs_router.get("/runs/{id}/picture")
async def show_picture(id: str, state: CurrentState, user: CurrentUser) -> PictureReply:
    """Show the drawings and the result of a run, as far as it has come."""
    entries = (await find_readable_run(state.runs, user, id)).entries
    is_over = any(isinstance(entry.event, Conclusion) and entry.span == 0 for entry in entries)
    result = build_recorded_result(entries) if is_over else None
    decision, records = (result.decision, result.records) if result else (None, ())
    return PictureReply.model_validate(draw_picture(entries, decision, records))


record_router = APIRouter(prefix="/api/runs", tags=["record"])


@record_router.get("/{id}/record")
async def show_record(id: str, state: CurrentState, user: CurrentUser, download: bool = False) -> Response:
    """Show the record of the decision, as ``decisor show --record`` writes it."""
    text = record_to_json(await build_run_record(state, user, id))
    return Response(text, media_type="application/json", headers=download_headers(id, "record.json", download))


@record_router.get("/{id}/record-page")
async def show_record_page(id: str, state: CurrentState, user: CurrentUser, download: bool = False) -> Response:
    """Show the record of the decision as one page."""
    headers = {"content-security-policy": PAGE_POLICY, **download_headers(id, "record.html", download)}
    text = render_record_page(await build_run_record(state, user, id))
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


async def build_run_record(state: AppState, user: User, id: str) -> DecisionRecord:
    live = await find_readable_run(state.runs, user, id)
    return record_of_run(live.past, live.entries)


@record_router.get("/{id}/record/approvals")
async def list_approvals(id: str, state: CurrentState, user: CurrentUser) -> ApprovalList:
    """List the approvals of a decision, and whether each is of the record as it is."""
    return approvals_of(await build_run_record(state, user, id))


@record_router.post("/{id}/record/approvals")
async def approve_record(id: str, body: RecordApprovalBody, state: CurrentState, user: CurrentUser) -> ApprovalList:
    """Approve the record of the decision, refuse it, or take that back."""
    return approvals_of(await showing.save_record_approval(state.runs, user, id, body))


def approvals_of(record: DecisionRecord) -> ApprovalList:
    lines = [json_value(one) | {"standing": check_approval(one, record.digest)} for one in record.approvals]
    return ApprovalList.model_validate({"digest": record.digest, "approvals": lines})


@record_router.post("/{id}/record/verification")
async def verify_decision(id: str, state: CurrentState, user: CurrentUser) -> VerifyReply:
    """Compute the decision again, without an LLM.

    It says which cited rows changed, whether the decision holds, and which candidate wins now.
    """
    return VerifyReply.model_validate(finite_json_value(await showing.verify_live_run(state.runs, user, id)))


@record_router.get("/{id}/readers")
async def show_readers(id: str, state: CurrentState, user: CurrentUser) -> ReaderList:
    """Show the users to whom a run of yours is shown, and those to whom it could be."""
    return await showing.list_readers(state.runs, user, id)


@record_router.post("/{id}/readers")
async def share_run(id: str, body: ReaderBody, state: CurrentState, user: CurrentUser) -> ReaderList:
    """Show a run of yours to another user, who may see all that it saw. They can read it, and approve or refuse it."""
    return await showing.show_run_to_user(state.runs, user, id, body)
