"""Runs in PostgreSQL, for servers of several processes.

    run, reader     as in a folder
    entry           the traces, a line of their file each
    live            runs under way: how each is done, which process has it (none: it waits), and what a page shows of it
    reply           what people said to a run under way: to a query, to words, or stop
    bought          replies of LLMs to a run under way: a process that takes it over does not buy them again
    begun           runs by the Idempotency-Key that their owner sent
    session         what the cookies of browsers stand for

A run belongs to the process that has its last ``attempt``: what an earlier one still writes is refused. Each change is
told to all processes on one channel (LISTEN and NOTIFY). A process holds a lock (an advisory one) by its number as long
as it hears that channel; PostgreSQL drops the lock when the process ends, in whatever way.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError
from decisor.history.place import Rows, Tables, migrate_tables
from decisor.history.store import PAST_RUN, History, PastRun, json_of_run, searchable_text
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
    state TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '', process INTEGER, before INTEGER NOT NULL DEFAULT 0,
    crowd TEXT, at_once INTEGER, traceparent TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS waiting ON live (before, number) WHERE process IS NULL;
CREATE INDEX IF NOT EXISTS crowd_at_once ON live (crowd) WHERE process IS NOT NULL;
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
ALIVE = 0x44656369
"""First number of the lock that each process holds while it lives; the second one is its own."""
PROCESSES = f"""SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND classid = {ALIVE} AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
STRAY = f"process IS NOT NULL AND CASE WHEN process = ? THEN number <> ALL(?) ELSE process NOT IN ({PROCESSES}) END"
"""Of a run: its process is dead, or is this one and does not know it. This one is alive, though PostgreSQL was not."""
TAKEN_BACK = """UPDATE live SET process = ? FROM json_populate_recordset(null::live, ?) AS own
    WHERE live.process IS NULL AND live.number = own.number AND live.attempt = own.attempt"""
MOST_IN_LINE = 10_000
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


def check_is_open(connection: Connection[Any]) -> None:
    """Raise OperationalError if PostgreSQL has closed a connection; no message is sent for that."""
    # The first time it may read what PostgreSQL said before it closed.
    for _ in range(2):
        connection.pgconn.consume_input()


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
    attempt: int = 1
    replies: Mapping[tuple[Any, int], str] = field(default_factory=dict)
    """What people said to it, by kind and number."""
    traceparent: str = ""
    """Span of the request that began it."""


@dataclass(frozen=True)
class Wish:
    """A run that a person wants."""

    past: PastRun
    job: str
    key: str = ""
    """Idempotency-Key that its owner sent."""
    crowd: str | None = None
    """Name of those of whose runs only some go on at once."""
    at_once: int | None = None
    """Number of them."""
    traceparent: str = ""
    """Span of the request."""


