"""Several tries at a case are one statistic: numpy and scipy compute it here again, from the tries as a plain table."""

import math
from collections import defaultdict
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from decisor.lab.benchmark import Outcome, State
from decisor.lab.statistics import accuracy_by_count, build_summary_row, compare_outcomes, compute_budget_curve

OPEN: tuple[State, ...] = ("unscored", "crashed")
MISSES: tuple[State, ...] = ("wrong", "over_budget")
SIX: tuple[State, ...] = ("wrong",) * 6


def tries(case: str, *states: State, **more: object) -> list[Outcome]:
    made = [Outcome("bench", case, "t", "m", repeat, state) for repeat, state in enumerate(states)]
    return [replace(one, **more) for one in made]  # type: ignore[arg-type]


def random_tries(seed: int) -> list[Outcome]:
    """Cases of unlike difficulty with up to five tries, some of them crashed or not scored."""
    random = Random(seed)
    made = []
    for case in range(random.randint(5, 60)):
        ease, fate = random.random(), random.choice((0.0, 0.2, 0.7))
        states: list[State] = [
            random.choice(OPEN)
            if random.random() < fate
            else random.choice(MISSES)
            if random.random() > ease
            else "right"
            for _ in range(random.randint(1, 5))
        ]
        made += tries(f"c{case}", *states, counts={"replans": case % 2})
    return made


def shares_by_case(outcomes: list[Outcome], counted: bool = True) -> np.ndarray:
    """Of each case, how much of its tries was right, as a person would write it down."""
    rights: dict[str, list[float]] = defaultdict(list)
    for one in outcomes:
        if not counted or one.state not in OPEN:
            rights[one.case].append(1.0 if one.state == "right" else 0.0)
    return np.array([np.mean(values) for values in rights.values()])


def percentiles(shares: np.ndarray, seed: int = 7) -> tuple[float, float]:
    """A percentile bootstrap over cases, drawn here."""
    rng = np.random.default_rng(seed)
    means = [float(rng.choice(shares, len(shares)).mean()) for _ in range(4_000)]
    return float(np.percentile(means, 2.5)), float(np.percentile(means, 97.5))


def test_accuracy_lies_in_its_own_interval() -> None:
    """One case was tried six times and never right, four cases once, right in two: 2 of 10 tries, 2 of 5 cases."""
    part = tries("hard", *SIX) + tries("a", "right") + tries("b", "right")
    part += tries("c", "wrong") + tries("d", "wrong")
    summary = build_summary_row(part)
    assert summary.accuracy == pytest.approx(0.4)
    assert summary.interval is not None and summary.interval.low <= 0.4 <= summary.interval.high


@pytest.mark.parametrize("seed", range(12))
def test_accuracy_and_its_interval_are_of_the_mean_over_cases(seed: int) -> None:
    part = random_tries(seed)
    summary, shares = build_summary_row(part), shares_by_case(part)
    assert summary.accuracy == pytest.approx(shares.mean())
    low, high = percentiles(shares)
    assert summary.interval is not None and summary.accuracy is not None
    assert (summary.interval.low, summary.interval.high) == pytest.approx((low, high), abs=0.03)
    assert summary.interval.low <= summary.accuracy <= summary.interval.high


@pytest.mark.parametrize("seed", range(12))
def test_the_least_and_the_most_it_could_be_are_of_the_same_mean(seed: int) -> None:
    part = random_tries(seed)
    as_wrong = [replace(one, state="wrong") if one.state in OPEN else one for one in part]
    as_right = [replace(one, state="right") if one.state in OPEN else one for one in part]
    summary = build_summary_row(part)
    assert summary.least == pytest.approx(shares_by_case(as_wrong).mean())
    assert summary.most == pytest.approx(shares_by_case(as_right).mean())
    assert summary.accuracy is not None and summary.least <= summary.accuracy <= summary.most


@pytest.mark.parametrize("seed", range(12))
def test_a_difference_of_techniques_is_the_difference_of_their_accuracies(seed: int) -> None:
    part = random_tries(seed)
    other = [replace(one, technique="other", state="wrong" if one.state == "right" else one.state) for one in part]
    comparison, summary = compare_outcomes(part, other), build_summary_row(part)
    assert comparison is not None and summary.accuracy is not None
    assert comparison.difference == pytest.approx(summary.accuracy)


@pytest.mark.parametrize("seed", range(12))
def test_a_point_of_a_curve_is_the_mean_over_its_cases(seed: int) -> None:
    part = random_tries(seed)
    (end,) = compute_budget_curve(part, (99,))
    summary = build_summary_row(part)
    assert (end.share, end.interval) == (summary.accuracy, summary.interval)
    for point in accuracy_by_count(part, "replans"):
        group = [one for one in part if one.counts["replans"] == point.at]
        assert point.share == pytest.approx(shares_by_case(group).mean())
        assert point.interval.low <= point.share <= point.interval.high


def test_one_try_at_each_case_has_scipys_wilson_interval() -> None:
    stats = pytest.importorskip("scipy.stats")
    part = [one for at in range(40) for one in tries(f"c{at}", "right" if at % 3 else "wrong")]
    summary = build_summary_row(part)
    expected = stats.binomtest(26, 40).proportion_ci(method="wilson")
    assert summary.accuracy == 26 / 40 and summary.interval is not None
    assert (summary.interval.low, summary.interval.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("lost", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_no_number_is_left_out_of_its_mean_and_counted(lost: float) -> None:
    part = [
        replace(one, metrics={"f1": value})
        for case, values in (("a", (0.2, 0.6)), ("b", (1.0, lost)), ("c", (lost, lost)))
        for one, value in zip(tries(case, "right", "wrong"), values, strict=True)
    ]
    summary = build_summary_row(part)
    assert summary.metrics["f1"][0] == pytest.approx(np.mean([np.mean([0.2, 0.6]), 1.0]))
    assert summary.unmeasured == {"f1": 3}
