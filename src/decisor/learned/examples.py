"""Training states for the query scorer: candidate queries, good and bad, for each prefix of gold hops.

Nothing here is seen by a technique: gold hops label what a model would have proposed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from decisor.learned.features import title_of
from decisor.learned.words import STOP, bag, names
from decisor.types import Record

REFERENCE = re.compile(r"#(\d+)")
SENTENCE = re.compile(r"(?<=[.!?])\s+")
RELATION = re.compile(r"\s*>>\s*")


@dataclass(frozen=True, slots=True)
class Hop:
    """A sub-question (with #k for the answer of hop k), its answer, and the id of the passage that holds it."""

    ask: str
    answer: str
    gold: str


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its gold hops in order. ``asks``: sub-questions that an LM wrote, answers filled in."""

    question: str
    hops: tuple[Hop, ...]
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The first ``solved`` hops are evidence. ``group`` is the number of its question: never split between sets."""

    group: int
    question: str
    evidence: tuple[Record, ...]
    missing: frozenset[str]
    queries: tuple[str, ...]
    kinds: tuple[str, ...]


def states(
    group: int,
    example: Example,
    passages: Mapping[str, Record],
    distractors: Sequence[Record],
    rng: Random,
    wrong: Sequence[str],
) -> list[State]:
    """One state for each number of hops solved, from none to all but one, with and without distractors.

    ``distractors``: passages that a first search brought and that are not gold. ``wrong``: answers of other questions.
    """
    all_states = []
    gold = [hop.gold for hop in example.hops if hop.gold in passages]
    for solved in range(len(gold)):
        evidence = tuple(passages[id] for id in dict.fromkeys(gold[:solved]))
        missing = frozenset(gold) - set(gold[:solved])
        if not missing:
            continue
        queries = candidates(example, solved, evidence, rng, wrong)
        for extra in ((), tuple(distractors[:3])):
            all_states.append(
                State(
                    group=group,
                    question=example.question,
                    evidence=(*extra, *evidence),
                    missing=missing,
                    queries=tuple(queries),
                    kinds=tuple(queries.values()),
                )
            )
    return all_states


def candidates(
    example: Example, solved: int, evidence: Sequence[Record], rng: Random, wrong: Sequence[str]
) -> dict[str, str]:
    """Query -> its kind, without repeats: what a good, a hasty and a mistaken model would ask."""
    question, kinds = example.question, {example.question: "question"}
    tokens = question.rstrip("?").split()
    entities = names(question)
    proposals: list[tuple[str, str]] = [
        *[(ask, "lm") for ask in example.asks],
        (" ".join(entities), "entities"), *[(name, "entity") for name in entities[:3]],
        (" ".join(word for word in tokens if word.lower() not in STOP), "keywords"),
        (" ".join(tokens[: len(tokens) // 2]), "truncated"), (" ".join(tokens[len(tokens) // 2 :]), "truncated"),
        *sub_questions(example, solved, rng, wrong), *bridges(question, tokens, evidence, rng),
    ]  # fmt: skip
    for query, kind in proposals:
        if query.strip() and query not in kinds:
            kinds[query] = kind
    return kinds


def sub_questions(example: Example, solved: int, rng: Random, wrong: Sequence[str]) -> list[tuple[str, str]]:
    """Each hop's question: resolved with the hops solved, unresolved, and resolved with a wrong answer."""
    queries = []
    for number, hop in enumerate(example.hops):
        ask = RELATION.sub(" ", hop.ask)
        needs = [int(k) for k in REFERENCE.findall(ask)]
        if not needs:
            queries.append((ask, "root"))
            continue
        if all(k <= solved for k in needs):
            answers = {k: example.hops[k - 1].answer for k in needs if 0 < k <= len(example.hops)}
            queries.append((fill(ask, answers), "resolved"))
        if number <= solved + 1:
            queries.append((ask, "unresolved"))
            queries.append((fill(ask, {k: rng.choice(wrong) for k in needs} if wrong else {}), "wrong_bridge"))
    return queries


def bridges(question: str, tokens: Sequence[str], evidence: Sequence[Record], rng: Random) -> list[tuple[str, str]]:
    """Queries led by the evidence: its titles, its names with words of the question, its nearest sentence."""
    queries = []
    keywords = " ".join(word for word in tokens if word.lower() not in STOP and not word[:1].isupper())
    for record in evidence[-2:]:
        queries += [
            (f"{question} {title_of(record)}", "question_title"),
            (f"{title_of(record)} {keywords}", "title_words"),
        ]
        fresh = [name for name in names(record.text) if not bag(name) <= bag(question + " " + title_of(record))]
        for name in rng.sample(fresh, min(3, len(fresh))):
            queries += [(f"{name} {keywords}", "new_name_words"), (name, "new_name")]
        sentences = SENTENCE.split(record.text)
        queries.append((max(sentences, key=lambda text: len(bag(text) & bag(question))), "sentence"))
    return queries


def fill(ask: str, answers: Mapping[int, str]) -> str:
    """
    >>> fill("Who leads #1 and #12?", {1: "Rome", 12: "Oslo"})
    'Who leads Rome and Oslo?'
    """
    return REFERENCE.sub(lambda match: answers.get(int(match.group(1)), match.group()), ask)
