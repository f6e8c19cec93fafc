"""Why a candidate has no outcome: the measure is infinite or no number, and which cell of the data has none."""

from __future__ import annotations

import math
import re

from decisor.decision_models.copying import Copy
from decisor.decision_models.machine import OpenModel
from decisor.types import Value

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


def is_empty(cell: Value) -> bool:
    return cell is None or cell == "NaN"


def row_words(names: tuple[str, ...] | list[str], row: tuple[Value, ...]) -> str:
    cells = [f"{name} {cell}" for name, cell in zip(names, row, strict=True) if not is_empty(cell)]
    return ", ".join(cells[:NAMED_CELLS]) or "without values"
