"""The search of WebShop: terms as Lucene's English analyzer makes them, ranked by BM25 in memory.

The scores are those of Lucene as pyserini sets it up: k1 = 0.9, b = 0.4, lengths kept in one byte. A term's
contributions are computed once; a query adds up a few short arrays.

    score(d, q) = sum over terms t of q:  idf(t) * tf / (tf + k1 * (1 - b + b * length(d) / mean length))
    idf(t)      = ln(1 + (N - df + 0.5) / (df + 0.5))

Terms are words, lower case, no stop words, Porter's stems. Words are those of the Unicode standard's annex 29, nearly:
a point or an apostrophe stays between two letters or two digits, a colon between letters, a comma or semicolon between
digits, an underscore anywhere; a pictograph or a character of Chinese or Japanese stands alone. Checked against Lucene
10.5 (docs/measurements/search.md).
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decisor.system.extras import missing_extra_error

K1, B = 0.9, 0.4


@dataclass(frozen=True)
class Bm25Index:
    """A search index in memory, by term."""

    size: int
    """Number of documents."""
    numbers: dict[str, int]
    """Number of each term."""
    begins: list[int]
    """For each term the index of its first entry, and an end."""
    documents: NDArray[np.int32]
    """The document of each entry."""
    parts: NDArray[np.float32]
    """The amount that the term adds to the document's score."""
    terms: Callable[[str], list[str]]
    """Splits a text into its terms."""

    def find(self, query: str, limit: int) -> list[int]:
        """Return the numbers of at most ``limit`` documents, best first, equal ones in their order."""
        # A term that a query repeats counts as often, as in Lucene.
        query_terms = Counter(self.numbers[term] for term in self.terms(query) if term in self.numbers)
        if not query_terms:
            return []
        spans = [(self.begins[number], self.begins[number + 1], times) for number, times in query_terms.items()]
        documents = np.concatenate([self.documents[begin:end] for begin, end, _ in spans])
        parts = np.concatenate([times * self.parts[begin:end] for begin, end, times in spans])
        scores = np.bincount(documents, parts, self.size)
        matches = np.flatnonzero(scores)
        values = scores[matches]
        # Partition before sorting: a common term matches most documents, and 50 of them are shown.
        if len(matches) > limit:
            best = values >= np.partition(values, -limit)[-limit]
            matches, values = matches[best], values[best]
        # The last key counts first: by score, then by the document's number, as Lucene breaks ties.
        order: list[int] = matches[np.lexsort((matches, -values))[:limit]].tolist()
        return order


def build_bm25_index(texts: Iterable[str], terms: Callable[[str], list[str]]) -> Bm25Index:
    numbers: dict[str, int] = {}
    # Arrays of machine numbers: Python lists would hold an object for every entry.
    of_term, times, lengths, distinct = array("i"), array("H"), array("i"), array("i")
    for text in texts:
        counts = Counter(terms(text))
        lengths.append(counts.total())
        distinct.append(len(counts))
        for term, count in counts.items():
            of_term.append(numbers.setdefault(term, len(numbers)))
            times.append(min(count, 65_535))
    # A stable sort keeps the documents of a term in order.
    which = np.asarray(of_term, np.int32)
    order = np.argsort(which, kind="stable")
    in_documents = np.bincount(which, minlength=len(numbers))
    exact = np.asarray(lengths, np.int64)
    mean = exact.sum() / max(len(exact), 1) or 1.0
    norms = (K1 * (1 - B + B * coarse_lengths(exact) / mean)).astype(np.float32)
    rarity = np.log(1 + (len(exact) - in_documents + 0.5) / (in_documents + 0.5)).astype(np.float32)
    documents = np.repeat(np.arange(len(exact), dtype=np.int32), np.asarray(distinct, np.int64))[order]
    often = np.asarray(times, np.uint16)[order].astype(np.float32)
    parts = np.repeat(rarity, in_documents) * often / (often + norms[documents])
    begins = np.concatenate([[0], np.cumsum(in_documents)]).tolist()
    return Bm25Index(len(exact), numbers, begins, documents, parts, terms)


