"""NOT IN where one of the values is NULL.

    SELECT name FROM staff WHERE id NOT IN (SELECT boss_id FROM staff)

brings nothing as soon as one boss_id is NULL; and ``team NOT IN ('red')`` leaves out the rows whose team is NULL.
Whether there is a NULL is looked up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block
from decisor.tools.databases.pitfalls.outer_join import rejected
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, short_sql
from decisor.tools.databases.pitfalls.source import FromColumn

if TYPE_CHECKING:
    from sqlglot import Expr, exp

KIND = "not_in_nulls"


async def not_in_nulls(look: Look) -> list[Pitfall]:
    pitfalls = []
    for block in look.blocks:
        for node in negated(block):
            async for text in complaints(block, node, look):
                pitfalls.append(Pitfall(KIND, text))
    return pitfalls


def negated(block: Block) -> Iterator[exp.In]:
    from sqlglot import exp

    for node in block.select.find_all(exp.Not):
        inner = node.this.unnest()
        if isinstance(inner, exp.In) and node.parent_select is block.select:
            yield inner


async def complaints(block: Block, node: exp.In, look: Look) -> AsyncIterator[str]:
    from sqlglot import exp

    query = node.args.get("query")
    written = short_sql(node.parent if isinstance(node.parent, exp.Not) else node, look.dialect)
    if query is not None:
        if await holds_null(query.unnest(), block, look):
            yield (
                f"{written} is true of no row: what the subquery brings holds NULL. Add WHERE ... IS NOT NULL to it, "
                "or use NOT EXISTS."
            )
    elif any(isinstance(one, exp.Null) for one in node.expressions):
        yield f"{written} is true of no row, as NULL is among the values. Leave it out, and use IS NOT NULL beside it."
    elif not node.find_ancestor(exp.Or, exp.Case):
        origin = block.bare(node.this)
        if origin is not None and await stores_null(origin, look):
            yield f"{written} leaves out the rows whose {origin.column} is NULL too. Add OR ... IS NULL to count them."


async def holds_null(select: Expr, block: Block, look: Look) -> bool:
    from sqlglot import exp

    inner = block.within.get(id(select))
    if inner is None or not isinstance(select, exp.Select) or not select.expressions:
        return False
    value = select.expressions[0].unalias()
    origin = inner.bare(value)
    if origin is None or without_null(inner, origin):
        return False
    outside = any(one.source not in inner.sources for _, condition in inner.conditions for one in inner.of(condition))
    if outside:
        return await stores_null(origin, look)
    copy = select.copy()
    copy.set("expressions", [exp.alias_(copy.expressions[0].unalias(), "v")])
    name = look.dialect.quoted("v")
    query = f"{inner.before} SELECT 1 FROM ({copy.sql(dialect=look.dialect.name)}) AS q WHERE q.{name} IS NULL LIMIT 1"
    return bool((table := await look.stored.rows(query.strip())) and table.rows)


def without_null(inner: Block, origin: FromColumn) -> bool:
    """By its declaration, or by a condition of the subquery."""
    from sqlglot import exp

    declared = origin.source not in inner.nullable and is_declared(origin)
    for block, condition in inner.conditions:
        asks = any(one.args.get("negate") or isinstance(one.parent, exp.Not) for one in condition.find_all(exp.Is))
        if origin in rejected(block, condition) or (asks and origin in block.of(condition)):
            return True
    return declared


def is_declared(origin: FromColumn) -> bool:
    columns = origin.source.table.columns if origin.source.table else ()
    return any(one.name.lower() == origin.column and (one.key or not one.nullable) for one in columns)


async def stores_null(origin: FromColumn, look: Look) -> bool:
    source = origin.source
    if source.table is None or not source.text or is_declared(origin):
        return False
    name = look.dialect.quoted(look.stored.written(source, origin.column))
    table = await look.stored.rows(f"SELECT 1 FROM {source.text} WHERE {name} IS NULL LIMIT 1")
    return table is not None and bool(table.rows)
