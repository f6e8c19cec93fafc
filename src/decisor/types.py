"""The types that all parts share: questions, actions, records, decisions, rankings and protocols.

All are frozen. First stand the nouns of a run, then a ranking and the studies beside it, then the evidence of a
decision. The protocols name the methods that others have to have; see ``runtime.run`` too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Pricing(Protocol):
    """A price of tokens."""

    def dollars(self, prompt_tokens: int, completion_tokens: int) -> float: ...


class LLM(Protocol):
    """An LLM: anything that completes messages. It may have a ``price``, a Pricing; a limit of dollars needs one."""

    @property
    def name(self) -> str: ...

    async def complete(self, messages: Sequence[Message], sampling: Sampling = ...) -> Completion:
        """Return one to ``sampling.n`` texts: a run asks for the missing ones."""
        ...


class Tool(Protocol):
    """A named tool that an action can use.

    Records carry provisional ids r1, r2, ...; the environment completes them.
    """

    @property
    def name(self) -> str: ...

    def describe(self) -> str: ...

    async def call(self, text: str) -> Observation:
        """Answer the model's input; raise ToolError if it is refused or fails."""
        ...

    async def close(self) -> None: ...


class Environment(Protocol):
    """A place where actions happen.

    ``fork`` returns an independent copy of its changing parts; read-only parts may be shared.

    It may have ``forms()``, what each tool speaks, and ``wrong_form(answer)``: why a text is no answer by its form.
    """

    def tools(self) -> tuple[str, ...]: ...

    def describe(self) -> str: ...

    async def step(self, action: Action) -> Observation: ...

    def fork(self) -> Environment: ...


@runtime_checkable
class ObservationMemory(Protocol):
    """An environment whose tools may work with the records of other tools."""

    def remember(self, number: int, action: Action, observation: Observation) -> None:
        """Pass the observation ``o<number>`` of an action to the tools that work with it."""
        ...


@runtime_checkable
class FunctionSource(Protocol):
    """An environment whose tools take arguments of their own."""

    def functions(self) -> tuple[Function, ...]:
        """Return a function for each tool whose input is a JSON object with a schema."""
        ...


class BulkSource(Protocol):
    """A database that is read in bulk, in the same sandbox. trusted: the query is our own, so it skips the check that a
    model's query meets; a query from a file never is.
    """

    @property
    def form(self) -> Literal["sql", "cypher"]: ...

    async def fetch(self, query: str, max_rows: int = 2_000_000, trusted: bool = False) -> Table: ...


class Retriever(Protocol):
    """A search that finds records for a query, best first."""

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]: ...


class WhatIf(Protocol):
    """A decision model for one question: its candidates, and the outcome of each."""

    @property
    def measure(self) -> str: ...

    @property
    def goal(self) -> Goal: ...

    def candidates(self) -> tuple[str, ...]:
        """Return the candidates in data order."""
        ...

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Return one float per candidate, shape (len(candidates),); nan for one that is not allowed."""
        ...

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        """Return the same model with each input multiplied by 1 + U(-percent, percent)/100."""
        ...


Goal = Literal["min", "max"]
READ_OFF = "read off "
"""Beginning of the method of a ranking that is the order of a query's rows."""


@dataclass(frozen=True, slots=True)
class Option:
    """A candidate and its predicted outcome. low, high: 90 % of its trials lie between them; None without trials."""

    name: str
    outcome: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Excluded:
    """A candidate that may not be chosen: the rules that it breaks, and why in words.

    ``outcome`` is None where it has none; ``gain``: how much better it is than the best allowed one, in the measure's
    unit (below 0 where it is worse), None where that cannot be said.
    """

    name: str
    outcome: float | None
    rules: tuple[str, ...]
    why: str = ""
    gain: float | None = None


@dataclass(frozen=True, slots=True)
class Winner:
    """A candidate, and the share of the trials in which it came first."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class PlanRow:
    """An amount of a plan. now: that of today's plan; None if unknown."""

    label: str
    amount: float
    now: float | None = None


