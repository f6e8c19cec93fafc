"""Headline figures of a run: one row for each benchmark, group, technique and model.

Four outcomes are never merged with a wrong answer or with each other. Accuracy is the mean over cases of the share of a
case's tries that are right, among those that were judged or ran over their budget; what was unscored or crashed is left
out of it and counted beside it, and ``least`` and ``most`` say what accuracy would be were all of that wrong, or right.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from decisor.outcome import Outcome, State
from decisor.statistics.estimates import Interval, bootstrap, deviation, pass_at_k, share_over_cases
from decisor.types import Usage

STATES: tuple[State, ...] = ("right", "wrong", "over_budget", "unscored", "crashed")
FLAGS = ("plan_fallback", "degraded")
"""Counts that say that something went another way than planned: they are marks of a run too."""
METRIC_ROUNDS = 4_000
"""Bootstrap rounds for a metric's mean: there may be many metrics."""
COUNTED = frozenset({"right", "wrong", "over_budget"})
"""The states that accuracy is about."""

UNREAD = "unread_replies"


@dataclass(frozen=True, slots=True)
class Repeats:
    """What several tries at each case show: accuracy by repeat, its sample deviation, and pass@k by k (the mean over
    the cases with that many counted tries)."""

    accuracies: tuple[float, ...]
    deviation: float
    pass_at: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """``group`` is '' for all groups together. ``states`` count outcomes; a case has one for each repeat. Means of
    counts and times are over outcomes; ``dollars`` is None where a price is unknown.

    ``accuracy``, its ``interval`` and ``metrics`` are means over cases (``share_over_cases``). ``unmeasured``: how many
    outcomes have a metric that is no finite number, which is left out of its mean. ``tags_right``: how many of the
    outcomes with a tag were right (for a failure on the way: how many were mended). ``usage`` is the techniques' own;
    ``beside``: what judges and simulators cost, by name.
    """

    benchmark: str
    group: str
    technique: str
    model: str
    cases: int
    states: Mapping[State, int]
    accuracy: float | None
    interval: Interval | None
    least: float
    most: float
    metrics: Mapping[str, tuple[float, Interval]]
    counts: Mapping[str, float]
    usage: Usage
    seconds: float
    critical: float
    failures: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    tags_right: Mapping[str, int] = field(default_factory=dict)
    stopped: Mapping[str, int] = field(default_factory=dict)
    repeats: Repeats | None = None
    beside: Mapping[str, Usage] = field(default_factory=dict)
    unmeasured: Mapping[str, int] = field(default_factory=dict)

    @property
    def unread(self) -> float:
        """The share of the LM's replies that could not be read."""
        return self.counts.get(UNREAD, 0.0) * self.outcomes / self.usage.calls if self.usage.calls else 0.0

    @property
    def outcomes(self) -> int:
        return sum(self.states.values())

    @property
    def counted(self) -> int:
        return sum(many for state, many in self.states.items() if state in COUNTED)


def summarise(outcomes: Iterable[Outcome], by_group: bool = False) -> tuple[SummaryRow, ...]:
    """Rows in order of first appearance; with ``by_group`` the row of each group follows that of all."""
    parts: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        parts[outcome.benchmark, outcome.technique, outcome.model].append(outcome)
    rows = []
    for part in parts.values():
        rows.append(row(part))
        groups = sorted({outcome.group for outcome in part} - {""}) if by_group else []
        if len(groups) > 1:
            rows += [row([one for one in part if one.group == group], group) for group in groups]
    return tuple(rows)


def row(part: Sequence[Outcome], group: str = "") -> SummaryRow:
    """All outcomes of one technique with one model on one benchmark, or a group of it."""
    first = part[0]
    states: dict[State, int] = {state: sum(one.state == state for one in part) for state in STATES}
    counted = [one for one in part if one.state in COUNTED]
    accuracy, interval = share_over_cases(tries_by_case(counted)) if counted else (None, None)
    usage = Usage()
    for one in part:
        usage = usage + one.usage
    return SummaryRow(
        benchmark=first.benchmark,
        group=group,
        technique=first.technique,
        model=first.model,
        cases=len({one.case for one in part}),
        states=states,
        accuracy=accuracy,
        interval=interval,
        least=mean(by_case(part, lambda one: one.state == "right").values()),
        most=mean(by_case(part, lambda one: one.state == "right" or one.state not in COUNTED).values()),
        metrics=metrics_of(part),
        counts=counts_of(part),
        usage=usage,
        seconds=mean(one.seconds for one in part),
        critical=mean(one.critical for one in part),
        failures=tally(one.failure for one in part),
        tags=marked(part),
        tags_right=marked(one for one in part if one.state == "right"),
        stopped=tally(one.stopped for one in part),
        repeats=repeats_of(counted),
        beside=beside_of(part),
        unmeasured=tally(name for one in part for name, value in one.metrics.items() if not math.isfinite(value)),
    )


