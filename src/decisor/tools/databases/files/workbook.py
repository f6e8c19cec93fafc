"""Workbooks (Excel, OpenDocument): each sheet with a header is a table."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.tools.databases.files.columns import typed_texts
from decisor.tools.databases.files.places import Part, table_name
from decisor.tools.databases.files.tables import Target, unique

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

HEADER_ROWS = 20
Range = tuple[tuple[int, int], tuple[int, int]]
"""Row and column of the first and of the last cell."""


def read_workbook(target: Target, part: Part) -> Iterator[str]:
    """Raises SetupError where it cannot be read."""
    from python_calamine import CalamineError, CalamineWorkbook

    for path in part.paths:
        try:
            book = CalamineWorkbook.from_path(path)
            sheets = [(name, cells_of(book.get_sheet_by_name(name))) for name in book.sheet_names]
        except (CalamineError, OSError, ValueError) as error:
            raise SetupError(f"{path} cannot be read as a workbook: {error}") from error
        for sheet, (rows, merged) in sheets:
            start = header_row(rows)
            if start is None:
                yield f"The sheet {sheet} of {Path(path).name} holds no table: it is left out."
                continue
            alone = len(sheets) == 1
            name = target.name(part.name if alone else table_name(sheet))
            end = header_end(rows, start, merged)
            names = [" ".join(dict.fromkeys(str(cell) for cell in cells if cell != ""))
                     for cells in zip(*rows[start:end], strict=True)]  # fmt: skip
            header = unique(names)
            body = [[value(cell) for cell in row] for row in rows[end:] if any(cell != "" for cell in row)]
            columns = [at for at, text in enumerate(names) if text or any(row[at] is not None for row in body)]
            types = {header[at]: type_of([row[at] for row in body]) for at in columns}
            target.add_rows(name, types, ([shaped(row[at], types[header[at]]) for at in columns] for row in body))
            yield f"{name}: {counted(len(body), 'row')} from {Path(path).name}, sheet {sheet}."
            if start or end > start + 1:
                which = f"row {start + 1} is" if end == start + 1 else f"rows {start + 1} to {end} are"
                above = f"; {start} above are left out" if start else ""
                yield f"{name}: {which} taken for the names of columns{above}."
            yield from typed_texts(target.db, name, {})


def cells_of(sheet: CalamineSheet) -> tuple[list[list[object]], list[Range]]:
    """Its cells, and those that are merged, which have one text: it stands in all of them, but for a title as wide as
    the sheet. (A number stays in one, so that no sum counts it twice.)"""
    rows: list[list[object]] = [list(row) for row in sheet.to_python(skip_empty_area=True)]
    top, left = sheet.start or (0, 0)
    merged = [((r - top, c - left), (s - top, d - left)) for (r, c), (s, d) in sheet.merged_cell_ranges or ()]
    for (first, column), (last, final) in merged:
        text = rows[first][column] if 0 <= first < len(rows) and 0 <= column < len(rows[first]) else ""
        if isinstance(text, str) and final - column + 1 < len(rows[first]):
            for row in rows[first : last + 1]:
                row[column : final + 1] = [text] * (min(final + 1, len(row)) - column)
    return rows, merged


def header_end(rows: Sequence[Sequence[object]], start: int, merged: Sequence[Range]) -> int:
    """The number of the row after the header, which has several where cells of its first are merged."""
    here = [one for one in merged if one[0][0] == start]
    end = max((last for _, (last, _) in here), default=start)
    is_wide = any(final > column for (_, column), (_, final) in here)
    if end == start and is_wide and start + 2 < len(rows) and all(isinstance(cell, str) for cell in rows[start + 1]):
        end += 1
    return min(end + 1, len(rows))


def header_row(rows: Sequence[Sequence[object]]) -> int | None:
    """The first row of texts that is as wide as the widest of the first rows, nearly; None where there is none."""
    head = rows[:HEADER_ROWS]
    widths = [sum(cell != "" for cell in row) for row in head]
    if not widths or not max(widths) or len(rows) < 2:
        return None
    for at, row in enumerate(head):
        texts = sum(isinstance(cell, str) and cell != "" for cell in row)
        if texts >= 0.6 * max(widths):
            return at
    return widths.index(max(widths))


def value(cell: object) -> object:
    """None for an empty cell; whole numbers without a point."""
    if cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return cell


def type_of(values: Sequence[object]) -> str:
    kinds = {type(one) for one in values if one is not None}
    if not kinds:
        return "VARCHAR"
    for group, name in (
        ({bool}, "BOOLEAN"), ({int}, "BIGINT"), ({int, float}, "DOUBLE"), ({datetime.date}, "DATE"),
        ({datetime.date, datetime.datetime}, "TIMESTAMP"), ({datetime.time}, "TIME"),
    ):  # fmt: skip
        if kinds <= group:
            return name
    return "VARCHAR"


def shaped(one: object, kind: str) -> object:
    """As DuckDB reads it from text."""
    if isinstance(one, datetime.timedelta):
        return str(one)
    if kind == "TIMESTAMP" and type(one) is datetime.date:
        return f"{one.isoformat()} 00:00:00"
    return one.isoformat(" ") if isinstance(one, datetime.datetime) else one
