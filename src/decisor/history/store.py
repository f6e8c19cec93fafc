"""The history: a row for each recorded run, with its trace beside it, in a folder or in PostgreSQL.

Several processes may write and read at once: a change is one short transaction. The statements are the same for
SQLite (``history.place``) and PostgreSQL (``history.postgres``); a ``Place`` says what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from decisor.errors import SetupError
from decisor.history.place import FolderPlace, Place, Tables
from decisor.system.serialization import DocumentFormat, json_text
from decisor.trace.events import TraceEntry
from decisor.trace.file import TraceFile
from decisor.types import Question, Usage

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
ALL, BEYOND = 10**9, 2**63 - 1
"""More runs than there are, and a number that none has."""
Numbers: TypeAlias = "list[int]"


@dataclass(frozen=True)
class Spent:
    """What was spent on LLMs."""

    dollars: float = 0.0
    tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.dollars + other.dollars, self.tokens + other.tokens)


class History:
    """The recorded runs of all owners in one place.

    Every method takes the ``owner`` of the runs: nobody sees another owner's runs, unless the owner shows them.

    Raises (every method): SetupError where the place cannot be used, or there is no such run.
    """

    def __init__(self, place: Path | Place | None = None, cap: int = CAP) -> None:
        """Set the place, by default the data folder of the person, and the bytes that all traces may have."""
        self.place: Place = FolderPlace(place) if place is None or isinstance(place, Path) else place
        self.cap, self.room = cap, 0

    def begin(self, run: PastRun) -> int:
        """Add a new run and return its number. Its trace is then written to ``trace_of(number)``."""
        return self.begin_all([run])[0]

    def begin_all(self, runs: Sequence[PastRun]) -> list[int]:
        """Add several new runs in one transaction, as ``begin`` does."""
        query = "INSERT INTO run (owner, words, marked, run) VALUES (?, ?, 0, ?) RETURNING number"
        rows = [(run.owner, searchable_text(run), json_of_run(run)) for run in runs]
        with self.place.transaction() as tables:
            return [int(tables.execute(query, row).fetchone()[0]) for row in rows]

    def write(self, run: PastRun) -> None:
        """Store the current facts of a run. If the traces exceed the cap, the oldest runs are dropped."""
        self.write_all([run])

    def write_all(self, runs: Sequence[PastRun]) -> None:
        """Store the current facts of several runs in one transaction, as ``write`` does."""
        with self.place.transaction() as tables:
            dropped = self.put(tables, runs)
        # After the commit: a transaction that fails must not lose a trace.
        self.place.drop_traces(dropped)

    def change(self, number: int, owner: str, change: Callable[[PastRun], PastRun]) -> PastRun:
        """Change a run in one transaction and return it. change: function from the stored run to the new one."""
        with self.place.transaction() as tables:
            run = change(self.one(tables, number, owner, self.place.locking))
            dropped = self.put(tables, [run])
        self.place.drop_traces(dropped)
        return run

    def put(self, tables: Tables, runs: Sequence[PastRun]) -> Numbers:
        """Store runs, and drop the oldest ones beyond the cap; return the numbers of dropped runs."""
        query = "UPDATE run SET words = ?, marked = ?, run = ? WHERE number = ? AND owner = ?"
        tables.executemany(
            query,
            [
                (searchable_text(run), int(run.mark is not None), json_of_run(run), run.number, run.owner)
                for run in runs
            ],
        )
        dropped = self.beyond_cap(tables, [run.number for run in runs])
        delete_rows(tables, dropped)
        return dropped

    def beyond_cap(self, tables: Tables, numbers: Sequence[int]) -> Numbers:
        """Return the numbers of runs that no longer fit, now that ``numbers`` were written.

        All sizes are read only when half of the remaining room may be full, for other processes write too.
        """
        self.room -= sum(map(self.place.size_of, numbers))
        if self.room > 0:
            return []
        sizes = self.place.sizes()
        self.room = (self.cap - sum(sizes.values())) // 2
        return find_runs_over_cap(tables, sizes, self.cap, max(numbers))

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
            # SQLite and PostgreSQL have no function in common that finds a text in another.
            query += " AND words <> replace(words, ?, '')"
            values.append(word)
        query += " AND number < ? ORDER BY number DESC LIMIT ?"
        with self.place.reading() as tables:
            # The databases take no integer beyond 64 bits.
            rows = tables.execute(query, [*values, min(before or ALL, BEYOND), most]).fetchall()
        return tuple(self.run_of(*row) for row in rows)

    def search(self, words: str, owner: str = "", most: int = 20) -> tuple[PastRun, ...]:
        """Return the runs in which all words occur, as ``list`` does."""
        return self.list(owner, words, most)

    def read(self, number: int = 0, owner: str = "") -> PastRun:
        """Read a run; 0 is the last one."""
        with self.place.reading() as tables:
            return self.one(tables, number, owner)

    def one(self, tables: Tables, number: int, owner: str, locking: str = "") -> PastRun:
        """Read a run in a transaction; 0 is the last one. locking: of the place, where the run is changed."""
        query = "SELECT number, run FROM run WHERE owner = ? AND (number = ? OR ? = 0) ORDER BY number DESC LIMIT 1"
        row = tables.execute(query + locking, (owner, *[min(number, BEYOND)] * 2)).fetchone()
        if row is None:
            if number:
                raise SetupError(f"There is no run {number} in the history. See what there is: decisor history")
            raise SetupError(
                f"There is no run yet in {self.place.name}: decisor ask keeps one of each question of your own."
            )
        return self.run_of(*row)

    def open_trace(self, number: int) -> TraceFile:
        """Begin the trace of a run. Raises OSError too."""
        # Of runs in PostgreSQL the line of a server writes the traces.
        if not isinstance(self.place, FolderPlace):
            raise SetupError(f"A server alone records runs in {self.place.name}. Record this one in a folder.")
        return self.place.open_trace(number)

    def entries(self, number: int, owner: str = "") -> tuple[TraceEntry, ...]:
        """Read the trace of a run; of a run under way, the entries so far."""
        return tuple(self.place.read_trace(self.read(number, owner).number))

    def delete(self, numbers: Sequence[int] | None = None, owner: str = "") -> int:
        """Delete runs, all if ``numbers`` is None, and return their count."""
        with self.place.transaction() as tables:
            rows = tables.execute("SELECT number FROM run WHERE owner = ?", (owner,)).fetchall()
            of_owner = {number for (number,) in rows}
            # A number that is another owner's deletes nothing.
            chosen = sorted(of_owner if numbers is None else of_owner & set(numbers))
            delete_rows(tables, chosen)
        self.place.drop_traces(chosen)
        return len(chosen)

    def mark(self, number: int, mark: RunMark | None, owner: str = "") -> PastRun:
        """Record whether a decision was right, with its consequences; None takes that back."""
        return self.change(number, owner, lambda run: replace(run, mark=mark))

    def show(self, number: int, name: str, owner: str = "", ends: bool = False) -> tuple[str, ...]:
        """Let another person read a run; return the names of all readers. ends: take that back."""
        query = (
            "DELETE FROM reader WHERE name = ? AND number = ?"
            if ends
            else "INSERT INTO reader VALUES (?, ?) ON CONFLICT DO NOTHING"
        )
        with self.place.transaction() as tables:
            tables.execute(query, (name, self.one(tables, number, owner).number))
        return self.readers(number, owner)

    def readers(self, number: int, owner: str = "") -> tuple[str, ...]:
        """Return the names of the persons to whom the owner shows a run."""
        with self.place.transaction() as tables:
            number = self.one(tables, number, owner).number
            rows = tables.execute("SELECT name FROM reader WHERE number = ? ORDER BY name", (number,)).fetchall()
        return tuple(name for (name,) in rows)

    def owner_of(self, number: int, reader: str) -> str:
        """Return the owner of a run that is shown to a reader; raise SetupError if none shows it."""
        query = "SELECT owner FROM run JOIN reader USING (number) WHERE name = ? AND number = ?"
        with self.place.reading() as tables:
            row = tables.execute(query, (reader, min(number, BEYOND))).fetchone()
        if row is None:
            raise SetupError(f"Nobody shows you a run {number}.")
        return str(row[0])

    def spend(
        self, news: Mapping[tuple[str, str], Spent], payers: Iterable[str], since: str
    ) -> Mapping[tuple[str, str], Spent]:
        """Add what payers spent on days, and return what some have spent each day. since: the first day, as text."""
        add = """INSERT INTO spent VALUES (?, ?, ?, ?) ON CONFLICT (payer, day)
            DO UPDATE SET dollars = spent.dollars + excluded.dollars, tokens = spent.tokens + excluded.tokens"""
        query = "SELECT payer, day, dollars, tokens FROM spent WHERE payer = ? AND day >= ?"
        with self.place.transaction() as tables:
            # In order, so that two processes that add to the same rows do not wait for each other for ever.
            tables.executemany(add, [(*key, one.dollars, one.tokens) for key, one in sorted(news.items())])
            rows = [row for payer in payers for row in tables.execute(query, (payer, since)).fetchall()]
        return {(payer, day): Spent(dollars, tokens) for payer, day, dollars, tokens in rows}

    def run_of(self, number: int, text: str) -> PastRun:
        run = PAST_RUN.decode(text)
        is_over = run.state != "running" or self.place.is_under_way(number)
        return replace(
            run, number=number, bytes=self.place.size_of(number), state=run.state if is_over else "interrupted"
        )


def delete_rows(tables: Tables, numbers: Sequence[int]) -> None:
    """Delete runs with what other tables say of them."""
    for table in ("run", "reader"):
        tables.executemany(f"DELETE FROM {table} WHERE number = ?", [(number,) for number in numbers])


def find_runs_over_cap(tables: Tables, sizes: Mapping[int, int], cap: int, written: int) -> list[int]:
    """Return the numbers of runs beyond the cap, never of the latest or of the one just written."""
    size, dropped = sum(sizes.values()), []
    query = "SELECT number FROM run WHERE number NOT IN (?, (SELECT max(number) FROM run)) ORDER BY marked, number"
    for (number,) in tables.execute(query, [written]).fetchall() if size > cap else ():
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
