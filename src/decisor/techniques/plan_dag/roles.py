"""What each expert of a reasoning DAG is given and gives back. A function of the right shape is one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from decisor.replies.plans import PlanGraph
from decisor.run import Run
from decisor.techniques.plan_dag import experts as ours
from decisor.techniques.plan_dag.node import Chunk
from decisor.trace.graph_events import NodeAnswer
from decisor.types import LM, Question, Record

P = ParamSpec("P")
T = TypeVar("T")


class Planner(Protocol):
    async def __call__(self, run: Run, /, question: Question, max_nodes: int) -> PlanGraph:
        """Raises ParseError where no plan could be read, after one repair."""
        ...


class DynamicQuery(Protocol):
    async def __call__(self, run: Run, /, asked: str, parents: Sequence[NodeAnswer]) -> str:
        """The question with its tags replaced by what the parents answered."""
        ...


class Generator(Protocol):
    async def __call__(
        self, run: Run, /, asked: str, context: str, documents: Sequence[Record], written: str | None
    ) -> Chunk:
        """The answer; with ``written`` (also '') its next sentence, '' at the end."""
        ...


class Critic(Protocol):
    async def __call__(self, run: Run, /, asked: str, context: str, chunk: str, documents: Sequence[Record]) -> bool:
        """True where outside evidence is needed."""
        ...


class Relevance(Protocol):
    async def __call__(
        self, run: Run, /, asked: str, chunk: str, documents: Sequence[Record], many: bool
    ) -> tuple[Record, ...]:
        """The document that helps, or several; none where none does."""
        ...


class Rewriter(Protocol):
    async def __call__(self, run: Run, /, asked: str, tried: Sequence[str], rejected: Sequence[Record]) -> str:
        """Another search for the same question."""
        ...


class QueryWriter(Protocol):
    async def __call__(
        self, run: Run, /, asked: str, context: str, source: str, tried: Sequence[tuple[str, str]]
    ) -> str:
        """A query for the database ``source``; ``tried``: those before it, each with why it did not do."""
        ...


class Aggregator(Protocol):
    async def __call__(self, run: Run, /, question: Question, answers: Sequence[NodeAnswer]) -> tuple[str, str]:
        """The answer to the main question and why."""
        ...


def by(
    lm: LM, expert: Callable[Concatenate[Run, P], Coroutine[Any, Any, T]]
) -> Callable[Concatenate[Run, P], Coroutine[Any, Any, T]]:
    """The same expert, asked of another LM: ``Experts(criticise=by(small, criticise))``."""

    async def other(run: Run, /, *given: P.args, **named: P.kwargs) -> T:
        return await expert(run.using(lm=lm), *given, **named)

    return other


@dataclass(frozen=True)
class Experts:
    """Who does what. ``by`` gives one another LM: ``Experts(criticise=by(small, criticise))``."""

    plan: Planner = ours.plan
    resolve: DynamicQuery = ours.resolve
    generate: Generator = ours.generate
    criticise: Critic = ours.criticise
    choose: Relevance = ours.choose
    rewrite: Rewriter = ours.rewrite
    write_query: QueryWriter = ours.write_query
    aggregate: Aggregator = ours.aggregate


OURS = Experts()
