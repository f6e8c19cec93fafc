"""The history store: a database row for each recorded run, with its trace in a file beside it.

    FOLDER/history.db       facts for lists and searches
    FOLDER/runs/12.jsonl    the trace of run 12, as ``decisor ask --trace`` writes it, from the moment that it begins

Several processes may write and read at once: a change is one short transaction. The process that records a run holds a
lock on its trace; the kernel drops the lock when the process ends, in whatever way. So a run whose process died is
told from one that is under way.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TextIO, TypeAlias, get_args

from decisor.errors import SetupError
from decisor.system.serialization import DocumentFormat, json_text
from decisor.system.storage import create_private, data_folder, make_private_folder
from decisor.trace.events import TraceEntry
from decisor.trace.file import read_trace
from decisor.types import Question, Usage

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


Verdict = Literal["right", "wrong"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
State = Literal["running", "interrupted", "answered", "budget", "steps", "no_answer", "failed"]
UNFINISHED: tuple[State, ...] = ("interrupted", "failed", "budget")
"""States that a run may be gone on from."""


@dataclass(frozen=True, slots=True)
class RunMark:
    """A person's later judgement of a decision."""

    verdict: Verdict
    came_of: str = ""
    """The consequences, in words."""
    answer: str = ""
    """The right answer, if it is known and another one."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's approval of a decision, or its refusal. refuses: whether it is a refusal; ``note`` says why. at: time
    in UTC (ISO 8601). content: digest of the record of the decision that the person saw. withdrawn: time of the
    withdrawal, '' while it holds; why: its reason. seal: digest of all these fields. review: day (ISO 8601) on which
    the person will look at it again, or ''.
    """

    by: str
    at: str
    content: str
    note: str = ""
    withdrawn: str = ""
    why: str = ""
    seal: str = ""
    refuses: bool = False
    review: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """The data that a run of a server may have seen, with the runs that it goes on from."""

    connections: tuple[str, ...] = ()
    """Names of connections."""
    kept_back: tuple[str, ...] = ()
    """Rows and columns withheld from the person who asked."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run in the history."""

    question: Question
    inputs: Mapping[str, object] = field(default_factory=dict)
    """Request of the run as JSON, which ``session.request`` reads."""
    number: int = 0
    """Number of the run, never given twice."""
    owner: str = ""
    """Person whose run it is, '' for the one at the command line."""
    began: float = 0.0
    """Seconds since 1970."""
    technique: str = ""
    llm: str = ""
    state: State = "running"
    answer: str = ""
    why: str = ""
    """Reason of an end without a decision."""
    usage: Usage = field(default_factory=Usage)
    before: int = 0
    """Number of the run that it follows, or 0."""
    mark: RunMark | None = None
    approvals: tuple[Approval, ...] = ()
    """Approvals, the oldest first."""
    bytes: int = 0
    """Size of its trace."""
    edit: Mapping[str, str] = field(default_factory=dict)
    """Change of the run before, if it goes on from that."""
    tools: tuple[str, ...] = ()
    """Tools that it could ask."""
    entries: int = 0
    """Number of entries of its trace."""
    seconds: float = 0.0
    """Duration of its trace."""
    sight: Sight | None = None
    """Data that it may have seen; None if no server began it."""

    @property
    def places(self) -> tuple[str, ...]:
        """The databases, graphs and documents that its request named."""
        named = [self.inputs.get(name) for name in ("db", "graph", "docs")]
        return tuple(str(place) for places in named if isinstance(places, list | tuple) for place in places)


PAST_RUN = DocumentFormat(PastRun)
CAP = 512 * 2**20
"""Bytes of traces; beyond it the oldest are dropped, marked ones last."""
BUSY_SECONDS = 30.0
VERSION = 1
TABLES = (
    """CREATE TABLE run (number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, words TEXT NOT NULL,
    marked INTEGER NOT NULL, run TEXT NOT NULL)""",
    "CREATE INDEX run_of_owner ON run (owner, number)",
    "CREATE TABLE reader (name TEXT, number INTEGER, PRIMARY KEY (name, number)) WITHOUT ROWID",
    """CREATE TRIGGER reader_of_none AFTER DELETE ON run BEGIN
    DELETE FROM reader WHERE number = OLD.number; END""",
)
"""The runs, and the persons to whom an owner shows a run."""
ALL, BEYOND = 10**9, 2**63 - 1
"""More runs than there are, and a number that none has."""
Numbers: TypeAlias = "list[int]"


