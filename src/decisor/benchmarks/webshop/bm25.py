"""BM25 in memory, with the scores of Lucene as pyserini sets it up: k1 = 0.9, b = 0.4, lengths kept in one byte.

    score(d, q) = sum over terms t of q:  idf(t) * tf / (tf + k1 * (1 - b + b * length(d) / mean length))
    idf(t)      = ln(1 + (N - df + 0.5) / (df + 0.5))

A term's contributions are computed once; a query adds up a few short arrays.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

K1, B = 0.9, 0.4


@dataclass(frozen=True)
class Index:
    """``begins``: for each term where its entries begin, and an end; ``documents`` (int32) and ``parts`` (float32)
    are its entries: which document, and what the term adds to its score."""

    size: int
    numbers: dict[str, int]
    begins: list[int]
    documents: NDArray[np.int32]
    parts: NDArray[np.float32]
    terms: Callable[[str], list[str]]

    def find(self, query: str, limit: int) -> list[int]:
        """Numbers of at most ``limit`` documents, best first; equal ones in their order."""
        query_terms = Counter(self.numbers[term] for term in self.terms(query) if term in self.numbers)
        if not query_terms:
            return []
        spans = [(self.begins[number], self.begins[number + 1], times) for number, times in query_terms.items()]
        documents = np.concatenate([self.documents[begin:end] for begin, end, _ in spans])
        parts = np.concatenate([times * self.parts[begin:end] for begin, end, times in spans])
        scores = np.bincount(documents, parts, self.size)
        matches = np.flatnonzero(scores)
        values = scores[matches]
        if len(matches) > limit:
            best = values >= np.partition(values, -limit)[-limit]
            matches, values = matches[best], values[best]
        order: list[int] = matches[np.lexsort((matches, -values))[:limit]].tolist()
        return order


def build(texts: Iterable[str], terms: Callable[[str], list[str]]) -> Index:
    numbers: dict[str, int] = {}
    of_term, times, lengths, distinct = array("i"), array("H"), array("i"), array("i")
    for text in texts:
        counts = Counter(terms(text))
        lengths.append(counts.total())
        distinct.append(len(counts))
        for term, count in counts.items():
            of_term.append(numbers.setdefault(term, len(numbers)))
            times.append(min(count, 65_535))
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
    return Index(len(exact), numbers, begins, documents, parts, terms)


def save(index: Index, folder: Path) -> None:
    """As files that ``load`` reads."""
    np.save(folder / "begins.npy", np.asarray(index.begins, np.int64))
    np.save(folder / "documents.npy", index.documents)
    np.save(folder / "parts.npy", index.parts)
    (folder / "terms.txt").write_text("\n".join([str(index.size), *index.numbers]), "utf-8")


def load(folder: Path, terms: Callable[[str], list[str]]) -> Index:
    """The entries are mapped, not read."""
    size, *words = (folder / "terms.txt").read_text("utf-8").split("\n")
    begins = np.load(folder / "begins.npy").tolist()
    documents, parts = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("documents", "parts"))
    return Index(int(size), {word: number for number, word in enumerate(words)}, begins, documents, parts, terms)


def coarse_lengths(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Lengths as one byte keeps them: exact below 40, then the first four binary digits of what is above 24.

    >>> coarse_lengths(np.array([7, 39, 40, 41, 42, 100, 1000])).tolist()
    [7.0, 39.0, 40.0, 40.0, 42.0, 96.0, 984.0]
    """
    above = np.maximum(lengths - 24, 0)
    digits = np.frexp(above.astype(np.float64))[1]
    step = 2 ** np.maximum(digits - 4, 0)
    coarse: NDArray[np.float64] = np.where(lengths < 24, lengths, 24 + above // step * step).astype(np.float64)
    return coarse
