"""What the database tells of the relations that a statement names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decisor.tools.databases.sandbox.access import query_of
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.naming import FullName, Naming, naming_of, with_schemas
from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import Value

if TYPE_CHECKING:
    from sqlglot import Expr, exp


@dataclass(frozen=True)
class Catalog:
    """``tables``: by schema, '' for the default one. ``texts``: of the views that may be followed."""

    dialect: Dialect
    tables: Mapping[FullName, TableInfo]
    naming: Naming = field(default_factory=Naming)
    texts: Mapping[FullName, str] = field(default_factory=dict)

    def relation(self, node: exp.Table) -> FullName | None:
        """None where it may be several."""
        relations = self.naming.of(node.name, node.db)
        return min(relations) if len(relations) == 1 else None

    def table(self, node: exp.Table) -> TableInfo | None:
        one = self.relation(node)
        return self.naming.entry(one, self.tables) if one else None

    def view(self, node: exp.Table) -> Expr | None:
        """Its query, with names that mean the same outside it; None for a table, or where it cannot be followed."""
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        one = self.relation(node)
        if one is None or one not in self.texts:
            return None
        try:
            query = sqlglot.parse_one(query_of(self.texts[one]), dialect=self.dialect.name)
        except (SqlglotError, RecursionError):
            return None
        return with_schemas(query.expression if isinstance(query, exp.Create) else query, self.naming, one.schema)


def catalog_of(
    dialect: Dialect, tables: Mapping[FullName, TableInfo], rows: Sequence[Sequence[Value]], hidden: Iterable[str]
) -> Catalog:
    """``rows`` of ``definitions``. ``hidden``: names of views that are not followed, as the catalog's queries have
    them."""
    texts = {FullName(str(schema or "").lower(), str(name).lower()): text for name, text, kind, schema, _ in rows
             if kind == "view" and isinstance(text, str)}  # fmt: skip
    unseen = frozenset(hidden)
    texts = {one: text for one, text in texts.items() if ".".join(filter(None, one)) not in unseen}
    return Catalog(dialect, tables, naming_of(rows, dialect.in_views), texts)
