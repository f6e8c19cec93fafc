"""Curves of an evaluation: accuracy by budget, by calls and by cost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from decisor.lab.benchmark import Outcome
from decisor.lab.statistics import COUNTED, Interval, metric_by_case, share_over_cases, tries_by_case

STEPS, MOST_POINTS = (1, 2, 5), 12


DECILES, LEAST = 10, 5


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A point of a curve of accuracy."""

    at: float
    """Place on the axis."""
    right: int
    """Number of right outcomes."""
    total: int
    """Number of outcomes."""
    share: float
    """Accuracy, the mean over the cases of these outcomes."""
    interval: Interval
    label: str = ""


def build_curve_point(
    at: float,
    part: Sequence[Outcome],
    label: str = "",
    is_right: Callable[[Outcome], bool] = lambda one: one.state == "right",
) -> CurvePoint:
    """Compute accuracy as ``summary`` does. part: outcomes that count, at least one."""
    share, interval = share_over_cases(tries_by_case(part, is_right))
    return CurvePoint(at, sum(map(is_right, part)), len(part), share, interval, label)


def was_right_by(outcome: Outcome, calls: int) -> bool:
    """Return whether the answer at hand after ``calls`` calls was right.

    It is the last snapshot by then, or the end if the run had ended. A run that had no answer yet was not right; one
    without snapshots had none before its end.
    """
    # A run that had ended by then keeps its final answer.
    if outcome.usage.calls <= calls:
        return outcome.state == "right"
    snapshots_by_then = [at for at in outcome.snapshots if at <= calls]
    return bool(snapshots_by_then) and outcome.snapshots[max(snapshots_by_then)]


def compute_budget_curve(part: Iterable[Outcome], limits: Sequence[int]) -> tuple[CurvePoint, ...]:
    """Compute the accuracy if each run had been cut at so many calls, for each of ``limits``."""
    counted = [one for one in part if one.state in COUNTED]
    return tuple(
        build_curve_point(limit, counted, is_right=lambda one: was_right_by(one, limit))  # noqa: B023
        for limit in limits
        if counted
    )


def choose_curve_limits(outcomes: Iterable[Outcome]) -> tuple[int, ...]:
    """Choose the numbers of calls for a budget curve. They are the snapshots' own, else up to 12 round numbers.

    Empty where no run made a call.
    """
    runs = list(outcomes)
    if snapshot_calls := sorted({at for one in runs for at in one.snapshots}):
        return tuple(snapshot_calls)
    last = max((one.usage.calls for one in runs), default=0)
    sizes = (base * 10**power for power in range(9) for base in STEPS)
    step = next(size for size in sizes if size * MOST_POINTS >= last)
    return tuple(range(step, last + step, step)) if last else ()


def accuracy_by_count(part: Iterable[Outcome], name: str) -> tuple[CurvePoint, ...]:
    """Compute the accuracy by the value of a count, such as ``replans`` or ``depth``."""
    groups: dict[int, list[Outcome]] = defaultdict(list)
    for one in part:
        if one.state in COUNTED and name in one.counts:
            groups[one.counts[name]].append(one)
    return tuple(build_curve_point(count, group) for count, group in sorted(groups.items()))


def accuracy_by_kind(
    part: Iterable[Outcome], names: Sequence[str], kind: Callable[[Outcome], str]
) -> tuple[CurvePoint, ...]:
    """Compute the accuracy of each kind of outcome that occurs, in the order of ``names``."""
    counted = [one for one in part if one.state in COUNTED]
    groups = [(at, name, [one for one in counted if kind(one) == name]) for at, name in enumerate(names)]
    return tuple(build_curve_point(at, group, name) for at, name, group in groups if group)


def accuracy_by_decile(
    outcomes: Iterable[Outcome], label: Callable[[Outcome], str] = lambda one: one.technique
) -> dict[str, tuple[CurvePoint, ...]]:
    """Compute the accuracy by the rating of answers, for cases in ten equal parts.

    The rating is how sure the technique was.

    The cases of a technique that has the metric ``elo`` are scaled to 0..1 and sorted (ties in case order). Where
    just one technique rates, the others' accuracy on the same parts stands beside (RaD-Agent's figure on Elo scores);
    where several do, each has its own parts. A point lies at the mean rating of its part.
    """
    by_label: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        if one.state in COUNTED:
            by_label[label(one)].append(one)
    rated = {
        name: {one.case: one.metrics["elo"] for one in part if math.isfinite(one.metrics.get("elo", math.nan))}
        for name, part in by_label.items()
    }
    raters = {name: ratings for name, ratings in rated.items() if ratings}
    curves = {}
    for name, part in by_label.items():
        # Where one technique rates, its parts serve all: that shows whether hard cases for it are hard for others.
        ratings = raters.get(name) or (next(iter(raters.values())) if len(raters) == 1 else {})
        tenths = [(at, [one for one in part if one.case in cases]) for at, cases in _equal_parts(ratings)]
        curve = tuple(build_curve_point(at, some) for at, some in tenths if some)
        if curve:
            curves[name] = curve
    return curves


def sort_into_tenths(outcomes: Iterable[Outcome]) -> list[set[str]]:
    """Return the cases in ten parts of equal size, lowest rating first; empty if there are too few for ten."""
    parts = _equal_parts(metric_by_case(outcomes, "elo"))
    return [cases for _, cases in parts] if len(parts) == DECILES else []


def _equal_parts(ratings: dict[str, float]) -> list[tuple[float, set[str]]]:
    """Split cases into ten equal parts (to one case), lowest ratings first.

    Each has its mean scaled rating; there are fewer parts if one would have less than ``LEAST`` cases.
    """
    if not ratings:
        return []
    low, high = min(ratings.values()), max(ratings.values())
    order = sorted(ratings, key=lambda case: (ratings[case], case))
    # A tenth of a few cases has an interval too wide to read.
    many = min(DECILES, max(1, len(order) // LEAST))
    edges = [round(at * len(order) / many) for at in range(many + 1)]
    parts = [order[start:end] for start, end in pairwise(edges)]
    scaled = {case: (value - low) / (high - low) if high > low else 0.5 for case, value in ratings.items()}
    return [(sum(scaled[case] for case in part) / len(part), set(part)) for part in parts]
