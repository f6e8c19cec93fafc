"""A database of its own on the servers that may run on this machine (``make servers``); the test is skipped where there
is none, unless DECISOR_REQUIRE_SERVERS is set."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

NAME = f"decisor_made_{os.getpid()}"
POSTGRES = "postgresql://postgres@127.0.0.1:5432"
MARIADB = "mysql://root@127.0.0.1:3306"
MYSQL = "mysql://root@127.0.0.1:13306"
MYSQLS = {"mariadb": MARIADB, "mysql": MYSQL}
CONNECTING = 30
"""Seconds in which a server that is there lets somebody in, however busy the machine is."""


def lacking(what: str, error: Exception) -> None:
    """Skips the test; raises ``error`` where the servers are required."""
    if os.environ.get("DECISOR_REQUIRE_SERVERS"):
        raise error
    pytest.skip(f"no {what}: make servers")


@contextmanager
def postgres_database(statements: Sequence[str]) -> Iterator[str]:
    """Gives its URL, and drops it."""
    psycopg = pytest.importorskip("psycopg")
    try:
        admin = psycopg.connect(f"{POSTGRES}/postgres", autocommit=True, connect_timeout=CONNECTING)
    except psycopg.Error as error:
        lacking("PostgreSQL at 127.0.0.1:5432", error)
    with admin:
        admin.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")  # of a process of that number that was killed
        admin.execute(f"CREATE DATABASE {NAME}")
        try:
            with psycopg.connect(f"{POSTGRES}/{NAME}", autocommit=True) as db:
                for statement in statements:
                    db.execute(statement)
            yield f"{POSTGRES}/{NAME}"
        finally:
            admin.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@contextmanager
def mysql_database(statements: Sequence[str], server: str = MARIADB) -> Iterator[str]:
    """Gives its URL, and drops it. ``server``: one of ``MYSQLS``."""
    pymysql = pytest.importorskip("pymysql")
    port = urlsplit(server).port or 3306
    try:
        admin = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, connect_timeout=CONNECTING)
    except pymysql.Error as error:
        lacking(f"{'MySQL' if server == MYSQL else 'MariaDB'} at 127.0.0.1:{port}", error)
    with admin, admin.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {NAME}")
        cursor.execute(f"CREATE DATABASE {NAME}")
        try:
            cursor.execute(f"USE {NAME}")
            for statement in statements:
                cursor.execute(statement)
            yield f"{server}/{NAME}"
        finally:
            cursor.execute(f"DROP DATABASE {NAME}")
