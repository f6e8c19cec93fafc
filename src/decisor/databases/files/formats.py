"""Reads workbooks (Excel, OpenDocument) and files that know their types (Parquet, JSON, SQLite, DuckDB).

In a workbook each sheet with a header is a table. ``ImportTarget`` is the store under way: it holds the names of
tables, and takes rows that Python read by way of a file.
"""

from __future__ import annotations

import codecs
import datetime
import html
import json
import re
import shutil
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.databases.files.columns import (
    CUT,
    EXACT,
    LONG,
    MOST_CELLS,
    MOST_LEVELS,
    Habits,
    ImportTarget,
    TextColumns,
    columns_of_type,
    describe_file_error,
    has_row_where,
)
from decisor.databases.files.delimited import (
    Header,
    find_header,
    note_renamed_columns,
    open_plain_or_gzip,
    summarize_file_names,
    unique_column_names,
)
from decisor.databases.files.numerals import CELL, CURRENCY, sql_text
from decisor.databases.files.store import FilePart, table_name_of_file
from decisor.errors import SetupError
from decisor.system.text import quote_identifier
from decisor.system.wording import format_count

if TYPE_CHECKING:
    from python_calamine import CalamineSheet


FILE = "\x01file"
"""The name of the column of files while objects are read: no key of theirs."""
MOST_WHOLE = 2**25
"""Bytes of a file of JSON that is read at once, to see whether its rows are within an object."""


def read_parquet(target: ImportTarget, part: FilePart) -> Iterator[str]:
    import duckdb

    name = target.name(part.name)
    several = ", union_by_name=true, filename='file'" if len(part.paths) > 1 else ""
    files = ", ".join(map(sql_text, part.paths))
    columns = "* REPLACE (parse_filename(file) AS file)" if len(part.paths) > 1 else "*"
    try:
        target.db.execute(
            f"CREATE TABLE {quote_identifier(name)} AS SELECT {columns} FROM read_parquet([{files}]{several})"
        )
    except duckdb.Error as error:
        raise SetupError(f"{part.paths[0]} cannot be read as Parquet: {describe_file_error(error)}") from error
    yield f"{name}: {format_count(target.count(name), 'row')} from {summarize_file_names(part.paths)}."


def read_json_table(target: ImportTarget, part: FilePart) -> Iterator[str]:
    """Read a JSON array of objects, or one object on each line, into a table. Other lines are left out and counted."""
    import duckdb

    name = target.name(part.name)
    copies = [
        rows_of_object(without_byte_order_mark(Path(path), target.scratch), target.scratch) for path in part.paths
    ]
    files = ", ".join(sql_text(str(path)) for path, _ in copies)
    several = f", filename={sql_text(FILE)}" if len(part.paths) > 1 else ""
    # All rows tell the columns and their types: by a sample of 20,480 a key or a text that comes late is lost.
    is_long = any(path.endswith(".gz") or Path(path).stat().st_size > 7 * 20_480 for path in part.paths)
    source = f"read_json([{files}]{several}, maximum_object_size=16000000, maximum_depth={MOST_LEVELS}"
    source += ", sample_size=-1" * is_long
    lost = 0
    try:
        types = create_texts(target, name, source)
    except duckdb.Error as error:
        source += ", format='newline_delimited', ignore_errors=true"
        try:
            types = create_texts(target, name, source)
        except duckdb.Error:
            raise SetupError(f"{part.paths[0]} cannot be read as JSON: {describe_file_error(error)}") from error
        # A line that is no JSON becomes a row of NULL: such rows are removed and counted.
        keys = [column for column, _ in target.columns(name) if column != FILE]
        empty = " AND ".join(f"{quote_identifier(key)} IS NULL" for key in keys)
        target.db.execute(f"DELETE FROM {quote_identifier(name)} WHERE {empty}")
        lost = sum(map(lines_in, part.paths)) - target.count(name)
    if not target.columns(name) or (lost and not target.count(name)):
        raise SetupError(f"{part.paths[0]} holds no objects: JSON is read as an array of objects, or one on each line.")
    yield f"{name}: {format_count(target.count(name), 'row')} from {summarize_file_names(part.paths)}."
    yield from (f"{name}: {note}" for note in dict.fromkeys(note for _, note in copies) if note)
    yield from keep_exact_numbers(target, name, source)
    keep_dates(target, name, types)
    if several:
        label = unique_column_names([*(column for column, _ in target.columns(name) if column != FILE), "file"])[-1]
        target.db.execute(
            f"ALTER TABLE {quote_identifier(name)} RENAME {quote_identifier(FILE)} TO {quote_identifier(label)}"
        )
    if lost > 0:
        yield f"{name}: {format_count(lost, 'line')} left out, because not readable."


