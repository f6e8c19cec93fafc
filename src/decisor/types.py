"""The nouns, in reading order, and the protocols. Frozen: nothing here changes once it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from decisor.ranking import Excluded as Excluded
from decisor.ranking import Goal as Goal
from decisor.ranking import Option as Option
from decisor.ranking import Point as Point
from decisor.ranking import Ranking as Ranking
from decisor.ranking import Scene as Scene
from decisor.ranking import Study as Study
from decisor.ranking import Swing as Swing
from decisor.ranking import Turn as Turn
from decisor.ranking import Winner as Winner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from decisor.calling import Function
    from decisor.run import Run

Value: TypeAlias = "None | bool | int | float | str | Sequence[Value] | Mapping[str, Value]"
Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with an LM."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent. ``dollars`` is None when a price is unknown; unknown plus anything is unknown.

    ``estimates``: of how many of the calls the cost is an estimate: they were cut off after they were sent, or the
    endpoint did not count. ``cache_reads``, ``cache_writes``: how many of the prompt's tokens the endpoint had in its
    cache, and how many it put there.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
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
        """
        >>> (Usage(calls=1, dollars=0.5) + Usage(calls=1, dollars=None)).dollars is None
        True
        """
        unknown = self.dollars is None or other.dollars is None
        names = [one.name for one in fields(self) if one.name != "dollars"]
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Usage(**sums, dollars=None if unknown else (self.dollars or 0.0) + (other.dollars or 0.0))


@dataclass(frozen=True, slots=True)
class Sampling:
    """``schema``: what the reply fits; ``functions``: one is called, as ``{"name": ..., "arguments": {...}}``.
    ``logprobs``: alternatives a token. ``continuation``: without a chat template. ``capped``: by the run itself."""

    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    max_tokens: int | None = None
    n: int = 1
    seed: int | None = None
    schema: Mapping[str, Any] | None = None
    functions: tuple[Function, ...] = ()
    logprobs: int = 0
    continuation: bool = False
    capped: bool = False
    top_p: float | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a completion, its log-probability, and those of the likeliest tokens at its place."""

    text: str
    logprob: float
    top: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completion:
    """What an LM answered: ``n`` texts, what they cost, and why it stopped (stop, length, content_filter, refusal, or
    loop: it repeated itself and was cut off).

    ``replayed``: from a journal; ``usage`` is what it cost when it was bought. ``usage.seconds`` is 0 where the LM did
    not measure them. ``logprobs``: the tokens of each text, where they were asked for and the endpoint gave them.
    """

    texts: tuple[str, ...]
    usage: Usage = Usage(calls=1)
    finish: str = "stop"
    model: str = ""
    replayed: bool = False
    logprobs: tuple[tuple[Token, ...], ...] = ()

    @property
    def text(self) -> str:
        return self.texts[0]


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be decided: the question, the rules it is decided by, and the goal in words."""

    text: str
    rules: str = ""
    goal: str = ""

    def __str__(self) -> str:
        return "\n\n".join(part.strip() for part in (self.rules, self.text, self.goal) if part.strip())


@dataclass(frozen=True, slots=True)
class Action:
    """A tool and what to give it."""

    tool: str
    input: str


@dataclass(frozen=True, slots=True)
class Record:
    """One citable thing that a tool returned: a row or node (fields) or a passage (text).

    ``score``: what a retriever gave it for the query, higher is better; a model is never shown it.
    """

    id: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    text: str = ""
    source: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Pitfall:
    """A query that runs and may not mean what it seems to. ``kind``: the rule that noticed it; ``text``: what is wrong
    and what to do; ``records``: those of its rows that a decision cites."""

    kind: str
    text: str
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """What an action returned. ``note`` is for the model to read; a failed query is an observation with ``error``.

    ``answer`` is not None where the action ended the environment: what it handed in ('' where it gave up). It says
    nothing of whether that is right. ``ranking``: of the data as they are; ``study``: of a question what if.
    ``pitfalls``: of the query, which the note tells too.
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


