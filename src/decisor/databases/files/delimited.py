"""Reads CSV and its like: encoding, separator, header and types are detected; no value is lost to a guess.

    guess types from the start of the file and from places spread over it
    read, each value only as a text of exactly its type;  if one is not: count which columns they are, and read again
        with these as text
    what is text then becomes numbers and dates where all of it is (columns)
    rows that have more or fewer values than the header are left out, counted and told

The header of a CSV file and of a sheet is found alike. Rows above it, such as a title, are narrower than the table. A
first row whose cells are values like those below them is a row of data: the columns are then named column_1, column_2,
...
"""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from decisor.databases.files.columns import (
    DECIMAL,
    Habits,
    ImportTarget,
    PlainType,
    TextColumns,
    describe_file_error,
    find_plain_type,
)
from decisor.databases.files.numerals import EITHER, MISSING, PLAIN, reads_as_date, reads_as_number, sql_text
from decisor.databases.files.store import FilePart, strip_final_digits, table_name_of_file
from decisor.errors import SetupError
from decisor.sandbox.wire import number_repeated_names
from decisor.system.text import quote_identifier
from decisor.system.wording import format_count

HEAD_ROWS = 20
BELOW_ROWS = 200
"""Rows that a first row is compared with."""
YEARS = range(1900, 2101)


@dataclass(frozen=True, slots=True)
class Header:
    """The row with the column names."""

    row: int
    is_named: bool
    """False if ``row`` is the first row of data."""


