"""Loads one database of the benchmark into a store, typed, in file order, with float64 kept exact.

Columns and keys are the release's, with two changes: FLOAT becomes DOUBLE, and names may be longer. MariaDB and
MySQL keep rows by primary key, so there each table has one more column ``ord``, invisible to ``SELECT *``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from decisor.benchmarks.dqa import dumps
from decisor.benchmarks.dqa.spark import to_spark
from decisor.benchmarks.dqa.tables import WorldData, schema, tables_of
from decisor.errors import SetupError
from decisor.tools.databases.sandbox.urls import parse_url

if TYPE_CHECKING:
    import psycopg


async def load_database(dump: Path, url: str) -> None:
    """Reads a .sql or .cql dump and writes it to the store that ``url`` names; all of it or nothing.

    Raises:
        SetupError: the dump cannot be read, or the store cannot be written or holds such tables already.
    """
    await load_world(await asyncio.to_thread(dumps.read, dump), url)


async def load_world(world: WorldData, url: str) -> None:
    """Writes a world to SQLite, DuckDB, PostgreSQL, MariaDB, Spark, or to a graph (kglite, Bolt)."""
    engine, place = parse_url(url)
    writers: dict[str, Callable[[WorldData, str], None]] = {
        "sqlite": to_sqlite,
        "duckdb": to_duckdb,
        "postgres": to_postgres,
        "mysql": to_mysql,
        "spark": to_spark,
    }
    await asyncio.to_thread(writers.get(engine, to_graph), world, place)


def to_graph(world: WorldData, url: str) -> None:
    from decisor.benchmarks.dqa.graphs import graph_of
    from decisor.tools.databases.graph_load import load

    load(url, *graph_of(world))


def to_sqlite(world: WorldData, url: str) -> None:
    import sqlite3

    with reported(url, sqlite3.Error), contextlib.closing(sqlite3.connect(file_of(url), isolation_level=None)) as db:
        db.execute("BEGIN")
        for statement in schema(world):
            db.execute(statement)
        for name, columns, rows in tables_of(world):
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
        db.execute("COMMIT")


def to_duckdb(world: WorldData, url: str) -> None:
    import duckdb

    with reported(url, duckdb.Error), duckdb.connect(file_of(url)) as db:
        db.execute("BEGIN")
        for statement in schema(world):
            db.execute(statement)
        for name, columns, rows in tables_of(world):
            if rows:
                each = ", ".join("unnest(?)" for _ in columns)
                db.execute(f"INSERT INTO {name} SELECT {each}", [list(column) for column in zip(*rows, strict=True)])
        db.execute("COMMIT")


def to_postgres(world: WorldData, url: str) -> None:
    import psycopg

    with reported(url, psycopg.Error), _postgres(url) as db, db.cursor() as cursor:
        for statement in schema(world):
            cursor.execute(statement)
        for name, columns, rows in tables_of(world):
            with cursor.copy(f"COPY {name} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)


def _postgres(url: str) -> psycopg.Connection:
    """A connection to the database, which is made where there is none."""
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
    """Tables are InnoDB; what was made is dropped again where a row fails, for the server commits each CREATE."""
    import pymysql

    parts = urlsplit(url)
    database = unquote(parts.path.lstrip("/"))
    with reported(url, pymysql.Error):
        db = pymysql.connect(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 3306,
            user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""),
            charset="utf8mb4",
        )
        tables: list[str] = []
        with contextlib.closing(db), db.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {_ticked(database)}")
            cursor.execute(f"USE {_ticked(database)}")
            try:
                ending = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
                statements = schema(world, more="ord BIGINT INVISIBLE, ", ending=ending)
                for statement, (name, columns, rows) in zip(statements, tables_of(world), strict=True):
                    cursor.execute(statement)
                    tables.append(name)
                    into = f"INSERT INTO {name} ({', '.join(columns)}, ord)"
                    marks = ", ".join(["%s"] * (len(columns) + 1))
                    cursor.executemany(f"{into} VALUES ({marks})", [(*row, at) for at, row in enumerate(rows)])
                db.commit()
            except pymysql.Error:
                for name in tables:
                    cursor.execute(f"DROP TABLE {name}")
                raise


def _ticked(name: str) -> str:
    if not name:
        raise SetupError("The URL names no database: give mysql://USER@HOST/DATABASE.")
    return "`" + name.replace("`", "``") + "`"


def file_of(url: str) -> str:
    """``sqlite:///a.db`` is relative, ``sqlite:////tmp/a.db`` absolute.

    >>> file_of("sqlite:///a.db"), file_of("duckdb:////tmp/a.duckdb")
    ('a.db', '/tmp/a.duckdb')
    """
    return unquote(url.partition(":///")[2])


@contextlib.contextmanager
def reported(url: str, *kinds: type[Exception]) -> Iterator[None]:
    """A store's own error becomes one line for the person; the password stays out of it."""
    try:
        yield
    except kinds as error:
        parts = urlsplit(url)
        place = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        raise SetupError(f"Cannot load {place}: {str(error).splitlines()[0]}") from error
