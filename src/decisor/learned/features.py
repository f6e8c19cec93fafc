"""What a query looks like beside the question, the evidence, and what it brings back.

Masses are sums of inverse document frequencies over different words, so a share says how much of what matters is
meant. ``hits`` are the passages a query retrieved, best first, each with its score where the retriever gives one. All
functions are pure; a vector has the order of ``NAMES``, and so have the files of scorers: a name is added at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from decisor.learned.words import Rarity, bag, names, words
from decisor.types import Record

HITS = 10


class QueryFeatures(NamedTuple):
    """What can be said before the query is run. A bridge is a word of the query that comes from the evidence, not from
    the question; an open word is one of the question that no evidence has."""

    words: float
    """How many different words it has."""
    mass: float
    mean_weight: float
    """Of a word; ``max_weight``: of its rarest."""
    max_weight: float
    is_question: float
    placeholder: float
    """Whether it still holds a # for an answer that is not known."""
    names: float
    from_question: float
    """Share of the query that comes from the question; ``of_question``: share of the question that is in the query."""
    of_question: float
    from_evidence: float
    bridge_share: float
    bridge_mass: float
    from_nowhere: float
    """Share of words that are neither in the question nor in the evidence."""
    nowhere_mass: float
    open_mass: float
    of_open: float
    """Share of the open words that are in the query; ``of_covered``: of the question's other words."""
    of_covered: float
    names_in_titles: float
    """How many names of the query meet a title of the evidence; ``names_new``: are not in the question."""
    names_new: float
    last_title: float
    """Share that is in the title of the last evidence; ``near_last``: in its title or text."""
    evidence: float
    """How many passages of evidence there are."""
    near_last: float


class HitFeatures(NamedTuple):
    """What the retrieval itself says: scores, gaps, novelty, and what the first new passage is about. Scores count in
    the question's own best; a new passage is one that is not evidence."""

    top: float = 0.0
    """The best score; ``top_share``: for each mass of the query."""
    top_share: float = 0.0
    gap_2: float = 0.0
    """How far the second score is below the best, as a share; ``gap_5``: the fifth."""
    gap_5: float = 0.0
    known_hits: float = 0.0
    """How many of the first five are evidence; ``known_top``: whether the first is."""
    known_top: float = 0.0
    new_rank: float = 0.0
    """Of the first new passage, as is all of ``new_...``."""
    new_score: float = 0.0
    new_covers: float = 0.0
    """Share of the query that is in its title or text."""
    new_title_asked: float = 0.0
    """Share of its title that is in the query; then in the question, in the evidence, and in the evidence alone."""
    new_title_in_question: float = 0.0
    new_title_in_evidence: float = 0.0
    new_title_bridges: float = 0.0
    new_of_open: float = 0.0
    """Share of the open words that it has; ``new_of_bridge``: of the bridges."""
    new_of_bridge: float = 0.0
    new_in_question_hits: float = 0.0
    """Whether the question itself brings it back too."""
    spread: float = 0.0
    """From the worst score to the best, for each mass of the query."""
    title_agree: float = 0.0
    """How alike the first three passages are, 0 to 1."""


NAMES = QueryFeatures._fields + HitFeatures._fields


def key_of(record: Record) -> str:
    """The same passage has the same key, whatever id a run gave it."""
    return f"{title_of(record)}\n{record.text}"


def title_of(record: Record) -> str:
    return str(record.fields.get("title") or "")


def score_of(record: Record, rank: int) -> float:
    return 1.0 / rank if record.score is None else record.score


@dataclass(frozen=True)
class Scene:
    """A question, the evidence so far, and what the question itself brings back: shared by all its candidates."""

    question: str
    evidence: tuple[Record, ...] = ()
    question_hits: tuple[Record, ...] = ()
    rarity: Rarity = field(default_factory=Rarity)

    @cached_property
    def question_words(self) -> frozenset[str]:
        return bag(self.question)

    @cached_property
    def evidence_words(self) -> frozenset[str]:
        return frozenset().union(*(bag(key_of(record)) for record in self.evidence))

    @cached_property
    def title_words(self) -> frozenset[str]:
        return frozenset().union(*(bag(title_of(record)) for record in self.evidence))

    @cached_property
    def open_words(self) -> frozenset[str]:
        return self.question_words - self.evidence_words

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(map(key_of, self.evidence))

    @cached_property
    def unit(self) -> float:
        """The question's own best score: scores are counted in it, so that any retriever's scale will do."""
        return (score_of(self.question_hits[0], 1) if self.question_hits else 1.0) or 1.0

    @cached_property
    def question_keys(self) -> frozenset[str]:
        """Of the passages that the question itself brings back."""
        return frozenset(map(key_of, self.question_hits[:HITS]))

    def bridges(self, query_words: frozenset[str]) -> frozenset[str]:
        return (query_words & self.evidence_words) - self.question_words


