"""An outer join whose added rows a condition drops again (outer_join).

    SELECT c.name, COUNT(o.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id
    WHERE o.status = 'paid' GROUP BY c.name

has no customer without a paid order: of those without any, o.status is NULL, and NULL = 'paid' is not true.
"""

from __future__ import annotations

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import FromColumn, SelectBlock, conjuncts_of_clause, is_subexpression
from decisor.databases.pitfalls.rule import COMPARISONS, LIKES, RuleInput
from decisor.types import Pitfall


async def outer_join(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in rule_input.blocks:
        for condition in conjuncts_of_clause(block.select, "where") if block.nullable else ():
            rejected = {origin.source for origin in find_null_rejected_columns(block, condition)}
            for source in block.sources:
                if source in rejected & block.nullable:
                    text = (
                        f"WHERE {{}} drops the rows that the outer join fills with NULL: "
                        f"it keeps no row without one of {source.name}. Put the condition into ON to keep them, or "
                        "write JOIN."
                    )
                    pitfalls.append(rule_input.pitfall("outer_join", condition, text, "ask"))
    return pitfalls


def find_null_rejected_columns(block: SelectBlock, condition: Expr) -> set[FromColumn]:
    """Return the columns that cannot be NULL if the condition is true.

    Columns that the condition tests for NULL by name are left out.
    """
    condition = condition.unnest()
    if isinstance(condition, exp.Or | exp.And):
        left, right = (find_null_rejected_columns(block, side) for side in (condition.this, condition.expression))
        if isinstance(condition, exp.And):
            return left | right
        # Under OR, only a source that both sides reject is lost.
        rejected_twice = {origin.source for origin in left} & {origin.source for origin in right}
        return {origin for origin in left | right if origin.source in rejected_twice}
    if isinstance(condition, exp.Not):
        inner = condition.this.unnest()
        # Of NULL, NOT (x IN ...) is NULL just as x IN ... is.
        is_filter = isinstance(inner, exp.In | exp.Between | LIKES)
        return find_null_rejected_columns(block, inner) if is_filter else set()
    if not isinstance(condition, exp.In | exp.Between | COMPARISONS | LIKES):
        return set()
    operands = [condition.this, condition.expression if isinstance(condition, COMPARISONS | LIKES) else None]
    columns = [column for value in operands if value is not None for column in value.find_all(exp.Column)]
    return {origin for column in columns if not is_null_handled(column, condition) for origin in block.origins(column)}


def is_null_handled(column: Expr, condition: Expr) -> bool:
    """Return whether an expression around the column turns NULL into another value."""
    around = column.find_ancestor(exp.Coalesce, exp.Case, exp.If, exp.Is, exp.Select)
    return around is not None and is_subexpression(around, condition)
