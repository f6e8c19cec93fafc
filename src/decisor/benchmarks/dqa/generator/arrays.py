"""Shorthand for the arrays of generated worlds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def tally(places: Ints, amounts: Floats, size: int) -> Floats:
    """The sum of amounts at each place, shape (size,); added in the order given."""
    return np.asarray(np.bincount(places, amounts, size), dtype=np.float64)


def rows_of(owner: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Pairs (index in ``places``, row) of all rows whose owner is one of them; rows need not be sorted.

    >>> [pairs.tolist() for pairs in rows_of(np.array([7, 8, 7]), np.array([8, 7]))]
    [[0, 1, 1], [1, 0, 2]]
    """
    order = np.argsort(owner, kind="stable")
    first, end = np.searchsorted(owner[order], places, "left"), np.searchsorted(owner[order], places, "right")
    counts = end - first
    place = np.repeat(np.arange(len(places)), counts)
    step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return place, order[np.repeat(first, counts) + step]
