"""A rule, its input, and queries about the stored data.

``StoredData`` asks through the sandbox, each thing once: whether columns tell rows apart, hold NULL, hold a value.
These queries go through the guard as an LLM's own do, so they tell nothing that a query may not.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import FromItem, NodeIndex, ParsedStatement, SelectBlock, T
from decisor.databases.pitfalls.question import NO_QUESTION, AskedQuestion
from decisor.databases.pitfalls.statement import Catalog
from decisor.databases.schema_search import CheckQuery
from decisor.errors import ToolError
from decisor.sandbox.dialect import Dialect
from decisor.sandbox.process import Worker
from decisor.types import Pitfall, Table

COMPARISONS = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
LIKES = exp.Like | exp.ILike
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

    async def is_unique(self, source: FromItem, columns: Collection[str], statement: ParsedStatement) -> bool:
        """Return whether no two rows agree in these columns of a source of a statement.

        A source that cannot be queried counts as unique: no alarm without a reason. A table that takes too long does
        not.
        """
        if source.is_multiple or not source.text:
            return not source.is_multiple
        names = [self.quoted_column(source, name) for name in sorted(columns)]
        filled = " AND ".join(f"{name} IS NOT NULL" for name in names)
        repeated = f"WHERE {filled} GROUP BY {', '.join(names)} HAVING COUNT(*) > 1 LIMIT 1"
        query = f"{statement.with_clause} SELECT 1 FROM {source.text} {repeated if names else 'LIMIT 1 OFFSET 1'}"
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
    """A statement as a rule sees it, with its result, the stored data and the question."""

    statement: ParsedStatement
    dialect: Dialect
    stored: StoredData
    catalog: Catalog
    result: Table | None = None
    """None if it is not known yet."""
    asked: AskedQuestion = NO_QUESTION
    earlier: tuple[Expr, ...] = ()
    """Other statements for the same question: those before it, and those that run beside it."""

    def shorten(self, node: Expr) -> str:
        """Format a part of the query on one line, cut to ``MAX_CHARS``."""
        text = " ".join(self.statement.write(node).split())
        return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"

    def pitfall(self, kind: str, node: Expr, text: str, strength: Literal["wrong", "ask"] = "wrong") -> Pitfall:
        """Return a pitfall of a part of the statement. {} in the text stands for that part."""
        place = self.shorten(node)
        return Pitfall(kind, text.replace("{}", place), strength=strength, place=place)

    @property
    def tree(self) -> Expr:
        return self.statement.tree

    @property
    def blocks(self) -> tuple[SelectBlock, ...]:
        """The SELECTs of the statement, inner ones first."""
        return tuple(self.statement.blocks.values())

    @cached_property
    def nodes(self) -> NodeIndex:
        """All nodes of the statement."""
        return NodeIndex(self.tree.walk())

    def find(self, *kinds: type[T]) -> Iterator[T]:
        """Yield the nodes of these classes."""
        return self.nodes.find(*kinds)

    def has(self, *kinds: type[Expr]) -> bool:
        return self.nodes.has(*kinds)

    def is_in_any(self, *kinds: type[Expr]) -> bool:
        """Return whether this statement, or another for the same question, has a node of these classes."""
        return self.has(*kinds) or any(tree.find(*kinds) for tree in self.earlier)

    @cached_property
    def used_columns(self) -> frozenset[str]:
        """Names of the columns that this statement or an earlier one uses, in lower case."""
        before = (column.name.lower() for tree in self.earlier for column in tree.find_all(exp.Column))
        return frozenset([*(column.name.lower() for column in self.find(exp.Column)), *before])

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The literals of this statement and of earlier ones."""
        before = (literal.name for tree in self.earlier for literal in tree.find_all(exp.Literal))
        return (*(literal.name for literal in self.find(exp.Literal)), *before)

    @cached_property
    def comparisons(self) -> tuple[tuple[Expr, exp.Literal, Expr], ...]:
        """Each value that is compared with a text, the text, and the comparison."""
        found = []
        for node in self.find(
            exp.EQ, exp.NEQ, exp.Like, exp.ILike, exp.In, exp.Between, exp.GT, exp.GTE, exp.LT, exp.LTE
        ):
            is_between = isinstance(node, exp.Between)
            sides = [node.args["low"], node.args["high"]] if is_between else node.expressions or [node.expression]
            pairs = [(node.this, side) for side in sides]
            if isinstance(node, exp.EQ | exp.NEQ):
                pairs.append((node.expression, node.this))
            found += [(value, side, node) for value, side in pairs if isinstance(side, exp.Literal) and side.is_string]
        return tuple(found)

    @property
    def is_answer(self) -> bool:
        """Whether the statement computes, filters or ranks: others look around and lose nothing of a question."""
        return self.has(exp.Where, exp.Having, exp.Group, exp.Order, exp.Count, exp.Sum, exp.Avg, exp.Max, exp.Min)


Rule = Callable[[RuleInput], Awaitable[list[Pitfall]]]
"""Named for what it detects."""
