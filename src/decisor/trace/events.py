"""The events of a run: append-only entries, each an event in a span.

File, story, page and report read these. A new event is one class and its name in ``Event``; mypy then names the
renderers that lack it. Beside the events of every run stand those of a reasoning DAG (nodes and their answers) and of
searches (trees of actions, ratings, and queries that a scorer chose among). ``Provenance`` tells where a run is from:
when, by whom, with which version, on which data. ``Writing`` is a reply that an LLM is writing: heard while it
happens, never kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Annotated, Literal, Protocol, TypeAlias, TypeVar, cast

from decisor.parsing.attribution import Attribution
from decisor.parsing.plan import PlanGraph
from decisor.system.secrets import redact_event, redact_text
from decisor.trace.prompts import PromptHistory, PromptInFile, redact_messages
from decisor.types import LLM, Action, Completion, Decision, Message, Observation, Question, Record, Sampling, Usage

Status = Literal["answered", "unknown", "failed", "blocked", "budget"]


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """The answer of one node: its question with tags filled in, the answer, and its support.

    ``documents``: those that were kept for it, each citable by its id. ``document`` is the one that the answer stands
    in and ``support`` the words there; ``also``: other documents that it rests on. ``why``: of a failure. ``sure`` is
    False where a parent's answer was unknown. ``query``: the question as it was planned, with its tags.
    """

    node: str
    question: str
    answer: str = ""
    status: Status = "answered"
    attribution: Attribution = "unattributed"
    document: str = ""
    support: str = ""
    documents: tuple[Record, ...] = ()
    why: str = ""
    retrievals: int = 0
    sure: bool = True
    query: str = ""
    also: tuple[str, ...] = ()

    @property
    def missing(self) -> bool:
        return self.status in ("failed", "blocked", "budget")


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """A plan of sub-questions. steps: its lines for people. why: no plan could be read."""

    steps: tuple[str, ...]
    graph: PlanGraph
    why: str = ""


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A stretch of the run in which one node is answered. question: still with its tags."""

    node: str
    question: str
    parents: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class NodeResult:
    """A node's whole answer, which a later run may take from here. reused: it was taken from the run before."""

    answer: NodeAnswer
    reused: bool = False


@dataclass(frozen=True, slots=True)
class GraphResult:
    """The counts of one question, and the support of its answer."""

    counts: Mapping[str, int] = field(default_factory=dict)
    attribution: Attribution = "unattributed"
    document: str = ""


Ended = Literal["", "answered", "gave_up", "steps"]


@dataclass(frozen=True, slots=True)
class SearchNode:
    """A node that a search tree grew: its action, and the beginning of the result."""

    node: int
    parent: int
    action: Action
    thought: str = ""
    text: str = ""
    error: bool = False
    ended: Ended = ""


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """A comparison of two leaves. score: 1 if the first won, 0 if the second did. elos: ratings after it."""

    nodes: tuple[int, int]
    score: float
    elos: tuple[float, float]


@dataclass(frozen=True, slots=True)
class AnswerSnapshot:
    """The answer that a run of so many LLM calls would have given; '' for none."""

    calls: int
    answer: str


@dataclass(frozen=True, slots=True)
class NodeRating:
    """A node of a finished tree. parent: None for the root. matches: how often its ``elo`` was updated."""

    node: int
    parent: int | None = None
    elo: float = 0.0
    matches: int = 0
    value: float = 0.0
    ended: Ended = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class SearchTree:
    """The whole tree at the end of a search, root first, and the node whose sequence was chosen."""

    nodes: tuple[NodeRating, ...]
    chosen: int | None = None


