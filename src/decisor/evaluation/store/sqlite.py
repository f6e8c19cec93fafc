"""A run store in one SQLite file: WAL, synchronous=FULL, JSON.

A process that works on the store holds a lock (flock) on a file of its own beside it. The kernel lets go of it at
kill -9, so a dead owner is told from a living one without any clock.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError
from decisor.evaluation.store.process_locks import Owner, living, sweep
from decisor.evaluation.store.protocol import StoreError
from decisor.evaluation.store.sql import KEY, SqlStore
from decisor.private_file import create_private

if TYPE_CHECKING:
    import apsw

APPLICATION = 0x44435352
VERSION = 1
BUSY_MS = 60_000


class SqliteDatabase:
    """One connection. ``owner``: the lock that this process holds."""

    skip = ""
    in_order = True

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path, self.connection = path, connection
        self.name = str(path)
        self.owner: Owner | None = None

    def field(self, column: str, *names: str) -> str:
        return f"json_extract({column}, '$.{'.'.join(names)}')"

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with clear(self.path):
            return self.connection.execute(query, values).fetchall()

    def stream(self, query: str) -> Iterator[Any]:
        with clear(self.path):
            yield from self.connection.execute(query)

    def many(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        with clear(self.path):
            self.connection.executemany(query, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with clear(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

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


def open_sqlite(path: Path, create: bool = True, vfs: str | None = None) -> SqlStore:
    """Raises SetupError where it cannot be opened or is no run store."""
    import apsw

    if not create and not path.is_file():
        raise SetupError(f"There is no run store {path}. Make one: decisor eval ... --store {path}")
    with clear(path):
        if create and not (path.exists() and path.stat().st_size):
            begin_file(path)
        db = SqliteDatabase(path, apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs))
        try:
            prepare(db)
        except BaseException:
            db.connection.close()
            raise
    return SqlStore(db)


def prepare(db: SqliteDatabase) -> None:
    db.connection.set_busy_timeout(BUSY_MS)
    db.connection.execute("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY")
    db.connection.execute("CREATE TEMP TABLE wanted (seq INTEGER PRIMARY KEY)")
    if db.rows("PRAGMA application_id") != [(APPLICATION,)]:
        raise SetupError(f"{db.path} is no run store of decisor. Name another file: --store run.db")
    if (found := db.rows("PRAGMA user_version")[0][0]) != VERSION:
        raise SetupError(f"{db.path} is of format {found}, this decisor reads {VERSION}. Begin another store.")


def begin_file(path: Path) -> None:
    """An empty store, whole or not at all, though other processes do the same at once. Its folder is made too."""
    import apsw

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"The folder of the run store {path} cannot be made: {error.strerror}.") from error
    made = path.with_name(f"{path.name}-new-{os.getpid()}")
    made.unlink(missing_ok=True)
    try:
        create_private(made)
        db = apsw.Connection(str(made))
        db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        db.execute(f"BEGIN; {SCHEMA} COMMIT")
        db.close()
        if path.exists() and not path.stat().st_size:
            made.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(made, path)
    finally:
        made.unlink(missing_ok=True)


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
    except apsw.Error as error:
        if isinstance(error, apsw.FullError | apsw.IOError):
            told = f"The run store {path} cannot be written: is the disk full? Make room and run the same command again"
            raise StoreError(f"{told}; nothing finished or paid for is lost. ({error})") from error
        if isinstance(error, apsw.NotADBError | apsw.CorruptError):
            raise StoreError(f"{path} is no run store, or it is damaged: {error}") from error
        raise StoreError(f"The run store {path} cannot be used: {error}") from error
