"""The query scorer of a plan assessor: how well will a query do, with this evidence in hand?

Its target is the reciprocal rank of the first passage that is needed and not yet held (Zhu et al., "Furthest Reasoning
with Plan Assessment", 2023, arXiv 2309.12767: trained on MRR). Scorers are fitted, saved and loaded without pickle.

Features say how a query looks beside the question, the evidence, and the passages that it brings back. Masses are sums
of inverse document frequencies over different words, so a share says how much of what matters is meant. ``hits`` are
the passages that a query retrieved, best first, each with its score where the retriever gives one. A vector has the
order of ``NAMES``, and so have the files of scorers: a name is added at its end.

The model is gradient-boosted regression trees as plain arrays, grown by scikit-learn, stored and used without it:
score(x) = base + sum over trees of value(leaf that x falls into).
"""

from __future__ import annotations

import io
import json
import math
import re
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from decisor.errors import SetupError
from decisor.system.extras import missing_extra_error
from decisor.system.processes import run_child
from decisor.types import Record, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Words are hashed: a table of counts of one size for any corpus, without its vocabulary.
BUCKETS = 1 << 16
WORD = re.compile(r"\w+", re.UNICODE)
NAME = re.compile(r"\b[A-Z0-9][\w'\u2019.-]*(?:\s+(?:of|the|de|and|von|van|for|in|&)?\s*[A-Z0-9][\w'\u2019.-]*)*")
STOP_WORDS = """
a an and are as at be been being but by can could did do does for from had has have he her his how i if
in into is it its many more most much no not of on one or other s she so some such than that the their
them then there these they this those to was were what when where which while who whom whose why will
with would you
"""
STOP = frozenset(STOP_WORDS.split())


@lru_cache(maxsize=200_000)
def list_content_words(text: str) -> tuple[str, ...]:
    """Return the content words of a text in order: lower case, no stop words, a plural s taken off.

    >>> list_content_words("Which of the Cities are older?")
    ('citie', 'older')
    """
    lower = (word.lower() for word in WORD.findall(text))
    return tuple(strip_plural_s(word) for word in lower if word not in STOP)


def strip_plural_s(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=200_000)
def content_word_set(text: str) -> frozenset[str]:
    """Return the different content words of a text."""
    return frozenset(list_content_words(text))


def find_capitalised_names(text: str) -> tuple[str, ...]:
    """Find runs of capitalised words, short words between them included.

    A stop word that only begins the sentence is no name.

    >>> find_capitalised_names("Who directed The Hideout, and was it in New York?")
    ('The Hideout', 'New York')
    """
    runs = [match.group() for match in NAME.finditer(text)]
    return tuple(dict.fromkeys(name for name in runs if content_word_set(name)))


@dataclass(frozen=True, eq=False)
class Rarity:
    """The rarity of words in a corpus of ``passages``."""

    counts: NDArray[np.int32] | None = None
    """Passages that contain a word, shape (BUCKETS,), hashed; None means that every word weighs 1."""
    passages: int = 0

    @classmethod
    def of(cls, texts: Iterable[str]) -> Rarity:
        import numpy as np

        counts = np.zeros(BUCKETS, np.int32)
        passages = 0
        for passages, text in enumerate(texts, 1):  # noqa: B007
            counts[[bucket(word) for word in content_word_set(text)]] += 1
        return cls(counts, passages)

    def weight(self, word: str) -> float:
        """Return the inverse document frequency of a word, natural logarithm; at least 0."""
        if self.counts is None:
            return 1.0
        count = int(self.counts[bucket(word)])
        # The inverse document frequency of BM25, as Lucene has it.
        return math.log1p((self.passages - count + 0.5) / (count + 0.5))

    def mass(self, different: Iterable[str]) -> float:
        return sum(self.weight(word) for word in different)


@lru_cache(maxsize=200_000)
def bucket(word: str) -> int:
    # Not hash(): Python salts it, and the counts are stored in files.
    return zlib.crc32(word.encode()) % BUCKETS


HITS = 10


