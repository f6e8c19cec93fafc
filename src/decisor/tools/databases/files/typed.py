"""Files that know their types: Parquet, JSON, and databases."""

from __future__ import annotations

import codecs
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.quoting import quoted
from decisor.tools.databases.files.columns import CUT, EXACT, LONG, holds, texts_of
from decisor.tools.databases.files.delimited import names_of, opened
from decisor.tools.databases.files.header import unique
from decisor.tools.databases.files.limits import MOST_LEVELS, reason_of
from decisor.tools.databases.files.numerals import CELL, sql_text
from decisor.tools.databases.files.places import Part
from decisor.tools.databases.files.tables import Target

FILE = "\x01file"
"""The name of the column of files while objects are read: no key of theirs."""
MOST_WHOLE = 2**25
"""Bytes of a file of JSON that is read at once, to see whether its rows are within an object."""


def read_parquet(target: Target, part: Part) -> Iterator[str]:
    import duckdb

    name = target.name(part.name)
    several = ", union_by_name=true, filename='file'" if len(part.paths) > 1 else ""
    files = ", ".join(map(sql_text, part.paths))
    columns = "* REPLACE (parse_filename(file) AS file)" if len(part.paths) > 1 else "*"
    try:
        target.db.execute(f"CREATE TABLE {quoted(name)} AS SELECT {columns} FROM read_parquet([{files}]{several})")
    except duckdb.Error as error:
        raise SetupError(f"{part.paths[0]} cannot be read as Parquet: {reason_of(error)}") from error
    yield f"{name}: {counted(target.count(name), 'row')} from {names_of(part.paths)}."


def read_json(target: Target, part: Part) -> Iterator[str]:
    """Objects in an array, or one on each line; lines that are none are left out and counted."""
    import duckdb

    name = target.name(part.name)
    copies = [rows_of_object(without_mark(Path(path), target.scratch), target.scratch) for path in part.paths]
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
            raise SetupError(f"{part.paths[0]} cannot be read as JSON: {reason_of(error)}") from error
        keys = [column for column, _ in target.columns(name) if column != FILE]
        target.db.execute(f"DELETE FROM {quoted(name)} WHERE {' AND '.join(f'{quoted(key)} IS NULL' for key in keys)}")
        lost = sum(map(lines_in, part.paths)) - target.count(name)
    if not target.columns(name) or (lost and not target.count(name)):
        raise SetupError(f"{part.paths[0]} holds no objects: JSON is read as an array of objects, or one on each line.")
    yield f"{name}: {counted(target.count(name), 'row')} from {names_of(part.paths)}."
    yield from (f"{name}: {note}" for note in dict.fromkeys(note for _, note in copies) if note)
    yield from keep_exact(target, name, source)
    keep_dates(target, name, types)
    if several:
        label = unique([*(column for column, _ in target.columns(name) if column != FILE), "file"])[-1]
        target.db.execute(f"ALTER TABLE {quoted(name)} RENAME {quoted(FILE)} TO {quoted(label)}")
    if lost > 0:
        yield f"{name}: {counted(lost, 'line')} left out, because not readable."


def rows_of_object(path: Path, folder: Path) -> tuple[Path, str]:
    """Return a copy of the rows alone, if the file is one object with one list of objects, {"data": [{...}, ...]}.

    And a note, if the file is one object."""
    if not path.name.lower().endswith((".json", ".json.gz")):  # an object on each line, be it one line
        return path, ""
    with opened(path) as file:
        start = file.read(1)
        spelled = start + file.read(MOST_WHOLE) if start in (b"{", b" ", b"\n", b"\r", b"\t") else b""
    try:
        member = json.loads(spelled) if len(spelled) <= MOST_WHOLE else None
    except (ValueError, RecursionError):  # an object on each line
        return path, ""
    place: list[str] = []
    rest: list[str] = []
    while isinstance(member, dict):
        inner = {key: value for key, value in member.items() if value and isinstance(value, dict | list)}
        tables = [key for key, value in inner.items()
                  if isinstance(value, list) and all(isinstance(row, dict) for row in value)]  # fmt: skip
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


