"""The statistics behind every figure: intervals, paired tests, corrections. Plain numbers in, plain numbers out.

Shares are 0 to 1. Whatever draws at random takes a seed and gives the same figures for the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Z95 = 1.959963984540054
"""The standard normal's 97.5 % point."""
CELLS = 4_000_000
"""Draws held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


def wilson(right: float, total: int) -> Interval:
    """Wilson's score interval of a share (Wilson 1927), which also holds near 0 and 1 and for few cases.

    >>> interval = wilson(81, 263)  # Newcombe 1998, table I: 0.2553 to 0.3662
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.2553, 0.3662)
    """
    if not total:
        return Interval(0.0, 1.0)
    share = right / total
    scale = 1 + Z95 * Z95 / total
    middle = (share + Z95 * Z95 / (2 * total)) / scale
    half = Z95 * math.sqrt(share * (1 - share) / total + Z95 * Z95 / (4 * total * total)) / scale
    return Interval(max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def share_over_cases(tries_by_case: Mapping[str, Sequence[bool]]) -> tuple[float, Interval]:
    """Average over cases the share of a case's tries that are right, with the interval of that mean.

    The interval is Wilson's where each case has one try. Several answers to one case resemble each other, so it is then
    a bootstrap over cases; where all cases have the same share, which leaves a bootstrap no width, Wilson's again.
    """
    shares = [sum(tries) / len(tries) for tries in tries_by_case.values()]
    right = math.fsum(shares)
    if len(set(shares)) == 1 or all(len(tries) == 1 for tries in tries_by_case.values()):
        return right / len(shares), wilson(right, len(shares))
    return right / len(shares), bootstrap(shares)


def mcnemar(only_one: int, only_other: int) -> float:
    """The exact two-sided p that two techniques are right equally often, from the cases where just one of them is.

    Twice the smaller tail of a fair binomial (McNemar 1947, exact form), at most 1.

    >>> mcnemar(1, 9)
    0.021484375
    """
    total = only_one + only_other
    tail = term = 1
    for k in range(min(only_one, only_other)):
        term = term * (total - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << total))


def sign_flip(differences: Sequence[float], rounds: int = 20_000, seed: int = 0) -> float:
    """The two-sided p that paired differences lie around zero: each case's difference could as well have had the
    other sign (Fisher's randomisation test). For differences of 1, 0 and -1 it estimates ``mcnemar``.

    The draw that was observed counts as one, so p is never zero.
    """
    import numpy as np

    nonzero = np.asarray([value for value in differences if value], dtype=np.float64)
    if not len(nonzero):
        return 1.0
    reached = abs(nonzero.sum()) * (1 - 1e-12)

    def flipped(rng: np.random.Generator, many: int) -> NDArray[np.float64]:
        signs = rng.integers(0, 2, (many, len(nonzero)), dtype=np.int8)
        return (2.0 * signs - 1.0) @ nonzero

    sums = _drawn(flipped, rounds, len(nonzero), seed)
    return (1 + int(np.count_nonzero(np.abs(sums) >= reached))) / (1 + rounds)


def bootstrap(values: Sequence[float], rounds: int = 10_000, seed: int = 0) -> Interval:
    """The percentile bootstrap interval of a mean (Efron 1979); paired where ``values`` are differences by case.

    Few distinct values are drawn as counts (one multinomial a round), which is the same distribution and far faster.
    """
    import numpy as np

    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return Interval(math.nan, math.nan)
    distinct, counts = np.unique(sample, return_counts=True)

    def means(rng: np.random.Generator, many: int) -> NDArray[np.float64]:
        if len(distinct) * 8 <= len(sample):
            draws = rng.multinomial(len(sample), counts / len(sample), many)
            return np.asarray(draws @ distinct / len(sample), dtype=np.float64)
        return np.asarray(sample[rng.integers(0, len(sample), (many, len(sample)))].mean(axis=1), dtype=np.float64)

    low, high = np.quantile(_drawn(means, rounds, len(sample), seed), (0.025, 0.975))
    return Interval(float(low), float(high))


def _drawn(
    draw: Callable[[np.random.Generator, int], NDArray[np.float64]], rounds: int, width: int, seed: int
) -> NDArray[np.float64]:
    """``rounds`` draws, in pieces that fit in memory; shape (rounds,)."""
    import numpy as np

    rng = np.random.default_rng(seed)
    step = max(1, CELLS // max(1, width))
    return np.concatenate([draw(rng, min(step, rounds - at)) for at in range(0, rounds, step)])


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """p values corrected for testing several at once (Holm 1979), in the order given.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    corrected = [0.0] * len(ps)
    largest = 0.0
    for place, at in enumerate(sorted(range(len(ps)), key=lambda at: ps[at])):
        largest = max(largest, min(1.0, (len(ps) - place) * ps[at]))
        corrected[at] = largest
    return tuple(corrected)


def pass_at_k(right: int, tries: int, k: int) -> float:
    """The chance that at least one of ``k`` tries is right, without bias, from ``right`` of ``tries`` (Chen et al.,
    "Evaluating Large Language Models Trained on Code", 2021, equation 1).

    >>> round(pass_at_k(1, 3, 2), 4)  # of the pairs of three tries, two of three hold the right one
    0.6667
    """
    if not 0 < k <= tries or not 0 <= right <= tries:
        raise ValueError(f"pass@{k} cannot be estimated from {right} of {tries} tries.")
    return 1.0 - math.comb(tries - right, k) / math.comb(tries, k)


def deviation(values: Sequence[float]) -> float:
    """The sample's standard deviation (n - 1); 0 for one value."""
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def kappa(one: Sequence[str], other: Sequence[str]) -> float | None:
    """Cohen's kappa: how far two raters agree beyond chance. None where chance alone agrees on everything.

    >>> round(kappa(["a"] * 25 + ["b"] * 25, ["a"] * 20 + ["b"] * 5 + ["a"] * 10 + ["b"] * 15), 6)
    0.4
    """
    if len(one) != len(other):
        raise ValueError("Two raters need to have rated the same cases.")
    total = len(one)
    if not total:
        return None
    agreed = sum(a == b for a, b in zip(one, other, strict=True)) / total
    chance = sum(one.count(name) * other.count(name) for name in set(one)) / (total * total)
    return None if chance == 1.0 else (agreed - chance) / (1 - chance)
