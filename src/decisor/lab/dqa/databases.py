"""Databases for the questions of a Decision QA run: loaded when needed, compared with the dump, dropped on request.

A world is loaded when its first question comes, and a few databases stay open while idle. On a server each world has a
place of its own, a database or a labelled graph, which is kept from run to run. Before a database is asked, all of it
is read and compared with the question's dump; another world, or half of one, is refused. Worlds are written typed, in
file order, with float64 kept exact. Columns and keys are the release's, with two changes: FLOAT becomes DOUBLE, and
names may be longer; MariaDB and MySQL keep rows by primary key, so there each table has one more column ``ord``,
invisible to ``SELECT *``.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from decisor.errors import SetupError, ToolError
from decisor.lab.dqa import worlds as dumps
from decisor.lab.dqa.rows import WORLD_TABLES, read_world_tables
from decisor.lab.dqa.worlds import DqaWorld, WorldData, build_world_graph, build_world_schema
from decisor.sandbox.engines import parse_url, path_in_url
from decisor.system.secrets import hide_password
from decisor.types import BulkSource, Tool

if TYPE_CHECKING:
    import psycopg


async def open_database(url: str) -> Tool:
    """Open the tool for a URL: a graph for kglite, bolt and neo4j, else SQL.

    Raises:
        SetupError: it cannot be opened.
    """
    if form_of_url(url) == "graph":
        from decisor.graphs.cypher import CypherTool

        return await CypherTool.open(url)
    from decisor.databases.sql import SqlTool

    return await SqlTool.open(url)


def form_of_url(url: str) -> str:
    """Return the form of the database at a URL: graph or sql.

    >>> form_of_url("bolt://localhost:7687"), form_of_url("trade.db")
    ('graph', 'sql')
    """
    scheme = url.partition("://")[0].partition("+")[0]
    return "graph" if scheme in ("kglite", "bolt", "neo4j") else "sql"


async def load_database(dump: Path, url: str) -> None:
    """Read a .sql or .cql dump and write it to the store at ``url``, completely or not at all.

    Raises:
        SetupError: the dump cannot be read, or the store cannot be written or holds such tables already.
    """
    await load_world(await asyncio.to_thread(dumps.read_dump, dump), url)


async def load_world(world: WorldData, url: str) -> None:
    """Write a world to SQLite, DuckDB, PostgreSQL, MariaDB, MySQL, or a graph (kglite, Bolt)."""
    engine, place = parse_url(url)
    writers: dict[str, Callable[[WorldData, str], None]] = {
        "sqlite": to_sqlite,
        "duckdb": to_duckdb,
        "postgres": to_postgres,
        "mysql": to_mysql,
    }
    if engine in writers:
        await asyncio.to_thread(writers[engine], world, place)
    else:
        from decisor.graphs.load import load_nodes_and_edges

        await asyncio.to_thread(load_nodes_and_edges, place, *build_world_graph(world))


def to_sqlite(world: WorldData, url: str) -> None:
    import sqlite3

    with (
        report_store_errors("load", url, sqlite3.Error),
        contextlib.closing(sqlite3.connect(path_in_url(url), isolation_level=None)) as db,
    ):
        db.execute("BEGIN")
        for statement in build_world_schema(world):
            db.execute(statement)
        for name, rows in world.tables.items():
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(WORLD_TABLES[name].types))})", rows)
        db.execute("COMMIT")


def to_duckdb(world: WorldData, url: str) -> None:
    import duckdb

    with report_store_errors("load", url, duckdb.Error), duckdb.connect(path_in_url(url)) as db:
        db.execute("BEGIN")
        for statement in build_world_schema(world):
            db.execute(statement)
        for name, rows in world.tables.items():
            if rows:
                # Columns as lists: DuckDB inserts row by row slowly.
                columns = [list(column) for column in zip(*rows, strict=True)]
                db.execute(f"INSERT INTO {name} SELECT {', '.join('unnest(?)' for _ in columns)}", columns)
        db.execute("COMMIT")


def to_postgres(world: WorldData, url: str) -> None:
    import psycopg

    with report_store_errors("load", url, psycopg.Error), _connect_or_create_database(url) as db, db.cursor() as cursor:
        for statement in build_world_schema(world):
            cursor.execute(statement)
        for name, rows in world.tables.items():
            with cursor.copy(f"COPY {name} ({', '.join(WORLD_TABLES[name].types)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)


def _connect_or_create_database(url: str) -> psycopg.Connection:
    """Open a connection to a PostgreSQL database and create the database if it is missing."""
    import psycopg

    try:
        return psycopg.connect(url, client_encoding="UTF8")
    except psycopg.OperationalError as error:
        if "does not exist" not in str(error):
            raise
        parts = urlsplit(url)
        with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as server:
            name = psycopg.sql.Identifier(unquote(parts.path.lstrip("/")))
            server.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(name))
        return psycopg.connect(url, client_encoding="UTF8")


def to_mysql(world: WorldData, url: str) -> None:
    """Write a world to MariaDB or MySQL, in InnoDB tables.

    The server commits each CREATE, so the new tables are dropped again if a row fails.
    """
    import pymysql

    from decisor.sandbox.engines.mysql import open_mysql

    parts = urlsplit(url)
    database = quote_mysql_database(parts.path)
    with report_store_errors("load", url, pymysql.Error), open_mysql(urlunsplit(parts._replace(path=""))) as db:
        tables: list[str] = []
        with db.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {database}")
            cursor.execute(f"USE {database}")
            try:
                ending = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
                # InnoDB keeps rows by primary key; the order of writing needs a column, which SELECT * does not show.
                statements = build_world_schema(world, more="ord BIGINT INVISIBLE, ", ending=ending)
                for statement, (name, rows) in zip(statements, world.tables.items(), strict=True):
                    cursor.execute(statement)
                    tables.append(name)
                    db.begin()
                    columns = [*WORLD_TABLES[name].types, "ord"]
                    insert = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"
                    cursor.executemany(insert, [(*row, at) for at, row in enumerate(rows)])
                    db.commit()
            except pymysql.Error:
                for name in tables:
                    cursor.execute(f"DROP TABLE {name}")
                raise


def quote_mysql_database(path: str) -> str:
    """Quote the name of the database in the path of a URL. Raise SetupError if there is none."""
    if name := unquote(path.lstrip("/")):
        return "`" + name.replace("`", "``") + "`"
    raise SetupError("The URL names no database: give mysql://USER@HOST/DATABASE.")


@contextlib.contextmanager
def report_store_errors(verb: str, url: str, *kinds: type[Exception]) -> Iterator[None]:
    """Convert an error of a store to a SetupError of one line, without the password."""
    try:
        yield
    except kinds as error:
        raise SetupError(f"Cannot {verb} {hide_password(url)}: {str(error).splitlines()[0]}") from error


PREFIX = "decisor_dqa_"
CLOSE = 1e-4
"""Numbers that differ by less are the same: the release's own tables keep them with six digits."""
WAITS, WAIT_SECONDS = 60, 0.5