class History:
    """The recorded runs of all owners in one folder.

    Every method takes the ``owner`` of the runs: nobody sees another owner's runs, unless the owner shows them.

    Raises (every method): SetupError where the folder cannot be used, or there is no such run.
    """

    def __init__(self, folder: Path | None = None, cap: int = CAP) -> None:
        """Set the folder, by default the data folder of the person, and the bytes that all traces may have."""
        self.folder, self.cap, self.room = folder or data_folder(), cap, 0

    def begin(self, run: PastRun) -> int:
        """Add a new run and return its number. Its trace is then written to ``trace_of(number)``."""
        return self.begin_all([run])[0]

    def begin_all(self, runs: Sequence[PastRun]) -> list[int]:
        """Add several new runs in one transaction, as ``begin`` does."""
        query = "INSERT INTO run (owner, words, marked, run) VALUES (?, ?, 0, ?)"
        with self.database() as database:
            cursors = [database.execute(query, (run.owner, searchable_text(run), json_of_run(run))) for run in runs]
        return [int(cursor.lastrowid or 0) for cursor in cursors]

    def write(self, run: PastRun) -> None:
        """Store the current facts of a run. If the traces exceed the cap, the oldest runs are dropped."""
        self.write_all([run])

    def write_all(self, runs: Sequence[PastRun]) -> None:
        """Store the current facts of several runs in one transaction, as ``write`` does."""
        with self.database() as database:
            dropped = self.put(database, runs)
        # After the commit: a transaction that fails must not lose a trace.
        self.forget(dropped)

    def change(self, number: int, owner: str, change: Callable[[PastRun], PastRun]) -> PastRun:
        """Change a run in one transaction and return it. change: function from the stored run to the new one."""
        with self.database() as database:
            run = change(self.one(database, number, owner))
            dropped = self.put(database, [run])
        self.forget(dropped)
        return run

    def put(self, database: sqlite3.Connection, runs: Sequence[PastRun]) -> Numbers:
        """Store runs, and drop the oldest ones beyond the cap; return the numbers of dropped runs."""
        query = "UPDATE run SET words = ?, marked = ?, run = ? WHERE number = ? AND owner = ?"
        database.executemany(
            query,
            [(searchable_text(run), run.mark is not None, json_of_run(run), run.number, run.owner) for run in runs],
        )
        dropped = self.beyond_cap(database, [run.number for run in runs])
        database.executemany("DELETE FROM run WHERE number = ?", [(number,) for number in dropped])
        return dropped

    def forget(self, numbers: Numbers) -> None:
        """Delete the traces of runs."""
        with self.faults():
            for number in numbers:
                self.trace_of(number).unlink(missing_ok=True)

    def beyond_cap(self, database: sqlite3.Connection, numbers: Sequence[int]) -> Numbers:
        """Return the numbers of runs that no longer fit, now that ``numbers`` were written.

        All sizes are read only when half of the remaining room may be full, for other processes write too.
        """
        self.room -= sum(map(size_of, map(self.trace_of, numbers)))
        if self.room > 0:
            return []
        sizes = self.sizes()
        self.room = (self.cap - sum(sizes.values())) // 2
        return find_runs_over_cap(database, sizes, self.cap, max(numbers))

    def list(
        self, owner: str = "", words: str = "", most: int = 20, before: int = 0, others: bool = False
    ) -> tuple[PastRun, ...]:
        """Return runs, the newest first. words: each must occur, in any case, in the question, the rules, the answer,
        the data's names or the mark. before: only runs with smaller numbers, 0 for all. others: include the runs
        that others show this owner.
        """
        query, values = "SELECT number, run FROM run WHERE owner = ?", [owner]
        if others:
            own = "SELECT number FROM run WHERE owner = ? UNION ALL SELECT number FROM reader WHERE name = ?"
            query, values = f"SELECT number, run FROM run WHERE number IN ({own})", [owner, owner]
        for word in words.casefold().split():
            query += " AND instr(words, ?)"
            values.append(word)
        query += " AND number < ? ORDER BY number DESC LIMIT ?"
        with self.database() as database:
            # SQLite takes no integer beyond 64 bits.
            rows = database.execute(query, [*values, min(before or ALL, BEYOND), most]).fetchall()
        return tuple(self.run_of(*row) for row in rows)

    def search(self, words: str, owner: str = "", most: int = 20) -> tuple[PastRun, ...]:
        """Return the runs in which all words occur, as ``list`` does."""
        return self.list(owner, words, most)

    def read(self, number: int = 0, owner: str = "") -> PastRun:
        """Read a run; 0 is the last one."""
        with self.database() as database:
            return self.one(database, number, owner)

    def one(self, database: sqlite3.Connection, number: int, owner: str) -> PastRun:
        """Read a run in a transaction; 0 is the last one."""
        query = "SELECT number, run FROM run WHERE owner = ? AND (number = ? OR ? = 0) ORDER BY number DESC"
        row = database.execute(query, (owner, *[min(number, BEYOND)] * 2)).fetchone()
        if row is None:
            if number:
                raise SetupError(f"There is no run {number} in the history. See what there is: decisor history")
            raise SetupError(
                f"There is no run yet in {self.folder}: decisor ask keeps one of each question of your own."
            )
        return self.run_of(*row)

    def entries(self, number: int, owner: str = "") -> tuple[TraceEntry, ...]:
        """Read the trace of a run; of a run under way, the entries so far."""
        path = self.trace_of(self.read(number, owner).number)
        return tuple(read_trace(path)) if path.exists() else ()

    def delete(self, numbers: Sequence[int] | None = None, owner: str = "") -> int:
        """Delete runs, all if ``numbers`` is None, and return their count."""
        with self.database() as database:
            of_owner = {row[0] for row in database.execute("SELECT number FROM run WHERE owner = ?", (owner,))}
            # A number that is another owner's deletes nothing.
            chosen = sorted(of_owner if numbers is None else of_owner & set(numbers))
            database.executemany("DELETE FROM run WHERE number = ?", [(number,) for number in chosen])
        self.forget(chosen)
        return len(chosen)

    def mark(self, number: int, mark: RunMark | None, owner: str = "") -> PastRun:
        """Record whether a decision was right, with its consequences; None takes that back."""
        return self.change(number, owner, lambda run: replace(run, mark=mark))

    def show(self, number: int, name: str, owner: str = "", ends: bool = False) -> tuple[str, ...]:
        """Let another person read a run; return the names of all readers. ends: take that back."""
        query = (
            "DELETE FROM reader WHERE name = ? AND number = ?" if ends else "INSERT OR IGNORE INTO reader VALUES (?, ?)"
        )
        with self.database() as database:
            database.execute(query, (name, self.one(database, number, owner).number))
        return self.readers(number, owner)

    def readers(self, number: int, owner: str = "") -> tuple[str, ...]:
        """Return the names of the persons to whom the owner shows a run."""
        with self.database() as database:
            number = self.one(database, number, owner).number
            rows = database.execute("SELECT name FROM reader WHERE number = ? ORDER BY name", (number,)).fetchall()
        return tuple(name for (name,) in rows)

    def owner_of(self, number: int, reader: str) -> str:
        """Return the owner of a run that is shown to a reader; raise SetupError if none shows it."""
        query = "SELECT owner FROM run JOIN reader USING (number) WHERE name = ? AND number = ?"
        with self.database() as database:
            row = database.execute(query, (reader, min(number, BEYOND))).fetchone()
        if row is None:
            raise SetupError(f"Nobody shows you a run {number}.")
        return str(row[0])

    def trace_of(self, number: int) -> Path:
        return self.folder / "runs" / f"{number}.jsonl"

    def run_of(self, number: int, text: str) -> PastRun:
        run, path = PAST_RUN.decode(text), self.trace_of(number)
        state = "interrupted" if run.state == "running" and not is_locked(path) else run.state
        return replace(run, number=number, bytes=size_of(path), state=state)

    def sizes(self) -> Mapping[int, int]:
        """Return the bytes of each trace, by number of the run."""
        with os.scandir(self.folder / "runs") as files:
            # The last six characters are .jsonl.
            return {int(file.name[:-6]): size_of(file) for file in files if file.name[:-6].isdecimal()}

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open the database for one transaction."""
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
                prepare_history_tables(database)
                yield database
                # After an error it is not reached, and closing the database takes everything back.
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
            # Half a character (a surrogate) cannot be written as UTF-8.
            raise SetupError("What is to be kept is not UTF-8. Write it anew, or use --no-history.") from error
        except (sqlite3.Error, ValueError, LookupError, TypeError) as error:
            is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            advice = "Make room." if is_full else "Move it away to begin a new one."
            raise SetupError(f"Cannot use the history {self.folder / 'history.db'}: {error}. {advice}") from error


def prepare_history_tables(database: sqlite3.Connection) -> None:
    """Create missing tables; raise SetupError if a later Decisor wrote the history."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise SetupError(f"The history is of format {version}; this Decisor reads {VERSION}. Update it.")
    if version < VERSION:
        for statement in (*TABLES, f"PRAGMA user_version = {VERSION}"):
            database.execute(statement)


