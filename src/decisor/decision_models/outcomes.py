"""What comes of candidates: their measures, and the rules they break with the rows that break them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from decisor.decision_models.schema import Measure, list_deciding
from decisor.types import Table, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

TIE = 1e-9
"""Relative; every order of summation agrees within it."""


@dataclass(frozen=True)
class Reason:
    """The rows that break a rule: their ``count``, and the first of them."""

    count: int
    rows: tuple[Mapping[str, Value], ...] = ()


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of n candidates by m measures and r rules and, if the inputs varied, t trials."""

    candidates: NDArray[np.int64]
    """Numbers of the candidates, (n,)."""
    measures: tuple[Measure, ...]
    rules: tuple[str, ...]
    values: NDArray[np.float64]
    """(n, m) or (n, m, t), nan where there is no outcome."""
    broken: NDArray[np.bool_]
    """Whether a candidate breaks a rule, (n, r) or (n, r, t)."""
    known: NDArray[np.bool_]
    """(n,) or (n, t), False where a limit ended the run before."""
    reasons: Mapping[tuple[int, str], Reason]
    """(candidate, rule) -> the rows that break it, where no input varied."""
    batched: bool = True
    """True if one statement computed all candidates, False if they were computed one by one."""
    reason: str = ""
    """Why the statements could not be batched."""
    stopped: str = ""
    """Limit that ended the run; '' if none did."""
    seconds: float = 0.0
    note: str = ""
    """Remark for a person; '' if there is none."""
    parts: Mapping[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)
    """(measure, part) -> its values; the part '' has no name."""

    def of(self, measure: str) -> NDArray[np.float64]:
        """Return the values of one measure, shape (n,) or (n, t)."""
        values: NDArray[np.float64] = self.values[:, self.names.index(measure)]
        return values

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(one.name for one in self.measures)

    @property
    def execution(self) -> str:
        """How the candidates were computed, where that took long: "one by one: ..."; '' if they were batched."""
        return "" if self.batched else f"one by one{': ' if self.reason else ''}{self.reason}"

    def rules_broken(self, place: int) -> tuple[str, ...]:
        """Return the rules that the candidate at a place breaks. No trials."""
        return tuple(rule for at, rule in enumerate(self.rules) if self.broken[place, at])

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Whether each candidate was computed, has a finite first measure and breaks no rule; (n,) or (n, t)."""
        allowed: NDArray[np.bool_] = self.known & np.isfinite(self.values[:, 0]) & ~self.broken.any(axis=1)
        return allowed

    def costs(self, measure: int = 0) -> NDArray[np.float64]:
        """Return a measure with the smallest as the best, inf for a candidate that is not allowed or has no number."""
        values = self.values[:, measure] if self.measures[measure].goal == "min" else -self.values[:, measure]
        return np.where(self.allowed & np.isfinite(values), values, np.inf)

    @property
    def best(self) -> NDArray[np.bool_]:
        """Whether each candidate is one of the best: none is better by the measures that decide; (n,) or (n, t)."""
        best = self.allowed
        for at, measure in enumerate(list_deciding(self.measures) if len(best) else ()):
            costs = np.where(best, self.costs(at), np.inf)
            least = costs.min(axis=0)
            best = np.where(np.isfinite(least), is_tied(costs, least, measure.tolerance(least)), best)
        return best

    def order(self, at: int = 0, places: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the places of the allowed candidates, best first by a measure. No trials.

        Equally good ones are in data order; those ``within`` the best are ordered by the next measure.
        """
        places = np.flatnonzero(self.allowed) if places is None else places
        measure, costs = self.measures[at], self.costs(at)[places]
        order = np.argsort(costs, kind="stable")
        costs = costs[order]
        is_next = ~is_tied(costs, np.roll(costs, 1))  # of each, whether it is worse than the one before it
        # Ties are held against the best itself, for a chain of near neighbours could drift away from it.
        best = int(is_tied(costs, costs[:1]).sum())
        is_next[:best], is_next[best : best + 1] = False, True
        # Within a tie, data order.
        places = np.asarray(places[order[np.lexsort((order, np.cumsum(is_next)))]])
        if not measure.within or not len(places):
            return places
        near = int(is_tied(costs, costs[:1], measure.tolerance(costs[:1])).sum()) or len(places)
        return np.concatenate([self.order(at + 1, np.sort(places[:near])), places[near:]])

    def lead(self, order: NDArray[np.int64]) -> tuple[int, float | None, float | None]:
        """Return how many are equally good, and the margin and lead over the next by the first measure.

        None where the next measure decided. order: the places of the allowed candidates, best first.
        """
        return (int(self.best.sum()), None, None) if self.near(order) > 1 else measure_lead(self.values[order, 0])

    def near(self, order: NDArray[np.int64]) -> int:
        """Return how many are so near to the best by the first measure that the next one decides; 0 without within."""
        costs = self.costs()[order]
        if not self.measures[0].within or not len(costs):
            return 0
        return int(is_tied(costs, costs.min(), self.measures[0].tolerance(costs.min())).sum())

    def winners(self) -> NDArray[np.int64]:
        """Return the place of the best allowed candidate in each trial, shape (t,).

        It is the first of equally good ones; -1 if none is allowed.
        """
        best = self.best
        if not len(best):
            return np.full(best.shape[-1], -1)
        return np.where(best.any(axis=0), best.argmax(axis=0), -1)


