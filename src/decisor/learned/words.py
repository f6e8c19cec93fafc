"""Words of a text, how rare they are in a corpus, and the names in it: what the features are counted from."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
def words(text: str) -> tuple[str, ...]:
    """Content words in order: lower case, no stop words, a plural s taken off.

    >>> words("Which of the Cities are older?")
    ('citie', 'older')
    """
    lower = (word.lower() for word in WORD.findall(text))
    return tuple(bare(word) for word in lower if word not in STOP)


def bare(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=200_000)
def bag(text: str) -> frozenset[str]:
    """The different content words."""
    return frozenset(words(text))


def names(text: str) -> tuple[str, ...]:
    """Runs of capitalised words, short words between them included; not a stop word that only begins the sentence.

    >>> names("Who directed The Hideout, and was it in New York?")
    ('The Hideout', 'New York')
    """
    runs = [match.group() for match in NAME.finditer(text)]
    return tuple(dict.fromkeys(name for name in runs if bag(name)))


@dataclass(frozen=True, eq=False)
class Rarity:
    """How many of ``passages`` hold a word: counts of shape (BUCKETS,), hashed. Without counts every word weighs 1."""

    counts: NDArray[np.int32] | None = None
    passages: int = 0

    @classmethod
    def of(cls, texts: Iterable[str]) -> Rarity:
        import numpy as np

        counts = np.zeros(BUCKETS, np.int32)
        passages = 0
        for passages, text in enumerate(texts, 1):  # noqa: B007
            counts[[bucket(word) for word in bag(text)]] += 1
        return cls(counts, passages)

    def weight(self, word: str) -> float:
        """Inverse document frequency, natural logarithm; at least 0."""
        if self.counts is None:
            return 1.0
        count = int(self.counts[bucket(word)])
        return math.log1p((self.passages - count + 0.5) / (count + 0.5))

    def mass(self, different: Iterable[str]) -> float:
        return sum(self.weight(word) for word in different)


@lru_cache(maxsize=200_000)
def bucket(word: str) -> int:
    return zlib.crc32(word.encode()) % BUCKETS
