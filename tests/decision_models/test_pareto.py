"""The front against the definition, pair by pair."""

import numpy as np
import pytest

from decisor.decision_models.ranking import find_pareto_front
from decisor.types import Goal


@pytest.mark.parametrize("goals", [("min", "min"), ("min", "max"), ("max", "min", "min")])
def test_the_front_is_who_nobody_beats(goals: tuple[Goal, ...]) -> None:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 9, (300, len(goals))).astype(float)  # with many equal ones
    values[rng.integers(0, 300, 20), 0] = np.nan
    costs = values * [1 if goal == "min" else -1 for goal in goals]
    beaten = [any((other <= one).all() and (other < one).any() for other in costs) for one in costs]
    expected = ~np.isnan(values).any(axis=1) & ~np.array(beaten)
    assert find_pareto_front(values, goals).tolist() == expected.tolist() and expected.any() and not expected.all()


def test_of_nobody_there_is_no_front() -> None:
    assert find_pareto_front(np.full((2, 2), np.nan), ("min", "max")).tolist() == [False, False]
