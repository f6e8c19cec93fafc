"""What a query looks like beside the question, the evidence, and what it brings back.

Masses are sums of inverse document frequencies over different words, so a share says how much of what matters is
meant. ``hits`` are the passages a query retrieved, best first, each with its score where the retriever gives one. All
functions are pure; a vector has the order of ``NAMES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from decisor.learned.words import Rarity, bag, names, words
from decisor.types import Record

HITS = 10
NAMES = (
    "words", "mass", "mean_weight", "max_weight", "is_question", "placeholder", "names",
    "from_question", "of_question", "from_evidence", "bridge_share", "bridge_mass", "from_nowhere", "nowhere_mass",
    "open_mass", "of_open", "of_covered", "names_in_titles", "names_new", "last_title", "evidence", "near_last",
    "top", "top_share", "gap_2", "gap_5", "known_hits", "known_top", "new_rank", "new_score", "new_covers",
    "new_title_asked", "new_title_in_question", "new_title_in_evidence", "new_title_bridges", "new_of_open",
    "new_of_bridge", "new_in_question_hits", "spread", "title_agree",
)  # fmt: skip


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
    def asked(self) -> frozenset[str]:
        return bag(self.question)

    @cached_property
    def held(self) -> frozenset[str]:
        return frozenset().union(*(bag(key_of(record)) for record in self.evidence))

    @cached_property
    def titles(self) -> frozenset[str]:
        return frozenset().union(*(bag(title_of(record)) for record in self.evidence))

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(map(key_of, self.evidence))

    @cached_property
    def unit(self) -> float:
        """The question's own best score: scores are counted in it, so that any retriever's scale will do."""
        return (score_of(self.question_hits[0], 1) if self.question_hits else 1.0) or 1.0

    @cached_property
    def found_by_question(self) -> frozenset[str]:
        return frozenset(map(key_of, self.question_hits[:HITS]))


def features(scene: Scene, query: str, hits: Sequence[Record]) -> list[float]:
    """Shape (len(NAMES),)."""
    return [*of_words(scene, query), *of_hits(scene, query, hits[:HITS])]


def of_words(scene: Scene, query: str) -> list[float]:
    """What can be said before the query is run."""
    mass = scene.rarity.mass
    said = bag(query)
    total = mass(said) or 1e-9
    weights = [scene.rarity.weight(word) for word in said] or [0.0]
    bridge = (said & scene.held) - scene.asked
    nowhere = said - scene.asked - scene.held
    still_open = scene.asked - scene.held
    covered = scene.asked & scene.held
    named = [bag(name) for name in names(query)]
    last = scene.evidence[-1] if scene.evidence else Record("")
    near = bag(key_of(last))
    return [
        len(said), total, total / len(weights), max(weights), float(words(query) == words(scene.question)),
        float("#" in query), len(named),
        mass(said & scene.asked) / total, mass(said & scene.asked) / (mass(scene.asked) or 1.0),
        mass(said & scene.held) / total, mass(bridge) / total, mass(bridge), mass(nowhere) / total, mass(nowhere),
        mass(still_open), mass(said & still_open) / (mass(still_open) or 1.0),
        mass(said & covered) / (mass(covered) or 1.0),
        sum(bool(name & scene.titles) for name in named), sum(not name <= scene.asked for name in named),
        mass(said & bag(title_of(last))) / total, len(scene.evidence), mass(said & near) / total,
    ]  # fmt: skip


def of_hits(scene: Scene, query: str, hits: Sequence[Record]) -> list[float]:
    """What the retrieval itself says: scores, gaps, novelty, and what the first new passage is about."""
    if not hits:
        return [0.0] * 18
    mass = scene.rarity.mass
    said, unit = bag(query), scene.unit
    scores = [score_of(record, rank) / unit for rank, record in enumerate(hits, 1)]
    known = [key_of(record) in scene.keys for record in hits]
    new = known.index(False) if False in known else len(hits) - 1
    first, total, asked = hits[new], mass(said) or 1e-9, mass(scene.asked) or 1.0
    text, title = bag(key_of(first)), bag(title_of(first))
    open_words, bridge = scene.asked - scene.held, (said & scene.held) - scene.asked
    wide = mass(title) or 1.0
    top = scores[0] or 1e-9
    return [
        scores[0], scores[0] / total * asked,
        1 - scores[min(1, len(scores) - 1)] / top, 1 - scores[min(4, len(scores) - 1)] / top,
        sum(known[:5]), float(known[0]), new + 1.0 if not known[new] else HITS + 1.0, scores[new] / total * asked,
        mass(said & text) / total, mass(title & said) / wide, mass(title & scene.asked) / wide,
        mass(title & scene.held) / wide, mass((title & scene.held) - scene.asked) / wide,
        mass(text & open_words) / (mass(open_words) or 1.0), mass(text & bridge) / (mass(bridge) or 1.0),
        float(key_of(first) in scene.found_by_question),
        (max(scores) - min(scores)) / total * asked, agreement(hits[:3]),
    ]  # fmt: skip


def agreement(hits: Sequence[Record]) -> float:
    """How alike the first passages are: mean share of common words over pairs, 0 to 1."""
    bags = [bag(key_of(record)) for record in hits]
    pairs = [(a, b) for at, a in enumerate(bags) for b in bags[at + 1 :]]
    return sum(len(a & b) / (len(a | b) or 1) for a, b in pairs) / (len(pairs) or 1)
