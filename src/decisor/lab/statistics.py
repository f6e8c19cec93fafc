"""The statistics of an evaluation: headline figures, comparisons and curves of accuracy.

Four outcomes are never merged with a wrong answer or with each other. Accuracy is the mean over cases of the share of
a case's tries that are right, among tries judged or over their budget; an unscored or crashed outcome is
left out of it and counted beside it, and ``least`` and ``most`` say what accuracy would be were all of those wrong, or
right.

A pair of a comparison is a case that both sides were counted on; pairs with a crash or an unscored answer on either
side are left out and counted. With one try at each case p is McNemar's exact test; with repeats it is a sign-flip test
on the difference of each case's means. Over several pairs p is corrected by Holm.

A curve shows accuracy by calls allowed, a count such as replans, a tag, or the Elo of the answer; each point has its
number of outcomes and interval. Shares are 0 to 1. Whatever draws at random takes a seed and gives the same figures
for the same seed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from decisor.lab.benchmark import Outcome, State
from decisor.system.wording import wilson_interval_95
from decisor.types import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


CELLS = 4_000_000
"""Draws held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


def wilson(right: float, total: int) -> Interval:
    """Return Wilson's score interval of a share (Wilson 1927). It also holds near 0 and 1 and for few cases.

    >>> interval = wilson(81, 263)  # Newcombe 1998, table I: 0.2553 to 0.3662
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.2553, 0.3662)
    """
    return Interval(*wilson_interval_95(right / total, total)) if total else Interval(0.0, 1.0)


def share_over_cases(tries_by_case: Mapping[str, Sequence[bool]]) -> tuple[float, Interval]:
    """Average over cases the share of a case's tries that are right, with the interval of that mean.

    The interval is Wilson's where each case has one try. Several answers to one case resemble each other, so it is then
    a bootstrap over cases; where all cases have the same share, which leaves a bootstrap no width, Wilson's again.
    """
    shares = [sum(tries) / len(tries) for tries in tries_by_case.values()]
    right = math.fsum(shares)
    # A bootstrap of equal values has no width, which would claim certainty.
    if len(set(shares)) == 1 or all(len(tries) == 1 for tries in tries_by_case.values()):
        return right / len(shares), wilson(right, len(shares))
    return right / len(shares), bootstrap(shares)


def mcnemar(only_one: int, only_other: int) -> float:
    """Return the exact two-sided p that two techniques are right equally often.

    It takes the cases in which just one of them is right.

    Twice the smaller tail of a fair binomial (McNemar 1947, exact form), at most 1.

    >>> mcnemar(1, 9)
    0.021484375
    """
    total = only_one + only_other
    # Whole numbers until the last division: binomials of thousands of cases overflow a float.
    tail = term = 1
    for k in range(min(only_one, only_other)):
        term = term * (total - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << total))


def sign_flip(differences: Sequence[float], rounds: int = 20_000, seed: int = 0) -> float:
    """Return the two-sided p that paired differences lie around zero.

    Each case's difference could as well have had the other sign (Fisher's randomisation test). For differences of 1, 0
    and -1 it estimates ``mcnemar``.

    The draw that was observed counts as one, so p is never zero.
    """
    import numpy as np

    # A difference of 0 stays 0 with either sign.
    nonzero = np.asarray([value for value in differences if value], dtype=np.float64)
    if not len(nonzero):
        return 1.0
    # Sums of the same numbers in another order differ in the last bits: a tie must count as reached.
    reached = abs(nonzero.sum()) * (1 - 1e-12)

    def flipped(rng: np.random.Generator, many: int) -> NDArray[np.float64]:
        signs = rng.integers(0, 2, (many, len(nonzero)), dtype=np.int8)
        return (2.0 * signs - 1.0) @ nonzero

    sums = _draw_rounds(flipped, rounds, len(nonzero), seed)
    return (1 + int(np.count_nonzero(np.abs(sums) >= reached))) / (1 + rounds)


