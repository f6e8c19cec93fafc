"""CSV and its like: encoding, separator, header and types are found out; no value is lost to a guess.

guess types from the start of the file and from places spread over it
read, each value only as a text of exactly its type;  where one is not: count which columns they are, and read again
    with these as text
what is text then becomes numbers and dates where all of it is (columns)
rows that have more or fewer values than the header are left out, counted and told
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.quoting import quoted
from decisor.tools.databases.files.columns import DECIMAL, Habits, PlainType, TextColumns, plain_type
from decisor.tools.databases.files.dialects import HEAD_BYTES, Dialect, Sketch, sketch_of
from decisor.tools.databases.files.header import note_names, unique
from decisor.tools.databases.files.limits import reason_of
from decisor.tools.databases.files.numerals import EITHER, PLAIN, sql_text
from decisor.tools.databases.files.places import Part, table_name, without_digits
from decisor.tools.databases.files.tables import Target

CHUNK = 2**22
EXAMPLES = 3
MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
FAST = ("BIGINT", "DATE", "TIMESTAMP")
"""Types that a value is given while the file is read."""


@dataclass(frozen=True, slots=True)
class DelimitedFile:
    """``readable``: the path of the same in UTF-8 with one kind of line ends."""

    path: str
    readable: str
    sketch: Sketch


def read_delimited(target: Target, part: Part) -> Iterator[str]:
    """Raises SetupError where a file holds no table."""
    alike: dict[tuple[str, ...], list[DelimitedFile]] = {}
    for number, path in enumerate(part.paths):
        if not Path(path).stat().st_size:
            raise SetupError(f"{path} is an empty file.")
        encoding, is_even = encoding_of(Path(path))
        if encoding == "":
            raise SetupError(f"{path} is no text: is it another kind of file, or packed?")
        readable = path
        if encoding != "utf-8":
            yield f"{Path(path).name} is read as {encoding}."
        if encoding != "utf-8" or not is_even:
            readable = str(in_utf8(Path(path), encoding, target.scratch / f"{number}.csv"))
        head, is_whole = head_of(Path(readable))
        sketch = sketch_of(Path(readable), head, is_whole)
        if sketch is None:
            raise SetupError(f"{path} cannot be read as a table: no line of it holds a value.")
        alike.setdefault(tuple(sorted(sketch.dialect.names)), []).append(DelimitedFile(path, readable, sketch))
    if len(alike) > 1:
        yield f"{part.name}: its {len(part.paths):,} files have not the same columns: {len(alike):,} tables."
    for files in alike.values():
        alone = table_name(files[0].path) if len(files) == 1 else without_digits(table_name(files[0].path))
        yield from read_table(target, target.name(part.name if len(alike) == 1 else alone), files)


def read_table(target: Target, name: str, files: Sequence[DelimitedFile]) -> Iterator[str]:
    """One table, with notes."""
    import duckdb

    types = guessed_types(target, files)
    try:
        create(target, name, files, types)
    except duckdb.InvalidInputException as error:
        if not (misfits := columns_of_other_types(target, files, types)):
            raise unreadable(files, error) from error
        types = {column: kind for column, kind in types.items() if column not in misfits}
        create(target, name, files, types)
    except duckdb.Error as error:
        raise unreadable(files, error) from error
    rows = target.count(name)
    yield f"{name}: {counted(rows, 'row')} from {names_of([file.path for file in files])}."
    first = files[0]
    if first.sketch.header.is_named and (above := first.sketch.header.row):
        yield f"{name}: {counted(above, 'line')} above the header {'is' if above == 1 else 'are'} left out."
    yield from note_names(
        name, list(zip(first.sketch.titles, first.sketch.dialect.names, strict=True)), first.sketch.header
    )
    hints = frozenset({";"} & {file.sketch.dialect.separator for file in files})
    habits = Habits(target.decimal, target.dates, hints, is_delimited=True)
    yield from TextColumns(target.db, name, habits).type_all({})
    kinds = [kind for _, kind in target.columns(name)][: len(first.sketch.titles)]
    if first.sketch.titles[-1] == "" and first.sketch.dialect.separator == "," and kinds[-2:] == ["BIGINT", "BIGINT"]:
        yield (f"{name}: the last of its whole numbers have no name: if 1,234 stands in it without quotes, its digits "
               "are in two columns, and the file has to be mended.")  # fmt: skip
    yield from lost_rows(target, name)


def unreadable(files: Sequence[DelimitedFile], error: Exception) -> SetupError:
    return SetupError(f"{names_of([file.path for file in files])} cannot be read as a table: {reason_of(error)}")


def guessed_types(target: Target, files: Sequence[DelimitedFile]) -> dict[str, PlainType]:
    """Types of columns whose texts at the start and here and there are plainly of one."""
    result: dict[str, PlainType] = {}
    for column in files[0].sketch.dialect.names:
        texts = list(chain.from_iterable(column_texts(file.sketch, column) for file in files))
        if not texts:
            continue
        kind = plain_type(texts)
        if kind is not None and kind.type in FAST:
            result[column] = kind
        elif kind is None and target.decimal != "," and has_decimal_point(texts):
            result[column] = DECIMAL
    return result


def column_texts(sketch: Sketch, column: str) -> list[str]:
    place = sketch.dialect.names.index(column)
    return [row[place] for row in sketch.rows if row[place] != ""]


def has_decimal_point(texts: Sequence[str]) -> bool:
    """Whether they are numbers as programs write them, and one of them shows that its point is a decimal point."""
    if not all(re.fullmatch(PLAIN, text) for text in texts):
        return False
    return any("." in text and not re.fullmatch(EITHER["[.]"], text) for text in texts)


def source_of(files: Sequence[DelimitedFile]) -> str:
    """SQL for all rows as texts, with their file where there are several."""
    by_dialect: dict[Dialect, list[str]] = {}
    for file in files:
        by_dialect.setdefault(file.sketch.dialect, []).append(file.readable)
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
    return unique([*files[0].sketch.dialect.names, "file"])[-1]


def create(target: Target, name: str, files: Sequence[DelimitedFile], types: dict[str, PlainType]) -> None:
    """Raises duckdb.InvalidInputException where a value is not of the type of its column."""
    target.db.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
    columns = [typed(column, types.get(column)) for column in files[0].sketch.dialect.names]
    if len(files) > 1:
        label = quoted(file_column(files))
        columns.append(f"parse_filename({label}) AS {label}")
    target.db.execute(
        f"CREATE OR REPLACE TABLE {quoted(name)} AS SELECT {', '.join(columns)} FROM ({source_of(files)})"
    )


def typed(column: str, kind: PlainType | None) -> str:
    if kind is None:
        return quoted(column)
    name = quoted(column)
    # The round trip is several times faster than a pattern, and as strict.
    is_exact = f"TRY_CAST({name} AS {kind.type})::VARCHAR = {name}" if kind.type in ("BIGINT", "DATE") else "false"
    return (
        f"CASE WHEN {name} IS NULL THEN NULL WHEN {is_exact} OR ({kind.sql_fits(name)}) THEN {kind.sql_value(name)} "
        f"ELSE error('another type') END AS {name}"
    )


def columns_of_other_types(target: Target, files: Sequence[DelimitedFile], types: dict[str, PlainType]) -> set[str]:
    """Columns with a value that is not of the type that was guessed."""
    if not types:
        return set()
    target.db.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
    checks = ", ".join(f"bool_or(NOT ({kind.sql_fits(quoted(column))}))" for column, kind in types.items())
    row = target.db.execute(f"SELECT {checks} FROM ({source_of(files)})").fetchone()
    return {column for column, is_other in zip(types, row or (), strict=True) if is_other}


def lost_rows(target: Target, name: str) -> Iterator[str]:
    rows = target.db.execute(
        "SELECT line, min(error_type), any_value(csv_line) FROM reject_errors GROUP BY file_id, line ORDER BY line"
    ).fetchall()
    if rows:
        lines = "; ".join(
            f"line {line} ({str(kind).lower()}): {str(text)[:60]!r}" for line, kind, text in rows[:EXAMPLES]
        )
        yield f"{name}: {counted(len(rows), 'row')} left out, because not readable: {lines}."
    target.db.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")


def names_of(paths: Sequence[str]) -> str:
    first = Path(paths[0]).name
    return first if len(paths) == 1 else f"{len(paths):,} files ({first}, ...)"


def opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def head_of(path: Path) -> tuple[str, bool]:
    """The first text of a file, and whether that is all of it."""
    with opened(path) as file:
        data = file.read(HEAD_BYTES)
        return data.decode("utf-8-sig", "replace"), len(data) < HEAD_BYTES


def encoding_of(path: Path) -> tuple[str, bool]:
    """UTF-8 where the whole file is; '' where it is no text. What is neither is Windows' Latin-1. Whether its lines
    end alike: DuckDB reads no row of a file whose lines do not."""
    returns = both = feeds = 0
    encoding = "utf-8"
    with opened(path) as file:
        head = file.read(CHUNK)
        for mark, name in MARKS:
            if head.startswith(mark):
                return name, True
        if b"\0" in head:
            return "", True
        decoder = codecs.getincrementaldecoder("utf-8")()
        last = b""
        while head:
            feeds += head.count(b"\n")
            if b"\r" in head or last == b"\r":
                returns += head.count(b"\r")
                both += head.count(b"\r\n") + (last == b"\r" and head[:1] == b"\n")
            last = head[-1:]
            try:
                if not head.isascii() or decoder.getstate()[0]:
                    decoder.decode(head)
            except UnicodeDecodeError:
                return "cp1252", True
            head = file.read(CHUNK)
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            encoding = "cp1252"
    return encoding, not returns or (returns == both == feeds) or not feeds


def in_utf8(path: Path, encoding: str, target: Path) -> Path:
    """A copy with one kind of line ends."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    with opened(path) as file, target.open("w", encoding="utf-8", newline="") as out:
        rest = ""
        for chunk in iter(lambda: file.read(CHUNK), b""):
            text = rest + decoder.decode(chunk)
            rest = "\r" if text.endswith("\r") else ""
            out.write(text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n"))
        out.write(rest.replace("\r", "\n") + decoder.decode(b"", final=True))
    return target
