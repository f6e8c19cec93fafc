"""Open a database through SQLAlchemy: the guard before it, one connection, its rows as they come.

What keeps it to reading and to its seconds beside the guard is the warehouse's own (``Warehouse``); where that is
nothing, the rights of the account and the worker process, which is killed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError, ToolError
from decisor.extras import needs, pip_install
from decisor.tools.databases.sandbox.access import allowed, read_access
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.engine import Caps, ConnectionLost, Engine
from decisor.tools.databases.sandbox.guard import Guard
from decisor.tools.databases.sandbox.inspecting import inspected
from decisor.tools.databases.sandbox.values import table
from decisor.tools.databases.sandbox.warehouse import SECONDS, Warehouse
from decisor.types import Table, Value

if TYPE_CHECKING:
    import sqlalchemy

PREFIX = "sqlalchemy+"
ROWS_AT_ONCE = 64
AS_IT_STANDS = {"stream_results": True, "max_row_buffer": ROWS_AT_ONCE, "no_parameters": True}
"""Rows come as they are read, and no colon or percent sign means anything."""
WITHOUT_LIMIT = ("tsql", "oracle")
"""Dialects of sqlglot whose engines write LIMIT in other words."""


@dataclass(eq=False)
class Alchemy:
    """One connection, opened anew after it broke off. ``cursor``: the driver's, while a query runs."""

    title: str
    warehouse: Warehouse
    guard: Guard
    pool: sqlalchemy.Engine
    db: sqlalchemy.Connection
    number: object = None
    cursor: Any = field(default=None, repr=False)

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        try:
            if self.db.closed:
                self.db = self.pool.connect()
                self.open(caps)
            self.say(self.warehouse.begins, caps)
            if (catalog := inspected(statement, self.db)) is not None:
                return table(*catalog, caps)
            return self.rows(self.worded(statement), parameters, caps)
        except ToolError:
            raise
        except Exception as error:  # drivers have classes of their own
            complaint = plain(error)
            if getattr(error, "connection_invalidated", False) or not self.alive():
                with contextlib.suppress(Exception):
                    self.db.invalidate()
                self.db.close()
                raise ConnectionLost(f"{self.title} cannot be reached: {complaint}") from error
            raise ToolError(complaint) from error
        finally:
            self.cursor = None
            if not self.db.closed:
                with contextlib.suppress(Exception):
                    self.db.rollback()

    def rows(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        from sqlalchemy import text

        if parameters:
            result = self.db.execute(text(with_parameters(statement, parameters)), dict(parameters))
        else:
            is_plan = bool(self.guard.dialect.plan) and statement.startswith(self.guard.dialect.plan)
            options = {**AS_IT_STANDS, "stream_results": not is_plan}  # no cursor of a server's is of a plan
            result = self.db.exec_driver_sql(statement, execution_options=options)
        try:
            return table(list(result.keys()), rows_of(result), caps)
        finally:
            result.close()

    def open(self, caps: Caps) -> None:
        """A connection that was just made."""
        self.say(self.warehouse.opens, caps)
        if self.warehouse.number:
            self.number = self.db.exec_driver_sql(self.warehouse.number).scalar()
        self.db.rollback()

    def say(self, statements: Sequence[str], caps: Caps) -> None:
        for one in statements:
            seconds, ms = max(1, round(caps.seconds)), max(1, int(caps.seconds * 1000))
            self.db.exec_driver_sql(one.format(seconds=seconds, ms=ms, rows=caps.rows + 1))

    def worded(self, statement: str) -> str:
        """A statement of our own may end with LIMIT, which not every engine knows."""
        name = self.guard.dialect.name
        if name not in WITHOUT_LIMIT:
            return statement
        import sqlglot

        return sqlglot.parse_one(statement, dialect=name).sql(dialect=name)

    def alive(self) -> bool:
        """Whether the server answers on this connection."""
        try:
            self.db.rollback()
            self.rows("SELECT 1 FROM dual" if self.guard.dialect.name == "oracle" else "SELECT 1", {}, Caps())
        except Exception:
            return False
        return True

    def cancel(self) -> None:
        if self.warehouse.kill:
            with self.pool.connect() as other:
                other.exec_driver_sql(self.warehouse.kill.format(number=self.number))
        elif self.cursor is not None:
            for running in (self.cursor, self.cursor.connection):
                if hasattr(running, "cancel"):
                    running.cancel()
                    return

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.db.close()


def rows_of(result: sqlalchemy.CursorResult[object]) -> Iterator[Sequence[object]]:
    while rows := result.fetchmany(ROWS_AT_ONCE):
        yield from rows


def with_parameters(statement: str, parameters: Mapping[str, Value]) -> str:
    """With every other colon marked as no parameter.

    >>> with_parameters("SELECT 'at :a', x::int FROM t WHERE b = :a", {"a": 1})
    "SELECT 'at \\\\:a', x::int FROM t WHERE b = :a"
    """
    names = "|".join(map(re.escape, parameters))
    pattern = re.compile(rf"('(?:[^']|'')*')|(?<![:\w]):(?!(?:{names})\b)(?=\w)")
    return pattern.sub(lambda match: (match[1] or ":").replace(":", r"\:"), statement)


def plain(error: Exception) -> str:
    """The driver's own complaint, on one line: its last argument where the first is a number."""
    own = getattr(error, "orig", None) or error
    numbered = len(own.args) > 1 and isinstance(own.args[0], int)
    text = getattr(own, "message", "") or (own.args[-1] if numbered else own)
    return " ".join(str(text).split()) or type(own).__name__


def warehouse_engine(name: str, title: str, schemes: Sequence[str], dialect: Dialect, warehouse: Warehouse) -> Engine:
    """``schemes``: what SQLAlchemy knows its dialects by."""

    def open_url(url: str, caps: Caps) -> Alchemy:
        return connect(title, url.removeprefix(PREFIX), caps, dialect, warehouse)

    probe = "SELECT 1 FROM dual" if dialect.name == "oracle" else "SELECT 1"
    return Engine(
        name=name, title=title, schemes=tuple(schemes), form="sql", connect=open_url, server=True, probe=probe,
        dialect=dialect, extra="warehouse", warehouse=warehouse, seconds=SECONDS,
    )  # fmt: skip


def connect(title: str, url: str, caps: Caps, dialect: Dialect, warehouse: Warehouse) -> Alchemy:
    """Raises SetupError where a package is missing, the server does not answer, or a policy cannot be kept to."""
    with needs("SQLAlchemy", "warehouse"):
        import sqlalchemy
    from sqlalchemy import event
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    refuse_policy(title, caps, dialect)
    try:
        pool = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise SetupError(f"{title} needs {missing(error, warehouse)}") from error
    except (ArgumentError, ValueError) as error:
        raise SetupError(f"{title} cannot read its URL: {plain(error)}") from error
    try:
        database = Alchemy(title, warehouse, Guard(dialect), pool, pool.connect())
        event.listen(pool, "before_cursor_execute", lambda _, cursor, *rest: setattr(database, "cursor", cursor))
        database.open(caps)

        def rows(query: str) -> Iterator[Sequence[object]]:
            catalog = inspected(query, database.db)
            yield from catalog[1] if catalog else database.db.exec_driver_sql(query, execution_options=AS_IT_STANDS)

        access = read_access(dialect, caps, rows, allowed(Guard(dialect).query))
        database.db.rollback()
    except SetupError:
        raise
    except Exception as error:  # drivers have classes of their own
        raise SetupError(f"{title} cannot be reached: {plain(error)}") from error
    database.guard = Guard(dialect, access)
    return database


def missing(error: Exception, warehouse: Warehouse) -> str:
    """
    >>> missing(ModuleNotFoundError("No module named 'x'", name="x"), Warehouse())
    'the package x: install it.'
    """
    if warehouse.package:
        return f"a package of its own: {pip_install(*warehouse.package.split())}"
    if isinstance(error, ModuleNotFoundError):
        return f"the package {error.name}: install it."
    return "a package that brings its dialect of SQLAlchemy: install it."


def refuse_policy(title: str, caps: Caps, dialect: Dialect) -> None:
    """Raises SetupError where rows or masks are named that this dialect does not keep to."""
    what = "masks" if caps.policy.mask and not dialect.token else "rows"
    if caps.policy and (what == "masks" or (caps.policy.rows and not dialect.fence)):
        raise SetupError(f"Readers' {what} are not kept to on {title}: let the account read a view with only those.")
