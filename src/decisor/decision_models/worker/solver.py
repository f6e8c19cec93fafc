"""The job ``solve``: an integer program made of queries, solved by HiGHS, and measured by the model's own SQL.

The program comes from [variable], [require] and the ``sum`` of a measure. A variable is a table with a column of
unknowns. A requirement has one row for each row of ``each``; a term ``coefficient * variable`` sums over the
variable's rows that agree with it in the columns that both have, or in those of ``variable[a = b]`` (a of the
variable, b of the row).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from decisor.decision_models.file import DecisionModel, Require
from decisor.decision_models.worker.execution import (
    changed_inputs,
    column_names,
    execute_statement,
    first_broken_rows,
    query_number,
)
from decisor.decision_models.worker.inputs import Floats, none_if_nan
from decisor.decision_models.worker.program import ModelStatements, Statement, parse_query
from decisor.errors import ToolError
from decisor.sandbox.wire import cell_as_plain_value
from decisor.system.extras import missing_extra_error
from decisor.system.text import quote_identifier
from decisor.types import Table, Value

if TYPE_CHECKING:
    import duckdb


NOT_WITHIN = "time limit"


@dataclass
class Matrix:
    """An integer program as arrays."""

    low: Floats
    """Lower bound of each unknown."""
    high: Floats
    whole: NDArray[np.bool_]
    """Whether each unknown is a whole number."""
    cost: Floats
    """Coefficient of each unknown in the objective."""
    smallest: bool
    """True if the objective is to be small."""
    triples: list[tuple[NDArray[np.intp], NDArray[np.intp], Floats]] = field(default_factory=list)
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
        self.triples.append((np.asarray(row) + len(self.least), np.asarray(unknown), np.asarray(coefficient, float)))
        self.least += list(least)
        self.greatest += list(greatest)


@dataclass(frozen=True)
class Solution:
    """The answer of the solver."""

    status: str
    """optimal, infeasible, unbounded or time limit."""
    amounts: Floats
    """Amount of each unknown, empty if there is no solution."""
    objective: float
    bound: float
    """No better objective is possible."""
    seconds: float
    checked: bool = False
    """Whether it was solved a second time, without presolve."""


def solve_program(matrix: Matrix, seconds: float, presolve: bool = True) -> Solution:
    """Solve the program; check "infeasible" and "unbounded" a second time without presolve."""
    began = time.monotonic()
    if np.inf in matrix.least or -np.inf in matrix.greatest:  # which HiGHS meets with an infinite amount
        return Solution("infeasible", np.zeros(0), np.nan, np.nan, 0.0)
    solution = run_highs(matrix, seconds, presolve)
    if presolve and solution.status not in ("optimal", NOT_WITHIN):
        left = max(1.0, seconds - (time.monotonic() - began))
        again = run_highs(matrix, left, False)
        return Solution(again.status, again.amounts, again.objective, again.bound, time.monotonic() - began, True)
    return solution


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
    whole = bool(matrix.whole.any())
    bound = info.mip_dual_bound if whole else info.objective_function_value
    # HiGHS has one status for "infeasible or unbounded".
    if "infeasible" in status and "unbounded" in status:
        status = "infeasible"
    word = next((one for one in ("optimal", "infeasible", "unbounded", NOT_WITHIN) if one in status), status)
    # 2 is the status of a feasible point.
    fits = info.primal_solution_status == 2
    amounts = np.array(solver.getSolution().col_value) if fits else np.zeros(0)
    return Solution(word, amounts, info.objective_function_value, bound, time.monotonic() - began)


def highs_program(highspy: ModuleType, matrix: Matrix) -> Any:
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


TERM = re.compile(r"\s*([+-]?)\s*(?:([A-Za-z_][\w.]*|\d+\.?\d*)\s*\*\s*)?([A-Za-z_]\w*)\s*(?:\[([^\]]*)\])?\s*")
KINDS = {"yes or no": (0.0, 1.0, True), "whole": (0.0, np.inf, True), "amount": (0.0, np.inf, False)}
MOST_UNKNOWNS = 1_000_000
ANSWER = ("amount", "chosen")
"""Columns that the solver's answer adds to those of a variable."""
CELL_CHARS = 40


