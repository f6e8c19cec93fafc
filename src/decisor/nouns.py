"""The nouns, in reading order. Frozen: nothing here changes once it is made. Import them from ``types``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from decisor.evidence import Evidence, Pitfall
from decisor.ranking import Ranking, RuleTest, Study

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
    """What an LM may call: ``parameters`` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Sampling:
    """``schema``: what the reply fits; ``functions``: one is called, as ``{"name": ..., "arguments": {...}}``.
    ``logprobs``: alternatives a token. ``continuation``: without a chat template. ``capped``: by the run itself."""

    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    max_tokens: int | None = None
    n: int = 1
    seed: int | None = None
    schema: Mapping[str, object] | None = None
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
    """What is to be decided: the question, the rules it is decided by, and the goal in words. ``earlier``: what was
    decided before it, where it goes on from that."""

    text: str
    rules: str = ""
    goal: str = ""
    earlier: Earlier | None = None

    def __str__(self) -> str:
        return "\n\n".join(part.strip() for part in (self.rules, self.text, self.goal) if part.strip())

    @property
    def topic(self) -> str:
        """What it is about: with the questions that it goes on from."""
        earlier = (*self.earlier.before, self.earlier.question) if self.earlier else ()
        return "\n".join([self.text, self.goal, self.rules, *earlier])


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
class Observation:
    """What an action returned. ``note`` is for the model to read; a failed query is an observation with ``error``.

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
    """An action with its observation, the thought before it, and the number of the plan step it serves."""

    action: Action
    observation: Observation
    thought: str = ""
    plan_step: str = ""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The decision that a question goes on from. ``before``: questions before that one, each with its answer.
    ``steps``: those that it rests on, with records that may be cited. ``last``: the highest number of an observation so
    far."""

    question: str
    answer: str
    reasons: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    last: int = 0

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
    """The answer and everything it rests on. ``stopped`` says why the run ended; ``reasons`` are in plain words.

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
    """Rows of one query, as plain values. ``truncated``: a cap on rows or bytes cut it. ``note``: how to read them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    truncated: bool = False
    note: str = ""
