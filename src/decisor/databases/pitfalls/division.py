"""A division of whole numbers that drops the fraction (integer_division).

    SELECT COUNT(CASE WHEN status = 'paid' THEN 1 END) / COUNT(*) FROM orders

is 0 unless all are paid, as ``/`` drops the fraction in SQLite and PostgreSQL. ``a / 10 * 10``, what a query groups by,
and a question for whole numbers mean it.
"""

from __future__ import annotations

import re

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import SelectBlock, find_column
from decisor.databases.pitfalls.rule import RuleInput
from decisor.types import Pitfall

MEANS_WHOLE = re.compile(r"\b(?:integers?|whole|rounded)\b", re.I)
WHOLE = re.compile(r"^(tiny|small|medium|big)?int(eger)?\d?\b|serial", re.I)


async def integer_division(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls: list[Pitfall] = []
    # sqlglot sets "typed" where the dialect's / drops the fraction of whole numbers.
    is_typed = any(node.args.get("typed") for node in rule_input.find(exp.Div))
    if not is_typed or MEANS_WHOLE.search(rule_input.asked.text):
        return pitfalls
    for block in rule_input.blocks:
        for node in block.nodes.find(exp.Div):
            if not node.args.get("typed"):
                continue
            is_whole = is_whole_number(block, node.this) and is_whole_number(block, node.expression)
            if is_whole and not is_intended_division(block, node):
                text = "{} divides whole numbers and drops what is behind the point. Write * 1.0 / for the exact share."
                pitfalls.append(rule_input.pitfall("integer_division", node, text, "ask"))
    return pitfalls


def is_whole_number(block: SelectBlock, value: Expr | None) -> bool:
    """Return whether a value is a whole number by its type."""
    value = value.unnest() if value is not None else None
    match value:
        case exp.Literal():
            return not value.is_string and value.name.isdigit()
        case exp.Count() | exp.CountIf() | exp.Length() | exp.RowNumber() | exp.Rank() | exp.DenseRank():
            return True
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return is_whole_number(block, value.this) and is_whole_number(block, value.expression)
        case exp.Sum() | exp.Max() | exp.Min() | exp.Abs() | exp.Neg() | exp.Window() | exp.Filter() | exp.Distinct():
            return is_whole_number(block, value.this)
        case exp.Coalesce():
            return all(is_whole_number(block, operand) for operand in (value.this, *value.expressions))
        case exp.Case() | exp.If():
            branches = value.args["ifs"] if isinstance(value, exp.Case) else [value]
            default = value.args.get("default" if isinstance(value, exp.Case) else "false")
            results = [*(branch.args["true"] for branch in branches), default]
            return all(
                result is None or isinstance(result, exp.Null) or is_whole_number(block, result) for result in results
            )
        case exp.Cast():
            return bool(WHOLE.match(value.to.sql()))
        case exp.Select():
            inner = block.block_of(value)
            return inner is not None and is_whole_number(inner, value.expressions[0].unalias())
        case exp.Column() if origin := block.source_column(value):
            source = origin.source
            if source.block is not None:
                return is_whole_number(source.block, source.block.outputs.get(origin.column))
            column = find_column(origin)
            return column is not None and WHOLE.match(column.type) is not None
        case _:
            return False


def is_intended_division(block: SelectBlock, node: Expr) -> bool:
    """Return whether a query means to drop the fraction.

    So it is with ``a / 10 * 10``, a bucket of GROUP BY, a value that becomes a whole number anyway, and 10 / 5.
    """
    if any(node == group or group.find(exp.Div) == node for group in block.groups or ()):
        return True
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    # a / 10 * 10 rounds down to a multiple on purpose.
    if isinstance(around, exp.Mul) and around.expression == node.expression:
        return True
    if isinstance(around, exp.Floor | exp.Trunc) or (isinstance(around, exp.Cast) and WHOLE.match(around.to.sql())):
        return True
    dividend, divisor = node.this.unnest(), node.expression.unnest()
    # hits * 100 / tries > 30: what is dropped is less than one of a hundred.
    if isinstance(around, exp.GT | exp.GTE | exp.LT | exp.LTE) and isinstance(dividend, exp.Mul):
        return any(factor.name in ("100", "1000") for factor in (dividend.this, dividend.expression))
    is_constant = isinstance(dividend, exp.Literal) and isinstance(divisor, exp.Literal)
    return is_constant and divisor.name not in ("", "0") and int(dividend.name) % int(divisor.name) == 0
