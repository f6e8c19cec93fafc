"""The events of a run: append-only entries, each an event in a span.

File, story, page and report read these. A new event is one class and its name in ``Event``; mypy then names the
renderers that lack it. Beside the events of every run stand those of a reasoning DAG (nodes and their answers) and of
searches (trees of actions, ratings, and queries that a scorer chose among). ``Provenance`` tells where a run is from:
when, by whom, with which version, on which data. ``Writing`` is a reply that an LLM is writing: heard while it
happens, never kept.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Annotated, Literal, Protocol, TypeAlias, TypeVar, cast

from decisor.parsing.attribution import Attribution
from decisor.parsing.plan import PlanGraph
from decisor.system.secrets import redact_event, redact_text
from decisor.system.wording import format_count
from decisor.trace.prompts import PromptHistory, PromptInFile, redact_message, redact_messages
from decisor.types import LLM, Action, Completion, Decision, Message, Observation, Question, Record, Sampling, Usage

Status = Literal["answered", "unknown", "failed", "blocked", "budget"]


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """The answer of one node of a reasoning DAG, with its support."""

    node: str
    question: str
    """Its tags are filled in."""
    answer: str = ""
    status: Status = "answered"
    attribution: Attribution = "unattributed"
    document: str = ""
    """Id of the document that the answer stands in."""
    support: str = ""
    """The words there."""
    documents: tuple[Record, ...] = ()
    """Those that were kept for the answer, each citable by its id."""
    why: str = ""
    """Reason of a failure."""
    retrievals: int = 0
    sure: bool = True
    """False if a parent's answer was unknown."""
    query: str = ""
    """The question as planned, with its tags."""
    also: tuple[str, ...] = ()
    """Ids of other documents that the answer rests on."""

    @property
    def missing(self) -> bool:
        return self.status in ("failed", "blocked", "budget")


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """A plan of sub-questions."""

    steps: tuple[str, ...]
    """The lines of the plan for people."""
    graph: PlanGraph
    why: str = ""
    """Why no plan could be read; '' if one was."""


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A stretch of the run in which one node is answered."""

    node: str
    question: str
    """Still with its tags."""
    parents: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class NodeResult:
    """A node's whole answer, which a later run may take from here."""

    answer: NodeAnswer
    reused: bool = False
    """True if it was taken from the run before."""


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
    """A comparison of two leaves of a search tree."""

    nodes: tuple[int, int]
    score: float
    """1 if the first won, 0 if the second did, else 0.5."""
    elos: tuple[float, float]
    """Ratings after the comparison."""


@dataclass(frozen=True, slots=True)
class AnswerSnapshot:
    """The answer that a run of so many LLM calls would have given; '' for none."""

    calls: int
    answer: str


@dataclass(frozen=True, slots=True)
class NodeRating:
    """A node of a finished tree."""

    node: int
    parent: int | None = None
    """None for the root."""
    elo: float = 0.0
    matches: int = 0
    """Number of updates of ``elo``."""
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
    """The text so far of the reply to one call."""

    call: int
    """Number of the call in the run, from 1."""
    span: int
    """Id of the span that the call is in."""
    text: str
    """It gets shorter if an attempt broke and is made anew."""
    is_over: bool = False
    """True if the call ended; its event, if any, comes next."""


@dataclass(slots=True)
class Writers:
    """The LLM calls of one run that write replies just now."""

    hear: Callable[[Writing], None]
    """Gets every Writing."""
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    @contextmanager
    def call(self, span: int) -> Iterator[OnText]:
        """Yield the function that takes each text of one call."""
        number, last = next(self.calls), ""

        def on_text(text: str) -> None:
            nonlocal last
            last = text
            # The whole text so far is searched each time: a key may arrive in pieces.
            self.hear(Writing(number, span, redact_text(text)))

        try:
            yield on_text
        finally:
            # Also where the call failed, or a watcher would wait for the end of this reply for ever.
            self.hear(Writing(number, span, redact_text(last), is_over=True))


NO_USAGE = Usage()
OTHER_READING = "other reading: "
"""How the span begins in which a question is decided as it could be meant too."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """The start of a run: its question and everything that is put to it."""

    question: Question
    technique: str = ""
    """In an evaluation its label, settings included, beside ``benchmark``, ``case`` and ``repeat``."""
    llm: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    benchmark: str = ""
    case: str = ""
    repeat: int = 0
    edit: Mapping[str, str] = field(default_factory=dict)
    """The changes, if a recorded run is continued."""
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
    """A new plan."""

    after_step: int
    """Number of the step before it, from 1."""
    why: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LLMCall:
    """One complete call of the LLM."""

    model: str
    messages: Annotated[Sequence[Message], PromptInFile()]
    texts: tuple[str, ...]
    finish: str = "stop"
    usage: Usage = NO_USAGE
    since: int | None = None
    """Id of the last entry before the call began: the call may have waited for any entry up to it."""
    replayed: bool = False
    turn: Message | None = None
    """The reply with its calls of tools; None unless some were offered."""


@dataclass(frozen=True, slots=True)
class ActionStart:
    """The start of an action: a tool is given its input."""

    tool: str
    input: str


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The observation of an action."""

    action: int
    """Id of its ActionStart."""
    observation: Observation
    seconds: float = 0.0
    """Time since that entry."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The decision of a technique; of the run itself if it is in no span."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A reply that could not be read."""

    reason: str
    """A word for counting."""
    text: str
    """The complaint, as the LLM is told."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call of the LLM that failed for good: the kind of failure, the message, and the cost."""

    reason: str
    text: str
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class ShortenedPrompt:
    """A prompt from which records, or of a conversation whole results, were left out: the next prompt of its span."""

    limit: Literal["context", "tokens"]
    """The model's context, or the run's tokens."""
    tokens: int
    """Tokens that the prompt would have had."""
    room: int
    """Tokens that the limit leaves it."""
    left_out: tuple[str, ...]
    """Ids of records (o1.r2), and of results of which one line is left (o1)."""

    @property
    def text(self) -> str:
        results = [id for id in self.left_out if re.fullmatch(r"o\d+", id)]
        records = len(self.left_out) - len(results)
        parts = [f"{format_count(len(results), 'result')} ({', '.join(results)})"] if results else []
        parts += [format_count(records, "record")] if records or not results else []
        what = f"{' and '.join(parts)} {'is' if len(self.left_out) == 1 else 'are'}"
        why = "the model's context has" if self.limit == "context" else "the limit of tokens leaves"
        return f"{what} left out of the prompt: it is about {self.tokens:,} tokens, and {why} room for {self.room:,}."


