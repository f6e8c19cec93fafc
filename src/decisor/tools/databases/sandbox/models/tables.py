"""The tables of a model in its scratch database: types as at the source, decimals and varied numbers as DOUBLE."""

from __future__ import annotations

import json
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
MOMENT = re.compile(r"datetime|timestamp|date", re.I)
MOMENT_TEXT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
WHOLE = re.compile(r"int(eger)?\d*\b|serial", re.I)
LARGE_WHOLE = re.compile(r"u?hugeint|(dec|num)\w*\s*\(\s*(1[6-9]|[2-9]\d)\s*(,\s*0\s*)?\)", re.I)
"""Types of whole numbers that a DOUBLE does not hold."""
DIGITS = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?…?")
NAME = "__rows_in"
NUMPY: dict[str, type[np.generic]] = {"DOUBLE": np.float64, "BIGINT": np.int64, "BOOLEAN": np.bool_}
"""Kinds of columns that travel as numbers; the others travel as texts."""
MAX_EXACT = 2**53
"""Whole numbers beyond it are not all DOUBLEs."""


def load(db: duckdb.DuckDBPyConnection, tables: Mapping[str, Sequence[TableColumn]], doubles: Sequence[str]) -> None:
    """Raises SetupError where a table does not fit."""
    import duckdb

    wide = {name.lower() for name in doubles}
    for name, columns in tables.items():
        if name.startswith("__") or not columns:
            raise SetupError(f"{name} cannot be copied: its name begins with __, or it has no columns.")
        arrays: dict[str, NDArray[np.generic]] = {}
        casts = []
        for at, column in enumerate(columns):
            kind, values = typed(column, f"{name}.{column.name}".lower() in wide)
            missing = np.array([value is None for value in values], dtype=bool)
            arrays[f"v{at}"], arrays[f"m{at}"] = array(kind, values), missing
            # DuckDB 1.3 to 1.5 ignores the mask of a masked array, so each NULL would be 0, and reads nan as NULL.
            cell = f"CAST(v{at} AS {kind})"
            if kind == "DOUBLE" and np.isnan(arrays[f"v{at}"]).any():
                cell = f"coalesce({cell}, CAST('nan' AS DOUBLE))"
            casts.append(f"CASE WHEN m{at} THEN NULL ELSE {cell} END AS {quoted(column.name)}")
        try:
            db.register(NAME, arrays)
            db.execute(f"CREATE TABLE {quoted(name)} AS SELECT {', '.join(casts)} FROM {NAME}")
            db.unregister(NAME)
        except duckdb.Error as error:
            raise SetupError(f"{name} cannot be copied: {' '.join(str(error).split())}") from error


def array(kind: str, values: Sequence[Value]) -> NDArray[np.generic]:
    if kind in NUMPY:
        return np.array([0 if value is None else value for value in values], dtype=NUMPY[kind])
    texts = np.empty(len(values), dtype=object)
    texts[:] = [None if value is None else word(value) for value in values]
    return texts


def typed(column: TableColumn, wide: bool) -> tuple[str, Sequence[Value]]:
    """The type in DuckDB, and the values. ``wide``: numbers are held as DOUBLE whatever they are.

    >>> typed(TableColumn("id", "", (2**53 + 1, None)), False), typed(TableColumn("x", "NUMERIC", ("0.1", 2)), False)
    (('BIGINT', [9007199254740993, None]), ('DOUBLE', [0.1, 2]))
    """
    values = [number(value) for value in column.values] if numeric(column) else column.values
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "BOOLEAN", values
    if (kinds or wide) and kinds <= {int, float}:
        whole = whole_numbers(values, column.type) if not wide else None
        return (exact_kind(whole, column.type), whole) if whole else ("DOUBLE", values)
    if kinds == {str} and MOMENT.match(column.type):
        return moment(values), values
    return "VARCHAR" if kinds else empty_kind(column.type), values


def whole_numbers(values: Sequence[Value], kind: str) -> Sequence[int | None] | None:
    """As integers, where all are whole and a DOUBLE would not do: integers, one beyond 2^53, or a type of such."""
    there = [value for value in values if isinstance(value, int | float)]
    floats = [value for value in there if isinstance(value, float)]
    if not all(value.is_integer() for value in floats):
        return None
    if floats and max(map(abs, there)) <= MAX_EXACT and not LARGE_WHOLE.fullmatch(kind):
        return None
    return [int(value) if isinstance(value, int | float) else None for value in values]


def exact_kind(values: Sequence[int | None], kind: str) -> str:
    most = max(abs(value) for value in values if value is not None)
    if most < 2**63 and not LARGE_WHOLE.fullmatch(kind):
        return "BIGINT"
    return "HUGEINT" if most < 2**127 else "VARCHAR"


def moment(values: Sequence[Value]) -> str:
    """Dates as dates, where every value is one; with a time of day, all of them."""
    texts = [value for value in values if isinstance(value, str)]
    matches = [MOMENT_TEXT.fullmatch(text) for text in texts]
    if not all(matches):
        return "VARCHAR"
    return "TIMESTAMP" if any(match and match[1] for match in matches) else "DATE"


def empty_kind(kind: str) -> str:
    """Of a column without a value, by its type at the source.

    >>> empty_kind("BIGINT UNSIGNED"), empty_kind("DECIMAL(38, 0)"), empty_kind("INTERVAL")
    ('BIGINT', 'HUGEINT', 'DOUBLE')
    """
    if TEXT.search(kind):
        return "VARCHAR"
    if match := MOMENT.match(kind):
        return "DATE" if match[0].lower() == "date" else "TIMESTAMP"
    if LARGE_WHOLE.fullmatch(kind):
        return "HUGEINT"
    if WHOLE.search(kind):
        return "BIGINT"
    if NUMBER.search(kind):
        return "DOUBLE"
    return "BOOLEAN" if re.search("bool", kind, re.I) else "INTEGER"


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
    >>> number("0.333…"), number(3), number("NaN"), number("123456789012345678901234567890")
    (0.333, 3, nan, 123456789012345678901234567890)
    """
    if not isinstance(value, str):
        return value
    return int(value) if re.fullmatch(r"[+-]?\d+", value) else float(value.rstrip("…"))


def word(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
