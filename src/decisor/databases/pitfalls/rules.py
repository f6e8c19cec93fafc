"""All rules, and the pitfalls that they find in one statement."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import sqlglot
from sqlglot import Expr, exp
from sqlglot.errors import SqlglotError

from decisor.databases.pitfalls.columns import twin_column, ungrouped_column
from decisor.databases.pitfalls.conditions import and_or, never_true
from decisor.databases.pitfalls.division import integer_division
from decisor.databases.pitfalls.fan_out import fan_out
from decisor.databases.pitfalls.joins import idle_table, keyless_join
from decisor.databases.pitfalls.limit_order import limit_order
from decisor.databases.pitfalls.lost_conditions import (
    lost_bound,
    lost_condition,
    lost_number,
    lost_text,
    unmet_question,
)
from decisor.databases.pitfalls.not_in import not_in_nulls
from decisor.databases.pitfalls.outputs import lost_measure, lost_order, lost_output
from decisor.databases.pitfalls.question import QuestionLog
from decisor.databases.pitfalls.rule import SECONDS, Rule, RuleInput, StoredData
from decisor.databases.pitfalls.statement import Catalog, QueryReader, StatementTooComplex, build_catalog
from decisor.databases.pitfalls.text_dates import text_dates
from decisor.databases.pitfalls.values import misspelt_value, unfounded_value, unstored_value
from decisor.databases.schema import WIDE, TableInfo
from decisor.databases.schema_search import CheckQuery
from decisor.errors import ToolError
from decisor.sandbox.dialect import Dialect, FullName, parse_sql
from decisor.sandbox.process import Worker
from decisor.types import Pitfall, Table

RULES: tuple[Rule, ...] = (
    fan_out,
    not_in_nulls,
    integer_division,
    limit_order,
    text_dates,
    unstored_value,
    keyless_join,
    idle_table,
    and_or,
    never_true,
    ungrouped_column,
    twin_column,
    misspelt_value,
    unfounded_value,
    lost_condition,
    lost_number,
    lost_bound,
    lost_text,
    lost_order,
    lost_measure,
    lost_output,
    unmet_question,
)
QUERY = re.compile(r"[\s(]*(--|/\*|SELECT\b|WITH\b|FROM\b)", re.I)
IS_NUMBER = r"[\w.]+\s*=\s*-?\d+(?:\.\d+)?"
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
        log: QuestionLog | None = None,
    ) -> list[Pitfall]:
        """Return the pitfalls that the rules find in a statement which passed the sandbox, without repeats.

        Stored data is queried for at most ``SECONDS``, by queries that ``check`` lets through. A statement that is no
        query, or cannot be followed, has no pitfalls. With the ``log`` of a question, rules compare the statement with
        the question; what they ask is asked once.
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
            catalog = await self._catalog(tree)
            read = QueryReader.read(tree, catalog, self.dialect)
        except (SqlglotError, RecursionError, StatementTooComplex):
            return []
        self.stored.deadline, self.stored.check = time.monotonic() + SECONDS, check
        log = log or QuestionLog()
        earlier = (*log.statements, *self.parse_beside(statement, log.under_way))
        rule_input = RuleInput(read, self.dialect, self.stored, catalog, result, log.asked, earlier)
        found = dict.fromkeys([pitfall for rule in rules for pitfall in await rule(rule_input)])
        return log.note(tree, found)

    def parse_beside(self, statement: str, under_way: Sequence[str]) -> Iterator[Expr]:
        """Yield the queries that run beside a statement; those that cannot be read are passed over."""
        for text in under_way if len(under_way) > 1 else ():
            if text != statement and isinstance(tree := parse_sql(text, self.dialect.name), exp.Query):
                yield tree

    @cached_property
    def known_tables(self) -> Catalog:
        return Catalog(self.dialect, self.tables)

    @cached_property
    def catalog_names(self) -> frozenset[str]:
        """Names that only the catalog explains: of views, and of tables outside the default schema."""
        return frozenset(full.name for full, table in self.tables.items() if table.view or full.schema)

    async def _catalog(self, tree: Expr) -> Catalog:
        """Return the catalog of views and tables; read it once a statement needs it.

        If some rows or columns are hidden from the reader, no view is followed, as its text may tell of them.
        """
        if self.catalog is None:
            # Without views and schemas, the known tables suffice and no query is spent.
            if not any(node.db or node.name.lower() in self.catalog_names for node in tree.find_all(exp.Table)):
                return self.known_tables
            try:
                rows = (await self.worker.run(self.dialect.queries.definitions, caps=WIDE, trusted=True)).rows
            except ToolError:
                rows = ()
            catalog = build_catalog(self.dialect, self.tables, rows, self.worker.hidden)
            self.catalog = replace(catalog, definitions={}) if self.worker.caps.policy.tables() else catalog
        return self.catalog