@dataclass(eq=False)
class PostgresPlace:
    """A database of runs; a ``history.store.Place``."""

    url: str
    locking: str = " FOR UPDATE"
    is_ready: bool = field(default=False, init=False)
    published: dict[int, int] = field(default_factory=dict, init=False)
    """Characters of traces that were stored and not counted yet, by number of the run."""

    def __post_init__(self) -> None:
        with require_package("psycopg", "cluster"):
            from psycopg_pool import ConnectionPool

        self.name = hide_password(self.url)
        self.pool = ConnectionPool(
            self.url, min_size=1, max_size=MOST_CONNECTIONS, timeout=WAIT_SECONDS, open=False, check=check_is_open
        )

    def __getstate__(self) -> str:
        return self.url

    def __setstate__(self, url: str) -> None:
        self.__init__(url)  # type: ignore[misc]  # a process of its own has connections of its own

    def reading(self) -> AbstractContextManager[PostgresTables]:
        return self.transaction(autocommit=True)

    @contextmanager
    def transaction(self, autocommit: bool = False) -> Iterator[PostgresTables]:
        """Open the tables for one transaction. autocommit: for one statement, which needs no BEGIN and COMMIT."""
        from psycopg import Error, OperationalError
        from psycopg_pool import PoolTimeout

        try:
            self.pool.open()
            with self.pool.connection() as connection:
                if not self.is_ready:
                    connection.autocommit = False
                    prepare_tables(connection)
                    self.is_ready = True
                connection.autocommit = autocommit
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

    def read_trace(self, number: int) -> Sequence[TraceEntry]:
        query = "SELECT line FROM entry WHERE number = ? ORDER BY position"
        with self.reading() as tables:
            rows = tables.execute(query, (number,)).fetchall()
        return list(read_entries(line for (line,) in rows))

    def drop_traces(self, numbers: Sequence[int]) -> None:
        # Most changes drop nothing, and need no second transaction.
        if not numbers:
            return
        with self.transaction() as tables:
            for table in ("entry", "begun"):
                tables.execute(f"DELETE FROM {table} WHERE number = ANY(?)", ([*numbers],))

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

    def put_in_line(self, wish: Wish, process: int | None = None, least: float = 0.0) -> tuple[int, bool, bool] | None:
        """Insert a run; return its number, whether it is new, and whether this process has it, or it waits.

        None if too many wait already. process: what does it at once if ``least`` runs are under way. An earlier run
        counts if the owner sent its key.

        Raises:
            SetupError: the key began a run of another question.
        """
        from psycopg.errors import UniqueViolation

        run = wish.past
        # One statement, as each costs a message to PostgreSQL and back. Who has many runs under way waits behind those
        # who have few.
        statement = """WITH line AS (
            SELECT count(*) FILTER (WHERE owner = ?) AS before, CASE WHEN count(*) >= ? THEN ?::integer END AS process
            FROM live HAVING count(*) < ?),
        run AS (INSERT INTO run (owner, words, marked, run) SELECT ?, ?, 0, ? FROM line RETURNING number),
        key AS (INSERT INTO begun SELECT owner, key, ?, number FROM run, (VALUES (?, ?)) AS sent (owner, key)
            WHERE key <> ''),
        put AS (INSERT INTO live (number, job, owner, crowd, at_once, traceparent, before, process, attempt)
            SELECT number, ?, ?, ?, ?, ?, before, process, (process IS NOT NULL)::integer FROM run, line
            RETURNING number, owner, process)
        SELECT number, process IS NOT NULL, pg_notify(?, json_build_object('run', number, 'owner', owner, 'state',
            CASE WHEN process IS NULL THEN 'waiting' ELSE 'running' END)::text) FROM put"""
        of_line = (run.owner, least, process, MOST_IN_LINE, run.owner, searchable_text(run), json_of_run(run))
        of_key = (wish.job, run.owner, wish.key)
        of_live = (wish.job, run.owner, wish.crowd, wish.at_once, wish.traceparent, CHANNEL)
        with self.transaction(autocommit=True) as tables:
            try:
                row = tables.execute(statement, (*of_line, *of_key, *of_live)).fetchone()
            except UniqueViolation:
                query = "SELECT number, job FROM begun WHERE owner = ? AND key = ?"
                number, job = tables.execute(query, (run.owner, wish.key)).fetchone()
                if job != wish.job:
                    raise SetupError("This Idempotency-Key began a run of another question: send a new one.") from None
                return number, False, False
        return (row[0], True, row[1]) if row else None

    def take(self, process: int, own: Sequence[int] = ()) -> Taken | None:
        """Take the next run that waits, for this process; None if there is none. own: runs that it has."""
        statement = """UPDATE live SET process = ?, attempt = attempt + 1, state = '' WHERE number = (
            SELECT number FROM live AS next WHERE process IS NULL AND number <> ALL(?) AND (crowd IS NULL OR at_once >
                (SELECT count(*) FROM live AS other WHERE other.crowd = next.crowd AND other.process IS NOT NULL))
            ORDER BY before, number LIMIT 1) RETURNING number, job, attempt, traceparent"""
        with self.transaction() as tables:
            # One process at a time: else two could take the last place of a crowd.
            tables.execute("SELECT pg_advisory_xact_lock(?)", (LOCK + 1,))
            while row := tables.execute(statement, (process, [*own])).fetchone():
                number, job, attempt, traceparent = row
                run = tables.execute("SELECT run FROM run WHERE number = ?", (number,)).fetchone()
                past = PAST_RUN.decode(run[0]) if run else None
                if past is None or past.state != "running":
                    delete_live(tables, [number])
                    continue
                # The run begins anew: what was bought and said is there, and gives the same entries again.
                tables.execute("DELETE FROM entry WHERE number = ?", (number,))
                tell(tables, {"run": number, "owner": past.owner, "state": "running"})
                return Taken(replace(past, number=number), job, attempt, read_replies(tables, number), traceparent)
        return None

    def under_way(self, owner: str) -> list[PastRun]:
        """Return the runs of a person that wait, or that a process has."""
        with self.reading() as tables:
            query = "SELECT number, run FROM run JOIN live USING (number) WHERE live.owner = ?"
            rows = tables.execute(query, (owner,)).fetchall()
        return [replace(PAST_RUN.decode(text), number=number) for number, text in rows]

    def count_waiting(self) -> int:
        with self.reading() as tables:
            return int(tables.execute("SELECT count(*) FROM live WHERE process IS NULL").fetchone()[0])

    def release_strays(
        self, process: int, own: Mapping[int, int], seen: Sequence[int]
    ) -> tuple[set[int], set[int], int]:
        """Put runs that no process does in line again, those that were ``seen`` so before.

        Return all such runs, those that are in line now, and the number of processes. own: runs of this process, with
        their attempt; one that another process put in line, and nobody took, is this one's again.
        """
        statement = f"""WITH stray AS (SELECT number, number = ANY(?) AS seen FROM live WHERE {STRAY} FOR UPDATE),
        freed AS (UPDATE live SET process = NULL WHERE number IN (SELECT number FROM stray WHERE seen))
        SELECT number, seen, pg_notify(?, '{{"line": 1}}') FROM stray"""
        with self.transaction() as tables:
            attempts = [{"number": number, "attempt": attempt} for number, attempt in own.items()]
            tables.execute(TAKEN_BACK, (process, json_text(attempts)))
            rows = tables.execute(statement, ([*seen], process, [*own], CHANNEL)).fetchall()
            (of_all,) = tables.execute(f"SELECT count(DISTINCT objid) FROM ({PROCESSES}) AS one").fetchone()
        return {number for number, *_ in rows}, {number for number, is_seen, _ in rows if is_seen}, of_all

    def leave(self, process: int) -> None:
        """Put all runs of a process in line again."""
        with self.transaction() as tables:
            tables.execute("UPDATE live SET process = NULL WHERE process = ?", (process,))
            tell(tables, {"line": 1})

    def stop(self, history: History, past: PastRun) -> None:
        """Stop a run: one that waits ends as ``past`` says; of another one its process is told."""
        with self.transaction() as tables:
            # Else a process that takes it meanwhile would not be told.
            query = "SELECT process FROM live WHERE number = ? FOR UPDATE"
            waits = tables.execute(query, (past.number,)).fetchone() == (None,)
            dropped = self.store_ends(tables, history, [past]) if waits else []
            if not waits:
                store_reply(tables, past.number, "stop", 0, "")
        self.drop_traces(dropped)

    def publish(self, history: History, news: Sequence[News], ends: Sequence[PastRun]) -> set[int]:
        """Store what is new of runs, and notify the other processes; return those that one of them took over.

        ends: those of the runs that are over, with their ends.
        """
        with self.transaction() as tables:
            own = self.store_news(tables, news)
            over = [run for run in ends if run.number in own]
            dropped = self.store_ends(tables, history, over) if over else []
            if under_way := sorted(own - {run.number for run in over}):
                tell(tables, {"news": under_way})
        self.drop_traces(dropped)
        return {one.number for one in news} - own

    def store_news(self, tables: Tables, news: Sequence[News]) -> set[int]:
        """Store what is new of runs; return those that are still this process's."""
        # One statement for all runs, and one value for all rows: there may be hundreds, several times a second.
        states = [{"number": one.number, "attempt": one.attempt, "state": one.state} for one in news]
        update_all = "UPDATE live SET state = new.state FROM json_populate_recordset(null::live, ?) AS new"
        own_alone = "WHERE live.number = new.number AND live.attempt = new.attempt RETURNING live.number"
        own = {number for (number,) in tables.execute(f"{update_all} {own_alone}", [json_text(states)]).fetchall()}
        self.insert_entries(tables, [(one.number, one.written, one.entries) for one in news if one.number in own])
        return own

    def store_ends(self, tables: Tables, history: History, over: Sequence[PastRun]) -> Sequence[int]:
        """Store the ends of runs, and tell them; return the runs whose traces are to be dropped."""
        dropped = history.put(tables, over)
        delete_live(tables, [run.number for run in over])
        tell(tables, *({"run": run.number, "owner": run.owner, "state": "over"} for run in over))
        return dropped

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
            store_reply(tables, number, kind, which, text)

    def replies(self, number: int) -> Mapping[tuple[Any, int], str]:
        with self.reading() as tables:
            return read_replies(tables, number)

    def bought(self, number: int) -> Mapping[str, str]:
        """Return the replies that LLMs gave a run, as JSON by key."""
        with self.reading() as tables:
            return dict(tables.execute("SELECT key, reply FROM bought WHERE number = ?", (number,)).fetchall())

    def keep_bought(self, replies: Sequence[tuple[int, str, str]]) -> None:
        """Keep replies of LLMs: number of the run, key, and JSON."""
        with self.transaction(autocommit=True) as tables:
            rows = [{"number": number, "key": key, "reply": reply} for number, key, reply in replies]
            # A process that lost a run may store one after the run's end, when nothing would delete it any more.
            insert_all = "INSERT INTO bought SELECT new.* FROM json_populate_recordset(null::bought, ?) AS new"
            tables.execute(f"{insert_all} JOIN live USING (number) ON CONFLICT DO NOTHING", [json_text(rows)])

    def keep_session(self, digest: str, session: str, ends: float) -> None:
        """Keep the session of a cookie, by its hash. Those that have ended are forgotten."""
        with self.transaction() as tables:
            tables.execute("DELETE FROM session WHERE ends < ?", (time.time(),))
            tables.execute("INSERT INTO session VALUES (?, ?, ?)", (digest, session, ends))

    def session(self, digest: str) -> str:
        """Return the session of a cookie, '' if there is none."""
        with self.reading() as tables:
            row = tables.execute("SELECT session FROM session WHERE digest = ?", (digest,)).fetchone()
        return str(row[0]) if row else ""

    def sessions(self) -> list[str]:
        with self.reading() as tables:
            rows = tables.execute("SELECT session FROM session WHERE ends > ?", (time.time(),)).fetchall()
        return [text for (text,) in rows]

    def end_session(self, digest: str) -> None:
        with self.transaction() as tables:
            tables.execute("DELETE FROM session WHERE digest = ?", (digest,))
            tell(tables, {"session": digest})

    def close(self) -> None:
        self.pool.close()


