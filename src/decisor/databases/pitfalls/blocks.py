"""The SELECTs of a statement: the sources of their rows, the keys of these, and which columns follow from which."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

from sqlglot import Dialect, Expr, Generator, exp

from decisor.databases.schema import ColumnInfo, TableInfo

T = TypeVar("T", bound=Expr)


class NodeIndex:
    """Nodes of a tree by their class, found in one walk."""

    def __init__(self, nodes: Iterable[Expr]) -> None:
        self.by_class: dict[type[Expr], list[Expr]] = {}
        for node in nodes:
            self.by_class.setdefault(type(node), []).append(node)
        for base in (exp.AggFunc, exp.Predicate):
            kinds = [kind for kind in self.by_class if issubclass(kind, base)]
            self.by_class[base] = [node for kind in kinds for node in self.by_class[kind]]

    def find(self, *kinds: type[T]) -> Iterator[T]:
        """Yield the nodes of these classes, class by class."""
        for kind in kinds:
            yield from cast("Sequence[T]", self.by_class.get(kind, ()))

    def has(self, *kinds: type[Expr]) -> bool:
        return any(map(self.by_class.get, kinds))


@dataclass(eq=False)
class ParsedStatement:
    """A statement as its tree and its SELECTs."""

    tree: Expr
    dialect: str
    blocks: dict[int, SelectBlock] = field(default_factory=dict)
    """By the identity of their SELECT, inner ones first."""

    @cached_property
    def generator(self) -> Generator:
        return Dialect.get_or_raise(self.dialect).generator(comments=False)

    def write(self, node: Expr) -> str:
        """Return the SQL of a part."""
        # The tree is read by nobody else: a copy of it would take 20 times as long.
        return self.generator.generate(node, copy=False)

    @cached_property
    def with_clause(self) -> str:
        clause = self.tree.args.get("with_")
        return self.write(clause) if clause else ""


@dataclass(eq=False)
class FromItem:
    """A table, or a part of the query, that rows come from. All names are in lower case."""

    name: str
    columns: tuple[str, ...] | None = None
    """None if they are not known."""
    keys: tuple[frozenset[str], ...] = ()
    """Sets of columns that tell its rows apart; an empty set means one row at most."""
    text: str = ""
    """SQL that may stand behind FROM to query it; '' if it cannot be queried by itself."""
    table: TableInfo | None = None
    block: SelectBlock | None = None
    """The SELECT that makes the rows of a part of the query."""
    branches: tuple[SelectBlock, ...] = ()
    """The SELECTs whose rows a UNION ALL puts one after the other."""
    any_key: bool = False
    """Whether each of its columns tells its rows apart."""
    is_multiple: bool = False
    """Whether it has several rows for one row that it is called with."""

    def is_key_fixed(self, columns: Collection[str]) -> bool:
        """Return whether at most one row has given values of these columns."""
        return any(key <= set(columns) for key in self.keys) or (self.any_key and bool(columns))


class FromColumn(NamedTuple):
    """A column of a source."""

    source: FromItem
    column: str


class Dependency(NamedTuple):
    """A column that has one value wherever the columns ``of`` have one. If ``of`` is empty, the column is fixed."""

    of: frozenset[FromColumn]
    column: FromColumn


@dataclass(eq=False)
class SelectBlock:
    """One SELECT of a statement, with its sources and the conditions between their columns."""

    select: exp.Select
    parent: SelectBlock | None
    """The block around this one."""
    statement: ParsedStatement
    names: dict[str, FromItem | SelectBlock] = field(default_factory=dict)
    """Source of each alias. A part that neither groups nor cuts rows is a block; ``sources`` has its sources."""
    sources: list[FromItem] = field(default_factory=list)
    conditions: list[tuple[SelectBlock, Expr]] = field(default_factory=list)
    equal_columns: list[tuple[FromColumn, FromColumn]] = field(default_factory=list)
    """Pairs that USING or NATURAL makes equal."""
    nullable: set[FromItem] = field(default_factory=set)
    """Sources that an outer join may fill with NULL."""
    renamed: tuple[str, ...] = ()

    @cached_property
    def nodes(self) -> NodeIndex:
        """The nodes of this SELECT, without those of SELECTs inside it."""
        return NodeIndex(self.select.walk(prune=lambda node: isinstance(node, exp.Select) and node is not self.select))

    @cached_property
    def aggregates(self) -> list[Expr]:
        # sqlglot has no class for SQLite's total().
        totals = (node for node in self.nodes.find(exp.Anonymous) if node.name.lower() == "total")
        return [*self.nodes.find(exp.AggFunc), *totals]

    def block_of(self, select: Expr | None) -> SelectBlock | None:
        """Return the block of a SELECT of the same statement."""
        return self.statement.blocks.get(id(select))

    @cached_property
    def outputs(self) -> dict[str, Expr]:
        """Output columns in lower case, each with its expression."""
        columns: list[tuple[str, Expr]] = []
        for item in self.select.expressions:
            if isinstance(item, exp.Star | exp.Column) and item.is_star:
                alias = item.table.lower() if isinstance(item, exp.Column) else ""
                columns += [
                    (column, exp.column(column, table=name))
                    for name, holder in self.names.items()
                    if alias in ("", name)
                    for column in output_columns(holder)
                ]
            else:
                columns.append((item.alias_or_name.lower(), item.unalias()))
        if self.renamed:
            columns = [(new, value) for new, (_, value) in zip(self.renamed, columns, strict=False)]
        return dict(columns)

    @cached_property
    def aliases(self) -> dict[str, Expr]:
        return {item.alias.lower(): item.this for item in self.select.expressions if isinstance(item, exp.Alias)}

    def holder(self, alias: str, column: str) -> FromItem | SelectBlock | None:
        """Return the source or block in this FROM that a column belongs to, None if it is not known."""
        if alias:
            return self.names.get(alias)
        holders = [holder for holder in self.names.values() if column in output_columns(holder)]
        unknown = [holder for holder in self.names.values() if isinstance(holder, FromItem) and holder.columns is None]
        return next(iter([*holders, *unknown]), None)

    def origins(self, column: exp.Column) -> frozenset[FromColumn]:
        """Return the columns of sources that a column depends on."""
        name = column.name.lower()
        holder = self.holder(column.table.lower(), name)
        if isinstance(holder, FromItem):
            return frozenset({FromColumn(holder, name)})
        if holder is not None:
            return holder.origins_of_value(holder.outputs[name]) if name in holder.outputs else frozenset()
        # No source has the column: it is an alias of the output, else a column of the query around this one.
        if not column.table and (value := self.aliases.get(name)) is not None and not is_subexpression(column, value):
            return self.origins_of_value(value)
        return self.parent.origins(column) if self.parent else frozenset()

    def origins_of_value(self, value: Expr) -> frozenset[FromColumn]:
        """Return all source columns that a value depends on, except columns of queries inside the value."""
        origins: set[FromColumn] = set()
        for column in value.find_all(exp.Column):
            around = column.parent
            while around is not None and around is not value.parent and not isinstance(around, exp.Select):
                around = around.parent
            inner = self.block_of(around) if around is not value.parent else None
            if inner is None or inner is self:
                origins |= self.origins(column)
            else:
                origins |= {origin for origin in inner.origins(column) if origin.source not in inner.sources}
        return frozenset(origins)

    def source_column(self, value: Expr) -> FromColumn | None:
        """Return the column of a source that the value is, None if the value is anything else."""
        value = value.unnest()
        if not isinstance(value, exp.Column):
            return None
        name = value.name.lower()
        holder = self.holder(value.table.lower(), name)
        if isinstance(holder, FromItem):
            return FromColumn(holder, name)
        if holder is not None:
            return holder.source_column(holder.outputs[name]) if name in holder.outputs else None
        if not value.table and (inner := self.aliases.get(name)) is not None and inner is not value:
            return None if is_subexpression(value, inner) else self.source_column(inner)
        return self.parent.source_column(value) if self.parent else None

    def source_columns(self, values: Iterable[Expr]) -> set[FromColumn]:
        """Return the columns of sources among these values."""
        return {origin for value in values if (origin := self.source_column(value)) is not None}

    @cached_property
    def dependencies(self) -> list[Dependency]:
        pairs = [(a, b) for pair in self.equal_columns for a, b in (pair, pair[::-1])]
        return [
            *(Dependency(frozenset({a}), b) for a, b in pairs),
            *(implied for block, condition in self.conditions for implied in block.following(condition)),
        ]

    def following(self, condition: Expr) -> Iterator[Dependency]:
        """Yield the dependencies that an equality implies."""
        if isinstance(condition, exp.In) and len(condition.expressions) == 1:
            if (origin := self.source_column(condition.this)) is not None:
                yield Dependency(frozenset(), origin)
        elif isinstance(condition, exp.EQ | exp.NullSafeEQ | exp.Is | exp.Like) and not condition.args.get("negate"):
            # LIKE 'paid' and LOWER(status) = 'paid' fix a column as status = 'paid' does, but for its case.
            is_pattern = isinstance(condition, exp.Like) and re.search("[%_]", condition.expression.name)
            sides = (condition.this, condition.expression)
            for side, opposite in () if is_pattern else (sides, sides[::-1]):
                inner = side.this if isinstance(side, exp.Lower | exp.Upper | exp.Trim) else side
                if (origin := self.source_column(inner)) is not None:
                    yield Dependency(self.origins_of_value(opposite), origin)

    def closure(
        self, known: Iterable[FromColumn], reached: Iterable[FromItem], more: Sequence[Dependency] = ()
    ) -> tuple[set[FromColumn], list[FromItem]]:
        """Return the columns with one value, and the sources with one row, that follow from fixed ones.

        Fixed are the columns of ``known`` and one row of each source of ``reached``. Columns of queries around this
        block count as fixed.
        """
        dependencies, reached = [*self.dependencies, *more], set(reached)
        columns, single = set(known), [source for source in self.sources if source in reached]

        def is_known(origin: FromColumn) -> bool:
            return origin in columns or origin.source in single or origin.source not in self.sources

        # The closure of attributes under functional dependencies: repeat until nothing is added.
        is_growing = True
        while is_growing:
            is_growing = False
            for implied in dependencies:
                if not is_known(implied.column) and all(map(is_known, implied.of)):
                    columns.add(implied.column)
                    is_growing = True
            for source in self.sources:
                if source not in single and source.is_key_fixed(columns_of_source(source, columns)):
                    single.append(source)
                    is_growing = True
        return columns, single

    def determines(
        self, known: Iterable[FromColumn], origins: Iterable[FromColumn], more: Sequence[Dependency] = ()
    ) -> bool:
        """Return whether these columns have one value for given values of the known ones."""
        columns, single = self.closure(known, (), more)
        return all(origin in columns or origin.source in single for origin in origins)

    @cached_property
    def groups(self) -> list[Expr] | None:
        """Expressions of GROUP BY, None if there is none. Numbers and aliases are replaced by what they stand for."""
        group = self.select.args.get("group")
        if group is None:
            return None
        # GROUP BY ALL groups by the output columns without an aggregate.
        if group.args.get("all"):
            return [item.unalias() for item in self.select.expressions if not item.find(exp.AggFunc)]
        return [self.meant(value) for value in group.expressions]

    def meant(self, value: Expr) -> Expr:
        """Return the expression behind a number or alias in GROUP BY or ORDER BY: there they name output columns."""
        if isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
            at = int(value.name) - 1
            return self.select.expressions[at].unalias() if at < len(self.select.expressions) else value
        is_bare = isinstance(value, exp.Column) and not value.table
        if is_bare and self.holder("", value.name.lower()) is None:
            return self.aliases.get(value.name.lower(), value)
        return value

    def output_of(self, value: Expr) -> str:
        """Return the output column that is this value, '' if no column is."""
        origin = self.source_column(value)
        for name, output in self.outputs.items():
            if output == value or (origin is not None and self.source_column(output) == origin):
                return name
        return ""

    def has_aggregates(self) -> bool:
        """Return whether the SELECT has an aggregate over its rows."""
        return any(not isinstance(node.parent, exp.Window) for node in self.aggregates)


def columns_of_source(source: FromItem, columns: Iterable[FromColumn]) -> set[str]:
    """Return the names of those columns that are of this source."""
    return {origin.column for origin in columns if origin.source is source}


def find_column(origin: FromColumn) -> ColumnInfo | None:
    """Return the declared column behind a column of a source, None if the source is no table."""
    columns = origin.source.table.columns if origin.source.table else ()
    return next((column for column in columns if column.name.lower() == origin.column), None)


def output_columns(holder: FromItem | SelectBlock) -> Collection[str]:
    return holder.outputs if isinstance(holder, SelectBlock) else holder.columns or ()


def is_subexpression(node: Expr, value: Expr) -> bool:
    """Return whether a node is the value or a part of the value."""
    around: Expr | None = node
    while around is not None and around is not value:
        around = around.parent
    return around is value


def split_conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """Yield the conditions that AND joins: a, b and c for ``a AND (b AND c)``."""
    condition = condition.unnest() if condition is not None else None
    if isinstance(condition, exp.And):
        yield from split_conjuncts(condition.this)
        yield from split_conjuncts(condition.expression)
    elif condition is not None:
        yield condition


def conjuncts_of_clause(select: exp.Select, clause: str) -> list[Expr]:
    """Return the conditions of WHERE or QUALIFY."""
    node = select.args.get(clause)
    return list(split_conjuncts(node.this)) if node else []


def find_aggregates(value: Expr) -> list[Expr]:
    # sqlglot has no class for SQLite's total().
    totals = (node for node in value.find_all(exp.Anonymous) if node.name.lower() == "total")
    return [*value.find_all(exp.AggFunc), *totals]


CUTTING = ("group", "having", "distinct", "limit", "offset", "qualify", "fetch")
"""Clauses after which the rows of a SELECT are not those of its sources."""


def is_plain_select(block: SelectBlock) -> bool:
    """Return whether a SELECT only chooses rows and columns."""
    if not block.sources or any(block.select.args.get(name) for name in CUTTING):
        return False
    return not block.aggregates and not block.nodes.has(exp.Window)


def literal_row_count(limit: Expr | None) -> int | None:
    """Return the number of LIMIT, FETCH or OFFSET if it is a literal, else None.

    A FETCH with ties cuts no equal rows apart: None.
    """
    if limit is None or "TIES" in limit.sql().upper():
        return None
    value = limit.args.get("expression") or limit.args.get("count")
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None


ONE_ROW = frozenset[str]()


def keys_of_block(block: SelectBlock) -> Iterator[frozenset[str]]:
    """Yield the sets of output columns that tell the rows of a SELECT apart."""
    select, groups = block.select, block.groups
    is_one_row = literal_row_count(select.args.get("limit") or select.args.get("fetch")) in (0, 1)
    has_no_source = not block.sources and not select.args.get("from_")
    # One row at most: by LIMIT, without FROM, or as an aggregate without GROUP BY.
    if is_one_row or has_no_source or (groups is None and block.has_aggregates()):
        yield ONE_ROW
    if groups:
        yield from key_of_values(block, groups)
    distinct = select.args.get("distinct")
    if distinct is not None:
        on = distinct.args.get("on")
        values = list(block.outputs.values()) if on is None else on.expressions if isinstance(on, exp.Tuple) else [on]
        yield from key_of_values(block, values)
    elif groups is None:
        yield from row_number_keys(block)
        # A source whose row determines the rows of all others hands on its keys.
        # Reversed, so that of two outputs of one column the first is kept.
        by_origin = {block.source_column(value): name for name, value in reversed(block.outputs.items())}
        for source in block.sources:
            if len(block.closure((), [source])[1]) == len(block.sources):
                for key in source.keys:
                    names = [by_origin.get(FromColumn(source, column), "") for column in key]
                    if all(names):
                        yield frozenset(names)


def key_of_values(block: SelectBlock, values: Iterable[Expr]) -> Iterator[frozenset[str]]:
    """Yield the output columns that are these values, if they form a key. Columns that follow from others are left out.

    A value that is no output column must follow from those that are.
    """
    names: list[str] = []
    hidden: set[FromColumn] = set()
    for value in values:
        if column := block.output_of(value):
            names.append(column)
        else:
            hidden |= block.origins_of_value(value)
    for name in list(names):
        rest = [column for column in names if column != name]
        origins = block.origins_of_value(block.outputs[name])
        if origins and block.determines(block.source_columns(block.outputs[column] for column in rest), origins):
            names = rest
    if block.determines(block.source_columns(block.outputs[column] for column in names), hidden):
        yield frozenset(names)


def row_number_keys(block: SelectBlock) -> Iterator[frozenset[str]]:
    """Yield the keys that ROW_NUMBER() makes.

    Its column and partition tell rows apart; QUALIFY may keep the first row of each partition.
    """
    for name, value in block.outputs.items():
        if isinstance(value, exp.Window) and isinstance(value.this, exp.RowNumber):
            partition = [block.output_of(part) for part in value.args.get("partition_by") or ()]
            if all(partition):
                yield frozenset({name, *partition})
    for condition in conjuncts_of_clause(block.select, "qualify"):
        window = condition.find(exp.Window) if isinstance(condition, exp.EQ) else None
        if window is not None and isinstance(window.this, exp.RowNumber):
            yield from key_of_values(block, window.args.get("partition_by") or ())
