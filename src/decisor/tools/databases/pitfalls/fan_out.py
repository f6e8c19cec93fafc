"""A sum, a count or an average over rows that a join has multiplied.

    SELECT SUM(o.total) FROM orders o JOIN order_items i ON i.order_id = o.id

takes an order's total once for each of its items. What a value stands on is multiplied by each source that may have
several rows for one row of it: whose key does not follow from the row, from what the query groups by, and from what its
conditions fix. Keys are those that the database declares; where they do not suffice, the stored rows are looked at.
MIN, MAX and whatever is DISTINCT take no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block, conjuncts
from decisor.tools.databases.pitfalls.part import aggregates
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, short_sql
from decisor.tools.databases.pitfalls.source import Dependency, FromColumn, FromItem
from decisor.tools.databases.pitfalls.stored import Stored

if TYPE_CHECKING:
    from sqlglot import Expr

KIND = "fan_out"


@dataclass(frozen=True)
class Term:
    """One value that an aggregate takes, where some conditions hold."""

    block: Block
    call: Expr
    value: Expr
    conditions: tuple[Expr, ...] = ()


async def fan_out(look: Look) -> list[Pitfall]:
    pitfalls = []
    for block in look.blocks:
        for call in calls(block):
            for term in terms(block, call):
                multiplied = await multipliers(term, look.stored)
                if multiplied:
                    pitfalls.append(Pitfall(KIND, wording(term, *multiplied, look)))
                    break
    return pitfalls


def calls(block: Block) -> Iterator[Expr]:
    """Its sums, averages and counts that are not DISTINCT."""
    from sqlglot import exp

    parts = [*block.select.expressions, *(block.select.args.get(name) for name in ("having", "order", "qualify"))]
    for node in [node for one in parts if one is not None for node in aggregates(one)]:
        counts = isinstance(node, exp.Sum | exp.Avg | exp.Count | exp.CountIf | exp.Anonymous)
        if counts and node.parent_select is block.select and not isinstance(node.this, exp.Distinct):
            inner = argument(node)
            if inner is None or not aggregates(inner):
                yield node


def argument(call: Expr) -> Expr | None:
    from sqlglot import exp

    if isinstance(call, exp.Anonymous):
        return call.expressions[0] if call.expressions else None
    return call.this if isinstance(call.this, exp.Expression) else None


def terms(block: Block, call: Expr) -> Iterator[Term]:
    """With the conditions of FILTER and CASE."""
    from sqlglot import exp

    filtered = call.parent.expression if isinstance(call.parent, exp.Filter) else None
    conditions = tuple(conjuncts(filtered.this if filtered is not None else None))
    inner = argument(call)
    if inner is None or isinstance(inner, exp.Star):
        yield Term(block, call, call, conditions)
        return
    for value, more in values(inner):
        yield Term(block, call, value, (*conditions, *more))


def values(value: Expr) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """The branches of a CASE, without those that add nothing."""
    from sqlglot import exp

    value = value.unnest()
    if isinstance(value, exp.Case):
        for branch in value.args["ifs"]:
            condition = exp.EQ(this=value.this, expression=branch.this) if value.this else branch.this
            yield from ((one, (*conjuncts(condition), *more)) for one, more in values(branch.args["true"]))
        if value.args.get("default") is not None:
            yield from values(value.args["default"])
    elif isinstance(value, exp.If):
        yield from ((one, (*conjuncts(value.this), *more)) for one, more in values(value.args["true"]))
        if value.args.get("false") is not None:
            yield from values(value.args["false"])
    elif isinstance(value, exp.Coalesce | exp.Cast | exp.Round):
        yield from values(value.this)
    elif not isinstance(value, exp.Null) and not (isinstance(value, exp.Literal) and value.name == "0"):
        yield value, ()


async def multipliers(term: Term, stored: Stored) -> tuple[list[FromItem], list[FromItem]] | None:
    """What is multiplied, and by what; None where nothing is. Of a count of rows, what is multiplied is empty."""
    from sqlglot import exp

    block = term.block
    if inside := await multiplied_inside(term, stored):
        return inside
    if len(block.sources) < 2:
        return None
    more = [one for condition in term.conditions for one in block.following(condition)]
    fixed = fixed_by(block, term.call)
    plain = isinstance(term.value, exp.Predicate | exp.Connector | exp.Not)
    origins = frozenset() if plain or term.value is term.call else block.of(term.value)
    roots = list(dict.fromkeys(one.source for one in origins if one.source in block.sources))
    if roots and one_value(block, origins, fixed, more):
        if isinstance(term.call, exp.Avg):
            return None
        roots = [] if isinstance(term.call, exp.Count) else roots
    if roots:
        left = await unreached(block, roots, fixed, more, stored)
        return (roots, left) if left else None
    return await combinations(term, fixed, more, stored)


async def multiplied_inside(term: Term, stored: Stored) -> tuple[list[FromItem], list[FromItem]] | None:
    """What is multiplied already in the part of the query that the value is taken from, whose rows it does not tell
    apart: a part that groups or cuts them by more, or several queries one after the other."""
    from sqlglot import exp

    origin = term.block.bare(term.value) if isinstance(term.call, exp.Sum | exp.Avg) else None
    if origin is None:
        return None
    part = origin.source
    known = {one.column for one in term.block.closure(fixed_by(term.block, term.call), ())[0] if one.source is part}
    for block in (part.block, *part.branches):
        value = at_column(block, part, origin.column)
        if block is None or value is None or aggregates(value) or value.find(exp.Window):
            continue
        roots = list(dict.fromkeys(one.source for one in block.of(value) if one.source in block.sources))
        fixed = {one for name in known if (at := at_column(block, part, name)) and (one := block.bare(at))}
        if not roots or one_value(block, block.of(value), fixed, ()):
            continue
        left = await unreached(block, roots, fixed, (), stored)
        columns, single = block.closure(fixed, roots)
        if left and not any(all(name in known or follows(block, part, name, columns, single) for name in key)
                            for key in part.keys):  # fmt: skip
            return roots, left
    return None


def at_column(block: Block | None, part: FromItem, name: str) -> Expr | None:
    """What a part has there; of several queries the columns are told by their place."""
    if block is None or name in block.outputs:
        return block.outputs[name] if block else None
    there = dict(zip(part.columns or (), block.outputs.values(), strict=False))
    return there.get(name)


def follows(block: Block, part: FromItem, name: str, columns: set[FromColumn], single: Sequence[FromItem]) -> bool:
    value = at_column(block, part, name)
    origin = block.bare(value) if value is not None else None
    return origin is not None and (origin in columns or origin.source in single)


def one_value(block: Block, origins: frozenset[FromColumn], fixed: set[FromColumn], more: Sequence[Dependency]) -> bool:
    """Whether what the value stands on is the same in all rows of a group."""
    columns, single = block.closure(fixed, (), more)
    return all(one in columns or one.source in single for one in origins)


async def combinations(
    term: Term, fixed: set[FromColumn], more: Sequence[Dependency], stored: Stored
) -> tuple[list[FromItem], list[FromItem]] | None:
    """Of a count of rows: sources of which none tells the row of all others. Pairs out of one table are meant."""
    block = term.block
    names = [one.name.lower() for one in block.sources]
    alias = block_alias(term)
    roots = []
    for root in block.sources:
        if not await unreached(block, [root], fixed, more, stored):
            roots.append(root)
    if roots:
        named = [one for one in block.sources if counted(alias, one.name)]
        if len(named) == 1 and named[0] not in roots:
            return named, await unreached(block, named, fixed, more, stored)
        return None
    if len(set(names)) < len(names):
        return None
    return [], list(block.sources)


def block_alias(term: Term) -> str:
    """The name of the column that the count is."""
    from sqlglot import exp

    around = term.call.parent.parent if isinstance(term.call.parent, exp.Filter) else term.call.parent
    return around.alias.lower() if isinstance(around, exp.Alias) else ""


def counted(alias: str, name: str) -> bool:
    """Whether a count of that name says that it counts the rows of that table.

    >>> counted("order_count", "orders"), counted("n_orders", "orders"), counted("orders_per_day", "orders")
    (True, True, False)
    >>> counted("paid_orders", "orders"), counted("lines_of_orders", "orders")
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


