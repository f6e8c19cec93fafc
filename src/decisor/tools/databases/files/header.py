"""Where a table begins in rows of cells, and the names of its columns: of a CSV file and of a sheet alike.

Rows above the header, such as a title, are narrower than the table. A first row whose cells are values like those below
them is a row of data: the columns are named column_1, column_2, ... then.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decisor.tools.databases.files.numerals import MISSING, reads_as_number
from decisor.tools.databases.files.written_dates import reads_as_date
from decisor.tools.databases.sandbox.values import distinct

HEAD_ROWS = 20
BELOW_ROWS = 200
"""Rows that a first row is compared with."""
YEARS = range(1900, 2101)


@dataclass(frozen=True, slots=True)
class Header:
    """Where the names of columns stand. ``is_named``: False if ``row`` is the first row of data."""

    row: int
    is_named: bool


def find_header(rows: Sequence[Sequence[object]]) -> Header | None:
    """Return the first row that is nearly as wide as the widest of the first rows; None if no cell is filled.

    >>> find_header([["Sales of 2024", ""], [], ["shop", "units"], ["a", "1"]])
    Header(row=2, is_named=True)
    >>> find_header([["shop", "2023", "2024"], ["a", "1", "2"]]), find_header([["a", "1"], ["b", "2"]])
    (Header(row=0, is_named=True), Header(row=0, is_named=False))
    """
    head = rows[:HEAD_ROWS]
    widths = [sum(cell != "" for cell in row) for row in head]
    widest = max(widths, default=0)
    if not widest:
        return None
    begin = max((at + 1 for at, width in enumerate(widths) if not width and max(widths[:at], default=0) < widest),
                default=0)  # fmt: skip
    wide = (at for at in range(begin, len(head)) if widths[at] >= 0.6 * widest or is_all_but_first(head[at], widest))
    row = next(wide, widths.index(widest))
    return Header(row, holds_names(rows[row], rows[row + 1 : row + 1 + BELOW_ROWS]))


def is_all_but_first(row: Sequence[object], widest: int) -> bool:
    """Return whether only the first cell is empty: the rows have names, and that column has none."""
    return len(row) > 1 and row[0] == "" and sum(cell != "" for cell in row) >= widest - 1


def holds_names(row: Sequence[object], below: Sequence[Sequence[object]]) -> bool:
    """Return whether the cells of a row are names rather than values like those below them."""
    against = False
    periods = [number for cell in row if (number := whole_number(cell)) is not None]
    is_run = len(periods) > 2 and periods == list(range(periods[0], periods[0] + len(periods)))
    for at, cell in enumerate(row):
        kinds = Counter(kind for line in below if at < len(line) and (kind := kind_of_cell(line[at])) != "empty")
        usual = kinds.most_common(1)[0][0] if kinds else ""
        kind = kind_of_cell(cell)
        if kind == "text" and usual in ("number", "date"):
            return True
        if kind in ("number", "date") and usual:
            number = whole_number(cell)
            if usual != kind or ((number in YEARS or is_run) and not has_mostly_years(below, at)):
                return True
            against = True
    # Without rows to compare with, a row of values is data, and a row of texts is names.
    is_data = not below and all(kind_of_cell(cell) in ("number", "date", "empty") for cell in row)
    return not against and not is_data


def whole_number(cell: object) -> int | None:
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    return int(text) if re.fullmatch(r"\d{1,4}", text) and not isinstance(cell, bool) else None


def has_mostly_years(rows: Sequence[Sequence[object]], at: int) -> bool:
    cells = [row[at] for row in rows if at < len(row) and row[at] != ""]
    return 2 * sum(whole_number(cell) in YEARS for cell in cells) > len(cells)


def kind_of_cell(cell: object) -> str:
    """Return "empty", "number", "date" or "text"; a word for no value is empty."""
    if isinstance(cell, str):
        if cell.strip().lower() in MISSING:
            return "empty"
        return "number" if reads_as_number(cell) else "date" if reads_as_date(cell) else "text"
    if isinstance(cell, datetime.date | datetime.datetime | datetime.time | datetime.timedelta):
        return "date"
    return "empty" if cell is None else "number"


def unique(names: Sequence[str]) -> list[str]:
    """Names of columns, none empty and none twice.

    >>> unique(["a", "", "A", "a"])
    ['a', 'column_2', 'A_2', 'a_3']
    """
    tidy = (" ".join(str(name).split()) or f"column_{number}" for number, name in enumerate(names, 1))
    return list(distinct(tidy, str.lower))


def note_names(table: str, names: Sequence[tuple[str, str]], header: Header) -> Iterator[str]:
    """Say how columns are called that have no name, or that of another. ``names``: in the file, and here."""
    if not header.is_named:
        yield f"{table}: the first row is data and no header: the columns are called column_1, column_2, ..."
        return
    renamed = [(old, new) for old, new in names if " ".join(old.split()) != new]
    if renamed:
        listed = ", ".join(f"{new} ({'it has no name' if not old.strip() else 'its name stands twice'})"
                           for old, new in renamed[:5])  # fmt: skip
        yield f"{table}: renamed columns: {listed}{', ...' if len(renamed) > 5 else ''}."
