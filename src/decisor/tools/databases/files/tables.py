"""The store under way: names of tables, and rows that Python read, brought in by way of a file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.quoting import quoted
from decisor.tools.databases.files.numerals import sql_text

if TYPE_CHECKING:
    import duckdb

NULL = "\x01NULL"
"""Stands for a missing value in a file of ours: an empty text is another thing."""


@dataclass(eq=False)
class Target:
    """``scratch``: a folder for files of ours, gone at the end. ``names``: the tables that are there. ``decimal``,
    ``dates``: how the person says that numbers and dates are written, '' where they do not."""

    db: duckdb.DuckDBPyConnection
    scratch: Path
    names: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    """Kind of file by the name of a table."""
    decimal: str = ""
    dates: str = ""

    def name(self, wish: str) -> str:
        """A name that is free, in the spelling of ``wish``."""
        lower = {one.lower() for one in self.names}
        number = 1
        name = wish or "data"
        while name.lower() in lower:
            number += 1
            name = f"{wish}_{number}"
        self.names.append(name)
        return name

    def forget(self, at: int) -> None:
        """Drop the tables from this number on."""
        for name in self.names[at:]:
            self.db.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        del self.names[at:]

    def count(self, name: str) -> int:
        row = self.db.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()
        return int(row[0]) if row else 0

    def columns(self, name: str) -> list[tuple[str, str]]:
        """Name and type of each, in order."""
        query = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ?"
        return [(str(column), str(kind)) for column, kind in self.db.execute(query, [name]).fetchall()]

    def add_rows(self, name: str, types: Mapping[str, str], rows: Iterable[Sequence[object]]) -> None:
        """A table of these columns, its rows as texts that DuckDB reads as their types."""
        path = self.scratch / "rows.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            for row in rows:
                writer.writerow([NULL if value is None else value for value in row])
        columns = ", ".join(f"{sql_text(column)}: {sql_text(kind)}" for column, kind in types.items())
        self.db.execute(
            f"CREATE TABLE {quoted(name)} AS SELECT * FROM read_csv({sql_text(str(path))}, header=false, delim=',', "
            f"quote='\"', escape='\"', nullstr={sql_text(NULL)}, columns={{{columns}}}, auto_detect=false, "
            "max_line_size=16000000, buffer_size=64000000)"
        )
        path.unlink()