def rows_of_object(path: Path, folder: Path) -> tuple[Path, str]:
    """Return a copy with the rows alone if the file is one object around a list of objects, and a note on it.

    Such a file is {"data": [{...}, ...]}. Any other file is returned itself.
    """
    if not path.name.lower().endswith((".json", ".json.gz")):  # an object on each line, be it one line
        return path, ""
    with open_plain_or_gzip(path) as file:
        start = file.read(1)
        spelled = start + file.read(MOST_WHOLE) if start in (b"{", b" ", b"\n", b"\r", b"\t") else b""
    try:
        member = json.loads(spelled) if len(spelled) <= MOST_WHOLE else None
    except (ValueError, RecursionError):  # an object on each line
        return path, ""
    place: list[str] = []
    rest: list[str] = []
    # Down to the only list of objects, as in {"response": {"items": [...]}}.
    while isinstance(member, dict):
        inner = {key: value for key, value in member.items() if value and isinstance(value, dict | list)}
        tables = [
            key
            for key, value in inner.items()
            if isinstance(value, list) and all(isinstance(row, dict) for row in value)
        ]
        if len(tables) != 1 and (tables or len(inner) != 1 or isinstance(next(iter(inner.values())), list)):
            advice = f"If its rows are in {' or '.join(map(repr, inner))}, save that as a file of its own."
            return path, f"the file is one object, and is one row. {advice}" if inner else ""
        key = (tables or list(inner))[0]
        rest += [name for name in member if name != key]
        place.append(key)
        member = member[key]
    if not place:
        return path, ""
    copy = folder / f"rows{len(list(folder.iterdir()))}" / path.name.removesuffix(".gz")
    copy.parent.mkdir()
    copy.write_text(json.dumps(member))
    left_out = f"; left out: {', '.join(rest)}" if rest else ""
    return copy, f"its rows are the objects in {'.'.join(place)!r}{left_out}."


def create_texts(target: ImportTarget, name: str, source: str, types: dict[str, str] | None = None) -> dict[str, str]:
    """Create a table whose dates are still texts, and return the types that DuckDB guesses.

    DuckDB would take 1-2-3 for a date. types: column types to read instead of guessed ones.
    """
    guessed = types or {str(row[0]): str(row[1]) for row in target.db.execute(f"DESCRIBE FROM {source})").fetchall()}
    guessed.pop(FILE, None)
    columns = ", ".join(f"{sql_text(column)}: {sql_text(texts_for(kind))}" for column, kind in guessed.items())
    label = (
        f" REPLACE (parse_filename({quote_identifier(FILE)}) AS {quote_identifier(FILE)})"
        if "filename=" in source
        else ""
    )
    create = f"CREATE OR REPLACE TABLE {quote_identifier(name)} AS SELECT *{label} FROM {source}"
    target.db.execute(f"{create}, columns={{{columns}}})")
    # Beside a key "A", DuckDB calls a key "a" by the name a_1, under which it does not find it again.
    keys = {column.lower() for column in guessed}
    second = [column for column in guessed if re.sub(r"_[0-9]+$", "", column.lower()) in keys - {column.lower()}]
    if any(not has_row_where(target.db, name, f"{quote_identifier(column)} IS NOT NULL") for column in second):
        target.db.execute(f"{create})")
        return {}
    return guessed


