"""DataFrames (pandas, polars, Arrow) as tables of a store that lives as long as what holds it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from decisor.errors import SetupError
from decisor.quoting import quoted
from decisor.tools.databases.files.places import table_name

MODULES = ("pandas", "polars", "pyarrow", "duckdb", "_duckdb")


def is_frame(value: object) -> bool:
    """Whether that is a table of a library for tables."""
    module = type(value).__module__.partition(".")[0]
    return module in MODULES or hasattr(value, "__arrow_c_stream__")


class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


@dataclass(frozen=True)
class Stream:
    """A table as nothing but its stream: for polars' own class DuckDB would ask for pyarrow."""

    table: ArrowStream

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def as_stream(frame: object) -> object:
    """pandas' tables are read as they are."""
    is_stream = hasattr(frame, "__arrow_c_stream__") and not type(frame).__module__.startswith("pandas")
    return Stream(cast(ArrowStream, frame)) if is_stream else frame


class FrameStore:
    """A database in a folder of its own, which goes with this."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="decisor-frames-")
        self.path = Path(folder) / "frames.duckdb"
        self.url = f"duckdb:///{self.path}"
        self.remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


def store_frames(frames: Mapping[str, object]) -> FrameStore:
    """A database with these tables.

    Raises:
        SetupError: one is no table that can be read.
    """
    import duckdb

    store = FrameStore()
    with duckdb.connect(str(store.path)) as db:
        for name, frame in frames.items():
            table = table_name(name)
            try:
                db.register("frame", as_stream(frame))
                db.execute(f"CREATE TABLE {quoted(table)} AS FROM frame")
                db.unregister("frame")
            except (duckdb.Error, ValueError, TypeError) as error:
                store.remove()
                complaint = " ".join(str(error).splitlines()[0].split())
                raise SetupError(f"The table {name} cannot be read ({type(frame).__name__}): {complaint}") from error
    return store
