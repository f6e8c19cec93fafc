"""Trino as tests/servers/trino.sh starts it; its tests are skipped where it does not answer."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import getpid

import pytest

PORT = 18080
SCHEMA = f"made_{getpid()}"


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def say(statement: str) -> list[list[object]]:
    """As an administrator."""
    import sqlalchemy

    with sqlalchemy.create_engine(f"trino://tests@127.0.0.1:{PORT}/memory").connect() as db:
        result = db.exec_driver_sql(statement)
        return [list(row) for row in result] if result.returns_rows else []


@contextmanager
def trino_database(statements: Sequence[str]) -> Iterator[str]:
    """A schema of its own: gives its URL, and drops it. ``statements`` name it as {schema}."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("trino")
    if not answers(PORT):
        pytest.skip("no Trino at 127.0.0.1:18080: tests/servers/trino.sh start")
    say(f"CREATE SCHEMA memory.{SCHEMA}")
    try:
        for statement in statements:
            say(statement.format(schema=f"memory.{SCHEMA}"))
        yield f"trino://tests@127.0.0.1:{PORT}/memory/{SCHEMA}"
    finally:
        for name, kind in say(
            f"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema='{SCHEMA}'"
        ):
            say(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} memory.{SCHEMA}.{name}")
        say(f"DROP SCHEMA memory.{SCHEMA}")
