"""What comes of candidates: their measures, and the rules they break with the rows that break them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from decisor.types import Goal, Table, Value

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
    """The outcomes of n candidates by m measures and r rules and, if the inputs varied, t trials.

    ``candidates``: their numbers, int64 (n,). ``values``: float64 (n, m) or (n, m, t), nan where there is no outcome.
    ``broken``: bool (n, r) or (n, r, t). ``known``: bool (n,) or (n, t), False where a limit ended the run before.
    ``reasons``: (candidate, rule) -> why, where no input varied. ``how``: 'together', or why one by one.
    ``note``: what is to be said of them, ''.
    """

    candidates: NDArray[np.int64]
    measures: tuple[str, ...]
    rules: tuple[str, ...]
    values: NDArray[np.float64]
    broken: NDArray[np.bool_]
    known: NDArray[np.bool_]
    reasons: Mapping[tuple[int, str], Reason]
    how: str = "together"
    stopped: str = ""
    seconds: float = 0.0
    note: str = ""

    def of(self, measure: str) -> NDArray[np.float64]:
        """Return the values of one measure, shape (n,) or (n, t)."""
        values: NDArray[np.float64] = self.values[:, self.measures.index(measure)]
        return values

    @property
    def complete(self) -> bool:
        return bool(self.known.all())

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Whether each candidate was computed, has a finite first measure and breaks no rule; (n,) or (n, t)."""
        allowed: NDArray[np.bool_] = self.known & np.isfinite(self.values[:, 0]) & ~self.broken.any(axis=1)
        return allowed

    def order(self, goal: Goal) -> NDArray[np.int64]:
        """Places of the allowed ones, best first by the first measure, equally good ones in data order. No trials."""
        places = np.flatnonzero(self.allowed)
        costs = self.values[places, 0] if goal == "min" else -self.values[places, 0]
        order = np.argsort(costs, kind="stable")
        costs = costs[order]
        is_next = ~is_tied(costs, np.roll(costs, 1))  # of each, whether it is worse than the one before it
        best = int(is_tied(costs, costs[:1]).sum())
        is_next[:best], is_next[best : best + 1] = False, True
        return np.asarray(places[order[np.lexsort((order, np.cumsum(is_next)))]])

    def winners(self, goal: Goal) -> NDArray[np.int64]:
        """Return the place of the best allowed candidate in each trial, shape (t,).

        It is the first of equally good ones; -1 if none is allowed.
        """
        sign = 1 if goal == "min" else -1
        costs = np.where(self.allowed, sign * self.values[:, 0], np.inf)
        if not len(costs):
            return np.full(costs.shape[-1], -1)
        return np.where(np.isfinite(costs).any(axis=0), is_tied(costs, costs.min(axis=0)).argmax(axis=0), -1)


def is_tied(costs: NDArray[np.float64], best: NDArray[np.float64] | float) -> NDArray[np.bool_]:
    """Return whether each cost is as good as the best one, within ``TIE`` for the order of a sum.

    >>> is_tied(np.array([0.3, 0.1 + 0.2, 0.31, np.inf]), 0.3).tolist()
    [True, True, False, False]
    """
    with np.errstate(invalid="ignore"):
        near = np.abs(costs - best) <= TIE * np.maximum(np.abs(costs), np.abs(best))
    return np.asarray(np.isfinite(costs) & near)


@dataclass
class OutcomeCollector:
    """Arrays of outcomes that fill as replies come. trials: number of trials; None if no input varies. cpu: seconds of
    the last reply.
    """

    candidates: Sequence[int]
    measures: tuple[str, ...]
    rules: tuple[str, ...]
    trials: int | None = None

    def __post_init__(self) -> None:
        more = () if self.trials is None else (self.trials,)
        count = len(self.candidates)
        self.values = np.full((count, len(self.measures), *more), np.nan)
        self.broken = np.zeros((count, len(self.rules), *more), dtype=np.bool_)
        self.known = np.zeros((count, *more), dtype=np.bool_)
        self.reasons: dict[tuple[int, str], Reason] = {}
        self.how = "together"
        self.note = ""
        self.cpu = 0.0

    def add(self, reply: Table, start: int, count: int, trials: range = range(0)) -> None:
        """Add a reply for ``count`` candidates from place ``start``, in these trials.

        No trials means that no input varied.
        """
        here: tuple[Any, ...] = (slice(start, start + count),)
        end: tuple[Any, ...] = (slice(trials.start, trials.stop),) if trials else ()
        shape = (len(trials), count) if trials else (count,)
        for kind, name, value, rows_in_all, rows in reply.rows:
            match kind:
                case "how":
                    self.how = str(name)
                    self.cpu = float(rows_in_all)  # type: ignore[arg-type]
                    self.note = self.note or str(value or "")
                case "measure":
                    numbers = np.array([np.nan if one is None else one for one in value], dtype=np.float64)  # type: ignore[union-attr]
                    self.values[(*here, self.measures.index(str(name)), *end)] = numbers.reshape(shape).T
                case "rule":
                    trial, at = divmod(int(value), count)  # type: ignore[arg-type]
                    place, rule = start + at, self.rules.index(str(name))
                    self.broken[(place, rule, *((trials.start + trial,) if trials else ()))] = True
                    if not trials:
                        why = Reason(int(rows_in_all), tuple(rows))  # type: ignore[arg-type]
                        self.reasons[self.candidates[place], str(name)] = why
        self.known[(*here, *end)] = True

    def outcomes(self, stopped: str, seconds: float) -> Outcomes:
        return Outcomes(
            np.array(self.candidates, dtype=np.int64),
            self.measures,
            self.rules,
            self.values,
            self.broken,
            self.known,
            self.reasons,
            self.how,
            stopped,
            seconds,
            self.note,
        )