def own_place_url(url: str, key: str) -> str:
    """Return the URL of a world's own place on a server, empty if the URL names one database or a file.

    >>> own_place_url("mysql://root@localhost:3306", "ab12"), own_place_url("sqlite:///trade.db", "ab12")
    ('mysql://root@localhost:3306/decisor_dqa_ab12', '')
    >>> own_place_url("bolt://neo4j:secret@localhost", "ab12"), own_place_url("bolt://localhost/trade", "ab12")
    ('bolt://neo4j:secret@localhost?label=decisor_dqa_ab12', '')
    """
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[0]
    if parts.path.strip("/") or "label=" in parts.query:
        return ""
    if scheme in ("bolt", "neo4j"):
        return urlunsplit(parts._replace(query=urlencode({"label": PREFIX + key})))
    if scheme in ("mysql", "mariadb", "postgresql", "postgres"):
        return urlunsplit(parts._replace(path=f"/{PREFIX}{key}"))
    return ""


async def open_own_place(place: str, world: DqaWorld, fresh: bool) -> Tool:
    """Open the tool for a world in its own place.

    A world that is already there is used unless ``fresh``; otherwise it is loaded.

    Raises:
        SetupError: the place holds something else, or the server cannot be used.
    """
    if fresh:
        await asyncio.to_thread(drop_own_place, place)
    try:
        await load_world(world.data, place)
        return await open_database(place)
    except SetupError as error:  # it is there; or the account may only read
        # Another process may be loading the same world: wait, then look whether it is complete.
        for _ in range(WAITS):
            if tool := await open_if_loaded(place, world):
                return tool
            if "already exists" not in str(error):
                raise
            await asyncio.sleep(WAIT_SECONDS)  # another process may be loading it
        raise SetupError(f"{hide_password(place)} holds half of a world: --fresh loads it anew.") from error


