"""Which candidates no other one beats by every measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decisor.types import Goal


def front(values: NDArray[np.float64], goals: Sequence[Goal]) -> NDArray[np.bool_]:
    """Of n candidates by m measures, (n, m): (n,), True where none is as good by all measures and better by one. Equal
    ones stay together; one without an outcome (nan) is never on it. As many rounds as the front is long.

    >>> front(np.array([[1.0, 9.0], [2.0, 5.0], [2.0, 5.0], [3.0, 6.0], [np.nan, 0.0]]), ("min", "min")).tolist()
    [True, True, True, False, False]
    """
    signs = np.array([1.0 if goal == "min" else -1.0 for goal in goals])
    places = np.flatnonzero(~np.isnan(values).any(axis=1))
    costs = values[places] * signs
    order = np.lexsort(costs.T[::-1])
    left, at = order, 0
    while at < len(left):
        here = costs[left[at]]
        stays = (costs[left] < here).any(axis=1) | (costs[left] == here).all(axis=1)
        at = int(stays[: at + 1].sum())
        left = left[stays]
    on = np.zeros(len(values), dtype=np.bool_)
    on[places[left]] = True
    return on
