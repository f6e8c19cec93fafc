"""The process that reads files: it may read them and write the store, and nothing else.

A line of JSON comes in, {"target": PATH, "parts": [[name, kind, paths], ...]}, and one goes out: {"notes": [...]}, or
{"error": ...} with what the person can do.
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

from decisor.errors import SetupError
from decisor.tools.databases.files.columns import Habits, TextColumns, totals, without_nan
from decisor.tools.databases.files.delimited import read_delimited
from decisor.tools.databases.files.limits import ENGINE_MEMORY, ENGINE_THREADS, TOO_LARGE, limit_memory, reason_of
from decisor.tools.databases.files.numerals import sql_text
from decisor.tools.databases.files.places import Part, kind_of, table_name
from decisor.tools.databases.files.tables import Target
from decisor.tools.databases.files.typed import read_duckdb, read_json, read_parquet, read_sqlite
from decisor.tools.databases.files.workbook import read_workbook

if TYPE_CHECKING:
    import duckdb

LARGE = 2**28
"""Bytes from which on rows need not stay in their order, which takes memory."""
READERS: dict[str, Callable[[Target, Part], Iterator[str]]] = {
    "csv": read_delimited, "json": read_json, "parquet": read_parquet, "excel": read_workbook, "sqlite": read_sqlite,
    "duckdb": read_duckdb,
}  # fmt: skip
"""Each makes tables, and gives a note for every one and for what is amiss in it."""


def load(target: Path, parts: list[Part], decimal: str = "", dates: str = "") -> list[str]:
    """The notes. Raises SetupError where a file cannot be read, or all of them hold no table."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        db = connect(target, scratch, [path for part in parts for path in part.paths])
        whole = Target(db, scratch, decimal=decimal, dates=dates)
        notes: list[str] = []
        for part in parts:
            notes += read(whole, part, alone=len(parts) == len(part.paths) == 1)
        if not whole.names:
            raise SetupError("The files hold no table: no row with values is in them.")
        for name in whole.names:
            if whole.kinds.get(name) not in ("csv", "excel"):
                notes += TextColumns(db, name, Habits(decimal, dates, has_types=True)).type_all({})
            notes += [*without_nan(db, name), *totals(db, name)]
        db.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return notes


def read(target: Target, part: Part, alone: bool) -> list[str]:
    """The notes of one part. Files that cannot be read are left out and told; those that do not fit together are a
    table each. Raises SetupError where the part cannot be read and is ``alone``."""
    before = len(target.names)
    try:
        return read_whole(target, part)
    except SetupError as error:
        if alone:
            raise
        target.forget(before)
        if len(part.paths) == 1:
            return [f"Left out: {error}"]
    notes: list[str] = []
    readable: list[str] = []
    for path in part.paths:  # each by itself, to tell which of them it is
        mark = len(target.names)
        own = read(target, replace(part, paths=(path,)), alone=False)
        if len(target.names) > mark:
            readable.append(path)
            target.forget(mark)
        else:
            notes += own
    if not readable:
        return notes
    try:
        return [*notes, *read_whole(target, replace(part, paths=tuple(readable)))]
    except SetupError as error:
        target.forget(before)
        notes.append(f"{part.name}: the files do not fit together, and are a table each: {error}")
    return [*notes, *(note for path in readable for note in read_whole(target, single(part, path)))]


def single(part: Part, path: str) -> Part:
    return replace(part, name=table_name(path), paths=(path,))


def read_whole(target: Target, part: Part) -> list[str]:
    """Raises SetupError where it cannot be read, whatever the library says of it."""
    import duckdb

    before = len(target.names)
    try:
        notes = list(READERS[part.kind](target, part))
    except (duckdb.Error, OSError, ValueError, UnicodeError) as error:
        raise SetupError(f"{part.paths[0]} cannot be read: {reason_of(error)}") from error
    for name in target.names[before:]:
        target.kinds[name] = part.kind
    return notes


def connect(target: Path, scratch: Path, paths: list[str]) -> duckdb.DuckDBPyConnection:
    """A new store that may read these files and no others."""
    import duckdb

    db = duckdb.connect(str(target), config={
        "memory_limit": ENGINE_MEMORY, "temp_directory": str(scratch / "spill"),
        "threads": min(ENGINE_THREADS, os.cpu_count() or 1),
    })  # fmt: skip
    db.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    db.execute("SET enable_progress_bar = false")  # after 2 s it would stand on standard output, beside the reply
    if sum(map(size_of, paths)) > LARGE:
        db.execute("SET preserve_insertion_order = false")
    db.execute(f"SET allowed_directories = [{sql_text(str(scratch))}]")
    logs = [f"{path}.wal" for path in paths if kind_of(path) == "duckdb"]
    db.execute(f"SET allowed_paths = [{', '.join(map(sql_text, [*paths, *logs]))}]")
    db.execute("SET enable_external_access = false; SET python_enable_replacements = false")
    db.execute("SET lock_configuration = true")
    return db


def size_of(path: str) -> int:
    return Path(path).stat().st_size


def main() -> None:
    import duckdb

    limit_memory()
    job = json.loads(sys.stdin.buffer.read())
    parts = [Part(name, kind, tuple(paths)) for name, kind, paths in job["parts"]]
    try:
        reply: dict[str, object] = {"notes": load(Path(job["target"]), parts, job["decimal"], job["dates"])}
    except SetupError as error:
        reply = {"error": str(error)}
    except (MemoryError, duckdb.Error, OSError, ValueError) as error:
        reason = reason_of(error)  # memory may end anywhere: then the files are read one by one
        reply = {"end": reason} if reason == TOO_LARGE else {"error": f"The files cannot be read: {reason}."}
    sys.stdout.write(json.dumps(reply) + "\n")
