"""The work behind the MCP tools: data of a client, runs that it waits for, questions to a person, and texts.

A run is reported step by step and stopped when its client stops waiting. If a question has two readings, it is held
until the person at the client says which is meant. If the protocol keeps no line open between two requests, the run
waits under a key that only that client has. Replies are short texts with the ids of records and the number of the run.
Our errors become the client's, in one line.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError as Failure
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, TextContent

from decisor.errors import Error, SetupError
from decisor.history.store import History, PastRun
from decisor.semantics.readings import OpenReading
from decisor.server.settings import Full, Places
from decisor.server.users import ANYBODY, User
from decisor.session.access import Reader
from decisor.session.data import Data
from decisor.session.pool import Pool
from decisor.session.request import AskRequest, Attachments, read_kept_request, write_kept_request
from decisor.session.result import Result, build_past_result
from decisor.session.sources import Sources
from decisor.system.extras import logger
from decisor.system.secrets import redact
from decisor.system.text import clean_one_line, clean_text, frame_observation
from decisor.system.wording import format_count, format_plan_lines
from decisor.techniques.shared.observations import show_observation, show_records
from decisor.trace.events import ActionStart, Event, GraphPlan, Plan, TraceEntry
from decisor.types import Observation, Ranking
from decisor.views.terminal import event_lines
from decisor.views.transcript import describe_end, pitfall_lines, runner_up_lines

NO_REQUEST, NOTHING = AskRequest(), Attachments()


@dataclass(frozen=True)
class McpService:
    """The data and settings behind the tools, and the user who asks."""

    pool: Pool
    request: AskRequest = NO_REQUEST
    """LLM, technique, settings and limits of each run."""
    history: History = field(default_factory=History)
    places: Places = field(default_factory=Places)
    """Limit on the runs at once."""
    numbers: set[int] = field(default_factory=set)
    """Numbers of the runs that began here."""
    user: User = ANYBODY

    @property
    def reader(self) -> Reader:
        """Limits of the user on rows and columns, with masked columns as tokens.

        They stay tokens also for a user who may see their values, because an LLM reads the replies.
        """
        return replace(self.user.reader, reveal=False)

    @property
    def members(self) -> Mapping[str, Sources]:
        """Connections that the user may use."""
        return {name: one for name, one in self.pool.members.items() if self.user.may_use(name)}

    async def data(self, names: Sequence[str]) -> Data:
        """Open connections as the user may see them; all of theirs if none is named.

        Raise SetupError if a connection does not exist, or none is served.
        """
        members = self.members
        if not members:
            raise SetupError("No data are served: start decisor mcp with --db, --graph or --docs.")
        if unknown := [name for name in names if name not in members]:
            raise SetupError(f"There is no connection {unknown[0]!r:.200}; there is {', '.join(members)}.")
        return await self.pool.data(list(names) or list(members), self.reader)

    async def member(self, name: str) -> Data:
        """Open one connection of the user."""
        return await self.pool.member(name, self.reader)

    async def past(self, number: int) -> Result:
        """Return a run of the history; 0 is the last one that may be read here.

        Raises:
            SetupError: there is none of the number, or it is of data that are not served here.
        """
        # Below number + 1 the newest run is the one asked for; for the last one look at 50, as not all may be read
        # here.
        most, before = (1, number + 1) if number else (50, 0)
        runs = await asyncio.to_thread(self.history.list, self.user.name, "", most, before)
        for run in runs:
            if (not number or run.number == number) and self.may_read(run):
                return await asyncio.to_thread(build_past_result, self.history, run)
        if not number:
            raise SetupError("There is no run of these data yet: call decide.")
        last = await self.past(0)
        raise SetupError(f"There is no run {number} of these data; the last one is {last.number}.")

    def may_read(self, run: PastRun) -> bool:
        """Return whether all data that a run may have seen are served here too."""
        if run.number in self.numbers:
            return True
        sources = self.pool.sources_of(list(self.members))
        # A run from before these rules may have seen what they keep back now.
        if self.reader.rows or self.reader.mask:
            return False
        if sources.tables or sources.deny_tables or any(source.policy or source.role for source in sources.places):
            return False
        if any(one.connection and (one.connection.rows or one.connection.mask) for one in sources.places):
            return False
        named = read_kept_request(run.inputs)
        # Relative places of another folder are other data.
        if named.left_out or named.folder != str(Path.cwd()):
            return False
        # The history leaves out passwords and objects: compare both sides in its form.
        served = read_kept_request(write_kept_request(NO_REQUEST, NOTHING, sources))
        return all(set(getattr(named, name)) <= set(getattr(served, name)) for name in ("db", "graph", "docs", "tools"))


SECONDS = 600.0
MOST = 100


class Stops(Protocol):
    async def stop(self) -> None: ...


Work = TypeVar("Work", bound=Stops)


@dataclass(eq=False)
class WaitingWork(Generic[Work]):
    """Work that waits for an answer. Work whose client does not come back is stopped."""

    works: dict[str, Work] = field(default_factory=dict)
    """Work by a key that only the asked client has."""
    owners: dict[str, str] = field(default_factory=dict)
    """Name of the user of each key."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def put(self, work: Work, owner: str) -> str:
        key = secrets.token_urlsafe(24)
        self.works[key], self.owners[key] = work, owner
        # Work that nobody comes back for ends after a while, and the oldest ends where there is too much.
        asyncio.get_running_loop().call_later(SECONDS, self.drop, key)
        while len(self.works) > MOST:
            self.drop(next(iter(self.works)))
        return key

    def take(self, key: str, owner: str) -> Work:
        """Take out the work of a key; raise SetupError if it was stopped or is another user's."""
        # The key of another user is answered as one that never was.
        if self.owners.get(key) != owner:
            raise SetupError("What waited for this answer is over: call the tool again.")
        del self.owners[key]
        return self.works.pop(key)

    def drop(self, key: str) -> None:
        self.owners.pop(key, None)
        if (work := self.works.pop(key, None)) is not None:
            # asyncio holds tasks weakly: without this set a task may vanish before it is done.
            task = asyncio.ensure_future(work.stop())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def close(self) -> None:
        for key in list(self.works):
            self.drop(key)
        await asyncio.gather(*self.tasks)


