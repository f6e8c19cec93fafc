"""Training data for the query scorer, measured: each candidate query is run, and its label is the reciprocal rank of
the first gold passage that is not yet evidence (evidence taken out of the ranking, 0 beyond rank 50)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from decisor.aio import each
from decisor.learned.examples import Example, State, states
from decisor.learned.features import QueryFeatures, Scene, features
from decisor.learned.query_scorer import QueryScorer
from decisor.learned.trees import grow
from decisor.learned.words import Rarity
from decisor.types import Record, Retriever

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEEPEST, ROUND = 50, 16


@dataclass(frozen=True, eq=False)
class Candidates:
    """One row a candidate: ``rows`` (n, features), ``ranks`` (n,) reciprocal, ``groups`` (n,) the question's number,
    ``scenes`` (n,) the state's number, ``kinds`` (n,) what sort of query it is."""

    rows: NDArray[np.float32]
    ranks: NDArray[np.float64]
    groups: NDArray[np.int64]
    scenes: NDArray[np.int64]
    kinds: tuple[str, ...]
    rarity: Rarity

    def where(self, mask: NDArray[np.bool_]) -> Candidates:
        """Only the candidates that ``mask``, of shape (n,), is true of."""
        kinds = tuple(kind for kind, keep in zip(self.kinds, mask, strict=True) if keep)
        return Candidates(
            self.rows[mask], self.ranks[mask], self.groups[mask], self.scenes[mask], kinds, self.rarity
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Choices:
    """Reciprocal rank per state, each of shape (states,): of the query chosen, of the first candidate (the question),
    of a random one (its expectation), and of the best one. ``groups``: whose state it is."""

    choice: NDArray[np.float64]
    first: NDArray[np.float64]
    random: NDArray[np.float64]
    oracle: NDArray[np.float64]
    groups: NDArray[np.int64]


async def measure(
    examples: Sequence[Example],
    passages: Mapping[str, Record],
    retriever: Retriever,
    seed: int = 0,
    done: Callable[[int], None] = lambda count: None,
    rarity: Rarity | None = None,
) -> Candidates:
    """Run every candidate of every state. ``done`` hears how many questions are measured; ``rarity`` None: counted."""
    import numpy as np

    rarity = rarity or Rarity.of(f"{record.fields.get('title') or ''}\n{record.text}" for record in passages.values())
    wrong = [hop.answer for example in examples for hop in example.hops if hop.answer]
    finished = 0

    async def one(group: int) -> list[tuple[State, list[tuple[list[float], float]]]]:
        nonlocal finished
        pairs = await measure_one(group, examples[group], passages, retriever, rarity, Random(f"{seed} {group}"), wrong)
        finished += 1
        done(finished)
        return pairs

    pairs = [pair for part in await each(one, range(len(examples)), ROUND) for pair in part]
    flat = [(number, state, at) for number, (state, rows) in enumerate(pairs) for at in range(len(rows))]
    return Candidates(
        np.asarray([row for _, rows in pairs for row, _ in rows], np.float32),
        np.asarray([rank for _, rows in pairs for _, rank in rows]),
        np.asarray([state.group for _, state, _ in flat]),
        np.asarray([number for number, _, _ in flat]),
        tuple(state.kinds[at] for _, state, at in flat),
        rarity,
    )


async def measure_one(
    group: int, example: Example, passages: Mapping[str, Record], retriever: Retriever, rarity: Rarity, rng: Random,
    wrong: Sequence[str],
) -> list[tuple[State, list[tuple[list[float], float]]]]:  # fmt: skip
    """The states of one question, each with the features and label of its candidates. A query is run once."""
    memory: dict[str, tuple[Record, ...]] = {}

    async def find(query: str) -> tuple[Record, ...]:
        if query not in memory:
            memory[query] = await retriever.find(query, DEEPEST + 10)
        return memory[query]

    at_first = await find(example.question)
    gold = {hop.gold for hop in example.hops}
    distractors = [record for record in at_first[:5] if record.id not in gold]
    pairs = []
    for state in states(group, example, passages, distractors, rng, wrong):
        scene = Scene(state.question, state.evidence, at_first, rarity)
        evidence = {record.id for record in state.evidence}
        rows = []
        for query in state.queries:
            hits = await find(query)
            rows.append((features(scene, query, hits), reciprocal_rank(hits, evidence, state.missing)))
        pairs.append((state, rows))
    return pairs


def reciprocal_rank(hits: Sequence[Record], evidence: set[str], missing: frozenset[str]) -> float:
    """
    >>> reciprocal_rank([Record("a"), Record("b"), Record("c")], {"a"}, frozenset({"c"}))
    0.5
    """
    left = [record.id for record in hits if record.id not in evidence][:DEEPEST]
    return next((1 / rank for rank, id in enumerate(left, 1) if id in missing), 0.0)


def before_retrieval(data: Candidates) -> Candidates:
    """The same without what the queries bring back: a scorer fitted to it needs no search."""
    rows = data.rows.copy()
    rows[:, len(QueryFeatures._fields) :] = features(Scene("", (), ()), "", ())[len(QueryFeatures._fields) :]
    return replace(data, rows=rows)


def fit(data: Candidates, seed: int = 0, trees: int = 300) -> QueryScorer:
    """Raises SetupError where scikit-learn is not installed."""
    return QueryScorer(grow(data.rows, data.ranks, trees, seed), data.rarity)


def choose(data: Candidates, scores: NDArray[np.floating[Any]]) -> Choices:
    """What a scorer's choice is worth in each state of two candidates or more. ``scores`` of shape (n,)."""
    import numpy as np

    order = np.argsort(data.scenes, kind="stable")
    edges = np.flatnonzero(np.diff(data.scenes[order], prepend=-1))
    parts = [part for part in np.split(order, edges[1:]) if len(part) > 1]
    ranks = [data.ranks[part] for part in parts]
    return Choices(
        np.asarray([rank[int(np.argmax(scores[part]))] for part, rank in zip(parts, ranks, strict=True)]),
        np.asarray([rank[0] for rank in ranks]),
        np.asarray([rank.mean() for rank in ranks]),
        np.asarray([rank.max() for rank in ranks]),
        np.asarray([data.groups[part[0]] for part in parts]),
    )
