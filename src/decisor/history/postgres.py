"""Runs in PostgreSQL, for servers of several processes.

    run, reader     as in a folder
    entry           the traces, a line of their file each
    live            runs under way: how each is done, and what a page shows of it besides its trace
    reply           what people said to a run under way: to a query, to words, or stop
    bought          replies of LLMs to a run under way: a process that takes it over does not buy them again
    begun           runs by the Idempotency-Key that their owner sent
    session         what the cookies of browsers stand for

A run belongs to the process that has its last ``attempt``: what an earlier one still writes is refused. Each change is
told to all processes on one channel (LISTEN and NOTIFY).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError
from decisor.history.place import MIGRATIONS, Rows, Tables
from decisor.history.store import PAST_RUN, History, PastRun, delete_rows, insert_run
from decisor.system.extras import require_package
from decisor.system.secrets import hide_password
from decisor.system.serialization import json_text
from decisor.trace.events import TraceEntry
from decisor.trace.file import format_trace_line, read_entries

if TYPE_CHECKING:
    from psycopg import Connection

CHANNEL = "decisor"
IDENTITY = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
OWN_TABLES = """
CREATE TABLE IF NOT EXISTS entry (number BIGINT, position INTEGER, line TEXT NOT NULL, PRIMARY KEY (number, position));
CREATE TABLE IF NOT EXISTS live (number BIGINT PRIMARY KEY, job TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS reply (number BIGINT, kind TEXT, which INTEGER, text TEXT NOT NULL,
    PRIMARY KEY (number, kind, which));
CREATE TABLE IF NOT EXISTS bought (number BIGINT, key TEXT, reply TEXT NOT NULL, PRIMARY KEY (number, key));
CREATE TABLE IF NOT EXISTS begun (owner TEXT, key TEXT, job TEXT NOT NULL, number BIGINT NOT NULL,
    PRIMARY KEY (owner, key));
CREATE TABLE IF NOT EXISTS session (digest TEXT PRIMARY KEY, session TEXT NOT NULL, ends DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS format (version INTEGER NOT NULL);
"""
LOCK = 0x44656369736F72
"""Number of the lock under which one process makes the tables."""
WAIT_SECONDS = 20.0
MOST_CONNECTIONS = 8


class Unreachable(SetupError):
    """An error: PostgreSQL is not there for now."""


@dataclass(frozen=True)
class PostgresTables:
    """The tables within one transaction of PostgreSQL."""

    connection: Connection[Any]

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        return self.connection.execute(mark_values(statement), [*map(storable, values)])

    def executemany(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        """Execute a statement for each row of values; return how many rows it changed."""
        with self.connection.cursor() as cursor:
            cursor.executemany(mark_values(statement), [[*map(storable, row)] for row in values])
            return cursor.rowcount


def mark_values(statement: str) -> Any:
    return statement.replace("?", "%s")


def storable(value: Any) -> Any:
    """Return a value as PostgreSQL takes it: its texts have no NUL."""
    return value.replace("\0", "") if isinstance(value, str) else value


@dataclass(eq=False)
class EntryPen:
    """The trace of a run under way, in the table of entries."""

    place: PostgresPlace
    number: int
    written: int = 0
    fault: str = ""

    def write(self, *entries: TraceEntry) -> None:
        try:
            with self.place.transaction() as tables:
                self.place.insert_entries(tables, [(self.number, self.written, entries)])
            self.written += len(entries)
        except SetupError as error:
            self.fault = str(error)

    def close(self) -> None:
        """Do nothing: each write is a transaction of its own."""


@dataclass(frozen=True)
class News:
    """What is new of a run under way, for the other processes."""

    number: int
    attempt: int
    written: int
    """How many entries were stored before."""
    entries: Sequence[TraceEntry]
    state: str
    """What a page shows of it besides its entries, as JSON."""


@dataclass(frozen=True)
class Taken:
    """A run that this process has now."""

    past: PastRun
    job: str
    """How it is done, as JSON."""
    attempt: int
    replies: Mapping[tuple[Any, int], str]
    """What people said to it, by kind and number."""


@dataclass(eq=False)
class PostgresPlace:
    """A database of runs; a ``history.store.Place``."""

    url: str
    locking: str = " FOR UPDATE"
    is_ready: bool = field(default=False, init=False)
    published: dict[int, int] = field(default_factory=dict, init=False)
    """Characters of traces that were stored and not counted yet, by number of the run."""

    def __post_init__(self) -> None:
        with require_package("psycopg and procrastinate", "cluster"):
            from psycopg_pool import ConnectionPool

        self.name = hide_password(self.url)
        self.pool = ConnectionPool(self.url, min_size=1, max_size=MOST_CONNECTIONS, timeout=WAIT_SECONDS, open=False)

    def __getstate__(self) -> str:
        return self.url

    def __setstate__(self, url: str) -> None:
        self.__init__(url)  # type: ignore[misc]  # a process of its own has connections of its own

    @contextmanager
    def transaction(self) -> Iterator[PostgresTables]:
        from psycopg import Error, OperationalError
        from psycopg_pool import PoolTimeout

        try:
            self.pool.open()
            with self.pool.connection() as connection:
                if not self.is_ready:
                    prepare_tables(connection)
                    self.is_ready = True
                yield PostgresTables(connection)
        except (OperationalError, PoolTimeout) as error:
            raise Unreachable(f"Cannot reach the store {self.name}: {error}. Is PostgreSQL up?") from error
        except Error as error:
            raise SetupError(f"Cannot use the store {self.name}: {error}.") from error
        except UnicodeEncodeError as error:
            raise SetupError("What is to be kept is not UTF-8. Write it anew.") from error

    def prepare(self) -> None:
        """Create missing tables, which any transaction does."""
        with self.transaction():
            pass

    def open_trace(self, number: int) -> EntryPen:
        self.drop_traces([number])
        return EntryPen(self, number)

    def read_trace(self, number: int) -> Sequence[TraceEntry]:
        query = "SELECT line FROM entry WHERE number = ? ORDER BY position"
        with self.transaction() as tables:
            rows = tables.execute(query, (number,)).fetchall()
        return list(read_entries(line for (line,) in rows))

    def drop_traces(self, numbers: Sequence[int]) -> None:
        # Most changes drop nothing, and need no second transaction.
        if not numbers:
            return
        with self.transaction() as tables:
            tables.executemany("DELETE FROM entry WHERE number = ?", [(number,) for number in numbers])

    def sizes(self) -> Mapping[int, int]:
        with self.transaction() as tables:
            query = "SELECT number, sum(octet_length(line))::bigint FROM entry GROUP BY number"
            return dict(tables.execute(query).fetchall())

    def size_of(self, number: int) -> int:
        """Return how much was stored here of a trace since the last time: no query for each run of a list."""
        return self.published.pop(number, 0)

    def is_under_way(self, number: int) -> bool:
        """Return True: a run is taken over until it has an end."""
        return True

    # Runs under way: of each, one process has the last attempt.

    def put_in_line(self, run: PastRun, job: str, key: str, defer: Callable[[Any, int, int, int], object]) -> int:
        """Insert a run that waits for a process, and return its number: of an earlier run, if the owner sent its key.

        defer: puts it in line in the same transaction: called with the connection, the number, and how many runs are
        under way, of the owner and of all.
        """
        with self.transaction() as tables:
            number = insert_run(tables, run)
            if key:
                statement = "INSERT INTO begun VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING number"
                if tables.execute(statement, (run.owner, key, job, number)).fetchone() is None:
                    query = "SELECT number, job FROM begun WHERE owner = ? AND key = ?"
                    earlier, same = tables.execute(query, (run.owner, key)).fetchone()
                    if same != job:
                        raise SetupError("This Idempotency-Key began a run of another question: send a new one.")
                    delete_rows(tables, [number])
                    return int(earlier)
            query = "SELECT count(*) FILTER (WHERE owner = ?), count(*) FROM live JOIN run USING (number)"
            of_owner, of_all = tables.execute(query, (run.owner,)).fetchone()
            tables.execute("INSERT INTO live (number, job) VALUES (?, ?)", (number, job))
            defer(tables.connection, number, of_owner, of_all)
            tell(tables, run=number, owner=run.owner, state="waiting")
        return number

    def take(self, number: int) -> Taken | None:
        """Take a run that waits or whose process died; None if it has an end, or is forgotten."""
        with self.transaction() as tables:
            statement = "UPDATE live SET attempt = attempt + 1, state = '' WHERE number = ? RETURNING job, attempt"
            row = tables.execute(statement, (number,)).fetchone()
            run = tables.execute("SELECT run FROM run WHERE number = ?", (number,)).fetchone()
            past = PAST_RUN.decode(run[0]) if run else None
            if row is None or past is None or past.state != "running":
                delete_live(tables, number)
                return None
            # The run begins anew: what was bought and said is there, and gives the same entries again.
            tables.execute("DELETE FROM entry WHERE number = ?", (number,))
            said = read_replies(tables, number)
            tell(tables, run=number, owner=past.owner, state="running")
        job, attempt = row
        return Taken(replace(past, number=number), job, attempt, said)

    def publish(self, history: History, news: Sequence[News], ends: Sequence[PastRun]) -> set[int]:
        """Store what is new of runs, and tell it; return the runs that another process has taken over.

        ends: those of the runs that are over, with their ends.
        """
        with self.transaction() as tables:
            own = self.store_news(tables, news)
            over = [run for run in ends if run.number in own]
            dropped = history.put(tables, over) if over else []
            for run in over:
                delete_live(tables, run.number)
                tell(tables, run=run.number, owner=run.owner, state="over")
            if under_way := sorted(own - {run.number for run in over}):
                tell(tables, news=under_way)
        self.drop_traces(dropped)
        return {one.number for one in news} - own

    def store_news(self, tables: Tables, news: Sequence[News]) -> set[int]:
        """Store what is new of runs; return those that are still this process's."""
        query = "SELECT number, attempt FROM live WHERE number = ANY(?) ORDER BY number FOR UPDATE"
        attempts = dict(tables.execute(query, ([one.number for one in news],)).fetchall())
        kept = [one for one in news if attempts.get(one.number) == one.attempt]
        # One statement for all runs, and one value for all rows: there may be hundreds, several times a second.
        states = [{"number": one.number, "state": one.state} for one in kept]
        update_all = "UPDATE live SET state = new.state FROM json_populate_recordset(null::live, ?) AS new"
        tables.execute(f"{update_all} WHERE live.number = new.number", [json_text(states)])
        self.insert_entries(tables, [(one.number, one.written, one.entries) for one in kept])
        return {one.number for one in kept}

    def insert_entries(self, tables: Tables, news: Sequence[tuple[int, int, Sequence[TraceEntry]]]) -> None:
        """Store entries of runs: number of each, how many were stored before, and the entries."""
        rows = list[Mapping[str, object]]()
        for number, written, entries in news:
            lines = [*map(format_trace_line, entries)]
            rows += [{"number": number, "position": written + at, "line": line} for at, line in enumerate(lines)]
            self.published[number] = self.published.get(number, 0) + sum(map(len, lines))
        if rows:
            # They may be there already: a transaction may be done though its answer was lost.
            insert_all = "INSERT INTO entry SELECT * FROM json_populate_recordset(null::entry, ?)"
            tables.execute(f"{insert_all} ON CONFLICT DO NOTHING", [json_text(rows)])

    def news_since(self, read: Sequence[tuple[int, int, int]]) -> Mapping[int, tuple[int, str, list[str]]]:
        """Return what is new of runs under way: attempt, what a page shows besides the entries, and lines of entries.

        read: number of each run, the attempt that was read, and how many lines of it.
        """
        wanted = {number: (attempt, lines) for number, attempt, lines in read}
        query = "SELECT number, attempt, state FROM live WHERE number = ANY(?)"
        of_entries = """SELECT number, line FROM entry JOIN json_to_recordset(?) AS read (number bigint, lines integer)
            USING (number) WHERE position >= lines ORDER BY number, position"""
        with self.transaction() as tables:
            rows = tables.execute(query, (list(wanted),)).fetchall()
            news: dict[int, tuple[int, str, list[str]]] = {
                number: (attempt, state, []) for number, attempt, state in rows
            }
            # Of an attempt that is new, all lines.
            starts = [
                {"number": number, "lines": wanted[number][1] if attempt == wanted[number][0] else 0}
                for number, attempt, _ in rows
            ]
            for number, line in tables.execute(of_entries, (json_text(starts),)).fetchall():
                news[number][2].append(line)
        return news

    def reply(self, number: int, kind: str, which: int, text: str) -> None:
        """Keep what a person said to a run under way, and tell the process that has it."""
        with self.transaction() as tables:
            statement = "INSERT INTO reply VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
            tables.execute(statement, (number, kind, which, text))
            tell(tables, reply=number)

    def replies(self, number: int) -> Mapping[tuple[str, int], str]:
        with self.transaction() as tables:
            return read_replies(tables, number)

    def bought(self, number: int) -> Mapping[str, str]:
        """Return the replies that LLMs gave a run, as JSON by key."""
        with self.transaction() as tables:
            return dict(tables.execute("SELECT key, reply FROM bought WHERE number = ?", (number,)).fetchall())

    def keep_bought(self, replies: Sequence[tuple[int, str, str]]) -> None:
        """Keep replies of LLMs: number of the run, key, and JSON."""
        with self.transaction() as tables:
            rows = [{"number": number, "key": key, "reply": reply} for number, key, reply in replies]
            insert_all = "INSERT INTO bought SELECT * FROM json_populate_recordset(null::bought, ?)"
            tables.execute(f"{insert_all} ON CONFLICT DO NOTHING", [json_text(rows)])

    def keep_session(self, digest: str, session: str, ends: float) -> None:
        """Keep the session of a cookie, by its hash. Those that have ended are forgotten."""
        with self.transaction() as tables:
            tables.execute("DELETE FROM session WHERE ends < ?", (time.time(),))
            tables.execute("INSERT INTO session VALUES (?, ?, ?)", (digest, session, ends))

    def session(self, digest: str) -> str:
        """Return the session of a cookie, '' if there is none."""
        with self.transaction() as tables:
            row = tables.execute("SELECT session FROM session WHERE digest = ?", (digest,)).fetchone()
        return str(row[0]) if row else ""

    def sessions(self) -> list[str]:
        with self.transaction() as tables:
            rows = tables.execute("SELECT session FROM session WHERE ends > ?", (time.time(),)).fetchall()
        return [text for (text,) in rows]

    def end_session(self, digest: str) -> None:
        with self.transaction() as tables:
            tables.execute("DELETE FROM session WHERE digest = ?", (digest,))
            tell(tables, session=digest)

    def close(self) -> None:
        self.pool.close()


def tell(tables: Tables, **message: object) -> None:
    """Tell all processes of a change, when the transaction ends."""
    tables.execute("SELECT pg_notify(?, ?)", (CHANNEL, json_text(message)))


def read_replies(tables: Tables, number: int) -> Mapping[tuple[str, int], str]:
    """Return what people said to a run, by kind and number."""
    rows = tables.execute("SELECT kind, which, text FROM reply WHERE number = ?", (number,)).fetchall()
    return {(kind, which): text for kind, which, text in rows}


def delete_live(tables: Tables, number: int) -> None:
    for table in ("live", "reply", "bought"):
        tables.execute(f"DELETE FROM {table} WHERE number = ?", (number,))


def prepare_tables(connection: Connection[Any]) -> None:
    """Create missing tables, of the jobs too; raise SetupError if a later Decisor made them."""
    from procrastinate.schema import SchemaManager

    # Two processes that start at once would both create them.
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    connection.execute(OWN_TABLES)
    row = connection.execute("SELECT version FROM format").fetchone()
    version = row[0] if row else 0
    if version > len(MIGRATIONS):
        raise SetupError(f"The store is of format {version}; this Decisor reads {len(MIGRATIONS)}. Update it.")
    if not version:
        connection.execute("INSERT INTO format VALUES (0)")
    if not connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()[0]:  # type: ignore[index]
        connection.execute(SchemaManager.get_schema().encode())
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement.format(identity=IDENTITY).encode())
    connection.execute("UPDATE format SET version = %s", [len(MIGRATIONS)])
    connection.commit()
