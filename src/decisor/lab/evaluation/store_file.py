"""The file of a run store: SQLite with WAL, synchronous=FULL, JSON.

A process that works on the store holds a lock (flock) on a file of its own beside it. The kernel releases it at kill
-9, so a dead owner is told from a living one without any clock.
"""

from __future__ import annotations

import fcntl
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError
from decisor.system.storage import create_private

if TYPE_CHECKING:
    import apsw


class StoreError(SetupError):
    """An error: the store cannot be read or written. Nothing that it acknowledged is lost."""


Cell = str | int | float | bytes | None
"""What a query of a store is given, and what a row holds."""
StoredRow = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Owner:
    """A held lock of a process."""

    number: int
    """Used once in the life of a store."""
    path: Path
    file: int

    @staticmethod
    def take(store: Path, number: int) -> Owner:
        path = lock_file_of(store, number)
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                # A lock on a file that was removed meanwhile locks nothing that others can see.
                if path.stat().st_ino == os.fstat(file).st_ino:
                    return Owner(number, path, file)
            os.close(file)  # somebody swept it away before it was locked

    def leave(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.file)


def lock_file_of(store: Path, number: int) -> Path:
    return store.with_name(f"{store.name}-owner-{number}")


def is_owner_living(store: Path, number: int) -> bool:
    """Return whether the owner with a number still runs. The lock file of a dead one is removed."""
    path = lock_file_of(store, number)
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # The kernel drops a lock with its process, so a free lock means a dead owner, whatever the clock says.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(file)


APPLICATION = 0x44435352
VERSION = 1
BUSY_MS = 60_000
CHECKED_BYTES = 64 * 2**20
"""A larger file is not read from end to end when it is opened."""


class StoreFile:
    """A connection to the file of a run store, with a temporary table ``wanted (seq)``. Every method raises StoreError.

    owner: the lock that this process holds.
    """

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path, self.connection = path, connection
        self.name = str(path)
        self.owner: Owner | None = None
        self.inode = path.stat().st_ino

    def rows(self, query: str, values: Sequence[Cell] = ()) -> list[StoredRow]:
        with report_store_file_errors(self.path):
            return self.connection.execute(query, values).fetchall()

    def stream(self, query: str) -> Iterator[StoredRow]:
        """Iterate over the rows of a query, never with all in memory."""
        with report_store_file_errors(self.path):
            yield from self.connection.execute(query)

    def many(self, query: str, values: Iterable[Sequence[Cell]]) -> None:
        with report_store_file_errors(self.path):
            self.connection.executemany(query, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.check_place()
        with report_store_file_errors(self.path):
            # IMMEDIATE takes the write lock now: a read that became a write later could fail without waiting.
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself, and a second ROLLBACK is an error.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def check_place(self) -> None:
        """Raise StoreError if the path is another file than was opened, as writes to that are lost."""
        with suppress(FileNotFoundError):
            if self.path.stat().st_ino == self.inode:
                return
        raise StoreError(
            f"The run store {self.path} was deleted, moved or replaced while it was in use. What was kept "
            "is in the file that was moved; without it the same command begins anew."
        )

    def take(self, number: int) -> None:
        """Take the lock with a number for as long as this process lives, however it ends."""
        self.owner = Owner.take(self.path, number)

    def living(self, number: int) -> bool:
        """Return whether another process holds a lock."""
        return is_owner_living(self.path, number)

    def close(self) -> None:
        if self.owner is not None:
            self.owner.leave()
            self.owner = None
            # The lock files of dead owners are removed.
            for path in self.path.parent.glob(f"{glob.escape(self.path.name)}-owner-*"):
                is_owner_living(self.path, int(path.name.rpartition("-")[2]))
        self.connection.close()


def open_store_file(path: Path, create: bool, vfs: str | None) -> StoreFile:
    """Open the file of a store. Raise SetupError if it cannot be opened or is no run store."""
    if not create and not path.is_file():
        raise SetupError(f"There is no run store {path}. Make one: decisor eval ... --store {path}")
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file"
        raise StoreError(f"The run store {path} is {what}. Name another file: --store run.db")
    import apsw

    with report_store_file_errors(path):
        if create and not (path.exists() and path.stat().st_size):
            create_store_file(path)
        if create or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
        else:
            connection = open_read_only_store(path)
        db = StoreFile(path, connection)
        try:
            prepare_store_file(db)
        except BaseException:
            db.connection.close()
            raise
    return db


def open_read_only_store(path: Path) -> apsw.Connection:
    """Connect to a store in a folder that cannot be written. Raise StoreError if a part of it is still in its log."""
    import apsw

    log = path.with_name(f"{path.name}-wal")
    # immutable=1 does not read the log, so what is only there would be missing without a word.
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"{path.parent} cannot be written, and a part of the run is in {log.name} still: copy both to "
            "another folder, and report from there"
        )
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{path.resolve().as_uri()}?immutable=1", flags=flags)


def prepare_store_file(db: StoreFile) -> None:
    db.connection.set_busy_timeout(BUSY_MS)
    # synchronous=FULL syncs the log at each commit: without it WAL may lose the last ones in a power cut.
    db.connection.execute("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON")
    db.connection.execute("CREATE TEMP TABLE wanted (seq INTEGER PRIMARY KEY)")
    if db.rows("PRAGMA application_id") != [(APPLICATION,)]:
        raise SetupError(f"{db.path} is no run store of decisor: decisor eval --store FILE makes one, a new file.")
    if (version := db.rows("PRAGMA user_version")[0][0]) != VERSION:
        raise SetupError(f"{db.path} is of format {version}, this decisor reads {VERSION}. Begin another store.")
    if db.path.stat().st_size <= CHECKED_BYTES and db.rows("PRAGMA integrity_check(1)") != [("ok",)]:
        raise StoreError(
            f"The run store {db.path} is damaged: its rows and its indexes do not agree. Take a copy of "
            "it from before, or begin another: --store FILE."
        )


def create_store_file(path: Path) -> None:
    """Create an empty store and its folder.

    The file appears completely or not at all, even if other processes do the same at once.
    """
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
        # The journal mode stays in the file; synchronous is a setting of each connection.
        db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        db.execute(f"BEGIN; {STORE_SCHEMA}")
        db.execute(f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT")
        db.close()
        # An empty file is one that a person or mktemp made: it is replaced.
        if path.exists() and not path.stat().st_size:
            new_file.replace(path)
        else:
            with suppress(FileExistsError):
                # A link, unlike a rename, fails if another process was faster: its store is kept.
                os.link(new_file, path)
    except OSError as error:
        raise StoreError(f"The run store {path} cannot be made: {error.strerror}.") from error
    finally:
        new_file.unlink(missing_ok=True)


KEY = "benchmark, case_id, technique, model, repeat"
STORE_SCHEMA = f"""
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
"""


@contextmanager
def report_store_file_errors(path: Path) -> Iterator[None]:
    """Convert SQLite's errors to a StoreError with advice for a person."""
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
