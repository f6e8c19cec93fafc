"""A run store in PostgreSQL, for runs on many machines.

A process that works on the store holds a session's advisory lock of its own number. The server lets go of it when the
connection ends, so a dead owner is told from a living one without any clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from decisor.errors import SetupError
from decisor.evaluation.store.protocol import StoreError
from decisor.evaluation.store.sql import KEY, TABLES, Cell, SqlStore, StoredRow
from decisor.evaluation.store.watchdog import connect, shut_down
from decisor.extras import needs
from decisor.secrets import Secret, redact, secrets_in

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 15
ANSWER_SECONDS = 60.0
"""A server that takes longer for one statement is taken for lost."""


class PostgresDatabase:
    """One connection. ``name`` holds no password. ``lock``: the first number of this store's advisory locks."""

    skip = "FOR UPDATE SKIP LOCKED"
    in_order = False

    def __init__(self, name: str, connection: psycopg.Connection[StoredRow], lock: int) -> None:
        self.name, self.connection, self.lock = name, connection, lock

    def field(self, column: str, *names: str) -> str:
        """PostgreSQL takes no JSON that holds the character 0, which a model may write; it is left out here."""
        without = f"replace(replace({column}, '\\\\', ''), '\\u0000', '')"
        return f"({without}::json #>> '{{{','.join(names)}}}')"

    def rows(self, query: str, values: Sequence[Cell] = ()) -> list[StoredRow]:
        with clear(self.name):
            return self.connection.execute(marked(query), values).fetchall()

    def stream(self, query: str) -> Iterator[StoredRow]:
        with clear(self.name), self.connection.transaction(), self.connection.cursor("each") as cursor:
            cursor.execute(marked(query))
            yield from cursor

    def many(self, query: str, values: Iterable[Sequence[Cell]]) -> None:
        with clear(self.name), self.connection.cursor() as cursor:
            cursor.executemany(marked(query), list(values))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with clear(self.name), self.connection.transaction():
            yield

    def take(self, number: int) -> bool:
        return bool(self.rows("SELECT pg_try_advisory_lock(?, ?)", (self.lock, number))[0][0])

    def living(self, number: int) -> bool:
        if not self.rows("SELECT pg_try_advisory_lock(?, ?)", (self.lock, number))[0][0]:
            return True
        self.rows("SELECT pg_advisory_unlock(?, ?)", (self.lock, number))
        return False

    def close(self) -> None:
        with suppress(StoreError):
            self.rows("SELECT pg_advisory_unlock_all()")  # the server notices a closed connection a little later
        self.connection.close()

    def interrupt(self) -> None:
        shut_down(self.connection)


def open_postgres(url: str, create: bool = True, seconds: float = ANSWER_SECONDS) -> SqlStore:
    """``postgresql://USER@HOST/DATABASE?schema=NAME``; a store is a schema (``decisor_run``). A server that takes
    longer than ``seconds`` for one statement is taken for lost.

    Raises:
        SetupError: it cannot be opened, or there is no store.
    """
    with needs("psycopg", "postgres"):
        import psycopg  # noqa: F401

    scheme, place, path, query, _ = urlsplit(url)
    options = dict(parse_qsl(query))
    schema = options.pop("schema", "decisor_run")
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise SetupError(f"A schema is named by small letters, digits and _, not {schema!r}.")
    name = f"{schema} in {urlunsplit((scheme, place.rpartition('@')[2], path, '', ''))}"
    options = {"connect_timeout": str(CONNECT_SECONDS), "keepalives_idle": "30", **options}
    with clear(name, secrets_in(url)):
        address = urlunsplit((scheme, place, path, urlencode(options), ""))
        connection = connect(address, seconds)
        try:
            return SqlStore(PostgresDatabase(name, connection, prepare(name, connection, schema, create)))
        except BaseException:
            connection.close()
            raise


def prepare(name: str, connection: psycopg.Connection[StoredRow], schema: str, create: bool) -> int:
    """The tables, and the first number of the store's locks."""
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
        connection.execute(SCHEMA)
    connection.execute("CREATE TEMP TABLE wanted (seq BIGINT PRIMARY KEY)")
    return int(lock[0])


def marked(query: str) -> bytes:
    """psycopg's marks for values. No query of a store holds a percent sign or another question mark."""
    return query.replace("?", "%s").encode()


SCHEMA = f"""
CREATE TABLE IF NOT EXISTS about (name TEXT COLLATE "C" PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS owners (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE IF NOT EXISTS cases (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    benchmark TEXT COLLATE "C" NOT NULL, case_id TEXT COLLATE "C" NOT NULL, technique TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL, repeat INTEGER NOT NULL,
    content TEXT NOT NULL DEFAULT '',
    owner INTEGER, fence INTEGER NOT NULL DEFAULT 0,
    outcome TEXT,
    UNIQUE ({KEY})
);
CREATE INDEX IF NOT EXISTS free_cases ON cases (seq) WHERE outcome IS NULL AND owner IS NULL;
CREATE TABLE IF NOT EXISTS traces (seq BIGINT PRIMARY KEY REFERENCES cases, lines BYTEA NOT NULL);
CREATE TABLE IF NOT EXISTS replies (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT NOT NULL, usable INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS replies_by_key ON replies (key);
""".encode()


@contextmanager
def clear(name: str, passwords: Sequence[Secret] = ()) -> Iterator[None]:
    """psycopg's errors as what the person can do. Raises StoreError."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        complaint = redact(" ".join(str(error).split()), passwords)
        raise StoreError(f"The run store {name} cannot be used: {complaint}. When it can, run the same command again; "
                         "nothing finished or paid for is lost.") from None  # fmt: skip
