"""The routes of the API: choices, questions, runs, drawings, decision models and decision records.

A route looks names up, calls the runs and the pool, and answers; it decides nothing. The guard has let only permitted
users through.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from decisor.decision_models.analyses import resolve_condition
from decisor.decision_models.ranking import rank_model
from decisor.decision_models.tool import is_fragment, lay_over, parse_fragment
from decisor.decision_models.turning_points import list_input_groups
from decisor.decision_record.build import record_of_run
from decisor.decision_record.page import record_to_json, render_record_page
from decisor.decision_record.record import DecisionRecord, check_approval
from decisor.history.store import searchable_text
from decisor.server.identity import Refusal
from decisor.server.live import REFUSED, LiveRun
from decisor.server.metrics import Metrics
from decisor.server.requests import (
    ApprovalBody,
    AskBody,
    ChangeBody,
    HabitsBody,
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
    CompareReply,
    ConnectionReply,
    HealthReply,
    InputReply,
    MeasureReply,
    ModelReply,
    ParameterReply,
    PictureReply,
    QuestionList,
    ReaderList,
    ResultJson,
    RunList,
    RunReply,
    SchemaReply,
    SettingReply,
    StoryReply,
    TechniqueReply,
    TraceRow,
    VerificationJson,
    WhatIfReply,
    suggest_questions,
)
from decisor.server.runs import (
    NotThere,
    Runs,
    find_readable_run,
    html_of,
    list_readers,
    markdown_of,
    parse_run_id,
    save_record_approval,
    show_run_to_user,
    verify_live_run,
)
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
from decisor.server.users import User
from decisor.session.model_tools import SerializedTool
from decisor.session.result import build_recorded_result
from decisor.session.run_setup import TechniqueRow, TechniqueSetting, unwrap_model_tool
from decisor.session.sources import Sources, name_from_place
from decisor.system.extras import missing_extra_error
from decisor.system.secrets import redact
from decisor.system.serialization import finite_json_value, json_text, json_value
from decisor.techniques import asks_llm, find_technique_class
from decisor.trace.events import Conclusion
from decisor.trace.file import build_trace_row, format_trace_file
from decisor.types import Observation, Ranking, Tool
from decisor.version import __version__
from decisor.views.comparison import compare_ranking, dot_plot_html
from decisor.views.exports import rows_of_result, write_csv, write_parquet
from decisor.views.page import draw_picture, script_policy, story_json
from decisor.views.rankings import study_html

if TYPE_CHECKING:
    from decisor.session.pool import Pool


@dataclass(eq=False)
class AppState:
    """The state of the application that every route uses."""

    serving: ServerSettings
    cookie: str
    """Name of the session cookie."""
    metrics: Metrics | None = None
    """Figures for Prometheus; None without the extra ``metrics``."""
    streams: Streams = field(default_factory=Streams)
    open_runs: Runs | None = None

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the server by https, as far as it knows."""
        login = self.serving.users.login
        return login is not None and login.address.startswith("https:")

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


async def readable_run(id: str, state: CurrentState, user: CurrentUser) -> LiveRun:
    """Return a run that the user may read; raise NotThere if there is none."""
    return await find_readable_run(state.runs, user, id)


ReadableRun = Annotated[LiveRun, Depends(readable_run)]


ask_router = APIRouter(prefix="/api", tags=["ask"])
ConnectionForm = Literal["sql", "cypher", "passages", "tools"]


@ask_router.get("/choices")
async def list_choices(state: CurrentState, user: CurrentUser) -> Choices:
    """List the connections, LLMs, techniques and limits to choose from."""
    serving, members = state.serving, state.pool.members
    return Choices(
        version=__version__,
        user=user.name,
        llms=(*serving.llms_for(user), NO_LLM),
        limits=serving.limits,
        connections=tuple(
            connection_reply(name, members[name], name in state.pool.owners)
            for name in await state.runs.connections(user)
        ),
        takes_files=serving.takes_files,
        techniques=tuple(
            technique_reply(row)
            for name, row in technique_row_of_name().items()
            if user.techniques is None or name in user.techniques
        ),
        evaluations=tuple(serving.evaluations) if user.sees_all else (),
        budgets=tuple(await state.runs.budgets.lines(user)) if user.budgets else (),
    )


