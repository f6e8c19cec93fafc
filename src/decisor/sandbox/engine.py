"""The description of a database engine, its caps, and the interface of a database that it has open.

Each engine is one value ``ENGINE`` in its file in ``engines/``; the description is read without its driver. ``Policy``
holds the rows and columns that are not for every reader, and makes the tokens that stand for masked values.
``Warehouse`` holds the limits of a database that is read through SQLAlchemy. Row and column rules are not applied to
graphs.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from decisor.errors import ToolError
from decisor.sandbox.dialect import FullName, Naming
from decisor.types import Table, Value

if TYPE_CHECKING:
    from decisor.sandbox.dialect import Dialect


TOKEN = re.compile(r"masked_[0-9a-f]{16}")
"""What stands for a masked value."""
EXCERPT = re.compile(r"\s*LINE \d+:.*?(?=\n(?:HINT|DETAIL)|\Z)|\snear '.*", re.S)
"""The place in the statement, as PostgreSQL, DuckDB and MySQL tell it."""
FEWEST = 6
NOT_ON_GRAPHS = (
    "Row and column rules are not applied to graphs. Use the roles of the graph's server, or --deny-tables LABEL."
)
PART = re.compile(r""""[^"]*"|`[^`]*`|\[[^\]]*\]|[^.]+""")


