"""A database of its own on the servers that may run on this machine; the test is skipped where there is none."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

NAME = f"decisor_made_{os.getpid()}"


@contextmanager
def postgres_database(statements: Sequence[str]) -> Iterator[str]:
    """Gives its URL, and drops it."""
    psycopg = pytest.importorskip("psycopg")
    server = "postgresql://postgres@127.0.0.1"
    try:
        admin = psycopg.connect(f"{server}/postgres", autocommit=True, connect_timeout=2)
    except psycopg.Error:
        pytest.skip("no PostgreSQL at 127.0.0.1:5432")
    with admin:
        admin.execute(f"CREATE DATABASE {NAME}")
        try:
            with psycopg.connect(f"{server}/{NAME}", autocommit=True) as db:
                for statement in statements:
                    db.execute(statement)
            yield f"{server}/{NAME}"
        finally:
            admin.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@contextmanager
def mysql_database(statements: Sequence[str]) -> Iterator[str]:
    """Gives its URL, and drops it."""
    pymysql = pytest.importorskip("pymysql")
    try:
        admin = pymysql.connect(host="127.0.0.1", user="root", autocommit=True, connect_timeout=2)
    except pymysql.Error:
        pytest.skip("no MySQL or MariaDB at 127.0.0.1:3306")
    with admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {NAME}")
        try:
            cursor.execute(f"USE {NAME}")
            for statement in statements:
                cursor.execute(statement)
            yield f"mysql://root@127.0.0.1/{NAME}"
        finally:
            cursor.execute(f"DROP DATABASE {NAME}")