class QueryFeatures(NamedTuple):
    """The features of a query before it is run.

    A bridge is a word of the query that comes from the evidence, not from the question; an open word is one of the
    question that no evidence has.
    """

    words: float
    """How many different words it has."""
    mass: float
    mean_weight: float
    """Of a word."""
    max_weight: float
    """Of its rarest word."""
    is_question: float
    placeholder: float
    """Whether it still holds a # for an answer that is not known."""
    names: float
    from_question: float
    """Share of the query that comes from the question."""
    of_question: float
    """Share of the question that is in the query."""
    from_evidence: float
    bridge_share: float
    bridge_mass: float
    from_nowhere: float
    """Share of words that are neither in the question nor in the evidence."""
    nowhere_mass: float
    open_mass: float
    of_open: float
    """Share of the open words that are in the query."""
    of_covered: float
    """Share of the question's other words that are in the query."""
    names_in_titles: float
    """How many names of the query meet a title of the evidence."""
    names_new: float
    """How many names of the query are not in the question."""
    last_title: float
    """Share that is in the title of the last evidence."""
    evidence: float
    """How many passages of evidence there are."""
    near_last: float
    """Share that is in the title or text of the last evidence."""


class HitFeatures(NamedTuple):
    """The features of the passages that a query retrieved: scores, gaps, novelty, first new passage.

    Scores count in the question's own best; a new passage is one that is not evidence.
    """

    top: float = 0.0
    """The best score."""
    top_share: float = 0.0
    """The best score for each mass of the query."""
    gap_2: float = 0.0
    """How far the second score is below the best, as a share."""
    gap_5: float = 0.0
    """How far the fifth score is below the best, as a share."""
    known_hits: float = 0.0
    """How many of the first five are evidence."""
    known_top: float = 0.0
    """Whether the first is evidence."""
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
    """Share of the open words that it has."""
    new_of_bridge: float = 0.0
    """Share of the bridges that it has."""
    new_in_question_hits: float = 0.0
    """Whether the question itself brings it back too."""
    spread: float = 0.0
    """From the worst score to the best, for each mass of the query."""
    title_agree: float = 0.0
    """How alike the first three passages are, 0 to 1."""


NAMES = QueryFeatures._fields + HitFeatures._fields


def passage_key(record: Record) -> str:
    """Return a key that is the same for the same passage, whatever id a run gave it."""
    return f"{passage_title(record)}\n{record.text}"


def passage_title(record: Record) -> str:
    return str(record.fields.get("title") or "")


def score_of(record: Record, rank: int) -> float:
    return 1.0 / rank if record.score is None else record.score


@dataclass(frozen=True)
class QueryContext:
    """A question, the evidence so far, and the question's own hits: shared by all its candidate queries."""

    question: str
    evidence: tuple[Record, ...] = ()
    question_hits: tuple[Record, ...] = ()
    rarity: Rarity = field(default_factory=Rarity)

    @cached_property
    def question_words(self) -> frozenset[str]:
        return content_word_set(self.question)

    @cached_property
    def evidence_words(self) -> frozenset[str]:
        return frozenset().union(*(content_word_set(passage_key(record)) for record in self.evidence))

    @cached_property
    def title_words(self) -> frozenset[str]:
        return frozenset().union(*(content_word_set(passage_title(record)) for record in self.evidence))

    @cached_property
    def open_words(self) -> frozenset[str]:
        return self.question_words - self.evidence_words

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(map(passage_key, self.evidence))

    @cached_property
    def unit(self) -> float:
        """The question's own best score. Scores are counted in it, so that any retriever's scale will do."""
        return (score_of(self.question_hits[0], 1) if self.question_hits else 1.0) or 1.0

    @cached_property
    def question_keys(self) -> frozenset[str]:
        """Keys of the passages that the question itself brings back."""
        return frozenset(map(passage_key, self.question_hits[:HITS]))

    def bridges(self, query_words: frozenset[str]) -> frozenset[str]:
        return (query_words & self.evidence_words) - self.question_words


