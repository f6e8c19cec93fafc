"""All runs of a server: started, stopped, resumed, changed, shown to others, and handed to the history when they are
over.

An owner can show a run to other users, who read it, and approve or refuse the decision. A run can be handed on as one
page or as Markdown.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from textwrap import indent
from typing import Protocol

from decisor.decision_record.build import change_approvals
from decisor.decision_record.record import DecisionRecord, make_approval_change
from decisor.errors import Error, SetupError
from decisor.history.place import FolderPlace
from decisor.history.postgres import Unreachable
from decisor.history.store import PastRun, RunMark
from decisor.llms.shared import Journal
from decisor.server.budgets import Budgets
from decisor.server.live import HistoryWriter, LiveRun, join_sights, live_run_of_past, may_see, sight_of
from decisor.server.metrics import Metrics
from decisor.server.requests import (
    AskBody,
    ChangeBody,
    HowToRun,
    MarkBody,
    Order,
    ReaderBody,
    RecordApprovalBody,
    check_settings,
    check_technique_name,
    choose_connections,
    edit_of,
    request_of_body,
)
from decisor.server.responses import ReaderList
from decisor.server.settings import Full, Places, ServerSettings, Watchers
from decisor.server.uploads import Uploads, may_use, owner_key
from decisor.server.users import User
from decisor.session.data import Data
from decisor.session.pool import Pool
from decisor.session.request import AskRequest, Attachments, read_kept_request, write_kept_request
from decisor.session.rerun import rerun_on_data
from decisor.session.result import Result, build_following_question, build_recorded_result
from decisor.session.verify import Verification, verify_trace
from decisor.system.extras import logger
from decisor.system.secrets import redact
from decisor.system.storage import data_folder
from decisor.system.tasks import COUNTER
from decisor.system.text import format_number
from decisor.trace.events import RunStart, TraceEntry, events_of
from decisor.types import Question
from decisor.views.page import html_document, run_html
from decisor.views.transcript import format_story

Work = Callable[[Data, Attachments], Awaitable[object]]
STOP_SECONDS = 2.0
IDLE_SECONDS = 900.0
"""After how long a person's own connections are closed; the next question opens them."""
STORY_WIDTH = 100
"""Characters of a line of a story in Markdown."""
MOST_UNKEPT = 200
"""Number of ended runs that stay readable though the history does not have them."""
MOST_KEYS = 1_000
CLOSING = "The server was stopped."


def parse_run_id(id: str) -> int:
    """Return the number of a run in the history; 0 if the id is none."""
    # 15 digits at most: SQLite's integers end at 2**63 - 1.
    return int(id) if id.isascii() and id.isdecimal() and len(id) < 16 else 0


class NotThere(Exception):
    """An error: the thing asked for does not exist, or is somebody else's."""


class Line(Protocol):
    """A line of runs, from which each process of a server takes some."""

    async def begin(self, prepared: Prepared, order: Order, user: User, key: str) -> LiveRun:
        """Begin a run, or put it in line; return it as it is here: an earlier one if the same person sent its key.

        Raises Full if too many wait already.
        """
        ...

    async def follow(self, past: PastRun) -> LiveRun | None:
        """Return a run that is under way anywhere, as it is now; None if it ended elsewhere."""
        ...

    async def stop(self, live: LiveRun) -> None:
        """Stop a run, whichever process has it."""
        ...

    async def uses(self, user: User, name: str) -> bool:
        """Return whether a run of a user that is under way anywhere asks a connection."""
        ...

    @property
    def is_reached(self) -> bool:
        """Whether the store of the line can be reached."""
        ...

    async def count_waiting(self) -> int:
        """Count the runs that no process has."""
        ...


@dataclass(frozen=True)
class Prepared:
    """A run that can begin."""

    past: PastRun
    """The run as the history has it first."""
    names: tuple[str, ...]
    """Names of the connections that it asks."""
    request: AskRequest
    work: Work
    before: LiveRun | None
    """The run that it goes on from."""


