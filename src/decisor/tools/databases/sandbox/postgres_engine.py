"""PostgreSQL through psycopg: a READ ONLY transaction that is always rolled back, extended protocol, a cursor.

``DECLARE ... CURSOR FOR`` is a second parser: the server takes only reading queries there. Queries that only plan
(EXPLAIN) or show run without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.engine import Caps, ConnectionLost
from decisor.tools.databases.sandbox.guard import Guard
from decisor.tools.databases.sandbox.values import bind, table
from decisor.types import Table, Value

ROWS_AT_ONCE = 20
MOST_AT_ONCE = 5_000
SMALL_ROW = 1_000
BEGIN = """BEGIN READ ONLY; SET LOCAL statement_timeout = {ms}; SET LOCAL lock_timeout = {lock};
SET LOCAL idle_in_transaction_session_timeout = '60s'"""
END = "ROLLBACK; SELECT pg_advisory_unlock_all()"


@dataclass(eq=False)
class PostgresEngine:
    url: str
    guard: Guard
    db: Any

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        if self.db.closed:
            try:
                self.db = _open(self.url)
            except psycopg.Error as error:
                raise ToolError(f"PostgreSQL cannot be reached: {' '.join(str(error).split())}", outage=True) from error
        text = bind(statement, parameters, "%({})s").rstrip().rstrip(";")
        try:
            with self.db.cursor() as cursor:
                cursor.execute(BEGIN.format(ms=max(1, int(caps.seconds * 1000)), lock=max(1, int(caps.seconds * 800))))
                if text.lstrip().upper().startswith("EXPLAIN"):
                    return self._whole(cursor, text, caps)
                return self._part(cursor, text, parameters, caps)
        except (psycopg.Error, UnicodeError) as error:
            if self.db.closed or broken(error):
                self.db.close()
                raise ConnectionLost(f"The connection broke off: {' '.join(str(error).split())}") from error
            raise ToolError(str(error).strip()) from error
        finally:
            if not self.db.closed:
                with contextlib.suppress(psycopg.Error):
                    self.db.execute(END)

    def close(self) -> None:
        self.db.close()

    def _whole(self, cursor: Any, text: str, caps: Caps) -> Table:
        cursor.execute(text, prepare=True)
        return table([column.name for column in cursor.description or ()], cursor, caps)

    def _part(self, cursor: Any, text: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        # prepare=True: the extended protocol takes one statement, whatever it holds.
        declared = f"DECLARE decisor NO SCROLL CURSOR FOR {text}"
        cursor.execute(declared, dict(parameters) or None, prepare=not parameters)
        cursor.execute("FETCH FORWARD 0 FROM decisor")
        columns = [column.name for column in cursor.description or ()]
        return table(columns, fetched(cursor, caps.rows), caps)


def fetched(cursor: Any, rows: int) -> Iterator[tuple[Any, ...]]:
    """Few rows at a time at first, for one may hold megabytes; more where they are small."""
    at_once = ROWS_AT_ONCE if rows < 10_000 else MOST_AT_ONCE
    while True:
        found = cursor.execute(f"FETCH FORWARD {at_once} FROM decisor").fetchall()
        yield from found
        if len(found) < at_once:
            return
        if sum(len(cell) for row in found for cell in row if isinstance(cell, str | bytes)) < SMALL_ROW * len(found):
            at_once = min(4 * at_once, MOST_AT_ONCE)


def broken(error: Exception) -> bool:
    """Whether what the server sent made no sense. Its own complaints have a code, those about our input are known."""
    if isinstance(error, UnicodeError):
        return True
    ours = isinstance(error, psycopg.ProgrammingError | psycopg.DataError | psycopg.NotSupportedError)
    return isinstance(error, psycopg.Error) and error.sqlstate is None and not ours


def _open(url: str) -> Any:
    """Text in UTF-8 also from a database of the encoding SQL_ASCII, which else gives bytes."""
    return psycopg.connect(
        url, autocommit=True, connect_timeout=10, application_name="decisor", keepalives=1, keepalives_idle=30,
        client_encoding="UTF8",
    )  # fmt: skip


def connect(url: str, caps: Caps) -> PostgresEngine:
    """Raises SetupError where the server does not answer or refuses the account."""
    import sqlglot.dialects.postgres  # noqa: F401  warm: the first query should not pay for it

    try:
        return PostgresEngine(url, Guard("postgres", frozenset(caps.deny)), _open(url))
    except psycopg.Error as error:
        raise SetupError(f"PostgreSQL cannot be reached: {' '.join(str(error).split())}") from error
