"""HiGHS: a linear program, whole numbers or not, its solution, its prices, and what conflicts where nothing fits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from decisor.decision_models.worker.inputs import Floats
from decisor.system.extras import missing_extra_error

NOT_WITHIN = "time limit"


def no_values() -> Floats:
    return np.zeros(0)


@dataclass
class Matrix:
    """A linear program as arrays."""

    smallest: bool
    """True if the objective is to be small."""
    low: list[float] = field(default_factory=list)
    """Lower bound of each unknown."""
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    """Whether each unknown is a whole number."""
    cost: dict[int, float] = field(default_factory=dict)
    """Coefficient of each unknown in the objective; -1 is the constant."""
    triples: list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]] = field(default_factory=list)
    """Arrays of row, unknown and coefficient."""
    least: list[float] = field(default_factory=list)
    """Lower bound of each row."""
    greatest: list[float] = field(default_factory=list)

    def add(
        self,
        row: ArrayLike,
        unknown: ArrayLike,
        coefficient: ArrayLike,
        least: Sequence[float],
        greatest: Sequence[float],
    ) -> None:
        """Add rows after the present ones; ``row`` counts from 0."""
        rows = np.asarray(row, dtype=np.int64) + len(self.least)
        self.triples.append((rows, np.asarray(unknown, dtype=np.int64), np.asarray(coefficient, dtype=float)))
        self.least += list(least)
        self.greatest += list(greatest)

    def add_unknown(self, low: float, high: float) -> int:
        """Add an unknown, such as an amount by which a soft rule is not met; return its number."""
        self.low.append(low)
        self.high.append(high)
        self.whole.append(False)
        return len(self.low) - 1

    def objective(self, amounts: Floats) -> float:
        """Return the objective that amounts have."""
        cost = {unknown: value for unknown, value in self.cost.items() if unknown >= 0}
        return float(amounts[[*cost]] @ np.array([*cost.values()]) + self.cost.get(-1, 0.0))

    def activity(self, amounts: Floats) -> Floats:
        """Return the value of each row for amounts."""
        rows, unknowns, values = self.cells()
        return np.asarray(np.bincount(rows, values * amounts[unknowns], len(self.least)), dtype=float)

    def near_best(self, best: float, tolerance: float) -> Matrix:
        """Return the program with a row that holds the objective within a tolerance of its best."""
        cost = {unknown: value for unknown, value in self.cost.items() if unknown >= 0}
        end = best - self.cost.get(-1, 0.0)
        least, greatest = (-np.inf, end + tolerance) if self.smallest else (end - tolerance, np.inf)
        copy = replace(self, triples=[*self.triples], least=[*self.least], greatest=[*self.greatest])
        copy.add(np.zeros(len(cost)), [*cost], [*cost.values()], [least], [greatest])
        return copy

    def cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return all cells by row."""
        if not self.triples:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), no_values()
        rows, unknowns, values = (np.concatenate(parts) for parts in zip(*self.triples, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], unknowns[order], values[order]

    def rows_only(self, kept: NDArray[np.bool_]) -> Matrix:
        """Return the program with some of its rows, and without an objective."""
        rows, unknowns, values = self.cells()
        number = np.cumsum(kept) - 1
        mask = kept[rows]
        least, greatest = np.array(self.least)[kept], np.array(self.greatest)[kept]
        part = replace(self, cost={}, triples=[], least=[], greatest=[])
        part.add(number[rows[mask]], unknowns[mask], values[mask], least.tolist(), greatest.tolist())
        return part

    def held(self, amounts: Floats) -> Matrix:
        """Return the program with each whole unknown at its amount."""
        whole = np.array(self.whole)
        fixed = np.round(amounts)
        low, high = np.where(whole, fixed, self.low), np.where(whole, fixed, self.high)
        return replace(self, low=low.tolist(), high=high.tolist(), whole=[False] * len(self.low))


@dataclass(frozen=True)
class Solution:
    """The answer of the solver."""

    status: str
    """optimal, infeasible, unbounded or time limit."""
    amounts: Floats = field(default_factory=no_values)
    """Amount of each unknown, empty if there is no solution."""
    objective: float = float("nan")
    bound: float = float("nan")
    """No better objective is possible."""
    seconds: float = 0.0
    activity: Floats = field(default_factory=no_values)
    """Value of each row."""
    prices: Floats = field(default_factory=no_values)
    """What the objective gains if the bound of a row grows by one, with whole numbers held."""
    reduced: Floats = field(default_factory=no_values)
    """What the objective changes if an unknown at its bound grows by one, with whole numbers held."""
    checked: bool = False
    """Whether it was solved a second time, without presolve."""


def solve_program(matrix: Matrix, seconds: float, with_prices: bool = True) -> Solution:
    """Solve the program; check "infeasible" and "unbounded" a second time without presolve."""
    began = time.monotonic()
    if np.inf in matrix.least or -np.inf in matrix.greatest:  # which HiGHS meets with an infinite amount
        return Solution("infeasible")
    solution = run_highs(matrix, seconds, True)
    if solution.status not in ("optimal", NOT_WITHIN):
        left = max(1.0, seconds - (time.monotonic() - began))
        again = run_highs(matrix, left, False)
        return replace(again, seconds=time.monotonic() - began, checked=True)
    if with_prices and any(matrix.whole) and solution.status == "optimal":
        # A program with whole numbers has no prices; that of its plan with these held has.
        left = max(1.0, seconds - (time.monotonic() - began))
        plan = run_highs(matrix.held(solution.amounts), left, True)
        if plan.status == "optimal":
            solution = replace(solution, prices=plan.prices, reduced=plan.reduced)
    return replace(solution, seconds=time.monotonic() - began)


def run_highs(matrix: Matrix, seconds: float, presolve: bool) -> Solution:
    """Run HiGHS on the program. Raises SetupError if the solver is not installed."""
    try:
        import highspy
    except ModuleNotFoundError as error:
        raise missing_extra_error("The solver needs highspy", "solver") from error
    began = time.monotonic()
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {
        "output_flag": False,
        "time_limit": float(seconds),
        "threads": 2,
        # By default HiGHS stops within 0.01 % of the best.
        "mip_rel_gap": 0.0,
        "presolve": "choose" if presolve else "off",
    }.items():
        solver.setOptionValue(name, value)
    solver.passModel(highs_program(highspy, matrix))
    solver.run()
    status = solver.modelStatusToString(solver.getModelStatus()).lower()
    info = solver.getInfo()
    bound = info.mip_dual_bound if any(matrix.whole) else info.objective_function_value
    # HiGHS has one status for "infeasible or unbounded".
    if "infeasible" in status and "unbounded" in status:
        status = "infeasible"
    word = next((one for one in ("optimal", "infeasible", "unbounded", NOT_WITHIN) if one in status), status)
    # 2 is the status of a feasible point; HiGHS may have one of an unbounded program too, which is no plan.
    if word == "unbounded" or info.primal_solution_status != 2:
        return Solution(word, objective=info.objective_function_value, bound=bound, seconds=time.monotonic() - began)
    found = solver.getSolution()
    arrays = [np.array(one) for one in (found.col_value, found.row_value, found.row_dual, found.col_dual)]
    amounts, activity, prices, reduced = arrays
    if any(matrix.whole):
        prices, reduced = no_values(), no_values()
    spent = time.monotonic() - began
    return Solution(word, amounts, info.objective_function_value, bound, spent, activity, prices, reduced)


def solve_steps(matrix: Matrix, solution: Solution, rows: Sequence[int], seconds: float) -> dict[int, float]:
    """Return what the objective changes if the bound of a row grows by one, for each row that the seconds reach.

    Each is solved again, so whole numbers may change too. A row whose step leaves no plan is left out.
    """
    until, changes = time.monotonic() + seconds, {}
    for row in rows:
        if (left := until - time.monotonic()) <= 0:
            break
        least, greatest = [*matrix.least], [*matrix.greatest]
        near = [abs(solution.activity[row] - end[row]) for end in (least, greatest)]
        for end, distance in zip((least, greatest), near, strict=True):
            if distance <= min(near):
                end[row] += 1.0
        again = run_highs(replace(matrix, least=least, greatest=greatest), left, True)
        if again.status == "optimal":
            changes[row] = again.objective - solution.objective
    return changes


def highs_program(highspy: ModuleType, matrix: Matrix) -> Any:
    lp = highspy.HighsLp()
    count = len(matrix.low)
    cost = np.zeros(count)
    for unknown, value in matrix.cost.items():
        if unknown >= 0:
            cost[unknown] = value
    lp.num_col_, lp.num_row_ = count, len(matrix.least)
    # HiGHS calls 2.5 optimal for a whole unknown whose most is 2.5, and has no amounts then.
    whole, low, high = np.array(matrix.whole), np.array(matrix.low, dtype=float), np.array(matrix.high, dtype=float)
    lp.col_cost_, lp.offset_ = cost, matrix.cost.get(-1, 0.0)
    lp.col_lower_, lp.col_upper_ = np.where(whole, np.ceil(low), low), np.where(whole, np.floor(high), high)
    lp.row_lower_, lp.row_upper_ = np.array(matrix.least, dtype=float), np.array(matrix.greatest, dtype=float)
    lp.sense_ = highspy.ObjSense.kMinimize if matrix.smallest else highspy.ObjSense.kMaximize
    rows, unknowns, coefficients = matrix.cells()
    counts = np.bincount(rows, minlength=len(matrix.least))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lp.a_matrix_.index_ = unknowns.astype(np.int32)
    lp.a_matrix_.value_ = coefficients
    kinds = highspy.HighsVarType
    if whole.any():
        lp.integrality_ = [kinds.kInteger if one else kinds.kContinuous for one in matrix.whole]
    return lp


def find_conflict(matrix: Matrix, groups: Sequence[str], seconds: float) -> list[int]:
    """Find a smallest set of rows that cannot hold together: rules are left out whole first, then QuickXplain.

    Junker, QuickXplain (AAAI 2004). groups: the rule of each row. What is left after the seconds may not be smallest;
    [] if no row is at fault.
    """
    until = time.monotonic() + seconds
    names = np.array(groups)

    def conflicts(kept: NDArray[np.bool_]) -> bool:
        left = max(0.5, until - time.monotonic())
        return run_highs(matrix.rows_only(kept), left, True).status == "infeasible"

    kept = np.ones(len(names), dtype=np.bool_)
    if not conflicts(kept):
        return []
    for name in dict.fromkeys(groups):
        if conflicts(without := kept & (names != name)):
            kept = without

    def narrow(base: list[int], rows: list[int], has_grown: bool) -> list[int]:
        if time.monotonic() > until:
            return rows
        mask = np.zeros(len(names), dtype=np.bool_)
        mask[base] = True
        if has_grown and conflicts(mask):
            return []
        if len(rows) == 1:
            return rows
        left, right = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        second = narrow(base + left, right, bool(left))
        first = narrow(base + second, left, bool(second))
        return first + second

    return sorted(narrow([], np.flatnonzero(kept).tolist(), False))
