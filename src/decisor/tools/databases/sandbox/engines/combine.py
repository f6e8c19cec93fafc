"""A scratch database of rows that a run has fetched: DuckDB in memory, no URL names it. It opens on JSON: name of a
table to its ``columns`` and ``rows``. Nothing outside it can be reached, and what it holds goes with its worker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.tools.databases.sandbox.engine import Caps, Engine
from decisor.tools.databases.sandbox.engines.duckdb import DIALECT, Duck, settings
from decisor.tools.databases.sandbox.guard import Guard
from decisor.types import Value

if TYPE_CHECKING:
    import duckdb

NUMBER = re.compile(r"-?(?:0|[1-9]\d*)\.\d+(?:[eE][-+]?\d+)?")
"""Digits of a decimal that no float is exactly, as they come from a database. 007 is a code, and stays text."""
AT_ONCE = 10_000
LARGEST = 2**63


def connect(url: str, caps: Caps) -> Duck:
    """Raises SetupError where the rows do not fit."""
    import duckdb
    import sqlglot.dialects.duckdb  # noqa: F401  warm: the first query should not pay for it

    try:
        db = duckdb.connect(":memory:", config=dict(settings(caps.memory_mb)))
        db.execute("SET python_enable_replacements = false")  # no option of connect
        for name, table in json.loads(url).items():
            load(db, name, table["columns"], table["rows"])
        db.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        raise SetupError(f"The rows cannot be combined: {' '.join(str(error).split())}") from error
    return Duck(db, Guard(DIALECT))


def load(db: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> None:
    cells = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in columns]
    kinds = [kind_of(column) for column in cells]
    named = ", ".join(f"{DIALECT.quoted(column)} {kind}" for column, kind in zip(columns, kinds, strict=True))
    db.execute(f"CREATE TABLE {DIALECT.quoted(name)} ({named})")
    holes = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
    for at in range(0, len(rows), AT_ONCE):
        part = [[fitting(value, kind) for value in column[at : at + AT_ONCE]] for column, kind in
                zip(cells, kinds, strict=True)]  # fmt: skip
        db.execute(f"INSERT INTO {DIALECT.quoted(name)} SELECT {holes}", part)


def kind_of(values: Iterable[Value]) -> str:
    """The type of a column that holds all of them.

    >>> kind_of([1, None]), kind_of([1, 2.5, "0.1"]), kind_of(["007", "1.5"]), kind_of([True]), kind_of([None])
    ('BIGINT', 'DOUBLE', 'VARCHAR', 'BOOLEAN', 'VARCHAR')
    """
    kinds = {one(value) for value in values if value is not None}
    if len(kinds) == 1:
        return kinds.pop()
    return "DOUBLE" if kinds and kinds <= {"BIGINT", "DOUBLE"} else "VARCHAR"


def one(value: Value) -> str:
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


def fitting(value: Value, kind: str) -> object:
    if value is None or isinstance(value, str):
        return value
    if kind == "VARCHAR":
        return json.dumps(value, ensure_ascii=False, default=str)
    return value


ENGINE = Engine(name="combine", title="DuckDB", schemes=(), form="sql", connect=connect, dialect=DIALECT)
