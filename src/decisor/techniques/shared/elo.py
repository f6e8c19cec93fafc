"""The equations of RadAgent's internal utility, as functions of numbers.

Ye et al., "Rational Decision-Making Agent with Learning Internal Utility Judgment", ICLR 2025 (arXiv 2308.12519).
v is an Elo rating, r its scale (173.72 = 400 / ln 10, so eq. 1 is the formula of chess), tau a temperature.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Anneal = Literal["paper", "code", "none"]
Backup = Literal["soft", "mean"]


def expected_score(x: float, y: float, r: float) -> float:
    """Return the expected score of x against y (eq. 1). E(x > y) = 1 / (1 + exp(-(v_x - v_y) / r)).

    >>> round(expected_score(191, 0, 173.72), 2)
    0.75
    """
    gap = (y - x) / r
    # math.exp raises OverflowError above about 709.
    return 1 / (1 + math.exp(gap)) if gap < 700 else 0.0


def update_ratings(x: float, y: float, score: float, k: float, r: float) -> tuple[float, float]:
    """Return both ratings after a comparison in which x got ``score`` (eq. 3; R of eq. 2: 1, 1/2 or 0).

    >>> update_ratings(0, 0, 1, 50, 173.72)
    (25.0, -25.0)
    """
    return x + k * (score - expected_score(x, y, r)), y + k * ((1 - score) - expected_score(y, x, r))


def softmax(values: Sequence[float], tau: float) -> list[float]:
    """Return the softmax of values at temperature tau (eq. 4 and 5). P(d_i) = exp(v_i / tau) / sum_j exp(v_j / tau)."""
    # Shifted by the largest value: the odds are the same, and exp cannot overflow.
    top = max(values)
    weights = [math.exp((value - top) / tau) for value in values]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def backed_up_value(values: Sequence[float], tau: float, backup: Backup = "soft") -> float:
    """Return the value of a parent by equation 7.

    v_parent = sum_j alpha_j v_j with alpha = softmax(v / tau). ``mean`` weighs all equally.
    """
    if backup == "mean":
        return math.fsum(values) / len(values)
    return math.fsum(weight * value for weight, value in zip(softmax(values, tau), values, strict=True))


def temperature_at(tau: float, matches: int, form: Anneal = "paper") -> float:
    """Return the temperature at a node by equation 8.

    tau_d = tau_0 / (1 + sqrt(ln(M_d + 1))). The authors' code has tau_0 / sqrt(1 + ln(M_d + 1)).

    >>> temperature_at(1, 0), round(temperature_at(1, 40), 3), round(temperature_at(1, 40, "code"), 3)
    (1.0, 0.342, 0.461)
    """
    if form == "none":
        return tau
    log = math.log(matches + 1)
    return tau / (1 + math.sqrt(log)) if form == "paper" else tau / math.sqrt(1 + log)
