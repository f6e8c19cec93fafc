"""Which input moves the lead most: each varies alone, as its spread says (each row, together, by a column)."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from decisor.decision_models.machine import OpenModel
from decisor.decision_models.outcomes import Outcomes
from decisor.decision_models.robustness import MIDDLE
from decisor.types import Goal, Swing

CONTENDERS = 50
TRIALS = 100


def swings(
    model: OpenModel, outcomes: Outcomes, *, trials: int = TRIALS, seed: int = 0, seconds: float = float("inf")
) -> tuple[Swing, ...]:
    """Of each input with a spread, the one that moves the lead most first. ``outcomes``: of all candidates, as the data
    are. Inputs that the seconds do not reach are left out.

    Raises:
        ToolError: a statement fails.
    """
    goal, until = model.model.first.goal, time.monotonic() + seconds
    contenders = outcomes.candidates[outcomes.order(goal)[:CONTENDERS]].tolist()
    every = []
    for one in model.model.inputs:
        left = until - time.monotonic()
        if one.spread is None or len(contenders) < 2 or left <= 0:
            continue
        shaken = model.trials(contenders, trials, first_seed=seed, varies=(one.name,), seconds=left)
        whole = shaken.known.all(axis=0)
        if whole.any():
            leads = leads_of(shaken, goal)[whole]
            every.append(swing(one.name, str(one.spread), leads))
    return tuple(sorted(every, key=lambda one: one.low - one.high))


def swing(name: str, spread: str, leads: NDArray[np.float64]) -> Swing:
    """A trial in which the best is shut out, or nothing else is allowed, has no lead."""
    finite = leads[np.isfinite(leads)]
    low, high = np.percentile(finite, MIDDLE) if len(finite) else (0.0, 0.0)
    return Swing(name, spread, float(low), float(high), float((leads >= 0).mean()))


def leads_of(shaken: Outcomes, goal: Goal) -> NDArray[np.float64]:
    """(t,): how far the first candidate is ahead of the best of the others, in the measure's unit; below 0 where it is
    behind, -inf where it is not allowed, inf where no other one is."""
    sign = 1.0 if goal == "min" else -1.0
    costs = np.where(shaken.allowed, sign * shaken.values[:, 0], np.inf)
    with np.errstate(invalid="ignore"):
        leads = costs[1:].min(axis=0) - costs[0]
    return np.where(np.isinf(costs[0]), -np.inf, leads)
