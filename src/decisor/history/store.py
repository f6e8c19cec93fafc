"""The history: runs that were kept, a line of a database each, with its trace in a file of its own beside it.

    FOLDER/history.db       what a list and a search need
    FOLDER/runs/12.jsonl    the trace of run 12, as ``decisor ask --trace`` writes it, from the moment that it begins

Several processes may write and read at once: a change is one short transaction, and whoever keeps a run holds a lock on
its trace, so that a run whose process died is told from one that runs.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from decisor.encoding import json_text
from decisor.errors import SetupError
from decisor.history.lock import is_locked
from decisor.history.past_run import Mark, PastRun
from decisor.private_file import create_private, data_folder, make_folder
from decisor.trace.decoding import decoder
from decisor.trace.events import Entry
from decisor.trace.file import read_trace
from decisor.types import Question

CAP = 512 * 2**20
"""Bytes of traces; beyond it the oldest are dropped, marked ones last."""
BUSY_SECONDS = 30.0
VERSION = 1
TABLE = """CREATE TABLE IF NOT EXISTS run (
    number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, words TEXT NOT NULL, marked INTEGER NOT NULL,
    run TEXT NOT NULL)"""
INDEX = "CREATE INDEX IF NOT EXISTS run_of_owner ON run (owner, number)"
READERS = (
    "CREATE TABLE IF NOT EXISTS reader (name TEXT, number INTEGER, PRIMARY KEY (name, number)) WITHOUT ROWID",
    "CREATE TRIGGER IF NOT EXISTS reader_of_none AFTER DELETE ON run BEGIN "
    "DELETE FROM reader WHERE number = OLD.number; END",
)
"""Those whom an owner shows a run to. Beside the format: an earlier Decisor leaves it alone."""
ALL, BEYOND = 10**9, 2**63 - 1
"""More runs than there are, and a number that none has."""
Numbers: TypeAlias = "list[int]"


class History:
    """Runs of all owners in one folder. Every method takes the ``owner`` whose runs it is about: nobody sees another's,
    unless they show it.

    Raises (every method): SetupError where the folder cannot be used, or there is no such run.
    """

    def __init__(self, folder: Path | None = None, cap: int = CAP) -> None:
        """``cap``: bytes that all traces may have together."""
        self.folder, self.cap, self.room = folder or data_folder(), cap, 0

    def begin(self, run: PastRun) -> int:
        """A new run; its number. Its trace is then written to ``trace_of(number)``."""
        return self.begin_all([run])[0]

    def begin_all(self, runs: Sequence[PastRun]) -> list[int]:
        """As ``begin``, several in one transaction."""
        query = "INSERT INTO run (owner, words, marked, run) VALUES (?, ?, 0, ?)"
        with self.database() as database:
            cursors = [database.execute(query, (run.owner, words_of(run), text_of(run))) for run in runs]
        return [int(cursor.lastrowid or 0) for cursor in cursors]

    def write(self, run: PastRun) -> None:
        """What is known of a run by now. Where the traces have become too many, the oldest are dropped."""
        self.write_all([run])

    def write_all(self, runs: Sequence[PastRun]) -> None:
        """As ``write``, several in one transaction."""
        with self.database() as database:
            dropped = self.put(database, runs)
        self.forget(dropped)

    def change(self, number: int, owner: str, change: Callable[[PastRun], PastRun]) -> PastRun:
        """A run as ``change`` makes it of what is known of it: read and written in one transaction."""
        with self.database() as database:
            run = change(self.one(database, number, owner))
            dropped = self.put(database, [run])
        self.forget(dropped)
        return run

    def put(self, database: sqlite3.Connection, runs: Sequence[PastRun]) -> Numbers:
        """Writes them; the numbers of those that were dropped for it."""
        query = "UPDATE run SET words = ?, marked = ?, run = ? WHERE number = ? AND owner = ?"
        database.executemany(query, [(words_of(run), run.mark is not None, text_of(run), run.number, run.owner)
                                     for run in runs])  # fmt: skip
        dropped = self.beyond_cap(database, [run.number for run in runs])
        database.executemany("DELETE FROM run WHERE number = ?", [(number,) for number in dropped])
        return dropped

    def forget(self, numbers: Numbers) -> None:
        """Their traces."""
        with self.faults():
            for number in numbers:
                self.trace_of(number).unlink(missing_ok=True)

    def beyond_cap(self, database: sqlite3.Connection, numbers: Sequence[int]) -> Numbers:
        """The numbers of those that do not fit any more, now that these were written. All sizes are looked at when half
        of the room that was left may be full: other processes write too."""
        self.room -= sum(map(size_of, map(self.trace_of, numbers)))
        if self.room > 0:
            return []
        sizes = self.sizes()
        self.room = (self.cap - sum(sizes.values())) // 2
        return over_cap(database, sizes, self.cap, max(numbers))

    def list(
        self, owner: str = "", words: str = "", most: int = 20, before: int = 0, others: bool = False
    ) -> tuple[PastRun, ...]:
        """The newest first; of those only that hold each of ``words``, in any case, in the question, the rules, the
        answer, the data's names or the mark. ``before``: only those with smaller numbers. ``others``: also those that
        others show them."""
        query, values = "SELECT number, run FROM run WHERE owner = ?", [owner]
        if others:
            own = "SELECT number FROM run WHERE owner = ? UNION ALL SELECT number FROM reader WHERE name = ?"
            query, values = f"SELECT number, run FROM run WHERE number IN ({own})", [owner, owner]
        for word in words.casefold().split():
            query += " AND instr(words, ?)"
            values.append(word)
        query += " AND number < ? ORDER BY number DESC LIMIT ?"
        with self.database() as database:
            rows = database.execute(query, [*values, min(before or ALL, BEYOND), most]).fetchall()
        return tuple(self.run_of(*row) for row in rows)

    def search(self, words: str, owner: str = "", most: int = 20) -> tuple[PastRun, ...]:
        """As ``list``."""
        return self.list(owner, words, most)

    def read(self, number: int = 0, owner: str = "") -> PastRun:
        """A run; 0 is the last one."""
        with self.database() as database:
            return self.one(database, number, owner)

    def one(self, database: sqlite3.Connection, number: int, owner: str) -> PastRun:
        """As ``read``, in a transaction."""
        query = "SELECT number, run FROM run WHERE owner = ? AND (number = ? OR ? = 0) ORDER BY number DESC"
        row = database.execute(query, (owner, *[min(number, BEYOND)] * 2)).fetchone()
        if row is None:
            if number:
                raise SetupError(f"There is no run {number} in the history. See what there is: decisor history")
            raise SetupError(
                f"There is no run yet in {self.folder}: decisor ask keeps one of each question of your own."
            )
        return self.run_of(*row)

    def entries(self, number: int, owner: str = "") -> tuple[Entry, ...]:
        """The trace of a run; of one that runs, as far as it is."""
        path = self.trace_of(self.read(number, owner).number)
        return tuple(read_trace(path)) if path.exists() else ()

    def delete(self, numbers: Sequence[int] | None = None, owner: str = "") -> int:
        """These, or all where None; how many there were."""
        with self.database() as database:
            of_owner = {row[0] for row in database.execute("SELECT number FROM run WHERE owner = ?", (owner,))}
            chosen = sorted(of_owner if numbers is None else of_owner & set(numbers))
            database.executemany("DELETE FROM run WHERE number = ?", [(number,) for number in chosen])
        self.forget(chosen)
        return len(chosen)

    def mark(self, number: int, mark: Mark | None, owner: str = "") -> PastRun:
        """Say whether a decision was right, and what came of it; None takes that back."""
        return self.change(number, owner, lambda run: replace(run, mark=mark))

    def show(self, number: int, name: str, owner: str = "", ends: bool = False) -> tuple[str, ...]:
        """Another one may read the run too, or no longer where that ``ends``; the names of all who may."""
        query = (
            "DELETE FROM reader WHERE name = ? AND number = ?" if ends else "INSERT OR IGNORE INTO reader VALUES (?, ?)"
        )
        with self.database() as database:
            database.execute(query, (name, self.one(database, number, owner).number))
        return self.readers(number, owner)

    def readers(self, number: int, owner: str = "") -> tuple[str, ...]:
        """Those whom its owner shows it to."""
        with self.database() as database:
            number = self.one(database, number, owner).number
            rows = database.execute("SELECT name FROM reader WHERE number = ? ORDER BY name", (number,)).fetchall()
        return tuple(name for (name,) in rows)

    def owner_of(self, number: int, reader: str) -> str:
        """Whose run it is that is shown to a reader."""
        query = "SELECT owner FROM run JOIN reader USING (number) WHERE name = ? AND number = ?"
        with self.database() as database:
            row = database.execute(query, (reader, min(number, BEYOND))).fetchone()
        if row is None:
            raise SetupError(f"Nobody shows you a run {number}.")
        return str(row[0])

    def trace_of(self, number: int) -> Path:
        return self.folder / "runs" / f"{number}.jsonl"

    def run_of(self, number: int, text: str) -> PastRun:
        run, path = decoder(PastRun)(json.loads(text)), self.trace_of(number)
        state = "interrupted" if run.state == "running" and not is_locked(path) else run.state
        return replace(run, number=number, bytes=size_of(path), state=state)

    def sizes(self) -> Mapping[int, int]:
        """The bytes of each trace."""
        with os.scandir(self.folder / "runs") as files:
            return {int(file.name[:-6]): size_of(file) for file in files if file.name[:-6].isdecimal()}

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        path = self.folder / "history.db"
        with self.faults():
            make_folder(self.folder)
            make_folder(self.folder / "runs")
            create_private(path)
            with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE")
                prepare(database)
                yield database
                database.execute("COMMIT")

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Raise SetupError for what goes wrong with the files of the history."""
        try:
            yield
        except OSError as error:
            advice = "Set XDG_DATA_HOME to a folder that can be written."
            raise SetupError(f"Cannot use the history in {self.folder}: {error.strerror}. {advice}") from error
        except UnicodeEncodeError as error:
            raise SetupError("What is to be kept is not UTF-8. Write it anew, or use --no-history.") from error
        except (sqlite3.Error, ValueError, LookupError, TypeError) as error:
            is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            advice = "Make room." if is_full else "Move it away to begin a new one."
            raise SetupError(f"Cannot use the history {self.folder / 'history.db'}: {error}. {advice}") from error


