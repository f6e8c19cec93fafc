"""Workbooks (Excel, OpenDocument): each sheet with a header is a table."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.tools.databases.files.columns import Habits, TextColumns
from decisor.tools.databases.files.header import Header, find_header, note_names, unique
from decisor.tools.databases.files.limits import MOST_CELLS
from decisor.tools.databases.files.number_formats import read_units, with_unit
from decisor.tools.databases.files.numerals import CELL
from decisor.tools.databases.files.places import Part, table_name
from decisor.tools.databases.files.tables import Target

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

CHUNK = 2**22
Range = tuple[tuple[int, int], tuple[int, int]]
"""Row and column of the first and of the last cell."""


def read_workbook(target: Target, part: Part) -> Iterator[str]:
    """Raises SetupError where it cannot be read."""
    from python_calamine import CalamineError, CalamineWorkbook

    for path in part.paths:
        try:
            check_extent(Path(path))
            book = CalamineWorkbook.from_path(path)
            parts, units = read_units(Path(path))
            sheets = [(name, cells_of(book.get_sheet_by_name(name), cells_in_units(Path(path), parts.get(name), units)))
                      for name in book.sheet_names]  # fmt: skip
        except (CalamineError, OSError, ValueError, zipfile.BadZipFile) as error:
            raise SetupError(f"{path} cannot be read as a workbook: {error}") from error
        yield from note_cell_errors(Path(path))
        for sheet, (rows, merged) in sheets:
            header = find_header(rows)
            if header is None or len(rows) < 2:
                yield f"The sheet {sheet} of {Path(path).name} holds no table: it is left out."
                continue
            name = target.name(part.name if len(sheets) == 1 else table_name(sheet))
            yield from add_sheet(target, name, Sheet(rows, merged, header, f"{Path(path).name}, sheet {sheet}"))


@dataclass(frozen=True, slots=True)
class Sheet:
    """The cells of a sheet, the ranges of those that are merged, and where its table begins. ``place``: in words."""

    rows: list[list[object]]
    merged: list[Range]
    header: Header
    place: str


def add_sheet(target: Target, name: str, sheet: Sheet) -> Iterator[str]:
    """One table, with notes."""
    rows, start = sheet.rows, sheet.header.row
    end = header_end(rows, start, sheet.merged) if sheet.header.is_named else start
    names = [" ".join(dict.fromkeys(str(value(cell)) for cell in cells if cell != ""))
             for cells in zip(*rows[start:end], strict=True)] or [""] * len(rows[start])  # fmt: skip
    header = unique(names)
    body = [[value(cell) for cell in row] for row in rows[end:] if any(cell != "" for cell in row)]
    columns = [at for at, text in enumerate(names) if text or any(row[at] is not None for row in body)]
    types = {header[at]: type_of([row[at] for row in body]) for at in columns}
    target.add_rows(name, types, ([shaped(row[at], types[header[at]]) for at in columns] for row in body))
    yield f"{name}: {counted(len(body), 'row')} from {sheet.place}."
    if start or end > start + 1:
        which = f"row {start + 1} is" if end == start + 1 else f"rows {start + 1} to {end} are"
        above = f"; {start} above are left out" if start else ""
        yield f"{name}: {which} taken for the names of columns{above}."
    yield from note_names(name, [(names[at], header[at]) for at in columns], sheet.header)
    yield from TextColumns(target.db, name, Habits(target.decimal, target.dates)).type_all({})


CELL_PLACE = re.compile(rb"""<c\s[^>]{0,200}?\br=["']([A-Z]{1,3})([0-9]{1,7})["']""")
CELL_ERROR = re.compile(rb"""<c\s[^>]{0,200}?\bt=["']e["'][^>]*>.{0,400}?<v>([^<]{1,20})</v>""", re.S)


NOT_COMPUTED = re.compile(rb"<f(?:\s[^>]{0,200})?>[^<]{1,8192}</f>\s*(?:<v\s*/>|<v></v>|</c>)")
"""A formula without the value that a spreadsheet stores beside it, as programs write one."""


def cells_in_units(path: Path, part: str | None, units: dict[str, str]) -> Iterator[tuple[int, int, str]]:
    """Row and column, from 0, of each cell of a sheet whose style has a unit, and that."""
    if not part or not units:
        return
    styled = rb"""<c\s(?=[^>]{0,200}?\bs=["'](%s)["'])[^>]{0,200}?\br=["']([A-Z]{1,3})([0-9]{1,7})["']"""
    pattern = re.compile(styled % "|".join(units).encode())
    for _, chunk in sheet_chunks(path, part):
        for style, letters, row in pattern.findall(chunk):
            yield int(row) - 1, column_number(letters) - 1, units[style.decode()]


def sheet_chunks(path: Path, wanted: str = "") -> Iterator[tuple[str, bytes]]:
    """The XML of each sheet of an .xlsx file, in pieces that overlap by less than a cell."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        for part in archive.namelist():
            if not re.fullmatch(r"xl/worksheets/[^/]+\.xml", part) or wanted not in ("", part):
                continue
            with archive.open(part) as file:
                rest = b""
                while chunk := file.read(CHUNK):
                    begin = chunk.rfind(b"<c ") if len(chunk) == CHUNK else -1
                    yield part, rest + (chunk[:begin] if begin > 0 else chunk)
                    rest = chunk[begin:] if begin > 0 else b""
                yield part, rest


def check_extent(path: Path) -> None:
    """Raise ValueError if a sheet spans more cells than may be read: all between its first and its last are counted."""
    rows: dict[str, tuple[int, int]] = {}
    columns: dict[str, tuple[int, int]] = {}
    for part, chunk in sheet_chunks(path):
        places = CELL_PLACE.findall(chunk)
        if not places:
            continue
        numbers = [int(row) for _, row in places]
        letters = [column_number(name) for name in {name for name, _ in places}]
        low, high = rows.get(part, (numbers[0], numbers[0]))
        rows[part] = min(low, *numbers), max(high, *numbers)
        left, right = columns.get(part, (letters[0], letters[0]))
        columns[part] = min(left, *letters), max(right, *letters)
        cells = (rows[part][1] - rows[part][0] + 1) * (columns[part][1] - columns[part][0] + 1)
        if cells > MOST_CELLS:
            raise ValueError(f"{Path(part).stem} spans {cells:,} cells, more than {MOST_CELLS:,}: "
                             "delete what stands far from the table, or save it as CSV")  # fmt: skip


def column_number(letters: bytes) -> int:
    """
    >>> column_number(b"A"), column_number(b"XFD")
    (1, 16384)
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def note_cell_errors(path: Path) -> Iterator[str]:
    """Say which cells hold errors of the spreadsheet: they are read as empty."""
    errors = Counter(text.decode("utf-8", "replace") for _, chunk in sheet_chunks(path)
                     for text in CELL_ERROR.findall(chunk))  # fmt: skip
    for text, count in errors.most_common(4):
        yield f"{path.name}: {counted(count, 'cell')} with {text!r}, an error of the spreadsheet: no value."
    if count := sum(len(NOT_COMPUTED.findall(chunk)) for _, chunk in sheet_chunks(path)):
        yield (f"{path.name}: {counted(count, 'cell')} with a formula that no spreadsheet has computed: no value. Open "
               "the file in a spreadsheet and save it.")  # fmt: skip


def cells_of(sheet: CalamineSheet, units: Iterable[tuple[int, int, str]]) -> tuple[list[list[object]], list[Range]]:
    """Its cells, and those that are merged, which have one text: it stands in all of them, but for a title as wide as
    the sheet. (A number stays in one, so that no sum counts it twice.)"""
    rows: list[list[object]] = [list(row) for row in sheet.to_python(skip_empty_area=True)]
    top, left = sheet.start or (0, 0)
    for row_number, column, unit in units:
        if 0 <= row_number - top < len(rows) and 0 <= column - left < len(rows[0]):
            rows[row_number - top][column - left] = with_unit(rows[row_number - top][column - left], unit)
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
    if kind == "VARCHAR" and isinstance(one, int | float) and not isinstance(one, bool):
        return f"{CELL}{one!r}"
    return one.isoformat(" ") if isinstance(one, datetime.datetime) else one
