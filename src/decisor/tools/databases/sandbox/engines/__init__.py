"""The engines by name. To add one: a file here with its ``ENGINE``, and its name in ``NAMES``."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from decisor.errors import SetupError
from decisor.extras import lacks
from decisor.tools.databases.sandbox.engine import Caps, Database, Engine

NAMES = (
    "sqlite",
    "duckdb",
    "postgres",
    "mysql",
    "kglite",
    "bolt",
    "combine",
    "model",
    "spark",
    "trino",
    "clickhouse",
    "alchemy",
)


@cache
def engine(name: str) -> Engine:
    """Raises SetupError where there is none of that name."""
    file, _, member = name.partition(":")
    if file not in NAMES:
        raise SetupError(f"There is no engine {name!r}; there is {', '.join(NAMES)}.")
    if file in ("trino", "clickhouse"):
        return engine(f"alchemy:{file}")
    value: Engine = import_module(f"{__name__}.{file}").ENGINE
    return value.member(member) if member and value.member else value


def connect(name: str, url: str, caps: Caps) -> Database:
    """A database, open. Only the driver that is needed is imported.

    Raises:
        SetupError: no such engine, its package is missing, or the database cannot be opened.
    """
    try:
        return engine(name).connect(url, caps)
    except ModuleNotFoundError as error:
        what = f"{engine(name).title} needs {error.name}"
        raise lacks(what, engine(name).extra) if engine(name).extra else SetupError(f"{what}: install it.") from error
