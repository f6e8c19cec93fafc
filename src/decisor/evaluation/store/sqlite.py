"""A run store in one SQLite file: WAL, synchronous=FULL, JSON.

A process that works on the store holds a lock (flock) on a file of its own beside it. The kernel lets go of it at
kill -9, so a dead owner is told from a living one without any clock.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.evaluation.store.process_locks import Owner, living, sweep
from decisor.evaluation.store.protocol import StoreError
from decisor.evaluation.store.sql import KEY, Cell, SqlStore, StoredRow
from decisor.private_file import create_private

if TYPE_CHECKING:
    import apsw

APPLICATION = 0x44435352
VERSION = 1
BUSY_MS = 60_000
CHECKED_BYTES = 64 * 2**20
"""A larger file is not read from end to end when it is opened."""


class SqliteDatabase:
    """One connection. ``owner``: the lock that this process holds."""

    skip = ""
    in_order = True

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path, self.connection = path, connection
        self.name = str(path)
        self.owner: Owner | None = None
        self.inode = path.stat().st_ino

    def field(self, column: str, *names: str) -> str:
        return f"json_extract({column}, '$.{'.'.join(names)}')"

    def rows(self, query: str, values: Sequence[Cell] = ()) -> list[StoredRow]:
        with clear(self.path):
            return self.connection.execute(query, values).fetchall()

    def stream(self, query: str) -> Iterator[StoredRow]:
        with clear(self.path):
            yield from self.connection.execute(query)

    def many(self, query: str, values: Iterable[Sequence[Cell]]) -> None:
        with clear(self.path):
            self.connection.executemany(query, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.check_place()
        with clear(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def check_place(self) -> None:
        """Raises StoreError where the file is another one than was opened: what is written to that is lost."""
        with suppress(FileNotFoundError):
            if self.path.stat().st_ino == self.inode:
                return
        raise StoreError(f"The run store {self.path} was deleted, moved or replaced while it was in use. What was kept "
                         "is in the file that was moved; without it the same command begins anew.")  # fmt: skip

    def take(self, number: int) -> bool:
        self.owner = Owner.take(self.path, number)
        return True

    def living(self, number: int) -> bool:
        return living(self.path, number)

    def close(self) -> None:
        if self.owner is not None:
            self.owner.leave()
            self.owner = None
            sweep(self.path)
        self.connection.close()

    def interrupt(self) -> None:
        """A file keeps nobody waiting for longer than ``BUSY_MS``."""


def open_sqlite(path: Path, create: bool = True, vfs: str | None = None) -> SqlStore:
    """Raises SetupError where it cannot be opened or is no run store."""

    if not create and not path.is_file():
        raise SetupError(f"There is no run store {path}. Make one: decisor eval ... --store {path}")
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file"
        raise StoreError(f"The run store {path} is {what}. Name another file: --store run.db")
    with clear(path):
        if create and not (path.exists() and path.stat().st_size):
            begin_file(path)
        db = SqliteDatabase(path, connection(path, vfs) if create or is_writable(path) else snapshot(path))
        try:
            prepare(db)
        except BaseException:
            db.connection.close()
            raise
    return SqlStore(db)


def connection(path: Path, vfs: str | None) -> apsw.Connection:
    import apsw

    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)


def is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def snapshot(path: Path) -> apsw.Connection:
    """Of a store in a folder where nothing can be written. Raises StoreError where a part of it is in its log yet."""
    import apsw

    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(f"{path.parent} cannot be written, and a part of the run is in {log.name} still: copy both to "
                         "another folder, and report from there")  # fmt: skip
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{path.resolve().as_uri()}?immutable=1", flags=flags)


def prepare(db: SqliteDatabase) -> None:
    db.connection.set_busy_timeout(BUSY_MS)
    db.connection.execute("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON")
    db.connection.execute("CREATE TEMP TABLE wanted (seq INTEGER PRIMARY KEY)")
    if db.rows("PRAGMA application_id") != [(APPLICATION,)]:
        raise SetupError(f"{db.path} is no run store of decisor: decisor eval --store FILE makes one, a new file.")
    if (version := db.rows("PRAGMA user_version")[0][0]) != VERSION:
        raise SetupError(f"{db.path} is of format {version}, this decisor reads {VERSION}. Begin another store.")
    if db.path.stat().st_size <= CHECKED_BYTES and db.rows("PRAGMA integrity_check(1)") != [("ok",)]:
        raise StoreError(f"The run store {db.path} is damaged: its rows and its indexes do not agree. Take a copy of "
                         "it from before, or begin another: --store FILE.")  # fmt: skip


def begin_file(path: Path) -> None:
    """An empty store, whole or not at all, though other processes do the same at once. Its folder is made too."""
    import apsw

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"The folder of the run store {path} cannot be made: {error.strerror}.") from error
    new_file = path.with_name(f"{path.name}-new-{os.getpid()}")
    new_file.unlink(missing_ok=True)
    try:
        create_private(new_file)
        db = apsw.Connection(str(new_file))
        db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        db.execute(f"BEGIN; {SCHEMA} COMMIT")
        db.close()
        if path.exists() and not path.stat().st_size:
            new_file.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(new_file, path)
    except OSError as error:
        raise StoreError(f"The run store {path} cannot be made: {error.strerror}.") from error
    finally:
        new_file.unlink(missing_ok=True)


SCHEMA = f"""
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE owners (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE cases (
    seq INTEGER PRIMARY KEY,
    benchmark TEXT NOT NULL, case_id TEXT NOT NULL, technique TEXT NOT NULL, model TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    content TEXT NOT NULL DEFAULT '',
    owner INTEGER, fence INTEGER NOT NULL DEFAULT 0,
    outcome TEXT,
    UNIQUE ({KEY})
);
CREATE INDEX free_cases ON cases (seq) WHERE outcome IS NULL AND owner IS NULL;
CREATE INDEX held_cases ON cases (owner) WHERE outcome IS NULL AND owner IS NOT NULL;
CREATE TABLE traces (seq INTEGER PRIMARY KEY REFERENCES cases, lines BLOB NOT NULL);
CREATE TABLE replies (seq INTEGER PRIMARY KEY, key TEXT NOT NULL, usable INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX replies_by_key ON replies (key);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""


@contextmanager
def clear(path: Path) -> Iterator[None]:
    """SQLite's errors as what the person can do. Raises StoreError."""
    import apsw

    try:
        yield
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is no run store, or it is damaged: it holds text that is none") from error
    except apsw.Error as error:
        if isinstance(error, apsw.FullError | apsw.IOError):
            complaint = (
                f"The run store {path} cannot be written: is the disk full? Make room and run the same command again"
            )
            raise StoreError(f"{complaint}; nothing finished or paid for is lost. ({error})") from error
        if isinstance(error, apsw.NotADBError):
            raise StoreError(
                f"{path} is no run store, or it is damaged: decisor eval --store FILE makes one. The trace of one run "
                f"is shown by: decisor trace {path}"
            ) from error
        if isinstance(error, apsw.CorruptError):
            raise StoreError(f"{path} is no run store, or it is damaged: {error}") from error
        raise StoreError(f"The run store {path} cannot be used: {error}") from error