def compute_features(scene: QueryContext, query: str, hits: Sequence[Record]) -> list[float]:
    """Compute the features of a query and its hits, shape (len(NAMES),)."""
    return [*query_features(scene, query), *hit_features(scene, query, hits[:HITS])]


def query_features(scene: QueryContext, query: str) -> QueryFeatures:
    mass, question, evidence = scene.rarity.mass, scene.question_words, scene.evidence_words
    own = content_word_set(query)
    total = mass(own) or 1e-9
    weights = [scene.rarity.weight(word) for word in own] or [0.0]
    bridge, nowhere, covered = scene.bridges(own), own - question - evidence, question & evidence
    own_names = [content_word_set(name) for name in find_capitalised_names(query)]
    last = scene.evidence[-1] if scene.evidence else Record("")
    return QueryFeatures(
        words=len(own),
        mass=total,
        mean_weight=total / len(weights),
        max_weight=max(weights),
        is_question=float(list_content_words(query) == list_content_words(scene.question)),
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
        last_title=mass(own & content_word_set(passage_title(last))) / total,
        evidence=len(scene.evidence),
        near_last=mass(own & content_word_set(passage_key(last))) / total,
    )


def hit_features(scene: QueryContext, query: str, hits: Sequence[Record]) -> HitFeatures:
    if not hits:
        return HitFeatures()
    mass, own = scene.rarity.mass, content_word_set(query)
    scores = [score_of(record, rank) / scene.unit for rank, record in enumerate(hits, 1)]
    is_evidence = [passage_key(record) in scene.keys for record in hits]
    at = is_evidence.index(False) if False in is_evidence else len(hits) - 1
    new, total, question_mass = hits[at], mass(own) or 1e-9, mass(scene.question_words) or 1.0
    text, title = content_word_set(passage_key(new)), content_word_set(passage_title(new))
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
        new_in_question_hits=float(passage_key(new) in scene.question_keys),
        spread=(max(scores) - min(scores)) / total * question_mass,
        title_agree=passage_agreement(hits[:3]),
    )


def passage_agreement(hits: Sequence[Record]) -> float:
    """Return how alike the passages are: mean share of common words over pairs, 0 to 1."""
    bags = [content_word_set(passage_key(record)) for record in hits]
    pairs = [(a, b) for at, a in enumerate(bags) for b in bags[at + 1 :]]
    return sum(len(a & b) / (len(a | b) or 1) for a, b in pairs) / (len(pairs) or 1)


@dataclass(frozen=True, eq=False)
class Trees:
    """Gradient-boosted trees with all nodes in one row of arrays, shape (nodes,).

    ``roots`` of shape (trees,) says where each begins. A node with ``left`` = its own number is a leaf. x goes left
    where x[feature] <= threshold.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    roots: NDArray[np.int32]
    base: float
    depth: int

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Predict the value of each row, shape (n, features) -> (n,)."""
        import numpy as np

        # All rows go down all trees at once, level by level; who has come to a leaf stays there.
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            at = np.where(rows[row, self.feature[at]] <= self.threshold[at], self.left[at], self.right[at])
        total: NDArray[np.float64] = self.base + self.value[at].sum(axis=1, dtype=np.float64)
        return total

    def splits(self) -> NDArray[np.int64]:
        """Count the splits by each feature, shape (features,) up to the last that has any."""
        import numpy as np

        return np.bincount(self.feature[self.left != np.arange(len(self.left))])

    def arrays(self) -> dict[str, NDArray[Any]]:
        import numpy as np

        return {array.name: np.asarray(getattr(self, array.name)) for array in fields(self)}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], features: int) -> Trees:
        """Build trees from stored arrays, checked. A damaged or foreign file never leads outside the arrays.

        Raises:
            SetupError: the arrays are no trees over ``features`` features.
        """
        try:
            base, depth = float(arrays["base"]), int(arrays["depth"])
            parts = [arrays[name] for name in ("feature", "threshold", "left", "right", "value", "roots")]
        except (KeyError, TypeError, ValueError) as error:
            raise SetupError(f"These are no trees: {error}.") from error
        nodes = len(parts[0])
        feature, _, left, right, _, roots = parts
        # numpy would take a negative index from the end, so both bounds are checked.
        inside = [(feature, features), (left, nodes), (right, nodes), (roots, nodes)]
        if any(
            a.ndim != 1 or a.dtype.kind not in "iu" or (a.size and (a.min() < 0 or a.max() >= n)) for a, n in inside
        ):
            raise SetupError(
                "These trees point outside themselves: the file is damaged or was made for other features."
            )
        # The depth is a loop count: from a foreign file it could be anything.
        if len({len(part) for part in parts[:-1]}) != 1 or not 0 <= depth <= 64:
            raise SetupError("These trees are damaged: their arrays differ in length.")
        return cls(feature, parts[1], left, right, parts[4], roots, base, depth)


