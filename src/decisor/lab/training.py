"""Training data for the query scorer: candidate queries for each prefix of gold hops, labelled.

Each candidate query is run, and its label is the reciprocal rank of the first gold passage that is not yet evidence
(evidence taken out of the ranking, 0 beyond rank 50). Questions come from files of question sets with their gold hops
in order. A row has ``question`` and ``gold`` (ids of passages), and where the set knows them ``decomposition``
(MuSiQue: each hop's question, answer, gold), ``evidences`` (2WikiMultiHopQA: subject, relation, object) and
``sub_questions`` that an LLM wrote; without any, the passage whose title the question names comes first.

Nothing here is seen by a technique: gold hops label a model's proposals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from decisor.lab.benchmark import Row, parse_question_rows
from decisor.system.tasks import map_concurrently
from decisor.techniques.shared.query_scorer import (
    STOP,
    QueryContext,
    QueryFeatures,
    QueryScorer,
    Rarity,
    compute_features,
    content_word_set,
    find_capitalised_names,
    grow_trees,
    passage_title,
)
from decisor.types import Record, Retriever

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


REFERENCE = re.compile(r"#(\d+)")
SENTENCE = re.compile(r"(?<=[.!?])\s+")
RELATION = re.compile(r"\s*>>\s*")


@dataclass(frozen=True, slots=True)
class Hop:
    """A sub-question, its answer, and the id of the passage that answers it. #k stands for the answer of hop k."""

    ask: str
    answer: str
    gold: str


@dataclass(frozen=True, slots=True)
class HopExample:
    """A question with its gold hops in order."""

    question: str
    hops: tuple[Hop, ...]
    asks: tuple[str, ...] = ()
    """Sub-questions that an LLM wrote, answers filled in."""


@dataclass(frozen=True, slots=True)
class TrainingState:
    """A state of retrieval in which the first hops of a question are solved."""

    group: int
    """Number of its question, which is never split between sets."""
    question: str
    evidence: tuple[Record, ...]
    missing: frozenset[str]
    """Ids of gold passages not yet in the evidence."""
    queries: tuple[str, ...]
    kinds: tuple[str, ...]
    """Kind of each of ``queries``."""


def build_training_states(
    group: int,
    example: HopExample,
    passages: Mapping[str, Record],
    distractors: Sequence[Record],
    rng: Random,
    wrong: Sequence[str],
) -> list[TrainingState]:
    """Build the states of a question for each number of hops solved, with and without distractors.

    The numbers go from no hop to all but one. distractors: passages that a first search brought and that are not gold.
    wrong: answers of other questions.
    """
    all_states = []
    gold = [hop.gold for hop in example.hops if hop.gold in passages]
    for solved in range(len(gold)):
        evidence = tuple(passages[id] for id in dict.fromkeys(gold[:solved]))
        # Hops may share a passage, so a state with hops left may miss nothing.
        missing = frozenset(gold) - set(gold[:solved])
        if not missing:
            continue
        queries = propose_training_queries(example, solved, evidence, rng, wrong)
        # In use, evidence holds passages that do not help; a scorer trained without any would not know them.
        for extra in ((), tuple(distractors[:3])):
            all_states.append(
                TrainingState(
                    group=group,
                    question=example.question,
                    evidence=(*extra, *evidence),
                    missing=missing,
                    queries=tuple(queries),
                    kinds=tuple(queries.values()),
                )
            )
    return all_states


