"""All rules, and what they notice of one statement."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from decisor.databases.pitfalls.arithmetic import average_of_averages, fan_out, integer_division
from decisor.databases.pitfalls.filters import limit_order, not_in_nulls, outer_join, text_dates, unstored_value
from decisor.databases.pitfalls.rule import SECONDS, Rule, RuleInput, StoredData, Within
from decisor.databases.pitfalls.statement import Catalog, QueryReader, StatementTooComplex, build_catalog
from decisor.databases.schema import WIDE, TableInfo
from decisor.errors import ToolError
from decisor.sandbox.dialect import Dialect, FullName
from decisor.sandbox.process import Worker
from decisor.types import Pitfall, Table

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
    """The rules for the statements of one database. tables: by schema, '' for the default one. catalog:

    None until a statement needs it.
    """

    worker: Worker
    dialect: Dialect
    tables: Mapping[FullName, TableInfo]
    stored: StoredData
    catalog: Catalog | None = None

    @classmethod
    def of(cls, worker: Worker, dialect: Dialect, tables: Sequence[TableInfo]) -> Pitfalls:
        named = {FullName(table.schema.lower(), table.bare.lower()): table for table in tables}
        return cls(worker, dialect, named, StoredData(worker, dialect))

    async def look(
        self, statement: str, result: Table | None = None, rules: Sequence[Rule] = RULES, within: Within | None = None
    ) -> list[Pitfall]:
        """Return the pitfalls that the rules find in a statement which passed the sandbox, without repeats.

        Stored data is queried for at most ``SECONDS``, by queries that ``within`` lets through. A statement that is no
        query, or cannot be followed, has no pitfalls.
        """
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
        except (SqlglotError, RecursionError, StatementTooComplex):
            return []
        self.stored.until, self.stored.within = time.monotonic() + SECONDS, within
        look = RuleInput(tree, blocks, self.dialect, self.stored, result)
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
        """Return the catalog; read it from the database once a statement needs it.

        If some rows or columns are hidden from the reader, no view is followed, as its text may tell of them.
        """
        from sqlglot import exp

        if self.catalog is None:
            if not any(one.db or one.name.lower() in self.others for one in tree.find_all(exp.Table)):
                return Catalog(self.dialect, self.tables)
            try:
                rows = (await self.worker.run(self.dialect.queries.definitions, caps=WIDE, trusted=True)).rows
            except ToolError:
                rows = ()
            catalog = build_catalog(self.dialect, self.tables, rows, self.worker.hidden)
            self.catalog = replace(catalog, texts={}) if self.worker.caps.policy.tables() else catalog
        return self.catalog
