"""An average of averages (average_of_averages).

    SELECT AVG(a) FROM (SELECT customer_id, AVG(total) AS a FROM orders GROUP BY customer_id) x

counts a customer with one order as much as one with a hundred: it is not the average of the orders.
"""

from __future__ import annotations

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import FromColumn, SelectBlock
from decisor.databases.pitfalls.fan_out import aggregate_argument, find_aggregate_calls
from decisor.databases.pitfalls.rule import RuleInput
from decisor.types import Pitfall


async def average_of_averages(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in rule_input.blocks:
        for call in find_aggregate_calls(block):
            inner = aggregate_argument(call)
            # SUM(a) / COUNT(...) is an average written out.
            divides = isinstance(call, exp.Sum) and isinstance(call.parent, exp.Div) and call.parent.find(exp.Count)
            if inner is not None and (isinstance(call, exp.Avg) or divides):
                origin = block.source_column(without_conversions(inner))
                if origin is not None and is_average(origin):
                    text = (
                        f"{{}} averages the averages of {origin.source.name}: each group counts "
                        "the same, however many rows it has. For the average over all rows, average them at once, or "
                        "divide the sum of the sums by the sum of the counts."
                    )
                    # Where it was seen in measured queries, it was meant (docs/measurements/wrong-queries.md).
                    pitfalls.append(rule_input.pitfall("average_of_averages", call, text, "ask"))
    return pitfalls


def without_conversions(value: Expr) -> Expr:
    """Return the value inside ROUND, CAST and COALESCE."""
    value = value.unnest()
    while isinstance(value, exp.Round | exp.Cast | exp.Coalesce):
        value = value.this.unnest()
    return value


def is_average(origin: FromColumn) -> bool:
    """Return whether a column of a part of the query is an average, even if it was handed on."""
    block: SelectBlock | None = origin.source.block
    value = block.outputs.get(origin.column) if block else None
    if block is None or value is None:
        return False
    value = without_conversions(value)
    if isinstance(value, exp.Div):
        return value.this.find(exp.Sum) is not None and value.expression.find(exp.Count) is not None
    inner = block.source_column(value)
    return isinstance(value, exp.Avg) or (inner is not None and is_average(inner))