def find_header(rows: Sequence[Sequence[object]]) -> Header | None:
    """Return the first row that is nearly as wide as the widest of the first rows. None if no cell is filled.

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
    # A blank line ends a title, unless what stands above it is as wide as the table.
    begin = max(
        (at + 1 for at, width in enumerate(widths) if not width and max(widths[:at], default=0) < widest), default=0
    )
    wide = (
        at
        for at in range(begin, len(head))
        # If only the first cell is empty, the rows have names, and their column has none.
        if widths[at] >= 0.6 * widest or (len(head[at]) > 1 and head[at][0] == "" and widths[at] >= widest - 1)
    )
    row = next(wide, widths.index(widest))
    return Header(row, holds_names(rows[row], rows[row + 1 : row + 1 + BELOW_ROWS]))


def holds_names(row: Sequence[object], below: Sequence[Sequence[object]]) -> bool:
    """Return whether the cells of a row are names rather than values like those below them."""
    against = False
    periods = [number for cell in row if (number := short_whole_number(cell)) is not None]
    # Consecutive numbers, such as years or months, are names of columns.
    is_run = len(periods) > 2 and periods == list(range(periods[0], periods[0] + len(periods)))
    for at, cell in enumerate(row):
        kinds = Counter(kind for line in below if at < len(line) and (kind := kind_of_cell(line[at])) != "empty")
        usual = kinds.most_common(1)[0][0] if kinds else ""
        kind = kind_of_cell(cell)
        if kind == "text" and usual in ("number", "date"):
            return True
        if kind in ("number", "date") and usual:
            number = short_whole_number(cell)
            if usual != kind or ((number in YEARS or is_run) and not has_mostly_years(below, at)):
                return True
            against = True
    # Without rows to compare with, a row of values is data, and a row of texts is names.
    is_data = not below and all(kind_of_cell(cell) in ("number", "date", "empty") for cell in row)
    return not against and not is_data


def short_whole_number(cell: object) -> int | None:
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    return int(text) if re.fullmatch(r"\d{1,4}", text) and not isinstance(cell, bool) else None


def has_mostly_years(rows: Sequence[Sequence[object]], at: int) -> bool:
    cells = [row[at] for row in rows if at < len(row) and row[at] != ""]
    return 2 * sum(short_whole_number(cell) in YEARS for cell in cells) > len(cells)


def kind_of_cell(cell: object) -> str:
    """Return "empty", "number", "date" or "text"; a word for no value counts as empty."""
    if isinstance(cell, str):
        if cell.strip().lower() in MISSING:
            return "empty"
        return "number" if reads_as_number(cell) else "date" if reads_as_date(cell) else "text"
    if isinstance(cell, datetime.date | datetime.datetime | datetime.time | datetime.timedelta):
        return "date"
    return "empty" if cell is None else "number"


def unique_column_names(names: Sequence[str]) -> list[str]:
    """Return names for columns, none empty and none equal to another, whatever the case.

    >>> unique_column_names(["a", "", "A", "a"])
    ['a', 'column_2', 'A_2', 'a_3']
    """
    tidy = (" ".join(str(name).split()) or f"column_{number}" for number, name in enumerate(names, 1))
    return list(number_repeated_names(tidy, str.lower))


def note_renamed_columns(table: str, names: Sequence[tuple[str, str]], header: Header) -> Iterator[str]:
    """Yield a note about columns that were renamed because their name is missing or used before.

    Args:
        names: pairs of the name in the file and the name in the table.
    """
    if not header.is_named:
        yield f"{table}: the first row is data and no header: the columns are called column_1, column_2, ..."
        return
    renamed = [(old, new) for old, new in names if " ".join(old.split()) != new]
    if renamed:
        listed = ", ".join(
            f"{new} ({'it has no name' if not old.strip() else 'its name stands twice'})" for old, new in renamed[:5]
        )
        yield f"{table}: renamed columns: {listed}{', ...' if len(renamed) > 5 else ''}."


SEPARATORS = ("\t", ";", "|", ",")
"""In the order in which one is taken where two part all rows alike: a comma stands within values most often."""
NO_SEPARATOR = "\x1f"
HEAD_BYTES, PROBE_BYTES, PROBES = 2**18, 2**16, 8
"""Of the start of a file, and of some places spread over the rest of it."""
csv.field_size_limit(2**24)


@dataclass(frozen=True, slots=True)
class DelimitedDialect:
    """The separator, quotes and header of a delimited file."""

    separator: str
    quote: str
    escape: str
    skip: int
    """Rows before the first row of data."""
    names: tuple[str, ...]
    """Of the columns, each unique."""


@dataclass(frozen=True, slots=True)
class DelimitedFile:
    """A delimited file with its dialect, its header, and sample rows from its start and some later places."""

    path: str
    readable: str
    """The path of its copy in UTF-8 with one kind of line ends, or its own path if it is so already."""
    dialect: DelimitedDialect
    header: Header
    titles: tuple[str, ...]
    """The column names as they stand in the file."""
    rows: tuple[tuple[str, ...], ...]


def sketch_file(path: str, readable: str) -> DelimitedFile | None:
    """Return a delimited file, None if it holds no row. readable: the path of its copy in UTF-8."""
    with open_plain_or_gzip(Path(readable)) as file:
        data = file.read(HEAD_BYTES)
    head, is_whole = data.decode("utf-8-sig", "replace"), len(data) < HEAD_BYTES
    if not is_whole:
        # The end of the text may lie anywhere in a line.
        head = head[: head.rfind("\n") + 1] or head
    # Beside a double quote, a single one is an apostrophe.
    quote = "'" if '"' not in head and re.search(r"(?:^|[,;\t|])'[^'\n]*'(?:[,;\t|]|$)", head, re.M) else '"'
    escape = "\\" if f"\\{quote}" in head and quote * 2 not in head else quote
    separator = find_separator(head, quote, escape)
    rows = split_into_rows(head, separator, quote, escape)
    header = find_header([[cell.strip() for cell in row] for row in rows])
    if header is None:
        return None
    titles = tuple(rows[header.row]) if header.is_named else ("",) * len(rows[header.row])
    wider = Counter(len(row) for row in rows[header.row + 1 :]).most_common(1)
    if wider and len(titles) < wider[0][0] <= len(titles) + 1:
        titles = (*titles, "")  # the rows end with a separator, or their names have no title
    first = header.row + header.is_named  # DuckDB counts a line break in quotes as no new line, as Python does
    dialect = DelimitedDialect(separator, quote, escape, first, tuple(unique_column_names(titles)))
    body = [row for row in rows[first:] if len(row) == len(titles)]
    # A gzip file cannot be read from its middle.
    if not is_whole and not readable.lower().endswith(".gz"):
        body += [row for row in probe_rows(Path(readable), dialect) if len(row) == len(titles)]
    return DelimitedFile(path, readable, dialect, header, titles, tuple(map(tuple, body)))


def find_separator(head: str, quote: str, escape: str) -> str:
    """Return the separator that splits most rows into the same number of values.

    Titles above the first such row do not count against it, unless another separator splits them too. One column of
    numbers with commas under its name is not split.
    """
    best, best_share = NO_SEPARATOR, 0.0
    name, *lines = [row[0] for row in split_into_rows(head[:PROBE_BYTES], NO_SEPARATOR, quote, escape) if row] or [""]
    kinds = set(map(kind_of_cell, lines)) - {"empty"}
    if kinds == {"number"} and kind_of_cell(name) == "text" and not set(name) & set(SEPARATORS):
        return best
    for separator in SEPARATORS:
        widths = [len(row) for row in split_into_rows(head[:PROBE_BYTES], separator, quote, escape) if row]
        counts = Counter(width for width in widths if width > 1)
        if not counts:
            continue
        usual, alike = counts.most_common(1)[0]
        share, begin = alike / len(widths), widths.index(usual)
        is_split = 2 * alike > len(widths) - begin > 2 * widths[begin:].count(1) + (1 if begin else 0)
        if share > best_share and is_split:
            best, best_share = separator, share
    return best


def split_into_rows(text: str, separator: str, quote: str, escape: str) -> list[list[str]]:
    """Return the rows of a text as far as they can be read; a blank line is a row without cells."""
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        quotechar=quote,
        doublequote=escape == quote,
        escapechar=None if escape == quote else escape,
    )
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(reader)
    return rows


def probe_rows(path: Path, dialect: DelimitedDialect) -> Sequence[list[str]]:
    """Return rows from places spread over the file, so that late kinds of values are seen too."""
    size = path.stat().st_size
    rows: list[list[str]] = []
    with path.open("rb") as file:
        for number in range(1, PROBES):
            file.seek(max(0, size * number // (PROBES - 1) - PROBE_BYTES))
            # The first and the last line of a probe may be cut.
            lines = file.read(PROBE_BYTES).decode("utf-8", "replace").splitlines(keepends=True)[1:-1]
            rows += split_into_rows("".join(lines), dialect.separator, dialect.quote, dialect.escape)
    return rows


CHUNK = 2**22
EXAMPLES = 3
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FAST = ("BIGINT", "DATE", "TIMESTAMP")
"""Types that a value is given while the file is read."""


def read_delimited(target: ImportTarget, part: FilePart) -> Iterator[str]:
    """Read delimited files into tables and yield notes. Raises SetupError if a file holds no table."""
    alike: dict[tuple[str, ...], list[DelimitedFile]] = {}
    for number, path in enumerate(part.paths):
        if not Path(path).stat().st_size:
            raise SetupError(f"{path} is an empty file.")
        encoding, is_even = detect_encoding(Path(path))
        if encoding == "":
            raise SetupError(f"{path} is no text: is it another kind of file, or packed?")
        readable = path
        if encoding != "utf-8":
            yield f"{Path(path).name} is read as {encoding}."
        if encoding != "utf-8" or not is_even:
            readable = str(copy_as_utf8(Path(path), encoding, target.scratch / f"{number}.csv"))
        file = sketch_file(path, readable)
        if file is None:
            raise SetupError(f"{path} cannot be read as a table: no line of it holds a value.")
        alike.setdefault(tuple(sorted(file.dialect.names)), []).append(file)
    if len(alike) > 1:
        yield f"{part.name}: its {len(part.paths):,} files have not the same columns: {len(alike):,} tables."
    for files in alike.values():
        first = table_name_of_file(files[0].path)
        name = part.name if len(alike) == 1 else first if len(files) == 1 else strip_final_digits(first)
        yield from read_delimited_table(target, target.name(name), files)


def read_delimited_table(target: ImportTarget, name: str, files: Sequence[DelimitedFile]) -> Iterator[str]:
    """Read files with the same columns into one table and yield notes."""
    import duckdb

    types = guess_column_types(target, files)
    try:
        create_delimited_table(target, name, files, types)
    except duckdb.InvalidInputException as error:
        # The samples missed a value of another type: such columns are read again as text.
        if not (misfits := find_misfit_columns(target, files, types)):
            raise unreadable(files, error) from error
        types = {column: kind for column, kind in types.items() if column not in misfits}
        create_delimited_table(target, name, files, types)
    except duckdb.Error as error:
        raise unreadable(files, error) from error
    rows = target.count(name)
    yield f"{name}: {format_count(rows, 'row')} from {summarize_file_names([file.path for file in files])}."
    first = files[0]
    if first.header.is_named and (above := first.header.row):
        yield f"{name}: {format_count(above, 'line')} above the header {'is' if above == 1 else 'are'} left out."
    titles = list(zip(first.titles, first.dialect.names, strict=True))
    yield from note_renamed_columns(name, titles, first.header)
    hints = frozenset({";"} & {file.dialect.separator for file in files})
    habits = Habits(target.decimal, target.dates, hints, is_delimited=True)
    yield from TextColumns(target.db, name, habits).type_all({})
    kinds = [kind for _, kind in target.columns(name)][: len(first.titles)]
    if first.titles[-1] == "" and first.dialect.separator == "," and kinds[-2:] == ["BIGINT", "BIGINT"]:
        yield (
            f"{name}: the last of its whole numbers have no name: if 1,234 stands in it without quotes, its digits "
            "are in two columns, and the file has to be mended."
        )
    yield from lost_rows(target, name)


def unreadable(files: Sequence[DelimitedFile], error: Exception) -> SetupError:
    names = summarize_file_names([file.path for file in files])
    return SetupError(f"{names} cannot be read as a table: {describe_file_error(error)}")


def guess_column_types(target: ImportTarget, files: Sequence[DelimitedFile]) -> dict[str, PlainType]:
    """Return types for the columns whose sampled texts all have one plain type.

    The samples are from the start of the file and from places spread over it.
    """
    result: dict[str, PlainType] = {}
    for column in files[0].dialect.names:
        places = [(file.rows, file.dialect.names.index(column)) for file in files]
        texts = [row[at] for rows, at in places for row in rows if row[at] != ""]
        if not texts:
            continue
        kind = find_plain_type(texts)
        if kind is not None and kind.type in FAST:
            result[column] = kind
        elif kind is None and target.decimal != "," and has_decimal_point(texts):
            result[column] = DECIMAL
    return result


def has_decimal_point(texts: Sequence[str]) -> bool:
    """Return whether all texts are numbers as programs write them, at least one with a sure decimal point."""
    if not all(re.fullmatch(PLAIN, text) for text in texts):
        return False
    return any("." in text and not re.fullmatch(EITHER["[.]"], text) for text in texts)


def select_rows_as_text(files: Sequence[DelimitedFile]) -> str:
    """Return SQL for all rows as texts, with the name of the file if there are several files."""
    by_dialect: dict[DelimitedDialect, list[str]] = {}
    for file in files:
        by_dialect.setdefault(file.dialect, []).append(file.readable)
    several = f", filename={sql_text(file_column(files))}" if len(files) > 1 else ""
    selects = []
    for dialect, paths in by_dialect.items():
        columns = ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in dialect.names)
        selects.append(
            f"SELECT * FROM read_csv([{', '.join(map(sql_text, paths))}], auto_detect=false, header=false, "
            f"delim={sql_text(dialect.separator)}, quote={sql_text(dialect.quote)}, escape={sql_text(dialect.escape)}, "
            f"skip={dialect.skip}, store_rejects=true, rejects_limit=0, columns={{{columns}}}{several})"
        )
    return " UNION ALL BY NAME ".join(selects)


def file_column(files: Sequence[DelimitedFile]) -> str:
    return unique_column_names([*files[0].dialect.names, "file"])[-1]


def create_delimited_table(
    target: ImportTarget, name: str, files: Sequence[DelimitedFile], types: dict[str, PlainType]
) -> None:
    """Create the table with these column types.

    Raises duckdb.InvalidInputException if a value is not of the type of its column.
    """
    # DuckDB appends to these tables, and the rows that an earlier attempt rejected are not of this one.
    target.db.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
    columns = [sql_typed_column(column, types.get(column)) for column in files[0].dialect.names]
    if len(files) > 1:
        label = quote_identifier(file_column(files))
        columns.append(f"parse_filename({label}) AS {label}")
    target.db.execute(
        f"CREATE OR REPLACE TABLE {quote_identifier(name)} AS SELECT {', '.join(columns)} "
        f"FROM ({select_rows_as_text(files)})"
    )


def sql_typed_column(column: str, kind: PlainType | None) -> str:
    if kind is None:
        return quote_identifier(column)
    name = quote_identifier(column)
    # The round trip is several times faster than a pattern, and as strict.
    is_exact = f"TRY_CAST({name} AS {kind.type})::VARCHAR = {name}" if kind.type in ("BIGINT", "DATE") else "false"
    return (
        f"CASE WHEN {name} IS NULL THEN NULL WHEN {is_exact} OR ({kind.sql_fits(name)}) THEN {kind.sql_value(name)} "
        f"ELSE error('another type') END AS {name}"
    )


def find_misfit_columns(target: ImportTarget, files: Sequence[DelimitedFile], types: dict[str, PlainType]) -> set[str]:
    """Return the columns with a value that is not of the guessed type."""
    if not types:
        return set()
    target.db.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
    checks = ", ".join(f"bool_or(NOT ({kind.sql_fits(quote_identifier(column))}))" for column, kind in types.items())
    row = target.db.execute(f"SELECT {checks} FROM ({select_rows_as_text(files)})").fetchone()
    return {column for column, is_other in zip(types, row or (), strict=True) if is_other}


def lost_rows(target: ImportTarget, name: str) -> Iterator[str]:
    rows = target.db.execute(
        "SELECT line, min(error_type), any_value(csv_line) FROM reject_errors GROUP BY file_id, line ORDER BY line"
    ).fetchall()
    if rows:
        lines = "; ".join(
            f"line {line} ({str(kind).lower()}): {str(text)[:60]!r}" for line, kind, text in rows[:EXAMPLES]
        )
        yield f"{name}: {format_count(len(rows), 'row')} left out, because not readable: {lines}."
    target.db.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")


def summarize_file_names(paths: Sequence[str]) -> str:
    first = Path(paths[0]).name
    return first if len(paths) == 1 else f"{len(paths):,} files ({first}, ...)"


def open_plain_or_gzip(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def detect_encoding(path: Path) -> tuple[str, bool]:
    """Return the encoding of a file, and whether all its lines end alike.

    The encoding is UTF-16 if the file begins with its mark, '' if it is no text, UTF-8 if the whole file is, else
    Windows' Latin-1. DuckDB reads no row of a file whose lines end in several ways.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=False)
    with open_plain_or_gzip(path) as file:
        chunk = file.read(CHUNK)
        if chunk.startswith(UTF_16_MARKS):
            return "utf-16", True
        # No text holds a zero byte, except UTF-16, whose mark is looked for above.
        if b"\0" in chunk:
            return "", True
        try:
            while chunk:
                decoder.decode(chunk)
                chunk = file.read(CHUNK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252", True
    return "utf-8", not isinstance(decoder.newlines, tuple)


def copy_as_utf8(path: Path, encoding: str, target: Path) -> Path:
    """Write a copy of the file in UTF-8 with one kind of line ends."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)("replace"), translate=True)
    with open_plain_or_gzip(path) as file, target.open("w", encoding="utf-8", newline="") as out:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            out.write(decoder.decode(chunk))
        out.write(decoder.decode(b"", final=True))
    return target
