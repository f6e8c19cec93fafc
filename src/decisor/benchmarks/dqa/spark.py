"""A world in a database of its own on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from decisor.benchmarks.dqa.tables import WorldData, kinds_of, tables_of
from decisor.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

TYPES = {"str": "STRING", "float": "DOUBLE", "int": "INT", "bool": "BOOLEAN"}


def to_spark(world: WorldData, url: str) -> None:
    """Raises SetupError where the database is there, or cannot be written; then nothing of it stays."""
    server, name = parts_of(url)
    session = session_of(server)
    try:
        session.sql(f"CREATE DATABASE `{name}`")
    except Exception as error:  # of Spark, gRPC and Arrow
        raise failure(url, error) from error
    try:
        notes = kinds_of(world)
        for table, columns, rows in tables_of(world):
            kinds = ", ".join(f"`{column}` {TYPES[notes[table][column]]}" for column in columns)
            frame = session.createDataFrame(list(rows), kinds)
            frame.coalesce(1).write.saveAsTable(f"`{name}`.`{table}`")
    except Exception as error:  # of Spark, gRPC and Arrow
        session.sql(f"DROP DATABASE `{name}` CASCADE")
        raise failure(url, error) from error
    finally:
        session.stop()


def drop_spark(place: str) -> None:
    """Raises SetupError where the server does not do it."""
    server, name = parts_of(place)
    session = session_of(server)
    try:
        session.sql(f"DROP DATABASE IF EXISTS `{name}` CASCADE")
    except Exception as error:  # of Spark, gRPC and Arrow
        raise failure(place, error) from error
    finally:
        session.stop()


def parts_of(url: str) -> tuple[str, str]:
    """
    >>> parts_of("sc://host:15002/shop;token=x")
    ('sc://host:15002/;token=x', 'shop')
    """
    parts = urlsplit(url)
    name, mark, options = parts.path.lstrip("/").partition(";")
    return urlunsplit(parts._replace(path=f"/{mark}{options}")), name.replace("`", "``")


def session_of(server: str) -> SparkSession:
    from decisor.tools.databases.sandbox.engines.spark import open_session

    try:
        return open_session(server)
    except ModuleNotFoundError as error:
        from decisor.extras import lacks

        raise lacks("Spark needs pyspark", "spark") from error


def failure(place: str, error: Exception) -> SetupError:
    from decisor.tools.databases.sandbox.engines.spark import plain

    return SetupError(f"Cannot change {place.partition(';')[0]}: {plain(error)}")