def coarse_lengths(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Round lengths as one byte stores them.

    They are exact below 40; above, the first four binary digits of the length minus 24 are kept.

    >>> coarse_lengths(np.array([7, 39, 40, 41, 42, 100, 1000])).tolist()
    [7.0, 39.0, 40.0, 40.0, 42.0, 96.0, 984.0]
    """
    above = np.maximum(lengths - 24, 0)
    digits = np.frexp(above.astype(np.float64))[1]
    step = 2 ** np.maximum(digits - 4, 0)
    coarse: NDArray[np.float64] = np.where(lengths < 24, lengths, 24 + above // step * step).astype(np.float64)
    return coarse


HAN = "\u3040-\u309f\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714"
    "\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1"
    "\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)  # Unicode's Extended_Pictographic
LETTER, DIGIT = rf"[^\W\d_{HAN}]", "[0-9]"
INNER = rf"(?<={LETTER})[.:'\u2018\u2019\u00b7\uff1a](?={LETTER})|(?<={DIGIT})[.,;'\u2018\u2019](?={DIGIT})"
WORD = re.compile(
    rf"{PICTOGRAPH}\ufe0f?|[{HAN}]|(?:[^\W\u00b2\u00b3\u00b9\u00bc-\u00be\u2044\u2070-\u2089\u2150-\u218b{HAN}]|{INNER})+"
)
CHUNK = re.compile(rf"{PICTOGRAPH}\ufe0f?|\w+(?:[.:'\u2018\u2019\u00b7\uff1a,;]\w+)*")
STOPPED = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
STOP_WORDS = frozenset(STOPPED.split())
LONGEST = 255
VOWELS_THEN_OTHERS = re.compile(r"[aeiouy]+[^aeiouy]+")


def extract_terms(text: str) -> list[str]:
    """Return the terms of a text as Lucene's English analyzer makes them.

    >>> extract_terms("The Women's shoes, size 8.5 and US:8")
    ['women', 'shoe', 'size', '8.5', 'us', '8']
    """
    words: list[str] = []
    for chunk in CHUNK.findall(text):
        if chunk.isascii() and chunk.isalnum():  # most are; only the others need the whole rule
            words.append(term_of_word(chunk))
        else:
            words += map(term_of_word, WORD.findall(chunk))
    return [one for one in words if one]


@lru_cache(maxsize=200_000)
def term_of_word(word: str) -> str:
    """Return the term of a word, empty for a stop word.

    >>> [term_of_word(word) for word in ("technology", "assembly", "incredibly", "doubly", "happily", "US")]
    ['technolog', 'assembl', 'incred', 'doubli', 'happili', 'us']
    """
    # In Lucene's order: possessive, lower case, stop words, stem.
    word = re.sub(r"['\u2019\uff07][sS]$", "", word)[:LONGEST].lower()
    if word in STOP_WORDS or not word.strip("_"):
        return ""
    return word if len(word) <= 2 else apply_lucene_ending(_stemmer().stemWord(word))


def apply_lucene_ending(stem: str) -> str:
    """Change the endings -bli and -logi of a stem as Lucene does.

    Porter's own program, and Lucene's, treat these two otherwise than his paper.
    """
    # Porter's m: the number of runs of vowels that consonants follow.
    if stem.endswith("ibli") and len(VOWELS_THEN_OTHERS.findall(stem[:-4])) > 1:
        return stem[:-4]
    if stem.endswith(("bli", "logi")) and VOWELS_THEN_OTHERS.search(stem.removesuffix("bli").removesuffix("logi")):
        return stem[:-1]
    return stem


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    try:
        import Stemmer
    except ImportError as error:
        raise missing_extra_error("WebShop's search needs a stemmer", "lab") from error
    return Stemmer.Stemmer("porter")