async def open_if_loaded(place: str, world: DqaWorld) -> Tool | None:
    """Open the tool of a place, or return None if nothing is there.

    Raise SetupError if the place contains another world.
    """
    try:
        tool = await open_database(place)
    except SetupError:
        return None
    # Read all of it: half a world, or another one, would give wrong answers without an error.
    data = await read_world_data(cast(BulkSource, tool), world)
    if data is not None and is_same_world(data, world.data):
        return tool
    await tool.close()
    if data is None or not any(data.tables.values()):
        return None
    raise SetupError(f"{hide_password(place)} holds another world than its name says: --fresh loads it anew.")


async def read_world_data(source: BulkSource, world: DqaWorld) -> WorldData | None:
    """Read the world in a database, None if it has no such tables."""
    try:
        return world.data.of(await read_world_tables(source, list(world.data.tables)))
    except (SetupError, ToolError):
        return None


async def check_database_world(source: BulkSource, world: DqaWorld, url: str) -> None:
    """Raise SetupError, in one line, if a database that is to be asked contains another world."""
    data = await read_world_data(source, world)
    if data is None or not is_same_world(data, world.data):
        kind = "another world than" if data is not None and any(data.tables.values()) else "not the world that"
        raise SetupError(
            f"{hide_password(url)} holds {kind} the question is about ({world.dump.name}). Name a server without a "
            "database, such as mysql://HOST or bolt://HOST, and each world is loaded into a place of its own."
        )


def is_same_world(one: WorldData, other: WorldData) -> bool:
    """Return whether two worlds have the same rows, in any order, with numbers equal to four digits."""
    return all(
        len(left) == len(right)
        and all(map(is_row_close, sorted(left, key=row_sort_key), sorted(right, key=row_sort_key)))
        for left, right in zip(one.tables.values(), other.tables.values(), strict=True)
    )


def row_sort_key(row: tuple[object, ...]) -> str:
    """Return the text that identifies a row: all its cells but the measures."""
    return repr([cell for cell in row if not isinstance(cell, float)])


