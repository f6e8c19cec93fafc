"""Workbooks (Excel, OpenDocument): each sheet with a header is a table."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path

from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.tools.databases.files.places import Part, table_name
from decisor.tools.databases.files.tables import Target, unique

HEADER_ROWS = 20


def read_workbook(target: Target, part: Part) -> Iterator[str]:
    """Raises SetupError where it cannot be read."""
    from python_calamine import CalamineError, CalamineWorkbook

    for path in part.paths:
        try:
            book = CalamineWorkbook.from_path(path)
            sheets = [(name, book.get_sheet_by_name(name).to_python(skip_empty_area=True)) for name in book.sheet_names]
        except (CalamineError, OSError, ValueError) as error:
            raise SetupError(f"{path} cannot be read as a workbook: {error}") from error
        for sheet, rows in sheets:
            start = header_row(rows)
            if start is None:
                yield f"The sheet {sheet} of {Path(path).name} holds no table: it is left out."
                continue
            alone = len(sheets) == 1
            name = target.name(part.name if alone else table_name(sheet))
            header = unique([str(cell) for cell in rows[start]])
            body = [[value(cell) for cell in row] for row in rows[start + 1 :] if any(cell != "" for cell in row)]
            columns = [
                at for at, cell in enumerate(rows[start]) if cell != "" or any(row[at] is not None for row in body)
            ]
            types = {header[at]: type_of([row[at] for row in body]) for at in columns}
            target.add_rows(name, types, ([shaped(row[at], types[header[at]]) for at in columns] for row in body))
            yield f"{name}: {counted(len(body), 'row')} from {Path(path).name}, sheet {sheet}."
            if start:
                yield f"{name}: row {start + 1} is taken for the names of columns; {start} above it are left out."


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
