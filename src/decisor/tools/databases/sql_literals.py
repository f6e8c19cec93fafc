"""The literals that a statement in SQL compares with columns, and how the stored values are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from decisor.tools.databases.hints import MOST_VALUES, Literal
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sql_tables import TableInfo

if TYPE_CHECKING:
    from sqlglot import Expr, exp

ANY_CASE = ("mysql", "tsql")
ANY_CASE_LIKE = (*ANY_CASE, "sqlite")
"""Dialects in which ``=`` and LIKE compare letters in any case, unless a collation says otherwise."""


def literals(statement: str, tables: Sequence[TableInfo], dialect: Dialect) -> tuple[Literal, ...]:
    """Of ``=``, IN and LIKE, each once. A statement that does not parse has none."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(statement, dialect=dialect.name)
    except (SqlglotError, RecursionError):
        return ()
    return tuple(dict.fromkeys(_literals(tree, tables, dialect)))


def _literals(tree: Expr, tables: Sequence[TableInfo], dialect: Dialect) -> Iterator[Literal]:
    from sqlglot import exp

    names = {table.bare.lower(): table for table in tables}
    aliases = {
        node.alias_or_name.lower(): names[node.name.lower()]
        for node in tree.find_all(exp.Table)
        if node.name.lower() in names
    }
    for node in tree.find_all(exp.EQ, exp.In, exp.Like, exp.ILike):
        sides = [node.this, *(node.args.get("expressions") or [node.args.get("expression")])]
        columns = [side for side in map(_bare, sides) if isinstance(side, exp.Column)]
        pattern = isinstance(node, exp.Like | exp.ILike)
        if pattern and not is_part(node):
            continue
        any_case = (
            isinstance(node, exp.ILike)
            or any(isinstance(side, exp.Lower | exp.Upper) for side in sides)
            or dialect.name in (ANY_CASE_LIKE if pattern else ANY_CASE)
        )
        for side in map(_bare, sides):
            if len(columns) == 1 and isinstance(side, exp.Literal):
                for one in _literal(side, columns[0], aliases, dialect):
                    yield replace(one, part=pattern, any_case=any_case)


def is_part(pattern: Expr) -> bool:
    """Whether a LIKE asks for a part of a text, with ``%`` at the ends alone."""
    from sqlglot import exp

    inner = pattern.expression.name.strip("%")
    return not isinstance(pattern.parent, exp.Escape) and not any(mark in inner for mark in "%_\\[")


def _bare(side: Expr | None) -> Expr | None:
    """What stands within LOWER or the like, by itself."""
    from sqlglot import exp

    return side.this if isinstance(side, exp.Lower | exp.Upper | exp.Trim) else side


def _literal(
    literal: exp.Literal, column: exp.Column, aliases: dict[str, TableInfo], dialect: Dialect
) -> Iterator[Literal]:
    homes = [aliases[column.table.lower()]] if column.table.lower() in aliases else list(aliases.values())
    for table in homes:
        for info in table.columns:
            if info.name.lower() != column.name.lower():
                continue
            name, place = dialect.quoted(info.name), f"{table.name}.{info.name}"
            source = f"{name} FROM {table.place(dialect)} WHERE {name} IS NOT NULL"
            if literal.is_string:
                yield Literal(literal.name.strip("%"), place, f"SELECT DISTINCT {source} LIMIT {MOST_VALUES}")
            else:
                number = float(literal.name)
                yield Literal(number, place, f"SELECT {source} ORDER BY abs({name} - {number!r}) LIMIT 3")
            return