Client = Context[Any, Any]


def service_for_client(serving: McpService, context: Client) -> McpService:
    """Return the service restricted to the user who asks.

    The guard says over HTTP who it is; otherwise the service stays as it is.
    """
    request = context.request_context.request
    return serving if request is None else replace(serving, user=request.scope["decisor_user"])


def has_person(context: Client) -> bool:
    """Return whether the client can ask a person."""
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


def text_tool_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])


class ToolErrors:
    """A context around a tool that turns our errors into the client's, in one line.

    A crash says only its kind; the log has more.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, frames: object) -> None:
        if isinstance(error, Error | Full):
            raise Failure(redact(str(error))) from error
        if isinstance(error, Exception) and not isinstance(error, Failure):
            # The text of a crash may hold anything: the client is told its kind alone.
            logger.error("a tool crashed", exc_info=error)
            raise Failure(f"It crashed: {type(error).__name__}. The log of the server has more.") from error


STOP_SECONDS = 10.0
LINE = 200
KEY = "reading"
"""Name of a person's answer in the protocol."""


@dataclass(frozen=True, eq=False)
class ReadingQuestion:
    """A question to a person about a reading, and the future that takes the answer."""

    one: OpenReading
    answer: asyncio.Future[str]

    def request(self) -> ElicitRequest:
        return ElicitRequest(
            params=ElicitRequestFormParams(message=self.one.line(), requested_schema=reading_form_schema(self.one))
        )

    def settle(self, answer: str) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


def reading_form_schema(one: OpenReading) -> dict[str, object]:
    """Return the schema of a form: one of the choices, or own words."""
    choices = [clean_one_line(text, LINE) for text in one.choices]
    return {
        "type": "object",
        "properties": {
            "meaning": {"type": "string", "title": clean_one_line(one.words, LINE), "enum": choices},
            "own_words": {"type": "string", "title": "Or in your own words"},
        },
    }


def parse_reading_form(reply: ElicitResult, one: OpenReading) -> str:
    """Return the number of the person's choice, or their words; '' if they do not say."""
    content: Mapping[str, object] = reply.content or {}
    if reply.action != "accept":
        return ""
    words, meaning = str(content.get("own_words") or ""), str(content.get("meaning") or "")
    # The form showed cleaned texts, so the answer is looked up among those.
    numbers = {clean_one_line(text, LINE): str(at) for at, text in enumerate(one.choices, 1)}
    return clean_one_line(words, LINE) or numbers.get(meaning, clean_one_line(meaning, LINE))


def progress_line(event: Event) -> str:
    """Format an event as one line. A query and a plan are whole; of rows it says how many there are.

    >>> progress_line(Plan(("count the returns", "see what they cost")))
    'Plan: 1. count the returns 2. see what they cost'
    """
    lines = [" ".join(line.plain.split()) for line in event_lines(event)]
    if isinstance(event, Plan | GraphPlan):
        return clean_one_line(": ".join([lines[0], " ".join(lines[1:])]), LINE)
    return clean_one_line(" ".join(lines if isinstance(event, ActionStart) else lines[:1]), LINE)


