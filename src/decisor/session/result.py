"""The result of a question: the decision, its evidence, its cost and its trace.

A result can be built from a recorded run too. A question that follows a result knows the decision and its cited
records. In a notebook a run is shown live, unless the caller listens to its events.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from decisor.errors import SetupError
from decisor.history.recorder import Keeping
from decisor.history.store import History, PastRun
from decisor.session.run_setup import NAME_ONE
from decisor.system.serialization import finite_json_value
from decisor.system.settings import with_current_names
from decisor.system.storage import write_private
from decisor.system.tasks import run_in_thread
from decisor.system.wording import format_count
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    LLMCall,
    RunStart,
    RunUsage,
    ShortenedPrompt,
    TechniqueChoice,
    TraceEntry,
    cited_records_of,
    events_of,
    iterate_actions,
)
from decisor.trace.file import format_trace_file
from decisor.types import (
    Action,
    Decision,
    Earlier,
    EarlierConversation,
    Evidence,
    Message,
    Question,
    Ranking,
    Record,
    Replan,
    Step,
    Stopped,
    Usage,
)

if TYPE_CHECKING:
    from rich.console import Console

    from decisor.decision_record.record import DecisionRecord
    from decisor.session.request import AskRequest, Attachments, Options
    from decisor.views.charts import Chart
    from decisor.views.exports import ResultTable


FIRST_ROWS = 20
"""Rows of a cited observation that go on to the next question beside the cited ones."""


def build_following_question(result: Result, question: str | Question) -> Question:
    """Build a question that follows a run. It takes the run's rules if it has none of its own."""
    if isinstance(question, str):
        question = Question(question)
    if question.earlier is not None:
        return question
    return replace(question, rules=question.rules or result.question.rules, earlier=build_earlier(result))


def build_earlier(result: Result) -> Earlier:
    """Return the decision of a run and its evidence, for a question that follows it.

    Ids stay; each observation of the new run gets a higher number than all of these.
    """
    from decisor.techniques.replay.recorded_run import parse_observation_number

    past, decision = result.question.earlier, result.decision
    cited = frozenset(decision.evidence.ids)
    steps = [
        Step(Action(start.tool, start.input), event.observation)
        # In the order in which they began: queries of one reply may have ended in another.
        for start, event in sorted(iterate_actions(result.trace), key=lambda pair: pair[1].action)
    ]
    own = tuple(cut_step_records(step, cited, FIRST_ROWS) for step in steps if is_cited(step, cited))
    # Of the runs before that one only cited records go on; of itself the first rows too.
    older = tuple(cut_step_records(step, cited, 0) for step in past.steps if is_cited(step, cited)) if past else ()
    numbers = [
        parse_observation_number(record.id)
        for event in events_of(result.trace, ActionResult)
        for record in event.observation.records
    ]
    before = (*past.before, f"{past.question}: {past.answer or 'not decided'}") if past else ()
    return Earlier(
        result.question.text,
        decision.answer,
        decision.reasons,
        decision.assumptions,
        before,
        (*older, *own),
        max([*numbers, past.last if past else 0]),
        find_conversation(result, steps),
    )


def find_conversation(result: Result, steps: Sequence[Step]) -> EarlierConversation | None:
    """Find the conversation of tool calls that ended in the decision; None if there was none, or not just one.

    A shortened one is none: rows cut off could not be cited any more.
    """
    from decisor.techniques.agent import DECIDE, PLAN, SHOWN

    turns = [entry for entry in result.trace if isinstance(entry.event, LLMCall) and entry.event.turn is not None]
    past = result.question.earlier.conversation if result.question.earlier else None
    last = turns[-1].event if turns else None
    if not isinstance(last, LLMCall) or last.turn is None or result.decision.stopped not in ("answered", "no_answer"):
        return None
    messages, beginning = tuple(last.messages), past.messages if past else ()
    is_another = messages[: len(beginning)] != beginning or (result.question.earlier is not None and past is None)
    is_alone = len({entry.span for entry in turns}) == 1 and not result.replacing_technique
    is_short = any(events_of(result.trace, ShortenedPrompt))
    if is_another or is_short or not is_alone or {call.name for call in last.turn.calls} - {DECIDE.name, PLAN.name}:
        return None
    results = [Message("tool", "ok", call_id=call.id) for call in last.turn.calls]
    shown = [cut_step_records(step, frozenset(result.decision.evidence.ids), SHOWN) for step in steps]
    return EarlierConversation((*messages, last.turn, *results), (*(past.steps if past else ()), *shown))


def is_cited(step: Step, cited: Collection[str]) -> bool:
    return any(record.id in cited for record in step.observation.records)


