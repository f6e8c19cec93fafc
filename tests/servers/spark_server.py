"""A Spark Connect server as tests/servers/spark.sh starts it; its tests are skipped where it does not answer."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from servers.trino_server import answers

PORT = int(os.environ.get("DECISOR_SPARK_PORT", "15002"))
SPARK = f"sc://127.0.0.1:{PORT}"
DATABASE = f"made_{os.getpid()}"


@contextmanager
def spark_database(statements: Sequence[str]) -> Iterator[str]:
    """A database of its own: gives its URL, and drops it. ``statements`` name it as {schema}."""
    pytest.importorskip("pyspark")
    if not answers(PORT):
        pytest.skip(f"no Spark at 127.0.0.1:{PORT}: tests/servers/spark.sh start")
    from decisor.sandbox.engines.spark import open_spark_session

    session = open_spark_session(SPARK)
    session.sql(f"CREATE DATABASE {DATABASE}")
    try:
        for statement in statements:
            session.sql(statement.format(schema=DATABASE))
        yield f"{SPARK}/{DATABASE}"
    finally:
        session.sql(f"DROP DATABASE {DATABASE} CASCADE")
        session.stop()
