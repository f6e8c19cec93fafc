"""A run store in a schema of PostgreSQL, for runs on many machines; ``open_store`` opens a store of either kind.

A process that works on the store holds a session's advisory lock of its own number. The server releases it when the
connection ends, so a dead owner is told from a living one without any clock. A connection ends if the server is
silent: a thread that waits in a socket hears nothing else.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from decisor.errors import SetupError
from decisor.lab.evaluation.sqlite_store import open_sqlite_store
from decisor.lab.evaluation.store import SCHEMA, TABLES, Cell, RunStore, StoredRow, StoreError
from decisor.system.extras import require_package
from decisor.system.secrets import Secret, find_url_secrets, redact

if TYPE_CHECKING:
    import psycopg


T = TypeVar("T")


def connect_watched_postgres(address: str, seconds: float) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect to a server that counts as lost after ``seconds`` without an answer."""
    import psycopg

    class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
        def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
            return super().wait(self.watch(gen), *arguments, **options)

        def watch(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
            deadline, event = time.monotonic() + seconds, None
            while True:
                try:
                    wanted = gen.send(event)
                except StopIteration as end:
                    result: T = end.value
                    return result
                event = yield wanted  # psycopg resumes it every 0.1 s, with 0 if nothing came
                # With its socket shut down, the driver raises its own error, as for any connection that is lost.
                if not event and time.monotonic() > deadline:
                    shut_down_socket(self)

    return WatchedConnection.connect(address, autocommit=True, prepare_threshold=2, client_encoding="UTF8")


def shut_down_socket(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Interrupt a wait for the server, from any thread. The driver raises its own error at once."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)


CONNECT_SECONDS = 15
ANSWER_SECONDS = 60.0
"""A server that takes longer for one statement is taken for lost."""


class PostgresDatabase:
    """A connection of a run store to PostgreSQL."""

    skip = "FOR UPDATE SKIP LOCKED"
    in_order = False

    def __init__(self, name: str, connection: psycopg.Connection[StoredRow], lock: int) -> None:
        # ``name`` holds no password; ``lock`` is the first number of this store's advisory locks.
        self.name, self.connection, self.lock = name, connection, lock

    def field(self, column: str, *names: str) -> str:
        """Return the SQL for a field in a column of JSON.

        PostgreSQL accepts no JSON with the character 0, which an LLM may write, so that is left out.
        """
        without = f"replace(replace({column}, '\\\\', ''), '\\u0000', '')"
        return f"({without}::json #>> '{{{','.join(names)}}}')"

    def rows(self, query: str, values: Sequence[Cell] = ()) -> list[StoredRow]:
        with report_postgres_errors(self.name):
            return self.connection.execute(mark_psycopg_values(query), values).fetchall()

    def stream(self, query: str) -> Iterator[StoredRow]:
        with report_postgres_errors(self.name), self.connection.transaction(), self.connection.cursor("each") as cursor:
            cursor.execute(mark_psycopg_values(query))
            yield from cursor

    def many(self, query: str, values: Iterable[Sequence[Cell]]) -> None:
        with report_postgres_errors(self.name), self.connection.cursor() as cursor:
            cursor.executemany(mark_psycopg_values(query), list(values))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with report_postgres_errors(self.name), self.connection.transaction():
            yield

    def take(self, number: int) -> bool:
        return bool(self.rows("SELECT pg_try_advisory_lock(?, ?)", (self.lock, number))[0][0])

    def living(self, number: int) -> bool:
        # Whoever gets the lock knows that its owner is gone, and gives it back.
        if not self.rows("SELECT pg_try_advisory_lock(?, ?)", (self.lock, number))[0][0]:
            return True
        self.rows("SELECT pg_advisory_unlock(?, ?)", (self.lock, number))
        return False

    def close(self) -> None:
        with suppress(StoreError):
            self.rows("SELECT pg_advisory_unlock_all()")  # the server notices a closed connection a little later
        self.connection.close()

    def interrupt(self) -> None:
        shut_down_socket(self.connection)


def open_postgres_store(url: str, create: bool = True, seconds: float = ANSWER_SECONDS) -> RunStore:
    """Open the store at ``postgresql://USER@HOST/DATABASE?schema=NAME``.

    A store is a schema, by default ``decisor_run``. seconds: a server that takes longer for one statement counts as
    lost.

    Raises:
        SetupError: it cannot be opened, or there is no store.
    """
    with require_package("psycopg", "postgres"):
        import psycopg  # noqa: F401

    scheme, place, path, query, _ = urlsplit(url)
    options = dict(parse_qsl(query))
    schema = options.pop("schema", "decisor_run")
    # The name goes into SQL as it is, and names cannot be parameters.
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise SetupError(f"A schema is named by small letters, digits and _, not {schema!r}.")
    name = f"{schema} in {urlunsplit((scheme, place.rpartition('@')[2], path, '', ''))}"
    # What the address says goes before these.
    options = {"connect_timeout": str(CONNECT_SECONDS), "keepalives_idle": "30", **options}
    with report_postgres_errors(name, find_url_secrets(url)):
        address = urlunsplit((scheme, place, path, urlencode(options), ""))
        connection = connect_watched_postgres(address, seconds)
        try:
            return RunStore(
                PostgresDatabase(name, connection, prepare_postgres_store(name, connection, schema, create))
            )
        except BaseException:
            connection.close()
            raise


def prepare_postgres_store(name: str, connection: psycopg.Connection[StoredRow], schema: str, create: bool) -> int:
    """Create missing tables and return the first number of the store's locks."""
    with connection.transaction():
        lock: Any = connection.execute("SELECT hashtext(%s)", (f"decisor {schema}",)).fetchone()
        connection.execute("SELECT pg_advisory_xact_lock(%s)", lock)  # one at a time makes it
        find = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        tables = {row[0] for row in connection.execute(find, (schema,))}
        if not tables and not create:
            raise SetupError(f"There is no run store {name}. Make one: decisor eval ... --store URL")
        if tables and not tables >= set(TABLES):
            raise SetupError(f"The schema {name} is no run store of decisor. Name another: ...?schema=run2")
        if not tables:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    connection.execute(f"SET search_path = {schema}, pg_temp".encode())
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", lock)
        connection.execute(POSTGRES_SCHEMA)
    connection.execute("CREATE TEMP TABLE wanted (seq BIGINT PRIMARY KEY)")
    return int(lock[0])


def mark_psycopg_values(query: str) -> bytes:
    """Replace the marks for values by psycopg's.

    No query of a store contains a percent sign or another question mark.
    """
    return query.replace("?", "%s").encode()


POSTGRES_SCHEMA = SCHEMA.format(
    text='TEXT COLLATE "C"',
    owner="INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    number="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    integer="BIGINT",
    bytes="BYTEA",
).encode()


@contextmanager
def report_postgres_errors(name: str, passwords: Sequence[Secret] = ()) -> Iterator[None]:
    """Convert psycopg's errors to a StoreError with advice for a person."""
    import psycopg

    try:
        yield
    # The driver's message may hold the address with its password.
    except psycopg.Error as error:
        complaint = redact(" ".join(str(error).split()), passwords)
        raise StoreError(
            f"The run store {name} cannot be used: {complaint}. When it can, run the same command again; "
            "nothing finished or paid for is lost."
        ) from None


def open_store(path: Path | str, create: bool = True) -> RunStore:
    """Open a store in a file or in a schema of PostgreSQL.

    The address of a schema is ``postgresql://USER@HOST/DATABASE?schema=NAME``. A missing store is made, unless
    ``create`` is false.

    Raises:
        SetupError: it cannot be opened, or is something else.
    """
    if str(path).startswith(("postgresql://", "postgres://")):
        return open_postgres_store(str(path), create)
    return open_sqlite_store(Path(path), create)