def cut_step_records(step: Step, cited: Collection[str], most: int) -> Step:
    """Return a step with its cited records and the first ``most``."""
    observation = step.observation
    records = tuple(record for at, record in enumerate(observation.records) if at < most or record.id in cited)
    if len(records) == len(observation.records):
        return step
    # The total keeps the number of all rows, so that a cut observation does not pass for a whole one.
    total = observation.total if observation.total is not None or observation.truncated else len(observation.records)
    return replace(step, observation=replace(observation, records=records, truncated=True, total=total))


def is_in_notebook() -> bool:
    """Return whether a notebook kernel runs this. IPython in a terminal has no kernel."""
    # Look into sys.modules: importing IPython takes long, and a notebook has done it.
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


@contextmanager
def watch_in_notebook(asked: tuple[AskRequest, Attachments]) -> Iterator[tuple[AskRequest, Attachments]]:
    """Add a view that hears the events until the block ends, in a notebook and if nothing else hears them."""
    request, attached = asked
    if attached.on_event or not is_in_notebook():
        yield asked
        return
    from decisor.views.notebook import NotebookView

    with NotebookView() as view:
        yield request, replace(attached, on_event=view.hear)


AskAnew = Callable[["AskRequest", "Attachments"], Coroutine[object, object, "Result"]]
"""A function that decides a request on the same data."""
WIDTH = 100
NO_LLM = f"No LLM planned this: the decision model computed every candidate. To have an LLM plan it, {NAME_ONE}."


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of one question.

    ``decision`` holds all of it; ``answer``, ``ranking`` and ``evidence`` are its parts.
    """

    question: Question
    decision: Decision
    technique: str
    """Name of the technique that ran."""
    llm: str
    """Name of the LLM; '' if none was asked."""
    usage: Usage
    """Calls, tokens, dollars (None: the price is not known), seconds and actions."""
    records: tuple[Record, ...] = ()
    """Records that the decision cites, as they were seen."""
    settings: Mapping[str, str] = field(default_factory=dict)
    trace: tuple[TraceEntry, ...] = ()
    """Entries of the run, one event each."""
    trace_fault: str = ""
    """Reason why the trace file is not whole; '' if it is."""
    request: AskRequest | None = None
    attached: Attachments | None = None
    ask_anew: AskAnew | None = None
    keeping: Keeping | None = None
    output: Any = None
    """Object of the ``output_type``; None if none was asked for, or it could not be filled in."""

    def __repr__(self) -> str:
        rows, calls = len(self.records), self.usage.calls
        what = f"{self.answer!r}" if self.answer else f"'', stopped={self.decision.stopped!r}"
        return (
            f"Result(answer={what}, technique={self.technique!r}, evidence {format_count(rows, 'record')}, "
            f"{format_count(calls, 'LLM call')})"
        )

    @property
    def number(self) -> int:
        """Number of the run in the history, 0 if it is not kept."""
        return self.keeping.number if self.keeping else 0

    @property
    def answer(self) -> str:
        """Best candidate, '' if there is none."""
        return self.decision.answer

    @property
    def ranking(self) -> Ranking | None:
        """Candidates from best to worst, None if they were not computed."""
        return self.decision.ranking

    @property
    def evidence(self) -> Evidence:
        """Ids of the records that the answer rests on, and its figures with their support."""
        return self.decision.evidence

    @cached_property
    def charts(self) -> tuple[Chart, ...]:
        """Charts of the rows that the answer rests on.

        They need rows that make a series or a table of measures; most answers have none. ``chart.vega_lite()`` is a
        chart as other programs draw it.
        """
        from decisor.views.answer_charts import charts_of_decision

        return charts_of_decision(self.trace, self.decision, self.records)

    def chart(self) -> Chart | None:
        """Return the chart of the answer: of its rows, else of its ranking; None if it has neither."""
        from decisor.views.rankings import ranking_chart

        return self.charts[0] if self.charts else ranking_chart(self.ranking) if self.ranking else None

    def table(self, name: str) -> ResultTable:
        """Return all rows of a result that a query brought back, by its name in the evidence: ``o2``.

        Raises:
            SetupError: there is none of this name, or it has no rows.
        """
        from decisor.views.exports import ResultTable, rows_of_result

        records = rows_of_result(self.trace, name)
        if not records:
            there = [record.id.partition(".")[0] for record in self.records]
            raise SetupError(
                f"There is no result {name!r:.100} with rows; cited are {', '.join(dict.fromkeys(there))}."
            )
        return ResultTable(tuple(records))

    @property
    def sql(self) -> str:
        """SQL of the results that the answer cites, each below a comment with its name; of all if it cites none."""
        origin = next((start.provenance.sources for start in events_of(self.trace, RunStart)), ())
        names = {source.name for source in origin if source.form == "sql"} | {"combine"}
        texts = {
            result.observation.records[0].id.partition(".")[0]: start.input
            for start, result in iterate_actions(self.trace)
            if start.tool in names and result.observation.records
        }
        cited = {name.partition(".")[0] for name in self.evidence.ids} & texts.keys()
        return "\n\n".join(f"-- {name}\n{text}" for name, text in texts.items() if name in cited or not cited)

    @cached_property
    def replacing_technique(self) -> str:
        """Technique that went on in place of ``technique``, else ''."""
        return next((choice.technique for choice in events_of(self.trace, TechniqueChoice)), "")

    def ask(self, question: str | Question, **options: Unpack[Options]) -> Result:
        """Ask the same data a question that goes on from this decision.

        LLM and technique are the same if no other is named. The run knows the decision and its evidence and may cite
        them. Data that are still open are not opened again.

        ``result.ask("And without the smallest?").answer``
        """
        ask_anew, asked = self.following(question, options)
        with watch_in_notebook(asked) as own:
            return run_in_thread(ask_anew(*own))

    async def ask_async(self, question: str | Question, **options: Unpack[Options]) -> Result:
        """Ask a question that goes on from this decision, in a running event loop. See ``ask``."""
        ask_anew, asked = self.following(question, options)
        return await ask_anew(*asked)

    def following(self, question: str | Question, options: Options) -> tuple[AskAnew, tuple[AskRequest, Attachments]]:
        """Return the request of a question that goes on from this decision, and the function that decides it."""
        if self.ask_anew is None or self.request is None or self.attached is None:
            raise SetupError("This result was read or made by hand: there are no data to ask. Use decisor.ask.")
        from decisor.session.request import REUSE, read_options

        named = with_current_names(options)
        request, new = read_options(build_following_question(self, question), named)
        # What the caller does not name stays as in the run before; of three fields an object may stand beside it.
        same = [name for name, reuse in REUSE.items() if reuse.following and name not in named]
        attached = replace(
            new,
            **{name: getattr(self.attached, name) for name in ("llm", "technique", "settings") if name in same},
            reader=new.reader or self.attached.reader,
        )
        if "history" in same:
            kept = Keeping(self.keeping.history, self.keeping.owner, before=self.number) if self.keeping else None
            attached = replace(attached, keeping=kept)
        again = {name: getattr(self.request, name) for name in same}
        return self.ask_anew, (request.model_copy(update=again), attached)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trace, one event a line. ``decisor trace FILE`` shows it.

        Raises:
            SetupError: the file cannot be written.
        """
        write_result_file(path, format_trace_file(self.trace))

    def html(self, path: str | PathLike[str]) -> None:
        """Write the run as one page that needs nothing else.

        Raises:
            SetupError: the file cannot be written.
        """
        from decisor.views.page import html_document, run_html

        body = run_html(self.trace, self.decision, self.records, self.usage, is_page=True)
        write_result_file(path, html_document(self.question.text, body))

    def record(self) -> DecisionRecord:
        """Return the record of the decision, with its approvals if the run is kept.

        It is for the person who answers for the decision. Masked columns are tokens in it, even if this result has
        their values.
        """
        from decisor.decision_record.build import build_record

        past = self.keeping.history.read(self.number, self.keeping.owner) if self.keeping and self.number else None
        return build_record(self.trace, self.number, past.approvals if past else (), past.owner if past else "")

    def save_record(self, path: str | PathLike[str]) -> None:
        """Write the record of the decision as JSON, or as a page if the name ends with ``.html``.

        Raises:
            SetupError: the file cannot be written.
        """
        from decisor.decision_record.page import write_record

        write_record(self.record(), path)

    def _repr_html_(self) -> str:
        from decisor.views.page import run_html

        return str(run_html(self.trace, self.decision, self.records, self.usage))

    def __str__(self) -> str:
        """Return the output of ``decisor ask``."""
        from io import StringIO

        from rich.console import Console

        from decisor.views.terminal import LiveView

        text = StringIO()
        console = Console(file=text, highlight=False, width=WIDTH, force_terminal=False, no_color=True)
        with LiveView(console) as view:
            for entry in self.trace:
                view.hear(entry)
        self.show(console)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def show(self, console: Console) -> None:
        """Print the end of the output of ``decisor ask``: the decision, its evidence and its cost."""
        from decisor.views.rankings import studies_of
        from decisor.views.transcript import show_decision, show_dim, show_studies

        show_decision(self.decision, self.records, console, self.charts)
        show_studies(studies_of(self.trace), console)
        console.print()
        show_dim(self.summary(), console)
        if not self.llm:
            show_dim(NO_LLM, console)
        path = self.request.trace if self.request else ""
        if path and self.trace_fault:
            show_dim(f"Trace: {path} is not whole: {self.trace_fault}.", console)
        elif path:
            show_dim(f"Trace: {path} (read it with: decisor trace FILE)", console)
        if self.number:
            show_dim(f"Saved as run {self.number}. Show it: decisor history show {self.number}", console)

    def summary(self) -> str:
        """Return technique, LLM and cost as one line."""
        from decisor.views.transcript import usage_line

        return usage_line(self.usage, self.replacing_technique or self.technique, self.llm)

    def to_dict(self) -> dict[str, Any]:
        """Return the output of ``decisor ask --json``; docs/asking.md describes each key.

        Numbers that JSON cannot hold are None.
        """
        decision, evidence = self.decision, self.decision.evidence
        document = ResultDocument(
            question=self.question,
            technique=self.technique,
            chosen=self.replacing_technique or None,
            settings=dict(self.settings),
            llm=self.llm or None,
            answer=decision.answer,
            stopped=decision.stopped,
            reasons=decision.reasons,
            runner_up=decision.runner_up or None,
            assumptions=decision.assumptions,
            plan=decision.plan,
            replans=decision.replans,
            queries=list_queries(self.trace),
            ranking=decision.ranking,
            charts=tuple(chart.vega_lite() for chart in self.charts),
            evidence=CitedEvidence(
                evidence.ids, evidence.figures, evidence.pitfalls, evidence.objections, records=self.records
            ),
            usage=self.usage,
            trace=self.request.trace or None if self.request else None,
            number=self.number or None,
        )
        values: dict[str, Any] = finite_json_value(document)
        return values