def bootstrap(values: Sequence[float], rounds: int = 10_000, seed: int = 0) -> Interval:
    """Return the percentile bootstrap interval of a mean (Efron 1979).

    It is paired if ``values`` are differences by case.

    Few distinct values are drawn as counts (one multinomial a round), which is the same distribution and far faster.
    """
    import numpy as np

    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return Interval(math.nan, math.nan)
    distinct, counts = np.unique(sample, return_counts=True)

    def means(rng: np.random.Generator, many: int) -> NDArray[np.float64]:
        # Shares of a few tries have few distinct values; continuous metrics have as many as cases.
        if len(distinct) * 8 <= len(sample):
            draws = rng.multinomial(len(sample), counts / len(sample), many)
            return np.asarray(draws @ distinct / len(sample), dtype=np.float64)
        return np.asarray(sample[rng.integers(0, len(sample), (many, len(sample)))].mean(axis=1), dtype=np.float64)

    low, high = np.quantile(_draw_rounds(means, rounds, len(sample), seed), (0.025, 0.975))
    return Interval(float(low), float(high))


def _draw_rounds(
    draw: Callable[[np.random.Generator, int], NDArray[np.float64]], rounds: int, width: int, seed: int
) -> NDArray[np.float64]:
    """Draw ``rounds`` times, in pieces that fit in memory; return shape (rounds,)."""
    import numpy as np

    rng = np.random.default_rng(seed)
    step = max(1, CELLS // max(1, width))
    return np.concatenate([draw(rng, min(step, rounds - at)) for at in range(0, rounds, step)])


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Correct p values for testing several at once (Holm 1979), in the order given.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    corrected = [0.0] * len(ps)
    largest = 0.0
    # The running maximum keeps corrected values in the order of the raw ones.
    for place, at in enumerate(sorted(range(len(ps)), key=lambda at: ps[at])):
        largest = max(largest, min(1.0, (len(ps) - place) * ps[at]))
        corrected[at] = largest
    return tuple(corrected)


def pass_hat_k(right: int, tries: int, k: int) -> float:
    """Return the chance that ``k`` tries are all right (pass^k), without bias, from ``right`` of ``tries``.

    Yao et al., "tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains", 2024.

    >>> round(pass_hat_k(2, 3, 2), 4)  # of the three pairs of three tries, one holds right ones alone
    0.3333
    """
    if not 0 < k <= tries or not 0 <= right <= tries:
        raise ValueError(f"Of {tries} tries, {k} cannot be drawn, or {right} cannot be right.")
    return math.comb(right, k) / math.comb(tries, k)


def pass_at_k(right: int, tries: int, k: int) -> float:
    """Return the chance that one of ``k`` tries is right (pass@k), without bias, from ``right`` of ``tries``.

    Chen et al., "Evaluating Large Language Models Trained on Code", 2021, equation 1.

    >>> round(pass_at_k(1, 3, 2), 4)  # of the pairs of three tries, two of three hold the right one
    0.6667
    """
    return 1.0 - pass_hat_k(tries - right, tries, k)


def kappa(one: Sequence[str], other: Sequence[str]) -> float | None:
    """Return Cohen's kappa: how far two raters agree beyond chance. None if chance alone agrees on everything.

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


STATES: tuple[State, ...] = ("right", "wrong", "over_budget", "unscored", "crashed")
FLAGS = ("plan_fallback", "degraded")
"""Counts that say that something went another way than planned: they are marks of a run too."""
METRIC_ROUNDS = 4_000
"""Bootstrap rounds for a metric's mean: there may be many metrics."""
COUNTED = frozenset({"right", "wrong", "over_budget"})
"""The states that accuracy is about."""

UNREAD = "unread_replies"


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The figures of one technique with one LLM on one benchmark, or on one group of its cases."""

    benchmark: str
    group: str
    """'' for all groups together."""
    technique: str
    model: str
    cases: int
    states: Mapping[State, int]
    """Number of outcomes in each state; a case has one outcome for each repeat."""
    accuracy: float | None
    """Mean over cases (``share_over_cases``). None if nothing was counted."""
    interval: Interval | None
    least: float
    """Accuracy if all unscored and crashed outcomes were wrong."""
    most: float
    """Accuracy if all of them were right."""
    metrics: Mapping[str, tuple[float, Interval]]
    """Mean of each metric over cases."""
    counts: Mapping[str, float]
    """Mean of each count over outcomes."""
    usage: Usage
    """The techniques' own usage."""
    seconds: float
    critical: float
    failures: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    tags_right: Mapping[str, int] = field(default_factory=dict)
    """Number of right outcomes with each tag; for a failure on the way, how many were mended."""
    stopped: Mapping[str, int] = field(default_factory=dict)
    pass_at: Mapping[int, float] = field(default_factory=dict)
    """pass@k by k, the mean over the cases with that many counted tries; empty without repeats."""
    pass_hat: Mapping[int, float] = field(default_factory=dict)
    """pass^k by k, in the same way."""
    beside: Mapping[str, Usage] = field(default_factory=dict)
    """Usage of judges and simulators, by role."""
    unmeasured: Mapping[str, int] = field(default_factory=dict)
    """Number of outcomes whose metric is no finite number; its mean leaves them out."""

    @property
    def unread(self) -> float:
        """Share of the LLM's replies that could not be read."""
        return self.counts.get(UNREAD, 0.0) * self.outcomes / self.usage.calls if self.usage.calls else 0.0

    @property
    def outcomes(self) -> int:
        return sum(self.states.values())

    @property
    def dollars(self) -> float | None:
        """Mean cost of an outcome."""
        return None if self.usage.dollars is None else self.usage.dollars / self.outcomes

    @property
    def counted(self) -> int:
        return sum(many for state, many in self.states.items() if state in COUNTED)


def summarise_outcomes(outcomes: Iterable[Outcome], by_group: bool = False) -> tuple[SummaryRow, ...]:
    """Summarise outcomes in rows, in order of first appearance.

    With ``by_group`` the row of each group follows that of all.
    """
    parts: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        parts[outcome.benchmark, outcome.technique, outcome.model].append(outcome)
    rows = []
    for part in parts.values():
        rows.append(build_summary_row(part))
        # A single group would repeat the row of all.
        groups = sorted({outcome.group for outcome in part} - {""}) if by_group else []
        if len(groups) > 1:
            rows += [build_summary_row([one for one in part if one.group == group], group) for group in groups]
    return tuple(rows)


def build_summary_row(part: Sequence[Outcome], group: str = "") -> SummaryRow:
    """Summarise all outcomes of one technique with one LLM on one benchmark, or one group of them."""
    first = part[0]
    states: dict[State, int] = {state: sum(one.state == state for one in part) for state in STATES}
    counted = [one for one in part if one.state in COUNTED]
    accuracy, interval = share_over_cases(tries_by_case(counted)) if counted else (None, None)
    roles = sorted({role for one in part for role in one.beside})
    return SummaryRow(
        benchmark=first.benchmark,
        group=group,
        technique=first.technique,
        model=first.model,
        cases=len({one.case for one in part}),
        states=states,
        accuracy=accuracy,
        interval=interval,
        least=mean(mean_by_case(part, lambda one: one.state == "right").values()),
        most=mean(mean_by_case(part, lambda one: one.state == "right" or one.state not in COUNTED).values()),
        metrics=summarise_metrics(part),
        counts=summarise_counts(part),
        usage=sum((one.usage for one in part), Usage()),
        seconds=mean(one.seconds for one in part),
        critical=mean(one.critical for one in part),
        failures=count_names(one.failure for one in part),
        tags=count_tags(part),
        tags_right=count_tags(one for one in part if one.state == "right"),
        stopped=count_names(one.stopped for one in part),
        pass_at=mean_by_tries(pass_at_k, tries_by_case(counted)),
        pass_hat=mean_by_tries(pass_hat_k, tries_by_case(counted)),
        beside={role: sum((one.beside[role] for one in part if role in one.beside), Usage()) for role in roles},
        unmeasured=count_names(name for one in part for name, value in one.metrics.items() if not math.isfinite(value)),
    )


def mean_by_case(part: Iterable[Outcome], value: Callable[[Outcome], float]) -> dict[str, float]:
    """Compute the mean of ``value`` over the repeats of each case."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for one in part:
        by_name[one.case].append(value(one))
    return {case: math.fsum(values) / len(values) for case, values in by_name.items()}


def metric_by_case(part: Iterable[Outcome], name: str) -> dict[str, float]:
    """Compute the mean of a metric over the repeats of each case, without outcomes that lack it as a finite number."""
    measured = [one for one in part if math.isfinite(one.metrics.get(name, math.nan))]
    return mean_by_case(measured, lambda one: one.metrics[name])


def tries_by_case(
    part: Iterable[Outcome], is_right: Callable[[Outcome], bool] = lambda one: one.state == "right"
) -> dict[str, list[bool]]:
    """Gather whether each try at a case was right."""
    tries: dict[str, list[bool]] = defaultdict(list)
    for one in part:
        tries[one.case].append(is_right(one))
    return tries


def summarise_metrics(part: Sequence[Outcome]) -> dict[str, tuple[float, Interval]]:
    """Compute mean and bootstrap interval of each metric over cases.

    Outcomes without the metric as a finite number are left out.
    """
    means = {}
    for name in sorted({name for one in part for name in one.metrics}):
        values = list(metric_by_case(part, name).values())
        if values:
            means[name] = (mean(values), bootstrap(values, METRIC_ROUNDS))
    return means


def summarise_counts(part: Sequence[Outcome]) -> dict[str, float]:
    """Compute the mean of each count, over the outcomes that have it.

    Replies that could not be read are 0 for an outcome without the count.
    """
    names = sorted({name for one in part for name in one.counts} - {UNREAD})
    counts = {name: mean(one.counts[name] for one in part if name in one.counts) for name in names}
    # Absent means that no reply was unreadable; for any other count it means that it does not apply.
    unread = [one.counts.get(UNREAD, 0) for one in part]
    return counts | ({UNREAD: mean(unread)} if any(unread) else {})


def mean_by_tries(chance: Callable[[int, int, int], float], tries: Mapping[str, Sequence[bool]]) -> dict[int, float]:
    """Compute the mean over cases of ``chance(right, tries, k)``, by k; empty without repeats."""
    most = max(map(len, tries.values()), default=0)
    return {
        k: mean(chance(sum(rights), len(rights), k) for rights in tries.values() if len(rights) >= k)
        for k in range(1, most + 1)
        if most > 1
    }


def count_tags(part: Iterable[Outcome]) -> dict[str, int]:
    """Count the outcomes that have each tag, or a count of ``FLAGS`` above 0."""
    return count_names(
        name for one in part for name in dict.fromkeys((*one.tags, *(name for name in FLAGS if one.counts.get(name))))
    )


def count_names(names: Iterable[str]) -> dict[str, int]:
    """Count each name, most frequent first; empty names are left out."""
    frequencies = Counter(name for name in names if name)
    return dict(sorted(frequencies.items(), key=lambda item: (-item[1], item[0])))


def mean(values: Iterable[float]) -> float:
    numbers = [float(value) for value in values]
    return math.fsum(numbers) / len(numbers) if numbers else 0.0


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """A technique with an LLM that a comparison is about."""

    technique: str
    model: str

    def __str__(self) -> str:
        return f"{self.technique}, {self.model}" if self.model else self.technique


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A paired comparison of two sides on the cases that both were counted on."""

    benchmark: str
    one: ComparedSide
    other: ComparedSide
    pairs: int
    left_out: int
    """Number of shared cases with a crash or an unscored answer on either side."""
    only_one: int
    """Number of cases that ``one`` did better on."""
    only_other: int
    difference: float
    """``one`` minus ``other``, the mean over pairs."""
    interval: Interval
    p: float
    p_holm: float
    """p corrected for all comparisons of the same benchmark."""


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """A case that ended differently in a second run."""

    benchmark: str
    case: str
    side: ComparedSide
    repeat: int
    before: State
    after: State


def compare_outcomes(one: Sequence[Outcome], other: Sequence[Outcome]) -> PairedComparison | None:
    """Compare the outcomes of two sides on one benchmark; None if they share no counted case."""
    if not one or not other:
        return None
    values, others = accuracy_by_case(one), accuracy_by_case(other)
    shared = [case for case in values if case in others]
    if not shared:
        return None
    cases = {outcome.case for outcome in one} & {outcome.case for outcome in other}
    differences = [values[case] - others[case] for case in shared]
    better, worse = sum(value > 0 for value in differences), sum(value < 0 for value in differences)
    # With one try at each case a difference is -1, 0 or 1, and the exact test applies.
    single = all(value in (-1.0, 0.0, 1.0) for value in differences)
    p = mcnemar(better, worse) if single else sign_flip(differences)
    return PairedComparison(
        benchmark=one[0].benchmark,
        one=side(one[0]),
        other=side(other[0]),
        pairs=len(shared),
        left_out=len(cases) - len(shared),
        only_one=better,
        only_other=worse,
        difference=mean(differences),
        interval=bootstrap(differences),
        p=p,
        p_holm=p,
    )


def accuracy_by_case(part: Iterable[Outcome]) -> dict[str, float]:
    """Return the share of right tries of each counted case."""
    return mean_by_case((one for one in part if one.state in COUNTED), lambda one: one.state == "right")


def side(outcome: Outcome) -> ComparedSide:
    return ComparedSide(outcome.technique, outcome.model)


def compare_all_pairs(outcomes: Iterable[Outcome]) -> tuple[PairedComparison, ...]:
    """Compare every two sides of each benchmark, the better one first. Corrected by Holm within the benchmark."""
    outcomes = list(outcomes)
    comparisons: list[PairedComparison] = []
    for benchmark in dict.fromkeys(outcome.benchmark for outcome in outcomes):
        sides = sides_of(outcomes, benchmark).values()
        pairs = [compare_outcomes(one, other) for one, other in combinations(sides, 2)]
        comparisons += corrected([put_better_first(one) for one in pairs if one])
    return tuple(comparisons)


def corrected(comparisons: Sequence[PairedComparison]) -> list[PairedComparison]:
    return [replace(one, p_holm=p) for one, p in zip(comparisons, holm([one.p for one in comparisons]), strict=True)]


def put_better_first(comparison: PairedComparison) -> PairedComparison:
    """Swap the sides of a comparison if that puts the better one first."""
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


def compare_with_earlier_run(after: Sequence[Outcome], before: Sequence[Outcome]) -> tuple[PairedComparison, ...]:
    """Compare each side of a run with the same side of an earlier one.

    If both runs have just one side on a benchmark, these two are compared, so that a change of model or setting is seen
    too.
    """
    comparisons = []
    for benchmark in dict.fromkeys(outcome.benchmark for outcome in after):
        new, old = sides_of(after, benchmark), sides_of(before, benchmark)
        pairs = [(new[name], old[name]) for name in new if name in old]
        # Another model has another name, and so no side of the same name.
        if not pairs and len(new) == len(old) == 1:
            pairs = list(zip(new.values(), old.values(), strict=True))
        results = [compare_outcomes(one, other) for one, other in pairs]
        comparisons += corrected([one for one in results if one])
    return tuple(comparisons)


def sides_of(outcomes: Iterable[Outcome], benchmark: str) -> dict[ComparedSide, list[Outcome]]:
    parts: dict[ComparedSide, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.benchmark == benchmark:
            parts[side(outcome)].append(outcome)
    return parts


def find_changed_outcomes(after: Iterable[Outcome], before: Iterable[Outcome]) -> tuple[OutcomeChange, ...]:
    """Find the outcomes whose state differs from the earlier one of the same key. In the order of ``after``."""
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