def features(scene: Scene, query: str, hits: Sequence[Record]) -> list[float]:
    """Shape (len(NAMES),)."""
    return [*query_features(scene, query), *hit_features(scene, query, hits[:HITS])]


def query_features(scene: Scene, query: str) -> QueryFeatures:
    mass, question, evidence = scene.rarity.mass, scene.question_words, scene.evidence_words
    own = bag(query)
    total = mass(own) or 1e-9
    weights = [scene.rarity.weight(word) for word in own] or [0.0]
    bridge, nowhere, covered = scene.bridges(own), own - question - evidence, question & evidence
    own_names = [bag(name) for name in names(query)]
    last = scene.evidence[-1] if scene.evidence else Record("")
    return QueryFeatures(
        words=len(own),
        mass=total,
        mean_weight=total / len(weights),
        max_weight=max(weights),
        is_question=float(words(query) == words(scene.question)),
        placeholder=float("#" in query),
        names=len(own_names),
        from_question=mass(own & question) / total,
        of_question=mass(own & question) / (mass(question) or 1.0),
        from_evidence=mass(own & evidence) / total,
        bridge_share=mass(bridge) / total,
        bridge_mass=mass(bridge),
        from_nowhere=mass(nowhere) / total,
        nowhere_mass=mass(nowhere),
        open_mass=mass(scene.open_words),
        of_open=mass(own & scene.open_words) / (mass(scene.open_words) or 1.0),
        of_covered=mass(own & covered) / (mass(covered) or 1.0),
        names_in_titles=sum(bool(name & scene.title_words) for name in own_names),
        names_new=sum(not name <= question for name in own_names),
        last_title=mass(own & bag(title_of(last))) / total,
        evidence=len(scene.evidence),
        near_last=mass(own & bag(key_of(last))) / total,
    )


def hit_features(scene: Scene, query: str, hits: Sequence[Record]) -> HitFeatures:
    if not hits:
        return HitFeatures()
    mass, own = scene.rarity.mass, bag(query)
    scores = [score_of(record, rank) / scene.unit for rank, record in enumerate(hits, 1)]
    is_evidence = [key_of(record) in scene.keys for record in hits]
    at = is_evidence.index(False) if False in is_evidence else len(hits) - 1
    new, total, question_mass = hits[at], mass(own) or 1e-9, mass(scene.question_words) or 1.0
    text, title = bag(key_of(new)), bag(title_of(new))
    bridge, title_mass, top = scene.bridges(own), mass(title) or 1.0, scores[0] or 1e-9
    return HitFeatures(
        top=scores[0],
        top_share=scores[0] / total * question_mass,
        gap_2=1 - scores[min(1, len(scores) - 1)] / top,
        gap_5=1 - scores[min(4, len(scores) - 1)] / top,
        known_hits=sum(is_evidence[:5]),
        known_top=float(is_evidence[0]),
        new_rank=at + 1.0 if not is_evidence[at] else HITS + 1.0,
        new_score=scores[at] / total * question_mass,
        new_covers=mass(own & text) / total,
        new_title_asked=mass(title & own) / title_mass,
        new_title_in_question=mass(title & scene.question_words) / title_mass,
        new_title_in_evidence=mass(title & scene.evidence_words) / title_mass,
        new_title_bridges=mass(scene.bridges(title)) / title_mass,
        new_of_open=mass(text & scene.open_words) / (mass(scene.open_words) or 1.0),
        new_of_bridge=mass(text & bridge) / (mass(bridge) or 1.0),
        new_in_question_hits=float(key_of(new) in scene.question_keys),
        spread=(max(scores) - min(scores)) / total * question_mass,
        title_agree=agreement(hits[:3]),
    )


def agreement(hits: Sequence[Record]) -> float:
    """How alike the first passages are: mean share of common words over pairs, 0 to 1."""
    bags = [bag(key_of(record)) for record in hits]
    pairs = [(a, b) for at, a in enumerate(bags) for b in bags[at + 1 :]]
    return sum(len(a & b) / (len(a | b) or 1) for a, b in pairs) / (len(pairs) or 1)