def prepare(database: sqlite3.Connection) -> None:
    """Raises SetupError where a later Decisor wrote it."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise SetupError(f"The history is of format {version}; this Decisor reads {VERSION}. Update it.")
    if version < VERSION:
        database.execute(TABLE)
        database.execute(INDEX)
        database.execute(f"PRAGMA user_version = {VERSION}")
    for statement in READERS:
        database.execute(statement)


def size_of(file: Path | os.DirEntry[str]) -> int:
    """Return the bytes of a trace; 0 if it is gone, as another process may drop it at any moment."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def over_cap(database: sqlite3.Connection, sizes: Mapping[int, int], cap: int, written: int) -> list[int]:
    """The numbers of those that do not fit any more, never the latest, nor the one just written."""
    size, dropped = sum(sizes.values()), []
    query = "SELECT number FROM run WHERE number NOT IN (?, (SELECT max(number) FROM run)) ORDER BY marked, number"
    for (number,) in database.execute(query, [written]) if size > cap else ():
        if size > cap:
            dropped.append(number)
            size -= sizes.get(number, 0)
    return dropped


def text_of(run: PastRun) -> str:
    """Without what its trace holds anyway: the records of a run that it follows."""
    words = Question(run.question.text, run.question.rules, run.question.goal)
    return json_text(replace(run, question=words))


def words_of(run: PastRun) -> str:
    """What a search looks at, in lower case. Who has a name asked a server, and finds no place of its data."""
    mark = (run.mark.came_of, run.mark.answer, run.mark.verdict) if run.mark else ()
    data = run.tools if run.owner else (*run.inputs.db, *run.inputs.graph, *run.inputs.docs)
    parts = (run.question.text, run.question.rules, run.question.goal, run.answer, run.why, run.technique, *data, *mark)
    return "\n".join(parts).casefold()
