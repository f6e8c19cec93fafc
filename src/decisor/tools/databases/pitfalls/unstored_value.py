"""A filter by a value that is not stored.

    SELECT COUNT(*) FROM orders WHERE status <> 'canceled'

counts all orders where the stored word is cancelled. Whether a value is stored is looked up, as the engine compares.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from decisor.tools.databases.hints import MOST_VALUES, Literal, unlike
from decisor.tools.databases.pitfalls.block import Block, conjuncts
from decisor.tools.databases.pitfalls.part import own_aggregates
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, short_sql
from decisor.tools.databases.pitfalls.source import FromColumn
from decisor.tools.databases.sql_literals import is_part

if TYPE_CHECKING:
    from sqlglot import Expr

KIND = "unstored_value"
MOST_LITERALS = 8


async def unstored_value(look: Look) -> list[Pitfall]:
    pitfalls: list[Pitfall] = []
    for block in look.blocks:
        matched = matched_by(block, look)
        for column, literal, pattern in list(comparisons(block, matched))[:MOST_LITERALS]:
            async for text in complaints(block, column, literal, pattern, look):
                pitfalls.append(Pitfall(KIND, text))
    return pitfalls


def matched_by(block: Block, look: Look) -> list[Expr]:
    """The conditions that the rows of the result fulfil, all of them: what they compare with is stored."""
    from sqlglot import exp

    rows = look.result is not None and bool(look.result.rows)
    where = block.select.args.get("where")
    if not rows or block.select is not look.tree or where is None or any(own_aggregates(block)):
        return []
    conditions = [one.this if isinstance(one, exp.Escape) else one for one in conjuncts(where.this)]
    return [one for one in conditions if isinstance(one, exp.EQ | exp.Like | exp.ILike) and not one.args.get("negate")]


def comparisons(block: Block, matched: Sequence[Expr] = ()) -> Iterator[tuple[Expr, Expr, Expr | None]]:
    """What is compared with which literal, but in the conditions ``matched``; the LIKE or ILIKE, where it is one."""
    from sqlglot import exp

    for node in block.select.find_all(exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike):
        if node.parent_select is not block.select or any(node is one for one in matched):
            continue
        sides: Sequence[Expr] = [node.expression] if not isinstance(node, exp.In) else node.expressions
        for literal in sides:
            if isinstance(literal, exp.Literal):
                yield node.this, literal, node if isinstance(node, exp.Like | exp.ILike) else None
            elif isinstance(node.this, exp.Literal) and not isinstance(node, exp.In | exp.Like | exp.ILike):
                yield literal, node.this, None
    for case in block.select.find_all(exp.Case):
        if case.this is not None and case.parent_select is block.select:
            yield from ((case.this, one.this, None) for one in case.args["ifs"] if isinstance(one.this, exp.Literal))


async def complaints(block: Block, value: Expr, literal: Expr, pattern: Expr | None, look: Look) -> AsyncIterator[str]:
    from sqlglot import exp

    any_case = isinstance(value, exp.Lower | exp.Upper) or isinstance(pattern, exp.ILike)
    column = value.this if isinstance(value, exp.Lower | exp.Upper | exp.Trim) else value
    origin = block.bare(column)
    if origin is None or origin.source.table is None or origin.source.table.view or not origin.source.text:
        return
    name = look.dialect.quoted(look.stored.written(origin.source, origin.column))
    written = exp.column(look.stored.written(origin.source, origin.column), quoted=True)
    operand = written if value is column else type(value)(this=written)
    condition = (
        exp.EQ(this=operand, expression=literal.copy()) if pattern is None else as_compared(pattern, operand, literal)
    )
    query = f"SELECT 1 FROM {origin.source.text} WHERE {condition.sql(dialect=look.dialect.name)} LIMIT 1"
    table = await look.stored.rows(query)
    if table is None or table.rows or literal.name in ("", "%"):
        return
    yield await nearest_text(origin, name, literal, pattern, any_case, look)


def as_compared(pattern: Expr, operand: Expr, literal: Expr) -> Expr:
    """Return the same LIKE or ILIKE of another operand, with its ESCAPE and without its NOT."""
    from sqlglot import exp

    condition = type(pattern)(this=operand, expression=literal.copy())
    around = pattern.parent
    return (
        exp.Escape(this=condition, expression=around.expression.copy()) if isinstance(around, exp.Escape) else condition
    )


async def nearest_text(
    origin: FromColumn, name: str, literal: Expr, pattern: Expr | None, any_case: bool, look: Look
) -> str:
    """In the words in which a query without rows is told of."""
    source = f"{name} FROM {origin.source.text} WHERE {name} IS NOT NULL"
    number = None if literal.is_string else float(literal.name)
    query = f"SELECT DISTINCT {source} LIMIT {MOST_VALUES}"
    if number is not None:
        query = f"SELECT {source} ORDER BY abs({name} - {number!r}) LIMIT 3"
    table = await look.stored.rows(query, MOST_VALUES)
    table_name = origin.source.table.name if origin.source.table else origin.source.name
    place = f"{table_name}.{look.stored.written(origin.source, origin.column)}"
    simple = pattern is None or is_part(pattern)
    one = Literal(literal.name.strip("%") if number is None else number, place, query, pattern is not None, any_case)
    text = unlike(one, [row[0] for row in table.rows]) if table and simple else ""
    return text or f"{place} has no {short_sql(literal, look.dialect)}."