def tell(tables: Tables, *messages: Mapping[str, object]) -> None:
    """Tell all processes of changes, when the transaction ends."""
    told = "SELECT pg_notify(?, message) FROM json_array_elements_text(?) AS message"
    tables.execute(told, (CHANNEL, json_text([json_text(message) for message in messages])))


def store_reply(tables: Tables, number: int, kind: str, which: int, text: str) -> None:
    """Store what a person said to a run under way, and tell it."""
    insert = "INSERT INTO reply SELECT number, ?, ?, ? FROM live WHERE number = ? ON CONFLICT DO NOTHING"
    tables.execute(insert, (kind, which, text, number))
    tell(tables, {"reply": number})


def read_replies(tables: Tables, number: int) -> Mapping[tuple[Any, int], str]:
    """Return what people said to a run, by kind and number."""
    rows = tables.execute("SELECT kind, which, text FROM reply WHERE number = ?", (number,)).fetchall()
    return {(kind, which): text for kind, which, text in rows}


def delete_live(tables: Tables, numbers: Sequence[int]) -> None:
    for table in ("live", "reply", "bought"):
        tables.execute(f"DELETE FROM {table} WHERE number = ANY(?)", ([*numbers],))


def prepare_tables(connection: Connection[Any]) -> None:
    """Create missing tables; raise SetupError if a later Decisor made them."""
    # Two processes that start at once would both create them.
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    connection.execute(OWN_TABLES)
    row = connection.execute("DELETE FROM format RETURNING version").fetchone()
    version = migrate_tables(PostgresTables(connection), row[0] if row else 0, IDENTITY)
    connection.execute("INSERT INTO format VALUES (%s)", [version])
    connection.commit()