@dataclass(frozen=True, slots=True)
class PlanTable:
    """The amounts of one kind that are not 0: ``used`` of ``count``; of very many, the first."""

    name: str
    count: int
    used: int
    unit: str = ""
    rows: tuple[PlanRow, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasurePart:
    """A part of the best outcome. against: the same part of today's, else of the runner-up's; None if unknown."""

    name: str
    value: float
    against: float | None = None


@dataclass(frozen=True, slots=True)
class AmountPlan:
    """The solver's result. rules: each rule at the plan, in words."""

    tables: tuple[PlanTable, ...]
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldPlan:
    """The cost of holding to the best plan while the inputs vary. kept: number of trials in which it broke no rule.

    ``broken``: in how many it broke each rule. ``mean``, ``high``: by how much the best plan of a trial is better than
    it, on average and in all but 5 % of the trials, where it is kept; None if it never is.
    """

    kept: int
    broken: Mapping[str, int]
    mean: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates from best to worst, equal ones in data order; of very many, the best.

    ``ties``: the candidates within a relative 1e-9 of the best. ``margin``: relative distance from the best to the
    first candidate outside the tie set, None where there is none; ``lead``: the same in the measure's unit.
    ``robustness``: share of ``trials`` in which the best stayed in front while the inputs varied, None where it was not
    measured; ``varied`` says which and how (``varied_percent``: all alike). ``winners``: who came first in the trials.
    ``compared`` of ``candidates`` were computed (None: not known), ``excluded_count`` of them may not be chosen;
    ``excluded`` are the nearest of these, ``excluded_by`` counts them by rule. ``stopped``: what ended it early.
    ``method``: how it was computed, where not by computing every candidate. ``covered``: what the trials computed.
    ``left_out``: cells without a value that a sum or a mean passes over. ``plan``: the solver's amounts. ``held``: the
    cost of holding to it in trials. ``near``: how the next measure decided between outcomes that are near to the best.
    ``today``: the outcome of what is chosen today, or of doing nothing. ``parts``: add up to the best outcome.
    ``readings``: the winner where an open question is read the other way.
    """

    measure: str
    goal: Goal
    options: tuple[Option, ...]
    ties: tuple[str, ...] = ()
    margin: float | None = None
    robustness: float | None = None
    varied_percent: float | None = None
    unit: str = ""
    lead: float | None = None
    trials: int = 0
    varied: tuple[str, ...] = ()
    winners: tuple[Winner, ...] = ()
    compared: int | None = None
    candidates: int | None = None
    excluded_count: int = 0
    excluded: tuple[Excluded, ...] = ()
    excluded_by: Mapping[str, int] = field(default_factory=dict)
    stopped: str = ""
    method: str = ""
    covered: str = ""
    left_out: tuple[str, ...] = ()
    plan: AmountPlan | None = None
    held: HeldPlan | None = None
    near: str = ""
    today: float | None = None
    parts: tuple[MeasurePart, ...] = ()
    readings: tuple[ScenarioOutcome, ...] = ()

    @property
    def is_read_off(self) -> bool:
        """Whether it is the order of a query's rows, and no decision model computed it."""
        return self.method.startswith(READ_OFF)

    @property
    def count(self) -> int:
        """Number of candidates that were computed."""
        return len(self.options) + self.excluded_count if self.compared is None else self.compared


@dataclass(frozen=True, slots=True)
class RuleTest:
    """The test of a rule on one ``candidate``. test: the query, or the bound. rows: the first that break the rule.
    count: number of all that do.
    """

    name: str
    text: str
    state: Literal["kept", "broken", "not testable"]
    why: str
    test: str = ""
    count: int = 0
    rows: tuple[Mapping[str, object], ...] = ()
    candidate: str = ""


@dataclass(frozen=True, slots=True)
class CandidatePoint:
    """A candidate by all measures. front: no allowed candidate is better by one measure and as good by the rest."""

    name: str
    values: tuple[float, ...]
    front: bool


@dataclass(frozen=True, slots=True)
class Swing:
    """The range in which one input alone moves the lead of the best over the next.

    90 % of the trials are between ``low`` and ``high`` (below 0: another is in front). stays: in which share it stays.
    """

    input: str
    spread: str
    low: float
    high: float
    stays: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A turning point: the ``factor`` of an input at which ``winner`` wins. winner: '' means that nothing is allowed.
    factor: None means that none wins in the range tried. why: the rule that the former best breaks, with its row.
    """

    input: str
    factor: float | None
    winner: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioOutcome:
    """The winner on the data ('now'), in a scenario, on changed data, or by another reading of the question. best: ''
    if nothing is allowed. usual: the outcome of the present winner; None if it is shut out. is_same: it is as good.
    """

    name: str
    best: str
    outcome: float | None
    usual: float | None
    why: str = ""
    computed: bool = True
    is_same: bool = False


@dataclass(frozen=True, slots=True)
class Study:
    """The findings of a what-if beyond a ranking. best: the winner on the unchanged data. lead: its distance to the
    next; None without another. measures, units, goals: of ``points``; the first is that of ``swings``, ``scenes``.
    """

    title: str
    measures: tuple[str, ...]
    units: tuple[str, ...]
    goals: tuple[str, ...]
    best: str = ""
    lead: float | None = None
    points: tuple[CandidatePoint, ...] = ()
    swings: tuple[Swing, ...] = ()
    turns: tuple[Turn, ...] = ()
    scenes: tuple[ScenarioOutcome, ...] = ()


ObjectionKind = Literal[
    "figure", "unit", "scale", "candidate", "rank", "row", "period", "direction", "runner_up", "count", "ranking"
]


@dataclass(frozen=True, slots=True)
class Pitfall:
    """A query that runs but may not mean the thing that it seems to mean."""

    kind: str
    """The rule that noticed it."""
    text: str
    """The problem and the remedy, or a question to whoever wrote the query."""
    records: tuple[str, ...] = ()
    """Ids of its rows that a decision cites."""
    strength: Literal["wrong", "ask"] = "wrong"
    """Whether it objects to an answer, or only asks once."""
    place: str = ""
    """The part of the query, in SQL."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number quoted in an answer, and the record or calculation that supports it. '' means that none was found."""

    text: str
    support: str = ""


@dataclass(frozen=True, slots=True)
class Objection:
    """A claim of an answer that the rows it cites do not support."""

    kind: ObjectionKind
    """The part of the claim that is contradicted."""
    text: str
    """The claim, and the record that says otherwise."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The grounds of a decision: record ids, quoted figures, pitfalls of queries, and objections."""

    ids: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    pitfalls: tuple[Pitfall, ...] = ()
    objections: tuple[Objection, ...] = ()


if TYPE_CHECKING:
    Value: TypeAlias = None | bool | int | float | str | Sequence["Value"] | Mapping[str, "Value"]
else:
    Value = object  # pydantic, which reads the fields of this type, knows no alias that names itself
Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that an LLM wrote."""

    id: str
    """The provider's own, sent back unchanged; "" for a call that was written as text."""
    name: str
    arguments: str
    """JSON, unparsed: it may be malformed."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with an LLM."""

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    """The calls of an assistant's turn."""
    call_id: str = ""
    """The id of the call that a tool's turn answers."""
    raw: Mapping[str, object] | None = None
    """An assistant's turn as its provider wrote it, with thoughts and signatures: sent back instead of the rest."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that calls and actions used. dollars: None if a price is unknown; unknown plus anything is unknown.

    ``estimates``: of how many of the calls the cost is an estimate: they were cut off after they were sent, or the
    endpoint did not count. ``cache_reads``, ``cache_writes``: how many of the prompt's tokens the endpoint had in its
    cache, and how many it put there.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    # 0 before any call: a sum begins known, and becomes unknown with the first unknown price.
    dollars: float | None = 0.0
    seconds: float = 0.0
    actions: int = 0
    estimates: int = 0
    cache_reads: int = 0
    cache_writes: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """Add two usages; dollars are None if either price is unknown.

        >>> (Usage(calls=1, dollars=0.5) + Usage(calls=1, dollars=None)).dollars is None
        True
        """
        # None is no 0: a sum with an unknown price must not pass a limit of dollars.
        unknown = self.dollars is None or other.dollars is None
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            None if unknown else (self.dollars or 0.0) + (other.dollars or 0.0),
            self.seconds + other.seconds,
            self.actions + other.actions,
            self.estimates + other.estimates,
            self.cache_reads + other.cache_reads,
            self.cache_writes + other.cache_writes,
        )


@dataclass(frozen=True, slots=True)
class Function:
    """A function that an LLM may call. parameters: the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of one request to an LLM. schema: the reply fits it. functions: one is called, as ``{"name": ...,
    "arguments": {...}}``. logprobs: number of alternatives for each token. continuation: without a chat template.
    capped: the run itself set ``max_tokens``.
    """

    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    # None leaves the length to the endpoint, or to the settings of the LLM.
    max_tokens: int | None = None
    n: int = 1
    seed: int | None = None
    schema: Mapping[str, object] | None = None
    functions: tuple[Function, ...] = ()
    logprobs: int = 0
    continuation: bool = False
    capped: bool = False
    top_p: float | None = None
    tools: tuple[Function, ...] = ()
    """Functions that the LLM may call, several in one reply or none; the calls are in the turn of the completion."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a completion, its log-probability, and the likeliest tokens at its place with theirs."""

    text: str
    logprob: float
    top: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of an LLM:

    ``n`` texts, their usage, and why it stopped. finish: stop, length, content_filter, refusal, or loop (it repeated
    itself and was cut off).

    ``replayed``: from a journal; ``usage`` is what it cost when it was bought. ``usage.seconds`` is 0 where the LLM did
    not measure them. ``logprobs``: the tokens of each text, where they were asked for and the endpoint gave them.
    """

    texts: tuple[str, ...]
    usage: Usage = Usage(calls=1)
    finish: str = "stop"
    model: str = ""
    replayed: bool = False
    logprobs: tuple[tuple[Token, ...], ...] = ()
    turn: Message | None = None
    """The reply as a turn to send back, with its calls; None unless ``Sampling.tools`` offered some."""

    @property
    def text(self) -> str:
        return self.texts[0]


@dataclass(frozen=True, slots=True)
class Question:
    """A decision question: its text, the rules it is decided by, and the goal in words. earlier: the decision that it
    goes on from.
    """

    text: str
    rules: str = ""
    goal: str = ""
    earlier: Earlier | None = None

    def __str__(self) -> str:
        return "\n\n".join(part.strip() for part in (self.rules, self.text, self.goal) if part.strip())

    @property
    def topic(self) -> str:
        """The question with its goal and rules, and with the questions that it goes on from."""
        earlier = (*self.earlier.before, self.earlier.question) if self.earlier else ()
        return "\n".join([self.text, self.goal, self.rules, *earlier])


@dataclass(frozen=True, slots=True)
class Action:
    """A tool and its input."""

    tool: str
    input: str


@dataclass(frozen=True, slots=True)
class Record:
    """One citable thing that a tool returned: a row or node (fields) or a passage (text).

    ``score``: a retriever's score for the query, higher is better; a model is never shown it.
    """

    id: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    text: str = ""
    source: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of an action. note: for the model to read. A failed query is an observation with ``error``.

    ``answer`` is not None where the action ended the environment: what it handed in ('' where it gave up). It says
    nothing of whether that is right. ``ranking``: of the data as they are; ``study``: of a question what if.
    ``pitfalls``: of the query, which the note tells too. ``rules``: tested on the best of the ranking.
    """

    records: tuple[Record, ...] = ()
    note: str = ""
    error: bool = False
    truncated: bool = False
    total: int | None = None
    ranking: Ranking | None = None
    answer: str | None = None
    study: Study | None = None
    pitfalls: tuple[Pitfall, ...] = ()
    rules: tuple[RuleTest, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """An action with its observation, the thought before it, and the plan step it serves. plan_step: its number."""

    action: Action
    observation: Observation
    thought: str = ""
    plan_step: str = ""


@dataclass(frozen=True, slots=True)
class EarlierConversation:
    """The conversation of tool calls in which a decision was made."""

    messages: tuple[Message, ...]
    """All of it, the decision and its result included."""
    steps: tuple[Step, ...]
    """All its steps, with the records that the LLM was shown."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The decision that a question goes on from. before: questions before that one, each with its answer. steps: those
    that it rests on, with records that may be cited. last: the highest number of an observation so far.
    """

    question: str
    answer: str
    reasons: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    last: int = 0
    conversation: EarlierConversation | None = None
    """Where a technique that keeps one decided; None of others."""

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps that a question which goes on from this may have been shown."""
        return self.conversation.steps if self.conversation else self.steps

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(record for step in self.steps for record in step.observation.records)


@dataclass(frozen=True, slots=True)
class Replan:
    """A change of plan: after which step (1-based), why, and the new plan."""

    after_step: int
    why: str
    plan: tuple[str, ...]


Stopped = Literal["answered", "budget", "steps", "no_answer", "failed"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a question and everything it rests on. stopped: why the run ended. reasons: in plain words.

    ``assumptions``: what was assumed where the rules or the data leave it open. ``runner_up``: the next best candidate,
    with what separates it, '' where none is named.
    """

    answer: str
    evidence: Evidence = field(default_factory=Evidence)
    ranking: Ranking | None = None
    plan: tuple[str, ...] = ()
    replans: tuple[Replan, ...] = ()
    reasons: tuple[str, ...] = ()
    stopped: Stopped = "answered"
    assumptions: tuple[str, ...] = ()
    runner_up: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one query, as plain values. truncated: a cap on rows or bytes cut it. note: how to read them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    truncated: bool = False
    note: str = ""