def connection_reply(name: str, member: Sources, mine: bool = False) -> ConnectionReply:
    """Describe a connection; its place is called by its last word. The words before it are nobody's business."""
    place = member.places[0] if member.places else None
    form: ConnectionForm = place.form if place else "tools"
    label = redact(name_from_place(place.place)) if place else name
    return ConnectionReply(name=name, form=form, label=label, model=member.model is not None, mine=mine)


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
    if name not in await state.runs.connections(user):
        raise NotThere(f"There is no connection {name[:80]!r}.")
    data = await state.pool.member(name, user.reader)
    tool: object = data.tools[0]
    return SchemaReply.model_validate(
        {
            "name": name,
            "form": connection_reply(name, state.pool.members[name]).form,
            "description": "\n\n".join(one.describe() for one in data.tools if one.name != "whatif"),
            "tables": getattr(tool, "tables", ()),
            "notes": getattr(tool, "notes", ()),
        }
    )


@ask_router.put("/files/{name}", status_code=201)
async def upload_file(
    name: Annotated[str, Path(max_length=200)], request: Request, state: CurrentState, user: CurrentUser
) -> ConnectionReply:
    """Keep a file of yours as a connection: CSV, Excel or Parquet, its bytes as the body (application/octet-stream)."""
    if not state.serving.takes_files:
        raise Refusal(403, "This server takes no files.")
    kept = await state.runs.uploads.keep(user, name, request.stream())
    return connection_reply(kept, state.pool.members[kept], mine=True)


@ask_router.post("/files/{name}", status_code=204)
async def read_file_again(name: str, body: HabitsBody, state: CurrentState, user: CurrentUser) -> None:
    """Read a file of yours again, with its numbers or dates written as you say. name: of its connection."""
    await state.runs.uploads.read_as(user, name, body.model_dump(exclude_none=True))


@ask_router.delete("/files/{name}", status_code=204)
async def remove_file(name: str, state: CurrentState, user: CurrentUser) -> None:
    """Remove a file of yours, and what was read from it. name: of its connection."""
    await state.runs.uploads.forget(user, name)


@ask_router.get("/connections/{name}/questions")
async def list_questions(name: str, state: CurrentState, user: CurrentUser) -> QuestionList:
    """Suggest questions that the tables of a connection can answer, by rules; no LLM is asked."""
    schema = await show_schema(name, state, user)
    return QuestionList(questions=tuple(suggest_questions(schema.tables)))


@ask_router.post("/ask", status_code=201)
async def start_run(
    body: AskBody,
    state: CurrentState,
    user: CurrentUser,
    response: Response,
    wait: Annotated[float, Query(ge=0, le=600, description="Seconds to wait for the end of the run; 0 for none.")] = 0,
    idempotency_key: Annotated[
        str, Header(max_length=200, description="Text of your own: sent again, it gets the run that it began.")
    ] = "",
) -> RunReply:
    """Start a run. With ``wait`` the reply comes when it is over, or is how far it is by then."""
    live = await state.runs.ask_with_key(user, body, idempotency_key)
    if wait:
        live = await state.runs.wait(user, live, wait)
    return reply_to_start(live, response)


def reply_to_start(live: LiveRun, response: Response) -> RunReply:
    response.headers["location"] = f"/api/runs/{live.id}"
    return run_reply(live)


@ask_router.post("/runs/{id}/changes", status_code=201)
async def edit_run(id: str, body: ChangeBody, state: CurrentState, user: CurrentUser, response: Response) -> RunReply:
    """Change one thing in a run and go on from there, as a run of its own."""
    return reply_to_start(await state.runs.begin(user, body, id), response)


@ask_router.post("/runs/{id}/resume", status_code=201)
async def resume_stopped_run(
    id: str, body: HowToRun, state: CurrentState, user: CurrentUser, response: Response
) -> RunReply:
    """Go on from a run that was stopped or failed. Its LLM calls are not bought again."""
    return reply_to_start(await state.runs.begin(user, body, id), response)


@ask_router.post("/runs/{id}/stop")
async def stop_run(id: str, state: CurrentState, user: CurrentUser) -> RunReply:
    """End a run. The entries that it had stay."""
    return run_reply(await state.runs.stop(user, id))


@ask_router.post("/runs/{id}/approvals/{number}")
async def approve_query(id: str, number: int, body: ApprovalBody, state: CurrentState, user: CurrentUser) -> RunReply:
    """Allow or refuse a query that waits."""
    live = await state.runs.find(user, id)
    refusal = f"{REFUSED} {body.why}".strip()
    if body.instead.strip():
        refusal = f"{refusal} They changed the query. Run this one, as it is:\n{body.instead.strip()}"
    if not live.answer("query", number, "" if body.allow else refusal):
        raise NotThere(f"No query {number} waits in run {id[:80]!r}.")
    return run_reply(live)


