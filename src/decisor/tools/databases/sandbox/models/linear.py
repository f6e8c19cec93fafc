"""An integer program made of queries: [variable], [require] and the ``sum`` of a measure.

A variable is a table with a column of unknowns. A requirement has one row for each row of ``each``; a term
``coefficient * variable`` sums over the variable's rows that agree with it in the columns that both have, or in those
of ``variable[a = b]`` (a of the variable, b of the row).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from decisor.errors import ToolError
from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.alone import execute
from decisor.tools.databases.sandbox.models.highs import Matrix
from decisor.tools.databases.sandbox.models.program import Linear, Program
from decisor.tools.databases.sandbox.models.results import Floats
from decisor.tools.databases.sandbox.models.statements import queries
from decisor.tools.databases.sandbox.values import plain

if TYPE_CHECKING:
    import duckdb

TERM = re.compile(r"\s*([+-]?)\s*(?:([A-Za-z_][\w.]*|\d+\.?\d*)\s*\*\s*)?([A-Za-z_]\w*)\s*(?:\[([^\]]*)\])?\s*")
KINDS = {"yes or no": (0.0, 1.0, True), "whole": (0.0, np.inf, True), "amount": (0.0, np.inf, False)}
MOST_UNKNOWNS = 1_000_000
ANSWER = ("amount", "chosen")
"""Columns that the solver's answer adds to those of a variable."""
CELL_CHARS = 40


