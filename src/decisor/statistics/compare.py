"""Techniques against each other on the same cases, and a run against another run.

A pair is a case that both sides were counted on (see ``summary``); pairs with a crash or an unscored answer on either
side are left out and counted. With one try at each case p is McNemar's exact test; with repeats it is a sign-flip test
on the difference of each case's means. Over several pairs p is corrected by Holm.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from decisor.outcome import Outcome, State
from decisor.statistics.estimates import Interval, bootstrap, holm, mcnemar, sign_flip
from decisor.statistics.summary import COUNTED, by_case, mean

RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Side:
    """Whom a comparison is about."""

    technique: str
    model: str

    def __str__(self) -> str:
        return f"{self.technique}, {self.model}" if self.model else self.technique


@dataclass(frozen=True, slots=True)
class Comparison:
    """``one`` minus ``other`` in ``metric`` (``right`` is accuracy). ``only_one``: cases that ``one`` alone did better
    on. ``p_holm`` is corrected for all comparisons of the same benchmark and metric."""

    benchmark: str
    one: Side
    other: Side
    metric: str
    pairs: int
    left_out: int
    only_one: int
    only_other: int
    difference: float
    interval: Interval
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """A case that ended differently in a second run."""

    benchmark: str
    case: str
    side: Side
    repeat: int
    before: State
    after: State


def compare(one: Sequence[Outcome], other: Sequence[Outcome], metric: str = RIGHT) -> Comparison | None:
    """Outcomes of two sides on one benchmark; None where they share no counted case."""
    if not one or not other:
        return None
    values, others = values_of(one, metric), values_of(other, metric)
    shared = [case for case in values if case in others]
    if not shared:
        return None
    cases = {outcome.case for outcome in one} & {outcome.case for outcome in other}
    differences = [values[case] - others[case] for case in shared]
    better, worse = sum(value > 0 for value in differences), sum(value < 0 for value in differences)
    single = all(value in (-1.0, 0.0, 1.0) for value in differences) and metric == RIGHT
    p = mcnemar(better, worse) if single else sign_flip(differences)
    return Comparison(
        benchmark=one[0].benchmark,
        one=side(one[0]),
        other=side(other[0]),
        metric=metric,
        pairs=len(shared),
        left_out=len(cases) - len(shared),
        only_one=better,
        only_other=worse,
        difference=mean(differences),
        interval=bootstrap(differences),
        p=p,
        p_holm=p,
    )


def values_of(part: Iterable[Outcome], metric: str) -> dict[str, float]:
    """The value of each counted case, the mean over its repeats."""
    counted = [one for one in part if one.state in COUNTED]
    if metric == RIGHT:
        return by_case(counted, lambda one: one.state == "right")
    measured = [one for one in counted if math.isfinite(one.metrics.get(metric, math.nan))]
    return by_case(measured, lambda one: one.metrics[metric])


def side(outcome: Outcome) -> Side:
    return Side(outcome.technique, outcome.model)


def all_pairs(outcomes: Iterable[Outcome], metric: str = RIGHT) -> tuple[Comparison, ...]:
    """Every two sides of each benchmark, the better one first, corrected by Holm within the benchmark."""
    parts: dict[str, dict[Side, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        parts[outcome.benchmark][side(outcome)].append(outcome)
    comparisons: list[Comparison] = []
    for sides in parts.values():
        pairs = [compare(one, other, metric) for one, other in combinations(sides.values(), 2)]
        comparisons += corrected([facing_up(one) for one in pairs if one])
    return tuple(comparisons)


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    return [replace(one, p_holm=p) for one, p in zip(comparisons, holm([one.p for one in comparisons]), strict=True)]


def facing_up(comparison: Comparison) -> Comparison:
    """The same comparison with the better side first."""
    if comparison.difference >= 0:
        return comparison
    return replace(
        comparison,
        one=comparison.other,
        other=comparison.one,
        only_one=comparison.only_other,
        only_other=comparison.only_one,
        difference=-comparison.difference,
        interval=Interval(-comparison.interval.high, -comparison.interval.low),
    )


def against(after: Sequence[Outcome], before: Sequence[Outcome], metric: str = RIGHT) -> tuple[Comparison, ...]:
    """Each side of a run against the same side of an earlier one; where both runs have just one side on a benchmark,
    these two, so that a change of model or setting is compared too."""
    comparisons = []
    for benchmark in dict.fromkeys(outcome.benchmark for outcome in after):
        new, old = sides_of(after, benchmark), sides_of(before, benchmark)
        pairs = [(new[name], old[name]) for name in new if name in old]
        if not pairs and len(new) == len(old) == 1:
            pairs = list(zip(new.values(), old.values(), strict=True))
        results = [compare(one, other, metric) for one, other in pairs]
        comparisons += corrected([one for one in results if one])
    return tuple(comparisons)


def sides_of(outcomes: Iterable[Outcome], benchmark: str) -> dict[Side, list[Outcome]]:
    parts: dict[Side, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.benchmark == benchmark:
            parts[side(outcome)].append(outcome)
    return parts


def changed(after: Iterable[Outcome], before: Iterable[Outcome]) -> tuple[OutcomeChange, ...]:
    """The outcomes with the same key whose state is another now, in the order of ``after``."""
    old = {outcome.key: outcome.state for outcome in before}
    return tuple(
        OutcomeChange(
            benchmark=one.benchmark,
            case=one.case,
            side=side(one),
            repeat=one.repeat,
            before=old[one.key],
            after=one.state,
        )
        for one in after
        if one.key in old and old[one.key] != one.state
    )