@dataclass
class Unknowns:
    """The unknowns of an integer program, read from the tables of its variables."""

    db: duckdb.DuckDBPyConnection
    model: DecisionModel
    starts: dict[str, int] = field(default_factory=dict)
    """Number of the first unknown, by variable."""
    sizes: dict[str, int] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    """Columns of its table, by variable."""
    count: int = 0

    def read(self) -> None:
        """Build a table ``__x_NAME`` for each variable. Raises ToolError with the part of the file."""
        for one in self.model.variables:
            part = f"variable.{one.name}.each"
            self.columns[one.name] = self.numbered(f"__x_{one.name}", part, one.each)
            if clash := next((name for name in self.columns[one.name] if name.lower() in ANSWER), ""):
                raise ToolError(
                    f"{part}: a column is called {clash}, as a column of the solver's answer is. Give it "
                    f"another name: {clash} AS {clash}_1."
                )
            size = self.db.execute(f"SELECT count(*) FROM {quote_identifier('__x_' + one.name)}").fetchall()[0][0]
            self.starts[one.name], self.sizes[one.name] = self.count, size
            self.count += size
        if not self.count or self.count > MOST_UNKNOWNS:
            raise ToolError(f"variable: {self.count:,} unknowns; there are to be 1 to {MOST_UNKNOWNS:,}.")

    def numbered(self, table: str, part: str, sql: str) -> list[str]:
        """Write the rows of a query, with their number, as a table; return its columns."""
        statement = parse_query(part, sql, self.model.parameters)
        columns = column_names(execute_statement(self.db, statement, {}))
        inner = statement.tree.sql("duckdb")
        self.db.execute(
            f"CREATE OR REPLACE TEMP TABLE {quote_identifier(table)} AS "
            f"SELECT *, row_number() OVER () - 1 AS __n FROM ({inner})"
        )
        return columns

    def matrix(self, fixed: dict[int, float], cuts: list[tuple[list[int], list[float], float]]) -> Matrix:
        """Build the matrix of the program.

        Args:
            fixed: unknowns with a given amount.
            cuts: unknowns, coefficients, and the upper bound of their sum.
        """
        low, high, whole = np.zeros(self.count), np.zeros(self.count), np.zeros(self.count, dtype=bool)
        for one in self.model.variables:
            span = slice(self.starts[one.name], self.starts[one.name] + self.sizes[one.name])
            low[span], high[span], is_whole = KINDS[one.kind]
            whole[span] = is_whole
            if one.most is not None:
                # HiGHS calls 2.5 optimal for a whole unknown whose most is 2.5, and has no amounts then.
                high[span] = np.floor(one.most) if is_whole else one.most
        for unknown, value in fixed.items():
            low[unknown] = high[unknown] = value
        goal = self.model.first
        if not goal.sum:
            raise ToolError(f"measure.{goal.name} needs sum, as it decides and the solver is to find the best.")
        self.db.execute("CREATE OR REPLACE TEMP TABLE __key AS SELECT 0 AS __n")
        cells = self.terms(f"measure.{goal.name}.sum", goal.sum, [])
        cost = np.zeros(self.count)
        cost[cells["x"]] = cells["c"]
        matrix = Matrix(low, high, whole, cost, goal.goal == "min")
        for require in self.model.requires:
            self.require(matrix, require)
        for unknowns, coefficients, most in cuts:
            matrix.add(np.zeros(len(unknowns), dtype=int), unknowns, coefficients, [-np.inf], [most])
        # Without any row, the arrays of the matrix could not be joined.
        if not matrix.triples:
            matrix.add([0], [0], [0.0], [-np.inf], [np.inf])
        return matrix

    def require(self, matrix: Matrix, one: Require) -> None:
        part, side = f"require.{one.name}", one.side
        keys = self.numbered("__key", f"{part}.each", one.each or "SELECT 0 AS one")
        size = self.db.execute("SELECT count(*) FROM __key").fetchall()[0][0]
        bound = self.bound(part, one.bound, keys, size)
        cells = self.terms(f"{part}.sum", one.sum, keys)
        none = np.full(size, np.inf)
        least = -none if side == "at_most" else bound
        greatest = none if side == "at_least" else bound
        matrix.add(cells["n"], cells["x"], cells["c"], least.tolist(), greatest.tolist())

    def bound(self, part: str, value: Any, keys: list[str], size: int) -> Floats:
        """Return the bound of each row. It is a number, a column of ``each``, or a query that gives one number."""
        if isinstance(value, str) and value.strip() in keys:
            column = quote_identifier(value.strip())
            self.check_numbers(f"SELECT *, {column} AS __v FROM __key", f"{part}: its bound {value.strip()}")
            cells = self.db.execute(f"SELECT CAST({column} AS DOUBLE) AS v FROM __key ORDER BY __n")
            return np.asarray(cells.fetchnumpy()["v"], dtype=np.float64)
        if isinstance(value, str):
            rows = execute_statement(self.db, parse_query(part, value, self.model.parameters), {}).fetchmany(2)
            if len(rows) != 1 or len(rows[0]) != 1 or rows[0][0] is None or rows[0][0] != rows[0][0]:
                raise ToolError(f"{part}: its bound must be one number; the query gives NULL, none or several.")
            value = rows[0][0]
        return np.full(size, float(value))

    def check_numbers(self, query: str, subject: str, test: str = "isnan") -> None:
        """Raise ToolError with the first row whose ``__v`` is no number. The solver would read it as 0."""
        odd = f'CAST("__v" AS DOUBLE) IS NULL OR {test}(CAST("__v" AS DOUBLE))'
        cursor = self.db.execute(f"SELECT * EXCLUDE (__n) FROM ({query}) WHERE {odd} LIMIT 1")
        names = column_names(cursor)
        for row in cursor.fetchall():
            cells = [
                f"{name} {cell_as_plain_value(cell, CELL_CHARS)}"
                for name, cell in zip(names, row, strict=True)
                if name != "__v" and cell is not None
            ]
            value = "NULL" if row[-1] is None else "not a number" if row[-1] != row[-1] else "infinite"
            raise ToolError(
                f"{subject} is {value} in the row of {', '.join(cells) or 'nothing'}. Mend the data, or "
                "say with coalesce what it is."
            )

    def terms(self, part: str, words: str, keys: list[str]) -> dict[str, NDArray[np.generic]]:
        """Return row ``n`` of __key, unknown ``x`` and coefficient ``c`` of all terms, each pair once."""
        parts = " UNION ALL ".join(self.term(part, *pieces, keys) for pieces in parse_linear_terms(part, words))
        summed = f"SELECT n, x, sum(c) AS c FROM ({parts}) GROUP BY n, x ORDER BY n, x"
        import duckdb

        try:
            cells = self.db.execute(summed).fetchnumpy()
        except duckdb.Error as error:
            raise ToolError(f"{part}: {' '.join(str(error).split())[:300]}") from error
        return {name: np.asarray(values) for name, values in cells.items()}

    def term(self, part: str, sign: str, coefficient: str, variable: str, pairs: str, keys: list[str]) -> str:
        if variable not in self.starts:
            raise ToolError(f"{part}: there is no variable {variable}; there is {', '.join(self.starts)}.")
        columns = self.columns[variable]
        here, there = {name.lower(): name for name in columns}, {name.lower(): name for name in keys}
        if pairs:
            equal = [[side.strip() for side in pair.split("=")] for pair in pairs.split(",")]
            same = [(pair[0], pair[-1]) for pair in equal]
        else:
            same = [(name, name) for name in here if name in there]
        for mine, other in same:
            if mine.lower() not in here or other.lower() not in there:
                raise ToolError(f"{part}: [{pairs}] names no column of {variable} and of each.")
        joined = (
            " AND ".join(
                f"v.{quote_identifier(here[a.lower()])} = k.{quote_identifier(there[b.lower()])}" for a, b in same
            )
            or "TRUE"
        )
        value = factor(part, coefficient, here, there)
        start = self.starts[variable]
        source = f"FROM __key AS k JOIN {quote_identifier('__x_' + variable)} AS v ON {joined}"
        self.check_numbers(
            f"SELECT v.*, {value} AS __v {source}",
            f"{part}: the coefficient {coefficient or 1} of {variable}",
            "NOT isfinite",
        )
        return f"SELECT k.__n AS n, {start} + v.__n AS x, {sign}1 * CAST({value} AS DOUBLE) AS c {source}"

    def as_tables(self, amounts: Floats) -> None:
        """Write the proposal as tables under the names of the variables.

        They have the variable's columns, ``amount`` and ``chosen``.
        """
        for name, start in self.starts.items():
            values = amounts[start : start + self.sizes[name]]
            self.db.register("__amounts", {"__n": np.arange(len(values)), "amount": np.ascontiguousarray(values)})
            columns = ", ".join(f"v.{quote_identifier(column)}" for column in self.columns[name])
            self.db.execute(
                f"CREATE OR REPLACE TEMP TABLE {quote_identifier(name)} AS SELECT {columns}, amount, "
                "amount > 0.5 AS chosen "
                f"FROM {quote_identifier('__x_' + name)} AS v JOIN __amounts USING (__n) ORDER BY __n"
            )
            self.db.unregister("__amounts")


