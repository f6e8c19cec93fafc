"""The place of a history, and the one in a folder: a SQLite database, and a file for each trace.

    FOLDER/history.db       facts for lists and searches
    FOLDER/runs/12.jsonl    the trace of run 12, as ``decisor ask --trace`` writes it, from the moment that it begins

The process that records a run holds a lock on its trace; the kernel drops the lock when the process ends, in whatever
way. So a run whose process died is told from one that is under way.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

from decisor.errors import SetupError
from decisor.system.storage import create_private, data_folder, make_private_folder, open_private
from decisor.trace.events import TraceEntry
from decisor.trace.file import TraceFile, read_trace

if sys.platform != "win32":
    import fcntl

    def lock(file: TextIO) -> None:
        """Lock a file until it is closed, if its file system has locks."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return

    def is_locked(path: Path) -> bool:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            # A shared lock is refused only while the process that records holds its own.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(file)
        return False

else:

    def lock(file: TextIO) -> None:
        """Do nothing: Windows has no such locks."""

    def is_locked(path: Path) -> bool:
        return False


MIGRATIONS: Sequence[Sequence[str]] = (
    (
        """CREATE TABLE run (number {identity}, owner TEXT NOT NULL, words TEXT NOT NULL,
        marked INTEGER NOT NULL, run TEXT NOT NULL)""",
        "CREATE INDEX run_of_owner ON run (owner, number)",
        "CREATE TABLE reader (name TEXT, number BIGINT, PRIMARY KEY (name, number))",
    ),
    (
        """CREATE TABLE spent (payer TEXT, day TEXT, dollars DOUBLE PRECISION NOT NULL, tokens BIGINT NOT NULL,
        PRIMARY KEY (payer, day))""",
    ),
)
"""Statements that make the tables of each version from those of the version before. {identity}: a number that no other
row ever had. ``reader`` has the persons to whom an owner shows a run; ``spent``, what persons and groups spent."""


class Rows(Protocol):
    """The rows that a statement gave."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Tables(Protocol):
    """The tables within one transaction. In a statement ``?`` stands for a value."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows: ...

    def executemany(self, statement: str, values: Sequence[Sequence[Any]], /) -> object: ...


class Place(Protocol):
    """A place of runs: their tables and their traces.

    Raises (every method): SetupError where the place cannot be used.
    """

    name: str
    """Name for messages."""
    locking: str
    """End of a SELECT in a transaction that changes the row that it reads."""

    def transaction(self) -> AbstractContextManager[Tables]:
        """Open the tables for one transaction, which an error takes back."""
        ...

    def reading(self) -> AbstractContextManager[Tables]:
        """Open the tables for one statement that reads."""
        ...

    def read_trace(self, number: int) -> Sequence[TraceEntry]: ...

    def drop_traces(self, numbers: Sequence[int]) -> None: ...

    def sizes(self) -> Mapping[int, int]:
        """Return the bytes of each trace, by number of the run."""
        ...

    def size_of(self, number: int) -> int: ...

    def is_under_way(self, number: int) -> bool:
        """Return whether a run without an end still goes on."""
        ...


BUSY_SECONDS = 30.0
IDENTITY = "INTEGER PRIMARY KEY AUTOINCREMENT"


class FolderPlace:
    """A folder of runs, private to the person; a ``history.store.Place``."""

    # A transaction takes the write lock of the whole file when it begins.
    locking = ""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or data_folder()
        self.name = str(self.folder)

    def open_trace(self, number: int) -> TraceFile:
        """Begin the trace of a run. Raises OSError too."""
        file = open_private(self.trace_of(number))
        # Other processes see by the lock that the run is under way.
        lock(file)
        try:
            return TraceFile(file)
        except OSError:
            with suppress(OSError):
                file.close()
            raise

    def read_trace(self, number: int) -> Sequence[TraceEntry]:
        path = self.trace_of(number)
        return read_trace(path) if path.exists() else ()

    def drop_traces(self, numbers: Sequence[int]) -> None:
        with self.faults():
            for number in numbers:
                self.trace_of(number).unlink(missing_ok=True)

    def sizes(self) -> Mapping[int, int]:
        with os.scandir(self.folder / "runs") as files:
            # The last six characters are .jsonl.
            return {int(file.name[:-6]): size_of(file) for file in files if file.name[:-6].isdecimal()}

    def size_of(self, number: int) -> int:
        return size_of(self.trace_of(number))

    def is_under_way(self, number: int) -> bool:
        return is_locked(self.trace_of(number))

    def trace_of(self, number: int) -> Path:
        return self.folder / "runs" / f"{number}.jsonl"

    @contextmanager
    def transaction(self) -> Iterator[Tables]:
        path = self.folder / "history.db"
        with self.faults():
            make_private_folder(self.folder)
            make_private_folder(self.folder / "runs")
            create_private(path)
            # isolation_level=None: else sqlite3 would begin transactions itself, and deferred ones.
            with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as database:
                # Take the write lock now: a transaction that reads first fails at once if another process writes
                # meanwhile.
                database.execute("BEGIN IMMEDIATE")
                (version,) = database.execute("PRAGMA user_version").fetchone()
                if version != (now := migrate_tables(database, version, IDENTITY)):
                    database.execute(f"PRAGMA user_version = {now}")
                yield database
                # After an error it is not reached, and closing the database takes everything back.
                database.execute("COMMIT")

    reading = transaction

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Raise SetupError for what goes wrong with the files."""
        try:
            yield
        except OSError as error:
            advice = "Set XDG_DATA_HOME to a folder that can be written."
            raise SetupError(f"Cannot use the history in {self.folder}: {error.strerror}. {advice}") from error
        except UnicodeEncodeError as error:
            # Half a character (a surrogate) cannot be written as UTF-8.
            raise SetupError("What is to be kept is not UTF-8. Write it anew, or use --no-history.") from error
        except (sqlite3.Error, ValueError, LookupError, TypeError) as error:
            is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            advice = "Make room." if is_full else "Move it away to begin a new one."
            raise SetupError(f"Cannot use the history {self.folder / 'history.db'}: {error}. {advice}") from error


def migrate_tables(tables: Tables, version: int, identity: str) -> int:
    """Make the tables of this Decisor from those of a version, and return the new version.

    identity: type of a number that no other row ever had. Raise SetupError if a later Decisor made them.
    """
    if version > len(MIGRATIONS):
        raise SetupError(f"The history is of format {version}; this Decisor reads {len(MIGRATIONS)}. Update it.")
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            tables.execute(statement.format(identity=identity))
    return len(MIGRATIONS)


def size_of(file: Path | os.DirEntry[str]) -> int:
    """Return the bytes of a trace; 0 if it is gone, as another process may drop it at any moment."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