def is_row_close(row: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Return whether two rows are equal, with numbers equal to four digits.

    >>> is_row_close(("a", 1.0), ("a", 1.00001)), is_row_close(("a", 1.0), ("a", 2.0)), is_row_close(("a",), ("b",))
    (True, False, False)
    """
    return all(
        math.isclose(cell, there, rel_tol=CLOSE, abs_tol=CLOSE)
        if isinstance(cell, float) and isinstance(there, float)
        else cell == there
        for cell, there in zip(row, other, strict=True)
    )


def drop_own_place(place: str) -> None:
    """Remove a world's own place if it exists. Raise SetupError if the server does not do it."""
    parts = urlsplit(place)
    name = parts.path.strip("/")
    if not name:
        from decisor.graphs.load import drop_labelled_graph

        drop_labelled_graph(place)
    elif parts.scheme.startswith("postgres"):
        import psycopg

        server = urlunsplit(parts._replace(path="/postgres"))
        with report_store_errors("drop", place, psycopg.Error), psycopg.connect(server, autocommit=True) as admin:
            identifier = psycopg.sql.Identifier(name)
            admin.execute(psycopg.sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(identifier))
    else:
        import pymysql

        from decisor.sandbox.engines.mysql import open_mysql

        server = urlunsplit(parts._replace(path=""))
        with report_store_errors("drop", place, pymysql.Error), open_mysql(server) as admin, admin.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {quote_mysql_database(name)}")


STORES = {"sql": "sqlite", "graph": "kglite"}
ENDINGS = {"sql": ".db", "graph": ".kgl"}
IDLE = 4


@dataclass
class Stores:
    """The databases for the questions of a run, opened on demand; a few stay open while idle."""

    form: str
    url: str = ""
    """A server for all worlds (see ``own_place_url``), or one database, which must contain the world that is asked for.
    '' means files in a temporary folder."""
    fresh: bool = False
    """Drop a world from the server and load it again."""
    settled: set[str] = field(default_factory=set)
    """Worlds that are known to be in their place."""
    users: Counter[str] = field(default_factory=Counter)
    """Number of questions that use each world now."""
    opened: dict[str, asyncio.Task[Tool]] = field(default_factory=dict)
    """Tools by world, the latest used last."""
    closing: list[asyncio.Task[None]] = field(default_factory=list)
    """Tools that are being closed."""
    folder: TemporaryDirectory[str] | None = None

    @asynccontextmanager
    async def tool(self, world: DqaWorld) -> AsyncIterator[Tool]:
        """Yield the database tool of a world, for one question. Raise SetupError if it cannot be opened."""
        key = world.key if not self.url or own_place_url(self.url, world.key) else self.url
        opening = self.opened.pop(key, None) or asyncio.create_task(self._open(world))
        self.opened[key] = opening  # the latest used is last
        self.users[key] += 1
        try:
            # Several questions wait for one opening; a limit that cancels one must not cancel it for the others.
            tool = await asyncio.shield(opening)
            if key == self.url and world.key not in self.settled:
                await check_database_world(cast(BulkSource, tool), world, self.url)
                self.settled.add(world.key)
            yield tool
        finally:
            self.users[key] -= 1
            # Close the idle ones but a few, the longest unused first.
            idle = [key for key in self.opened if not self.users[key]]
            for key in idle[: max(0, len(idle) - IDLE)]:
                path = self._path(key) if not self.url else None
                self.closing.append(asyncio.create_task(close_when_open(self.opened.pop(key), path)))
            self.closing = [task for task in self.closing if not task.done()]

    async def _open(self, world: DqaWorld) -> Tool:
        if self.url:
            place = own_place_url(self.url, world.key)
            if place and world.key not in self.settled:
                tool = await open_own_place(place, world, self.fresh)
                self.settled.add(world.key)
                return tool
            return await open_database(place or self.url)
        path = self._path(world.key)
        url = f"{STORES[self.form]}:///{path}"
        if not path.exists():
            await load_world(world.data, url)
        return await open_database(url)

    def _path(self, key: str) -> Path:
        self.folder = self.folder or TemporaryDirectory(prefix="decisor-dqa-")
        return Path(self.folder.name) / f"{key}{ENDINGS[self.form]}"

    async def close(self) -> None:
        """Wait until every database is closed, including any left open by a failed run."""
        self.closing += [asyncio.create_task(close_when_open(opening)) for opening in self.opened.values()]
        self.opened.clear()
        await asyncio.gather(*self.closing)
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None


async def close_when_open(opening: asyncio.Task[Tool], path: Path | None = None) -> None:
    """Close a tool as soon as it is open. Do nothing if it could not be opened."""
    await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close()