@dataclass(frozen=True, slots=True)
class Policy:
    """The rows and columns that are hidden from a reader."""

    rows: tuple[tuple[str, str], ...] = ()
    """Table, and the condition in SQL that its visible rows fulfil."""
    mask: tuple[str, ...] = ()
    """table.column, whose values are replaced by tokens."""
    key: str = ""
    """Key of the tokens, the same for one session."""
    reveal: bool = False
    """Whether the reader may see the values of tokens."""
    seed: str = ""
    """Text that this machine derives the key from; '' if the key is random."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.mask)

    def tables(self) -> dict[str, TableRule]:
        """Return the rule for each table, by name in lower case without its schema."""
        return {
            name: TableRule(
                tuple(text for table, text in self.rows if bare_table_name(table) == name),
                frozenset(bare_table_name(one) for one in self.mask if name_parts(one)[-2:-1] == (name,)),
            )
            for *_, name in self.places()
        }

    def places(self) -> list[tuple[str, ...]]:
        """Return the tables of the policy, with the schema if one is written."""
        return [*(name_parts(name) for name, _ in self.rows), *(name_parts(name)[:-1] for name in self.mask)]


NO_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class TableRule:
    """The conditions and masks of one table."""

    conditions: tuple[str, ...] = ()
    """All of them must hold."""
    masked: frozenset[str] = frozenset()
    """Columns in lower case."""
    columns: tuple[str, ...] = ()
    """All columns, as they are spelt."""


@dataclass(frozen=True)
class RestrictedTables:
    """The tables whose rows or columns a guard restricts."""

    key: str = ""
    reveal: bool = False
    tables: Mapping[str, TableRule] = field(default_factory=dict)
    """By name, in whichever schema."""
    views: Mapping[FullName, str] = field(default_factory=dict)
    """Queries of the views that read such a table."""
    columns: Mapping[FullName, Sequence[str]] = field(default_factory=dict)
    """Column names of these views."""
    hidden: frozenset[FullName] = frozenset()
    """Other relations that read such a table, and relations that may not be read at all, not even by a view."""
    naming: Naming = field(default_factory=Naming)

    def __bool__(self) -> bool:
        return bool(self.tables)

    def names(self) -> set[str]:
        return {*self.tables, *(one.name for one in self.views)}

    def mentions(self, statement: str) -> bool:
        """Return whether a statement contains the name of a restricted table or view."""
        words = set(re.findall(r"\w+", statement.lower()))
        # Words of a quoted name in any order: a false yes costs a rewrite, a false no would show rows.
        return any(words >= set(re.findall(r"\w+", name)) for name in self.names())

    def without_key(self, text: str) -> str:
        """Return a complaint without the key, and without a piece of the statement that may contain the key."""
        if not self:
            return text
        text = EXCERPT.sub("", text)
        # A complaint that was cut may hold a piece of the key, from its beginning or its end.
        for size in range(len(self.key), FEWEST - 1, -1):
            text = text.replace(self.key[:size], "…").replace(self.key[-size:], "…")
        return text


def build_policy(rows: Mapping[str, str], mask: Iterable[str], reveal: bool = False) -> Policy:
    """Build a policy with a key of its own."""
    return Policy(tuple(rows.items()), tuple(mask), secrets.token_hex(16), reveal)


def token_for(key: str, value: object) -> str | None:
    """Return the token for a value outside a database: the same that databases make from its text."""
    if value is None:
        return None
    # As the databases' own expressions cast it, or tokens of documents and of tables would not match.
    text = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
    return f"masked_{hashlib.sha256(key.encode() + text).hexdigest()[:16]}"


def bare_table_name(name: str) -> str:
    """Return the last part of a name in lower case, without quotes.

    >>> bare_table_name('public."Orders"'), bare_table_name('"odd.name"')
    ('orders', 'odd.name')
    """
    return (name_parts(name) or ("",))[-1]


def name_parts(name: str) -> tuple[str, ...]:
    """Return schema, table and column of a name in lower case; a dot within quotes is part of a name.

    >>> name_parts('Public."Odd.Orders".total')
    ('public', 'odd.orders', 'total')
    """
    return tuple(part.strip().strip('"`[]').lower() for part in PART.findall(name))


def policy_notes(policy: Policy) -> tuple[str, ...]:
    """Return the sentences that tell an LLM about the policy."""
    mask = (
        f"The values of {', '.join(policy.mask)} are masked: a token (masked_...) stands for each, the same for the "
        "same value. Group, join, count and compare by tokens as by values; nothing else can be told from them."
    )
    rows = f"Of {', '.join(name for name, _ in policy.rows)} only some rows are there: those that this reader may see."
    return tuple(text for text, there in ((mask, policy.mask), (rows, policy.rows)) if there)


SECONDS = 60.0
"""That one query may run: a warehouse may have to wake up first."""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """The limits and statements of a database that is read through SQLAlchemy."""

    package: str = ""
    """PyPI package with its SQLAlchemy dialect and driver; '' if the person knows it."""
    opens: tuple[str, ...] = ()
    """Statements run once for a connection."""
    begins: tuple[str, ...] = ()
    """Statements before each query, with ``{seconds}``, ``{ms}`` and ``{rows}`` (one more than may be read)."""
    reads_only: str = ""
    """Which of them allows reading only; '' if none does."""
    ends: str = ""
    """Which of them ends a query that is too long; '' if none does."""
    number: str = ""
    """Query for the connection's own number."""
    kill: str = ""
    """Statement that ends the query on ``{number}``, from another connection."""
    cancels: bool = False
    """Whether its driver can end a query by itself."""
    role: tuple[str, ...] = ()
    """Statements that make a read-only account, for a person."""
    tried: str = ""
    """Real system on which it was run; '' if its SQL was never run."""
    opening: float = 60.0
    """Seconds that it may take to open."""

    def layers(self, masks: bool, rows: bool, plan: str = "") -> tuple[str, ...]:
        """Return the limits that hold here, for people, one line each. masks, rows: whether masked columns and rows of
        a reader are kept. plan: of its dialect.
        """
        ends = f"by the server ({self.ends}), and by" if self.ends else "by"
        way = self.kill or ("by its driver" if self.cancels else "")
        given_up = f"ended on the server ({way})" if way else "the server is not asked to end it"
        ahead = f"estimated before it runs, by {plan}" if plan else "unknown, so a limit is refused"
        policy = {(True, True): "rows and masks", (True, False): "masks; rows are refused"}
        return (
            f"run on a real one: {self.tried}" if self.tried else "never run on a real one",
            "guard: one reading statement, each part of it on a list, rewritten",
            f"reading only: {self.reads_only or 'by the rights of the account alone: use one that may only read'}",
            "rows, bytes, memory: by the worker process",
            f"seconds: {ends} the worker process, which is killed",
            f"an abandoned query: {given_up}",
            f"what a query will read (--max-scan): {ahead}",
            f"row and column access: {policy.get((masks, rows), 'refused')}",
        )


