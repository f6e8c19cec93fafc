"""The engine of a kind of warehouse: how SQLAlchemy opens one, and what is missing where it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisor.errors import SetupError
from decisor.extras import needs, pip_install
from decisor.tools.databases.sandbox.access import allowed, read_access
from decisor.tools.databases.sandbox.alchemy import AS_IT_STANDS, Alchemy, plain
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.engine import Caps, Engine
from decisor.tools.databases.sandbox.guard import Guard
from decisor.tools.databases.sandbox.inspecting import inspected
from decisor.tools.databases.sandbox.warehouse import SECONDS, Warehouse

PREFIX = "sqlalchemy+"


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