@dataclass(eq=False)
class Runs:
    """All runs of a server."""

    serving: ServerSettings
    pool: Pool
    keeper: HistoryWriter
    metrics: Metrics | None = None
    """Figures for Prometheus; None without the extra ``metrics``."""
    jobs: Line | None = None
    """Line of runs for all processes of the server; without one each run is this process's own."""
    live: dict[str, LiveRun] = field(default_factory=dict)
    """By id, the runs under way and the runs that the history does not have."""
    begun: dict[tuple[str, str], tuple[AskBody, asyncio.Future[str]]] = field(default_factory=dict)
    """Question and id of the run that a key of a user began, the newest ``MOST_KEYS``."""
    unkept: count[int] = field(default_factory=lambda: count(1))
    watchers: Watchers = field(default_factory=Watchers)
    places: Places = field(init=False)
    group_places: dict[str, Places] = field(default_factory=dict)
    budgets: Budgets = field(init=False)
    uploads: Uploads = field(init=False)
    is_closing: bool = False

    def __post_init__(self) -> None:
        # Without a place for runs, decisions can be verified still.
        self.places = Places(max(1, self.serving.at_once))
        self.budgets = Budgets(self.serving.history, self.metrics)
        place = self.serving.history.place
        folder = place.folder if isinstance(place, FolderPlace) else data_folder()
        self.uploads = Uploads(folder / "uploads", self.pool, self.uses, self.uses_anywhere)
        if self.serving.takes_files:
            self.uploads.open()

    async def connections(self, user: User) -> tuple[str, ...]:
        """Return the connections that a user may ask of."""
        # A process alone knows what it took.
        if self.serving.takes_files and self.jobs is not None:
            await self.uploads.look(user)
        return tuple(name for name in self.pool.members if may_use(user, name, self.pool))

    def uses(self, name: str) -> bool:
        """Return whether a run under way, as far as this process has it, asks a connection."""
        return any(name in live.connections for live in self.live.values() if not live.is_over)

    async def uses_anywhere(self, user: User, name: str) -> bool:
        """Return whether a run of a user that is under way, in any process, asks a connection."""
        return self.uses(name) or (self.jobs is not None and await self.jobs.uses(user, name))

    @property
    def missing(self) -> str:
        """Why a question would not be taken now, '' if it would."""
        if self.is_closing:
            return CLOSING
        if not self.places.has_room:
            return "Too many runs wait already."
        return "The store of runs cannot be reached." if self.jobs is not None and not self.jobs.is_reached else ""

    async def close_idle(self) -> None:
        """Close the connections of people who ask nothing, for ever."""
        while True:
            await asyncio.sleep(IDLE_SECONDS / 4)
            busy = {live.past.owner for live in self.live.values() if live.is_own and not live.is_over}
            await self.pool.close_idle(IDLE_SECONDS, busy)

    async def ask_with_key(self, user: User, body: AskBody, key: str) -> LiveRun:
        """Begin a run of a question, or return the one that the same key of the user began; '' is no key.

        Raises:
            SetupError: the key began a run of another question.
        """
        # In line the store knows the keys.
        if not key or self.jobs is not None:
            return await self.begin(user, body, key=key)

        async def begin() -> str:
            return (await self.begin(user, body)).id

        place = (user.name, key)
        if place not in self.begun:
            self.begun[place] = (body, asyncio.ensure_future(begin()))
            while len(self.begun) > MOST_KEYS:
                del self.begun[next(iter(self.begun))]
        sent, beginning = self.begun[place]
        if sent != body:
            raise SetupError("This Idempotency-Key began a run of another question: send a new one.")
        try:
            # A client that leaves here comes back with the key: its run goes on.
            return await self.find(user, await asyncio.shield(beginning))
        except (Error, Full):
            # Nothing began, so the key may try again.
            self.begun.pop(place, None)
            raise

    async def prepare(self, user: User, order: Order) -> Prepared:
        """Look up all that an order names.

        Raises:
            SetupError: something that it names is not there, or the run before is not over.
            NotThere: there is no such run before.
        """
        match order.body:
            case AskBody() as body:
                return await self.prepare_question(user, body)
            case ChangeBody() as body:
                return await self.prepare_change(user, body, await self.find(user, order.before))
            case body:
                return await self.prepare_resumption(user, body, await self.find(user, order.before))

    async def prepare_question(self, user: User, body: AskBody) -> Prepared:
        names = choose_connections(body.connections, await self.connections(user))
        request = request_of_body(body, self.serving, user)
        if not request.question:
            raise SetupError("What is to be decided? The question is empty.")
        question = Question(request.question, request.rules, request.goal)
        before = await self.find(user, body.follows) if body.follows else None
        if before is not None:
            question = build_following_question(build_recorded_result(before.entries), question)
            request = request.model_copy(update={"rules": question.rules})

        request = await self.limit(user, request)

        async def work(data: Data, attached: Attachments) -> object:
            return await data.answer(request, replace(attached, earlier=question.earlier))

        return Prepared(PastRun(question, technique=request.technique), names, request, work, before)

    async def prepare_resumption(self, user: User, body: HowToRun, before: LiveRun) -> Prepared:
        if before.state not in ("stopped", "failed"):
            raise SetupError("This run was not interrupted: there is nothing to go on with.")
        names = choose_connections(before.connections, await self.connections(user))
        old, start = before.past, next(events_of(before.entries, RunStart), None)
        question = start.question if start else old.question
        kept = read_kept_request(old.inputs).settings
        # The history has specs of LLMs; settings of a request name them as /api/choices does.
        settings = {
            name: self.serving.name_of(value) if isinstance(value, str) else value for name, value in kept.items()
        }
        # What the history holds is checked as a client's own request is.
        technique = check_technique_name(old.technique, user)
        request = request_of_body(body, self.serving, user).model_copy(
            update={
                "question": question.text,
                "rules": question.rules,
                "goal": question.goal,
                "technique": technique,
                "settings": check_settings(technique, settings, self.serving, user),
            }
        )

        request = await self.limit(user, request)

        async def work(data: Data, attached: Attachments) -> object:
            return await data.answer(request, replace(attached, earlier=question.earlier), before.entries)

        return Prepared(PastRun(old.question, technique=old.technique), names, request, work, before)

    async def prepare_change(self, user: User, body: ChangeBody, before: LiveRun) -> Prepared:
        if not before.is_over:
            raise SetupError("The run is under way: stop it first, or wait for its end.")
        # A change goes on by the technique of the run, which its owner may no longer use.
        if start := next(events_of(before.entries, RunStart), None):
            user.technique(start.technique)
        request, edit = request_of_body(body, self.serving, user), edit_of(body)
        names = choose_connections(before.connections, await self.connections(user))
        past = PastRun(before.past.question, technique=before.past.technique, edit=edit.texts())

        request = await self.limit(user, request)

        async def work(data: Data, attached: Attachments) -> object:
            return await rerun_on_data(data, before.entries, edit, request, attached)

        return Prepared(past, names, request, work, before)

    async def limit(self, user: User, request: AskRequest) -> AskRequest:
        """Limit a request to what is left of the user's budgets. Raise SetupError if nothing is."""
        return request.model_copy(update={"limits": await self.budgets.limits_left(user, request.limits)})

    async def begin(self, user: User, body: AskBody | HowToRun, before_id: str = "", key: str = "") -> LiveRun:
        """Begin a run, here or in line for any process of the server.

        body: a question, a change of the run ``before_id``, or how to go on from it, where it was stopped or failed.
        Its LLM calls are not bought again. key: of the line, which knows the run that it began.

        Raises:
            Full: too many wait already, or the server ends.
        """
        order = Order(user=user.name, groups=user.reader.groups, body=body, before=before_id)
        prepared = await self.prepare(user, order)
        if self.is_closing:
            raise Full(CLOSING)
        self.places.check()
        before, sight = prepared.before, sight_of(self.pool, prepared.names, user.reader)
        past = replace(
            prepared.past,
            owner=user.name,
            inputs=write_kept_request(prepared.request, Attachments(), self.pool.sources_of(prepared.names)),
            began=time.time(),
            before=before.past.number if before else 0,
            sight=join_sights(sight, before.past.sight) if before else sight,
        )
        if self.jobs is not None:
            return await self.jobs.begin(replace(prepared, past=past), order, user, key)
        number = await self.keeper.begin(past)
        # t1, t2, ...: names that no run of the history has.
        live = LiveRun(replace(past, number=number), str(number or f"t{next(self.unkept)}"), prepared.names)
        self.live[live.id] = live
        if number:
            self.keeper.live[number] = live
        live.task = asyncio.create_task(self.run(live, user, order, prepared.work))
        self.wake(live)
        return live

    async def run(self, live: LiveRun, user: User, order: Order, work: Work) -> None:
        """Run the work of a live run to its end, and keep it."""
        await self.run_work(live, user, order, work)
        self.wake(live)
        self.tell_end(live)
        await self.keeper.end(live)
        # From here on the history answers for the run, and it need not stay in memory.
        if live.is_kept:
            del self.live[live.id]
        else:
            over = [other for other in self.live.values() if other.is_over and not other.is_kept]
            for oldest in over[:-MOST_UNKEPT]:
                del self.live[oldest.id]

    async def run_work(
        self, live: LiveRun, user: User, order: Order, work: Work, journal: Journal | None = None
    ) -> None:
        """Run the work of a live run. An error is in the state of the run; only a run of the line can be cancelled."""
        body = order.body
        llms = self.pool.llms
        if user.budgets or journal:
            llms = replace(llms, wrap=partial(self.budgets.pay, user=user, journal=journal))
        attached = Attachments(
            on_event=self.metrics.listen(live.hear) if self.metrics else live.hear,
            on_text=live.hear_text if body.stream else None,
            approve=live.approve if body.approve else None,
            reader=live.read if body.asks else None,
        )
        try:
            async with AsyncExitStack() as stack:
                for places in self.places_of(user):
                    await stack.enter_async_context(places.one(user.name))
                if self.metrics:
                    stack.enter_context(self.metrics.take_place())
                live.state = "running"
                self.wake(live)
                COUNTER.set(live.hear_count)  # in the context of this task alone
                data = await self.pool.data(live.connections, user.reader)
                await work(replace(data, llms=llms), attached)
            live.end("finished")
        except asyncio.CancelledError:
            # A run of the line may go on in another process.
            if self.jobs is not None:
                raise
            live.end("stopped", CLOSING if self.is_closing else "")
        except Error as error:
            live.end("failed", redact(str(error)))
        except Exception as error:
            logger.error("run %s crashed", live.id, exc_info=error)
            live.end("failed", f"It crashed: {type(error).__name__}. The log of the server has more.")

    def tell_end(self, live: LiveRun) -> None:
        """Count and log a run that is over."""
        if self.metrics:
            self.metrics.count_run(live)
        facts = {"run": live.id, "state": live.state, "technique": live.past.technique, "seconds": live.seconds}
        logger.info("run %s ended", live.id, extra={"facts": facts | {"person": owner_key(User(live.past.owner))}})

    def places_of(self, user: User) -> Iterator[Places]:
        """Yield the limits on runs at once that a user's runs are under: those of groups, and that of the server."""
        for name, budget in user.budgets:
            # In line, jobs of one group hold locks.
            if budget.at_once and self.jobs is None:
                yield self.group_places.setdefault(name, Places(budget.at_once))
        yield self.places

    async def find(self, user: User, id: str) -> LiveRun:
        """Return a run under way or of the history; raise NotThere if there is none.

        It is also raised if the run is another user's.
        """
        live = self.live.get(id)
        if live is not None and live.past.owner == user.name and live.is_own:
            return live
        if (live is None or not live.is_own) and (number := parse_run_id(id)):
            return await self.of_history(number, user.name)
        # The run of another user gets the same answer as none.
        raise NotThere(f"There is no run {id[:80]!r}.")

    async def of_history(self, number: int, owner: str) -> LiveRun:
        """Return a run of the history, or one that is under way in another process; raise NotThere if there is none."""
        history, live = self.keeper.history, self.live.get(str(number)) if self.jobs else None
        try:
            # The store says that there is no such run of another owner.
            is_known = live is not None and live.past.owner == owner
            past = live.past if live and is_known else await asyncio.to_thread(history.read, number, owner)
            if self.jobs is not None and (is_known or past.state == "running"):
                if live := await self.jobs.follow(past):
                    return live
                past = await asyncio.to_thread(history.read, number, owner)
            entries = await asyncio.to_thread(history.place.read_trace, number)
        except Unreachable:
            raise
        except SetupError as error:
            raise NotThere(str(error)) from error
        return live_run_of_past(past, entries, tuple(self.pool.members))

    async def past(self, user: User, words: str, most: int, before: int) -> list[PastRun]:
        """List runs of the history, the newest first.

        They include runs under way, and runs that others show to the user.
        """
        history = self.keeper.history
        try:
            runs = await asyncio.to_thread(history.list, user.name, words, most, before, bool(user.name))
        except SetupError:
            # If the history cannot be written, runs go on without it: then it lists nothing.
            if not self.keeper.fault:
                raise
            return []
        return [one for one in runs if one.owner == user.name or may_see(user, one.sight, self.pool)]

    async def stop(self, user: User, id: str) -> LiveRun:
        """Stop a run and wait for its end, at most ``STOP_SECONDS``."""
        live = await self.find(user, id)
        if live.is_over:
            return live
        if self.jobs is not None:
            await self.jobs.stop(live)
            live = await self.wait(user, live, STOP_SECONDS)
        elif live.task is not None:
            live.task.cancel()
            await asyncio.wait([live.task], timeout=STOP_SECONDS)
        return live

    async def wait(self, user: User, live: LiveRun, seconds: float) -> LiveRun:
        """Return a run when it is over, or as it is after ``seconds``."""
        with suppress(TimeoutError):
            await asyncio.wait_for(live.over.wait(), seconds)
        return live if live.is_own else await self.find(user, live.id)

    async def count_waiting(self) -> int:
        """Count the runs that wait for a place, of all processes."""
        return self.places.waiting + (await self.jobs.count_waiting() if self.jobs else 0)

    async def find_kept(self, user: User, id: str) -> LiveRun:
        """Return a run; raise SetupError if the history does not have it yet."""
        live = await self.find(user, id)
        live.check_kept()
        return live

    async def mark(self, user: User, id: str, body: MarkBody) -> LiveRun:
        live = await self.find_kept(user, id)
        mark = RunMark(body.mark, body.note, body.answer) if body.mark else None
        await asyncio.to_thread(self.keeper.history.mark, live.past.number, mark, user.name)
        return await self.find(user, id)

    async def forget(self, user: User, id: str) -> None:
        live = await self.stop(user, id)
        self.live.pop(live.id, None)
        if live.past.number:
            await asyncio.to_thread(self.keeper.history.delete, [live.past.number], user.name)

    def wake(self, live: LiveRun) -> None:
        live.wake()
        self.watchers.wake(live)

    async def close(self) -> None:
        """Stop every run and end every stream."""
        self.is_closing = True
        tasks = [live.task for live in self.live.values() if live.task is not None and not live.task.done()]
        for task in tasks:
            task.cancel()
        for watcher in self.watchers.everybody:
            watcher.changed.set()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)