class ClientRun:
    """One run that a client waits for. Make it in the event loop that it runs in."""

    def __init__(self, work: Callable[[Attachments], Awaitable[Result]], places: Places, is_anyone_there: bool) -> None:
        self.news: asyncio.Queue[str | ReadingQuestion | None] = asyncio.Queue()
        self.steps = count(1)
        self.ask: ReadingQuestion | None = None
        attached = Attachments(on_event=self.hear, reader=self.read if is_anyone_there else None)
        self.task = asyncio.ensure_future(self.run(work, places, attached))
        # None ends the queue, in whatever way the run ended.
        self.task.add_done_callback(lambda _: self.news.put_nowait(None))

    async def run(
        self, work: Callable[[Attachments], Awaitable[Result]], places: Places, attached: Attachments
    ) -> Result:
        if places.are_taken:
            self.news.put_nowait(f"Waits in line behind {format_count(places.waiting, 'other')}: {places.most} at once")
        async with places.one():
            return await work(attached)

    def hear(self, entry: TraceEntry) -> None:
        if line := progress_line(entry.event):
            self.news.put_nowait(line)

    async def read(self, one: OpenReading) -> str:
        """Put a reading to the person at the client and wait for the answer. It is a ``Reader``."""
        self.ask = ReadingQuestion(one, asyncio.get_running_loop().create_future())
        self.news.put_nowait(self.ask)
        return await self.ask.answer

    async def follow(self, context: Client) -> Result | ReadingQuestion:
        """Return the result, or a question that must be asked before it. A client that stops waiting ends the run."""
        try:
            while (news := await self.news.get()) is not None:
                if isinstance(news, ReadingQuestion):
                    return news
                await context.report_progress(next(self.steps), message=news)
            return await self.task
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Cancel the run and wait for its end, at most ``STOP_SECONDS``.

        Its queries and calls end, and the history says that it was interrupted.
        """
        import anyio

        self.task.cancel()
        # The cancelled request of the client must not cut this wait short.
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self.task], timeout=STOP_SECONDS)


MAX_TEXT_CHARS = 8_000
"""Characters of a decision or a query's rows."""
MOST_LONG = 24_000
"""Characters of a description of data, or of a whole run."""
OPTIONS, RECORDS = 8, 12


def cut_at_line(text: str, most: int = MAX_TEXT_CHARS, hint: str = "") -> str:
    """Cut a text at the end of a line, and say how much was cut.

    >>> cut_at_line("one\\ntwo three", 9)
    'one\\n(10 more characters)'
    """
    text = clean_text(text).strip()
    if len(text) <= most:
        return text
    head = text[:most].rpartition("\n")[0] or text[:most]
    return f"{head}\n({len(text) - len(head):,} more characters{f': {hint}' if hint else ''})"


def decision_text(result: Result) -> str:
    """Format the decision, its reasons, its evidence and its cost."""
    decision = result.decision
    lines = [f"Decision: {decision.answer or 'none'}", *filter(None, [describe_end(decision)]), *decision.reasons]
    lines += runner_up_lines(decision)
    if decision.ranking is not None and decision.ranking.options:
        lines += ["", *ranking_lines(decision.ranking)]
    if result.records:
        lines += ["", "Evidence (ids of records; cite them):", *show_records(result.records[:RECORDS])[0]]
        if more := len(result.records) - RECORDS:
            lines += [f"({more} more records)"] if more > 0 else []
    lines += [f"Objection (say it, or leave the claim out): {one.text}" for one in decision.evidence.objections]
    lines += [*pitfall_lines(decision), "", result.summary()]
    if result.number:
        lines.append(
            f"Run {result.number} (explain_run tells its steps and queries; a person sees it with: "
            f"decisor history show {result.number})"
        )
    return cut_at_line("\n".join(lines))


def ranking_lines(ranking: Ranking) -> list[str]:
    if ranking.plan:
        return list(format_plan_lines(ranking))
    word = "largest" if ranking.goal == "max" else "smallest"
    head = f"Ranking by {ranking.measure}, {word} first, of {format_count(ranking.count, 'candidate')}:"
    return [head, *(f"{at}. {one.name}: {one.outcome:.8g}" for at, one in enumerate(ranking.options[:OPTIONS], 1))]


def format_tool_observation(observation: Observation) -> str:
    """Format the rows of an observation with their ids, and its note."""
    return cut_at_line(
        str(show_observation(frame_observation(observation))), hint="rank, add up or filter in the query"
    )


def story_text(result: Result) -> str:
    """Format the whole run as a terminal tells it, without colours."""
    from decisor.views.transcript import format_story

    return cut_at_line(
        f"Run {result.number}\n{format_story(result.trace, width=200)}",
        MOST_LONG,
        f"decisor history show {result.number} has all",
    )
