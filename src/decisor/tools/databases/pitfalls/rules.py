"""All rules, and what they notice of one statement."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from decisor.errors import ToolError
from decisor.tools.databases.pitfalls.average_of_averages import average_of_averages
from decisor.tools.databases.pitfalls.fan_out import fan_out
from decisor.tools.databases.pitfalls.integer_division import integer_division
from decisor.tools.databases.pitfalls.limit_order import limit_order
from decisor.tools.databases.pitfalls.not_in_nulls import not_in_nulls
from decisor.tools.databases.pitfalls.outer_join import outer_join
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, Rule
from decisor.tools.databases.pitfalls.reading import Reading, TooMuch
from decisor.tools.databases.pitfalls.stored import SECONDS, Stored, Within
from decisor.tools.databases.pitfalls.text_dates import text_dates
from decisor.tools.databases.pitfalls.unstored_value import unstored_value
from decisor.tools.databases.sandbox.access import query_of
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.sql_catalog import WIDE
from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import Table

if TYPE_CHECKING:
    from sqlglot import Expr

RULES: tuple[Rule, ...] = (
    fan_out,
    outer_join,
    not_in_nulls,
    average_of_averages,
    integer_division,
    limit_order,
    text_dates,
    unstored_value,
)


QUERY = re.compile(r"[\s(]*(--|/\*|SELECT\b|WITH\b|FROM\b)", re.I)
IS_NUMBER = r"[\w.]+\s*(?:=|<=?|>=?)\s*-?\d+(?:\.\d+)?"
LOOKUP = re.compile(
    rf"\s*SELECT\s+[\w.*,\s]+?\s+FROM\s+(\w+)(?:\s+WHERE\s+{IS_NUMBER}(?:\s+AND\s+{IS_NUMBER})*)?\s*;?\s*", re.I
)
"""Columns of one table, by numbers. Where that brings rows, no rule has anything to say of it."""
LONGEST_LOOKUP = 1_000
"""Characters."""


@dataclass(eq=False)
class Pitfalls:
    """Of one database. ``views``: None until a statement names one."""

    worker: Worker
    dialect: Dialect
    tables: Mapping[str, TableInfo]
    stored: Stored
    views: Mapping[str, Expr] | None = field(default=None)

    @classmethod
    def of(cls, worker: Worker, dialect: Dialect, tables: Sequence[TableInfo]) -> Pitfalls:
        named = {table.bare.lower(): table for table in sorted(tables, key=lambda one: not one.schema)}
        return cls(worker, dialect, named, Stored(worker, dialect))

    async def look(
        self, statement: str, result: Table | None = None, rules: Sequence[Rule] = RULES, within: Within | None = None
    ) -> list[Pitfall]:
        """What the rules notice of a statement that the sandbox let through, each thing once. Asks for what is stored
        for at most ``SECONDS``, by queries that ``within`` lets through. A statement that is no query, or cannot be
        followed, has none."""
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        if not QUERY.match(statement) or self.is_lookup(statement, result):
            return []
        try:
            tree = sqlglot.parse_one(statement, dialect=self.dialect.name)
            if not isinstance(tree, exp.Query):
                return []
            views = await self._views(tree)
            blocks = Reading(self.tables, views, self.dialect).whole(tree)
        except (SqlglotError, RecursionError, TooMuch):
            return []
        self.stored.until, self.stored.within = time.monotonic() + SECONDS, within
        look = Look(tree, blocks, self.dialect, self.stored, result)
        pitfalls = [one for rule in rules for one in await rule(look)]
        return list(dict.fromkeys(pitfalls))

    def is_lookup(self, statement: str, result: Table | None) -> bool:
        if result is None or not result.rows or len(statement) > LONGEST_LOOKUP:
            return False
        lookup = LOOKUP.fullmatch(statement)
        return lookup is not None and lookup[1].lower() not in self.view_names

    @cached_property
    def view_names(self) -> frozenset[str]:
        return frozenset(name for name, table in self.tables.items() if table.view)

    async def _views(self, tree: Expr) -> Mapping[str, Expr]:
        """The queries that make the views, read where a statement names one; none where some rows or columns are not
        for the reader, as the text of a view may tell of them."""
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        names = self.view_names
        if not names or self.worker.caps.policy.tables():
            return {}
        if not any(one.name.lower() in names for one in tree.find_all(exp.Table)):
            return {}
        if self.views is None:
            views: dict[str, Expr] = {}
            try:
                rows = (await self.worker.run(self.dialect.queries.definitions, caps=WIDE, trusted=True)).rows
            except ToolError:
                rows = ()
            for name, text, kind in rows:
                if kind == "view" and isinstance(text, str) and str(name).lower() in names:
                    try:
                        view = sqlglot.parse_one(query_of(text), dialect=self.dialect.name)
                        views[str(name).lower()] = view.expression if isinstance(view, exp.Create) else view
                    except (SqlglotError, RecursionError):
                        continue
            self.views = views
        return self.views
