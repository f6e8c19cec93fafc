"""Pitfalls of arithmetic: multiplied rows in a sum, an average of averages, a division of whole numbers.

    SELECT SUM(o.total) FROM orders o JOIN order_items i ON i.order_id = o.id

takes an order's total once for each of its items (fan_out). A value is multiplied by each source that may have several
rows for one row of the value's source: whose key does not follow from the row, from what the query groups by, and from
what its conditions fix. Keys are those that the database declares; if they do not suffice, the stored rows are looked
at. MIN, MAX and DISTINCT are not affected.

    SELECT AVG(a) FROM (SELECT customer_id, AVG(total) AS a FROM orders GROUP BY customer_id) x

counts a customer with one order as much as one with a hundred: it is not the average of the orders
(average_of_averages).

    SELECT COUNT(CASE WHEN status = 'paid' THEN 1 END) / COUNT(*) FROM orders

is 0 unless all are paid, as ``/`` drops the fraction in SQLite and PostgreSQL (integer_division). ``a / 10 * 10`` and
what a query groups by mean it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decisor.databases.pitfalls.blocks import (
    Dependency,
    FromColumn,
    FromItem,
    SelectBlock,
    find_aggregates,
    split_conjuncts,
)
from decisor.databases.pitfalls.rule import RuleInput, StoredData, short_sql
from decisor.types import Pitfall

if TYPE_CHECKING:
    from sqlglot import Expr, exp


KIND = "fan_out"


@dataclass(frozen=True)
class AggregateTerm:
    """One value that an aggregate takes, under the conditions of FILTER and CASE."""

    block: SelectBlock
    call: Expr
    value: Expr
    conditions: tuple[Expr, ...] = ()


async def fan_out(look: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in look.blocks:
        for call in find_aggregate_calls(block):
            for term in aggregate_terms(block, call):
                multiplied = await find_multipliers(term, look.stored)
                if multiplied:
                    pitfalls.append(Pitfall(KIND, describe_fan_out(term, *multiplied, look)))
                    break
    return pitfalls


def find_aggregate_calls(block: SelectBlock) -> Iterator[Expr]:
    """Yield the sums, averages and counts of a block that are not DISTINCT."""
    from sqlglot import exp

    parts = [*block.select.expressions, *(block.select.args.get(name) for name in ("having", "order", "qualify"))]
    for node in [node for one in parts if one is not None for node in find_aggregates(one)]:
        counts = isinstance(node, exp.Sum | exp.Avg | exp.Count | exp.CountIf | exp.Anonymous)
        if counts and node.parent_select is block.select and not isinstance(node.this, exp.Distinct):
            inner = argument(node)
            if inner is None or not find_aggregates(inner):
                yield node


def argument(call: Expr) -> Expr | None:
    from sqlglot import exp

    if isinstance(call, exp.Anonymous):
        return call.expressions[0] if call.expressions else None
    return call.this if isinstance(call.this, exp.Expression) else None


def aggregate_terms(block: SelectBlock, call: Expr) -> Iterator[AggregateTerm]:
    """Yield the values that an aggregate takes, with the conditions of FILTER and CASE."""
    from sqlglot import exp

    filtered = call.parent.expression if isinstance(call.parent, exp.Filter) else None
    conditions = tuple(split_conjuncts(filtered.this if filtered is not None else None))
    inner = argument(call)
    if inner is None or isinstance(inner, exp.Star):
        yield AggregateTerm(block, call, call, conditions)
        return
    for value, more in branch_values(inner):
        yield AggregateTerm(block, call, value, (*conditions, *more))


def branch_values(value: Expr) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """Yield the values of the branches of a CASE with their conditions, without branches that add nothing."""
    from sqlglot import exp

    value = value.unnest()
    if isinstance(value, exp.Case):
        for branch in value.args["ifs"]:
            condition = exp.EQ(this=value.this, expression=branch.this) if value.this else branch.this
            yield from ((one, (*split_conjuncts(condition), *more)) for one, more in branch_values(branch.args["true"]))
        if value.args.get("default") is not None:
            yield from branch_values(value.args["default"])
    elif isinstance(value, exp.If):
        yield from ((one, (*split_conjuncts(value.this), *more)) for one, more in branch_values(value.args["true"]))
        if value.args.get("false") is not None:
            yield from branch_values(value.args["false"])
    elif isinstance(value, exp.Coalesce | exp.Cast | exp.Round):
        yield from branch_values(value.this)
    elif not isinstance(value, exp.Null) and not (isinstance(value, exp.Literal) and value.name == "0"):
        yield value, ()


async def find_multipliers(term: AggregateTerm, stored: StoredData) -> tuple[list[FromItem], list[FromItem]] | None:
    """Return the multiplied sources and the sources that multiply them; None if no rows are multiplied.

    For counted combinations the first list is empty.
    """
    from sqlglot import exp

    block = term.block
    if inside := await find_inner_multipliers(term, stored):
        return inside
    if len(block.sources) < 2:
        return None
    more = [one for condition in term.conditions for one in block.following(condition)]
    fixed = fixed_columns(block, term.call)
    plain = isinstance(term.value, exp.Predicate | exp.Connector | exp.Not)
    origins = frozenset() if plain or term.value is term.call else block.of(term.value)
    roots = list(dict.fromkeys(one.source for one in origins if one.source in block.sources))
    if roots and is_constant_in_group(block, origins, fixed, more):
        if isinstance(term.call, exp.Avg):
            return None
        roots = [] if isinstance(term.call, exp.Count) else roots
    if roots:
        left = await find_unreached_sources(block, roots, fixed, more, stored)
        return (roots, left) if left else None
    return await find_counted_combinations(term, fixed, more, stored)


async def find_inner_multipliers(
    term: AggregateTerm, stored: StoredData
) -> tuple[list[FromItem], list[FromItem]] | None:
    """Return the sources multiplied inside the part of the query that the value comes from.

    That part does not tell the rows apart: it groups or cuts them by more, or consists of several queries one after the
    other. The second list holds the sources that multiply; None if no rows are multiplied.
    """
    from sqlglot import exp

    origin = term.block.bare(term.value) if isinstance(term.call, exp.Sum | exp.Avg) else None
    if origin is None:
        return None
    part = origin.source
    known = {
        one.column for one in term.block.closure(fixed_columns(term.block, term.call), ())[0] if one.source is part
    }
    for block in (part.block, *part.branches):
        value = expression_of_column(block, part, origin.column)
        if block is None or value is None or find_aggregates(value) or value.find(exp.Window):
            continue
        roots = list(dict.fromkeys(one.source for one in block.of(value) if one.source in block.sources))
        fixed = {one for name in known if (at := expression_of_column(block, part, name)) and (one := block.bare(at))}
        if not roots or is_constant_in_group(block, block.of(value), fixed, ()):
            continue
        left = await find_unreached_sources(block, roots, fixed, (), stored)
        columns, single = block.closure(fixed, roots)
        if left and not any(
            all(name in known or is_column_fixed(block, part, name, columns, single) for name in key)
            for key in part.keys
        ):
            return roots, left
    return None


def expression_of_column(block: SelectBlock | None, part: FromItem, name: str) -> Expr | None:
    """Return the expression of a column of a part. With several queries, columns are matched by position."""
    if block is None or name in block.outputs:
        return block.outputs[name] if block else None
    there = dict(zip(part.columns or (), block.outputs.values(), strict=False))
    return there.get(name)


def is_column_fixed(
    block: SelectBlock, part: FromItem, name: str, columns: set[FromColumn], single: Sequence[FromItem]
) -> bool:
    value = expression_of_column(block, part, name)
    origin = block.bare(value) if value is not None else None
    return origin is not None and (origin in columns or origin.source in single)


def is_constant_in_group(
    block: SelectBlock, origins: frozenset[FromColumn], fixed: set[FromColumn], more: Sequence[Dependency]
) -> bool:
    """Return whether all columns that a value depends on are the same in all rows of a group."""
    columns, single = block.closure(fixed, (), more)
    return all(one in columns or one.source in single for one in origins)


async def find_counted_combinations(
    term: AggregateTerm, fixed: set[FromColumn], more: Sequence[Dependency], stored: StoredData
) -> tuple[list[FromItem], list[FromItem]] | None:
    """Return sources whose combinations a count counts, since no source tells the row of all others.

    If the alias names one source, return that source and those that multiply it. Pairs out of one table are taken as
    intended: None.
    """
    block = term.block
    names = [one.name.lower() for one in block.sources]
    alias = alias_of_count(term)
    roots = []
    for root in block.sources:
        if not await find_unreached_sources(block, [root], fixed, more, stored):
            roots.append(root)
    if roots:
        named = [one for one in block.sources if alias_names_table(alias, one.name)]
        if len(named) == 1 and named[0] not in roots:
            return named, await find_unreached_sources(block, named, fixed, more, stored)
        return None
    if len(set(names)) < len(names):
        return None
    return [], list(block.sources)


def alias_of_count(term: AggregateTerm) -> str:
    """Return the alias of the column that the count is, in lower case; '' if it has none."""
    from sqlglot import exp

    around = term.call.parent.parent if isinstance(term.call.parent, exp.Filter) else term.call.parent
    return around.alias.lower() if isinstance(around, exp.Alias) else ""


def alias_names_table(alias: str, name: str) -> bool:
    """Return whether the alias of a count says that it counts the rows of this table.

    >>> (alias_names_table("order_count", "orders"), alias_names_table("n_orders", "orders"),
    ...     alias_names_table("orders_per_day", "orders"))
    (True, True, False)
    >>> alias_names_table("paid_orders", "orders"), alias_names_table("lines_of_orders", "orders")
    (True, False)
    """
    one = singular(name.lower())
    parts = alias.split("_")
    words = [singular(word) for word in parts if word not in COUNTING]
    kind = len(words) == 2 and words[1] == one and not {"of", "per", "in", "by", "with"} & set(parts)
    return len(parts) <= 3 and ("_".join(words) == one or kind)


COUNTING = ("n", "num", "number", "no", "of", "count", "cnt", "total", "nr")


def singular(name: str) -> str:
    return name[:-3] + "y" if name.endswith("ies") else name.removesuffix("s")


def fixed_columns(block: SelectBlock, call: Expr) -> set[FromColumn]:
    """Return the columns with one value in the scope of the call: its partition, or the group."""
    from sqlglot import exp

    around = call.parent.parent if isinstance(call.parent, exp.Filter) else call.parent
    if isinstance(around, exp.Window):
        groups = list(around.args.get("partition_by") or ())
    else:
        groups = block.groups() or []
    return {origin for one in groups if (origin := block.bare(one)) is not None}


async def find_unreached_sources(
    block: SelectBlock,
    roots: Sequence[FromItem],
    fixed: set[FromColumn],
    more: Sequence[Dependency],
    stored: StoredData,
) -> list[FromItem]:
    """Return the sources that may have several rows for one row of each of ``roots``."""
    reached = list(roots)
    while True:
        columns, reached = block.closure(fixed, reached, more)
        for source in block.sources:
            if source in reached:
                continue
            known = known_columns(source, columns)
            if await stored.unique(source, known, block.before):
                reached.append(source)
                break
        else:
            return [one for one in block.sources if one not in reached]


def known_columns(source: FromItem, columns: set[FromColumn]) -> set[str]:
    return {one.column for one in columns if one.source is source}


def describe_fan_out(term: AggregateTerm, roots: Sequence[FromItem], left: Sequence[FromItem], look: RuleInput) -> str:
    call = short_sql(term.call, look.dialect)
    names = list(dict.fromkeys(one.name for one in left))
    if not roots:
        several = " and ".join(names)
        return (
            f"{call} counts combinations of rows of {several}: none of them has one row for each row of the others. "
            "Count each in a subquery of its own and join the counts, or use COUNT(DISTINCT ...) of a key."
        )
    base = " and ".join(dict.fromkeys(one.name for one in roots))
    columns, _ = term.block.closure(fixed_columns(term.block, term.call), roots)
    first = left[0]
    known = sorted(known_columns(first, columns))
    per = f" with the same {', '.join(known)}" if known else ""
    return (
        f"{call} takes rows of {base} more than once: {first.name} may have several rows{per}, and each repeats "
        f"its row of {base}. Aggregate {base} in a subquery without {join_names_with_and(names)}, "
        f"or aggregate {first.name} first "
        f"({grouping(first.name, known)}) and join the result; where {first.name} only filters, use EXISTS."
    )


def grouping(name: str, columns: Sequence[str]) -> str:
    by = f" GROUP BY {', '.join(columns)}" if columns else ""
    return f"SELECT ... FROM {name}{by}"


def join_names_with_and(names: Sequence[str]) -> str:
    return " and ".join(names[:3])


AVERAGE_OF_AVERAGES = "average_of_averages"


async def average_of_averages(look: RuleInput) -> list[Pitfall]:
    from sqlglot import exp

    pitfalls = []
    for block in look.blocks:
        for call in find_aggregate_calls(block):
            inner = argument(call)
            divides = isinstance(call, exp.Sum) and isinstance(call.parent, exp.Div) and call.parent.find(exp.Count)
            if inner is None or not (isinstance(call, exp.Avg) or divides):
                continue
            origin = block.bare(without_conversions(inner))
            if origin is not None and is_average(origin):
                pitfalls.append(
                    Pitfall(AVERAGE_OF_AVERAGES, describe_average_of_averages(short_sql(call, look.dialect), origin))
                )
    return pitfalls


def without_conversions(value: Expr) -> Expr:
    """Return the value inside ROUND, CAST and COALESCE."""
    from sqlglot import exp

    value = value.unnest()
    while isinstance(value, exp.Round | exp.Cast | exp.Coalesce):
        value = value.this.unnest()
    return value


def is_average(origin: FromColumn) -> bool:
    """Return whether a column of a part of the query is an average, even if it was handed on."""
    from sqlglot import exp

    block: SelectBlock | None = origin.source.block
    value = block.outputs.get(origin.column) if block else None
    if block is None or value is None:
        return False
    value = without_conversions(value)
    if isinstance(value, exp.Avg):
        return True
    if isinstance(value, exp.Div):
        return value.this.find(exp.Sum) is not None and value.expression.find(exp.Count) is not None
    inner = block.bare(value)
    return inner is not None and is_average(inner)


def describe_average_of_averages(call: str, origin: FromColumn) -> str:
    return (
        f"{call} averages the averages of {origin.source.name}: each group counts the same, however many rows it has. "
        "For the average over all rows, average them at once, or divide the sum of the sums by the sum of the counts."
    )


INTEGER_DIVISION = "integer_division"
WHOLE = re.compile(r"^(tiny|small|medium|big)?int(eger)?\d?\b|serial", re.I)


async def integer_division(look: RuleInput) -> list[Pitfall]:
    from sqlglot import exp

    nodes = [
        (block, node)
        for block in look.blocks
        for node in block.select.find_all(exp.Div)
        if node.parent_select is block.select
    ]
    return [
        Pitfall(INTEGER_DIVISION, describe_integer_division(short_sql(node, look.dialect)))
        for block, node in nodes
        if node.args.get("typed")
        and is_whole_number(block, node.this)
        and is_whole_number(block, node.expression)
        and not is_intended_division(block, node)
    ]


def is_whole_number(block: SelectBlock, value: Expr | None) -> bool:
    """Return whether a value is a whole number by its type."""
    from sqlglot import exp

    value = value.unnest() if value is not None else None
    match value:
        case exp.Literal():
            return not value.is_string and value.name.isdigit()
        case exp.Count() | exp.CountIf() | exp.Length() | exp.RowNumber() | exp.Rank() | exp.DenseRank():
            return True
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return is_whole_number(block, value.this) and is_whole_number(block, value.expression)
        case exp.Sum() | exp.Max() | exp.Min() | exp.Abs() | exp.Neg() | exp.Window() | exp.Filter() | exp.Distinct():
            return is_whole_number(block, value.this)
        case exp.Coalesce():
            return all(is_whole_number(block, one) for one in (value.this, *value.expressions))
        case exp.Case():
            branches = [*(one.args["true"] for one in value.args["ifs"]), value.args.get("default")]
            return all(one is None or isinstance(one, exp.Null) or is_whole_number(block, one) for one in branches)
        case exp.If():
            branches = [value.args["true"], value.args.get("false")]
            return all(one is None or isinstance(one, exp.Null) or is_whole_number(block, one) for one in branches)
        case exp.Cast():
            return bool(WHOLE.match(value.to.sql()))
        case exp.Select():
            inner = block.within.get(id(value))
            return inner is not None and is_whole_number(inner, value.expressions[0].unalias())
        case exp.Column():
            return whole_column(block, value)
        case _:
            return False


def whole_column(block: SelectBlock, column: exp.Column) -> bool:
    origin = block.bare(column)
    if origin is None:
        return False
    if origin.source.block is not None:
        return is_whole_number(origin.source.block, origin.source.block.outputs.get(origin.column))
    columns = origin.source.table.columns if origin.source.table else ()
    return any(one.name.lower() == origin.column and WHOLE.match(one.type) for one in columns)


def is_intended_division(block: SelectBlock, node: Expr) -> bool:
    """Return whether a query means to drop the fraction.

    So it is with ``a / 10 * 10``, a bucket of GROUP BY, a value that becomes a whole number anyway, and 10 / 5.
    """
    from sqlglot import exp

    if any(node == one or one.find(exp.Div) == node for one in block.groups() or ()):
        return True
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    if isinstance(around, exp.Mul) and around.expression == node.expression:
        return True
    if isinstance(around, exp.Floor | exp.Trunc) or (isinstance(around, exp.Cast) and WHOLE.match(around.to.sql())):
        return True
    one, two = node.this.unnest(), node.expression.unnest()
    numbers = isinstance(one, exp.Literal) and isinstance(two, exp.Literal)
    return numbers and two.name not in ("", "0") and int(one.name) % int(two.name) == 0


def describe_integer_division(text: str) -> str:
    return f"{text} divides whole numbers and drops what is behind the point. Write * 1.0 / for the exact share."
