"""What happened in a run: append-only entries, each an event in a span. File, story, page and report read these.

A new event is one class, here or beside, and its name in ``Event``; mypy then names the renderers that lack it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar

from decisor.secrets import redacted
from decisor.trace.graph_events import GraphPlan, GraphResult, NodeResult, NodeSpan
from decisor.trace.prompts import PromptHistory
from decisor.trace.provenance import UNKNOWN, Provenance
from decisor.trace.redaction import redacted_messages
from decisor.trace.search_events import AnswerSnapshot, QueryScores, SearchMatch, SearchNode, SearchProblem, SearchTree
from decisor.trace.writing import Writers
from decisor.types import Decision, Message, Observation, Question, Record, Usage

NO_USAGE = Usage()
OTHER_READING = "other reading: "
"""How the span begins in which a question is decided as it could be meant too."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """The question and what is put to it. Of an evaluation: ``technique`` is its label, settings included, beside
    ``benchmark``, ``case`` and ``repeat``. ``edit``: what was changed, where a recorded run is gone on from.
    ``provenance``: when, by whom, on which data."""

    question: Question
    technique: str = ""
    lm: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    benchmark: str = ""
    case: str = ""
    repeat: int = 0
    edit: Mapping[str, str] = field(default_factory=dict)
    provenance: Provenance = UNKNOWN


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the run with a name; entries inside carry its id."""

    name: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The first plan."""

    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A new plan: after which step (1-based), and why."""

    after_step: int
    why: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LMCall:
    """One call of the LM, complete. ``since``: the last entry before it began, so what it may have waited for."""

    model: str
    messages: Sequence[Message]
    texts: tuple[str, ...]
    finish: str = "stop"
    usage: Usage = NO_USAGE
    since: int | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class ActionStart:
    """A tool is given its input."""

    tool: str
    input: str


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came back, ``seconds`` after the entry ``action``, an ActionStart."""

    action: int
    observation: Observation
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A technique's decision; the run's own where it stands in no span."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A reply could not be read: why, as a word and as the model is told."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call of the LM failed for good: the kind of failure, what it said, and what it cost."""

    reason: str
    text: str
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class ShortenedPrompt:
    """The next prompt of this span would have had ``tokens``, more than the ``room`` that a limit leaves it (of the
    model's context, or of the run's tokens), so these records are left out of it."""

    limit: Literal["context", "tokens"]
    tokens: int
    room: int
    left_out: tuple[str, ...]

    @property
    def text(self) -> str:
        what = "1 record is" if len(self.left_out) == 1 else f"{len(self.left_out)} records are"
        why = "the model's context has" if self.limit == "context" else "the limit of tokens leaves"
        return f"{what} left out of the prompt: it is about {self.tokens:,} tokens, and {why} room for {self.room:,}."


@dataclass(frozen=True, slots=True)
class UnscoredAnswer:
    """A judge said nothing that counts."""

    text: str


@dataclass(frozen=True, slots=True)
class TechniqueChoice:
    """The technique that ``auto`` runs, and why."""

    technique: str
    why: str


@dataclass(frozen=True, slots=True)
class MeaningChoice:
    """What ``words`` of the question were taken to mean, where they could mean the ``other``. ``by`` a person, or ''
    where nobody could be asked; then ``gives`` is the answer by the other one, '' where it was not computed: ``why``.
    """

    words: str
    means: str
    by: str = ""
    other: str = ""
    gives: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What the whole run cost."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Note:
    """Anything else that is to be read in the story. ``passing``: of no account once it is over."""

    text: str
    passing: bool = False


Event: TypeAlias = (
    RunStart | Span | Plan | PlanChange | LMCall | ActionStart | ActionResult | Conclusion | UnreadableReply
    | FailedCall | ShortenedPrompt | UnscoredAnswer | TechniqueChoice | MeaningChoice | RunUsage | Note
    | GraphPlan | NodeSpan | NodeResult | GraphResult
    | SearchNode | SearchMatch | AnswerSnapshot | SearchTree | QueryScores | SearchProblem
)  # fmt: skip
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Entry:
    """One event. ``id`` counts from 1; ``span`` is the id of the entry it happened in, 0 for the run itself; ``at`` are
    seconds since the run began."""

    id: int
    span: int
    at: float
    event: Event


@dataclass(slots=True)
class Trace:
    """The entries of one run, without keys and passwords that a model wrote.

    ``listeners`` are called with each new one, such as the ``write`` of a trace file. ``fault``: why that file is not
    whole. ``writers``: where somebody wants to see replies while they are written."""

    entries: list[Entry] = field(default_factory=list)
    listeners: list[Callable[[Entry], None]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    prompts: PromptHistory = field(default_factory=PromptHistory)
    fault: str = ""
    writers: Writers | None = None

    def add(self, event: Event, span: int = 0) -> int:
        """Append and return the entry's id (1, 2, ...)."""
        number = len(self.entries) + 1
        if isinstance(event, Conclusion):
            event = replace(event, decision=with_pitfalls(event.decision, self.entries))
        if type(event) is LMCall:
            prompt = self.prompts.add(redacted_messages(event.messages, self.prompts.latest(span)), span, number)
            event = replace(event, messages=prompt, texts=redacted(event.texts))
        elif type(event) is not ActionResult:
            event = redacted(event)
        entry = Entry(number, span, round(time.monotonic() - self.began, 6), event)
        self.entries.append(entry)
        for listener in self.listeners:
            listener(entry)
        return number

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class, in order."""
        return list(events_of(self.entries, kind))


def with_pitfalls(decision: Decision, entries: Iterable[Entry]) -> Decision:
    """The decision, with the pitfalls of the queries whose rows it cites."""
    pitfalls = []
    for result in events_of(entries, ActionResult):
        if not result.observation.pitfalls:
            continue
        ids = {record.id for record in result.observation.records}
        cited = tuple(name for name in decision.evidence.ids if name in ids)
        pitfalls += [replace(one, records=cited) for one in result.observation.pitfalls if cited]
    if not pitfalls and not decision.evidence.pitfalls:
        return decision
    return replace(decision, evidence=replace(decision.evidence, pitfalls=tuple(pitfalls)))


def events_of(entries: Iterable[Entry], kind: type[E]) -> Iterator[E]:
    """The events of one class, in order."""
    return (entry.event for entry in entries if isinstance(entry.event, kind))


def records_of(decision: Decision, entries: Sequence[Entry]) -> tuple[Record, ...]:
    """The records that a decision cites, in its order."""
    start = next(events_of(entries, RunStart), None)
    earlier = start.question.earlier if start else None
    records = {record.id: record for record in earlier.records} if earlier else {}
    for result in events_of(entries, ActionResult):
        records |= {record.id: record for record in result.observation.records}
    return tuple(records[name] for name in decision.evidence.ids if name in records)