def factor(part: str, coefficient: str, here: dict[str, str], there: dict[str, str]) -> str:
    if not coefficient:
        return "1"
    if coefficient[0].isdigit():
        return coefficient
    if coefficient.lower() in here:
        return f"v.{quote_identifier(here[coefficient.lower()])}"
    if coefficient.lower() in there:
        return f"k.{quote_identifier(there[coefficient.lower()])}"
    raise ToolError(f"{part}: {coefficient} is no column of the variable or of each.")


def parse_linear_terms(part: str, words: str) -> Iterator[tuple[str, str, str, str]]:
    """Parse each term into sign, coefficient, variable and pairs of columns.

    >>> list(parse_linear_terms("sum", "units * serve - pay[project = first]"))
    [('', 'units', 'serve', ''), ('-', '', 'pay', 'project = first')]
    """
    text, at = words.strip(), 0
    while at < len(text):
        match = TERM.match(text, at)
        if match is None or (at and not match[1]):
            raise ToolError(f"{part}: {text[at : at + 40]!r} is no term; write coefficient * variable, with + or -.")
        yield match[1] or "", match[2] or "", match[3], match[4] or ""
        at = match.end()


MOST_ROWS = 1_000
SOLUTION_CELL_CHARS = 200
Cut = tuple[list[int], list[float], float]


