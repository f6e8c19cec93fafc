"""What range the outcomes of candidates had in trials."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIDDLE = (5.0, 95.0)
"""Percentiles: 90 % of the trials lie between them."""


def ranges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of n candidates in t trials, (n, t): (n, 2), what 90 % of each one's outcomes lie between; nan without one."""
    ends = np.full((len(values), 2), np.nan)
    some = ~np.isnan(values).all(axis=1)
    if some.any():
        ends[some] = np.nanpercentile(values[some], MIDDLE, axis=1).T
    return ends
