"""SQLite through APSW (its own build: no fts3_tokenizer): mode=ro, an authorizer, limits, a deadline."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.forms import PRAGMA
from decisor.tools.databases.sandbox.guard import Guard
from decisor.tools.databases.sandbox.values import table
from decisor.types import Table, Value

ALWAYS = {apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE}
FUNCTIONS_DENIED = {
    "load_extension",
    "fts3_tokenizer",
    "printf",
    "format",
    "zeroblob",
    "randomblob",
    "readfile",
    "edit",
}
MAX_VALUE_BYTES = 50_000_000
STEPS_BETWEEN_CHECKS = 1000
BUSY_SHARE = 0.5
"""Of the time of a query: how long it waits for somebody else's lock."""
LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 500,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 5,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}


@dataclass(eq=False)
class SqliteEngine:
    """One connection. ``deadline`` (time.monotonic) is read by its progress handler."""

    db: Any
    guard: Guard
    deadline: float = 0.0

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        self.deadline = time.monotonic() + caps.seconds
        self.db.set_busy_timeout(int(caps.seconds * 1000 * BUSY_SHARE))
        columns: list[str] = []
        cursor = self.db.cursor()

        def keep_columns(*_: Any) -> bool:
            columns.extend(column[0] for column in cursor.getdescription())
            return True

        cursor.exec_trace = keep_columns  # the only place that tells the columns of a query without rows
        try:
            rows = cursor.execute(statement, dict(parameters))
            return table(columns, rows, caps)
        except apsw.InterruptError as error:
            raise ToolError(f"Stopped: the query ran for more than {caps.seconds:g} s.") from error
        except apsw.AuthError as error:
            raise ToolError(f"Refused: {error}", refused=True) from error
        except (apsw.Error, KeyError) as error:
            raise ToolError(message(error)) from error
        finally:
            cursor.close(True)

    def close(self) -> None:
        self.db.close(True)

    def authorize(self, what: int, one: str | None, two: str | None, schema: str | None, inner: str | None) -> int:
        """Deny by default. SQLite declares table-valued functions (json_each) by an UPDATE of sqlite_master."""
        match what:
            case _ if what in ALWAYS:
                allowed = True
            case apsw.SQLITE_READ:
                allowed = (one or "").lower() not in self.guard.deny
            case apsw.SQLITE_FUNCTION:
                allowed = (two or "").lower() not in FUNCTIONS_DENIED
            case apsw.SQLITE_PRAGMA:
                allowed = (one or "").lower() in {*PRAGMA.split("|"), "table_list"}
            case apsw.SQLITE_UPDATE:
                allowed = one == "sqlite_master"
            case _:
                allowed = False
        return apsw.SQLITE_OK if allowed else apsw.SQLITE_DENY


def connect(url: str, caps: Caps) -> SqliteEngine:
    """Raises SetupError where there is no such file, or it is not a database. Never makes a file."""
    path = Path(url.removeprefix("sqlite:///"))
    if not path.is_file():
        raise SetupError(f"There is no database file {path}. Check the path of --db (sqlite:///PATH).")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        db = apsw.Connection(f"{path.resolve().as_uri()}?mode=ro", flags=flags)
        db.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except apsw.Error as error:
        raise SetupError(f"{path} cannot be read as a SQLite database: {message(error)}.") from error
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.execute("PRAGMA temp_store=MEMORY; PRAGMA query_only=ON")
    for limit, value in LIMITS.items():
        db.limit(limit, value)
    import sqlglot.dialects.sqlite  # noqa: F401  warm: the first query should not pay for it

    engine = SqliteEngine(db, Guard("sqlite", frozenset(caps.deny)))
    db.authorizer = engine.authorize
    db.set_progress_handler(lambda: time.monotonic() > engine.deadline, STEPS_BETWEEN_CHECKS)
    return engine


def message(error: BaseException) -> str:
    return str(error.args[0]) if error.args else type(error).__name__
