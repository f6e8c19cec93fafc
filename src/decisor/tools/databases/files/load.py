"""The process that reads files: it may read them and write the store, and nothing else.

A line of JSON comes in, {"target": PATH, "parts": [[name, kind, paths], ...]}, and one goes out: {"notes": [...]}, or
{"error": ...} with what the person can do.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.tools.databases.files.columns import WRITTEN, totals, typed_texts
from decisor.tools.databases.files.delimited import read_delimited
from decisor.tools.databases.files.places import Part, kind_of
from decisor.tools.databases.files.tables import Target, literal
from decisor.tools.databases.files.typed import read_duckdb, read_json, read_parquet, read_sqlite
from decisor.tools.databases.files.workbook import read_workbook

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GB"
ADDRESS_SPACE = 16 * 2**30
LARGE = 2**28
"""Bytes from which on rows need not stay in their order, which takes memory."""
READERS: dict[str, Callable[[Target, Part], Iterator[str]]] = {
    "csv": read_delimited, "json": read_json, "parquet": read_parquet, "excel": read_workbook, "sqlite": read_sqlite,
    "duckdb": read_duckdb,
}  # fmt: skip
"""Each makes tables, and gives a note for every one and for what is amiss in it."""


def load(target: Path, parts: list[Part]) -> list[str]:
    """The notes. Raises SetupError where a file cannot be read, or all of them hold no table."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        db = connect(target, scratch, [path for part in parts for path in part.paths])
        whole = Target(db, scratch)
        notes: list[str] = []
        for part in parts:
            notes += read(whole, part, alone=len(parts) == len(part.paths) == 1)
        if not whole.names:
            raise SetupError("The files hold no table: no row with values is in them.")
        for name in whole.names:
            notes += [*typed_texts(db, name, {}, WRITTEN), *totals(db, name)]
        db.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return notes


def read(target: Target, part: Part, alone: bool) -> list[str]:
    """The notes of one part. Raises SetupError where it cannot be read and is ``alone``; else the files that cannot are
    left out and told."""
    before = len(target.names)
    try:
        return list(READERS[part.kind](target, part))
    except SetupError as error:
        if alone:
            raise
        target.forget(before)
        if len(part.paths) == 1:
            return [f"Left out: {error}"]
    notes: list[str] = []
    readable: list[str] = []
    for path in part.paths:  # each by itself, to tell which of them it is
        own = read(target, replace(part, paths=(path,)), alone=False)
        if len(target.names) > before:
            readable.append(path)
            target.forget(before)
        else:
            notes += own
    return [*notes, *(READERS[part.kind](target, replace(part, paths=tuple(readable))) if readable else ())]


def connect(target: Path, scratch: Path, paths: list[str]) -> duckdb.DuckDBPyConnection:
    """A new store that may read these files and no others."""
    import duckdb

    db = duckdb.connect(str(target), config={"memory_limit": MEMORY, "temp_directory": str(scratch)})
    db.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    if sum(map(size_of, paths)) > LARGE:
        db.execute("SET preserve_insertion_order = false")
    db.execute(f"SET allowed_directories = [{literal(str(scratch))}]")
    logs = [f"{path}.wal" for path in paths if kind_of(path) == "duckdb"]
    db.execute(f"SET allowed_paths = [{', '.join(map(literal, [*paths, *logs]))}]")
    db.execute("SET enable_external_access = false; SET python_enable_replacements = false")
    db.execute("SET lock_configuration = true")
    return db


def size_of(path: str) -> int:
    return Path(path).stat().st_size


def limit() -> None:
    """What the process may take, where the system can say so."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def main() -> None:
    import duckdb

    limit()
    job = json.loads(sys.stdin.buffer.read())
    parts = [Part(name, kind, tuple(paths)) for name, kind, paths in job["parts"]]
    try:
        reply: dict[str, object] = {"notes": load(Path(job["target"]), parts)}
    except SetupError as error:
        reply = {"error": str(error)}
    except (duckdb.Error, OSError, MemoryError, ValueError) as error:
        reply = {
            "error": f"The files cannot be read: {' '.join(str(error).split())[:400] or 'they take too much memory'}"
        }
    sys.stdout.write(json.dumps(reply) + "\n")
