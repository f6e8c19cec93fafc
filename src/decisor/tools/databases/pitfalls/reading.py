"""A statement as its SELECTs: what each FROM names is followed through CTEs, subqueries and views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block, columns_of, conjuncts, is_within
from decisor.tools.databases.pitfalls.catalog import Catalog
from decisor.tools.databases.pitfalls.part import is_plain, part
from decisor.tools.databases.pitfalls.source import FromColumn, FromItem, table_source
from decisor.tools.databases.pitfalls.too_much import TooMuch
from decisor.tools.databases.sandbox.dialect import Dialect

if TYPE_CHECKING:
    from sqlglot import Expr, exp

MOST_BLOCKS = 200
SERIES = ("GENERATE_SERIES", "RANGE")


@dataclass(frozen=True)
class Named:
    """A CTE, with those that it may name itself."""

    cte: exp.CTE
    env: Mapping[str, Named]
    recursive: bool


@dataclass
class QueryReader:
    catalog: Catalog
    dialect: Dialect
    before: str = ""
    within: dict[int, Block] = field(default_factory=dict)

    def whole(self, tree: Expr) -> tuple[Block, ...]:
        """All SELECTs of a statement, those inside first."""
        given_with = tree.args.get("with_")
        self.before = given_with.sql(dialect=self.dialect.name) if given_with else ""
        self.query(tree, {}, None)
        return tuple(self.within.values())

    def query(self, node: Expr, env: Mapping[str, Named], parent: Block | None) -> Block | None:
        """Reads all of it; the block, where it is one SELECT."""
        from sqlglot import exp

        env = self.with_ctes(node, env)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, env, parent)
        if isinstance(node, exp.SetOperation):
            self.query(node.this, env, parent)
            self.query(node.expression, env, parent)
            return None
        return self.block(node, env, parent) if isinstance(node, exp.Select) else None

    def with_ctes(self, node: Expr, env: Mapping[str, Named]) -> Mapping[str, Named]:
        given_with = node.args.get("with_")
        for cte in given_with.expressions if given_with else ():
            env = {**env, cte.alias.lower(): Named(cte, env, bool(given_with and given_with.args.get("recursive")))}
        return env

    def block(self, select: exp.Select, env: Mapping[str, Named], parent: Block | None) -> Block:
        from sqlglot import exp

        if len(self.within) >= MOST_BLOCKS:
            raise TooMuch
        block = Block(select, parent, self.within, before=self.before)
        origin = select.args.get("from_")
        if origin is not None:
            self.add(block, origin.this, env)
        for join in select.args.get("joins") or ():
            self.join(block, join, env)
        where = select.args.get("where")
        block.conditions += [(block, one) for one in conjuncts(where.this if where else None)]
        self.within[id(select)] = block
        read = {id(one) for one in self.within.values()} | set(self.within)
        for inner in list(select.find_all(exp.Select)):
            outermost = inner.parent_select is select or inner.find_ancestor(exp.Select) is select
            if id(inner) not in read and outermost and not in_from(inner, select):
                self.query(inner, env, block)
        return block

    def join(self, block: Block, join: exp.Join, env: Mapping[str, Named]) -> None:
        """Semi-joins add no rows."""
        before = list(block.names)
        side, kind = join.side, join.kind
        if kind in ("SEMI", "ANTI") or side in ("SEMI", "ANTI"):
            return
        own = list(block.sources)
        self.add(block, join.this, env, one_row=join.method == "ASOF" or kind == "ASOF")
        fresh = [one for one in block.sources if one not in own]
        block.nullable |= {*(own if side in ("RIGHT", "FULL") else ()), *(fresh if side in ("LEFT", "FULL") else ())}
        block.conditions += [(block, one) for one in conjuncts(join.args.get("on"))]
        last = list(block.names)[-1] if len(block.names) > len(before) else ""
        if not last:
            return
        names = [one.name.lower() for one in join.args.get("using") or ()]
        if join.method == "NATURAL":
            here = {column for alias in before for column in columns_of(block.names[alias])}
            names = [column for column in columns_of(block.names[last]) if column in here]
        for name in names:
            for alias in before:
                if name in columns_of(block.names[alias]):
                    block.same += list(pairs(block, alias, last, name))

    def add(self, block: Block, node: Expr, env: Mapping[str, Named], one_row: bool = False) -> None:
        """What a FROM or JOIN names."""
        from sqlglot import exp

        inner = node.this if isinstance(node, exp.Subquery | exp.Lateral) else None
        if isinstance(node, exp.Subquery) and inner is not None and not isinstance(node.unnest(), exp.Query):
            self.add(block, with_alias_of(node, inner), env)
        else:
            holder = self.holder(node, env, block)
            if one_row and isinstance(holder, FromItem):
                holder = replace(holder, keys=(frozenset(),))
            alias = (node.alias or node.name or f"?{len(block.names)}").lower()
            block.names[alias] = holder
            block.sources += holder.sources if isinstance(holder, Block) else [holder]
            if isinstance(holder, Block):
                block.conditions += holder.conditions
                block.same += holder.same
                block.nullable |= holder.nullable
            elif isinstance(node, exp.Lateral) and inner is not None:
                block.conditions += outer_conditions(block, holder, inner)
        for join in node.args.get("joins") or ():
            self.join(block, join, env)

    def holder(self, node: Expr, env: Mapping[str, Named], block: Block) -> FromItem | Block:
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
        """A function that brings rows. Of a series each value stands once."""
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

    def named(self, node: exp.Table, env: Mapping[str, Named], renamed: Sequence[str]) -> FromItem | Block:
        """A table, a view or a CTE."""
        name = node.name.lower()
        if not node.db and name in env:
            return self.of_cte(env[name], node.name)
        text = ".".join(self.dialect.quoted(part.name) for part in node.parts)
        if view := self.catalog.view(node):
            return self.derived(view, {}, None, node.name, text, renamed)
        table = self.catalog.table(node)
        return table_source(table, text) if table else FromItem(node.name, None, (), text)

    def of_cte(self, named: Named, name: str) -> FromItem | Block:
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
        self, query: Expr, env: Mapping[str, Named], parent: Block | None, name: str, text: str, renamed: Sequence[str]
    ) -> FromItem | Block:
        """A block where its rows are as they would be without it, else a source of its own."""
        from sqlglot import exp

        query = query.unnest() if isinstance(query, exp.Subquery) else query
        block = self.query(query, env, parent)
        if block is None:
            columns = tuple(renamed) or self.columns_of_set(query)
            distinct = isinstance(query, exp.SetOperation) and query.args.get("distinct") is not False
            keys = (frozenset(columns),) if distinct and columns else ()
            return FromItem(name, columns or None, keys, text, branches=() if distinct else tuple(self.branches(query)))
        block.renamed = tuple(renamed)
        return block if is_plain(block) else part(block, name, text)

    def columns_of_set(self, query: Expr) -> tuple[str, ...]:
        from sqlglot import exp

        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        block = self.within.get(id(query))
        return tuple(block.outputs) if block else ()

    def branches(self, query: Expr) -> Iterator[Block]:
        """The queries of which a set holds the rows."""
        from sqlglot import exp

        query = query.unnest() if isinstance(query, exp.Subquery) else query
        if isinstance(query, exp.Union) and query.args.get("distinct") is False:
            yield from self.branches(query.this)
            yield from self.branches(query.expression)
        elif (block := self.within.get(id(query))) is not None:
            yield block

    def standing(self, node: Expr) -> str:
        """A subquery as it may stand behind FROM of another query."""
        return node.sql(dialect=self.dialect.name, comments=False)


def with_alias_of(brackets: exp.Subquery, inner: Expr) -> Expr:
    """Return what stands in the brackets of ``(orders) AS o``, under the alias behind them."""
    if not brackets.alias or inner.args.get("joins"):
        return inner
    copy = inner.copy()
    copy.set("alias", brackets.args["alias"].copy())
    return copy


def tables_in(query: Expr) -> Iterator[exp.Table]:
    from sqlglot import exp

    yield from query.find_all(exp.Table)


def outer_conditions(block: Block, source: FromItem, query: Expr) -> Iterator[tuple[Block, Expr]]:
    """A row of a lateral subquery is of one row of what it refers to."""
    from sqlglot import exp

    select = query.find(exp.Select)
    inner = block.within.get(id(select))
    for column in select.find_all(exp.Column) if select is not None and inner is not None and source.columns else ():
        if inner is not None and column.table and column.table.lower() not in inner.names:
            name = source.columns[0] if source.columns else ""
            yield block, exp.EQ(this=column.copy(), expression=exp.column(name, table=last_name(block, source)))


def last_name(block: Block, source: FromItem) -> str:
    return next(name for name, one in block.names.items() if one is source)


def in_from(inner: Expr, select: exp.Select) -> bool:
    """Whether it stands in the FROM, a JOIN or the WITH of the select: those are read where they are named."""
    from sqlglot import exp

    around = inner
    while around.parent is not None and around.parent is not select:
        around = around.parent
    if isinstance(around, exp.From | exp.With):
        return True
    on = around.args.get("on") if isinstance(around, exp.Join) else None
    return isinstance(around, exp.Join) and not (on is not None and is_within(inner, on))


def pairs(block: Block, one: str, two: str, name: str) -> Iterator[tuple[FromColumn, FromColumn]]:
    from sqlglot import exp

    a, b = block.bare(exp.column(name, table=one)), block.bare(exp.column(name, table=two))
    if a is not None and b is not None:
        yield a, b