def beside_of(part: Sequence[Outcome]) -> dict[str, Usage]:
    """What the benchmark's own LMs cost together, by who was asked."""
    names = sorted({name for one in part for name in one.beside})
    return {name: sum((one.beside[name] for one in part if name in one.beside), Usage()) for name in names}


def by_case(part: Iterable[Outcome], value: Callable[[Outcome], float]) -> dict[str, float]:
    """The mean of ``value`` over the repeats of each case."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for one in part:
        by_name[one.case].append(value(one))
    return {case: math.fsum(values) / len(values) for case, values in by_name.items()}


def percent_of_cases(part: Iterable[Outcome], value: Callable[[Outcome], float]) -> str:
    """Return the mean of ``value`` over cases, and of how many; '' of none."""
    values = list(by_case(part, value).values())
    return f"{100 * mean(values):.1f} % of {len(values)}" if values else ""


def tries_by_case(
    part: Iterable[Outcome], is_right: Callable[[Outcome], bool] = lambda one: one.state == "right"
) -> dict[str, list[bool]]:
    """Gather whether each try at a case was right."""
    tries: dict[str, list[bool]] = defaultdict(list)
    for one in part:
        tries[one.case].append(is_right(one))
    return tries


def metrics_of(part: Sequence[Outcome]) -> dict[str, tuple[float, Interval]]:
    """Mean and bootstrap interval over cases, of the outcomes that have the metric as a finite number."""
    means = {}
    for name in sorted({name for one in part for name in one.metrics}):
        measured = [one for one in part if math.isfinite(one.metrics.get(name, math.nan))]
        values = list(by_case(measured, lambda one: one.metrics[name]).values())  # noqa: B023
        if values:
            means[name] = (mean(values), bootstrap(values, METRIC_ROUNDS))
    return means


def counts_of(part: Sequence[Outcome]) -> dict[str, float]:
    """The mean of each count, over the outcomes that have it; replies that could not be read are 0 where none was."""
    names = sorted({name for one in part for name in one.counts} - {UNREAD})
    counts = {name: mean(one.counts[name] for one in part if name in one.counts) for name in names}
    unread = [one.counts.get(UNREAD, 0) for one in part]
    return counts | ({UNREAD: mean(unread)} if any(unread) else {})


def repeats_of(counted: Sequence[Outcome]) -> Repeats | None:
    numbers = sorted({one.repeat for one in counted})
    if len(numbers) < 2:
        return None
    accuracies = tuple(mean(one.state == "right" for one in counted if one.repeat == number) for number in numbers)
    tries = tries_by_case(counted)
    pass_at = {
        k: mean(pass_at_k(sum(rights), len(rights), k) for rights in tries.values() if len(rights) >= k)
        for k in range(1, max(len(rights) for rights in tries.values()) + 1)
    }
    return Repeats(accuracies, deviation(accuracies), pass_at)


def marked(part: Iterable[Outcome]) -> dict[str, int]:
    """How many outcomes have each tag, or a count of ``FLAGS`` above 0."""
    return tally(
        name for one in part
        for name in dict.fromkeys((*one.tags, *(name for name in FLAGS if one.counts.get(name))))
    )  # fmt: skip


def tally(names: Iterable[str]) -> dict[str, int]:
    """How often each name comes, most frequent first, empty ones left out."""
    frequencies = Counter(name for name in names if name)
    return dict(sorted(frequencies.items(), key=lambda item: (-item[1], item[0])))


def mean(values: Iterable[float]) -> float:
    numbers = [float(value) for value in values]
    return math.fsum(numbers) / len(numbers) if numbers else 0.0
