"""One SELECT: its sources, what holds between their columns, and which columns an expression stands on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.source import Dependency, FromColumn, FromItem, closure

if TYPE_CHECKING:
    from sqlglot import Expr, exp


@dataclass(eq=False)
class Block:
    """``names``: what an alias stands for; a part of the query that neither groups nor cuts rows stands there whole,
    and its sources are among these. ``same``: pairs of columns that USING or NATURAL makes equal. ``within``: blocks by
    the identity of their SELECT. ``parent``: the block around it. ``nullable``: sources that an outer
    join may fill with NULL. ``before``: the WITH of the statement."""

    select: exp.Select
    parent: Block | None
    within: dict[int, Block]
    names: dict[str, FromItem | Block] = field(default_factory=dict)
    sources: list[FromItem] = field(default_factory=list)
    conditions: list[tuple[Block, Expr]] = field(default_factory=list)
    same: list[tuple[FromColumn, FromColumn]] = field(default_factory=list)
    nullable: set[FromItem] = field(default_factory=set)
    renamed: tuple[str, ...] = ()
    before: str = ""

    @cached_property
    def outputs(self) -> dict[str, Expr]:
        """The columns that it brings, in lower case, each with its expression."""
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
                for column in columns_of(holder):
                    yield column, exp.column(column, table=name)

    def holder(self, alias: str, column: str) -> FromItem | Block | None:
        """What the column belongs to, of the names in this FROM."""
        if alias:
            return self.names.get(alias)
        known = [one for one in self.names.values() if column in columns_of(one)]
        unknown = [one for one in self.names.values() if isinstance(one, FromItem) and one.columns is None]
        return next(iter([*known, *unknown]), None)

    def origins(self, column: exp.Column) -> frozenset[FromColumn]:
        """The columns of sources that it stands on."""
        name = column.name.lower()
        holder = self.holder(column.table.lower(), name)
        if isinstance(holder, FromItem):
            return frozenset({FromColumn(holder, name)})
        if holder is not None:
            return holder.of(holder.outputs[name]) if name in holder.outputs else frozenset()
        if not column.table and (value := self.aliases.get(name)) is not None and not is_within(column, value):
            return self.of(value)
        return self.parent.origins(column) if self.parent else frozenset()

    @cached_property
    def aliases(self) -> dict[str, Expr]:
        from sqlglot import exp

        return {one.alias.lower(): one.this for one in self.select.expressions if isinstance(one, exp.Alias)}

    def of(self, value: Expr) -> frozenset[FromColumn]:
        """All columns that a value stands on, but for those of queries inside it."""
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
        """The one column of a source that the value is, None where it is anything else."""
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
            return None if is_within(value, inner) else self.bare(inner)
        return self.parent.bare(value) if self.parent else None

    @cached_property
    def dependencies(self) -> list[Dependency]:
        pairs = [Dependency(frozenset({a}), b) for one, two in self.same for a, b in ((one, two), (two, one))]
        return [*pairs, *(one for block, condition in self.conditions for one in block.following(condition))]

    def following(self, condition: Expr) -> Iterator[Dependency]:
        """What an equality makes follow from what."""
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
        return closure(self.sources, known, reached, [*self.dependencies, *more])

    def groups(self) -> list[Expr] | None:
        """What it groups by; None where it does not group. Numbers and aliases are what they stand for."""
        from sqlglot import exp

        group = self.select.args.get("group")
        if group is None:
            return None
        if group.args.get("all"):
            return [one.unalias() for one in self.select.expressions if not one.find(exp.AggFunc)]
        return [self.meant(one) for one in group.expressions]

    def meant(self, value: Expr) -> Expr:
        """A number in GROUP BY or ORDER BY is a column of the result, and so may a name be."""
        from sqlglot import exp

        if isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
            at = int(value.name) - 1
            return self.select.expressions[at].unalias() if at < len(self.select.expressions) else value
        named = isinstance(value, exp.Column) and not value.table
        if named and self.holder("", value.name.lower()) is None:
            return self.aliases.get(value.name.lower(), value)
        return value


def columns_of(holder: FromItem | Block) -> Sequence[str]:
    return list(holder.outputs) if isinstance(holder, Block) else holder.columns or ()


def is_within(node: Expr, value: Expr) -> bool:
    """Whether the node is a part of the value."""
    around: Expr | None = node
    while around is not None and around is not value:
        around = around.parent
    return around is value


def conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """Of ``a AND (b AND c)``: a, b, c."""
    from sqlglot import exp

    if condition is None:
        return
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from conjuncts(condition.this)
        yield from conjuncts(condition.expression)
    else:
        yield condition