def propose_choice(
    db: duckdb.DuckDBPyConnection,
    model: DecisionModel,
    parts: ModelStatements,
    before: Sequence[Statement],
    request: Mapping[str, Any],
) -> Table:
    """Return the best choice as rows of kind and value, measured by the model's SQL.

    The request has ``seconds``; ``forced``, triples of variable, row and amount; ``excluded``, choices of the first
    variable, by their chosen rows, that may not result again; and ``seed`` for a trial.
    """
    with changed_inputs(db, model, before, request.get("seed")):
        unknowns = Unknowns(db, model)
        unknowns.read()
        fixed = {unknowns.starts[name] + row: value for name, row, value in request["forced"]}
        matrix = unknowns.matrix(fixed, [cut_choice(unknowns, rows) for rows in request["excluded"]])
        solution = solve_program(matrix, request["seconds"])
        figures: dict[str, float] = {
            "objective": solution.objective,
            "bound": solution.bound,
            "seconds": solution.seconds,
            "unknowns": unknowns.count,
            "requirements": len(matrix.least),
            "checked": solution.checked,
        }
        rows: list[tuple[Value, ...]] = [("status", solution.status, None, None)]
        rows += [("figure", name, value, None) for name, value in figures.items()]
        if len(solution.amounts):
            rows += measure_solution(db, parts, unknowns, solution)
        return Table(("kind", "name", "value", "rows"), tuple(rows))


def cut_choice(unknowns: Unknowns, rows: Sequence[int]) -> Cut:
    """Return the constraint that excludes exactly these rows of the first variable as a choice."""
    first = next(iter(unknowns.starts))
    span = np.arange(unknowns.starts[first], unknowns.starts[first] + unknowns.sizes[first])
    chosen = np.isin(span - unknowns.starts[first], list(rows))
    # For this choice alone, the sum over its rows less the others is the number of its rows.
    return span.tolist(), np.where(chosen, 1.0, -1.0).tolist(), float(chosen.sum() - 1)


def measure_solution(
    db: duckdb.DuckDBPyConnection, parts: ModelStatements, unknowns: Unknowns, solution: Solution
) -> list[tuple[Value, ...]]:
    """Measure a solution by the model's SQL, on tables of the proposal. Whole amounts are rounded before."""
    amounts = solution.amounts.copy()
    # Within its tolerance, HiGHS gives 0.9999999 for 1.
    for one in unknowns.model.variables:
        if one.kind != "amount":
            span = slice(unknowns.starts[one.name], unknowns.starts[one.name] + unknowns.sizes[one.name])
            amounts[span] = np.round(amounts[span])
    unknowns.as_tables(amounts)
    rows: list[tuple[Value, ...]] = []
    for name, statement in parts.measures.items():
        rows.append(("measure", name, none_if_nan(query_number(db, statement, {})), None))
    for name, statement in parts.rules.items():
        for count, row in first_broken_rows(db, statement, {}, 1):
            rows.append(("rule", name, count, [plain_cells(row or {})]))
    for name in unknowns.starts:
        numbered = f"SELECT row_number() OVER () - 1 AS row, * FROM {quote_identifier(name)}"
        cursor = db.execute(f"SELECT * EXCLUDE (chosen) FROM ({numbered}) WHERE chosen ORDER BY row LIMIT {MOST_ROWS}")
        names = column_names(cursor)
        chosen = [plain_cells(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
        rows.append(("chosen", name, None, chosen))
    return rows


def plain_cells(row: Mapping[str, object]) -> dict[str, Value]:
    return {name: cell_as_plain_value(cell, SOLUTION_CELL_CHARS) for name, cell in row.items()}