def create_texts(target: Target, name: str, source: str, types: dict[str, str] | None = None) -> dict[str, str]:
    """Make a table in which dates are texts still, for DuckDB takes 1-2-3 for one; return the types that it guesses.
    ``types``: those to read instead."""
    guessed = types or {str(row[0]): str(row[1]) for row in target.db.execute(f"DESCRIBE FROM {source})").fetchall()}
    guessed.pop(FILE, None)
    columns = ", ".join(f"{sql_text(column)}: {sql_text(texts_for(kind))}" for column, kind in guessed.items())
    label = f" REPLACE (parse_filename({quoted(FILE)}) AS {quoted(FILE)})" if "filename=" in source else ""
    create = f"CREATE OR REPLACE TABLE {quoted(name)} AS SELECT *{label} FROM {source}"
    target.db.execute(f"{create}, columns={{{columns}}})")
    # Beside a key "A", DuckDB calls a key "a" by the name a_1, under which it does not find it again.
    keys = {column.lower() for column in guessed}
    second = [column for column in guessed if re.sub(r"_[0-9]+$", "", column.lower()) in keys - {column.lower()}]
    if any(not holds(target.db, name, f"{quoted(column)} IS NOT NULL") for column in second):
        target.db.execute(f"{create})")
        return {}
    return guessed


def texts_for(kind: str, types: str = "DATE|TIMESTAMP|TIME|UUID") -> str:
    """
    >>> texts_for('STRUCT(DATE DATE, "a, DATE" TIME[])')
    'STRUCT(DATE VARCHAR, "a, DATE" VARCHAR[])'
    """
    return re.sub(rf"""("(?:[^"]|"")*")|\b(?:{types})(?=[],)[]|$)""", lambda match: match[1] or "VARCHAR", kind)


def keep_dates(target: Target, name: str, types: Mapping[str, str]) -> None:
    """Give dates and times within objects their types where each is spelled as DuckDB spells it."""
    for column, kind in target.columns(name):
        typed, label = types.get(column, ""), quoted(column)
        if kind not in ("VARCHAR", typed) and kind == texts_for(typed) and not holds(
                target.db, name, f"CAST(TRY_CAST({label} AS {typed}) AS {kind}) IS DISTINCT FROM {label}"):  # fmt: skip
            target.db.execute(f"ALTER TABLE {quoted(name)} ALTER {label} TYPE {typed}")


def without_mark(path: Path, folder: Path) -> Path:
    """The file, or a copy without the byte order mark at its start, with which DuckDB reads no objects."""
    with opened(path) as file:
        if file.read(3) != codecs.BOM_UTF8:
            return path
        copy = folder / f"unmarked{len(list(folder.iterdir()))}" / path.name.removesuffix(".gz")
        copy.parent.mkdir()
        with copy.open("wb") as out:
            shutil.copyfileobj(file, out)
    return copy