def propose_training_queries(
    example: HopExample, solved: int, evidence: Sequence[Record], rng: Random, wrong: Sequence[str]
) -> dict[str, str]:
    """Propose queries, with their kinds, that a good, a hasty and a mistaken model would ask. Without repeats."""
    question, kinds = example.question, {example.question: "question"}
    tokens = question.rstrip("?").split()
    entities = find_capitalised_names(question)
    proposals: list[tuple[str, str]] = [
        *[(ask, "llm") for ask in example.asks],
        (" ".join(entities), "entities"),
        *[(name, "entity") for name in entities[:3]],
        (" ".join(word for word in tokens if word.lower() not in STOP), "keywords"),
        (" ".join(tokens[: len(tokens) // 2]), "truncated"),
        (" ".join(tokens[len(tokens) // 2 :]), "truncated"),
        *propose_sub_questions(example, solved, rng, wrong),
        *propose_bridge_queries(question, tokens, evidence, rng),
    ]
    for query, kind in proposals:
        if query.strip() and query not in kinds:
            kinds[query] = kind
    return kinds


def propose_sub_questions(example: HopExample, solved: int, rng: Random, wrong: Sequence[str]) -> list[tuple[str, str]]:
    """Propose each hop's question resolved, unresolved, and resolved with a wrong answer."""
    queries = []
    for number, hop in enumerate(example.hops):
        ask = RELATION.sub(" ", hop.ask)
        needs = [int(k) for k in REFERENCE.findall(ask)]
        if not needs:
            queries.append((ask, "root"))
            continue
        if all(k <= solved for k in needs):
            answers = {k: example.hops[k - 1].answer for k in needs if 0 < k <= len(example.hops)}
            queries.append((fill_references(ask, answers), "resolved"))
        if number <= solved + 1:
            queries.append((ask, "unresolved"))
            queries.append(
                (fill_references(ask, {k: rng.choice(wrong) for k in needs} if wrong else {}), "wrong_bridge")
            )
    return queries


def propose_bridge_queries(
    question: str, tokens: Sequence[str], evidence: Sequence[Record], rng: Random
) -> list[tuple[str, str]]:
    """Propose queries led by the evidence: its titles, its new names, its nearest sentence."""
    queries = []
    keywords = " ".join(word for word in tokens if word.lower() not in STOP and not word[:1].isupper())
    for record in evidence[-2:]:
        queries += [
            (f"{question} {passage_title(record)}", "question_title"),
            (f"{passage_title(record)} {keywords}", "title_words"),
        ]
        fresh = [
            name
            for name in find_capitalised_names(record.text)
            if not content_word_set(name) <= content_word_set(question + " " + passage_title(record))
        ]
        for name in rng.sample(fresh, min(3, len(fresh))):
            queries += [(f"{name} {keywords}", "new_name_words"), (name, "new_name")]
        sentences = SENTENCE.split(record.text)
        queries.append(
            (max(sentences, key=lambda text: len(content_word_set(text) & content_word_set(question))), "sentence")
        )
    return queries


def fill_references(ask: str, answers: Mapping[int, str]) -> str:
    """Replace each #k by the answer of hop k.

    >>> fill_references("Who leads #1 and #12?", {1: "Rome", 12: "Oslo"})
    'Who leads Rome and Oslo?'
    """
    return REFERENCE.sub(lambda match: answers.get(int(match.group(1)), match.group()), ask)


DEEPEST, ROUND = 50, 16


@dataclass(frozen=True, eq=False)
class MeasuredQueries:
    """Candidate queries with features and labels, one row each."""

    rows: NDArray[np.float32]
    """Features, shape (n, features)."""
    ranks: NDArray[np.float64]
    """Reciprocal ranks, shape (n,)."""
    groups: NDArray[np.int64]
    """Number of the question, shape (n,)."""
    scenes: NDArray[np.int64]
    """Number of the state, shape (n,)."""
    kinds: tuple[str, ...]
    """Kind of each query."""
    rarity: Rarity

    def where(self, mask: NDArray[np.bool_]) -> MeasuredQueries:
        """Return the candidates for which ``mask``, of shape (n,), is true."""
        kinds = tuple(kind for kind, keep in zip(self.kinds, mask, strict=True) if keep)
        return MeasuredQueries(
            self.rows[mask], self.ranks[mask], self.groups[mask], self.scenes[mask], kinds, self.rarity
        )


@dataclass(frozen=True, eq=False)
class ScorerChoices:
    """Reciprocal ranks of the queries chosen in each state, each of shape (states,)."""

    choice: NDArray[np.float64]
    """Of the query that the scorer chose."""
    first: NDArray[np.float64]
    """Of the first candidate: the question itself."""
    random: NDArray[np.float64]
    """Of a random candidate: the expectation."""
    oracle: NDArray[np.float64]
    """Of the best candidate."""
    groups: NDArray[np.int64]
    """Number of the state's question."""


async def measure_queries(
    examples: Sequence[HopExample],
    passages: Mapping[str, Record],
    retriever: Retriever,
    seed: int = 0,
    done: Callable[[int], None] = lambda count: None,
    rarity: Rarity | None = None,
) -> MeasuredQueries:
    """Run every candidate query of every state and label it.

    done: hears how many questions are measured. rarity: None means that it is counted from the passages.
    """
    import numpy as np

    rarity = rarity or Rarity.of(f"{record.fields.get('title') or ''}\n{record.text}" for record in passages.values())
    wrong = [hop.answer for example in examples for hop in example.hops if hop.answer]
    finished = 0

    async def one(group: int) -> list[tuple[TrainingState, list[tuple[list[float], float]]]]:
        nonlocal finished
        pairs = await measure_question(
            group, examples[group], passages, retriever, rarity, Random(f"{seed} {group}"), wrong
        )
        finished += 1
        done(finished)
        return pairs

    pairs = [pair for part in await map_concurrently(one, range(len(examples)), ROUND) for pair in part]
    flat = [(number, state, at) for number, (state, rows) in enumerate(pairs) for at in range(len(rows))]
    return MeasuredQueries(
        np.asarray([row for _, rows in pairs for row, _ in rows], np.float32),
        np.asarray([rank for _, rows in pairs for _, rank in rows]),
        np.asarray([state.group for _, state, _ in flat]),
        np.asarray([number for number, _, _ in flat]),
        tuple(state.kinds[at] for _, state, at in flat),
        rarity,
    )


async def measure_question(
    group: int,
    example: HopExample,
    passages: Mapping[str, Record],
    retriever: Retriever,
    rarity: Rarity,
    rng: Random,
    wrong: Sequence[str],
) -> list[tuple[TrainingState, list[tuple[list[float], float]]]]:
    """Build the states of one question, each with features and label of its queries. A query is run once."""
    memory: dict[str, tuple[Record, ...]] = {}

    async def find(query: str) -> tuple[Record, ...]:
        # States of a question share most of their queries.
        if query not in memory:
            # Ten more, as evidence is taken out of the ranking before rank 50 is counted.
            memory[query] = await retriever.find(query, DEEPEST + 10)
        return memory[query]

    at_first = await find(example.question)
    gold = {hop.gold for hop in example.hops}
    distractors = [record for record in at_first[:5] if record.id not in gold]
    pairs = []
    for state in build_training_states(group, example, passages, distractors, rng, wrong):
        scene = QueryContext(state.question, state.evidence, at_first, rarity)
        evidence = {record.id for record in state.evidence}
        rows = []
        for query in state.queries:
            hits = await find(query)
            rows.append(
                (compute_features(scene, query, hits), reciprocal_rank_of_missing(hits, evidence, state.missing))
            )
        pairs.append((state, rows))
    return pairs


def reciprocal_rank_of_missing(hits: Sequence[Record], evidence: set[str], missing: frozenset[str]) -> float:
    """Return the reciprocal rank of the first missing passage, with the evidence taken out. 0 beyond rank 50.

    >>> reciprocal_rank_of_missing([Record("a"), Record("b"), Record("c")], {"a"}, frozenset({"c"}))
    0.5
    """
    left = [record.id for record in hits if record.id not in evidence][:DEEPEST]
    return next((1 / rank for rank, id in enumerate(left, 1) if id in missing), 0.0)


def drop_hit_features(data: MeasuredQueries) -> MeasuredQueries:
    """Replace the features of hits by those of no hits; a scorer fitted to them needs no search."""
    rows = data.rows.copy()
    rows[:, len(QueryFeatures._fields) :] = compute_features(QueryContext("", (), ()), "", ())[
        len(QueryFeatures._fields) :
    ]
    return replace(data, rows=rows)


def fit_query_scorer(data: MeasuredQueries, seed: int = 0, trees: int = 300) -> QueryScorer:
    """Fit a query scorer; raise SetupError if scikit-learn is not installed."""
    return QueryScorer(grow_trees(data.rows, data.ranks, trees, seed), data.rarity)


def evaluate_choices(data: MeasuredQueries, scores: NDArray[np.floating[Any]]) -> ScorerChoices:
    """Compute the reciprocal ranks of a scorer's choices in each state of two candidates or more. scores: of shape
    (n,).
    """
    import numpy as np

    order = np.argsort(data.scenes, kind="stable")
    edges = np.flatnonzero(np.diff(data.scenes[order], prepend=-1))
    # With one candidate there is nothing to choose.
    parts = [part for part in np.split(order, edges[1:]) if len(part) > 1]
    ranks = [data.ranks[part] for part in parts]
    return ScorerChoices(
        np.asarray([rank[int(np.argmax(scores[part]))] for part, rank in zip(parts, ranks, strict=True)]),
        np.asarray([rank[0] for rank in ranks]),
        np.asarray([rank.mean() for rank in ranks]),
        np.asarray([rank.max() for rank in ranks]),
        np.asarray([data.groups[part[0]] for part in parts]),
    )


def read_hop_examples(path: Path, passages: Mapping[str, Record]) -> list[HopExample]:
    """Read the examples in the order of the file. Questions whose gold passages are not all in the corpus are left out.

    Raises:
        SetupError: the file cannot be read, or a row is no such question.
    """
    examples = parse_question_rows(path, "questions with gold passages", lambda row: parse_hop_example(row, passages))
    return [example for example in examples if all(hop.gold in passages for hop in example.hops)]


def parse_hop_example(row: Row, passages: Mapping[str, Record]) -> HopExample:
    parts = row.get("decomposition") or []
    if parts and isinstance(parts[0], Mapping) and "gold" in parts[0]:
        hops = [Hop(str(part["question"]), str(part["answer"]), str(part["gold"])) for part in parts]
    elif row.get("evidences"):
        hops = hops_of_triples(row, passages)
    else:
        gold = [str(id) for id in row["gold"]]
        by_name = sorted(gold, key=lambda id: -word_overlap(title_or_empty(id, passages), str(row["question"]), False))
        hops = [Hop("", title_or_empty(id, passages), id) for id in by_name]
    return HopExample(str(row["question"]), tuple(hops), tuple(map(str, row.get("sub_questions", ()))))


def hops_of_triples(row: Row, passages: Mapping[str, Record]) -> list[Hop]:
    """Return one hop per triple. A subject that an earlier triple found is asked for by its number."""
    left, hops, hop_of = [str(id) for id in row["gold"]], list[Hop](), dict[str, int]()
    for subject, relation, value in row["evidences"]:
        # Triples name subjects, not passages: the gold passage whose title is nearest is taken.
        near = max(left or row["gold"], key=lambda id: word_overlap(title_or_empty(id, passages), subject, True))
        who = f"#{hop_of[subject]}" if subject in hop_of else subject
        hops.append(Hop(f"Who or what is the {relation} of {who}?", str(value), near))
        hop_of[value] = len(hops)
        if near in left:
            left.remove(near)
    return [*hops, *(Hop("", title_or_empty(id, passages), id) for id in left)]


def title_or_empty(id: str, passages: Mapping[str, Record]) -> str:
    return passage_title(passages[id]) if id in passages else ""


def word_overlap(a: str, b: str, of_both: bool) -> float:
    """Return the number of shared words as a share of those of ``a``, or of both."""
    one, other = content_word_set(a), content_word_set(b)
    return len(one & other) / (len(one | other if of_both else one) or 1)