DEFAULT_SECONDS = 20.0
QueryForm = Literal["sql", "cypher", "jobs"]
STOPPED = "Stopped: the query ran for more than {:.3g} s."


@dataclass(frozen=True, slots=True)
class Caps:
    """Upper bounds for one query."""

    rows: int = 200
    cell_chars: int = 2000
    bytes: int = 1_000_000
    """Size of all cells and names."""
    seconds: float = DEFAULT_SECONDS
    """Wall-clock time."""
    memory_mb: int = 2048
    deny: tuple[str, ...] = ()
    """Tables (lower case, without schema), or labels and relationship types, that no statement may read or see."""
    only: tuple[str, ...] = ()
    """Tables that alone may be read; empty means all but the denied ones."""
    policy: Policy = NO_POLICY
    """Rows and columns that are hidden from the reader."""
    role: str = ""
    """Role of the server that statements run in, set when the database is opened; '' for that of the account."""

    @property
    def is_restricted(self) -> bool:
        """Whether tables, rows or columns are hidden."""
        return bool(self.policy or self.deny or self.only)


class ConnectionLost(ToolError):
    """A connection that broke off, or that brought data without sense.

    The engine has let go of it, and connects again with the next statement.
    """

    def __init__(self, complaint: str) -> None:
        super().__init__(complaint, outage=True)


class EngineDatabase(Protocol):
    """One open, read-only database. It is synchronous and lives in the worker process, which the parent may kill."""

    def check(self, statement: str) -> str:
        """Return the statement to run, written anew from its parse. Raises ToolError(refused=True) with the reason."""
        ...

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        """Run a statement. Raises ToolError with the engine's message, or ConnectionLost if another try may help."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Cancellable(Protocol):
    """A database on a server, where a query may run on when its client is killed."""

    def cancel(self) -> None:
        """Cancel the query on this connection, from another connection."""
        ...


@runtime_checkable
class Planning(Protocol):
    """A graph database that can describe its plan for a query."""

    def plan(self, statement: str, caps: Caps) -> Table:
        """Return the name of each operator of the plan and about how many rows it yields.

        Raises as ``EngineDatabase.run``.
        """
        ...


@dataclass(frozen=True)
class Engine:
    """The description of a database engine, which is read without its driver."""

    name: str
    title: str
    """Name for people and LLMs."""
    schemes: tuple[str, ...]
    """Schemes of its URLs."""
    form: QueryForm
    connect: Callable[[str, Caps], EngineDatabase]
    """Opens a database; imports the driver, and raises SetupError."""
    endings: tuple[str, ...] = ()
    """Endings of files that are named without a URL."""
    file: bool = False
    """True if its URL names a file or folder."""
    server: bool = False
    """True if it answers over a network, and may go away and come back."""
    heap: bool = False
    """True if its memory is reserved ahead, so that it can only be watched."""
    probe: str = ""
    """Statement that runs wherever the server is there."""
    dialect: Dialect | None = None
    has_roles: bool = False
    """True if it sets the role of its caps."""
    extra: str = ""
    """Extra of the package that installs its driver; '' if it is always installed."""
    warehouse: Warehouse | None = None
    """Facts of a database that is read through SQLAlchemy, whose URL is SQLAlchemy's."""
    member: Callable[[str], Engine] | None = None
    """Returns the engine for NAME in a URL SCHEME+NAME, where this one stands for many."""
    seconds: float = DEFAULT_SECONDS
    """Limit of a query, unless somebody sets another."""
    plans: bool = False
    """True for a graph that tells ahead what a query reads (``Planning``)."""