def fixed_by(block: Block, call: Expr) -> set[FromColumn]:
    """The columns that have one value within what the call runs over: its partition, or the group."""
    from sqlglot import exp

    around = call.parent.parent if isinstance(call.parent, exp.Filter) else call.parent
    if isinstance(around, exp.Window):
        groups = list(around.args.get("partition_by") or ())
    else:
        groups = block.groups() or []
    return {origin for one in groups if (origin := block.bare(one)) is not None}


async def unreached(
    block: Block, roots: Sequence[FromItem], fixed: set[FromColumn], more: Sequence[Dependency], stored: Stored
) -> list[FromItem]:
    """The sources that may have several rows where those of ``roots`` have one."""
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


def wording(term: Term, roots: Sequence[FromItem], left: Sequence[FromItem], look: Look) -> str:
    call = short_sql(term.call, look.dialect)
    names = list(dict.fromkeys(one.name for one in left))
    if not roots:
        several = " and ".join(names)
        return (
            f"{call} counts combinations of rows of {several}: none of them has one row for each row of the others. "
            "Count each in a subquery of its own and join the counts, or use COUNT(DISTINCT ...) of a key."
        )
    base = " and ".join(dict.fromkeys(one.name for one in roots))
    columns, _ = term.block.closure(fixed_by(term.block, term.call), roots)
    first = left[0]
    known = sorted(known_columns(first, columns))
    per = f" with the same {', '.join(known)}" if known else ""
    return (
        f"{call} takes rows of {base} more than once: {first.name} may have several rows{per}, and each repeats "
        f"its row of {base}. Aggregate {base} in a subquery without {names_of(names)}, or aggregate {first.name} first "
        f"({grouping(first.name, known)}) and join the result; where {first.name} only filters, use EXISTS."
    )


def grouping(name: str, columns: Sequence[str]) -> str:
    by = f" GROUP BY {', '.join(columns)}" if columns else ""
    return f"SELECT ... FROM {name}{by}"


def names_of(names: Sequence[str]) -> str:
    return " and ".join(names[:3])
