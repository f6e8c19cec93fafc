"""What each expert of a reasoning DAG takes and gives back. A function of the right shape is one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from decisor.replies.plan_graph import PlanGraph
from decisor.run import Run
from decisor.techniques.plan_dag.experts.aggregator import aggregate
from decisor.techniques.plan_dag.experts.critic import criticise
from decisor.techniques.plan_dag.experts.dynamic_query import resolve
from decisor.techniques.plan_dag.experts.generator import generate
from decisor.techniques.plan_dag.experts.planner import plan
from decisor.techniques.plan_dag.experts.query_writer import write_query
from decisor.techniques.plan_dag.experts.relevance import choose
from decisor.techniques.plan_dag.experts.rewriter import rewrite
from decisor.techniques.plan_dag.node_answer import Chunk
from decisor.trace.graph_events import NodeAnswer
from decisor.types import LM, Question, Record

P = ParamSpec("P")
T = TypeVar("T")


class Planner(Protocol):
    async def __call__(self, run: Run, /, question: Question, max_nodes: int) -> PlanGraph:
        """Raises ParseError where no plan could be read, after one repair."""
        ...


class DynamicQuery(Protocol):
    async def __call__(self, run: Run, /, question: str, parents: Sequence[NodeAnswer]) -> str:
        """The question with its tags replaced by what the parents answered."""
        ...


class Generator(Protocol):
    async def __call__(
        self, run: Run, /, question: str, context: str, documents: Sequence[Record], text_so_far: str | None,
        tokens: int = 0,
    ) -> Chunk:  # fmt: skip
        """The answer; with ``text_so_far`` (also '') its next sentence or, given ``tokens``, so many; '' at the end."""
        ...


class Critic(Protocol):
    async def __call__(self, run: Run, /, question: str, context: str, chunk: str, documents: Sequence[Record]) -> bool:
        """True where outside evidence is needed."""
        ...


class Relevance(Protocol):
    async def __call__(
        self, run: Run, /, question: str, chunk: str, documents: Sequence[Record], many: bool
    ) -> tuple[Record, ...]:
        """The document that helps, or several; none where none does."""
        ...


class Rewriter(Protocol):
    async def __call__(self, run: Run, /, question: str, searches: Sequence[str], rejected: Sequence[Record]) -> str:
        """Another search for the same question."""
        ...


class QueryWriter(Protocol):
    async def __call__(
        self, run: Run, /, question: str, context: str, source: str, attempts: Sequence[tuple[str, str]]
    ) -> str:
        """A query for the database ``source``; ``attempts``: those before it, each with why it failed."""
        ...


class Aggregator(Protocol):
    async def __call__(self, run: Run, /, question: Question, answers: Sequence[NodeAnswer]) -> tuple[str, str]:
        """The answer to the main question and why."""
        ...


def by(
    lm: LM, expert: Callable[Concatenate[Run, P], Coroutine[object, object, T]]
) -> Callable[Concatenate[Run, P], Coroutine[object, object, T]]:
    """The same expert, asked of another LM: ``Experts(criticise=by(small, criticise))``."""

    async def other(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await expert(run.using(lm=lm), *args, **kwargs)

    return other


@dataclass(frozen=True)
class Experts:
    """Who does what. ``by`` gives one another LM: ``Experts(criticise=by(small, criticise))``."""

    plan: Planner = plan
    resolve: DynamicQuery = resolve
    generate: Generator = generate
    criticise: Critic = criticise
    choose: Relevance = choose
    rewrite: Rewriter = rewrite
    write_query: QueryWriter = write_query
    aggregate: Aggregator = aggregate


OURS = Experts()
