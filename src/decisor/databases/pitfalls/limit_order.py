"""Rows that a limit chooses by chance (limit_order).

    SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC LIMIT 1

returns one of four countries that have three customers each. Whether the row behind the cut is equal is looked up.
"""

from __future__ import annotations

from sqlglot import exp

from decisor.databases.pitfalls.blocks import SelectBlock, literal_row_count
from decisor.databases.pitfalls.rule import RuleInput
from decisor.types import Pitfall


async def limit_order(rule_input: RuleInput) -> list[Pitfall]:
    texts = [await check_limit_order(block, rule_input) for block in rule_input.blocks]
    return [Pitfall("limit_order", text) for text in texts if text]


async def check_limit_order(block: SelectBlock, rule_input: RuleInput) -> str:
    select = block.select
    most = literal_row_count(select.args.get("limit") or select.args.get("fetch"))
    is_one_row = not block.groups and block.has_aggregates()
    if most is None or is_one_row or not block.sources or select.find_ancestor(exp.Exists):
        return ""
    is_outermost = select is rule_input.tree
    # Fewer rows than the limit: nothing was cut.
    if is_outermost and rule_input.result is not None and len(rule_input.result.rows) < most:
        return ""
    rows = most + (literal_row_count(select.args.get("offset")) or 0)
    if select.args.get("order") is None:
        query = f"SELECT 1 FROM ({block.statement.write(without_limit(select))}) AS q LIMIT 1 OFFSET {rows}"
        table = await rule_input.stored.rows(add_with_clause(block, query))
        if table is not None and not table.rows:
            return ""
        return f"LIMIT {most} without ORDER BY: which rows it keeps is left to chance. Say by what order."
    if most and not is_order_total(block) and await has_tie_at_cut(block, rows, rule_input):
        return (
            f"The row behind LIMIT {most} is equal in ORDER BY to the last one before it: which of them is kept is "
            "left to chance. Name all of them (RANK(), or a larger LIMIT), or say what decides between them."
        )
    return ""


def is_order_total(block: SelectBlock) -> bool:
    """Return whether, by keys, no two rows are equal in ORDER BY."""
    known = block.source_columns(block.meant(term.this) for term in block.select.args["order"].expressions)
    if block.groups is not None:
        return block.determines(known, [origin for group in block.groups for origin in block.origins_of_value(group)])
    return len(block.closure(known, ())[1]) == len(block.sources)


def without_limit(select: exp.Select) -> exp.Select:
    """Return a copy of a SELECT without its order and limit."""
    copy = select.copy()
    for name in ("limit", "offset", "fetch", "order"):
        copy.set(name, None)
    return copy


async def has_tie_at_cut(block: SelectBlock, rows: int, rule_input: RuleInput) -> bool:
    """Return whether the last row before the cut (of so many rows) and the first behind it are equal in ORDER BY."""
    copy, terms = without_limit(block.select), block.select.args["order"].expressions
    values = [block.meant(term.this) for term in terms]
    has_star = any(item.is_star for item in block.select.expressions)
    # DISTINCT stays what it is only if the order adds no column.
    if block.select.args.get("distinct") and (has_star or any(value not in block.outputs.values() for value in values)):
        return False
    # The columns stay before those of the order: GROUP BY 1 and HAVING n > 1 speak of them.
    columns = [] if has_star else copy.expressions
    copy.set("expressions", [*columns, *(exp.alias_(value.copy(), f"o{at}") for at, value in enumerate(values))])
    order = [term.copy() for term in terms]
    for term, value in zip(order, values, strict=True):
        term.set("this", value.copy())
    copy.set("order", exp.Order(expressions=order))
    query = add_with_clause(block, f"{block.statement.write(copy)} LIMIT 2 OFFSET {rows - 1}")
    table = await rule_input.stored.rows(query)
    if table is None or len(table.rows) < 2:
        return False
    before, behind = (row[-len(values) :] for row in table.rows)
    return before == behind


def add_with_clause(block: SelectBlock, query: str) -> str:
    """Return a query on a block with the WITH that it needs, unless the block has one itself."""
    return query if block.select.args.get("with_") else f"{block.statement.with_clause} {query}".strip()
