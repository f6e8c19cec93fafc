"""All rules, and what they notice of one statement."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from decisor.errors import ToolError
from decisor.tools.databases.pitfalls.average_of_averages import average_of_averages
from decisor.tools.databases.pitfalls.catalog import Catalog, catalog_of
from decisor.tools.databases.pitfalls.fan_out import fan_out
from decisor.tools.databases.pitfalls.integer_division import integer_division
from decisor.tools.databases.pitfalls.limit_order import limit_order
from decisor.tools.databases.pitfalls.not_in_nulls import not_in_nulls
from decisor.tools.databases.pitfalls.outer_join import outer_join
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, Rule
from decisor.tools.databases.pitfalls.reading import QueryReader
from decisor.tools.databases.pitfalls.stored import SECONDS, Stored, Within
from decisor.tools.databases.pitfalls.text_dates import text_dates
from decisor.tools.databases.pitfalls.too_much import TooMuch
from decisor.tools.databases.pitfalls.unstored_value import unstored_value
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.naming import FullName
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
    """Of one database. ``tables``: by schema, '' for the default one. ``catalog``: None until a statement needs it."""

    worker: Worker
    dialect: Dialect
    tables: Mapping[FullName, TableInfo]
    stored: Stored
    catalog: Catalog | None = None

    @classmethod
    def of(cls, worker: Worker, dialect: Dialect, tables: Sequence[TableInfo]) -> Pitfalls:
        named = {FullName(table.schema.lower(), table.bare.lower()): table for table in tables}
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
            blocks = QueryReader(await self._catalog(tree), self.dialect).whole(tree)
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
        return lookup is not None and lookup[1].lower() not in self.others

    @cached_property
    def others(self) -> frozenset[str]:
        """Names of views, and of tables outside the default schema."""
        return frozenset(one.name for one, table in self.tables.items() if table.view or one.schema)

    async def _catalog(self, tree: Expr) -> Catalog:
        """With what the database tells of names, once a statement needs it. No view is followed where some rows or
        columns are not for the reader, as its text may tell of them."""
        from sqlglot import exp

        if self.catalog is None:
            if not any(one.db or one.name.lower() in self.others for one in tree.find_all(exp.Table)):
                return Catalog(self.dialect, self.tables)
            try:
                rows = (await self.worker.run(self.dialect.queries.definitions, caps=WIDE, trusted=True)).rows
            except ToolError:
                rows = ()
            catalog = catalog_of(self.dialect, self.tables, rows, self.worker.hidden)
            self.catalog = replace(catalog, texts={}) if self.worker.caps.policy.tables() else catalog
        return self.catalog
