"""How a ranking by words and one by meaning become one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

RANK_CONSTANT, WORDS_SHARE = 2, 0.6
"""By cross-validation on three multi-hop sets (performance/retrieval_choice.py); 60 and 0.5 are usual."""

T = TypeVar("T", bound=Hashable)


def fuse_ranks(
    words: Sequence[T], meaning: Sequence[T], constant: float = RANK_CONSTANT, share: float = WORDS_SHARE
) -> list[tuple[T, float]]:
    """Reciprocal rank fusion: the sum of 1 / (constant + rank), ``share`` of it for the ranking by words and the rest
    for that by meaning; equal ones in first order.

    Cormack, Clarke and Buettcher, SIGIR 2009, where both count the same.

    >>> [name for name, score in fuse_ranks(["a", "b", "c"], ["b", "d"])]
    ['b', 'a', 'c', 'd']
    """
    scores: dict[T, float] = {}
    for ranking, weight in ((words, share), (meaning, 1.0 - share)):
        for rank, name in enumerate(ranking, 1):
            scores[name] = scores.get(name, 0.0) + weight / (constant + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def blend_scores(words: Mapping[T, float], meaning: Mapping[T, float], share: float = 0.5) -> list[tuple[T, float]]:
    """``share`` of the score by words and the rest of that by meaning, each as a part of its best; who has no words in
    common gets 0.

    A convex combination of scores, as in Bruch, Gai and Ingber, TOIS 2023.

    >>> blend_scores({"a": 8.0, "b": 4.0}, {"a": 0.4, "b": 0.8, "c": 0.2})
    [('a', 0.75), ('b', 0.75), ('c', 0.125)]
    """
    most_words, most_meaning = max(words.values(), default=0.0), max(meaning.values(), default=0.0)
    scores = {
        name: (words.get(name, 0.0) / most_words if most_words > 0 else 0.0) * share
        + (near / most_meaning if most_meaning > 0 else 0.0) * (1.0 - share)
        for name, near in meaning.items()
    }
    return sorted(scores.items(), key=lambda pair: -pair[1])
