"""All rules, and the pitfalls that they find in one statement."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import sqlglot
from sqlglot import Expr, exp
from sqlglot.errors import SqlglotError

from decisor.databases.pitfalls.arithmetic import average_of_averages, fan_out, integer_division
from decisor.databases.pitfalls.filters import limit_order, not_in_nulls, outer_join, text_dates, unstored_value
from decisor.databases.pitfalls.rule import SECONDS, Rule, RuleInput, StoredData
from decisor.databases.pitfalls.statement import Catalog, QueryReader, StatementTooComplex, build_catalog
from decisor.databases.schema import WIDE, TableInfo
from decisor.databases.schema_search import CheckQuery
from decisor.errors import ToolError
from decisor.sandbox.dialect import Dialect, FullName
from decisor.sandbox.process import Worker
from decisor.types import Pitfall, Table

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
"""Columns of one table, by numbers. If that returns rows, no rule has anything to say about it."""
MAX_LOOKUP_CHARS = 1_000


@dataclass(eq=False)
class Pitfalls:
    """The rules for the statements of one database."""

    worker: Worker
    dialect: Dialect
    tables: Mapping[FullName, TableInfo]
    """By schema, '' for the default one."""
    stored: StoredData
    catalog: Catalog | None = None
    """None until a statement needs it."""

    @classmethod
    def of(cls, worker: Worker, dialect: Dialect, tables: Sequence[TableInfo]) -> Pitfalls:
        by_name = {FullName(table.schema.lower(), table.bare.lower()): table for table in tables}
        return cls(worker, dialect, by_name, StoredData(worker, dialect))

    async def look(
        self,
        statement: str,
        result: Table | None = None,
        rules: Sequence[Rule] = RULES,
        check: CheckQuery | None = None,
    ) -> list[Pitfall]:
        """Return the pitfalls that the rules find in a statement which passed the sandbox, without repeats.

        Stored data is queried for at most ``SECONDS``, by queries that ``check`` lets through. A statement that is no
        query, or cannot be followed, has no pitfalls.
        """
        if not QUERY.match(statement):
            return []
        if result is not None and result.rows and len(statement) <= MAX_LOOKUP_CHARS:
            lookup = LOOKUP.fullmatch(statement)
            if lookup is not None and lookup[1].lower() not in self.catalog_names:
                return []
        try:
            tree = sqlglot.parse_one(statement, dialect=self.dialect.name)
            if not isinstance(tree, exp.Query):
                return []
            blocks = QueryReader(await self._catalog(tree), self.dialect).read(tree)
        except (SqlglotError, RecursionError, StatementTooComplex):
            return []
        self.stored.deadline, self.stored.check = time.monotonic() + SECONDS, check
        rule_input = RuleInput(tree, blocks, self.dialect, self.stored, result)
        return list(dict.fromkeys([pitfall for rule in rules for pitfall in await rule(rule_input)]))

    @cached_property
    def catalog_names(self) -> frozenset[str]:
        """Names that only the catalog explains: of views, and of tables outside the default schema."""
        return frozenset(full.name for full, table in self.tables.items() if table.view or full.schema)

    async def _catalog(self, tree: Expr) -> Catalog:
        """Return the catalog; read it from the database once a statement needs it.

        If some rows or columns are hidden from the reader, no view is followed, as its text may tell of them.
        """
        if self.catalog is None:
            # Without views and schemas, the known tables suffice and no query is spent.
            if not any(node.db or node.name.lower() in self.catalog_names for node in tree.find_all(exp.Table)):
                return Catalog(self.dialect, self.tables)
            try:
                rows = (await self.worker.run(self.dialect.queries.definitions, caps=WIDE, trusted=True)).rows
            except ToolError:
                rows = ()
            catalog = build_catalog(self.dialect, self.tables, rows, self.worker.hidden)
            self.catalog = replace(catalog, definitions={}) if self.worker.caps.policy.tables() else catalog
        return self.catalog
