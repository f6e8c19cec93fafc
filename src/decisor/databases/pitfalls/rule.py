"""A rule, its input, and queries about the stored data.

``StoredData`` asks through the sandbox, each thing once: whether columns tell rows apart, hold NULL, hold a value.
These queries go through the guard as an LLM's own do, so they tell nothing that a query may not.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace

from sqlglot import Expr

from decisor.databases.pitfalls.blocks import FromItem, SelectBlock
from decisor.databases.schema_search import CheckQuery
from decisor.errors import ToolError
from decisor.sandbox.dialect import Dialect
from decisor.sandbox.process import Worker
from decisor.types import Pitfall, Table

SECONDS = 2.0
"""For all queries about one statement."""
MAX_CHARS = 80
"""Of a part of the query in a message."""


@dataclass(eq=False)
class StoredData:
    """The answers of a database to queries about its stored data."""

    worker: Worker
    dialect: Dialect
    results: dict[str, Table | None] = field(default_factory=dict)
    """By query; None if it was not answered in time."""
    deadline: float = 0.0
    """Of the current statement, by the monotonic clock."""
    check: CheckQuery | None = None
    """Applied to each query for the current statement."""

    async def rows(self, query: str, max_rows: int = 2) -> Table | None:
        if query not in self.results:
            left = self.deadline - time.monotonic()
            if left <= 0:
                return None
            caps = replace(self.worker.caps, rows=max_rows, cell_chars=200, seconds=min(left, self.worker.caps.seconds))
            try:
                if self.check is not None:
                    await self.check(query)
                self.results[query] = await self.worker.run(query, caps=caps)
            except ToolError:
                # Remembered as unanswered, for the next rule would wait as long.
                self.results[query] = None
        return self.results[query]

    async def has_row(self, query: str) -> bool:
        """Return whether a query returns a row; False if it was not answered."""
        table = await self.rows(query)
        return table is not None and bool(table.rows)

    async def is_unique(self, source: FromItem, columns: Collection[str], with_clause: str = "") -> bool:
        """Return whether no two rows agree in these columns. with_clause: the WITH that names the source.

        A source that cannot be queried counts as unique: no alarm without a reason. A table that takes too long does
        not.
        """
        if source.is_multiple or not source.text:
            return not source.is_multiple
        names = [self.quoted_column(source, name) for name in sorted(columns)]
        filled = " AND ".join(f"{name} IS NOT NULL" for name in names)
        repeated = f"WHERE {filled} GROUP BY {', '.join(names)} HAVING COUNT(*) > 1 LIMIT 1"
        query = f"{with_clause} SELECT 1 FROM {source.text} {repeated if names else 'LIMIT 1 OFFSET 1'}"
        table = await self.rows(query.strip())
        return source.table is None if table is None else not table.rows

    def column_name(self, source: FromItem, column: str) -> str:
        """Return a column as the database spells it."""
        names = [info.name for info in source.table.columns] if source.table else []
        return next((name for name in names if name.lower() == column), column)

    def quoted_column(self, source: FromItem, column: str) -> str:
        return self.dialect.quoted(self.column_name(source, column))


@dataclass(frozen=True)
class RuleInput:
    """A statement as a rule sees it: its tree, its SELECTs, its result and the stored data."""

    tree: Expr
    blocks: tuple[SelectBlock, ...]
    dialect: Dialect
    stored: StoredData
    result: Table | None = None
    """None if it is not known yet."""

    def shorten(self, node: Expr) -> str:
        """Format a part of the query on one line, cut to ``MAX_CHARS``."""
        text = " ".join(node.sql(dialect=self.dialect.name, comments=False).split())
        return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"


Rule = Callable[[RuleInput], Awaitable[list[Pitfall]]]
"""Named for what it detects."""