@dataclass(frozen=True, slots=True)
class UnscoredAnswer:
    """An answer for which a judge gave no verdict that counts."""

    text: str


@dataclass(frozen=True, slots=True)
class TechniqueChoice:
    """The technique that goes on in place of the one that was begun, and why."""

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
    """A message to read in the story of a run."""

    text: str
    passing: bool = False
    """True if it is of no account once it is over."""


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
    """One event with its place in the trace."""

    id: int
    """Counts from 1."""
    span: int
    """Id of the entry it happened in; 0 for the run itself."""
    at: float
    """Seconds since the run began."""
    event: Event


@dataclass(slots=True)
class Trace:
    """The entries of one run, without keys and passwords that a model wrote."""

    entries: list[TraceEntry] = field(default_factory=list)
    listeners: list[Callable[[TraceEntry], None]] = field(default_factory=list)
    """Called with each new entry, such as the ``write`` of a trace file."""
    began: float = field(default_factory=time.monotonic)
    prompts: PromptHistory = field(default_factory=PromptHistory)
    fault: str = ""
    """Why the trace file is not whole; '' if it is."""
    writers: Writers | None = None
    """None if nobody wants to see replies while they are written."""

    def add(self, event: Event, span: int = 0) -> int:
        """Append an event and return its entry's id (1, 2, ...)."""
        number = len(self.entries) + 1
        # The pitfalls of queries are known to the trace alone, so it adds them to the decision that cites their rows.
        if isinstance(event, Conclusion):
            event = replace(event, decision=add_pitfalls(event.decision, self.entries))
        if type(event) is LLMCall:
            # A prompt repeats the one before it, so only its new lines are searched for secrets.
            turn = event.turn and redact_message(event.turn)
            messages = redact_messages(event.messages, self.prompts.latest(span))
            prompt = self.prompts.add(messages, span, number, turn)
            event = replace(event, messages=prompt, texts=redact_event(event.texts), turn=turn)
        # What tools brought back is the evidence, and stays as it is.
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
    """Add to a decision the pitfalls of the queries whose rows it cites, without those that only ask."""
    pitfalls = []
    for result in events_of(entries, ActionResult):
        if not result.observation.pitfalls:
            continue
        ids = {record.id for record in result.observation.records}
        cited = tuple(name for name in decision.evidence.ids if name in ids)
        marks = (pitfall for pitfall in result.observation.pitfalls if cited and pitfall.strength == "wrong")
        pitfalls += [replace(pitfall, records=cited) for pitfall in marks]
    if not pitfalls and not decision.evidence.pitfalls:
        return decision
    return replace(decision, evidence=replace(decision.evidence, pitfalls=tuple(pitfalls)))


def events_of(entries: Iterable[TraceEntry], kind: type[E]) -> Iterator[E]:
    """Iterate over the events of one class, in order."""
    return (entry.event for entry in entries if isinstance(entry.event, kind))


def sum_call_usage(entries: Iterable[TraceEntry]) -> Usage:
    """Sum the usage of the calls of LLMs, failed ones included."""
    return sum((entry.event.usage for entry in entries if isinstance(entry.event, LLMCall | FailedCall)), Usage())


def iterate_actions(entries: Sequence[TraceEntry]) -> Iterator[tuple[ActionStart, ActionResult]]:
    """Iterate over the actions that have a result, with it, in the order of the results."""
    starts = {entry.id: entry.event for entry in entries if isinstance(entry.event, ActionStart)}
    return ((starts[result.action], result) for result in events_of(entries, ActionResult) if result.action in starts)


def cited_records_of(decision: Decision, entries: Sequence[TraceEntry]) -> tuple[Record, ...]:
    """Return the records that a decision cites, in its order."""
    start = next(events_of(entries, RunStart), None)
    earlier = start.question.earlier if start else None
    steps = earlier.all_steps if earlier else ()
    records = {record.id: record for step in steps for record in step.observation.records}
    for result in events_of(entries, ActionResult):
        records |= {record.id: record for record in result.observation.records}
    return tuple(records[name] for name in decision.evidence.ids if name in records)
