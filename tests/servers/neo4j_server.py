"""Neo4j itself, where it runs on this machine (``make servers``): one database for all, emptied before a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from servers.sql_databases import CONNECTING, lacking

NEO4J = "bolt://neo4j:decisor-tests@127.0.0.1:17687"


@contextmanager
def neo4j_database() -> Iterator[str]:
    """Its URL, without nodes, before and after. Tests in other processes wait for their turn."""
    import fcntl

    neo4j = pytest.importorskip("neo4j")
    with (Path(gettempdir()) / "decisor-tests-neo4j.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            ask("RETURN 1")
        except neo4j.exceptions.DriverError as error:
            lacking("Neo4j at 127.0.0.1:17687", error)
        empty()
        try:
            yield NEO4J
        finally:
            empty()


def empty() -> None:
    ask("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 5000 ROWS")
    for name in ask("SHOW CONSTRAINTS YIELD name RETURN name"):
        ask(f"DROP CONSTRAINT `{name['name']}`")


def ask(statement: str, **parameters: Any) -> list[dict[str, Any]]:
    """As the administrator."""
    import neo4j

    driver = neo4j.GraphDatabase.driver(
        "bolt://127.0.0.1:17687",
        auth=("neo4j", "decisor-tests"),
        connection_timeout=CONNECTING,
        notifications_min_severity="OFF",
    )
    with driver, driver.session() as session:
        return session.run(statement, parameters).data()
