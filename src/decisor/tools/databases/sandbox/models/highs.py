"""An integer program as matrices, and HiGHS, which proposes a choice; the model's SQL measures it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from decisor.extras import lacks
from decisor.tools.databases.sandbox.models.results import Floats

NOT_WITHIN = "time limit"


@dataclass
class Matrix:
    """``low``, ``high``, ``whole``: of each unknown. ``rows``: (row, unknown, coefficient) triples, as arrays; a row
    is between ``least`` and ``greatest``."""

    low: Floats
    high: Floats
    whole: NDArray[np.bool_]
    cost: Floats
    smallest: bool
    triples: list[tuple[NDArray[np.intp], NDArray[np.intp], Floats]] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    greatest: list[float] = field(default_factory=list)

    def add(
        self, row: ArrayLike, unknown: ArrayLike, coefficient: ArrayLike, least: Sequence[float],
        greatest: Sequence[float],
    ) -> None:  # fmt: skip
        """Rows after those that are there; ``row`` counts from 0."""
        self.triples.append((np.asarray(row) + len(self.least), np.asarray(unknown), np.asarray(coefficient, float)))
        self.least += list(least)
        self.greatest += list(greatest)


@dataclass(frozen=True)
class Solution:
    """``status``: optimal, infeasible, unbounded, time limit. ``amounts``: of each unknown, where there are some.
    ``bound``: no better objective is possible; ``checked``: solved a second time without presolve."""

    status: str
    amounts: Floats
    objective: float
    bound: float
    seconds: float
    checked: bool = False


def solve(matrix: Matrix, seconds: float, presolve: bool = True) -> Solution:
    """Where presolve says that nothing fits, or that all fits without end, the question is put again without it."""
    began = time.monotonic()
    if np.inf in matrix.least or -np.inf in matrix.greatest:  # which HiGHS meets with an infinite amount
        return Solution("infeasible", np.zeros(0), np.nan, np.nan, 0.0)
    solution = once(matrix, seconds, presolve)
    if presolve and solution.status not in ("optimal", NOT_WITHIN):
        left = max(1.0, seconds - (time.monotonic() - began))
        again = once(matrix, left, False)
        return Solution(again.status, again.amounts, again.objective, again.bound, time.monotonic() - began, True)
    return solution


def once(matrix: Matrix, seconds: float, presolve: bool) -> Solution:
    """Raises SetupError where the solver is not installed."""
    try:
        import highspy
    except ModuleNotFoundError as error:
        raise lacks("The solver needs highspy", "solver") from error
    began = time.monotonic()
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "time_limit": float(seconds), "threads": 2, "mip_rel_gap": 0.0,
                        "presolve": "choose" if presolve else "off"}.items():  # fmt: skip
        solver.setOptionValue(name, value)
    solver.passModel(program(highspy, matrix))
    solver.run()
    status = solver.modelStatusToString(solver.getModelStatus()).lower()
    info = solver.getInfo()
    whole = bool(matrix.whole.any())
    bound = info.mip_dual_bound if whole else info.objective_function_value
    if "infeasible" in status and "unbounded" in status:
        status = "infeasible"
    word = next((one for one in ("optimal", "infeasible", "unbounded", NOT_WITHIN) if one in status), status)
    fits = info.primal_solution_status == 2
    amounts = np.array(solver.getSolution().col_value) if fits else np.zeros(0)
    return Solution(word, amounts, info.objective_function_value, bound, time.monotonic() - began)


def program(highspy: ModuleType, matrix: Matrix) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(matrix.low), len(matrix.least)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = matrix.cost, matrix.low, matrix.high
    lp.row_lower_, lp.row_upper_ = np.array(matrix.least), np.array(matrix.greatest)
    lp.sense_ = highspy.ObjSense.kMinimize if matrix.smallest else highspy.ObjSense.kMaximize
    rows, unknowns, coefficients = (np.concatenate(parts) for parts in zip(*matrix.triples, strict=True))
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(matrix.least))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lp.a_matrix_.index_ = unknowns[order].astype(np.int32)
    lp.a_matrix_.value_ = coefficients[order]
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger if one else kinds.kContinuous for one in matrix.whole]
    return lp