def grow_trees(rows: NDArray[np.float32], labels: NDArray[np.float64], trees: int = 300, seed: int = 0) -> Trees:
    """Fit trees to squared error in a process of its own. ``rows`` of shape (n, features), ``labels`` of shape (n,).

    Beside libraries that are loaded already scikit-learn may not load: glibc keeps little room for their thread-local
    data.

    Raises:
        SetupError: scikit-learn is not installed, or the process fails.
    """
    import numpy as np

    if find_spec("sklearn") is None:
        raise missing_extra_error("Training needs scikit-learn", "lab")
    arrays = io.BytesIO()
    np.savez(arrays, rows=rows, labels=labels, trees=np.array(trees), seed=np.array(seed))
    process = run_child(__name__, arrays.getvalue(), ("OMP_NUM_THREADS",))
    if process.returncode:
        raise SetupError(f"Training failed in its process: {process.stderr.decode(errors='replace').strip()[-300:]}")
    with np.load(io.BytesIO(process.stdout), allow_pickle=False) as archive:
        return Trees.of({name: archive[name] for name in archive.files}, rows.shape[1])


def main() -> None:
    """Run the process of ``grow_trees``: arrays in, arrays out."""
    import numpy as np

    with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as archive:
        grown = fit_trees(archive["rows"], archive["labels"], int(archive["trees"]), int(archive["seed"]))
    np.savez(sys.stdout.buffer, allow_pickle=False, **grown.arrays())


def fit_trees(rows: NDArray[np.float32], labels: NDArray[np.float64], trees: int, seed: int) -> Trees:
    """Fit trees with scikit-learn on one thread.

    On a busy machine several threads wait for each other longer than they work, and data of this size gain nothing.
    """
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        max_iter=trees,
        learning_rate=0.06,
        max_leaf_nodes=31,
        min_samples_leaf=40,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(1, user_api="openmp"):
        model.fit(rows, labels)
    # scikit-learn has no public way to read the nodes of its trees.
    grown = [predictors[0].nodes for predictors in model._predictors]
    starts = np.cumsum([0, *(len(nodes) for nodes in grown)])[:-1]
    nodes = np.concatenate(grown)
    # A tree numbers its own nodes from 0: in one row of arrays each number moves by where its tree begins.
    shift = np.repeat(starts, [len(tree) for tree in grown])
    own = np.arange(len(nodes))
    leaf = nodes["is_leaf"].astype(bool)
    # A row is float32 here, so the threshold is rounded down to it: x <= threshold decides the same.
    threshold = np.where(leaf, np.inf, round_down_to_float32(nodes["num_threshold"]))
    return Trees(
        np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32),
        threshold.astype(np.float32),
        np.where(leaf, own, nodes["left"] + shift).astype(np.int32),
        np.where(leaf, own, nodes["right"] + shift).astype(np.int32),
        np.where(leaf, nodes["value"], 0.0).astype(np.float32),
        starts.astype(np.int32),
        float(np.ravel(model._baseline_prediction)[0]),
        int(nodes["depth"].max()),
    )