def texts_for(kind: str, types: str = "DATE|TIMESTAMP|TIME|UUID") -> str:
    """Return a type with VARCHAR in the place of dates, times and UUIDs.

    >>> texts_for('STRUCT(DATE DATE, "a, DATE" TIME[])')
    'STRUCT(DATE VARCHAR, "a, DATE" VARCHAR[])'
    """
    return re.sub(rf"""("(?:[^"]|"")*")|\b(?:{types})(?=[],)[]|$)""", lambda match: match[1] or "VARCHAR", kind)


def keep_dates(target: ImportTarget, name: str, types: Mapping[str, str]) -> None:
    """Give dates and times within objects their types where each is spelled as DuckDB spells it."""
    for column, kind in target.columns(name):
        typed, label = types.get(column, ""), quote_identifier(column)
        if (
            kind not in ("VARCHAR", typed)
            and kind == texts_for(typed)
            and not has_row_where(
                target.db, name, f"CAST(TRY_CAST({label} AS {typed}) AS {kind}) IS DISTINCT FROM {label}"
            )
        ):
            target.db.execute(f"ALTER TABLE {quote_identifier(name)} ALTER {label} TYPE {typed}")


def without_byte_order_mark(path: Path, folder: Path) -> Path:
    """Return the file, or a copy without its byte order mark, with which DuckDB reads no objects."""
    with open_plain_or_gzip(path) as file:
        if file.read(3) != codecs.BOM_UTF8:
            return path
        copy = folder / f"unmarked{len(list(folder.iterdir()))}" / path.name.removesuffix(".gz")
        copy.parent.mkdir()
        with copy.open("wb") as out:
            shutil.copyfileobj(file, out)
    return copy


def keep_exact_numbers(target: ImportTarget, name: str, source: str) -> Iterator[str]:
    """Keep the exact spelling of numbers that share a column with texts or are too long for a DOUBLE."""
    db, table = target.db, quote_identifier(name)
    types = {column: kind for column, kind in target.columns(name) if column != FILE}
    is_long = "regexp_matches(CAST({} AS VARCHAR), '(^|[^.0-9])[0-9]{{16}}|e[+]')"
    large = {
        column: "JSON"
        for column, kind in types.items()
        if "DOUBLE" in kind and has_row_where(db, name, is_long.format(quote_identifier(column)))
    }
    if large:
        create_texts(target, name, source, {**types, **large})
    for column in columns_of_type(db, name, "JSON"):
        text, kind_of_value = f"({quote_identifier(column)} ->> '$')", f"json_type({quote_identifier(column)})"
        if has_row_where(db, name, f"{kind_of_value} IN ('OBJECT', 'ARRAY')"):
            if column in large:
                kind = types[column]
                if has_row_where(db, name, f"regexp_matches({text}, '[[:,]-?[0-9]{{16,}}[],}}]')"):
                    kind = texts_for(kind, "DOUBLE")
                    yield f"{name}.{column}: numbers in it are texts, because {CUT}."
                db.execute(f"ALTER TABLE {table} ALTER {quote_identifier(column)} TYPE {kind}")
            continue
        is_number = f"{kind_of_value} IN ('UBIGINT', 'BIGINT', 'DOUBLE')"
        kind, value = "VARCHAR", f"CASE WHEN {is_number} THEN '{CELL}' || {text} ELSE {text} END"
        if not has_row_where(db, name, f"NOT regexp_full_match({text}, '-?[0-9]{{1,38}}') OR NOT {is_number}"):
            kind, value = "HUGEINT", f"CAST({text} AS HUGEINT)"
        elif column in large and has_row_where(db, name, f"regexp_full_match({text}, '{LONG}')"):
            value = text
            yield f"{name}.{column} is text: {CUT}."
        elif column in large:
            kind, value = "DOUBLE", f"CAST({text} AS DOUBLE)"
        db.execute(f"ALTER TABLE {table} ALTER {quote_identifier(column)} TYPE {kind} USING {value}")


def lines_in(path: str) -> int:
    with open_plain_or_gzip(Path(path)) as file:
        return sum(1 for line in file if line.strip())