def keep_exact(target: Target, name: str, source: str) -> Iterator[str]:
    """Give columns of numbers beside texts, and of numbers too long for a DOUBLE, the values that the file spells."""
    db, table = target.db, quoted(name)
    types = {column: kind for column, kind in target.columns(name) if column != FILE}
    is_long = "regexp_matches(CAST({} AS VARCHAR), '(^|[^.0-9])[0-9]{{16}}|e[+]')"
    large = {column: "JSON" for column, kind in types.items()
             if "DOUBLE" in kind and holds(db, name, is_long.format(quoted(column)))}  # fmt: skip
    if large:
        create_texts(target, name, source, {**types, **large})
    for column in texts_of(db, name, "JSON"):
        text, kind_of_value = f"({quoted(column)} ->> '$')", f"json_type({quoted(column)})"
        if holds(db, name, f"{kind_of_value} IN ('OBJECT', 'ARRAY')"):
            if column in large:
                kind = types[column]
                if holds(db, name, f"regexp_matches({text}, '[[:,]-?[0-9]{{16,}}[],}}]')"):
                    kind = texts_for(kind, "DOUBLE")
                    yield f"{name}.{column}: numbers in it are texts, because {CUT}."
                db.execute(f"ALTER TABLE {table} ALTER {quoted(column)} TYPE {kind}")
            continue
        is_number = f"{kind_of_value} IN ('UBIGINT', 'BIGINT', 'DOUBLE')"
        kind, value = "VARCHAR", f"CASE WHEN {is_number} THEN '{CELL}' || {text} ELSE {text} END"
        if not holds(db, name, f"NOT regexp_full_match({text}, '-?[0-9]{{1,38}}') OR NOT {is_number}"):
            kind, value = "HUGEINT", f"CAST({text} AS HUGEINT)"
        elif column in large and holds(db, name, f"regexp_full_match({text}, '{LONG}')"):
            value = text
            yield f"{name}.{column} is text: {CUT}."
        elif column in large:
            kind, value = "DOUBLE", f"CAST({text} AS DOUBLE)"
        db.execute(f"ALTER TABLE {table} ALTER {quoted(column)} TYPE {kind} USING {value}")


def lines_in(path: str) -> int:
    with opened(Path(path)) as file:
        return sum(1 for line in file if line.strip())


def read_sqlite(target: Target, part: Part) -> Iterator[str]:
    """Every table, with the types that its columns declare, or text."""
    for path in part.paths:
        with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as source:
            source.execute("PRAGMA trusted_schema = OFF")
            source.text_factory = lambda data: data.decode("utf-8", "replace")
            try:
                query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
                names = [str(name) for (name,) in source.execute(query)]
            except sqlite3.Error as error:
                raise SetupError(f"{path} cannot be read as a SQLite database: {error}") from error
            for table in names:
                info = source.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
                if not info:
                    continue
                name = target.name(table)
                types = dict(zip(unique([one[1] for one in info]), [sqlite_type(source, table, one[1]) for one in info],
                                 strict=True))  # fmt: skip
                columns = ", ".join(quoted(one[1]) for one in info)
                target.add_rows(name, types, source.execute(f"SELECT {columns} FROM {quoted(table)}"))
                yield f"{name}: {counted(target.count(name), 'row')} from {Path(path).name}."


def sqlite_type(source: sqlite3.Connection, table: str, column: str) -> str:
    """By what the column holds: SQLite lets any value stand anywhere."""
    rows = source.execute(f"SELECT DISTINCT typeof({quoted(column)}) FROM {quoted(table)}").fetchall()
    kinds = {str(kind) for (kind,) in rows} - {"null"}
    if kinds == {"integer"}:
        return "BIGINT"
    cut = f"typeof({quoted(column)}) = 'integer' AND {quoted(column)} NOT BETWEEN -{EXACT} AND {EXACT}"
    if source.execute(f"SELECT 1 FROM {quoted(table)} WHERE {cut} LIMIT 1").fetchone():
        return "VARCHAR"
    return "DOUBLE" if kinds and kinds <= {"integer", "real"} else "VARCHAR"


def read_duckdb(target: Target, part: Part) -> Iterator[str]:
    import duckdb

    for path in part.paths:
        try:
            target.db.execute(f"ATTACH {sql_text(path)} AS other (READ_ONLY)")
        except duckdb.Error as error:
            raise SetupError(f"{path} cannot be read as a DuckDB database: {reason_of(error)}") from error
        query = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'other'"
        for schema, table in target.db.execute(query).fetchall():
            name = target.name(str(table))
            source = f"other.{quoted(str(schema))}.{quoted(str(table))}"
            target.db.execute(f"CREATE TABLE {quoted(name)} AS FROM {source}")
            yield f"{name}: {counted(target.count(name), 'row')} from {Path(path).name}."
        target.db.execute("DETACH other")