@dataclass(frozen=True, slots=True)
class Step:
    """An action with its observation, the thought before it, and the number of the plan step it serves."""

    action: Action
    observation: Observation
    thought: str = ""
    plan_step: str = ""


@dataclass(frozen=True, slots=True)
class Replan:
    """A change of plan: after which step (1-based), why, and the new plan."""

    after_step: int
    why: str
    plan: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number quoted in an answer, and the record or calculation that supports it ('' = unsupported)."""

    text: str
    support: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The ids of the records that a decision rests on, the figures quoted from them, and the pitfalls of the queries
    that brought them."""

    ids: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    pitfalls: tuple[Pitfall, ...] = ()

    @property
    def unsupported(self) -> tuple[str, ...]:
        return tuple(figure.text for figure in self.figures if not figure.support)


Stopped = Literal["answered", "budget", "steps", "no_answer", "failed"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer and everything it rests on. ``stopped`` says why the run ended; ``reasons`` are in plain words.

    ``assumptions``: what was assumed where the rules or the data leave it open. ``runner_up``: the next best candidate,
    with what separates it, '' where none is named.
    """

    answer: str
    evidence: Evidence = Evidence()
    ranking: Ranking | None = None
    plan: tuple[str, ...] = ()
    replans: tuple[Replan, ...] = ()
    reasons: tuple[str, ...] = ()
    stopped: Stopped = "answered"
    assumptions: tuple[str, ...] = ()
    runner_up: str = ""


class Pricing(Protocol):
    """What tokens cost."""

    def dollars(self, prompt_tokens: int, completion_tokens: int) -> float: ...


class LM(Protocol):
    """Something that completes messages.

    It may have a ``price``, a Pricing, or None where it is not known: without one it cannot be asked under a limit of
    dollars.
    """

    @property
    def name(self) -> str: ...

    async def complete(self, messages: Sequence[Message], sampling: Sampling = ...) -> Completion:
        """One to ``sampling.n`` texts: a run asks for those that an endpoint did not give."""
        ...


class Tool(Protocol):
    """One named thing an action can use. Records carry provisional ids r1, r2, ...; the environment completes them."""

    @property
    def name(self) -> str: ...

    def describe(self) -> str: ...

    async def call(self, text: str) -> Observation:
        """Raises ToolError where the model's input is refused or fails."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Describing(Protocol):
    """A tool that has more to say of its data than a prompt takes."""

    async def about(self, question: str) -> Tool:
        """The same tool, with a description of what the question is likely to need."""
        ...


class Environment(Protocol):
    """Where actions happen. ``fork`` is an independent copy of what changes; read-only parts may be shared."""

    def tools(self) -> tuple[str, ...]: ...

    def describe(self) -> str: ...

    async def step(self, action: Action) -> Observation: ...

    def fork(self) -> Environment: ...


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one query, as plain values. ``truncated``: a cap on rows or bytes cut it. ``note``: how to read them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    truncated: bool = False
    note: str = ""


class Source(Protocol):
    """A database that is read in bulk, in the same sandbox. ``trusted``: the query is our own, so it skips the check
    that a model's query meets; one from a file never is."""

    @property
    def form(self) -> Literal["sql", "cypher"]: ...

    async def fetch(self, query: str, max_rows: int = 2_000_000, trusted: bool = False) -> Table: ...


class Retriever(Protocol):
    """Finds records for a query, best first."""

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]: ...


class Technique(Protocol):
    """A reasoning loop."""

    async def __call__(self, question: Question, run: Run) -> Decision: ...


class WhatIf(Protocol):
    """A decision model for one question: what may be chosen, and the outcome of choosing it."""

    @property
    def measure(self) -> str: ...

    @property
    def goal(self) -> Goal: ...

    def candidates(self) -> tuple[str, ...]:
        """In data order."""
        ...

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """One float per candidate, shape (len(candidates),); nan where a candidate is not allowed."""
        ...

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        """The same model with each input multiplied by 1 + U(-percent, percent)/100."""
        ...
