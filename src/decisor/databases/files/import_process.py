"""The process that reads files: it may read them and write the store, and nothing else.

A line of JSON comes in, {"target": PATH, "parts": [[name, kind, paths], ...]}, and one goes out: {"notes": [...]}, or
{"error": ...} with a remedy for the person.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.databases.files.columns import (
    ENGINE_MEMORY,
    ENGINE_THREADS,
    TOO_LARGE,
    Habits,
    ImportTarget,
    TextColumns,
    describe_file_error,
    limit_reader_memory,
    note_totals,
    remove_nan,
)
from decisor.databases.files.delimited import read_delimited
from decisor.databases.files.formats import read_duckdb, read_json_table, read_parquet, read_sqlite, read_workbook
from decisor.databases.files.numerals import sql_text
from decisor.databases.files.store import FilePart, file_kind, table_name_of_file
from decisor.errors import SetupError

if TYPE_CHECKING:
    import duckdb

LARGE = 2**28
"""Bytes from which on rows need not stay in their order, which takes memory."""
READERS: dict[str, Callable[[ImportTarget, FilePart], Iterator[str]]] = {
    "csv": read_delimited,
    "json": read_json_table,
    "parquet": read_parquet,
    "excel": read_workbook,
    "sqlite": read_sqlite,
    "duckdb": read_duckdb,
}
"""Each makes tables, and gives a note for every one and for what is amiss in it."""


def import_files(target: Path, parts: list[FilePart], decimal: str = "", dates: str = "") -> list[str]:
    """Read files into a new store and return the notes.

    Raises SetupError if a file cannot be read, or if no file holds a table.
    """
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        db = open_new_store(target, scratch, [path for part in parts for path in part.paths])
        whole = ImportTarget(db, scratch, decimal=decimal, dates=dates)
        notes: list[str] = []
        for part in parts:
            part_notes = import_part(whole, part, is_only=len(parts) == len(part.paths) == 1)
            # DuckDB may read nothing any more after that: each part gets a process of its own instead.
            if len(parts) > 1 and any(TOO_LARGE in note for note in part_notes):
                raise MemoryError
            notes += part_notes
        if not whole.names:
            raise SetupError("The files hold no table: no row with values is in them.")
        for name in whole.names:
            if whole.kinds.get(name) not in ("csv", "excel"):
                notes += TextColumns(db, name, Habits(decimal, dates, has_types=True)).type_all({})
            notes += [*remove_nan(db, name), *note_totals(db, name)]
        db.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return notes


def import_part(target: ImportTarget, part: FilePart, is_only: bool) -> list[str]:
    """Read the files of one part and return the notes.

    Files that cannot be read are left out with a note; files that do not fit together become a table each. Raises
    SetupError if the part cannot be read and ``is_only``: there are no others.
    """
    before = len(target.names)
    try:
        return import_whole_part(target, part)
    except SetupError as error:
        if is_only:
            raise
        target.forget(before)
        if len(part.paths) == 1:
            return [f"Left out: {error}"]
    notes: list[str] = []
    readable: list[str] = []
    for path in part.paths:  # each by itself, to tell which of them it is
        mark = len(target.names)
        file_notes = import_part(target, replace(part, paths=(path,)), is_only=False)
        if len(target.names) > mark:
            readable.append(path)
            target.forget(mark)
        else:
            notes += file_notes
    if not readable:
        return notes
    try:
        return [*notes, *import_whole_part(target, replace(part, paths=tuple(readable)))]
    except SetupError as error:
        target.forget(before)
        notes.append(f"{part.name}: the files do not fit together, and are a table each: {error}")
    parts = (replace(part, name=table_name_of_file(path), paths=(path,)) for path in readable)
    return [*notes, *(note for single in parts for note in import_whole_part(target, single))]


def import_whole_part(target: ImportTarget, part: FilePart) -> list[str]:
    """Read all files of a part and return the notes.

    Raises SetupError if one cannot be read, whatever the library's exception is.
    """
    import duckdb

    before = len(target.names)
    try:
        notes = list(READERS[part.kind](target, part))
    except (duckdb.Error, OSError, ValueError, UnicodeError) as error:
        raise SetupError(f"{part.paths[0]} cannot be read: {describe_file_error(error)}") from error
    for name in target.names[before:]:
        target.kinds[name] = part.kind
    return notes


def open_new_store(target: Path, scratch: Path, paths: list[str]) -> duckdb.DuckDBPyConnection:
    """Open a new store that may read these files and no others."""
    import duckdb

    db = duckdb.connect(
        str(target),
        config={
            "memory_limit": ENGINE_MEMORY,
            "temp_directory": str(scratch / "spill"),
            "threads": min(ENGINE_THREADS, os.cpu_count() or 1),
        },
    )
    # No extension is fetched from the network.
    db.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    db.execute("SET enable_progress_bar = false")  # after 2 s it would stand on standard output, beside the reply
    if sum(Path(path).stat().st_size for path in paths) > LARGE:
        db.execute("SET preserve_insertion_order = false")
    # The paths are named before external access ends, for later they could not be.
    db.execute(f"SET allowed_directories = [{sql_text(str(scratch))}]")
    # A DuckDB database that was not closed has a log beside it.
    logs = [f"{path}.wal" for path in paths if file_kind(path) == "duckdb"]
    db.execute(f"SET allowed_paths = [{', '.join(map(sql_text, [*paths, *logs]))}]")
    db.execute("SET enable_external_access = false; SET python_enable_replacements = false")
    # Nothing in a file may undo these settings.
    db.execute("SET lock_configuration = true")
    return db


def main() -> None:
    import duckdb

    limit_reader_memory()
    job = json.loads(sys.stdin.buffer.read())
    parts = [FilePart(name, kind, tuple(paths)) for name, kind, paths in job["parts"]]
    try:
        reply: dict[str, object] = {"notes": import_files(Path(job["target"]), parts, job["decimal"], job["dates"])}
    except SetupError as error:
        reply = {"error": str(error)}
    except (MemoryError, duckdb.Error, OSError, ValueError) as error:
        reason = describe_file_error(error)  # memory may end anywhere: then the files are read one by one
        reply = {"end": reason} if reason == TOO_LARGE else {"error": f"The files cannot be read: {reason}."}
    sys.stdout.write(json.dumps(reply) + "\n")
