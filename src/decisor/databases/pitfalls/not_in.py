"""NULL among the values of NOT IN (not_in_nulls).

    SELECT name FROM staff WHERE id NOT IN (SELECT boss_id FROM staff)

returns nothing as soon as one boss_id is NULL; and ``team NOT IN ('red')`` leaves out the rows whose team is NULL.
Whether there is a NULL is looked up.
"""

from __future__ import annotations

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import FromColumn, SelectBlock, find_column, is_subexpression
from decisor.databases.pitfalls.rule import COMPARISONS, LIKES, RuleInput
from decisor.types import Pitfall


async def not_in_nulls(rule_input: RuleInput) -> list[Pitfall]:
    texts = [
        await check_not_in(block, negation, negation.this.unnest(), rule_input)
        for block in rule_input.blocks
        for negation in block.nodes.find(exp.Not)
        if isinstance(negation.this.unnest(), exp.In)
    ]
    return [Pitfall("not_in_nulls", text) for text in texts if text]


async def check_not_in(block: SelectBlock, negation: exp.Not, node: exp.In, rule_input: RuleInput) -> str:
    written = rule_input.shorten(negation if node.parent is negation else node)
    query = node.args.get("query")
    if query is not None:
        if await holds_null(query.unnest(), block, rule_input):
            return (
                f"{written} is true of no row: what the subquery brings holds NULL. Add WHERE ... IS NOT NULL to it, "
                "or use NOT EXISTS."
            )
    elif any(isinstance(value, exp.Null) for value in node.expressions):
        return f"{written} is true of no row, as NULL is among the values. Leave it out, and use IS NOT NULL beside it."
    elif not node.find_ancestor(exp.Or, exp.Case):
        origin = block.source_column(node.this)
        if origin is not None and await stores_null(origin, rule_input):
            return f"{written} leaves out the rows whose {origin.column} is NULL too. Add OR ... IS NULL to count them."
    return ""


async def holds_null(select: Expr, block: SelectBlock, rule_input: RuleInput) -> bool:
    """Return whether a subquery returns NULL, by its declarations, its conditions and the stored rows."""
    inner = block.block_of(select)
    if inner is None or not isinstance(select, exp.Select) or not select.expressions:
        return False
    origin = inner.source_column(select.expressions[0].unalias())
    if origin is None or (origin.source not in inner.nullable and is_declared_not_null(origin)):
        return False
    # Conditions of the subquery may have removed NULL already.
    for home, condition in inner.conditions:
        is_tested = any(
            node.args.get("negate") or isinstance(node.parent, exp.Not) for node in condition.find_all(exp.Is)
        )
        if is_tested and origin in home.origins_of_value(condition):
            return False
        if origin in find_null_rejected_columns(home, condition):
            return False
    used = (source for _, condition in inner.conditions for source, _ in inner.origins_of_value(condition))
    if any(source not in inner.sources for source in used):  # correlated: it does not run by itself
        return await stores_null(origin, rule_input)
    copy = select.copy()
    copy.set("expressions", [exp.alias_(copy.expressions[0].unalias(), "v")])
    name, subquery = rule_input.dialect.quoted("v"), inner.statement.write(copy)
    query = f"{inner.statement.with_clause} SELECT 1 FROM ({subquery}) AS q WHERE q.{name} IS NULL LIMIT 1"
    return await rule_input.stored.has_row(query.strip())


def is_declared_not_null(origin: FromColumn) -> bool:
    column = find_column(origin)
    return column is not None and (column.key or not column.nullable)


async def stores_null(origin: FromColumn, rule_input: RuleInput) -> bool:
    source, stored = origin.source, rule_input.stored
    if source.table is None or not source.text or is_declared_not_null(origin):
        return False
    name = stored.quoted_column(source, origin.column)
    return await stored.has_row(f"SELECT 1 FROM {source.text} WHERE {name} IS NULL LIMIT 1")


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
