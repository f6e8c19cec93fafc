"""One candidate after the other: the statements as they stand in the file, undone afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from decisor.errors import ToolError
from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.choosing import ROWS, Anew, read_anew
from decisor.tools.databases.sandbox.models.parts import Parts
from decisor.tools.databases.sandbox.models.program import Program
from decisor.tools.databases.sandbox.models.results import Results
from decisor.tools.databases.sandbox.models.spread import DRAWS, register_draws, replaced, tables_of
from decisor.tools.databases.sandbox.models.statements import Statement
from decisor.tools.databases.sandbox.models.together import MAX_ROUNDS, beyond, settled
from decisor.types import Value

if TYPE_CHECKING:
    import duckdb


def evaluate(
    db: duckdb.DuckDBPyConnection, program: Program, parts: Parts, before: Sequence[Statement], seed: int | None,
    places: Sequence[Sequence[int]], columns: Sequence[str], most: int, anew: Anew | None = None,
) -> Results:  # fmt: skip
    """``before``: what holds for all candidates. Raises ToolError naming the statement that fails."""
    results = Results.empty([*parts.measures], [*parts.rules, *parts.bounds], len(places))
    results.how = "one by one"
    bounds = {name: np.full(len(places), np.nan) for name in parts.bounds}
    for at, rows in enumerate(places):
        with changed(db, program, before, seed), chosen(db, rows, parts.choice, anew, columns) as note:
            results.note = note
            values = row_of(db, columns, rows) if program.single else {}
            for statement in parts.change:
                execute(db, statement, values)
            settle(db, program, parts, values)
            for name, statement in parts.measures.items():
                results.values[name][at] = number(db, statement, values)
            for name, statement in parts.rules.items():
                for row in cells(db, statement, values, most):
                    results.broken[name].add(at, *row)
            for name, statement in parts.bounds.items():
                bounds[name][at] = number(db, statement, values)
    for name, bound in bounds.items():
        beyond(name, program.limits[name], results, bound)
    return results


def present(
    db: duckdb.DuckDBPyConnection, program: Program, parts: Parts, before: Sequence[Statement], seed: int | None
) -> dict[str, float | None]:
    """Each measure with nothing chosen; None where it is made of the choice."""
    with changed(db, program, before, seed), chosen(db, ()):
        settle(db, program, parts, {})
        return {
            name: None if statement.names or "choice" in statement.reads else number(db, statement, {})
            for name, statement in parts.measures.items()
        }


@contextmanager
def changed(
    db: duckdb.DuckDBPyConnection, program: Program, before: Iterable[Statement], seed: int | None
) -> Iterator[None]:
    """A transaction in which the inputs are varied and ``before`` holds; rolled back."""
    seeds = [] if seed is None else [seed]
    db.execute("BEGIN")
    try:
        for name, spreads in tables_of(program.spreads if seeds else ()).items():
            sets = ", ".join(f"{place} = {value}" for place, value in replaced(name, spreads))
            register_draws(db, name, spreads, seeds)
            db.execute(f"UPDATE {quoted(name)} SET {sets} FROM {DRAWS} AS __d WHERE __d.r = {quoted(name)}.rowid")
            db.unregister(DRAWS)
        for statement in before:
            execute(db, statement, {})
        yield
    finally:
        db.execute("ROLLBACK")


@contextmanager
def chosen(
    db: duckdb.DuckDBPyConnection, rows: Sequence[int], choice: Statement | None = None, anew: Anew | None = None,
    columns: Sequence[str] = (),
) -> Iterator[str]:  # fmt: skip
    """The table ``choice`` with these rows; it goes with the transaction. ``anew``: where they are to be read on the
    changed data; it gives what is to be said of that."""
    table, note = ROWS, ""
    if anew is not None and choice is not None:
        table, note = read_anew(db, anew, columns, choice.tree.sql("duckdb"))
    numbers = ", ".join(map(str, rows)) or "NULL"
    query = f'SELECT * EXCLUDE ("__r") FROM {table} WHERE "__r" IN ({numbers}) ORDER BY "__r"'
    db.execute(f"CREATE TEMP TABLE choice AS {query}")
    yield note


def row_of(db: duckdb.DuckDBPyConnection, columns: Sequence[str], rows: Sequence[int]) -> dict[str, object]:
    """The columns of the one row that is chosen, as what names it in a statement."""
    return {name: f"(SELECT {quoted(name)} FROM choice)" for name in columns} if len(rows) == 1 else {}


def execute(db: duckdb.DuckDBPyConnection, statement: Statement, values: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """Raises ToolError with the part of the file, and DuckDB's complaint."""
    import duckdb
    from sqlglot import exp, parse_one

    tree = statement.tree
    if statement.names:
        tree = tree.copy()
        for place in list(tree.find_all(exp.Placeholder)):
            if place.name not in values:
                raise ToolError(f"{statement.part}: there is no parameter ${place.name}; there is "
                                f"{', '.join('$' + name for name in values) or 'none'}.")  # fmt: skip
            place.replace(parse_one(values[place.name], read="duckdb"))
    try:
        return db.execute(tree.sql("duckdb"))
    except duckdb.Error as error:
        raise ToolError(f"{statement.part}: {complaint(error)}") from error


def complaint(error: Exception) -> str:
    """
    >>> complaint(ValueError("Binder Error: no x!\\n\\nLINE 1: SELECT x"))
    'Binder Error: no x!'
    """
    return " ".join(str(error).split("\n\nLINE ")[0].split())[:400]


def settle(db: duckdb.DuckDBPyConnection, program: Program, parts: Parts, values: dict[str, object]) -> None:
    """Raises ToolError where it does not settle."""
    last = None
    for _ in range(program.times or MAX_ROUNDS) if parts.recompute else ():
        for statement in parts.recompute:
            execute(db, statement, values)
        if parts.until is not None:
            here = number(db, parts.until, values)
            if last is not None and settled(here, last):
                return
            last = here
    if parts.until is not None:
        raise ToolError(f"recompute.until has not settled after {program.times or MAX_ROUNDS} rounds.")


def number(db: duckdb.DuckDBPyConnection, statement: Statement, values: dict[str, object]) -> float:
    """nan where there is none. Raises ToolError where there is another thing."""
    rows = execute(db, statement, values).fetchmany(2)
    if len(rows) > 1 or (rows and len(rows[0]) != 1):
        raise ToolError(f"{statement.part} must give one number; it gives {'several rows' if len(rows) > 1 else ''}"
                        f"{f'{len(rows[0])} columns' if len(rows[0]) > 1 else ''}.")  # fmt: skip
    value = rows[0][0] if rows else None
    if value is None:
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ToolError(f"{statement.part} must give a number; it gives {str(value)[:80]!r}.") from error


def cells(
    db: duckdb.DuckDBPyConnection, statement: Statement, values: dict[str, Any], most: int
) -> list[tuple[int, dict[str, Value] | None]]:
    """How many rows there are, with each of the first."""
    cursor = execute(db, statement, values)
    names = [name for name, *_ in cursor.description or ()]
    rows = sorted(cursor.fetchall(), key=str)
    shown_rows = [dict(zip(names, row, strict=True)) if most else None for row in rows[: max(1, most)]]
    return [(len(rows), row) for row in shown_rows]
