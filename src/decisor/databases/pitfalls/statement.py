"""A statement as its SELECTs: which sources their rows come from, and which columns follow from which others.

``QueryReader`` follows what each FROM names through CTEs, subqueries and views, with the catalog's help. A
``SelectBlock`` has the sources of one SELECT and the conditions between their columns. A part of a query that groups,
cuts or numbers rows is a source of its own (``FromItem``), with the columns that tell its rows apart as keys. A
statement with too many SELECTs is not followed (``StatementTooComplex``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from decisor.databases.pitfalls.blocks import (
    FromColumn,
    FromItem,
    SelectBlock,
    from_item_of_block,
    is_plain_select,
    is_subexpression,
    output_columns,
    split_conjuncts,
    table_source,
)
from decisor.databases.schema import TableInfo
from decisor.sandbox.access import query_of_view
from decisor.sandbox.dialect import Dialect, FullName, Naming, add_schemas_to_query, build_naming
from decisor.types import Value

if TYPE_CHECKING:
    from sqlglot import Expr, exp


class StatementTooComplex(Exception):
    """A statement with too many SELECTs for the rules to follow."""


@dataclass(frozen=True)
class Catalog:
    """The tables and views of a database as a statement names them. tables: by schema, '' for the default one. texts:
    definitions of the views that may be followed.
    """

    dialect: Dialect
    tables: Mapping[FullName, TableInfo]
    naming: Naming = field(default_factory=Naming)
    texts: Mapping[FullName, str] = field(default_factory=dict)

    def relation(self, node: exp.Table) -> FullName | None:
        """Return the relation that a node names, None if it may be several."""
        relations = self.naming.of(node.name, node.db)
        return min(relations) if len(relations) == 1 else None

    def table(self, node: exp.Table) -> TableInfo | None:
        one = self.relation(node)
        return self.naming.entry(one, self.tables) if one else None

    def view(self, node: exp.Table) -> Expr | None:
        """Return the query of a view, with names qualified so that they mean the same outside the view.

        None for a table, or if the view cannot be followed.
        """
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        one = self.relation(node)
        if one is None or one not in self.texts:
            return None
        try:
            query = sqlglot.parse_one(query_of_view(self.texts[one]), dialect=self.dialect.name)
        except (SqlglotError, RecursionError):
            return None
        return add_schemas_to_query(
            query.expression if isinstance(query, exp.Create) else query, self.naming, one.schema
        )


def build_catalog(
    dialect: Dialect, tables: Mapping[FullName, TableInfo], rows: Sequence[Sequence[Value]], hidden: Iterable[str]
) -> Catalog:
    """Build a catalog. rows: of the dialect's query ``definitions``. hidden: names of views that are not followed,
    spelled as by the catalog's queries.
    """
    texts = {
        FullName(str(schema or "").lower(), str(name).lower()): text
        for name, text, kind, schema, _ in rows
        if kind == "view" and isinstance(text, str)
    }
    unseen = frozenset(hidden)
    texts = {one: text for one, text in texts.items() if ".".join(filter(None, one)) not in unseen}
    return Catalog(dialect, tables, build_naming(rows, dialect.in_views), texts)


MOST_BLOCKS = 200
SERIES = ("GENERATE_SERIES", "RANGE")


@dataclass(frozen=True)
class NamedCte:
    """A CTE with the CTEs that it may name itself."""

    cte: exp.CTE
    env: Mapping[str, NamedCte]
    recursive: bool


@dataclass
class QueryReader:
    catalog: Catalog
    dialect: Dialect
    before: str = ""
    within: dict[int, SelectBlock] = field(default_factory=dict)

    def whole(self, tree: Expr) -> tuple[SelectBlock, ...]:
        """Return all SELECTs of a statement, inner ones first."""
        given_with = tree.args.get("with_")
        self.before = given_with.sql(dialect=self.dialect.name) if given_with else ""
        self.query(tree, {}, None)
        return tuple(self.within.values())

    def query(self, node: Expr, env: Mapping[str, NamedCte], parent: SelectBlock | None) -> SelectBlock | None:
        """Read a whole query; return its block if it is one SELECT, else None."""
        from sqlglot import exp

        env = self.with_ctes(node, env)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, env, parent)
        if isinstance(node, exp.SetOperation):
            self.query(node.this, env, parent)
            self.query(node.expression, env, parent)
            return None
        return self.block(node, env, parent) if isinstance(node, exp.Select) else None

    def with_ctes(self, node: Expr, env: Mapping[str, NamedCte]) -> Mapping[str, NamedCte]:
        given_with = node.args.get("with_")
        for cte in given_with.expressions if given_with else ():
            env = {**env, cte.alias.lower(): NamedCte(cte, env, bool(given_with and given_with.args.get("recursive")))}
        return env

    def block(self, select: exp.Select, env: Mapping[str, NamedCte], parent: SelectBlock | None) -> SelectBlock:
        from sqlglot import exp

        if len(self.within) >= MOST_BLOCKS:
            raise StatementTooComplex
        block = SelectBlock(select, parent, self.within, before=self.before)
        origin = select.args.get("from_")
        if origin is not None:
            self.add(block, origin.this, env)
        for join in select.args.get("joins") or ():
            self.join(block, join, env)
        where = select.args.get("where")
        block.conditions += [(block, one) for one in split_conjuncts(where.this if where else None)]
        self.within[id(select)] = block
        read = {id(one) for one in self.within.values()} | set(self.within)
        for inner in list(select.find_all(exp.Select)):
            outermost = inner.parent_select is select or inner.find_ancestor(exp.Select) is select
            if id(inner) not in read and outermost and not is_in_from_clause(inner, select):
                self.query(inner, env, block)
        return block

    def join(self, block: SelectBlock, join: exp.Join, env: Mapping[str, NamedCte]) -> None:
        """Add a JOIN to a block. Semi-joins add no rows and are left out."""
        before = list(block.names)
        side, kind = join.side, join.kind
        if kind in ("SEMI", "ANTI") or side in ("SEMI", "ANTI"):
            return
        own = list(block.sources)
        self.add(block, join.this, env, one_row=join.method == "ASOF" or kind == "ASOF")
        fresh = [one for one in block.sources if one not in own]
        block.nullable |= {*(own if side in ("RIGHT", "FULL") else ()), *(fresh if side in ("LEFT", "FULL") else ())}
        block.conditions += [(block, one) for one in split_conjuncts(join.args.get("on"))]
        last = list(block.names)[-1] if len(block.names) > len(before) else ""
        if not last:
            return
        names = [one.name.lower() for one in join.args.get("using") or ()]
        if join.method == "NATURAL":
            here = {column for alias in before for column in output_columns(block.names[alias])}
            names = [column for column in output_columns(block.names[last]) if column in here]
        for name in names:
            for alias in before:
                if name in output_columns(block.names[alias]):
                    block.same += list(equal_column_pairs(block, alias, last, name))

    def add(self, block: SelectBlock, node: Expr, env: Mapping[str, NamedCte], one_row: bool = False) -> None:
        """Add the relation that a FROM or JOIN names to a block."""
        from sqlglot import exp

        inner = node.this if isinstance(node, exp.Subquery | exp.Lateral) else None
        if isinstance(node, exp.Subquery) and inner is not None and not isinstance(node.unnest(), exp.Query):
            self.add(block, with_outer_alias(node, inner), env)
        else:
            holder = self.holder(node, env, block)
            if one_row and isinstance(holder, FromItem):
                holder = replace(holder, keys=(frozenset(),))
            alias = (node.alias or node.name or f"?{len(block.names)}").lower()
            block.names[alias] = holder
            block.sources += holder.sources if isinstance(holder, SelectBlock) else [holder]
            if isinstance(holder, SelectBlock):
                block.conditions += holder.conditions
                block.same += holder.same
                block.nullable |= holder.nullable
            elif isinstance(node, exp.Lateral) and inner is not None:
                block.conditions += lateral_conditions(block, holder, inner)
        for join in node.args.get("joins") or ():
            self.join(block, join, env)

    def holder(self, node: Expr, env: Mapping[str, NamedCte], block: SelectBlock) -> FromItem | SelectBlock:
        from sqlglot import exp

        renamed = tuple(name.lower() for name in node.alias_column_names) if hasattr(node, "alias_column_names") else ()
        inner = node.this
        lateral = isinstance(node, exp.Lateral) and isinstance(inner.unnest(), exp.Query)
        if isinstance(node, exp.Subquery) or lateral:
            text = "" if lateral else self.standing(node)
            return self.derived(inner, env, block, node.alias or "the subquery", text, renamed)
        if isinstance(node, exp.Table) and isinstance(inner, exp.Identifier):
            return self.named(node, env, renamed)
        if isinstance(node, exp.Values):
            return FromItem(node.alias or "VALUES", renamed or None, (), "", any_key=True)
        return self.called(node)

    def called(self, node: Expr) -> FromItem:
        """Return the source for a function that returns rows. In a series each value occurs once."""
        from sqlglot import exp

        text = self.without_alias(node)
        name = text.partition("(")[0].split()[-1:] or ["?"]
        inside = next(node.find_all(exp.Column), None) is not None
        return FromItem(name[0].lower(), None, (), text, any_key=name[0].upper() in SERIES, many=inside)

    def without_alias(self, node: Expr) -> str:
        copy = node.copy()
        copy.set("alias", None)
        copy.set("joins", None)
        return copy.sql(dialect=self.dialect.name, comments=False)

    def named(self, node: exp.Table, env: Mapping[str, NamedCte], renamed: Sequence[str]) -> FromItem | SelectBlock:
        """Return the source for a table, a view or a CTE."""
        name = node.name.lower()
        if not node.db and name in env:
            return self.of_cte(env[name], node.name)
        text = ".".join(self.dialect.quoted(part.name) for part in node.parts)
        if view := self.catalog.view(node):
            return self.derived(view, {}, None, node.name, text, renamed)
        table = self.catalog.table(node)
        return table_source(table, text) if table else FromItem(node.name, None, (), text)

    def of_cte(self, named: NamedCte, name: str) -> FromItem | SelectBlock:
        cte = named.cte
        renamed = tuple(one.lower() for one in cte.alias_column_names)
        query = cte.this.copy()
        within = {one.lower() for one in (table.name for table in tables_in(query))}
        if named.recursive and name.lower() in within:
            counted = within <= {name.lower()}
            text = self.dialect.quoted(cte.alias) if self.before else ""
            return FromItem(name, renamed or None, (), "" if counted else text, any_key=counted)
        return self.derived(query, named.env, None, name, cte.alias if self.before else "", renamed)

    def derived(
        self,
        query: Expr,
        env: Mapping[str, NamedCte],
        parent: SelectBlock | None,
        name: str,
        text: str,
        renamed: Sequence[str],
    ) -> FromItem | SelectBlock:
        """Return a block for a query that only chooses rows and columns, else a source of its own."""
        from sqlglot import exp

        query = query.unnest() if isinstance(query, exp.Subquery) else query
        block = self.query(query, env, parent)
        if block is None:
            columns = tuple(renamed) or self.columns_of_set(query)
            distinct = isinstance(query, exp.SetOperation) and query.args.get("distinct") is not False
            keys = (frozenset(columns),) if distinct and columns else ()
            return FromItem(name, columns or None, keys, text, branches=() if distinct else tuple(self.branches(query)))
        block.renamed = tuple(renamed)
        return block if is_plain_select(block) else from_item_of_block(block, name, text)

    def columns_of_set(self, query: Expr) -> tuple[str, ...]:
        from sqlglot import exp

        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        block = self.within.get(id(query))
        return tuple(block.outputs) if block else ()

    def branches(self, query: Expr) -> Iterator[SelectBlock]:
        """Yield the queries whose rows a UNION ALL joins."""
        from sqlglot import exp

        query = query.unnest() if isinstance(query, exp.Subquery) else query
        if isinstance(query, exp.Union) and query.args.get("distinct") is False:
            yield from self.branches(query.this)
            yield from self.branches(query.expression)
        elif (block := self.within.get(id(query))) is not None:
            yield block

    def standing(self, node: Expr) -> str:
        """Format a subquery so that it may stand behind FROM in another query."""
        return node.sql(dialect=self.dialect.name, comments=False)


def with_outer_alias(brackets: exp.Subquery, inner: Expr) -> Expr:
    """Return the inner part of ``(orders) AS o`` under the alias behind the brackets."""
    if not brackets.alias or inner.args.get("joins"):
        return inner
    copy = inner.copy()
    copy.set("alias", brackets.args["alias"].copy())
    return copy


def tables_in(query: Expr) -> Iterator[exp.Table]:
    from sqlglot import exp

    yield from query.find_all(exp.Table)


def lateral_conditions(block: SelectBlock, source: FromItem, query: Expr) -> Iterator[tuple[SelectBlock, Expr]]:
    """Yield equalities that tie a row of a lateral subquery to one row of each outer relation it names."""
    from sqlglot import exp

    select = query.find(exp.Select)
    inner = block.within.get(id(select))
    for column in select.find_all(exp.Column) if select is not None and inner is not None and source.columns else ():
        if inner is not None and column.table and column.table.lower() not in inner.names:
            name = source.columns[0] if source.columns else ""
            yield block, exp.EQ(this=column.copy(), expression=exp.column(name, table=last_name(block, source)))


def last_name(block: SelectBlock, source: FromItem) -> str:
    return next(name for name, one in block.names.items() if one is source)


def is_in_from_clause(inner: Expr, select: exp.Select) -> bool:
    """Return whether a SELECT stands in the FROM, a JOIN or the WITH of another.

    Such SELECTs are read where they are named.
    """
    from sqlglot import exp

    around = inner
    while around.parent is not None and around.parent is not select:
        around = around.parent
    if isinstance(around, exp.From | exp.With):
        return True
    on = around.args.get("on") if isinstance(around, exp.Join) else None
    return isinstance(around, exp.Join) and not (on is not None and is_subexpression(inner, on))


def equal_column_pairs(block: SelectBlock, one: str, two: str, name: str) -> Iterator[tuple[FromColumn, FromColumn]]:
    from sqlglot import exp

    a, b = block.bare(exp.column(name, table=one)), block.bare(exp.column(name, table=two))
    if a is not None and b is not None:
        yield a, b