@ask_router.post("/runs/{id}/readings/{number}")
async def answer_reading(id: str, number: int, body: ReadingBody, state: CurrentState, user: CurrentUser) -> RunReply:
    """Tell the meaning of words of the question."""
    live = await state.runs.find(user, id)
    if not live.answer("words", number, body.answer):
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
MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "txt": "text/plain; version=0.0.4; charset=utf-8",
}
# Without x-accel-buffering nginx holds the events back.
STREAM = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}


def describe_answer(kind: str, content: Any = None) -> dict[str, Any]:
    """Describe an answer that is a file, or a stream (``events``), in the description of the API. content: its JSON."""
    if content is not None:
        return {"response_class": Response, "responses": {200: {"model": content}}}
    media = MEDIA_TYPES.get(kind, STREAM["content-type"]).partition(";")[0]
    return {"response_class": Response, "responses": {200: {"content": {media: {"schema": {"type": "string"}}}}}}


health_router = APIRouter(tags=["health"])


@health_router.get("/healthz")
async def check_health() -> HealthReply:
    """Answer that the server runs. It needs no token."""
    return HealthReply(status="ok")


@health_router.get("/readyz", responses={503: {"model": HealthReply}})
async def check_readiness(state: CurrentState, response: Response) -> HealthReply:
    """Answer whether a question would be taken now: 503 if too many wait, the server ends, or its store is away.

    It needs no token.
    """
    missing = state.runs.missing
    response.status_code = 503 if missing else 200
    return HealthReply(status="busy" if missing else "ok", missing=missing)


@health_router.get("/metrics", **describe_answer("txt"))
async def show_metrics(state: CurrentState, user: CurrentUser) -> Response:
    """Show the figures of all processes of this machine, in Prometheus's text format."""
    if not user.metrics:
        raise Refusal(403, "The figures of the server are for users with metrics = true.")
    if state.metrics is None:
        raise missing_extra_error("Metrics need prometheus_client", "metrics")
    state.metrics.waiting.set(await state.runs.count_waiting())
    return Response(await asyncio.to_thread(state.metrics.text), media_type=MEDIA_TYPES["txt"])


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
    number = parse_run_id(before)
    past = await state.runs.past(user, search, most, number)
    live = state.runs.live
    lines = [run_line_of(live[str(one.number)]) if str(one.number) in live else line_of_past(one) for one in past]
    # Runs that the history does not have stand on the first page.
    unkept = [one for one in live.values() if not (number or one.past.number) and one.past.owner == user.name]
    words = search.casefold().split()
    others = [run_line_of(one) for one in unkept if all(word in searchable_text(one.past) for word in words)]
    return RunList(runs=tuple([*reversed(others), *lines][:most]))


@runs_router.get("/runs/{id}")
async def show_run(live: ReadableRun) -> RunReply:
    """Show one run, with its result when it is over."""
    return run_reply(live)


@runs_router.delete("/runs/{id}", status_code=204)
async def forget_run(id: str, state: CurrentState, user: CurrentUser) -> None:
    """Forget a run; if it is under way, it is stopped."""
    await state.runs.forget(user, id)


@runs_router.get("/runs/{id}/events", **describe_answer("events"))
async def stream_run(
    live: ReadableRun, state: CurrentState, after: After = 0, last_event_id: Annotated[str, Header(max_length=20)] = ""
) -> Response:
    """Send the events of a run, as server-sent events; docs/server.md describes each."""
    state.streams.check()
    is_again = last_event_id.isdecimal()
    sent = int(last_event_id) if is_again else after
    # At 204 an EventSource does not come back.
    if is_again and live.is_over and sent >= len(live.entries):
        return Response(status_code=204)
    return StreamingResponse(stream_run_events(live, sent, state.streams), headers=STREAM)


@runs_router.get("/events", **describe_answer("events"))
async def stream_all_runs(state: CurrentState, user: CurrentUser) -> Response:
    """Send your runs at each change of their state, as server-sent events."""
    state.streams.check()
    return StreamingResponse(stream_all_events(state.runs, user, state.streams), headers=STREAM)