def read_sqlite(target: ImportTarget, part: FilePart) -> Iterator[str]:
    """Read every table of SQLite databases. Types follow the stored values."""
    for path in part.paths:
        with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as source:
            # The file may be a stranger's: its views may call no function with side effects (SQLite manual,
            # trusted_schema).
            source.execute("PRAGMA trusted_schema = OFF")
            # SQLite stores any bytes as TEXT.
            source.text_factory = lambda data: data.decode("utf-8", "replace")
            try:
                query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
                names = [str(name) for (name,) in source.execute(query)]
            except sqlite3.Error as error:
                raise SetupError(f"{path} cannot be read as a SQLite database: {error}") from error
            for table in names:
                info = source.execute(f"PRAGMA table_info({quote_identifier(table)})").fetchall()
                if not info:
                    continue
                name, columns = target.name(table), [str(column) for _, column, *_ in info]
                kinds = [sqlite_column_type(source, table, column) for column in columns]
                rows = source.execute(
                    f"SELECT {', '.join(map(quote_identifier, columns))} FROM {quote_identifier(table)}"
                )
                target.add_rows(name, dict(zip(unique_column_names(columns), kinds, strict=True)), rows)
                yield f"{name}: {format_count(target.count(name), 'row')} from {Path(path).name}."


def sqlite_column_type(source: sqlite3.Connection, table: str, column: str) -> str:
    """Return the type for the values that a column holds.

    Its declaration does not count: SQLite lets any value stand anywhere.
    """
    name, rows = quote_identifier(column), quote_identifier(table)
    kinds = {str(kind) for (kind,) in source.execute(f"SELECT DISTINCT typeof({name}) FROM {rows}")} - {"null"}
    if kinds == {"integer"}:
        return "BIGINT"
    # Beyond 2^53 a DOUBLE would change the digits, so such a column is text.
    cut = f"typeof({name}) = 'integer' AND {name} NOT BETWEEN -{EXACT} AND {EXACT}"
    if source.execute(f"SELECT 1 FROM {rows} WHERE {cut} LIMIT 1").fetchone():
        return "VARCHAR"
    return "DOUBLE" if kinds and kinds <= {"integer", "real"} else "VARCHAR"


def read_duckdb(target: ImportTarget, part: FilePart) -> Iterator[str]:
    import duckdb

    for path in part.paths:
        try:
            target.db.execute(f"ATTACH {sql_text(path)} AS other (READ_ONLY)")
        except duckdb.Error as error:
            raise SetupError(f"{path} cannot be read as a DuckDB database: {describe_file_error(error)}") from error
        query = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'other'"
        for schema, table in target.db.execute(query).fetchall():
            name = target.name(str(table))
            source = f"other.{quote_identifier(str(schema))}.{quote_identifier(str(table))}"
            target.db.execute(f"CREATE TABLE {quote_identifier(name)} AS FROM {source}")
            yield f"{name}: {format_count(target.count(name), 'row')} from {Path(path).name}."
        target.db.execute("DETACH other")


MOST_BYTES = 2**24
"""Of the parts that describe a workbook."""
PERCENTS = {"9": "0%", "10": "0.00%"}
"""Formats that have a number and need not be written out; those of currencies depend on the country of Excel."""
ATTRIBUTE = re.compile(r"""([\w:]{1,40})=["']([^"']*)["']""")


def attributes_of(xml: str, tag: str) -> Iterator[dict[str, str]]:
    for words in re.findall(rf"<(?:\w{{1,40}}:)?{tag}\s([^>]{{0,4000}})>", xml):
        yield {name: html.unescape(text) for name, text in ATTRIBUTE.findall(words)}


def text_of(archive: zipfile.ZipFile, part: str) -> str:
    with archive.open(part) as file:
        return file.read(MOST_BYTES).decode("utf-8", "replace")


