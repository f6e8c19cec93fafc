"""The job ``solve``: the solver proposes, and the model's own SQL measures what it proposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.alone import cells, changed, number
from decisor.tools.databases.sandbox.models.highs import Solution, solve
from decisor.tools.databases.sandbox.models.linear import Unknowns
from decisor.tools.databases.sandbox.models.parts import Parts
from decisor.tools.databases.sandbox.models.program import Program
from decisor.tools.databases.sandbox.models.statements import Statement
from decisor.tools.databases.sandbox.values import plain
from decisor.types import Table, Value

if TYPE_CHECKING:
    import duckdb

MOST_ROWS = 1_000
CELL_CHARS = 200
Cut = tuple[list[int], list[float], float]


def propose(
    db: duckdb.DuckDBPyConnection, program: Program, parts: Parts, before: Sequence[Statement], seconds: float,
    forced: Sequence[tuple[str, int, float]], excluded: Sequence[Sequence[int]], seed: int | None = None,
) -> Table:  # fmt: skip
    """The best choice, as rows of kind and value. ``forced``: variable, row and amount. ``excluded``: choices of the
    first variable, by the rows that are chosen, that may not come out again. ``seed``: of a trial."""
    with changed(db, program, before, seed):
        unknowns = Unknowns(db, program)
        unknowns.read()
        fixed = {unknowns.starts[name] + row: value for name, row, value in forced}
        matrix = unknowns.matrix(fixed, [cut(unknowns, rows) for rows in excluded])
        solution = solve(matrix, seconds)
        rows = list(figures(solution, unknowns.count, len(matrix.least)))
        if len(solution.amounts):
            rows += measured(db, parts, unknowns, solution)
        return Table(("kind", "name", "value", "rows"), tuple(rows))


def figures(solution: Solution, unknowns: int, rows: int) -> Sequence[tuple[Value, ...]]:
    numbers = {"objective": solution.objective, "bound": solution.bound, "seconds": solution.seconds,
               "unknowns": unknowns, "requirements": rows, "checked": solution.checked}  # fmt: skip
    return [
        ("status", solution.status, None, None),
        *(("figure", name, value, None) for name, value in numbers.items()),
    ]


def cut(unknowns: Unknowns, rows: Sequence[int]) -> Cut:
    """Not these rows of the first variable, and no others."""
    first = next(iter(unknowns.starts))
    span = np.arange(unknowns.starts[first], unknowns.starts[first] + unknowns.sizes[first])
    chosen = np.isin(span - unknowns.starts[first], list(rows))
    return span.tolist(), np.where(chosen, 1.0, -1.0).tolist(), float(chosen.sum() - 1)


def measured(
    db: duckdb.DuckDBPyConnection, parts: Parts, unknowns: Unknowns, solution: Solution
) -> list[tuple[Value, ...]]:
    """By the model's SQL, on tables of what is proposed: whole numbers are made whole before."""
    amounts = solution.amounts.copy()
    for one in unknowns.program.variables:
        if one.fields["kind"] != "amount":
            span = slice(unknowns.starts[one.name], unknowns.starts[one.name] + unknowns.sizes[one.name])
            amounts[span] = np.round(amounts[span])
    unknowns.as_tables(amounts)
    rows: list[tuple[Value, ...]] = []
    for name, statement in parts.measures.items():
        value = number(db, statement, {})
        rows.append(("measure", name, None if value != value else value, None))
    for name, statement in parts.rules.items():
        for count, row in cells(db, statement, {}, 1)[:1]:
            rows.append(("rule", name, count, [{key: plain(cell, CELL_CHARS) for key, cell in (row or {}).items()}]))
    for name in unknowns.starts:
        rows.append(("chosen", name, None, chosen_rows(db, name)))
    return rows


def chosen_rows(db: duckdb.DuckDBPyConnection, name: str) -> list[Value]:
    """With their number (row), the first thousand."""
    numbered = f"SELECT row_number() OVER () - 1 AS row, * FROM {quoted(name)}"
    cursor = db.execute(f"SELECT * EXCLUDE (chosen) FROM ({numbered}) WHERE chosen ORDER BY row LIMIT {MOST_ROWS}")
    names = [one for one, *_ in cursor.description or ()]
    return [{key: plain(cell, CELL_CHARS) for key, cell in zip(names, row, strict=True)} for row in cursor.fetchall()]
