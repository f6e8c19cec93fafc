"""What a worker runs: an engine that checks a statement and runs it within caps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from decisor.errors import SetupError, ToolError
from decisor.types import Table, Value


@dataclass(frozen=True, slots=True)
class Caps:
    """What one query may cost: rows, characters in a cell, bytes of all cells, wall-clock seconds, megabytes.

    ``deny`` names tables (lower case, without schema), or labels and relationship types, that no checked statement may
    read.
    """

    rows: int = 200
    cell_chars: int = 2000
    bytes: int = 1_000_000
    seconds: float = 20.0
    memory_mb: int = 2048
    deny: tuple[str, ...] = ()


class ConnectionLost(ToolError):
    """The connection broke off, or what came through it made no sense. The engine has let go of it, and connects anew
    with the next statement."""

    def __init__(self, complaint: str) -> None:
        super().__init__(complaint, outage=True)


class Engine(Protocol):
    """One open, read-only database. Synchronous: it lives in the worker process, which the parent may kill."""

    def check(self, statement: str) -> str:
        """The statement to run, written anew from its parse. Raises ToolError(refused=True) with the reason."""
        ...

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        """Raises ToolError with the engine's message, ConnectionLost where another try may help."""
        ...

    def close(self) -> None: ...


def connect(name: str, url: str, caps: Caps) -> Engine:
    """The engine of that name, open on ``url``. Only the driver that is needed is imported.

    Raises:
        SetupError: no such engine, its package is missing, or the database cannot be opened.
    """
    import importlib

    if name not in ENGINES:
        raise SetupError(f"There is no engine {name!r}; there is {', '.join(ENGINES)}.")
    try:
        module = importlib.import_module(f"decisor.tools.databases.sandbox.{name}_engine")
    except ModuleNotFoundError as error:
        raise SetupError(f"The engine {name} needs the package {error.name}: install it.") from error
    engine: Engine = module.connect(url, caps)
    return engine


PROBES = {"postgres": "SELECT 1", "mysql": "SELECT 1", "bolt": "RETURN 1"}
"""A statement that every server runs: where it works, the server is there."""

ENGINES = ("sqlite", "duckdb", "postgres", "mysql", "kglite", "arcadedb", "bolt", "scratch")
