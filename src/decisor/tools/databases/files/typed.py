"""Files that know their types: Parquet, JSON, and databases."""

from __future__ import annotations

import codecs
import shutil
import sqlite3
from collections.abc import Iterator
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
    files = ", ".join(sql_text(str(without_mark(Path(path), target.scratch))) for path in part.paths)
    several = f", filename={sql_text(FILE)}" if len(part.paths) > 1 else ""
    columns = f"* REPLACE (parse_filename({quoted(FILE)}) AS {quoted(FILE)})" if several else "*"
    # All rows tell the columns and their types: by a sample of 20,480 a key or a text that comes late is lost.
    is_long = any(path.endswith(".gz") or Path(path).stat().st_size > 7 * 20_480 for path in part.paths)
    create = (f"CREATE OR REPLACE TABLE {quoted(name)} AS SELECT {columns} FROM read_json([{files}]{several}, "
              f"maximum_object_size=16000000, maximum_depth={MOST_LEVELS}{', sample_size=-1' * is_long}")  # fmt: skip
    lost = 0
    try:
        target.db.execute(f"{create})")
    except duckdb.Error as error:
        create += ", format='newline_delimited', ignore_errors=true"
        try:
            target.db.execute(f"{create})")
        except duckdb.Error:
            raise SetupError(f"{part.paths[0]} cannot be read as JSON: {reason_of(error)}") from error
        keys = [column for column, _ in target.columns(name) if column != FILE]
        target.db.execute(f"DELETE FROM {quoted(name)} WHERE {' AND '.join(f'{quoted(key)} IS NULL' for key in keys)}")
        lost = sum(map(lines_in, part.paths)) - target.count(name)
    if not target.columns(name) or (lost and not target.count(name)):
        raise SetupError(f"{part.paths[0]} holds no objects: JSON is read as an array of objects, or one on each line.")
    yield f"{name}: {counted(target.count(name), 'row')} from {names_of(part.paths)}."
    yield from keep_exact(target, name, create)
    if several:
        label = unique([*(column for column, _ in target.columns(name) if column != FILE), "file"])[-1]
        target.db.execute(f"ALTER TABLE {quoted(name)} RENAME {quoted(FILE)} TO {quoted(label)}")
    if lost > 0:
        yield f"{name}: {counted(lost, 'line')} left out, because not readable."


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


def keep_exact(target: Target, name: str, create: str) -> Iterator[str]:
    """Give columns of numbers beside texts, and of numbers too long for a DOUBLE, the values that the file spells."""
    db, table = target.db, quoted(name)
    types = {column: kind for column, kind in target.columns(name) if column != FILE}
    large = {column: "JSON" for column, kind in types.items()
             if kind == "DOUBLE" and holds(db, name, f"abs({quoted(column)}) >= {EXACT}")}  # fmt: skip
    if large:
        spelled = ", ".join(f"{sql_text(column)}: {sql_text(kind)}" for column, kind in {**types, **large}.items())
        db.execute(f"{create}, columns={{{spelled}}})")
    for column in texts_of(db, name, "JSON"):
        text, kind_of_value = f"({quoted(column)} ->> '$')", f"json_type({quoted(column)})"
        if holds(db, name, f"{kind_of_value} IN ('OBJECT', 'ARRAY')"):
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