def round_down_to_float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest float32 not above each value."""
    import numpy as np

    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
    lower: NDArray[np.float32] = np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)
    return lower


DEFAULT = Path(__file__).parent / "default_scorer"
DEFAULT_BEFORE = Path(__file__).parent / "default_scorer_before"
Assess = Literal["before", "after"]
"""Whether queries are scored before they are run, or after, from what each brings back."""
VERSION = 1


class Scorer(Protocol):
    """A scorer of queries; higher is better."""

    def score(self, scene: QueryContext, queries: Sequence[str], hits: Sequence[Sequence[Record]]) -> list[float]:
        """Return one score for each query. hits: passages that each query brought back, best first."""
        ...


@dataclass(frozen=True, eq=False)
class QueryScorer:
    """A trained scorer that predicts reciprocal ranks."""

    trees: Trees
    rarity: Rarity = field(default_factory=Rarity)
    card: Mapping[str, Value] = field(default_factory=dict)
    """On which data it was trained, and how well it did."""
    rule: float = 0.0
    """Weight of the untrained rule beside the trees, for a corpus unlike the one of the training."""

    def score(self, scene: QueryContext, queries: Sequence[str], hits: Sequence[Sequence[Record]]) -> list[float]:
        import numpy as np

        if not queries:
            return []
        own_scene = QueryContext(scene.question, scene.evidence, scene.question_hits, self.rarity)
        rows = [compute_features(own_scene, query, passages) for query, passages in zip(queries, hits, strict=True)]
        return [float(value) for value in self.predict(np.asarray(rows, np.float32))]

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Predict reciprocal ranks, shape (n, features) -> (n,)."""
        return self.trees.predict(rows) + self.rule * compute_rule_scores(rows)


@dataclass(frozen=True)
class RuleScorer:
    """A scorer without training.

    It prefers the query whose best passage scores highest, and never one whose best passage is known.
    """

    def score(self, scene: QueryContext, queries: Sequence[str], hits: Sequence[Sequence[Record]]) -> list[float]:
        import numpy as np

        rows = [compute_features(scene, query, passages) for query, passages in zip(queries, hits, strict=True)]
        return [float(value) for value in compute_rule_scores(np.asarray(rows, np.float32).reshape(-1, len(NAMES)))]


def compute_rule_scores(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the best passage's score in units of the question's, at most 2.

    Less 2 if that passage is known already.
    """
    import numpy as np

    top, is_evidence = rows[:, NAMES.index("top")], rows[:, NAMES.index("known_top")]
    return np.asarray(np.minimum(top, 2.0) - 2.0 * is_evidence, np.float64)


def count_splits_by_feature(scorer: QueryScorer) -> dict[str, int]:
    """Count the splits of the trees by each feature, most first. Features without any are left out."""
    counts = dict(zip(NAMES, map(int, scorer.trees.splits()), strict=False))
    return {name: counts[name] for name in sorted(counts, key=lambda one: -counts[one]) if counts[name]}


def save_query_scorer(scorer: QueryScorer, folder: Path) -> None:
    """Write a scorer as ``trees.npz`` (arrays only) and ``card.json``.

    Each is written beside and renamed, so none is half there.
    """
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
def load_query_scorer(folder: Path = DEFAULT) -> QueryScorer:
    """Load a scorer; raise SetupError if there is none, or it was made for other features."""
    import zipfile

    import numpy as np

    try:
        card = json.loads((folder / "card.json").read_text("utf-8"))
        # Without pickle: a scorer may be someone else's, and a pickle runs code when it is loaded.
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


def open_scorer(name: str, assess: Assess = "after") -> Scorer:
    """Return the scorer of a name: "" is built in, "rule" is untrained, else a trained folder.

    Raises:
        SetupError: there is none, or it was trained for the other ``assess``.
    """
    if name == "rule":
        if assess == "before":
            raise SetupError("scorer=rule reads what queries bring back: it goes with assess=after.")
        return RuleScorer()
    scorer = (
        load_query_scorer(Path(name)) if name else load_query_scorer(DEFAULT if assess == "after" else DEFAULT_BEFORE)
    )
    if (own := scorer.card.get("assess", "after")) != assess:
        raise SetupError(f"The query scorer in {name} was trained for assess={own}: say so, or train another.")
    return scorer
