"""A run store in one SQLite file: WAL, synchronous=FULL, JSON.

A process that works on the store holds a lock (flock) on a file of its own beside it. The kernel lets go of it at
kill -9, so a dead owner is told from a living one without any clock.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError
from decisor.evaluation.outcome import Outcome
from decisor.evaluation.owners import Owner, living, sweep
from decisor.evaluation.store import Claim, Key, StoreError, Task, completion_of, outcome_of
from decisor.trace import Event, events_of, line_of, to_json
from decisor.types import Completion, Usage, Value

if TYPE_CHECKING:
    import apsw

APPLICATION = 0x44435352
VERSION = 1
BUSY_MS = 60_000
WHOSE = "benchmark = ? AND case_id = ? AND technique = ? AND model = ? AND repeat = ?"
KEY = "benchmark, case_id, technique, model, repeat"


class SqliteStore:
    """One connection. ``owner``: this process's lock, made when it first claims a case."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path, self.db = path, connection
        self.owner: Owner | None = None
        self.depth = 0

    @classmethod
    def open(cls, path: Path, create: bool = True, vfs: str | None = None) -> SqliteStore:
        """Raises SetupError where it cannot be opened or is no run store."""
        import apsw

        if not create and not path.is_file():
            raise SetupError(f"There is no run store {path}. Make one: decisor eval ... --store {path}")
        with clear(path):
            if create and not (path.exists() and path.stat().st_size):
                begin_file(path)
            store = cls(path, apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs))
            try:
                store._prepare()
            except BaseException:
                store.db.close()
                raise
        return store

    def _prepare(self) -> None:
        self.db.set_busy_timeout(BUSY_MS)
        self.db.execute("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY")
        self.db.execute("CREATE TEMP TABLE wanted (seq INTEGER PRIMARY KEY)")
        if self._one("PRAGMA application_id") != APPLICATION:
            raise SetupError(f"{self.path} is no run store of decisor. Name another file: --store run.db")
        if (found := self._one("PRAGMA user_version")) != VERSION:
            raise SetupError(f"{self.path} is of format {found}, this decisor reads {VERSION}. Begin another store.")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Nested ones join the outermost. Raises StoreError where it cannot be kept; then nothing of it is."""
        self.depth += 1
        try:
            if self.depth > 1:
                yield
                return
            with clear(self.path):
                self.db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    self.db.execute("COMMIT")
                except BaseException:
                    if self.db.in_transaction:
                        self.db.execute("ROLLBACK")
                    raise
        finally:
            self.depth -= 1

    def about(self) -> Mapping[str, Value]:
        return {name: json.loads(value) for name, value in self._rows("SELECT name, value FROM about ORDER BY name")}

    def begin(self, about: Mapping[str, Value]) -> None:
        with self.transaction():
            held = self.about()
            if held:
                same_settings(held, json.loads(to_json(about)), str(self.path))
                return
            self.db.executemany("INSERT INTO about VALUES (?, ?)", [(name, to_json(v)) for name, v in about.items()])

    def plan(self, tasks: Sequence[Task]) -> None:
        with self.transaction():
            self.db.executemany(
                f"INSERT INTO cases ({KEY}, content) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                ((*task.key, task.content) for task in tasks),
            )
            wanted = f"INSERT OR IGNORE INTO wanted SELECT seq FROM cases WHERE {WHOSE}"
            self.db.executemany(wanted, (task.key for task in tasks))
            for task in (task for task in tasks if task.content):
                if self._one(f"SELECT content FROM cases WHERE {WHOSE}", task.key) not in (task.content, ""):
                    raise SetupError(f"The case {task.key[1]} of {task.key[0]} is not what it was when {self.path} was "
                                     "begun: the data changed. Begin another store.")  # fmt: skip

    def claim(self) -> Claim | None:
        """Free ones first, in the order of the plan; then those of owners that died."""
        if self.owner is None:
            with self.transaction():
                number = self._one("INSERT INTO owners DEFAULT VALUES RETURNING id")
            self.owner = Owner.take(self.path, number)
        with self.transaction():
            row = self.db.execute(CLAIM, (self.owner.number,)).fetchone()
            if row is None and self._free_the_dead():
                row = self.db.execute(CLAIM, (self.owner.number,)).fetchone()
        return None if row is None else Claim(tuple(row[:5]), row[5])

    def _free_the_dead(self) -> bool:
        owners = self._rows("SELECT DISTINCT owner FROM cases WHERE outcome IS NULL AND owner IS NOT NULL")
        dead = [number for (number,) in owners if not living(self.path, number, self.owner)]
        free = "UPDATE cases SET owner = NULL WHERE outcome IS NULL AND owner = ?"
        self.db.executemany(free, [(number,) for number in dead])
        return bool(dead)

    def left(self) -> int:
        return int(self._one("SELECT count(*) FROM wanted JOIN cases USING (seq) WHERE outcome IS NULL"))

    def release(self) -> None:
        if self.owner is not None:
            with self.transaction():
                free = "UPDATE cases SET owner = NULL WHERE outcome IS NULL AND owner = ?"
                self.db.execute(free, (self.owner.number,))

    def finish(self, outcome: Outcome, events: Sequence[Event], fence: int | None = None) -> bool:
        lines = zlib.compress("".join(map(line_of, events)).encode(), 1)
        with self.transaction():
            if fence is None:
                self.plan([Task(outcome.key)])
                fence = self._one(f"SELECT fence FROM cases WHERE {WHOSE}", outcome.key)
            kept = f"UPDATE cases SET outcome = ? WHERE {WHOSE} AND fence = ? AND outcome IS NULL RETURNING seq"
            row = self.db.execute(kept, (to_json(outcome), *outcome.key, fence)).fetchone()
            if row is not None:
                self.db.execute("INSERT OR REPLACE INTO traces VALUES (?, ?)", (row[0], lines))
        return row is not None

    def reopen(self, states: Sequence[str]) -> int:
        again = "UPDATE cases SET outcome = NULL, owner = NULL WHERE json_extract(outcome, '$.state') = ? RETURNING seq"
        with self.transaction():
            return sum(len(self._rows(again, (state,))) for state in states)

    def outcomes(self) -> list[Outcome]:
        return list(self.each_outcome())

    def each_outcome(self) -> Iterator[Outcome]:
        with clear(self.path):
            for (text,) in self.db.execute(f"SELECT outcome FROM cases WHERE outcome IS NOT NULL ORDER BY {KEY}"):
                yield outcome_of(text)

    def trace(self, key: Key) -> list[Event]:
        find = f"SELECT lines FROM traces JOIN cases USING (seq) WHERE {WHOSE} AND outcome IS NOT NULL"
        row = next(iter(self._rows(find, key)), None)
        lines = zlib.decompress(row[0]).decode().split("\n") if row else []
        return list(events_of(json.loads(line) for line in lines if line))

    def reply(self, key: str) -> Completion | None:
        rows = self._rows("SELECT body FROM replies WHERE key = ? AND usable ORDER BY seq LIMIT 1", (key,))
        return completion_of(rows[0][0]) if rows else None

    def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        with self.transaction():
            earlier = self.reply(key) if usable else None
            keep = "INSERT INTO replies (key, usable, body) VALUES (?, ?, ?)"
            self.db.execute(keep, (key, usable, to_json(reply)))
        return earlier or reply

    def spent(self) -> Usage:
        sums = ", ".join(f"total(json_extract(body, '$.usage.{name}'))" for name in (*WHOLE, "seconds", "dollars"))
        unknown = "count(*) - count(json_extract(body, '$.usage.dollars'))"
        calls, prompt, completion, seconds, dollars, unpriced = self._rows(f"SELECT {sums}, {unknown} FROM replies")[0]
        return Usage(int(calls), int(prompt), int(completion), None if unpriced else dollars, seconds)

    def close(self) -> None:
        """The cases that are held stay held until here; after it anybody may take them."""
        if self.owner is not None:
            self.owner.leave()
            self.owner = None
            sweep(self.path)
        self.db.close()

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with clear(self.path):
            return self.db.execute(query, values).fetchall()

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        rows = self._rows(query, values)
        return rows[0][0] if rows else None


WHOLE = ("calls", "prompt_tokens", "completion_tokens")

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

CLAIM = f"""
UPDATE cases SET owner = ?, fence = fence + 1
WHERE seq = (
    SELECT seq FROM cases WHERE outcome IS NULL AND owner IS NULL AND seq IN wanted ORDER BY seq LIMIT 1
)
RETURNING {KEY}, fence
"""


def begin_file(path: Path) -> None:
    """An empty store, whole or not at all, though other processes do the same at once."""
    import apsw

    made = path.with_name(f"{path.name}-new-{os.getpid()}")
    made.unlink(missing_ok=True)
    try:
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


def same_settings(held: Mapping[str, Value], asked: Mapping[str, Value], where: str) -> None:
    """Raises SetupError naming what differs."""
    changed = [
        f"{name} {json.dumps(held.get(name))}, not {json.dumps(asked.get(name))}"
        for name in dict.fromkeys([*held, *asked])
        if held.get(name) != asked.get(name)
    ]
    if changed:
        raise SetupError(f"{where} was begun with {'; '.join(changed)}. Use the same settings, or another --store.")


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
