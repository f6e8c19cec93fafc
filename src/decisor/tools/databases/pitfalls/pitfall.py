"""A rule, and what it looks at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block
from decisor.tools.databases.pitfalls.stored import Stored
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.types import Pitfall as Pitfall
from decisor.types import Table

if TYPE_CHECKING:
    from sqlglot import Expr


@dataclass(frozen=True)
class Look:
    """What a rule looks at: a statement as its tree and as its SELECTs, what it brought (None: not known yet), and what
    is stored."""

    tree: Expr
    blocks: tuple[Block, ...]
    dialect: Dialect
    stored: Stored
    result: Table | None = None


Rule = Callable[[Look], Awaitable[list[Pitfall]]]
"""Each has the name of what it notices, and an example in its docstring."""


def short_sql(node: Expr, dialect: Dialect) -> str:
    """A part of the query, as it reads, on one line."""
    text = " ".join(node.sql(dialect=dialect.name, comments=False).split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


MOST_CHARACTERS = 80
