"""Changes that somebody asks about, as UPDATEs of a named column of the scratch copy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from decisor.decision_models.copying import Copy
from decisor.decision_models.machine import OpenModel
from decisor.errors import ToolError
from decisor.plurals import counted
from decisor.quoting import quoted
from decisor.replies.changes import Change

if TYPE_CHECKING:
    from sqlglot import exp

NEAR = 3
DEEPEST = 200
"""Brackets and the like in one change."""


def updates(model: OpenModel, changes: Iterable[Change]) -> str:
    """The statements, one UPDATE of one column each, checked again by the worker's own list.

    Raises:
        ToolError: there is no such table or column, it is another statement, or it changes no row.
    """
    changes = tuple(changes)
    texts = [update(model.copies, one) for one in changes]
    text = ";\n".join(texts)
    for change, (rows, whole) in zip(changes, model.touched(text), strict=True):
        if not rows:
            raise ToolError(f"No row of {change.table} ({counted(whole, 'row')}) meets {change.where or 'it'}, so this "
                            f"changes nothing.{values_of(model.copies, change)}")  # fmt: skip
    return text


def update(copies: Mapping[str, Copy], change: Change) -> str:
    """
    >>> from decisor.decision_models.copying import CopyColumn
    >>> lane = Copy("lane", (CopyColumn("cost", (1.0,)),), "")
    >>> update({"lane": lane}, Change("LANE", "Cost", "cost * 2", "cost > 1"))
    'UPDATE "lane" SET "cost" = cost * 2 WHERE cost > 1'
    """
    table = one_of(change.table, [*copies], "table")
    columns = [column.name for column in copies[table].columns]
    column = one_of(change.column, columns, f"column of {table}")
    where = f" WHERE {change.where}" if change.where else ""
    return single(f"UPDATE {quoted(table)} SET {quoted(column)} = {change.value}{where}", table, column)


def single(text: str, table: str, column: str) -> str:
    """The statement as its parse has it, where that is one UPDATE of this column and nothing else."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if text.count("(") > DEEPEST:
        raise ToolError("This change is nested too deeply.")
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect="duckdb") if tree is not None]
    except (SqlglotError, RecursionError) as error:
        complaint = " ".join(str(error).replace("\x1b[4m", "").replace("\x1b[0m", "").split())[:200]
        raise ToolError(f"{text} is not DuckDB's SQL: {complaint}") from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Update) or not sets_only(tree, table, column):
        raise ToolError(f"Only {table}.{column} may be changed here, by one expression and one condition.")
    return str(tree.sql("duckdb"))


def sets_only(tree: exp.Expr, table: str, column: str) -> bool:
    from sqlglot import exp

    own = {name for name, value in tree.args.items() if value} <= {"this", "expressions", "where"}
    place = tree.expressions[0] if len(tree.expressions) == 1 else None
    return (
        own and tree.this.name == table and isinstance(place, exp.EQ)
        and isinstance(place.this, exp.Column) and place.this.name == column
    )  # fmt: skip


def one_of(name: str, there: Sequence[str], kind: str) -> str:
    """The name as it stands there, whatever the case. Raises ToolError with what there is."""
    lower = {one.lower(): one for one in there}
    if name.lower() not in lower:
        near = difflib.get_close_matches(name.lower(), lower, NEAR)
        rest = f"close to it: {', '.join(lower[one] for one in near)}" if near else f"there is {', '.join(there[:20])}"
        raise ToolError(f"{name} is no {kind} of this model; {rest}.")
    return lower[name.lower()]


def values_of(copies: Mapping[str, Copy], change: Change) -> str:
    """Some values of a column that the condition names, for who misspelt one."""
    table = one_of(change.table, [*copies], "table")
    for column in copies[table].columns:
        texts = [value for value in dict.fromkeys(column.values) if isinstance(value, str)][:5]
        if texts and column.name.lower() in change.where.lower():
            return f" {column.name} is one of {', '.join(texts)}, ..."
    return ""
