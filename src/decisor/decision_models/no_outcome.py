"""Cells without a value: why a candidate has no outcome, and what sums and means pass over without a word."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from decisor.decision_models.copying import Copy
from decisor.decision_models.machine import OpenModel
from decisor.types import Value

if TYPE_CHECKING:
    from sqlglot import exp

NAMED_CELLS = 3


def no_outcome(model: OpenModel, candidate: int, value: float) -> str:
    """In words, with the row and the column that lacks a value where one is found."""
    first = model.model.first
    if math.isinf(value):
        return f"{first.name} is infinite: it divides by 0, or adds an infinite number"
    return f"{first.name} is NULL or not a number: {empty_cell(model, candidate) or 'there is no row to measure'}"


def empty_cell(model: OpenModel, candidate: int) -> str:
    """A cell without a number that the model names: of the chosen rows, else of a row that shares a value with them."""
    words = set(re.findall(r"\w+", " ".join(model.model.statements().values()).lower()))
    table, rows = model.candidates.table, model.candidates.rows(candidate)
    for row in rows:
        if lacks := [name for name, cell in zip(table.columns, row, strict=True) if is_empty(cell)]:
            return f"{lacks[0]} is NULL in the chosen row {row_words(table.columns, row)}"
    own = {cell for row in rows for cell in row if isinstance(cell, str)}
    cells = [one for copy in model.copies.values() if (one := empty_cell_of(copy, words, own))]
    return next((text for shared, text in sorted(cells, reverse=True)), "")


def empty_cell_of(copy: Copy, words: set[str], own: set[str]) -> tuple[bool, str] | None:
    """The first of a table, one that shares a value first, and whether it does."""
    names = [column.name for column in copy.columns]
    read = [at for at, name in enumerate(names) if name.lower() in words]
    best = None
    for row in zip(*(column.values for column in copy.columns), strict=True):
        lacks = next((names[at] for at in read if is_empty(row[at])), "")
        shared = any(isinstance(cell, str) and cell in own for cell in row)
        if lacks and (best is None or shared):
            best = (shared, f"{copy.name}.{lacks} is NULL in the row {row_words(names, row)}")
            if shared:
                break
    return best


def cells_left_out(model: OpenModel) -> Iterator[tuple[str, str]]:
    """Tell, by part of the file, which cells a sum, mean, minimum or maximum of a measure or rule passes over as NULL.

    Where a statement says what is meant (coalesce, CASE, IS NULL), nothing is told.
    """
    from sqlglot import exp, parse_one

    chosen = model.candidates.table
    tables = {
        copy.name.lower(): {one.name.lower(): one.values for one in copy.columns} for copy in model.copies.values()
    }
    tables["choice"] = dict(zip(map(str.lower, chosen.columns), zip(*chosen.rows, strict=True), strict=False))
    for part, text in model.model.statements().items():
        if not part.startswith(("measure.", "rule.")):
            continue
        tree = parse_one(text, dialect="duckdb")
        names = {one.alias_or_name.lower(): one.name.lower() for one in tree.find_all(exp.Table)}
        tested = {
            one.name.lower()
            for test in tree.find_all(exp.Is, exp.Coalesce, exp.Case)
            for one in test.find_all(exp.Column)
        }
        seen: set[str] = set()
        for aggregate in tree.find_all(exp.Sum, exp.Avg, exp.Min, exp.Max):
            for column in aggregate.find_all(exp.Column):
                table = table_of(column, names, tables)
                cells = tables[table][column.name.lower()] if table else ()
                if (count := sum(map(is_empty, cells))) and column.name.lower() not in tested | seen:
                    seen.add(column.name.lower())
                    rows = f"rows of {table} whose {column.name} is NULL ({count:,} of {len(cells):,})"
                    hint = f"write coalesce({column.name}, ...), or mend the data"
                    yield part, f"{aggregate.sql('duckdb')} passes over {rows}: {hint}"


def table_of(column: exp.Column, names: Mapping[str, str], tables: Mapping[str, Mapping[str, object]]) -> str:
    """The table that a column is of; '' where that is not sure."""
    if column.table:
        there = [names.get(column.table.lower(), "")]
    else:
        there = [name for name in dict.fromkeys(names.values()) if column.name.lower() in tables.get(name, {})]
    return there[0] if len(there) == 1 and column.name.lower() in tables.get(there[0], {}) else ""


def is_empty(cell: Value) -> bool:
    return cell is None or cell == "NaN"


def row_words(names: tuple[str, ...] | list[str], row: tuple[Value, ...]) -> str:
    cells = [f"{name} {cell}" for name, cell in zip(names, row, strict=True) if not is_empty(cell)]
    return ", ".join(cells[:NAMED_CELLS]) or "without values"
