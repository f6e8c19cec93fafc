"""MySQL and MariaDB through PyMySQL: a READ ONLY transaction that is rolled back, a time limit of the server's own."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.cursors import SSCursor

from decisor.errors import SetupError, ToolError
from decisor.tools.fence.engine import Caps
from decisor.tools.fence.guard import Guard
from decisor.tools.fence.values import bind, table
from decisor.types import Table, Value

SQL_MODE = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"


@dataclass(eq=False)
class MysqlEngine:
    url: str
    guard: Guard
    db: Any

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        if not self.db.open:
            self.db = _open(self.url)
        clean = False
        cursor = SSCursor(self.db)
        try:
            self._begin(caps)
            cursor.execute(bind(statement, parameters, "%({})s"), dict(parameters) or None)
            result = table([column[0] for column in cursor.description or ()], cursor, caps)
            clean = not result.truncated or len(result.rows) == caps.rows
            return result
        except (pymysql.Error, UnicodeError) as error:
            code = error.args[0] if error.args else 0
            clean = isinstance(code, int) and 1000 <= code < 2000  # the server answered: the connection is whole
            raise ToolError(str(error.args[-1] if error.args else error)) from error
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
            except pymysql.Error:  # MySQL's own name and unit
                cursor.execute(f"SET SESSION max_execution_time = {max(1, int(caps.seconds * 1000))}")
            cursor.execute(f"SET SESSION sql_select_limit = {caps.rows + 1}")
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
    return pymysql.connect(
        **place,
        port=parts.port or 3306,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or ""),
        database=database or None,
        charset="utf8mb4",
        connect_timeout=10,
        local_infile=False,
        sql_mode=SQL_MODE,
        autocommit=True,
    )


def connect(url: str, caps: Caps) -> MysqlEngine:
    """Raises SetupError where the server does not answer or refuses the account."""
    import sqlglot.dialects.mysql  # noqa: F401  warm: the first query should not pay for it

    try:
        return MysqlEngine(url, Guard("mysql", frozenset(caps.deny)), _open(url))
    except pymysql.Error as error:
        raise SetupError(f"MySQL/MariaDB cannot be reached: {error.args[-1]}") from error
