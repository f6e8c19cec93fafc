"""The tables of a model in its scratch database: types as at the source, decimals and varied numbers as DOUBLE."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from decisor.errors import SetupError
from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.program import TableColumn
from decisor.types import Value

if TYPE_CHECKING:
    import duckdb

TEXT = re.compile(r"char|text|string|clob|enum|uuid|json", re.I)
NUMBER = re.compile(r"int|dec|num|real|doub|float|money|serial|hugeint", re.I)
MOMENT = re.compile(r"(date|timestamp)", re.I)
DIGITS = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?…?")
NAME = "__rows_in"


def load(db: duckdb.DuckDBPyConnection, tables: Mapping[str, Sequence[TableColumn]], doubles: Sequence[str]) -> None:
    """Raises SetupError where a table does not fit."""
    import duckdb

    wide = {name.lower() for name in doubles}
    for name, columns in tables.items():
        if name.startswith("__") or not columns:
            raise SetupError(f"{name} cannot be copied: its name begins with __, or it has no columns.")
        cells = {one.name: array(one, f"{name}.{one.name}".lower() in wide) for one in columns}
        casts = ", ".join(cast(one) for one in columns)
        try:
            db.register(NAME, cells)
            db.execute(f"CREATE TABLE {quoted(name)} AS SELECT {casts} FROM {NAME}")
            db.unregister(NAME)
        except duckdb.Error as error:
            raise SetupError(f"{name} cannot be copied: {' '.join(str(error).split())}") from error


def cast(column: TableColumn) -> str:
    """Dates as dates, where every value is one."""
    name = quoted(column.name)
    kind = MOMENT.match(column.type)
    if kind is None:
        return name
    word = kind[1].upper()
    fits = all(value is None or (isinstance(value, str) and MOMENT_TEXT.fullmatch(value)) for value in column.values)
    return f"CAST({name} AS {word}) AS {name}" if fits else name


MOMENT_TEXT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")


def array(column: TableColumn, wide: bool) -> NDArray[np.generic]:
    """One numpy array, masked where a value is missing."""
    values = [number(value) for value in column.values] if numeric(column) else list(column.values)
    present = [value for value in values if value is not None]
    missing = np.array([value is None for value in values], dtype=bool)
    if present and all(type(value) is bool for value in present):
        return masked(values, missing, np.bool_, False)
    if present and all(type(value) is int for value in present) and not wide:
        small = all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in present)
        return masked(values, missing, np.int64 if small else np.float64, 0)
    if (present or wide) and all(type(value) in (int, float) for value in present):
        return masked(values, missing, np.float64, 0.0)
    if not present and NUMBER.search(column.type) and not TEXT.search(column.type):
        return masked(values, missing, np.float64, 0.0)
    texts = np.empty(len(values), dtype=object)
    texts[:] = [value if value is None else word(value) for value in values]
    return texts


def masked(
    values: Sequence[object], missing: NDArray[np.bool_], kind: type[np.generic], empty: object
) -> NDArray[np.generic]:
    filled = np.array([empty if value is None else value for value in values], dtype=kind)
    return np.ma.masked_array(filled, mask=missing) if missing.any() else filled


def numeric(column: TableColumn) -> bool:
    """Whether the source has numbers in it: by its type, or where some cells are numbers and the others their digits
    (decimals that no float holds exactly)."""
    if TEXT.search(column.type):
        return False
    texts = [value for value in column.values if isinstance(value, str)]
    if column.type and not NUMBER.search(column.type):
        return False
    digits = all(DIGITS.fullmatch(text) or text in ("NaN", "inf", "-inf") for text in texts)
    return bool(texts) and digits and (bool(column.type) or any(type(value) is float for value in column.values))


def number(value: Value) -> Value:
    """
    >>> number("0.333…"), number(3), number("NaN")
    (0.333, 3, None)
    """
    if isinstance(value, str):
        value = float(value.rstrip("…"))
    return None if isinstance(value, float) and math.isnan(value) else value


def word(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
