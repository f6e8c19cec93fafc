"""CSV and its like: encoding, separator, header and types are found out; no row is lost to a guess.

guess types from the start of the file
repeat
    read;  a column with a value that is not of its type is text from now on
rows that have more or fewer values than the header are left out, counted and told
"""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.quoting import quoted
from decisor.tools.databases.files.columns import typed_texts
from decisor.tools.databases.files.places import Part, table_name, without_digits
from decisor.tools.databases.files.tables import Target, literal

CHUNK = 2**22
EXAMPLES = 3
KINDS = {"double": "number", "bigint": "whole number", "timestamp": "time"}
MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_delimited(target: Target, part: Part) -> Iterator[str]:
    """Raises SetupError where a file holds no table."""
    alike: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for number, path in enumerate(part.paths):
        encoding = encoding_of(Path(path))
        if not Path(path).stat().st_size:
            raise SetupError(f"{path} is an empty file.")
        if encoding == "":
            raise SetupError(f"{path} is no text: is it another kind of file, or packed?")
        readable = path
        if encoding != "utf-8":
            yield f"{Path(path).name} is read as {encoding}."
            readable = str(in_utf8(Path(path), encoding, target.scratch / f"{number}.csv"))
        alike.setdefault(header_of(target, path, readable), []).append((path, readable))
    for files in alike.values():
        paths = [path for path, _ in files]
        own = table_name(paths[0]) if len(paths) == 1 else without_digits(table_name(paths[0]))
        name = target.name(part.name if len(alike) == 1 else own)
        yield from read_table(target, name, paths, [readable for _, readable in files])


def header_of(target: Target, path: str, readable: str) -> tuple[str, ...]:
    """The names of its columns. Raises SetupError where it holds no table."""
    import duckdb

    try:
        rows = target.db.execute(f"DESCRIBE FROM read_csv({literal(readable)}, store_rejects=true)").fetchall()
    except duckdb.Error as error:
        first = " ".join(str(error).split(". ")[0].split())[:300]
        raise SetupError(f"{path} cannot be read as a table: {first}.") from error
    return tuple(str(row[0]) for row in rows)


def read_table(target: Target, name: str, paths: Sequence[str], readable: Sequence[str]) -> Iterator[str]:
    """One table, with notes. ``readable``: the paths in UTF-8."""
    text: dict[str, str] = {}
    while True:
        create(target, name, readable, text)
        misfits = wrong_types(target)
        if not misfits.keys() - text.keys():
            break
        text |= misfits
        target.db.execute(f"DROP TABLE {quoted(name)}")
    yield f"{name}: {counted(target.count(name), 'row')} from {names_of(paths)}."
    yield from typed_texts(target.db, name, text)
    yield from lost_rows(target, name)


def create(target: Target, name: str, paths: Sequence[str], text: Mapping[str, str]) -> None:
    """``text``: columns that are read as text."""
    files = ", ".join(literal(path) for path in paths)
    as_text = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in text)
    types = f", types={{{as_text}}}" if text else ""
    several = ", filename='file'" if len(paths) > 1 else ""
    target.db.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
    columns = "* REPLACE (parse_filename(file) AS file)" if len(paths) > 1 else "*"
    target.db.execute(
        f"CREATE TABLE {quoted(name)} AS SELECT {columns} FROM read_csv([{files}], store_rejects=true, rejects_limit=0"
        f"{types}{several})"
    )


def wrong_types(target: Target) -> dict[str, str]:
    """Columns with values that are not of the type that was guessed, with an example of each. A row that has too many
    or too few values says nothing of types."""
    rows = target.db.execute(
        "SELECT column_name, min_by(error_message, line), count(DISTINCT line) FROM reject_errors AS r "
        "WHERE error_type = 'CAST' AND NOT EXISTS (FROM reject_errors AS o WHERE o.file_id = r.file_id "
        "AND o.line = r.line AND o.error_type <> 'CAST') GROUP BY column_name"
    ).fetchall()
    return {str(column): f"{value_in(str(message))} is no {type_in(str(message))} ({count:,} such)"
            for column, message, count in rows}  # fmt: skip


def value_in(message: str) -> str:
    """
    >>> value_in('Error when converting column "p". Could not convert string "n/a" to \\'DOUBLE\\'')
    '"n/a"'
    """
    return f'"{message.partition("string ")[2].partition(" to ")[0].strip(chr(34))[:40]}"'


def type_in(message: str) -> str:
    kind = message.rpartition(" to '")[2].strip("' ").lower()
    return KINDS.get(kind, kind or "number")


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


def encoding_of(path: Path) -> str:
    """UTF-8 where the whole file is; '' where it is no text. What is neither is Windows' Latin-1."""
    with opened(path) as file:
        head = file.read(CHUNK)
        for mark, name in MARKS:
            if head.startswith(mark):
                return name
        if b"\0" in head:
            return ""
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while head:
                decoder.decode(head)
                head = file.read(CHUNK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def in_utf8(path: Path, encoding: str, target: Path) -> Path:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    with opened(path) as file, target.open("w", encoding="utf-8", newline="") as out:
        while chunk := file.read(CHUNK):
            out.write(decoder.decode(chunk))
        out.write(decoder.decode(b"", final=True))
    return target