def size_of(file: Path | os.DirEntry[str]) -> int:
    """Return the bytes of a trace; 0 if it is gone, as another process may drop it at any moment."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def find_runs_over_cap(database: sqlite3.Connection, sizes: Mapping[int, int], cap: int, written: int) -> list[int]:
    """Return the numbers of runs beyond the cap, never of the latest or of the one just written."""
    size, dropped = sum(sizes.values()), []
    query = "SELECT number FROM run WHERE number NOT IN (?, (SELECT max(number) FROM run)) ORDER BY marked, number"
    for (number,) in database.execute(query, [written]) if size > cap else ():
        if size > cap:
            dropped.append(number)
            size -= sizes.get(number, 0)
    return dropped


def json_of_run(run: PastRun) -> str:
    """Convert a run to JSON, without the records of the run that it follows: its trace holds them."""
    words = Question(run.question.text, run.question.rules, run.question.goal)
    return json_text(replace(run, question=words))


def searchable_text(run: PastRun) -> str:
    """Return the text that a search looks at, in lower case.

    For a run with an owner, who asked a server, it has no place of the data, only names of tools.
    """
    mark = (run.mark.came_of, run.mark.answer, run.mark.verdict) if run.mark else ()
    data = run.tools if run.owner else run.places
    parts = (run.question.text, run.question.rules, run.question.goal, run.answer, run.why, run.technique, *data, *mark)
    return "\n".join(parts).casefold()