@dataclass(frozen=True, slots=True)
class QueryScores:
    """The scores of several queries; the best one is run."""

    queries: tuple[str, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """A weakness of a search, such as repeated_queries, low_score, many_rounds."""

    problem: str
    text: str


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """A policy by which only the rows of ``table`` that fulfil ``condition`` (SQL) were read. condition: '' if the
    reader may not see it.
    """

    table: str
    condition: str


@dataclass(frozen=True, slots=True)
class DataSource:
    """A database, graph or place with documents, by the name that a model calls it. form: sql, cypher or passages.
    place: without user and password, '' if the reader may not see it. rows: policies that hid rows from the reader.
    mask: columns (table.column) of which only tokens were read, which one machine makes of ``seed``.
    """

    name: str
    form: str
    place: str = ""
    rows: tuple[RowPolicy, ...] = ()
    mask: tuple[str, ...] = ()
    seed: str = ""


@dataclass(frozen=True, slots=True)
class UsedFile:
    """A file as it was when the data were first asked. digest:

    SHA-256 of its bytes, empty if it could not be read. text: of a decision model. about: the data that the file is
    about.
    """

    path: str
    digest: str = ""
    text: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a run: when, by whom, with which version, on which data."""

    at: float = 0.0
    """Seconds since 1970, 0 if unknown."""
    by: str = ""
    """The person who asked."""
    version: str = ""
    """The version of Decisor."""
    sources: tuple[DataSource, ...] = ()
    tables: tuple[str, ...] = ()
    """The tables that might be read; () means all."""
    deny_tables: tuple[str, ...] = ()
    """The tables that might not be read."""
    definitions: tuple[UsedFile, ...] = ()
    model: UsedFile | None = None


UNKNOWN = Provenance()


OnText: TypeAlias = "Callable[[str], None]"
"""Gets all that was written so far of one reply, again and again; a shorter text where an attempt is made anew."""


class StreamingLLM(LLM, Protocol):
    """An LLM that can show its reply while it writes it."""

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """Ask as ``complete`` does, and call ``on_text`` with the text so far."""
        ...


async def stream_if_possible(llm: LLM, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
    """Ask with ``stream`` if the LLM has it; else no text is shown before the reply is there."""
    if not hasattr(llm, "stream"):
        return await llm.complete(messages, sampling)
    return await cast(StreamingLLM, llm).stream(messages, sampling, on_text)


@dataclass(frozen=True, slots=True)
class Writing:
    """The text so far of the reply to one call, in the span of that id. call: counts from 1 in the run.

    The text gets shorter if an attempt broke and is made anew. is_over: the call ended; its event, if any, comes next.
    """

    call: int
    span: int
    text: str
    is_over: bool = False


@dataclass(slots=True)
class Writers:
    """The LLM calls of one run that write replies just now. hear: gets every Writing."""

    hear: Callable[[Writing], None]
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    @contextmanager
    def call(self, span: int) -> Iterator[OnText]:
        """Yield the function that takes each text of one call."""
        number, last = next(self.calls), ""

        def on_text(text: str) -> None:
            nonlocal last
            last = text
            self.hear(Writing(number, span, redact_text(text)))

        try:
            yield on_text
        finally:
            self.hear(Writing(number, span, redact_text(last), is_over=True))


NO_USAGE = Usage()
OTHER_READING = "other reading: "
"""How the span begins in which a question is decided as it could be meant too."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """The start of a run: its question and everything that is put to it. technique: in an evaluation its label,
    settings included, beside ``benchmark``, ``case`` and ``repeat``. edit: the changes, if a recorded run is gone on
    from. provenance: when, by whom, on which data.
    """

    question: Question
    technique: str = ""
    llm: str = ""
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
class LLMCall:
    """One complete call of the LLM. since: the last entry before the call began, so it may have waited for entries up
    to that one.
    """

    model: str
    messages: Annotated[Sequence[Message], PromptInFile()]
    texts: tuple[str, ...]
    finish: str = "stop"
    usage: Usage = NO_USAGE
    since: int | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class ActionStart:
    """The start of an action: a tool is given its input."""

    tool: str
    input: str


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The observation of an action. action: id of its ActionStart. seconds: since that entry."""

    action: int
    observation: Observation
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The decision of a technique; of the run itself if it stands in no span."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A reply that could not be read. reason: a word for counting. text: the complaint, as the model is told."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call of the LLM that failed for good: the kind of failure, the message, and the cost."""

    reason: str
    text: str
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class ShortenedPrompt:
    """A prompt from which records were left out.

    The next prompt of this span would have had ``tokens``, more than the ``room`` that a limit leaves it (of the
    model's context, or of the run's tokens).
    """

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
    """An answer for which a judge gave no verdict that counts."""

    text: str


@dataclass(frozen=True, slots=True)
class TechniqueChoice:
    """The technique that ``auto`` runs, and why."""

    technique: str
    why: str


@dataclass(frozen=True, slots=True)
class MeaningChoice:
    """The choice between two meanings of ``words`` of the question. means: the meaning taken. other: the other one. by:
    a person, or '' if nobody could be asked; then ``gives`` is the answer by the other one, '' if it was not
    computed. why: it was not computed.
    """

    words: str
    means: str
    by: str = ""
    other: str = ""
    gives: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunUsage:
    """The usage of the whole run."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Note:
    """A message to read in the story. passing: of no account once it is over."""

    text: str
    passing: bool = False


Event: TypeAlias = (
    RunStart
    | Span
    | Plan
    | PlanChange
    | LLMCall
    | ActionStart
    | ActionResult
    | Conclusion
    | UnreadableReply
    | FailedCall
    | ShortenedPrompt
    | UnscoredAnswer
    | TechniqueChoice
    | MeaningChoice
    | RunUsage
    | Note
    | GraphPlan
    | NodeSpan
    | NodeResult
    | GraphResult
    | SearchNode
    | SearchMatch
    | AnswerSnapshot
    | SearchTree
    | QueryScores
    | SearchProblem
)
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One event with its place in the trace. id: counts from 1. span: id of the entry it happened in, 0 for the run
    itself. at: seconds since the run began.
    """

    id: int
    span: int
    at: float
    event: Event


@dataclass(slots=True)
class Trace:
    """The entries of one run, without keys and passwords that a model wrote.

    ``listeners`` are called with each new one, such as the ``write`` of a trace file. ``fault``: why that file is not
    whole. ``writers``: where somebody wants to see replies while they are written.
    """

    entries: list[TraceEntry] = field(default_factory=list)
    listeners: list[Callable[[TraceEntry], None]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    prompts: PromptHistory = field(default_factory=PromptHistory)
    fault: str = ""
    writers: Writers | None = None

    def add(self, event: Event, span: int = 0) -> int:
        """Append an event and return its entry's id (1, 2, ...)."""
        number = len(self.entries) + 1
        if isinstance(event, Conclusion):
            event = replace(event, decision=add_pitfalls(event.decision, self.entries))
        if type(event) is LLMCall:
            prompt = self.prompts.add(redact_messages(event.messages, self.prompts.latest(span)), span, number)
            event = replace(event, messages=prompt, texts=redact_event(event.texts))
        elif type(event) is not ActionResult:
            event = redact_event(event)
        entry = TraceEntry(number, span, round(time.monotonic() - self.began, 6), event)
        self.entries.append(entry)
        for listener in self.listeners:
            listener(entry)
        return number

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one class, in order."""
        return list(events_of(self.entries, kind))


def add_pitfalls(decision: Decision, entries: Iterable[TraceEntry]) -> Decision:
    """Add to a decision the pitfalls of the queries whose rows it cites."""
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


def events_of(entries: Iterable[TraceEntry], kind: type[E]) -> Iterator[E]:
    """Iterate over the events of one class, in order."""
    return (entry.event for entry in entries if isinstance(entry.event, kind))


def cited_records_of(decision: Decision, entries: Sequence[TraceEntry]) -> tuple[Record, ...]:
    """Return the records that a decision cites, in its order."""
    start = next(events_of(entries, RunStart), None)
    earlier = start.question.earlier if start else None
    records = {record.id: record for record in earlier.records} if earlier else {}
    for result in events_of(entries, ActionResult):
        records |= {record.id: record for record in result.observation.records}
    return tuple(records[name] for name in decision.evidence.ids if name in records)