@dataclass(frozen=True)
class QueryLine:
    """An action of a run: its size and duration are None if nothing came back, ``error`` if it did not fail."""

    tool: str
    input: str
    records: int | None
    seconds: float | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class CitedEvidence(Evidence):
    """The evidence of a decision with the records that it cites."""

    records: tuple[Record, ...]


@dataclass(frozen=True, kw_only=True)
class ResultDocument:
    """A result as JSON: the object of ``decisor ask --json`` and of the API, which takes its schema from here."""

    question: Question
    technique: str
    chosen: str | None
    settings: Mapping[str, str]
    llm: str | None
    answer: str
    stopped: Stopped
    reasons: tuple[str, ...]
    runner_up: str | None
    assumptions: tuple[str, ...]
    plan: tuple[str, ...]
    replans: tuple[Replan, ...]
    queries: tuple[QueryLine, ...]
    ranking: Ranking | None
    charts: tuple[Mapping[str, object], ...]
    evidence: CitedEvidence
    usage: Usage
    trace: str | None
    number: int | None


def list_queries(entries: Sequence[TraceEntry]) -> tuple[QueryLine, ...]:
    """Return every action in order, its tool and input whole."""
    results = {result.action: result for result in events_of(entries, ActionResult)}
    queries = []
    for entry in entries:
        if isinstance(entry.event, ActionStart):
            start, result = entry.event, results.get(entry.id)
            note = result.observation.note if result and result.observation.error else ""
            records, seconds = (len(result.observation.records), result.seconds) if result else (None, None)
            queries.append(QueryLine(start.tool, start.input, records, seconds, note or None))
    return tuple(queries)


