"""What is stored, asked through the sandbox, each thing once: whether columns tell rows apart, hold NULL, hold a value.

Questions go through the guard as a model's own do, so they tell nothing that a query may not."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from decisor.errors import ToolError
from decisor.tools.databases.pitfalls.source import FromItem
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.process import Worker
from decisor.types import Table

Within: TypeAlias = "Callable[[str], Awaitable[None]]"
"""Raises ToolError where a query would read too much."""
SECONDS = 2.0
"""For all that one statement makes us ask."""


@dataclass(eq=False)
class Stored:
    """``results``: of each question, None where it was not answered in time. ``until`` and ``within``: of the
    statement at hand."""

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
        """Whether no two rows agree in these columns. ``before``: the WITH that names the source. What
        cannot be looked at counts as such: no alarm without a reason. A table that takes too long does not."""
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
        """A column as the database spells it."""
        names = [info.name for info in source.table.columns] if source.table else []
        return next((name for name in names if name.lower() == column), column)
