"""MySQL and MariaDB through PyMySQL: a READ ONLY transaction that is rolled back, a time limit of the server's own."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.cursors import SSCursor

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.engine import Caps, ConnectionLost
from decisor.tools.databases.sandbox.guard import Guard
from decisor.tools.databases.sandbox.values import bind, table
from decisor.types import Table, Value

SQL_MODE = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"
CONNECT_SECONDS = 10
UNKNOWN_VARIABLE = 1193
GARBLED = (UnicodeError, ValueError, IndexError, TypeError, AssertionError, struct.error)
"""What PyMySQL raises besides its own errors where bytes on the way were changed."""


@dataclass(eq=False)
class MysqlEngine:
    url: str
    guard: Guard
    db: Any

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        if not self.db.open:
            try:
                self.db = _open(self.url)
            except pymysql.Error as error:
                raise ToolError(f"MySQL/MariaDB cannot be reached: {error.args[-1]}", outage=True) from error
        clean = False
        cursor = SSCursor(self.db)
        try:
            self._begin(caps)
            cursor.execute(bind(statement, parameters, "%({})s"), dict(parameters) or None)
            result = table([column[0] for column in cursor.description or ()], cursor, caps)
            clean = not result.truncated or len(result.rows) == caps.rows
            return result
        except (pymysql.Error, *GARBLED) as error:
            code = error.args[0] if error.args else 0
            # The server answered: the connection is whole.
            clean = isinstance(code, int) and 1000 <= code < 2000 and isinstance(error, pymysql.Error)
            if clean:
                raise ToolError(str(error.args[-1])) from error
            why = str(error.args[-1]) if error.args else ""
            raise ConnectionLost(f"The connection broke off: {why or type(error).__name__}") from error
        finally:
            self._end(cursor, clean)

    def close(self) -> None:
        with contextlib.suppress(pymysql.Error):
            self.db.close()

    def _begin(self, caps: Caps) -> None:
        """Limits first: the server stops one row after the cap, so what is left over is soon drained."""
        with self.db.cursor() as cursor:
            try:
                cursor.execute(f"SET SESSION max_statement_time = {max(0.01, caps.seconds)}")
            except pymysql.Error as error:  # MySQL's own name and unit
                if error.args[0] != UNKNOWN_VARIABLE:
                    raise
                cursor.execute(f"SET SESSION max_execution_time = {max(1, int(caps.seconds * 1000))}")
            lock = max(1, int(caps.seconds * 0.8))
            cursor.execute(f"SET SESSION sql_select_limit = {caps.rows + 1}, lock_wait_timeout = {lock}, "
                           f"innodb_lock_wait_timeout = {lock}")  # fmt: skip
            cursor.execute("START TRANSACTION READ ONLY")

    def _end(self, cursor: Any, clean: bool) -> None:
        """Roll back; a connection with many bytes under way is dropped, not drained."""
        if not clean:
            self.db._force_close()
            cursor.connection = cursor._result = None
            return
        with contextlib.suppress(pymysql.Error):
            cursor.close()
            self.db.rollback()


def _open(url: str) -> Any:
    parts = urlsplit(url)
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    database = unquote(parts.path.lstrip("/"))
    place = (
        {"unix_socket": options["unix_socket"]} if "unix_socket" in options else {"host": parts.hostname or "127.0.0.1"}
    )
    db = pymysql.connect(
        **place,
        port=parts.port or 3306,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or ""),
        database=database or None,
        charset="utf8mb4",
        connect_timeout=CONNECT_SECONDS,
        read_timeout=CONNECT_SECONDS,
        local_infile=False,
        sql_mode=SQL_MODE,
        autocommit=True,
    )
    db._read_timeout = None  # a query has the limit of its caps, and the parent's clock
    return db


def connect(url: str, caps: Caps) -> MysqlEngine:
    """Raises SetupError where the server does not answer or refuses the account."""
    import sqlglot.dialects.mysql  # noqa: F401  warm: the first query should not pay for it

    try:
        return MysqlEngine(url, Guard("mysql", frozenset(caps.deny)), _open(url))
    except pymysql.Error as error:
        raise SetupError(f"MySQL/MariaDB cannot be reached: {error.args[-1]}") from error
