"""Which rows of a table, and which columns, are not for everybody."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from decisor.tools.databases.sandbox.naming import FullName, Naming

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
    """``rows``: a table, and the condition in SQL that its rows fulfil. ``mask``: table.column, of which tokens stand
    for the values. ``key``: of the tokens, the same for one session. ``reveal``: whether the reader may see what they
    stand for. ``seed``: what this machine makes the key of, '' where it is drawn."""

    rows: tuple[tuple[str, str], ...] = ()
    mask: tuple[str, ...] = ()
    key: str = ""
    reveal: bool = False
    seed: str = ""

    def __bool__(self) -> bool:
        return bool(self.rows or self.mask)

    def tables(self) -> dict[str, TableRule]:
        """By name in lower case, without its schema."""
        return {
            name: TableRule(
                tuple(text for table, text in self.rows if bare(table) == name),
                frozenset(bare(one) for one in self.mask if name_parts(one)[-2:-1] == (name,)),
            )
            for *_, name in self.places()
        }

    def places(self) -> list[tuple[str, ...]]:
        """Its tables, with the schema where one is written."""
        return [*(name_parts(name) for name, _ in self.rows), *(name_parts(name)[:-1] for name in self.mask)]


NO_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class TableRule:
    """``conditions``: all must hold. ``masked``: columns in lower case. ``columns``: all, as they are spelt."""

    conditions: tuple[str, ...] = ()
    masked: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restricted:
    """What a guard keeps to. ``tables``: by name, in whichever schema. ``views``: the queries of those that read such a
    table; ``columns``: what theirs are called. ``hidden``: what else does, and what may not be read at all, also by a
    view."""

    key: str = ""
    reveal: bool = False
    tables: Mapping[str, TableRule] = field(default_factory=dict)
    views: Mapping[FullName, str] = field(default_factory=dict)
    columns: Mapping[FullName, Sequence[str]] = field(default_factory=dict)
    hidden: frozenset[FullName] = frozenset()
    naming: Naming = field(default_factory=Naming)

    def __bool__(self) -> bool:
        return bool(self.tables)

    def names(self) -> set[str]:
        return {*self.tables, *(one.name for one in self.views)}

    def mentions(self, statement: str) -> bool:
        """Whether a name of them is a word of the statement."""
        words = set(re.findall(r"\w+", statement.lower()))
        return any(words >= set(re.findall(r"\w+", name)) for name in self.names())

    def without_key(self, text: str) -> str:
        """A complaint without the key, or a piece of the statement in which it stands."""
        if not self:
            return text
        text = EXCERPT.sub("", text)
        for size in range(len(self.key), FEWEST - 1, -1):
            text = text.replace(self.key[:size], "…").replace(self.key[-size:], "…")
        return text


def policy_of(rows: Mapping[str, str], mask: Iterable[str], reveal: bool = False) -> Policy:
    """With a key of its own."""
    return Policy(tuple(rows.items()), tuple(mask), secrets.token_hex(16), reveal)


def token_for(key: str, value: object) -> str | None:
    """What stands for a value outside a database: the same that databases make of its text."""
    if value is None:
        return None
    text = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
    return f"masked_{hashlib.sha256(key.encode() + text).hexdigest()[:16]}"


def bare(name: str) -> str:
    """
    >>> bare('public."Orders"'), bare('"odd.name"')
    ('orders', 'odd.name')
    """
    return (name_parts(name) or ("",))[-1]


def name_parts(name: str) -> tuple[str, ...]:
    """Return schema, table and column of a name in lower case; a dot within quotes is part of a name.

    >>> name_parts('Public."Odd.Orders".total')
    ('public', 'odd.orders', 'total')
    """
    return tuple(part.strip().strip('"`[]').lower() for part in PART.findall(name))


def notes_of(policy: Policy) -> tuple[str, ...]:
    """What a model is told of it."""
    mask = (
        f"The values of {', '.join(policy.mask)} are masked: a token (masked_...) stands for each, the same for the "
        "same value. Group, join, count and compare by tokens as by values; nothing else can be told from them."
    )
    rows = f"Of {', '.join(name for name, _ in policy.rows)} only some rows are there: those that this reader may see."
    return tuple(text for text, there in ((mask, policy.mask), (rows, policy.rows)) if there)
