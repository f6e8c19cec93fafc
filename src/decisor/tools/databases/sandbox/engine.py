"""What an engine is: a description of it, one value in its file in ``engines/``, and a database that it has open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.policy import NO_POLICY, Policy
from decisor.tools.databases.sandbox.warehouse import Warehouse
from decisor.types import Table, Value

if TYPE_CHECKING:
    from decisor.tools.databases.sandbox.dialect import Dialect

SECONDS = 20.0
QueryForm = Literal["sql", "cypher", "jobs"]
STOPPED = "Stopped: the query ran for more than {:.3g} s."


@dataclass(frozen=True, slots=True)
class Caps:
    """What one query may cost: rows, characters in a cell, bytes of all cells and names, wall-clock seconds, megabytes.

    ``deny`` names tables (lower case, without schema), or labels and relationship types, that no checked statement may
    read or see. Where ``only`` names some, no other may be. ``policy``: rows and columns that are not for everybody.
    """

    rows: int = 200
    cell_chars: int = 2000
    bytes: int = 1_000_000
    seconds: float = SECONDS
    memory_mb: int = 2048
    deny: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    policy: Policy = NO_POLICY

    @property
    def is_restricted(self) -> bool:
        """Whether tables, rows or columns are kept back."""
        return bool(self.policy or self.deny or self.only)


class ConnectionLost(ToolError):
    """The connection broke off, or what came through it made no sense. The engine has let go of it, and connects anew
    with the next statement."""

    def __init__(self, complaint: str) -> None:
        super().__init__(complaint, outage=True)


class Database(Protocol):
    """One open, read-only database. Synchronous: it lives in the worker process, which the parent may kill."""

    def check(self, statement: str) -> str:
        """The statement to run, written anew from its parse. Raises ToolError(refused=True) with the reason."""
        ...

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        """Raises ToolError with the engine's message, ConnectionLost where another try may help."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Cancellable(Protocol):
    """A database on a server, which may run on when its client is killed."""

    def cancel(self) -> None:
        """From another connection: the server ends what runs on this one."""
        ...


@runtime_checkable
class Planning(Protocol):
    """A graph that tells how it would run a query."""

    def plan(self, statement: str, caps: Caps) -> Table:
        """Of each operator: its name, and how many rows it brings, about. Raises as ``Database.run``."""
        ...


@dataclass(frozen=True)
class Engine:
    """All that the rest of the house asks of an engine.

    ``title``: its name for people and models. ``schemes`` of URLs; ``endings`` of files that need none. ``file``: its
    URL names a file or folder. ``server``: it answers over a network, and may go away and come back. ``connect`` raises
    SetupError, and imports the driver: the description itself is read without it. ``heap``: its memory is reserved
    ahead, and so can only be watched. ``probe``: a statement that runs wherever the server is there.
    ``dialect``: of SQL. ``extra``: the part of the package that holds its driver, where that is installed by choice.
    ``warehouse``: what is particular to one that is read through SQLAlchemy, whose URL is SQLAlchemy's. ``member``:
    where it stands for many, the one of a name; its URL has the name as SCHEME+NAME. ``seconds``: that one query may
    run where nobody says how long. ``plans``: a graph that tells ahead what a query reads (``Planning``).
    """

    name: str
    title: str
    schemes: tuple[str, ...]
    form: QueryForm
    connect: Callable[[str, Caps], Database]
    endings: tuple[str, ...] = ()
    file: bool = False
    server: bool = False
    heap: bool = False
    probe: str = ""
    dialect: Dialect | None = None
    extra: str = ""
    warehouse: Warehouse | None = None
    member: Callable[[str], Engine] | None = None
    seconds: float = SECONDS
    plans: bool = False