@runs_router.get("/runs/{id}/entries/{number}", **describe_answer("json", TraceRow))
async def show_trace_entry(live: ReadableRun, number: int) -> Response:
    """Show one entry of the trace, whole, with the prompt of a call."""
    if not 1 <= number <= len(live.entries):
        raise NotThere(f"Run {live.id!r} has no entry {number}.")
    return Response(json_text(build_trace_row(live.entries[number - 1], whole=True)), media_type=MEDIA_TYPES["json"])


@runs_router.get("/runs/{id}/page", **describe_answer("html"))
async def show_run_page(live: ReadableRun, download: bool = False) -> Response:
    """Show the run as one page that needs nothing else."""
    return file_response(f"{live.id}.html", html_of(live.entries), download)


@runs_router.get("/runs/{id}/markdown", **describe_answer("md"))
async def show_run_markdown(live: ReadableRun, download: bool = False) -> Response:
    """Show the run as Markdown."""
    return file_response(f"{live.id}.md", markdown_of(live.entries), download)


@runs_router.get("/runs/{id}/json", **describe_answer("json", ResultJson))
async def show_run_result(live: ReadableRun, download: bool = False) -> Response:
    """Show the result, as ``decisor ask --json`` prints it."""
    return file_response(f"{live.id}.json", json_text(build_recorded_result(live.entries).to_dict()), download)


@runs_router.get("/runs/{id}/trace", **describe_answer("jsonl"))
async def show_run_trace(live: ReadableRun, download: bool = False) -> Response:
    """Show the trace file, as ``decisor ask --trace`` writes it."""
    return file_response(f"{live.id}.jsonl", format_trace_file(live.entries), download)


@runs_router.get("/runs/{id}/story", **describe_answer("json", StoryReply))
async def show_run_story(live: ReadableRun) -> Response:
    """Show the pieces that a page draws: plan, queries with rows, replans, decision."""
    return Response(story_json(live.entries, 2_000_000), media_type=MEDIA_TYPES["json"])


@runs_router.get("/runs/{id}/rows/{name}.{kind}", **describe_answer("csv"))
async def show_rows(live: ReadableRun, name: str, kind: Literal["csv", "parquet"]) -> Response:
    """Give all rows of a result, such as o2, as CSV, in which no text can run as a formula, or as Parquet."""
    records = rows_of_result(live.entries, name)
    if not records:
        raise NotThere(f"Run {live.id!r} has no result {name[:80]!r}.")
    content = await asyncio.to_thread(write_csv if kind == "csv" else write_parquet, records)
    file = f"decisor-{live.id}-{records[0].id.partition('.')[0]}.{kind}"
    headers = {"content-disposition": f'attachment; filename="{file}"'}
    return Response(content, media_type=MEDIA_TYPES[kind], headers=headers)


