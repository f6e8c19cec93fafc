"""An outer join that a WHERE turns into an inner one.

    SELECT c.name, COUNT(o.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id
    WHERE o.status = 'paid' GROUP BY c.name

has no customer without a paid order: of those without any, o.status is NULL, and NULL = 'paid' is not true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block, conjuncts
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, short_sql
from decisor.tools.databases.pitfalls.source import FromColumn, FromItem

if TYPE_CHECKING:
    from sqlglot import Expr

KIND = "outer_join"


async def outer_join(look: Look) -> list[Pitfall]:
    return [Pitfall(KIND, text) for block in look.blocks for text in complaints(block, look)]


def complaints(block: Block, look: Look) -> Iterator[str]:
    where = block.select.args.get("where")
    for condition in conjuncts(where.this if where and block.nullable else None):
        for source in sources_of(rejected(block, condition)):
            if source in block.nullable:
                yield (
                    f"WHERE {short_sql(condition, look.dialect)} drops the rows that the outer join fills with NULL: "
                    f"it keeps no row without one of {source.name}. Put the condition into ON to keep them, or write "
                    "JOIN."
                )


def sources_of(origins: set[FromColumn]) -> list[FromItem]:
    return list(dict.fromkeys(origin.source for origin in origins))


def rejected(block: Block, condition: Expr) -> set[FromColumn]:
    """The columns that must not be NULL for it to be true, but for those that it asks of NULL by name."""
    from sqlglot import exp

    condition = condition.unnest()
    if isinstance(condition, exp.Or):
        one, two = rejected(block, condition.this), rejected(block, condition.expression)
        both = {origin.source for origin in one} & {origin.source for origin in two}
        return {origin for origin in one | two if origin.source in both}
    if isinstance(condition, exp.And):
        return rejected(block, condition.this) | rejected(block, condition.expression)
    if isinstance(condition, exp.Not):
        inner = condition.this.unnest()
        return rejected(block, inner) if isinstance(inner, exp.In | exp.Like | exp.ILike | exp.Between) else set()
    compares = isinstance(condition, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Like | exp.ILike)
    if not compares and not isinstance(condition, exp.In | exp.Between):
        return set()
    operands = [condition.this, condition.expression if compares else None]
    columns = [one for value in operands if value is not None for one in value.find_all(exp.Column)]
    return {origin for one in columns if not may_be_null(one, condition) for origin in block.origins(one)}


def may_be_null(column: Expr, condition: Expr) -> bool:
    """Whether something around the column makes a value of NULL."""
    from sqlglot import exp

    around = column.parent
    while around is not None and around is not condition:
        if isinstance(around, exp.Coalesce | exp.Case | exp.If | exp.Is | exp.Select):
            return True
        around = around.parent
    return False
