"""A statement as its SELECTs: which sources their rows come from, and which columns follow from which others.

``QueryReader`` follows what each FROM names through CTEs, subqueries and views, with the catalog's help. A
``SelectBlock`` has the sources of one SELECT and the conditions between their columns. A part of a query that groups,
cuts or numbers rows is a source of its own (``FromItem``), with the columns that tell its rows apart as keys. A
statement with too many SELECTs is not followed (``StatementTooComplex``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from decisor.databases.schema import TableInfo, primary_key_columns
from decisor.sandbox.access import query_of_view
from decisor.sandbox.dialect import Dialect, FullName, Naming, add_schemas_to_query, build_naming
from decisor.types import Value

if TYPE_CHECKING:
    from sqlglot import Expr, exp


class StatementTooComplex(Exception):
    """A statement with too many SELECTs for the rules to follow."""


@dataclass(eq=False)
class FromItem:
    """A table, or a part of the query, that rows come from.

    Its rows are told apart by ``keys``: each is a set of columns; an empty one means one row at most.

    All names in lower case. ``columns``: None where they are not known. ``text``: what may stand behind FROM to look at
    it, '' where it cannot be looked at by itself. ``block``: of a part of the query, how it is made.
    ``branches``: of rows of several queries, one after the other (UNION ALL), how each is made. ``any_key``: each of
    its columns tells its rows apart. ``many``: it has several rows for one of what it is called with.
    """

    name: str
    columns: tuple[str, ...] | None = None
    keys: tuple[frozenset[str], ...] = ()
    text: str = ""
    table: TableInfo | None = None
    block: SelectBlock | None = None
    branches: tuple[SelectBlock, ...] = ()
    any_key: bool = False
    many: bool = False


class FromColumn(NamedTuple):
    """A column of a source."""

    source: FromItem
    column: str


class Dependency(NamedTuple):
    """A column that has one value wherever the columns ``of`` have one. If ``of`` is empty, the column is fixed."""

    of: frozenset[FromColumn]
    column: FromColumn


def table_source(table: TableInfo, text: str) -> FromItem:
    columns = tuple(column.name.lower() for column in table.columns)
    key = frozenset(column.name.lower() for column in primary_key_columns(table))
    keys = (key,) if key and not table.view else ()
    if table.exact and table.rows is not None and table.rows <= 1 and not table.view:
        keys = (*keys, frozenset())
    return FromItem(table.name, columns, keys, text, table)


def closure_of_columns(
    sources: Sequence[FromItem],
    known: Iterable[FromColumn],
    reached: Iterable[FromItem],
    dependencies: Sequence[Dependency],
) -> tuple[set[FromColumn], list[FromItem]]:
    """Return the columns with one value, and the sources with one row, that follow from fixed ones.

    Fixed are the columns of ``known`` and one row of each source of ``reached``. Columns of other queries around this
    one count as fixed.
    """
    own = set(sources)
    columns, single = set(known), [one for one in sources if one in set(reached)]

    def is_known(origin: FromColumn) -> bool:
        return origin in columns or origin.source in single or origin.source not in own

    grown = True
    while grown:
        grown = False
        for one in dependencies:
            if not is_known(one.column) and all(map(is_known, one.of)):
                columns.add(one.column)
                grown = True
        for source in sources:
            if source not in single and is_key_fixed(
                source, {origin.column for origin in columns if origin.source is source}
            ):
                single.append(source)
                grown = True
    return columns, single


def is_key_fixed(source: FromItem, columns: Collection[str]) -> bool:
    """Return whether at most one row of a source has given values of these columns."""
    return any(key <= set(columns) for key in source.keys) or (source.any_key and bool(columns))


@dataclass(eq=False)
class SelectBlock:
    """One SELECT of a statement, with its sources and the conditions between their columns. names: the source of each
    alias. A part of the query that neither groups nor cuts rows stands there as a block, and its sources are among
    those of this block. same: pairs of columns that USING or NATURAL makes equal. within: all blocks of the
    statement by the identity of their SELECT. parent: the block around this one. nullable: sources that an outer
    join may fill with NULL. before: the WITH of the statement.
    """

    select: exp.Select
    parent: SelectBlock | None
    within: dict[int, SelectBlock]
    names: dict[str, FromItem | SelectBlock] = field(default_factory=dict)
    sources: list[FromItem] = field(default_factory=list)
    conditions: list[tuple[SelectBlock, Expr]] = field(default_factory=list)
    same: list[tuple[FromColumn, FromColumn]] = field(default_factory=list)
    nullable: set[FromItem] = field(default_factory=set)
    renamed: tuple[str, ...] = ()
    before: str = ""

    @cached_property
    def outputs(self) -> dict[str, Expr]:
        """Output columns in lower case, each with its expression."""
        from sqlglot import exp

        columns: list[tuple[str, Expr]] = []
        for one in self.select.expressions:
            star = one.this if isinstance(one, exp.Column) and one.is_star else one
            if isinstance(star, exp.Star):
                alias = one.table.lower() if isinstance(one, exp.Column) else ""
                columns += self._all(alias)
            else:
                columns.append((one.alias_or_name.lower(), one.unalias()))
        if self.renamed:
            columns = [(new, value) for new, (_, value) in zip(self.renamed, columns, strict=False)]
        return dict(columns)

    def _all(self, alias: str) -> Iterator[tuple[str, Expr]]:
        from sqlglot import exp

        for name, holder in self.names.items():
            if not alias or alias == name:
                for column in output_columns(holder):
                    yield column, exp.column(column, table=name)

    def holder(self, alias: str, column: str) -> FromItem | SelectBlock | None:
        """Return the source or block in this FROM that a column belongs to, None if it is not known."""
        if alias:
            return self.names.get(alias)
        known = [one for one in self.names.values() if column in output_columns(one)]
        unknown = [one for one in self.names.values() if isinstance(one, FromItem) and one.columns is None]
        return next(iter([*known, *unknown]), None)

    def origins(self, column: exp.Column) -> frozenset[FromColumn]:
        """Return the columns of sources that a column depends on."""
        name = column.name.lower()
        holder = self.holder(column.table.lower(), name)
        if isinstance(holder, FromItem):
            return frozenset({FromColumn(holder, name)})
        if holder is not None:
            return holder.of(holder.outputs[name]) if name in holder.outputs else frozenset()
        if not column.table and (value := self.aliases.get(name)) is not None and not is_subexpression(column, value):
            return self.of(value)
        return self.parent.origins(column) if self.parent else frozenset()

    @cached_property
    def aliases(self) -> dict[str, Expr]:
        from sqlglot import exp

        return {one.alias.lower(): one.this for one in self.select.expressions if isinstance(one, exp.Alias)}

    def of(self, value: Expr) -> frozenset[FromColumn]:
        """Return all source columns that a value depends on, except columns of queries inside the value."""
        from sqlglot import exp

        origins: set[FromColumn] = set()
        for column in value.find_all(exp.Column):
            around = column.parent
            while around is not None and around is not value.parent and not isinstance(around, exp.Select):
                around = around.parent
            inner = self.within.get(id(around)) if around is not value.parent else None
            if inner is None or inner is self:
                origins |= self.origins(column)
            else:
                origins |= {origin for origin in inner.origins(column) if origin.source not in inner.sources}
        return frozenset(origins)

    def bare(self, value: Expr) -> FromColumn | None:
        """Return the one column of a source that the value is, None if the value is anything else."""
        from sqlglot import exp

        value = value.unnest()
        if not isinstance(value, exp.Column):
            return None
        holder = self.holder(value.table.lower(), value.name.lower())
        if isinstance(holder, FromItem):
            return FromColumn(holder, value.name.lower())
        if holder is not None:
            inner = holder.outputs.get(value.name.lower())
            return holder.bare(inner) if inner is not None else None
        if not value.table and (inner := self.aliases.get(value.name.lower())) is not None and inner is not value:
            return None if is_subexpression(value, inner) else self.bare(inner)
        return self.parent.bare(value) if self.parent else None

    @cached_property
    def dependencies(self) -> list[Dependency]:
        pairs = [Dependency(frozenset({a}), b) for one, two in self.same for a, b in ((one, two), (two, one))]
        return [*pairs, *(one for block, condition in self.conditions for one in block.following(condition))]

    def following(self, condition: Expr) -> Iterator[Dependency]:
        """Yield the dependencies that an equality implies."""
        from sqlglot import exp

        if isinstance(condition, exp.In) and len(condition.expressions) == 1:
            condition = exp.EQ(this=condition.this, expression=condition.expressions[0])
            origin = self.bare(condition.this)
            if origin is not None:
                yield Dependency(frozenset(), origin)
        elif isinstance(condition, exp.EQ | exp.NullSafeEQ | exp.Is) and not condition.args.get("negate"):
            for one, two in ((condition.this, condition.expression), (condition.expression, condition.this)):
                origin = self.bare(one)
                if origin is not None:
                    yield Dependency(self.of(two), origin)

    def closure(
        self, known: Iterable[FromColumn], reached: Iterable[FromItem], more: Sequence[Dependency] = ()
    ) -> tuple[set[FromColumn], list[FromItem]]:
        return closure_of_columns(self.sources, known, reached, [*self.dependencies, *more])

    def groups(self) -> list[Expr] | None:
        """Return the expressions of GROUP BY, None if there is none.

        Numbers and aliases are replaced by the expressions that they stand for.
        """
        from sqlglot import exp

        group = self.select.args.get("group")
        if group is None:
            return None
        if group.args.get("all"):
            return [one.unalias() for one in self.select.expressions if not one.find(exp.AggFunc)]
        return [self.meant(one) for one in group.expressions]

    def meant(self, value: Expr) -> Expr:
        """Return the expression behind a number or alias in GROUP BY or ORDER BY.

        A number there means a column of the result, and so may a name.
        """
        from sqlglot import exp

        if isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
            at = int(value.name) - 1
            return self.select.expressions[at].unalias() if at < len(self.select.expressions) else value
        named = isinstance(value, exp.Column) and not value.table
        if named and self.holder("", value.name.lower()) is None:
            return self.aliases.get(value.name.lower(), value)
        return value


def output_columns(holder: FromItem | SelectBlock) -> Sequence[str]:
    return list(holder.outputs) if isinstance(holder, SelectBlock) else holder.columns or ()


def is_subexpression(node: Expr, value: Expr) -> bool:
    """Return whether a node is the value or a part of the value."""
    around: Expr | None = node
    while around is not None and around is not value:
        around = around.parent
    return around is value


def split_conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """Yield the conditions that AND joins: a, b and c for ``a AND (b AND c)``."""
    from sqlglot import exp

    if condition is None:
        return
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from split_conjuncts(condition.this)
        yield from split_conjuncts(condition.expression)
    else:
        yield condition


CUTTING = ("group", "having", "distinct", "limit", "offset", "qualify", "fetch")
ONE_ROW = frozenset[str]()


def is_plain_select(block: SelectBlock) -> bool:
    """Return whether a SELECT only chooses rows and columns."""
    return (
        bool(block.sources)
        and not any(block.select.args.get(name) for name in CUTTING)
        and not any(has_node_of_block(block, find_aggregates(one) or windows(one)) for one in block.select.expressions)
    )


def has_node_of_block(block: SelectBlock, nodes: Iterable[Expr]) -> bool:
    return any(node.parent_select is block.select for node in nodes)


def find_aggregates(value: Expr) -> list[Expr]:
    from sqlglot import exp

    return [
        *value.find_all(exp.AggFunc),
        *(one for one in value.find_all(exp.Anonymous) if one.name.lower() == "total"),
    ]


def windows(value: Expr) -> list[Expr]:
    from sqlglot import exp

    return list(value.find_all(exp.Window))


def from_item_of_block(block: SelectBlock, name: str, text: str) -> FromItem:
    keys = tuple(dict.fromkeys(keys_of(block)))
    columns = tuple(block.outputs)
    return FromItem(name, columns, keys, text, block=block)


def keys_of(block: SelectBlock) -> Iterator[frozenset[str]]:
    from sqlglot import exp

    select = block.select
    grouped = block.groups()
    limit = select.args.get("limit") or select.args.get("fetch")
    count = limit and (limit.args.get("expression") or limit.args.get("count"))
    if isinstance(count, exp.Literal) and count.name in ("0", "1"):
        yield ONE_ROW
    if not block.sources and not select.args.get("from_"):
        yield ONE_ROW
    if grouped is None and any(own_aggregates(block)):
        yield ONE_ROW
    distinct = select.args.get("distinct")
    if grouped:
        yield from key_of_values(block, grouped)
    if distinct is not None:
        on = distinct.args.get("on")
        if on is not None:
            yield from key_of_values(block, on.expressions if isinstance(on, exp.Tuple) else [on])
        else:
            yield from key_of_values(block, list(block.outputs.values()))
    if grouped is None and distinct is None:
        yield from row_number_keys(block)
        yield from inherited_keys(block)


def own_aggregates(block: SelectBlock) -> Iterator[Expr]:
    from sqlglot import exp

    for one in block.select.expressions:
        for node in find_aggregates(one):
            if node.parent_select is block.select and not isinstance(node.parent, exp.Window):
                yield node


def key_of_values(block: SelectBlock, values: list[Expr]) -> Iterator[frozenset[str]]:
    """Yield the output columns that are these values, if they form a key.

    Columns that follow from the others are left out.
    """
    names: list[str] = []
    without: set[FromColumn] = set()
    for value in values:
        column = output_of(block, value)
        if column:
            names.append(column)
        else:
            without |= block.of(value)
    for name in list(names):
        others = [one for one in names if one != name]
        if is_determined_by_outputs(block, block.of(block.outputs[name]), others):
            names = others
    if not without or is_determined_by_outputs(block, without, names):
        yield frozenset(names)


def output_of(block: SelectBlock, value: Expr) -> str:
    """Return the output column that is this value, '' if no column is."""
    origin = block.bare(value)
    for name, one in block.outputs.items():
        if one == value or (origin is not None and block.bare(one) == origin):
            return name
    return ""


def is_determined_by_outputs(block: SelectBlock, origins: Iterable[FromColumn], names: Iterable[str]) -> bool:
    """Return whether these columns have one value for given values of the named output columns."""
    origins = set(origins)
    known = {origin for name in names if (origin := block.bare(block.outputs[name])) is not None}
    columns, single = block.closure(known, ())
    return bool(origins) and all(one in columns or one.source in single for one in origins)


def row_number_keys(block: SelectBlock) -> Iterator[frozenset[str]]:
    """Yield the keys that ROW_NUMBER() makes.

    Its column and partition tell rows apart; QUALIFY may keep the first row of each partition.
    """
    from sqlglot import exp

    for name, value in block.outputs.items():
        if isinstance(value, exp.Window) and isinstance(value.this, exp.RowNumber):
            partition = [output_of(block, one) for one in value.args.get("partition_by") or ()]
            if all(partition):
                yield frozenset({name, *partition})
    qualify = block.select.args.get("qualify")
    for condition in split_conjuncts(qualify.this if qualify else None):
        window = condition.find(exp.Window) if isinstance(condition, exp.EQ) else None
        if window is not None and isinstance(window.this, exp.RowNumber):
            yield from key_of_values(block, list(window.args.get("partition_by") or ()))


def inherited_keys(block: SelectBlock) -> Iterator[frozenset[str]]:
    """Yield the keys of each source whose row determines the rows of all other sources."""
    by_origin = {block.bare(value): name for name, value in reversed(block.outputs.items())}
    for source in block.sources:
        if len(block.closure((), [source])[1]) == len(block.sources):
            for key in source.keys:
                names = [by_origin.get(FromColumn(source, column), "") for column in key]
                if all(names):
                    yield frozenset(names)


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
