"""The candidates in every scenario of the file: who wins where, who is best in the worst case, least regret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decisor.decision_models.explain import say
from decisor.decision_models.machine import OpenModel
from decisor.decision_models.no_outcome import no_outcome
from decisor.decision_models.outcomes import Outcomes
from decisor.types import Goal, Scene

NOW = "now"


@dataclass(frozen=True)
class SideBySide:
    """``names``: 'now' and the scenarios, s in all. ``values``: (n, s), the first measure of n candidates, nan where
    a rule or its outcome shuts one out. ``scenes``: who wins in each. ``note``: what is to be said of them, ''."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    scenes: tuple[Scene, ...]
    note: str = ""


def side_by_side(model: OpenModel, now: Outcomes) -> SideBySide:
    """``now``: of all candidates as the data are. Raises ToolError where a statement fails."""
    names = (NOW, *(one.name for one in model.model.scenarios))
    every = [now, *(model.outcomes(now.candidates.tolist(), scenario=name, most=1) for name in names[1:])]
    order = now.order(model.model.first.goal)
    usual = int(order[0]) if len(order) else None
    columns = [np.where(one.allowed, one.values[:, 0], np.nan) for one in every]
    scenes = tuple(scene(model, name, one, usual) for name, one in zip(names, every, strict=True))
    note = next((f"in {name} {one.note}" for name, one in zip(names, every, strict=True) if one.note), "")
    return SideBySide(names, np.stack(columns, axis=1), scenes, note)


def scene(model: OpenModel, name: str, outcomes: Outcomes, usual: int | None) -> Scene:
    """``usual``: the place of who wins now."""
    order = outcomes.order(model.model.first.goal)
    best = model.candidates.name(int(outcomes.candidates[order[0]])) if len(order) else ""
    value = float(outcomes.values[order[0], 0]) if len(order) else None
    if usual is None:
        return Scene(name, best, value, None)
    if outcomes.allowed[usual]:
        return Scene(name, best, value, float(outcomes.values[usual, 0]))
    number = int(outcomes.candidates[usual])
    rules = [rule for at, rule in enumerate(outcomes.rules) if outcomes.broken[usual, at]]
    why = "; ".join(f"{rule}: {say(model.model, rule, outcomes.reasons.get((number, rule)))}" for rule in rules)
    return Scene(name, best, value, None, why or no_outcome(model, number, float(outcomes.values[usual, 0])))


def worst_cases(values: NDArray[np.float64], goal: Goal) -> NDArray[np.float64]:
    """Of n candidates in s scenarios: (n,), each one's worst outcome, nan where it is shut out in one of them.

    >>> worst_cases(np.array([[1.0, 9.0], [4.0, 5.0], [np.nan, 0.0]]), "min").tolist()
    [9.0, 5.0, nan]
    """
    return np.asarray(values.max(axis=1) if goal == "min" else values.min(axis=1))


def regrets(values: NDArray[np.float64], goal: Goal) -> NDArray[np.float64]:
    """(n,): how far each one is behind the best of a scenario, where that is most; nan where it is shut out in one.

    >>> regrets(np.array([[1.0, 9.0], [4.0, 5.0]]), "min").tolist()
    [4.0, 3.0]
    """
    costs = values if goal == "min" else -values
    best = np.nanmin(np.where(np.isnan(costs), np.inf, costs), axis=0)
    return np.asarray((costs - best).max(axis=1))


def first_place(values: NDArray[np.float64], goal: Goal) -> int | None:
    """Where the best number stands; None where there is none."""
    if np.isnan(values).all():
        return None
    return int(np.nanargmin(values) if goal == "min" else np.nanargmax(values))
