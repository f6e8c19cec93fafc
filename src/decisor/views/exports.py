"""The rows of one result of a run to take along: CSV for spreadsheets, Parquet and Arrow for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from decisor.databases.combine import table_of_records
from decisor.sandbox.wire import number_repeated_names
from decisor.system.text import guard_formula, quote_identifier
from decisor.trace.events import ActionResult, TraceEntry, events_of
from decisor.types import Record, Table

MOST_INTEGER = 2**63 - 1


def rows_of_result(entries: Sequence[TraceEntry], name: str) -> list[Record]:
    """Return the records of the result with a name such as o2; [] if there is none."""
    for result in events_of(entries, ActionResult):
        records = result.observation.records
        if records and records[0].id.partition(".")[0] == name:
            return list(records)
    return []


@dataclass(frozen=True)
class ResultTable:
    """The rows that one query of a run brought back, as ``result.table("o2")`` gives them."""

    records: tuple[Record, ...]

    @cached_property
    def table(self) -> Table:
        """The rows as they are handed to other programs."""
        return table_of_records(self.records, truncated=False)

    @property
    def columns(self) -> list[str]:
        """Names of the columns; passages have ``text`` and ``source`` too."""
        return list(map(str, self.table.columns))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Values by column, a dictionary a row."""
        return [dict(zip(self.table.columns, row, strict=True)) for row in self.table.rows]

    def __len__(self) -> int:
        return len(self.records)

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas, which must be installed."""
        return import_module("pandas").DataFrame(self.rows, columns=self.columns)

    def to_polars(self) -> Any:
        """Return a DataFrame of Polars, which must be installed."""
        return import_module("polars").DataFrame(self)

    def to_arrow(self) -> Any:
        """Return a table of PyArrow, which must be installed."""
        return import_module("pyarrow").table(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as Arrow hands them to other programs (the Arrow PyCapsule interface)."""
        return load_records(duckdb.connect(), self.records).__arrow_c_stream__(requested_schema)


def write_csv(records: Sequence[Record]) -> bytes:
    """Write records as CSV in UTF-8. A text that a spreadsheet would run as a formula gets an apostrophe before it."""
    table = table_of_records(records, truncated=False)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(map(defuse, table.columns))
    writer.writerows([defuse(cell) for cell in row] for row in table.rows)
    # Spreadsheets take a file for UTF-8 only by its first mark.
    return b"\xef\xbb\xbf" + file.getvalue().encode("utf-8", "replace")


def defuse(value: object) -> object:
    """Return a cell for a spreadsheet.

    >>> defuse("=1+1"), defuse(-4.5), defuse([1, 2])
    ("'=1+1", -4.5, '[1, 2]')
    """
    text = json.dumps(value, default=str) if isinstance(value, list | tuple | dict) else value
    return guard_formula(text) if isinstance(text, str) else text


def write_parquet(records: Sequence[Record]) -> bytes:
    """Write records as Parquet, with the types of ``load_records``."""
    with TemporaryDirectory(prefix="decisor-") as folder, duckdb.connect() as database:
        path = Path(folder) / "rows.parquet"
        load_records(database, records).write_parquet(str(path))
        return path.read_bytes()


def load_records(database: duckdb.DuckDBPyConnection, records: Sequence[Record]) -> duckdb.DuckDBPyRelation:
    """Load records into a database: whole numbers, numbers and truths with their types, anything else as text."""
    table = table_of_records(records, truncated=False)
    kinds = [column_kind([row[at] for row in table.rows]) for at in range(len(table.columns))]
    names = number_repeated_names(map(text_of_cell, table.columns), str.casefold)
    columns = ", ".join(f"{quote_identifier(name)} {kind}" for name, kind in zip(names, kinds, strict=True))
    values = [
        [
            cell if cell is None or kind != "VARCHAR" else text_of_cell(cell)
            for cell, kind in zip(row, kinds, strict=True)
        ]
        for row in table.rows
    ]
    database.execute(f"CREATE TABLE result ({columns})")
    database.executemany(f"INSERT INTO result VALUES ({', '.join('?' for _ in names)})", values)
    return database.table("result")


def column_kind(values: Sequence[object]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "BOOLEAN"
    if any(isinstance(value, int) and abs(value) > MOST_INTEGER for value in values):
        return "VARCHAR"
    if kinds == {int}:
        return "BIGINT"
    return "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"


def text_of_cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.encode("utf-8", "replace").decode()