@dataclass
class Unknowns:
    """``starts``: variable -> the number of its first unknown; ``columns``: of its table."""

    db: duckdb.DuckDBPyConnection
    program: Program
    starts: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0

    def read(self) -> None:
        """A table ``__x_NAME`` for each variable. Raises ToolError with the part of the file."""
        for one in self.program.variables:
            part = f"variable.{one.name}.each"
            self.columns[one.name] = self.numbered(f"__x_{one.name}", part, one.fields["each"])
            if clash := next((name for name in self.columns[one.name] if name.lower() in ANSWER), ""):
                raise ToolError(f"{part}: a column is called {clash}, as a column of the solver's answer is. Give it "
                                f"another name: {clash} AS {clash}_1.")  # fmt: skip
            size = self.db.execute(f"SELECT count(*) FROM {quoted('__x_' + one.name)}").fetchall()[0][0]
            self.starts[one.name], self.sizes[one.name] = self.count, size
            self.count += size
        if not self.count or self.count > MOST_UNKNOWNS:
            raise ToolError(f"variable: {self.count:,} unknowns; there are to be 1 to {MOST_UNKNOWNS:,}.")

    def numbered(self, table: str, part: str, sql: str) -> list[str]:
        """The rows of a query with their number, as a table; its columns."""
        statement = queries(part, sql, self.program.parameters)
        columns = [name for name, *_ in execute(self.db, statement, {}).description or ()]
        inner = statement.tree.sql("duckdb")
        self.db.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(table)} AS "
                        f"SELECT *, row_number() OVER () - 1 AS __n FROM ({inner})")  # fmt: skip
        return columns

    def matrix(self, fixed: dict[int, float], cuts: list[tuple[list[int], list[float], float]]) -> Matrix:
        """``fixed``: unknowns with a given amount. ``cuts``: unknowns, coefficients, and the most of their sum."""
        low, high, whole = np.zeros(self.count), np.zeros(self.count), np.zeros(self.count, dtype=bool)
        for one in self.program.variables:
            span = slice(self.starts[one.name], self.starts[one.name] + self.sizes[one.name])
            low[span], high[span], whole[span] = KINDS[one.fields["kind"]]
            if one.fields.get("most") is not None:
                # HiGHS calls 2.5 optimal for a whole unknown whose most is 2.5, and has no amounts then.
                is_whole = KINDS[one.fields["kind"]][2]
                high[span] = np.floor(one.fields["most"]) if is_whole else one.fields["most"]
        for unknown, value in fixed.items():
            low[unknown] = high[unknown] = value
        goal = next(iter(self.program.goals), None)
        first = next(iter(self.program.measures))
        if goal is None or goal.name != first:
            raise ToolError(f"measure.{first} needs sum, as it decides and the solver is to find the best.")
        self.db.execute("CREATE OR REPLACE TEMP TABLE __key AS SELECT 0 AS __n")
        cells = self.terms(f"measure.{goal.name}.sum", goal.fields["sum"], [])
        cost = np.zeros(self.count)
        cost[cells["x"]] = cells["c"]
        matrix = Matrix(low, high, whole, cost, goal.fields["goal"] == "min")
        for require in self.program.requirements:
            self.require(matrix, require)
        for unknowns, coefficients, most in cuts:
            matrix.add(np.zeros(len(unknowns), dtype=int), unknowns, coefficients, [-np.inf], [most])
        if not matrix.triples:
            matrix.add([0], [0], [0.0], [-np.inf], [np.inf])
        return matrix

    def require(self, matrix: Matrix, one: Linear) -> None:
        part, side = f"require.{one.name}", one.fields["side"]
        keys = self.numbered("__key", f"{part}.each", one.fields["each"] or "SELECT 0 AS one")
        size = self.db.execute("SELECT count(*) FROM __key").fetchall()[0][0]
        bound = self.bound(part, one.fields["bound"], keys, size)
        cells = self.terms(f"{part}.sum", one.fields["sum"], keys)
        none = np.full(size, np.inf)
        least = -none if side == "at_most" else bound
        greatest = none if side == "at_least" else bound
        matrix.add(cells["n"], cells["x"], cells["c"], least.tolist(), greatest.tolist())

    def bound(self, part: str, value: Any, keys: list[str], size: int) -> Floats:
        """A number, a column of ``each``, or a query that gives one number."""
        if isinstance(value, str) and value.strip() in keys:
            column = quoted(value.strip())
            self.check_numbers(f"SELECT *, {column} AS __v FROM __key", f"{part}: its bound {value.strip()}")
            cells = self.db.execute(f"SELECT CAST({column} AS DOUBLE) AS v FROM __key ORDER BY __n")
            return np.asarray(cells.fetchnumpy()["v"], dtype=np.float64)
        if isinstance(value, str):
            rows = execute(self.db, queries(part, value, self.program.parameters), {}).fetchmany(2)
            if len(rows) != 1 or len(rows[0]) != 1 or rows[0][0] is None or rows[0][0] != rows[0][0]:
                raise ToolError(f"{part}: its bound must be one number; the query gives NULL, none or several.")
            value = rows[0][0]
        return np.full(size, float(value))

    def check_numbers(self, query: str, subject: str, test: str = "isnan") -> None:
        """Raise ToolError with the first row whose ``__v`` is no number: the solver would read it as 0."""
        odd = f'CAST("__v" AS DOUBLE) IS NULL OR {test}(CAST("__v" AS DOUBLE))'
        cursor = self.db.execute(f"SELECT * EXCLUDE (__n) FROM ({query}) WHERE {odd} LIMIT 1")
        names = [name for name, *_ in cursor.description or ()]
        for row in cursor.fetchall():
            cells = [f"{name} {plain(cell, CELL_CHARS)}" for name, cell in zip(names, row, strict=True)
                     if name != "__v" and cell is not None]  # fmt: skip
            value = "NULL" if row[-1] is None else "not a number" if row[-1] != row[-1] else "infinite"
            raise ToolError(f"{subject} is {value} in the row of {', '.join(cells) or 'nothing'}. Mend the data, or "
                            "say with coalesce what it is.")  # fmt: skip

    def terms(self, part: str, words: str, keys: list[str]) -> dict[str, NDArray[np.generic]]:
        """Row ``n`` of __key, unknown ``x`` and coefficient ``c``, each pair once."""
        parts = " UNION ALL ".join(self.term(part, *pieces, keys) for pieces in pieces_of(part, words))
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
        joined = " AND ".join(f"v.{quoted(here[a.lower()])} = k.{quoted(there[b.lower()])}" for a, b in same) or "TRUE"
        value = factor(part, coefficient, here, there)
        start = self.starts[variable]
        source = f"FROM __key AS k JOIN {quoted('__x_' + variable)} AS v ON {joined}"
        self.check_numbers(
            f"SELECT v.*, {value} AS __v {source}", f"{part}: the coefficient {coefficient or 1} of {variable}",
            "NOT isfinite"
        )  # fmt: skip
        return (f"SELECT k.__n AS n, {start} + v.__n AS x, {sign}1 * CAST({value} AS DOUBLE) AS c "
                f"{source}")  # fmt: skip

    def as_tables(self, amounts: Floats) -> None:
        """What is proposed, as tables under the names of the variables: their columns, ``amount``, ``chosen``."""
        for name, start in self.starts.items():
            values = amounts[start : start + self.sizes[name]]
            self.db.register("__amounts", {"__n": np.arange(len(values)), "amount": np.ascontiguousarray(values)})
            columns = ", ".join(f"v.{quoted(column)}" for column in self.columns[name])
            self.db.execute(
                f"CREATE OR REPLACE TEMP TABLE {quoted(name)} AS SELECT {columns}, amount, amount > 0.5 AS chosen "
                f"FROM {quoted('__x_' + name)} AS v JOIN __amounts USING (__n) ORDER BY __n"
            )
            self.db.unregister("__amounts")


def factor(part: str, coefficient: str, here: dict[str, str], there: dict[str, str]) -> str:
    if not coefficient:
        return "1"
    if coefficient[0].isdigit():
        return coefficient
    if coefficient.lower() in here:
        return f"v.{quoted(here[coefficient.lower()])}"
    if coefficient.lower() in there:
        return f"k.{quoted(there[coefficient.lower()])}"
    raise ToolError(f"{part}: {coefficient} is no column of the variable or of each.")


def pieces_of(part: str, words: str) -> Iterator[tuple[str, str, str, str]]:
    """Sign, coefficient, variable and pairs of columns, of each term.

    >>> list(pieces_of("sum", "units * serve - pay[project = first]"))
    [('', 'units', 'serve', ''), ('-', '', 'pay', 'project = first')]
    """
    text, at = words.strip(), 0
    while at < len(text):
        match = TERM.match(text, at)
        if match is None or (at and not match[1]):
            raise ToolError(f"{part}: {text[at : at + 40]!r} is no term; write coefficient * variable, with + or -.")
        yield match[1] or "", match[2] or "", match[3], match[4] or ""
        at = match.end()
