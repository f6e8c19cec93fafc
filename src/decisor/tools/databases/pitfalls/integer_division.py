"""A division of whole numbers that drops what is behind the point, as ``/`` does in SQLite and PostgreSQL.

    SELECT COUNT(CASE WHEN status = 'paid' THEN 1 END) / COUNT(*) FROM orders

is 0 unless all are paid. ``a / 10 * 10`` and what a query groups by mean it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, short_sql

if TYPE_CHECKING:
    from sqlglot import Expr, exp

KIND = "integer_division"
WHOLE = re.compile(r"^(tiny|small|medium|big)?int(eger)?\d?\b|serial", re.I)


async def integer_division(look: Look) -> list[Pitfall]:
    from sqlglot import exp

    nodes = [(block, node) for block in look.blocks for node in block.select.find_all(exp.Div)
             if node.parent_select is block.select]  # fmt: skip
    return [
        Pitfall(KIND, wording(short_sql(node, look.dialect)))
        for block, node in nodes
        if node.args.get("typed") and whole(block, node.this) and whole(block, node.expression)
        and not is_meant(block, node)
    ]  # fmt: skip


def whole(block: Block, value: Expr | None) -> bool:
    """Whether it is a whole number by its type."""
    from sqlglot import exp

    value = value.unnest() if value is not None else None
    match value:
        case exp.Literal():
            return not value.is_string and value.name.isdigit()
        case exp.Count() | exp.CountIf() | exp.Length() | exp.RowNumber() | exp.Rank() | exp.DenseRank():
            return True
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return whole(block, value.this) and whole(block, value.expression)
        case exp.Sum() | exp.Max() | exp.Min() | exp.Abs() | exp.Neg() | exp.Window() | exp.Filter() | exp.Distinct():
            return whole(block, value.this)
        case exp.Coalesce():
            return all(whole(block, one) for one in (value.this, *value.expressions))
        case exp.Case():
            branches = [*(one.args["true"] for one in value.args["ifs"]), value.args.get("default")]
            return all(one is None or isinstance(one, exp.Null) or whole(block, one) for one in branches)
        case exp.If():
            branches = [value.args["true"], value.args.get("false")]
            return all(one is None or isinstance(one, exp.Null) or whole(block, one) for one in branches)
        case exp.Cast():
            return bool(WHOLE.match(value.to.sql()))
        case exp.Select():
            inner = block.within.get(id(value))
            return inner is not None and whole(inner, value.expressions[0].unalias())
        case exp.Column():
            return whole_column(block, value)
        case _:
            return False


def whole_column(block: Block, column: exp.Column) -> bool:
    origin = block.bare(column)
    if origin is None:
        return False
    if origin.source.block is not None:
        return whole(origin.source.block, origin.source.block.outputs.get(origin.column))
    columns = origin.source.table.columns if origin.source.table else ()
    return any(one.name.lower() == origin.column and WHOLE.match(one.type) for one in columns)


def is_meant(block: Block, node: Expr) -> bool:
    """``a / 10 * 10``, a bucket that the query groups by, what is made a whole number anyway, and 10 / 5."""
    from sqlglot import exp

    if any(node == one or one.find(exp.Div) == node for one in block.groups() or ()):
        return True
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    if isinstance(around, exp.Mul) and around.expression == node.expression:
        return True
    if isinstance(around, exp.Floor | exp.Trunc) or (isinstance(around, exp.Cast) and WHOLE.match(around.to.sql())):
        return True
    one, two = node.this.unnest(), node.expression.unnest()
    numbers = isinstance(one, exp.Literal) and isinstance(two, exp.Literal)
    return numbers and two.name not in ("", "0") and int(one.name) % int(two.name) == 0


def wording(text: str) -> str:
    return f"{text} divides whole numbers and drops what is behind the point. Write * 1.0 / for the exact share."