def html_of(entries: Sequence[TraceEntry]) -> str:
    result = build_recorded_result(entries)
    return html_document(
        result.question.text, run_html(entries, result.decision, result.records, result.usage, is_page=True)
    )


def markdown_of(entries: Sequence[TraceEntry]) -> str:
    """Return a run as Markdown: its decision, then its story as ``decisor trace`` tells it."""
    result = build_recorded_result(entries)
    # Lines that are indented are text, whatever stands in them.
    told = indent(format_story(entries, STORY_WIDTH), "    ")
    return "\n".join([*format_run_head(result), "", "## What happened", "", told, "", result.summary(), ""])


def format_run_head(result: Result) -> Iterator[str]:
    decision = result.decision
    yield f"# {escape_markdown(result.question.text)}"
    yield ""
    yield f"**{escape_markdown(decision.answer)}**" if decision.answer else f"No answer ({decision.stopped})."
    for text in (*decision.reasons, *decision.assumptions):
        yield f"\n{escape_markdown(text)}"
    if result.ranking is not None:
        yield f"\n## Ranking: {escape_markdown(result.ranking.measure)}\n"
        for place, one in enumerate(result.ranking.options[:20], 1):
            yield f"{place}. {escape_markdown(one.name)}: {format_number(one.outcome)}"
    if result.records:
        yield "\n## Evidence\n"
        for record in result.records:
            cells = ", ".join(f"{name} {value}" for name, value in record.fields.items())
            yield f"- `{record.id}` {escape_markdown(record.text or cells)}"


