"""A rule, its input, and queries about the stored data.

``StoredData`` asks through the sandbox, each thing once: whether columns tell rows apart, hold NULL, hold a value.
These queries go through the guard as an LLM's own do, so they tell nothing that a query may not.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from decisor.databases.pitfalls.blocks import FromItem, SelectBlock
from decisor.errors import ToolError
from decisor.sandbox.dialect import Dialect
from decisor.sandbox.process import Worker
from decisor.types import Pitfall, Table

if TYPE_CHECKING:
    from sqlglot import Expr


Within: TypeAlias = "Callable[[str], Awaitable[None]]"
"""Raises ToolError where a query would read too much."""
SECONDS = 2.0
"""For all that one statement makes us ask."""


@dataclass(eq=False)
class StoredData:
    """The answers of a database to queries about its stored data. results: by query, None if it was not answered in
    time. until, within: deadline and check for the current statement.
    """

    worker: Worker
    dialect: Dialect
    results: dict[str, Table | None] = field(default_factory=dict)
    until: float = 0.0
    within: Within | None = None

    async def rows(self, query: str, most: int = 2) -> Table | None:
        if query not in self.results:
            left = self.until - time.monotonic()
            if left <= 0:
                return None
            caps = replace(self.worker.caps, rows=most, cell_chars=200, seconds=min(left, self.worker.caps.seconds))
            try:
                if self.within is not None:
                    await self.within(query)
                self.results[query] = await self.worker.run(query, caps=caps)
            except ToolError:
                self.results[query] = None
        return self.results[query]

    async def unique(self, source: FromItem, columns: Collection[str], before: str = "") -> bool:
        """Return whether no two rows agree in these columns. before: the WITH that names the source.

        A source that cannot be queried counts as unique: no alarm without a reason. A table that takes too long does
        not.
        """
        if source.many or not source.text:
            return not source.many
        if not columns:
            return await self.no_row(source, f"{before} SELECT 1 FROM {source.text} LIMIT 1 OFFSET 1".strip())
        names = [self.dialect.quoted(self.written(source, name)) for name in sorted(columns)]
        there = " AND ".join(f"{name} IS NOT NULL" for name in names)
        grouped = f"WHERE {there} GROUP BY {', '.join(names)} HAVING COUNT(*) > 1"
        query = f"{before} SELECT 1 FROM {source.text} {grouped} LIMIT 1"
        return await self.no_row(source, query.strip())

    async def no_row(self, source: FromItem, query: str) -> bool:
        table = await self.rows(query)
        return source.table is None if table is None else not table.rows

    def written(self, source: FromItem, column: str) -> str:
        """Return a column as the database spells it."""
        names = [info.name for info in source.table.columns] if source.table else []
        return next((name for name in names if name.lower() == column), column)


@dataclass(frozen=True)
class RuleInput:
    """A statement as a rule sees it: its tree, its SELECTs, its result and the stored data. result:

    None if it is not known yet.
    """

    tree: Expr
    blocks: tuple[SelectBlock, ...]
    dialect: Dialect
    stored: StoredData
    result: Table | None = None


Rule = Callable[[RuleInput], Awaitable[list[Pitfall]]]
"""Each has the name of what it notices, and an example in its docstring."""


def short_sql(node: Expr, dialect: Dialect) -> str:
    """Format a part of the query on one line, cut to ``MOST_CHARACTERS``."""
    text = " ".join(node.sql(dialect=dialect.name, comments=False).split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


MOST_CHARACTERS = 80
