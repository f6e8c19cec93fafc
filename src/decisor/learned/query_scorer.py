"""The query scorer of a plan assessor: how well will this query do, with this evidence in hand?

Its target is the reciprocal rank of the first passage that is needed and not yet held (Zhu et al., "Furthest Reasoning
with Plan Assessment", 2023, arXiv 2309.12767: trained on MRR). Features: ``features.NAMES``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from decisor.errors import SetupError
from decisor.learned.features import NAMES, Scene, features
from decisor.learned.trees import Trees
from decisor.learned.words import BUCKETS, Rarity
from decisor.types import Record, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT = Path(__file__).parent / "default_scorer"
DEFAULT_BEFORE = Path(__file__).parent / "default_scorer_before"
Assess = Literal["before", "after"]
"""Whether queries are scored before they are run, or after, from what each brings back."""
VERSION = 1


class Scorer(Protocol):
    """Says how good each query is; higher is better."""

    def score(self, scene: Scene, queries: Sequence[str], hits: Sequence[Sequence[Record]]) -> list[float]:
        """One number a query. ``hits``: what each query brought back, best first."""
        ...


@dataclass(frozen=True, eq=False)
class QueryScorer:
    """Predicted reciprocal ranks. ``card`` says what it was trained on and how well it did.

    ``rule``: weight of the untrained rule beside the trees, for a scorer that is asked about a corpus unlike its own.
    """

    trees: Trees
    rarity: Rarity = field(default_factory=Rarity)
    card: Mapping[str, Value] = field(default_factory=dict)
    rule: float = 0.0

    def score(self, scene: Scene, queries: Sequence[str], hits: Sequence[Sequence[Record]]) -> list[float]:
        import numpy as np

        if not queries:
            return []
        own_scene = Scene(scene.question, scene.evidence, scene.question_hits, self.rarity)
        rows = [features(own_scene, query, passages) for query, passages in zip(queries, hits, strict=True)]
        return [float(value) for value in self.predict(np.asarray(rows, np.float32))]

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Shape (n, features) to (n,)."""
        return self.trees.predict(rows) + self.rule * by_rule(rows)


@dataclass(frozen=True)
class Rule:
    """Without training: the query whose best passage scores highest, and never one whose best passage is known."""

    def score(self, scene: Scene, queries: Sequence[str], hits: Sequence[Sequence[Record]]) -> list[float]:
        import numpy as np

        rows = [features(scene, query, passages) for query, passages in zip(queries, hits, strict=True)]
        return [float(value) for value in by_rule(np.asarray(rows, np.float32).reshape(-1, len(NAMES)))]


def by_rule(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """The best passage's score in units of the question's, at most 2; less 2 where that passage is known already."""
    import numpy as np

    top, is_evidence = rows[:, NAMES.index("top")], rows[:, NAMES.index("known_top")]
    return np.asarray(np.minimum(top, 2.0) - 2.0 * is_evidence, np.float64)


def splits(scorer: QueryScorer) -> dict[str, int]:
    """How many splits of the trees are by each feature, most first; features without any are left out."""
    counts = dict(zip(NAMES, map(int, scorer.trees.splits()), strict=False))
    return {name: counts[name] for name in sorted(counts, key=lambda one: -counts[one]) if counts[name]}


def save(scorer: QueryScorer, folder: Path) -> None:
    """Two files: ``trees.npz`` (arrays only) and ``card.json``. Written beside and renamed, so none is half there."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    arrays = scorer.trees.arrays()
    if scorer.rarity.counts is not None:
        arrays |= {"counts": scorer.rarity.counts, "passages": np.array(scorer.rarity.passages)}
    card = {"version": VERSION, "features": list(NAMES), "rule": scorer.rule, **scorer.card}
    with (folder / "new-trees.npz").open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    (folder / "new-card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for name in ("trees.npz", "card.json"):
        (folder / f"new-{name}").replace(folder / name)


@lru_cache(maxsize=4)
def load(folder: Path = DEFAULT) -> QueryScorer:
    """Raises SetupError where there is none, or it was made for other features."""
    import zipfile

    import numpy as np

    try:
        card = json.loads((folder / "card.json").read_text("utf-8"))
        with np.load(folder / "trees.npz", allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, KeyError) as error:
        raise SetupError(
            f"There is no query scorer in {folder} ({error}): decisor train query-scorer makes one."
        ) from error
    if not isinstance(card, dict) or card.get("features") != list(NAMES):
        raise SetupError(f"The query scorer in {folder} was made for other features: train it again.")
    counts = arrays.get("counts")
    if counts is not None and (counts.shape != (BUCKETS,) or counts.dtype.kind not in "iu"):
        raise SetupError(f"The query scorer in {folder} is damaged: train it again.")
    rarity = Rarity() if counts is None else Rarity(counts, int(arrays["passages"]))
    rule = card.get("rule")
    return QueryScorer(Trees.of(arrays, len(NAMES)), rarity, card, rule if isinstance(rule, int | float) else 0.0)


def scorer_of(name: str, assess: Assess = "after") -> Scorer:
    """ "" is the built-in scorer, "rule" the untrained rule, anything else a folder that training wrote.

    Raises:
        SetupError: there is none, or it was trained for the other ``assess``.
    """
    if name == "rule":
        if assess == "before":
            raise SetupError("scorer=rule reads what queries bring back: it goes with assess=after.")
        return Rule()
    scorer = load(Path(name)) if name else load(DEFAULT if assess == "after" else DEFAULT_BEFORE)
    if (own := scorer.card.get("assess", "after")) != assess:
        raise SetupError(f"The query scorer in {name} was trained for assess={own}: say so, or train another.")
    return scorer