def write_result_file(path: str | PathLike[str], text: str) -> None:
    try:
        write_private(Path(path), text)
    except OSError as error:
        raise SetupError(f"Cannot write {path}: {error.strerror}.") from error


NO_DECISION, NOTHING = Decision("", stopped="failed"), Usage()


def build_recorded_result(
    entries: Sequence[TraceEntry], otherwise: Decision = NO_DECISION, cost: Usage = NOTHING
) -> Result:
    """Build a result from the entries of an ended run. otherwise: the decision if the run came to none. cost: the usage
    if the entries do not tell it.
    """
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    # A Conclusion within a span is that of a part; the run's own stands in none.
    decisions = [one.event.decision for one in entries if isinstance(one.event, Conclusion) and not one.span]
    decision = decisions[-1] if decisions else otherwise
    usages = list(events_of(entries, RunUsage))
    usage = usages[-1].usage if usages else cost
    return Result(
        start.question,
        decision,
        start.technique,
        start.llm,
        usage,
        cited_records_of(decision, entries),
        start.settings,
        tuple(entries),
    )


def build_past_result(history: History, run: PastRun) -> Result:
    """Build the result of a run in the history. A run without a decision gets one without an answer that says why.

    Raises:
        SetupError: its trace is gone or cannot be read.
    """
    entries = history.entries(run.number, run.owner)
    if next(events_of(entries, RunStart), None) is None:
        raise SetupError(f"The trace of run {run.number} is empty. Take it out: decisor history --delete {run.number}")
    why = run.why or {"running": "It runs.", "interrupted": "It was interrupted."}.get(run.state, "It failed.")
    none = Decision("", reasons=(why,), stopped="failed")
    keeping = Keeping(history, run.owner, run.inputs, run.before, run.number)
    return replace(build_recorded_result(entries, none, run.usage), keeping=keeping)
