"""Record a run while it goes on: its trace line by line, and its outcome at the end.

An error of the history never ends a run, which may have been paid for; ``fault`` says what went wrong. Marked runs can
be exported as a person's own questions, a line of JSON each, which ``decisor eval --questions`` reads.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from decisor.errors import Error, SetupError
from decisor.history.store import ALL, History, PastRun, State
from decisor.system.secrets import redact
from decisor.system.serialization import DocumentFormat, dataclass_values, json_text
from decisor.trace.events import Conclusion, RunStart, RunUsage, TraceEntry, events_of
from decisor.trace.file import TraceFile
from decisor.types import Earlier, Question


@dataclass
class Keeping:
    """Where and how to record a run in the history."""

    history: History = field(default_factory=History)
    owner: str = ""
    """Person whose run it is."""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """Request of the run as JSON."""
    before: int = 0
    """Number of the run that it follows."""
    number: int = 0
    """Number of the run, set when it begins; 0 if nothing was recorded."""
    fault: str = ""
    """Reason why it was not recorded, '' if none is known."""


def update_past_run(run: PastRun, entry: TraceEntry) -> PastRun:
    """Return a past run, updated by the next entry of its trace."""
    match entry.event:
        case RunStart() as event:
            return replace(
                run,
                question=event.question,
                technique=event.technique,
                llm=event.llm,
                tools=event.tools,
                edit=event.edit,
            )
        # A Conclusion within a span is that of a part, not of the run.
        case Conclusion(decision=decision) if entry.span == 0:
            why = decision.reasons[-1] if decision.reasons and decision.stopped != "answered" else ""
            return replace(run, state=decision.stopped, answer=decision.answer, why=why)
        case RunUsage(usage=usage):
            return replace(run, usage=usage, entries=entry.id, seconds=entry.at)
        case _:
            return run


class RunRecorder:
    """A listener that records a run in the history.

    Pass its ``write`` to a trace. The run is in the history from its RunStart on.
    """

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        self.run = PastRun(Question(""), keeping.inputs, owner=keeping.owner, began=time.time(), before=keeping.before)
        self.trace: TraceFile | None = None

    def begin(self) -> None:
        history = self.keeping.history
        try:
            # The number comes first, as the trace file is named by it.
            number = history.begin(self.run)
            self.run = replace(self.run, number=number)
            self.trace = history.open_trace(number)
            self.keeping.number = number
        except (SetupError, OSError) as error:
            self.fail(error)

    def write(self, entry: TraceEntry) -> None:
        self.run = update_past_run(self.run, entry)
        if isinstance(entry.event, RunStart):
            self.begin()
        if self.trace is not None:
            self.trace.write(entry)

    def end(self, state: State = "failed", why: str = "") -> None:
        """End the recording. state, why: of a run that came to no decision."""
        if self.trace is None:
            return
        if self.trace.fault:
            self.keeping.fault = f"the trace of run {self.run.number} is not whole: {self.trace.fault}"
        if self.run.state == "running":
            self.run = replace(self.run, state=state, why=why)
        try:
            self.keeping.history.write(self.run)
        except (SetupError, OSError) as error:
            self.fail(error)
        self.close()

    def fail(self, error: Exception) -> None:
        what = error.strerror if isinstance(error, OSError) else str(error)
        self.keeping.number, self.keeping.fault = 0, f"this run is not kept: {what}"
        # Nothing more is recorded, and the run goes on.
        self.close()

    def close(self) -> None:
        if self.trace is not None:
            self.trace.close()
            self.trace = None


@contextmanager
def record_run(keeping: Keeping | None) -> Iterator[Sequence[Callable[[TraceEntry], None]]]:
    """Record a run in the history until the block ends, in whatever way it ends.

    It yields the listeners for the trace, none if ``keeping`` is None.
    """
    if keeping is None:
        yield ()
        return
    recording = RunRecorder(keeping)
    try:
        yield [recording.write]
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        recording.end("interrupted", "It was interrupted.")
        raise
    except Error as error:
        recording.end("failed", redact(str(error)))
        raise
    except BaseException as error:
        # The text of a crash may hold anything: its kind alone is kept.
        recording.end("failed", f"It crashed: {type(error).__name__}.")
        raise
    else:
        recording.end()


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A question with its right or wrong answer, as of a marked run, or with what else is expected of a run."""

    question: str
    id: str = ""
    rules: str = ""
    goal: str = ""
    answer: str = ""
    """The right answer, '' if only a ``wrong`` one is known."""
    wrong: str = ""
    note: str = ""
    """Consequences of the decision."""
    earlier: Earlier | None = None
    asks: bool | None = None
    """Whether its words are open, so that a person is asked or both readings are computed; None if either will do."""
    abstains: bool | None = None
    """Whether the data hold no answer, so that none is to be given."""
    cites: tuple[str, ...] = ()
    """Tables, labels and documents that the answer is to rest on."""
    uses: tuple[str, ...] = ()
    """Names of definitions that it is to rest on."""
    dollars: float | None = None
    """Most that the run may cost."""

    @property
    def expects(self) -> tuple[str, ...]:
        """What is expected besides an answer, as NAME=VALUE."""
        named = {name: getattr(self, name) for name in ("asks", "abstains", "cites", "uses", "dollars")}
        return tuple(f"{name}={json_text(value)}" for name, value in named.items() if value not in (None, ()))


OWN_QUESTION = DocumentFormat(OwnQuestion, is_closed=True)


def iterate_marked_questions(history: History, owner: str = "") -> Iterator[OwnQuestion]:
    """Yield the marked runs as questions, the oldest first. A run without any answer is left out."""
    for run in reversed(history.list(owner, most=ALL)):
        if run.mark is not None and (run.answer or run.mark.answer):
            yield question_of_marked_run(history, run)


def question_of_marked_run(history: History, run: PastRun) -> OwnQuestion:
    assert run.mark is not None
    start = next(events_of(history.entries(run.number, run.owner), RunStart), None)
    is_right, question = run.mark.verdict == "right", run.question
    return OwnQuestion(
        question.text,
        f"run-{run.number}",
        question.rules,
        question.goal,
        answer=run.answer if is_right else run.mark.answer,
        wrong="" if is_right else run.answer,
        note=run.mark.came_of,
        earlier=start.question.earlier if start else None,
    )


def format_question_line(question: OwnQuestion) -> str:
    return json_text({name: value for name, value in dataclass_values(question).items() if value}) + "\n"


def read_questions(path: Path) -> list[OwnQuestion]:
    """Read questions from a file with a line of JSON each. Questions without an id are numbered.

    Raises:
        SetupError: it cannot be read, a line is no question, none has an answer, or an id comes twice.
    """
    try:
        lines = [line for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"Cannot read the questions in {path}: {error}") from error
    questions: dict[str, OwnQuestion] = {}
    for number, line in enumerate(lines, 1):
        try:
            question = OWN_QUESTION.decode_value({"id": f"line-{number}", **json.loads(line)})
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise SetupError(
                f'{path}, line {number}: {error}. A line is such as {{"question": "Which site?", "answer": "elm"}}'
            ) from error
        if not (question.answer or question.wrong or question.expects):
            raise SetupError(
                f"{path}, line {number}, has no answer, and nothing else is expected: write answer, wrong, asks, "
                "abstains, cites, uses or dollars."
            )
        if question.id in questions:
            raise SetupError(f"{path}, line {number}: the id {question.id} is there twice.")
        questions[question.id] = question
    if not questions:
        raise SetupError(f"{path} holds no questions. Mark runs, and write them: decisor history export > mine.jsonl")
    return list(questions.values())
