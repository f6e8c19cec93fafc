"""Read the SELECTs of a statement: their sources, their parts, and how the rows of each are joined."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from decisor.databases.schema import TableInfo, primary_key_columns

if TYPE_CHECKING:
    from sqlglot import Expr, exp


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
