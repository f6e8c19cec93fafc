"""A LIMIT that cuts rows by chance: without an order, or through rows that are equal in it.

    SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC LIMIT 1

brings one of four countries that have three customers each. Whether the row behind the cut is equal is looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block
from decisor.tools.databases.pitfalls.part import own_aggregates
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall

if TYPE_CHECKING:
    from sqlglot import Expr, exp

KIND = "limit_order"


async def limit_order(look: Look) -> list[Pitfall]:
    pitfalls = []
    for block in look.blocks:
        text = await complaint(block, look)
        if text:
            pitfalls.append(Pitfall(KIND, text))
    return pitfalls


async def complaint(block: Block, look: Look) -> str:
    from sqlglot import exp

    select = block.select
    most = number(select.args.get("limit") or select.args.get("fetch"))
    single = not block.groups() and any(own_aggregates(block))
    if most is None or single or not block.sources or select.find_ancestor(exp.Exists):
        return ""
    outermost = select is look.tree
    if outermost and look.result is not None and len(look.result.rows) < most:
        return ""
    skip = number(select.args.get("offset")) or 0
    if select.args.get("order") is None:
        cut = outermost or await more_than(block, most + skip, look)
        chance = f"LIMIT {most} without ORDER BY: which rows it keeps is left to chance. Say by what order."
        return chance if cut else ""
    if most and not determined(block) and await ties(block, most + skip, look):
        return (
            f"The row behind LIMIT {most} is equal in ORDER BY to the last one before it: which of them is kept is "
            "left to chance. Name all of them (RANK(), or a larger LIMIT), or say what decides between them."
        )
    return ""


def number(limit: Expr | None) -> int | None:
    """Of LIMIT, FETCH and OFFSET, where it is written as one; a FETCH with ties cuts none apart."""
    from sqlglot import exp

    if limit is None or "TIES" in limit.sql().upper():
        return None
    value = limit.args.get("expression") or limit.args.get("count")
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None


def determined(block: Block) -> bool:
    """Whether the order leaves no two rows equal, by keys."""
    order = [block.meant(one.this) for one in block.select.args["order"].expressions]
    known = {origin for one in order if (origin := block.bare(one)) is not None}
    columns, single = block.closure(known, ())
    groups = block.groups()
    if groups is not None:
        origins = [origin for one in groups for origin in block.of(one)]
        return all(one in columns or one.source in single for one in origins)
    return len(single) == len(block.sources)


async def more_than(block: Block, rows: int, look: Look) -> bool:
    copy = uncut(block.select)
    query = f"{prefix(block, copy)}SELECT 1 FROM ({copy.sql(dialect=look.dialect.name)}) AS q LIMIT 1 OFFSET {rows}"
    table = await look.stored.rows(query)
    return table is None or bool(table.rows)


async def ties(block: Block, rows: int, look: Look) -> bool:
    """Whether the last row before the cut and the first behind it have the same place in the order."""
    from sqlglot import exp

    select = block.select
    ordered = list(select.args["order"].expressions)
    values = [block.meant(one.this) for one in ordered]
    copy = uncut(select)
    if select.args.get("distinct"):
        names = [name for value in values for name, output in block.outputs.items() if output == value]
        if len(names) != len(values):
            return False
        quoted = [look.dialect.quoted(name) for name in names]
        by = ", ".join(f"{name}{' DESC' if one.args.get('desc') else ''}"
                          for name, one in zip(quoted, ordered, strict=True))  # fmt: skip
        inner = copy.sql(dialect=look.dialect.name)
        query = f"SELECT {', '.join(quoted)} FROM ({inner}) AS q ORDER BY {by} LIMIT 2 OFFSET {rows - 1}"
    else:
        # The columns stay before those of the order: GROUP BY 1 and HAVING n > 1 speak of them.
        columns = [] if any(one.is_star for one in select.expressions) else copy.expressions
        copy.set("expressions", [*columns, *(exp.alias_(value.copy(), f"o{at}") for at, value in enumerate(values))])
        order = exp.Order(expressions=[with_value(one, value) for one, value in zip(ordered, values, strict=True)])
        copy.set("order", order)
        query = f"{copy.sql(dialect=look.dialect.name)} LIMIT 2 OFFSET {rows - 1}"
    table = await look.stored.rows(prefix(block, copy) + query)
    if table is None or len(table.rows) < 2:
        return False
    before, behind = (row[-len(values) :] for row in table.rows)
    return before == behind


def with_value(ordered: Expr, value: Expr) -> Expr:
    copy = ordered.copy()
    copy.set("this", value.copy())
    return copy


def uncut(select: exp.Select) -> exp.Select:
    copy = select.copy()
    for name in ("limit", "offset", "fetch", "order"):
        copy.set(name, None)
    return copy


def prefix(block: Block, copy: Expr) -> str:
    return "" if copy.args.get("with_") or not block.before else f"{block.before} "