def escape_markdown(text: str) -> str:
    r"""Return a text on one line in which nothing is markup.

    >>> escape_markdown("<b> [x](javascript:1)\n| *y*")
    '\\<b> \\[x\\](javascript:1) \\| \\*y\\*'
    """
    line = "".join(f"\\{letter}" if letter in "\\`*_[]<|#&~" else letter for letter in " ".join(text.split()))
    return re.sub(r"^(\d*)(>|[-+=.)](?=[-=]*( |$)))", r"\1\\\2", line)  # a quote, a list, a line, a heading


async def find_readable_run(runs: Runs, user: User, id: str) -> LiveRun:
    """Return a run of the user, or one shown to them that they may see all of; else raise NotThere."""
    try:
        return await runs.find(user, id)
    except NotThere:
        # On a server without users there is nobody to show a run to.
        if not user.name or not (number := parse_run_id(id)):
            raise
    try:
        owner = await asyncio.to_thread(runs.keeper.history.owner_of, number, user.name)
    except SetupError as error:
        raise NotThere(f"There is no run {id[:80]!r}.") from error
    live = await runs.of_history(number, owner)
    if not may_see(user, live.past.sight, runs.pool):
        raise NotThere(f"{owner} shows you run {number}, and you may not see all that it rests on.")
    return live


