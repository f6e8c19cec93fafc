"""VALUES as a statement of its own, in MySQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decisor.tools.databases.sandbox.statement_size import refuse

if TYPE_CHECKING:
    from sqlglot import Expr


def values_of(text: str) -> Expr:
    """MySQL's VALUES as a statement of its own, which sqlglot reads only inside a FROM, as selects: MySQL and MariaDB
    do not write it alike."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(f"INSERT INTO t {text}", dialect="mysql")
    values = tree.expression
    if not isinstance(values, exp.Values) or {key for key, value in tree.args.items() if value} != {
        "this",
        "expression",
    }:
        raise refuse("only plain rows may follow VALUES.")
    selects = [exp.select(*cells_of(row)) for row in values.expressions]
    return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False, copy=False)


def cells_of(row: Expr) -> list[Expr]:
    """Of ``(1, 2)`` and of ``ROW(1, 2)``."""
    from sqlglot import exp

    inner = row.expressions[0] if len(row.expressions) == 1 else row
    cells = inner.expressions if isinstance(inner, exp.Func) and inner.name.upper() == "ROW" else row.expressions
    return [exp.alias_(cell, f"column_{number}") for number, cell in enumerate(cells)]
