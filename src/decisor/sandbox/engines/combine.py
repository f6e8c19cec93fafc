"""A scratch database of rows that a run has fetched: DuckDB in memory, no URL names it. It opens on JSON: name of a
table to its ``columns`` and ``rows``. Nothing outside it can be reached, and what it holds goes with its worker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.sandbox.engine import Caps, Engine
from decisor.sandbox.engines.duckdb import DIALECT, Duck, duckdb_connection_settings
from decisor.sandbox.sql_guard import SqlGuard
from decisor.types import Value

if TYPE_CHECKING:
    import duckdb

NUMBER = re.compile(r"-?(?:0|[1-9]\d*)\.\d+(?:[eE][-+]?\d+)?")
"""Digits of a decimal that no float is exactly, as they come from a database. 007 is a code, and stays text."""
AT_ONCE = 10_000
LARGEST = 2**63


def connect_scratch(url: str, caps: Caps) -> Duck:
    """Open a scratch database on the rows of observations. Raises SetupError if the rows do not fit."""
    import duckdb
    import sqlglot.dialects.duckdb  # noqa: F401  warm: the first query should not pay for it

    try:
        db = duckdb.connect(":memory:", config=dict(duckdb_connection_settings(caps.memory_mb)))
        db.execute("SET python_enable_replacements = false")  # no option of connect
        for name, table in json.loads(url).items():
            load_observation_table(db, name, table["columns"], table["rows"])
        # Last: it locks the settings above as well.
        db.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        raise SetupError(f"The rows cannot be combined: {' '.join(str(error).split())}") from error
    return Duck(db, SqlGuard(DIALECT))


def load_observation_table(
    db: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]
) -> None:
    cells = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in columns]
    kinds = [column_type_for(column) for column in cells]
    named = ", ".join(f"{DIALECT.quoted(column)} {kind}" for column, kind in zip(columns, kinds, strict=True))
    db.execute(f"CREATE TABLE {DIALECT.quoted(name)} ({named})")
    # A list for each column and unnest: executemany would bind each row by itself.
    holes = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
    for at in range(0, len(rows), AT_ONCE):
        part = [
            [fit_value_to_type(value, kind) for value in column[at : at + AT_ONCE]]
            for column, kind in zip(cells, kinds, strict=True)
        ]
        db.execute(f"INSERT INTO {DIALECT.quoted(name)} SELECT {holes}", part)


def column_type_for(values: Iterable[Value]) -> str:
    """Return the type of a column that holds all these values.

    >>> (column_type_for([1, None]), column_type_for([1, 2.5, "0.1"]), column_type_for(["007", "1.5"]),
    ...     column_type_for([True]), column_type_for([None]))
    ('BIGINT', 'DOUBLE', 'VARCHAR', 'BOOLEAN', 'VARCHAR')
    """
    kinds = {value_type(value) for value in values if value is not None}
    if len(kinds) == 1:
        return kinds.pop()
    return "DOUBLE" if kinds and kinds <= {"BIGINT", "DOUBLE"} else "VARCHAR"


def value_type(value: Value) -> str:
    match value:
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT" if -LARGEST <= value < LARGEST else "DOUBLE"
        case float():
            return "DOUBLE"
        case str() if NUMBER.fullmatch(value):
            return "DOUBLE"
        case _:
            return "VARCHAR"


def fit_value_to_type(value: Value, kind: str) -> object:
    if value is None or isinstance(value, str):
        return value
    if kind == "VARCHAR":
        return json.dumps(value, ensure_ascii=False, default=str)
    return value


ENGINE = Engine(name="combine", title="DuckDB", schemes=(), form="sql", connect=connect_scratch, dialect=DIALECT)