def read_units(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the part of the archive by the name of its sheet, and the unit by the number of a style that has one."""
    if not zipfile.is_zipfile(path):
        return {}, {}
    with zipfile.ZipFile(path) as archive:
        try:
            links = attributes_of(text_of(archive, "xl/_rels/workbook.xml.rels"), "Relationship")
            places = {link["Id"]: link["Target"].removeprefix("/xl/") for link in links}
            sheets = attributes_of(text_of(archive, "xl/workbook.xml"), "sheet")
            parts = {sheet["name"]: f"xl/{places[sheet['r:id']]}" for sheet in sheets}
            styles = text_of(archive, "xl/styles.xml")
            codes = PERCENTS | {code["numFmtId"]: code["formatCode"] for code in attributes_of(styles, "numFmt")}
        except KeyError:  # OpenDocument, .xlsb
            return {}, {}
    # Only the styles of cells count; cellStyleXfs has xf elements too.
    formats = attributes_of(styles.partition("cellXfs")[2].partition("cellXfs")[0], "xf")
    units = {str(at): unit_of_format(codes.get(style.get("numFmtId", ""), "")) for at, style in enumerate(formats)}
    return parts, {style: unit for style, unit in units.items() if unit}


def unit_of_format(code: str) -> str:
    """Return the currency or percent sign of a number format, or its zeros; '' for none.

    >>> codes = ("0.0%", '#,##0.00 "€"', "[$CHF-807] #,##0", '_-"$"* #,##0_-;', "00000", '0"%"')
    >>> [unit_of_format(code) for code in codes]
    ['%', '€', 'CHF', '$', '00000', ' %']
    """
    first = re.sub(r"\[\$([^\]-]*)[^\]]*\]", r'"\1"', code.partition(";")[0])
    first = re.sub(r"\[[^\]]*\]|[_*].", "", first)
    if re.fullmatch("0{2,30}", first):
        return first
    words = "".join(re.findall(r'"([^"]*)"', first)) + re.sub(r'"[^"]*"|[#0?.,/\\ +()-]|[eE][+-]', "", first)
    word = words.replace("\u00a0", " ").strip()
    if word == "%":  # in quotes or after a backslash it is a mere text, and stands beside the value itself
        return " %" if re.search(r'"[^"]*%|\\%', first) else word
    return word if re.fullmatch(CURRENCY, word) else ""


def with_unit(cell: object, unit: str) -> object:
    """Return a number of a cell as a person sees it.

    >>> with_unit(0.07, "%")[1:], with_unit(1250.0, "€")[1:], with_unit(1067.0, "00000"), with_unit("a", "%")
    ('7%', '1250€', '01067', 'a')
    """
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return cell
    if unit.startswith("0"):
        return f"{int(cell):0{len(unit)}d}" if cell >= 0 and float(cell).is_integer() else cell
    # As floats, 0.07 * 100 is 7.000000000000001.
    number = float(Decimal(repr(cell)) * 100) if unit == "%" else cell
    return f"{CELL}{repr(number).removesuffix('.0')}{unit}"


CHUNK = 2**22
Range = tuple[tuple[int, int], tuple[int, int]]
"""Row and column of the first and of the last cell."""


def read_workbook(target: ImportTarget, part: FilePart) -> Iterator[str]:
    """Read each sheet of workbooks into a table and yield notes. Raises SetupError if a workbook cannot be read."""
    from python_calamine import CalamineError, CalamineWorkbook

    for path in part.paths:
        try:
            # First of all, for opening the workbook holds all cells in memory.
            check_extent(Path(path))
            book = CalamineWorkbook.from_path(path)
            parts, units = read_units(Path(path))
            sheets = {
                name: read_sheet_cells(book.get_sheet_by_name(name), cells_in_units(Path(path), parts.get(name), units))
                for name in book.sheet_names
            }
        except (CalamineError, OSError, ValueError, zipfile.BadZipFile) as error:
            raise SetupError(f"{path} cannot be read as a workbook: {error}") from error
        yield from note_cell_errors(Path(path))
        for sheet, (rows, merged) in sheets.items():
            header = find_header(rows)
            if header is None or len(rows) < 2:
                yield f"The sheet {sheet} of {Path(path).name} holds no table: it is left out."
                continue
            name = target.name(part.name if len(sheets) == 1 else table_name_of_file(sheet))
            yield from import_sheet(
                target, name, WorkbookSheet(rows, merged, header, f"{Path(path).name}, sheet {sheet}")
            )


@dataclass(frozen=True, slots=True)
class WorkbookSheet:
    """The cells of a sheet, its merged ranges, and the header of its table."""

    rows: list[list[object]]
    merged: list[Range]
    header: Header
    place: str
    """File and sheet, in words."""


def import_sheet(target: ImportTarget, name: str, sheet: WorkbookSheet) -> Iterator[str]:
    """Read one sheet into a table and yield notes."""
    rows, start = sheet.rows, sheet.header.row
    end = header_end(rows, start, sheet.merged) if sheet.header.is_named else start
    names = [
        " ".join(dict.fromkeys(str(cell_value(cell)) for cell in cells if cell != ""))
        for cells in zip(*rows[start:end], strict=True)
    ] or [""] * len(rows[start])
    header = unique_column_names(names)
    body = [[cell_value(cell) for cell in row] for row in rows[end:] if any(cell != "" for cell in row)]
    columns = [at for at, text in enumerate(names) if text or any(row[at] is not None for row in body)]
    types = {header[at]: common_cell_type([row[at] for row in body]) for at in columns}
    target.add_rows(name, types, ([cell_as_csv_value(row[at], types[header[at]]) for at in columns] for row in body))
    yield f"{name}: {format_count(len(body), 'row')} from {sheet.place}."
    if start or end > start + 1:
        which = f"row {start + 1} is" if end == start + 1 else f"rows {start + 1} to {end} are"
        above = f"; {start} above are left out" if start else ""
        yield f"{name}: {which} taken for the names of columns{above}."
    yield from note_renamed_columns(name, [(names[at], header[at]) for at in columns], sheet.header)
    yield from TextColumns(target.db, name, Habits(target.decimal, target.dates)).type_all({})


CELL_PLACE = re.compile(rb"""<c\s[^>]{0,200}?\br=["']([A-Z]{1,3})([0-9]{1,7})["']""")
CELL_ERROR = re.compile(rb"""<c\s[^>]{0,200}?\bt=["']e["'][^>]*>.{0,400}?<v>([^<]{1,20})</v>""", re.S)


NOT_COMPUTED = re.compile(rb"<f(?:\s[^>]{0,200})?>[^<]{1,8192}</f>\s*(?:<v\s*/>|<v></v>|</c>)")
"""A formula without the value that a spreadsheet stores beside it, as programs write one."""


def cells_in_units(path: Path, part: str | None, units: dict[str, str]) -> Iterator[tuple[int, int, str]]:
    """Yield row and column, from 0, and the unit of each cell of a sheet whose style has one."""
    if not part or not units:
        return
    styled = rb"""<c\s(?=[^>]{0,200}?\bs=["'](%s)["'])[^>]{0,200}?\br=["']([A-Z]{1,3})([0-9]{1,7})["']"""
    pattern = re.compile(styled % "|".join(units).encode())
    for _, chunk in read_sheet_chunks(path, part):
        for style, letters, row in pattern.findall(chunk):
            yield int(row) - 1, column_number(letters) - 1, units[style.decode()]


def read_sheet_chunks(path: Path, wanted: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the XML of each sheet of an .xlsx file, in pieces that overlap by less than a cell."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        for part in archive.namelist():
            if not re.fullmatch(r"xl/worksheets/[^/]+\.xml", part) or wanted not in ("", part):
                continue
            with archive.open(part) as file:
                rest = b""
                while chunk := file.read(CHUNK):
                    # No cell is cut in two: what follows the last <c waits for the next chunk.
                    begin = chunk.rfind(b"<c ") if len(chunk) == CHUNK else -1
                    yield part, rest + (chunk[:begin] if begin > 0 else chunk)
                    rest = chunk[begin:] if begin > 0 else b""
                yield part, rest


def check_extent(path: Path) -> None:
    """Raise ValueError if a sheet spans more cells than may be read. All cells between its first and its last count."""
    extents: dict[str, tuple[int, int, int, int]] = {}
    for part, chunk in read_sheet_chunks(path):
        places = CELL_PLACE.findall(chunk)
        if not places:
            continue
        rows = [int(row) for _, row in places]
        columns = [column_number(letters) for letters in {letters for letters, _ in places}]
        top, bottom, left, right = extents.get(part, (rows[0], rows[0], columns[0], columns[0]))
        top, bottom, left, right = min(top, *rows), max(bottom, *rows), min(left, *columns), max(right, *columns)
        extents[part] = top, bottom, left, right
        if (cells := (bottom - top + 1) * (right - left + 1)) > MOST_CELLS:
            raise ValueError(
                f"{Path(part).stem} spans {cells:,} cells, more than {MOST_CELLS:,}: "
                "delete what stands far from the table, or save it as CSV"
            )


def column_number(letters: bytes) -> int:
    """Return the number of a column from its letters; A is 1.

    >>> column_number(b"A"), column_number(b"XFD")
    (1, 16384)
    """
    return reduce(lambda number, letter: 26 * number + letter - 64, letters, 0)


def note_cell_errors(path: Path) -> Iterator[str]:
    """Yield notes on cells with spreadsheet errors or formulas without a value; both are read as empty."""
    errors = Counter(
        text.decode("utf-8", "replace") for _, chunk in read_sheet_chunks(path) for text in CELL_ERROR.findall(chunk)
    )
    for text, count in errors.most_common(4):
        yield f"{path.name}: {format_count(count, 'cell')} with {text!r}, an error of the spreadsheet: no value."
    if count := sum(len(NOT_COMPUTED.findall(chunk)) for _, chunk in read_sheet_chunks(path)):
        yield (
            f"{path.name}: {format_count(count, 'cell')} with a formula that no spreadsheet has computed: no value. "
            "Open the file in a spreadsheet and save it."
        )


def read_sheet_cells(
    sheet: CalamineSheet, units: Iterable[tuple[int, int, str]]
) -> tuple[list[list[object]], list[Range]]:
    """Return the cells of a sheet and its merged ranges.

    The text of a merged range is repeated in all its cells, unless it is a title as wide as the sheet. A number stays
    in one cell, so that no sum counts it twice.
    """
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
    """Return the index of the row after the header, which has several rows if it has merged cells."""
    here = [one for one in merged if one[0][0] == start]
    end = max((last for _, (last, _) in here), default=start)
    is_wide = any(final > column for (_, column), (_, final) in here)
    if end == start and is_wide and start + 2 < len(rows) and all(isinstance(cell, str) for cell in rows[start + 1]):
        end += 1
    return min(end + 1, len(rows))


def cell_value(cell: object) -> object:
    """Return the value of a cell: None if it is empty, and whole numbers without a point."""
    if cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return cell


CELL_TYPES: dict[str, set[type[object]]] = {
    "BOOLEAN": {bool},
    "BIGINT": {int},
    "DOUBLE": {int, float},
    "DATE": {datetime.date},
    "TIMESTAMP": {datetime.date, datetime.datetime},
    "TIME": {datetime.time},
}


def common_cell_type(values: Sequence[object]) -> str:
    kinds = {type(value) for value in values if value is not None}
    return next((name for name, group in CELL_TYPES.items() if kinds and kinds <= group), "VARCHAR")


def cell_as_csv_value(one: object, kind: str) -> object:
    """Convert a cell so that DuckDB reads its text as this type."""
    if isinstance(one, datetime.timedelta):
        return str(one)
    if kind == "TIMESTAMP" and type(one) is datetime.date:
        return f"{one.isoformat()} 00:00:00"
    if kind == "VARCHAR" and isinstance(one, int | float) and not isinstance(one, bool):
        return f"{CELL}{one!r}"
    return one.isoformat(" ") if isinstance(one, datetime.datetime) else one