def file_response(name: str, content: str, download: bool) -> Response:
    """Return a file of a run, of the kind that its name says. download: to be saved, not shown."""
    kind = name.rpartition(".")[2]
    headers = {"content-security-policy": PAGE_POLICY} if kind == "html" else {}
    if download:
        headers["content-disposition"] = f'attachment; filename="decisor-{name}"'
    return Response(content, media_type=MEDIA_TYPES[kind], headers=headers)


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
    opened = unwrap_model_tool(tool)
    if opened is None:
        return ModelReply(name=name, decide="", lines=tuple(words), forms="")
    start = next((at for at, line in enumerate(words) if line.startswith("Input, one of")), len(words))
    file = opened.model.model
    return ModelReply(
        name=name,
        decide=file.decide,
        lines=tuple(words[:start]),
        forms="\n".join(words[start:]),
        inputs=tuple(
            InputReply(
                name=one.name,
                unit=one.unit,
                spread=one.spread,
                raises=one.raises,
                lowers=one.lowers,
                groups=list_input_groups(opened.model, one),
            )
            for one in file.inputs
        ),
        parameters=tuple(
            ParameterReply(name=name, value=value, unit=file.units.get(name, ""))
            for name, value in file.parameters.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        ),
        measures=tuple(map(MeasureReply.model_validate, file.measures)),
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
    inside = unwrap_model_tool(tool)
    if not isinstance(tool, SerializedTool) or inside is None or not inside.model.model.choice:
        return None
    changed, scenario = inside.model, ""
    if is_fragment(text):
        fragment = parse_fragment(text)
        changed, changes = changed.lay_over(lay_over(changed.model, fragment)), fragment.change
    elif (wish := inside.wish(text)).kind in ("change", "scenario"):
        scenario, changes, _ = resolve_condition(changed, wish)
    else:
        return None
    # The scratch copy holds the change of one candidate at a time.
    async with tool.turn:
        inside.start_clock(inside.seconds)
        before = await asyncio.to_thread(rank_model, inside.model, trials=0)
        after = await asyncio.to_thread(rank_model, changed, trials=0, scenario=scenario, changes=changes)
    return before, after


async def find_model_tool(name: str, state: AppState, user: User) -> Tool:
    """Return the what-if tool of a connection; raise NotThere if there is none.

    The connection may be unknown or have no decision model.
    """
    if name in await state.runs.connections(user):
        for tool in (await state.pool.member(name, user.reader)).tools:
            if tool.name == "whatif":
                return tool
    raise NotThere(f"There is no decision model {name[:80]!r}: start the server with --model FILE.")


def what_if_reply(observation: Observation, change: tuple[Ranking, Ranking] | None) -> WhatIfReply:
    """Return an observation with its charts. change: the ranking before and after a change."""
    before, changed = change or (None, None)
    ranking = changed or observation.ranking
    comparison, unchanged = (compare_ranking(one) if one else None for one in (ranking, before))
    charts = [dot_plot_html(comparison, unchanged)] if comparison else []
    # A change has its two rankings on one axis; its study says the same again.
    charts += [study_html(observation.study)] if observation.study and not change else []
    return WhatIfReply.model_validate(
        {
            **finite_json_value(
                {
                    "note": observation.note,
                    "records": observation.records,
                    "ranking": observation.ranking,
                    "study": observation.study,
                    "changed": changed,
                }
            ),
            "charts": "".join(charts),
        }
    )


@runs_router.get("/runs/{id}/picture")
async def show_picture(live: ReadableRun) -> PictureReply:
    """Show the drawings and the result of a run, as far as it has come."""
    entries = live.entries
    is_over = any(isinstance(entry.event, Conclusion) and entry.span == 0 for entry in entries)
    result = build_recorded_result(entries) if is_over else None
    decision, records = (result.decision, result.records) if result else (None, ())
    return PictureReply.model_validate(draw_picture(entries, decision, records))


record_router = APIRouter(prefix="/api/runs", tags=["record"])


@record_router.get("/{id}/record", **describe_answer("json", DecisionRecord))
async def show_record(live: ReadableRun, download: bool = False) -> Response:
    """Show the record of the decision, as ``decisor history show --record`` writes it."""
    record = record_of_run(live.past, live.entries)
    return file_response(f"{live.id}.record.json", record_to_json(record), download)


@record_router.get("/{id}/record-page", **describe_answer("html"))
async def show_record_page(live: ReadableRun, download: bool = False) -> Response:
    """Show the record of the decision as one page."""
    record = record_of_run(live.past, live.entries)
    return file_response(f"{live.id}.record.html", render_record_page(record), download)


@record_router.get("/{id}/record/approvals")
async def list_approvals(live: ReadableRun) -> ApprovalList:
    """List the approvals of a decision, and whether each is of the record as it is."""
    return approvals_of(record_of_run(live.past, live.entries))


@record_router.post("/{id}/record/approvals")
async def approve_record(id: str, body: RecordApprovalBody, state: CurrentState, user: CurrentUser) -> ApprovalList:
    """Approve the record of the decision, refuse it, or take that back."""
    return approvals_of(await save_record_approval(state.runs, user, id, body))


def approvals_of(record: DecisionRecord) -> ApprovalList:
    lines = [json_value(one) | {"standing": check_approval(one, record.digest)} for one in record.approvals]
    return ApprovalList.model_validate({"digest": record.digest, "approvals": lines})


@record_router.post("/{id}/record/verification")
async def verify_decision(id: str, state: CurrentState, user: CurrentUser) -> VerificationJson:
    """Compute the decision again, without an LLM.

    It says which cited rows changed, whether the decision holds, and which candidate wins now.
    """
    verdict: VerificationJson = finite_json_value(await verify_live_run(state.runs, user, id))
    return verdict


@record_router.get("/{id}/readers")
async def show_readers(id: str, state: CurrentState, user: CurrentUser) -> ReaderList:
    """Show the users to whom a run of yours is shown, and those to whom it could be."""
    return await list_readers(state.runs, user, id)


@record_router.post("/{id}/readers")
async def share_run(id: str, body: ReaderBody, state: CurrentState, user: CurrentUser) -> ReaderList:
    """Show a run of yours to another user, who may see all that it saw. They can read it, and approve or refuse it."""
    return await show_run_to_user(state.runs, user, id, body)
