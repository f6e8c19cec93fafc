"""What came of a question: the decision, what it rests on, what it cost, and everything that happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from decisor.encoding import finite
from decisor.errors import SetupError
from decisor.history.recording import Keeping
from decisor.plurals import counted
from decisor.private_file import write_private
from decisor.session.decide import NAME_ONE
from decisor.session.following import following
from decisor.session.options import Options
from decisor.session.sync import in_thread
from decisor.session.watching import watched
from decisor.trace.events import ActionResult, ActionStart, Entry, TechniqueChoice, events_of
from decisor.trace.file import file_text
from decisor.types import Decision, Evidence, Question, Ranking, Record, Usage

if TYPE_CHECKING:
    from rich.console import Console

    from decisor.decision_record.format import DecisionRecord
    from decisor.story.answer_charts.chart import Chart

AskAnew = Callable[[str | Question, Options], Awaitable["Result"]]
"""Opens the same data and asks them."""
WIDTH = 100
NO_LM = f"No LM planned this: the decision model computed every candidate. To have an LM plan it, {NAME_ONE}."


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of one question.

    ``decision`` holds all of it; ``answer``, ``ranking`` and ``evidence`` are its parts. ``records``: those that the
    decision cites, as they were seen. ``usage``: calls, tokens, dollars (None: the price is not known), seconds,
    actions. ``trace``: the entries of the run, an event each. ``trace_fault``: why the
    file that was to hold it is not whole. ``technique``: what ran; ``lm``: '' where none was asked.
    """

    question: Question
    decision: Decision
    technique: str
    lm: str
    usage: Usage
    records: tuple[Record, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    trace: tuple[Entry, ...] = ()
    trace_fault: str = ""
    options: Options = field(default_factory=Options)
    ask_anew: AskAnew | None = None
    keeping: Keeping | None = None

    def __repr__(self) -> str:
        rows, calls = len(self.records), self.usage.calls
        what = f"{self.answer!r}" if self.answer else f"'', stopped={self.decision.stopped!r}"
        return (f"Result(answer={what}, technique={self.technique!r}, evidence {counted(rows, 'record')}, "
                f"{counted(calls, 'LM call')})")  # fmt: skip

    @property
    def number(self) -> int:
        """Of the run in the history, 0 where it is not kept."""
        return self.keeping.number if self.keeping else 0

    @property
    def answer(self) -> str:
        """The best candidate; '' where there is none."""
        return self.decision.answer

    @property
    def ranking(self) -> Ranking | None:
        """The candidates from best to worst, where they were computed."""
        return self.decision.ranking

    @property
    def evidence(self) -> Evidence:
        """The ids of the records that the answer rests on, and the figures in it with what supports them."""
        return self.decision.evidence

    @cached_property
    def charts(self) -> tuple[Chart, ...]:
        """Of the rows that the answer rests on, where they make a series or a table of measures; most answers have
        none. ``chart.vega_lite()`` is one as others draw it."""
        from decisor.story.answer_charts.of_run import charts_of

        return charts_of(self.trace, self.decision, self.records)

    @cached_property
    def auto_technique(self) -> str:
        """The technique that ``auto`` took, else ''."""
        return next((choice.technique for choice in events_of(self.trace, TechniqueChoice)), "")

    def ask(self, question: str | Question, **options: Unpack[Options]) -> Result:
        """Go on from this decision: the same data are asked again, with the same LM and technique where no other is
        named. What was decided and what it rests on is known to it, and may be cited. Data that are still open are not
        opened anew.

        ``result.ask("And without the smallest?").answer``
        """
        with watched(options) as own:
            return in_thread(self.ask_async(question, **own))

    async def ask_async(self, question: str | Question, **options: Unpack[Options]) -> Result:
        """As ``ask``, in an event loop that runs."""
        if self.ask_anew is None:
            raise SetupError("This result was read or made by hand: there are no data to ask. Use decisor.ask.")
        own = ("trace", "on_event", "on_text", "approve", "goal")
        before = cast(Options, {key: value for key, value in self.options.items() if key not in own})
        if self.keeping is not None:
            before["history"] = Keeping(self.keeping.history, self.keeping.owner, before=self.number)
        return await self.ask_anew(following(self, question), {**before, **options})

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trace, one event a line: ``decisor trace FILE`` tells it.

        Raises:
            SetupError: the file cannot be written.
        """
        write(path, file_text(self.trace))

    def html(self, path: str | PathLike[str]) -> None:
        """Write the run as one page that needs nothing else.

        Raises:
            SetupError: the file cannot be written.
        """
        from decisor.story.run_page import document, run_html

        body = run_html(self.trace, self.decision, self.records, self.usage, is_page=True)
        write(path, document(self.question.text, body))

    def record(self) -> DecisionRecord:
        """The record of the decision, for who has to answer for it, with its approvals where the run is kept. Masked
        columns are tokens in it, also where this result has their values."""
        from decisor.decision_record.build import record_of

        past = self.keeping.history.read(self.number, self.keeping.owner) if self.keeping and self.number else None
        return record_of(self.trace, self.number, past.approvals if past else (), past.owner if past else "")

    def save_record(self, path: str | PathLike[str]) -> None:
        """Write the record of the decision: as JSON, or where the name ends with ``.html`` as one page.

        Raises:
            SetupError: the file cannot be written.
        """
        from decisor.decision_record.read import save

        save(self.record(), path)

    def _repr_html_(self) -> str:
        from decisor.story.run_page import run_html

        return str(run_html(self.trace, self.decision, self.records, self.usage))

    def __str__(self) -> str:
        """What ``decisor ask`` prints."""
        from io import StringIO

        from rich.console import Console

        from decisor.story.live import LiveView

        text = StringIO()
        console = Console(file=text, highlight=False, width=WIDTH, force_terminal=False, no_color=True)
        with LiveView(console) as view:
            for entry in self.trace:
                view.hear(entry)
        self.show(console)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def show(self, console: Console) -> None:
        """The end of what ``decisor ask`` prints: the decision, its evidence, and what it cost."""
        from decisor.story.charts import studies_of
        from decisor.story.decision import show_decision, show_dim, show_studies

        show_decision(self.decision, self.records, console, self.charts)
        show_studies(studies_of(self.trace), console)
        console.print()
        show_dim(self.summary(), console)
        if not self.lm:
            show_dim(NO_LM, console)
        path = self.options.get("trace")
        if path and self.trace_fault:
            show_dim(f"Trace: {path} is not whole: {self.trace_fault}.", console)
        elif path:
            show_dim(f"Trace: {path} (read it with: decisor trace FILE)", console)
        if self.number:
            show_dim(f"Run {self.number} (see it again with: decisor show {self.number})", console)

    def summary(self) -> str:
        """Technique, LM and cost in a line."""
        from decisor.story.decision import usage_line

        return usage_line(self.usage, self.auto_technique or self.technique, self.lm)

    def as_object(self) -> dict[str, Any]:
        """What ``decisor ask --json`` prints; docs/command.md describes each key. Numbers that JSON cannot hold are
        None."""
        decision, path = self.decision, self.options.get("trace")
        values: dict[str, object] = finite(
            {
                "question": self.question,
                "technique": self.technique,
                "chosen": self.auto_technique or None,
                "settings": dict(self.settings),
                "lm": self.lm or None,
                "answer": decision.answer,
                "stopped": decision.stopped,
                "reasons": decision.reasons,
                "runner_up": decision.runner_up or None,
                "assumptions": decision.assumptions,
                "plan": decision.plan,
                "replans": decision.replans,
                "queries": queries_of(self.trace),
                "ranking": decision.ranking,
                "charts": [chart.vega_lite() for chart in self.charts],
                "evidence": {
                    "ids": decision.evidence.ids,
                    "figures": decision.evidence.figures,
                    "objections": decision.evidence.objections,
                    "pitfalls": decision.evidence.pitfalls,
                    "records": self.records,
                },
                "usage": self.usage,
                "trace": str(path) if path else None,
                "number": self.number or None,
            }
        )
        return values


def queries_of(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Every action in order: its tool and input whole, how many records it brought, and what went wrong."""
    results = {result.action: result for result in events_of(entries, ActionResult)}
    queries = []
    for entry in entries:
        if isinstance(entry.event, ActionStart):
            start, result = entry.event, results.get(entry.id)
            note = result.observation.note if result and result.observation.error else ""
            size = {"records": len(result.observation.records), "seconds": result.seconds} if result else {}
            queries.append({"tool": start.tool, "input": start.input, **size, "error": note or None})
    return queries


def write(path: str | PathLike[str], text: str) -> None:
    try:
        write_private(Path(path), text)
    except OSError as error:
        raise SetupError(f"Cannot write {path}: {error.strerror}.") from error
