"""Data, opened once and asked many times, by many at once."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Unpack

from decisor.asking import USUAL, Asking
from decisor.budget import Budget, Limits
from decisor.calling import Calling
from decisor.definitions.format import Definitions
from decisor.errors import Error, SetupError
from decisor.history.recording import recorded
from decisor.log import logger
from decisor.max_scan import parse_max_scan
from decisor.private_file import open_private
from decisor.run import Run
from decisor.session.decide import NAME_ONE, NoLM, cost_line
from decisor.session.definitions import Meaning, meaning_of
from decisor.session.keeping import keeping_of, owner_of
from decisor.session.lms import LMs
from decisor.session.options import Options, check_options
from decisor.session.provenance import origin_of
from decisor.session.readers import revealed, user_name
from decisor.session.readings import settle
from decisor.session.result import AskAnew, Result
from decisor.session.scan_limits import within
from decisor.session.sources import Sources
from decisor.session.technique import EXACT, Choice, choose
from decisor.session.tools import with_calculator, with_combine
from decisor.session.watching import watched
from decisor.telemetry import telemetry
from decisor.tools.abilities import Describing
from decisor.trace.events import ActionResult, Entry, Note, RunStart, RunUsage, Trace, events_of
from decisor.trace.file import TraceFile
from decisor.trace.provenance import Provenance
from decisor.trace.writing import Writers
from decisor.types import LM, Decision, Question, Record, Tool

WHICH_DATA = (
    "Which data? Name them with --db, --graph, --docs or --tools (in Python db=, graph=, docs=, tools=), "
    "or try --example trade."
)
NOTHING_DECIDES = (
    f"There is no LM to plan this, and no decision model for these data: {NAME_ONE}, "
    "or give a decision model with --model FILE.toml."
)
NOTHING_TO_COMPUTE = (
    "exact computes from a decision model, and there is none for these data: give one with --model FILE.toml, "
    "or take another technique."
)


@dataclass(frozen=True)
class View:
    """The data as one question needs them. ``meaning``: what its words mean; ``tools``: all that a run may use."""

    meaning: Meaning
    databases: Sequence[Tool]
    tools: Sequence[Tool]


@dataclass(eq=False, repr=False)
class Data:
    """Opened databases, documents and tools; made by ``decisor.open``. Any number of questions may be asked at once:
    queries to one database wait in line, and what a run has seen and cited is its own. ``loop``: that they are open
    in, None once they are closed. ``tells_places``: whether who asks may know where the data lie."""

    tools: Sequence[Tool]
    databases: Sequence[Tool]
    lms: LMs
    ask_anew: AskAnew
    sources: Sources = field(default_factory=Sources)
    definitions: Mapping[str, Definitions] = field(default_factory=dict)
    loop: AbstractEventLoop | None = None
    tells_places: bool = True

    def __repr__(self) -> str:
        return f"Data({', '.join(tool.name for tool in self.tools) or 'nothing'})"

    @cached_property
    def origin(self) -> Provenance:
        """Where all runs on these data are from; files are read for it at the first question."""
        origin = origin_of(self.sources, self.tools, self.tells_places)
        return replace(origin, by=user_name() if self.tells_places else "")

    def provenance(self, owner: str) -> Provenance:
        """Of a run that begins. ``owner``: of the history that it is kept in."""
        return replace(self.origin, at=round(time.time(), 3), by=self.sources.who or owner or self.origin.by)

    async def ask(self, question: str | Question, *, past: Sequence[Entry] = (), **options: Unpack[Options]) -> Result:
        """Decide one question. ``past``: a run of it that did not come to its end; what it bought is not bought again,
        and what it queried is not queried again. Cancelling it ends its queries and calls.

        Raises:
            SetupError: something named cannot be used, or there is nothing that could decide.
            LMError: the endpoint failed for good.
        """
        if not self.tools:
            raise SetupError(WHICH_DATA)
        check_options(options)
        question = question_of(question, options)
        choice = await choose(options.get("technique", ""), options.get("settings", {}), options.get("lm"), self.lms)
        view = await self.view_of(question, choice, options)
        keeping = keeping_of(options, self.sources)
        with watched(options) as own, recorded(keeping, question) as recording:
            listeners = [recording.write] if recording is not None else []
            run, decision = await self.run_through(question, choice, view, own, past, listeners)
        result = Result(
            question=question, decision=decision, technique=choice.name, lm=run.lm.name, settings=choice.settings,
            usage=run.budget.spent, records=records_of(decision, run.trace.entries), trace=tuple(run.trace.entries),
            trace_fault=run.trace.fault, options=options, ask_anew=self.ask_anew, keeping=keeping,
        )  # fmt: skip
        return await revealed(result, self.databases)

    async def run_through(
        self, question: Question, choice: Choice, view: View, options: Options, past: Sequence[Entry],
        listeners: Sequence[Callable[[Entry], None]],
    ) -> tuple[Run, Decision]:  # fmt: skip
        """One run, from its start to its decision."""
        with self.run(view.tools, choice.lm, options, choice.calling, choice.asking, last_of(question)) as run:
            run = gone_on(run, past) if past else run
            run.trace.listeners += listeners
            decision = await self.decide(question, choice, view, run, options)
            run.trace.add(RunUsage(run.budget.spent))
        logger.info("%s: %s after %d calls, %d actions", choice.name, decision.stopped, run.budget.spent.calls,
                    run.budget.spent.actions)  # fmt: skip
        return run, decision

    async def view_of(self, question: Question, choice: Choice, options: Options) -> View:
        """The data as this question needs them."""
        databases = {tool.name: tool for tool in await about(question, limited(self.databases, options))}
        own = [databases.get(tool.name, tool) for tool in await self.tools_for(question, choice)]
        meaning = meaning_of(question, list(databases.values()), self.definitions, own)
        tools = with_calculator(meaning.around(with_combine(own)), choice.technique)
        return View(meaning, meaning.around(list(databases.values())), tools)

    async def decide(self, question: Question, choice: Choice, view: View, run: Run, options: Options) -> Decision:
        """What the technique decides, of the question as it is meant."""
        run.trace.add(RunStart(question, choice.name, run.lm.name, choice.settings, run.env.tools(),
                               provenance=self.provenance(owner_of(options))))  # fmt: skip
        for text in notes_of(self.tools):
            run.trace.add(Note(text))
        readings = options.get("readings", "auto") if choice.lm is not None else "off"
        needs, reader = view.meaning.needs(), options.get("reader")
        documents = [tool for tool in view.tools if getattr(tool, "form", "") == "passages"]
        settled = await settle(question, view.databases, documents, needs, run, reader, readings)
        return await view.meaning.decide(choice.technique, settled, run)

    async def tools_for(self, question: Question, choice: Choice) -> Sequence[Tool]:
        """With the decision model that the question is about, where there is one, beside the data."""
        names = [tool.name for tool in self.tools]
        if "decision_model" in getattr(choice.technique, "needs", ()):
            from decisor.session.modelling import modelling_tools

            return [*self.tools, *modelling_tools(self.databases, choice.technique)]
        if "whatif" not in names:
            from decisor.session.whatif import from_question

            tool = await from_question(question, self.databases)
            if tool is not None:
                return [*self.databases, tool, *self.tools[len(self.databases) :]]
            if choice.name == EXACT:
                raise SetupError(NOTHING_TO_COMPUTE if choice.by_name else NOTHING_DECIDES)
        return self.tools

    @contextmanager
    def run(
        self, tools: Sequence[Tool], lm: LM | None, options: Options, calling: Calling, asking: Asking = USUAL,
        after: int = 0,
    ) -> Iterator[Run]:  # fmt: skip
        """One LM, these tools, one budget, one trace. Whatever ends it, what it cost is told. ``after``: the number of
        an observation, after which those of this run are numbered."""
        from decisor.tools.toolbox import Toolbox

        listener, path = options.get("on_event"), options.get("trace")
        with trace_to(Path(path) if path else None, listener) as trace:
            trace.writers = Writers(options["on_text"]) if "on_text" in options else None
            budget = Budget(options.get("limits", Limits()))
            env = Toolbox(tools, count(after + 1), approve=options.get("approve"))
            run = Run(lm or NoLM(), env, budget, trace, calling=calling, asking=asking)
            try:
                yield run
            except BaseException as error:
                tell_cost(error, run)
                raise


def last_of(question: Question) -> int:
    return question.earlier.last if question.earlier else 0


def gone_on(run: Run, past: Sequence[Entry]) -> Run:
    from decisor.techniques.replay.resume import resuming

    return resuming(run, past)


def limited(tools: Sequence[Tool], options: Options) -> Sequence[Tool]:
    """With the limit on what a query may read. Raises SetupError where nothing would hold to it."""
    if not options.get("max_scan"):
        return tools
    limits = [parse_max_scan(options["max_scan"])]
    return [within(tool, limits) for tool in tools]


async def about(question: Question, tools: Sequence[Tool]) -> list[Tool]:
    """Each with a description for the question, where it has more to say than a prompt takes."""
    return [await tool.about(question.topic) if isinstance(tool, Describing) else tool for tool in tools]


def notes_of(tools: Sequence[Tool]) -> Iterator[str]:
    """How data came to be there, where they were read from files."""
    for tool in tools:
        notes: Sequence[str] = getattr(tool, "notes", ())
        yield from notes


def tell_cost(error: BaseException, run: Run) -> None:
    """In the trace, and with the error."""
    spent = run.budget.spent
    run.trace.add(RunUsage(spent))
    if isinstance(error, Error):
        error.spent = spent
    elif spent.calls:
        error.add_note(f"Before that: {cost_line(spent)}.")


def question_of(question: str | Question, options: Options) -> Question:
    """With the rules and the goal that were named beside it.

    Raises:
        SetupError: there is no text in it.
    """
    if isinstance(question, str):
        question = Question(question)
    if not question.text.strip():
        raise SetupError("What is to be decided? The question is empty.")
    rules, goal = options.get("rules", "") or question.rules, options.get("goal", "") or question.goal
    return replace(question, rules=rules, goal=goal)


def records_of(decision: Decision, entries: Sequence[Entry]) -> tuple[Record, ...]:
    """The records that a decision cites, in its order."""
    start = next(events_of(entries, RunStart), None)
    earlier = start.question.earlier if start else None
    records = {record.id: record for record in earlier.records} if earlier else {}
    for result in events_of(entries, ActionResult):
        records |= {record.id: record for record in result.observation.records}
    return tuple(records[name] for name in decision.evidence.ids if name in records)


@contextmanager
def trace_to(path: Path | None, listener: Callable[[Entry], None] | None) -> Iterator[Trace]:
    """A trace that is heard, and written to a file where one is named.

    Raises:
        SetupError: the file cannot be written.
    """
    spans = telemetry()
    listeners = [*([listener] if listener else []), *([spans.hear] if spans else [])]
    if path is None:
        yield Trace(listeners=listeners)
        return
    try:
        file = open_private(path)
        trace_file = TraceFile(file)
    except OSError as error:
        raise SetupError(f"Cannot write the trace to {path}: {error.strerror}.") from error
    trace = Trace(listeners=[trace_file.write, *listeners])
    try:
        yield trace
    finally:
        with suppress(OSError):  # told by the last write
            file.close()
        trace.fault = trace_file.fault
