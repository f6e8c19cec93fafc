"""An average of averages.

    SELECT AVG(a) FROM (SELECT customer_id, AVG(total) AS a FROM orders GROUP BY customer_id) x

counts a customer with one order as much as one with a hundred: it is not the average of the orders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block
from decisor.tools.databases.pitfalls.fan_out import argument, calls
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, short_sql
from decisor.tools.databases.pitfalls.source import FromColumn

if TYPE_CHECKING:
    from sqlglot import Expr

KIND = "average_of_averages"


async def average_of_averages(look: Look) -> list[Pitfall]:
    from sqlglot import exp

    pitfalls = []
    for block in look.blocks:
        for call in calls(block):
            inner = argument(call)
            divides = isinstance(call, exp.Sum) and isinstance(call.parent, exp.Div) and call.parent.find(exp.Count)
            if inner is None or not (isinstance(call, exp.Avg) or divides):
                continue
            origin = block.bare(bare_value(inner))
            if origin is not None and is_average(origin):
                pitfalls.append(Pitfall(KIND, wording(short_sql(call, look.dialect), origin)))
    return pitfalls


def bare_value(value: Expr) -> Expr:
    """Without ROUND, CAST and COALESCE."""
    from sqlglot import exp

    value = value.unnest()
    while isinstance(value, exp.Round | exp.Cast | exp.Coalesce):
        value = value.this.unnest()
    return value


def is_average(origin: FromColumn) -> bool:
    """Whether a column of a part of the query is an average, also where it was handed on."""
    from sqlglot import exp

    block: Block | None = origin.source.block
    value = block.outputs.get(origin.column) if block else None
    if block is None or value is None:
        return False
    value = bare_value(value)
    if isinstance(value, exp.Avg):
        return True
    if isinstance(value, exp.Div):
        return value.this.find(exp.Sum) is not None and value.expression.find(exp.Count) is not None
    inner = block.bare(value)
    return inner is not None and is_average(inner)


def wording(call: str, origin: FromColumn) -> str:
    return (
        f"{call} averages the averages of {origin.source.name}: each group counts the same, however many rows it has. "
        "For the average over all rows, average them at once, or divide the sum of the sums by the sum of the counts."
    )