def is_tied(
    costs: NDArray[np.float64], best: NDArray[np.float64] | float, tolerance: NDArray[np.float64] | float = 0.0
) -> NDArray[np.bool_]:
    """Return whether each cost is as good as the best one, within a tolerance and ``TIE`` for the order of a sum.

    >>> is_tied(np.array([0.3, 0.1 + 0.2, 0.31, np.inf]), 0.3).tolist()
    [True, True, False, False]
    """
    with np.errstate(invalid="ignore"):
        near = np.abs(costs - best) <= tolerance + TIE * np.maximum(np.abs(costs), np.abs(best))
    return np.asarray(np.isfinite(costs) & near)


def relative_distance(first: float, second: float) -> float:
    scale = max(abs(first), abs(second))
    return abs(first - second) / scale if scale else 0.0


def measure_lead(values: NDArray[np.float64]) -> tuple[int, float | None, float | None]:
    """Return how many of some outcomes, best first, tie with the best, and its margin and lead over the next.

    >>> measure_lead(np.array([2.0, 2.0, 4.0])), measure_lead(np.array([2.0]))
    ((2, 0.5, 2.0), (1, None, None))
    """
    ties = int(is_tied(values, values[0]).sum()) if len(values) else 0
    if ties == len(values):
        return ties, None, None
    best, following = float(values[0]), float(values[ties])
    return ties, relative_distance(best, following), abs(best - following)


@dataclass
class OutcomeCollector:
    """Arrays of outcomes that fill as replies come."""

    candidates: Sequence[int]
    measures: tuple[Measure, ...]
    rules: tuple[str, ...]
    trials: int | None = None
    """Number of trials; None if no input varies."""

    def __post_init__(self) -> None:
        shape = () if self.trials is None else (self.trials,)
        count = len(self.candidates)
        self.values = np.full((count, len(self.measures), *shape), np.nan)
        self.broken = np.zeros((count, len(self.rules), *shape), dtype=np.bool_)
        self.known = np.zeros((count, *shape), dtype=np.bool_)
        self.reasons: dict[tuple[int, str], Reason] = {}
        self.parts: dict[tuple[str, str], NDArray[np.float64]] = {}
        self.batched, self.reason, self.note = True, "", ""
        self.cpu = 0.0
        """Seconds that the last request computed."""

    def add(self, reply: Table, start: int, count: int, trials: range = range(0)) -> None:
        """Add a reply for ``count`` candidates from place ``start``, in these trials.

        No trials means that no input varied.
        """
        places: tuple[Any, ...] = (slice(start, start + count),)
        columns: tuple[Any, ...] = (slice(trials.start, trials.stop),) if trials else ()
        shape = (len(trials), count) if trials else (count,)
        rows: Any = reply.rows
        for kind, name, value, number, first_rows in rows:
            match kind:
                case "execution":
                    self.reason, self.note, self.cpu, self.batched = name, self.note or value, number, first_rows
                case "part":
                    numbers = np.array([np.nan if cell is None else cell for cell in value], dtype=np.float64)
                    part = self.parts.setdefault((name, number), np.full_like(self.values[:, 0], np.nan))
                    # The reply has all candidates of the first trial first.
                    part[(*places, *columns)] = numbers.reshape(shape).T
                case "rule":
                    self._add_broken(name, start, count, trials, list(zip(value, number, first_rows, strict=True)))
        for at, one in enumerate(self.measures):
            whole = sum(part[(*places, *columns)] for (measure, _), part in self.parts.items() if measure == one.name)
            self.values[(*places, at, *columns)] = whole
        self.known[(*places, *columns)] = True

    def _add_broken(self, name: str, start: int, count: int, trials: range, broken: list[tuple[int, int, Any]]) -> None:
        rule = self.rules.index(name)
        for number, rows_in_all, first_rows in broken:
            # The worker numbers places through all trials.
            trial, at = divmod(number, count)
            place = start + at
            self.broken[(place, rule, *((trials.start + trial,) if trials else ()))] = True
            if not trials:
                self.reasons[self.candidates[place], name] = Reason(rows_in_all, tuple(first_rows))

    def outcomes(self, stopped: str, seconds: float) -> Outcomes:
        return Outcomes(
            np.array(self.candidates, dtype=np.int64),
            self.measures,
            self.rules,
            self.values,
            self.broken,
            self.known,
            self.reasons,
            self.batched,
            self.reason,
            stopped,
            seconds,
            self.note,
            self.parts,
        )