async def list_readers(runs: Runs, user: User, id: str) -> ReaderList:
    """List the users to whom a run is shown, and those to whom it could be."""
    live = await runs.find(user, id)
    names = await asyncio.to_thread(runs.keeper.history.readers, live.past.number, user.name) if live.is_kept else ()
    others = [
        name
        for name, other in (await runs.serving.users.by_name()).items()
        if name not in (user.name, *names) and may_see(other, live.past.sight, runs.pool)
    ]
    return ReaderList(readers=tuple(names), others=tuple(others))


async def show_run_to_user(runs: Runs, user: User, id: str, body: ReaderBody) -> ReaderList:
    """Let another user read a run, or no longer. Raise SetupError if that user may not see all that it saw."""
    live = await runs.find_kept(user, id)
    other = (await runs.serving.users.by_name()).get(body.name)
    if not body.end and (other is None or body.name == user.name):
        raise SetupError(f"There is no other user {body.name!r}.")
    if not body.end and other is not None and not may_see(other, live.past.sight, runs.pool):
        raise SetupError(f"{body.name} may not see all that this run rests on.")
    await asyncio.to_thread(runs.keeper.history.show, live.past.number, body.name, user.name, body.end)
    if not body.end:
        runs.watchers.tell(body.name, live)
    return await list_readers(runs, user, id)


async def save_record_approval(runs: Runs, user: User, id: str, body: RecordApprovalBody) -> DecisionRecord:
    """Approve a decision, refuse it, or take that back.

    Raise SetupError if the user may not, or the decision cannot be approved.
    """
    if user.name and body.by not in ("", user.name):
        raise SetupError(f"You approve as {user.name}, and for nobody else.")
    live = await find_readable_run(runs, user, id)
    live.check_kept()
    change = make_approval_change(user.name or body.by, body.note, body.act, body.digest, body.review)
    return await asyncio.to_thread(change_approvals, runs.keeper.history, live.past.number, live.past.owner, change)


async def verify_live_run(runs: Runs, user: User, id: str) -> Verification:
    """Compute a decision again on the data of today, as this user may see them."""
    live = await find_readable_run(runs, user, id)
    names = choose_connections(live.connections, await runs.connections(user))
    runs.places.check()
    async with runs.places.one(user.name):
        return await verify_trace(live.entries, await runs.pool.data(names, user.reader))
