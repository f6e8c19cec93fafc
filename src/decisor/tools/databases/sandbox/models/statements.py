"""The statements of a model: parsed once, and made of allowed nodes only, on the tree of the parse.

Queries meet the guard of a model's queries. What changes the copy is UPDATE, DELETE or INSERT, of the same nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.comments import without_comments
from decisor.tools.databases.sandbox.engines.duckdb import DIALECT
from decisor.tools.databases.sandbox.guard import Guard
from decisor.tools.databases.sandbox.names import words
from decisor.tools.databases.sandbox.statement_size import refuse, within_size
from decisor.types import Value

if TYPE_CHECKING:
    from sqlglot import exp

CHANCE = words("rand random uuid gen_random_uuid uuidv4 uuidv7 setseed generateuuidv4")
GUARD = Guard(replace(DIALECT, functions=DIALECT.functions | words("gamma lgamma fmod least greatest"),
                      refused_functions=DIALECT.refused_functions | CHANCE))  # fmt: skip

NEAR = """CREATE MACRO __near(a, b) AS (typeof(a) IN ('DOUBLE', 'FLOAT') OR typeof(b) IN ('DOUBLE', 'FLOAT'))
AND isfinite(TRY_CAST(a AS DOUBLE)) AND isfinite(TRY_CAST(b AS DOUBLE))
AND abs(TRY_CAST(a AS DOUBLE) - TRY_CAST(b AS DOUBLE))
    <= 1e-9 * greatest(abs(TRY_CAST(a AS DOUBLE)), abs(TRY_CAST(b AS DOUBLE)))"""
"""Whether two numbers are one but for rounding, where one is a DOUBLE: 0.1 + 0.2 and 0.3. Whole numbers, decimals,
dates and texts are compared as they are."""
FACTOR = "__factor"
"""A parameter that the machine has a value for in each trial."""


@dataclass(frozen=True)
class Statement:
    """``tree`` is never changed: rewriting works on copies. ``part``: where in the file it stands (rule.NAME.broken).
    ``target``: the table that it changes, '' for a query. ``reads``: tables it names, and parts of its WITH;
    ``names``: parameters."""

    part: str
    tree: exp.Expr
    target: str
    reads: frozenset[str]
    names: frozenset[str]


def queries(part: str, text: str, parameters: Mapping[str, Value]) -> Statement:
    """One query. Raises ToolError (refused) with the part and the reason."""
    only = statements(part, text, parameters)
    if len(only) != 1 or only[0].target:
        raise refuse(f"{part} is to be one query (SELECT).")
    return only[0]


def changes(part: str, text: str, parameters: Mapping[str, Value]) -> list[Statement]:
    """UPDATE, DELETE and INSERT, separated by semicolons."""
    every = statements(part, text, parameters)
    if any(not one.target for one in every):
        raise refuse(f"{part} is to be UPDATE, DELETE or INSERT.")
    return every


def statements(part: str, text: str, parameters: Mapping[str, Value]) -> list[Statement]:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ErrorLevel, SqlglotError

    if not text.strip():
        return []
    try:
        within_size(text)
        plain = without_comments(text, "duckdb")
        trees = sqlglot.parse(plain, dialect="duckdb", error_level=ErrorLevel.RAISE)
        return [statement(part, tree, parameters) for tree in trees if tree and not isinstance(tree, exp.Semicolon)]
    except SqlglotError as error:
        complaint = " ".join(str(error).replace("\x1b[4m", "").replace("\x1b[0m", "").split())[:300]
        raise refuse(f"{part} does not parse as DuckDB's SQL: {complaint}") from error
    except ToolError as error:
        reason = str(error).removeprefix("Refused: ").removeprefix(f"{part}: ")
        raise refuse(f"{part}: {reason}") from error


def statement(part: str, tree: exp.Expr, parameters: Mapping[str, Value]) -> Statement:
    from sqlglot import exp

    fill(tree, parameters)
    if not isinstance(tree, exp.Query | exp.Update | exp.Delete | exp.Insert):
        raise refuse(f"{type(tree).__name__.upper()} is not allowed; a model has SELECT, UPDATE, DELETE and INSERT.")
    GUARD.nodes(tree, changing=not isinstance(tree, exp.Query))
    if odd := next((one.name for one in tree.find_all(exp.Identifier) if one.name.startswith("__")), ""):
        raise refuse(f"{odd}: names that begin with __ are the machine's own.")
    if DIALECT.rewrite:
        tree = DIALECT.rewrite(tree)
    target = "" if isinstance(tree, exp.Query) else target_of(tree)
    tables = {table.name.lower() for table in tree.find_all(exp.Table) if table.name}
    names = {one.name for one in tree.find_all(exp.Placeholder)}
    return Statement(part, tree, target, frozenset(tables), frozenset(names))


def with_tolerance(statement: Statement) -> Statement:
    """Compare numbers within rounding: a load of 0.1 + 0.2 is not above a limit of 0.3.

    >>> with_tolerance(queries("rule", "SELECT 1 FROM t WHERE a > 0.3", {})).tree.sql("duckdb")
    'SELECT 1 FROM t WHERE (a > 0.3 AND NOT __NEAR(a, 0.3))'
    """
    from sqlglot import exp

    tree = statement.tree.copy()
    for between in list(tree.find_all(exp.Between)):
        value, low, high = between.this, between.args["low"], between.args["high"]
        between.replace(exp.paren(exp.and_(value >= low, value <= high)))
    for one in list(tree.find_all(exp.GT, exp.LT, exp.NEQ, exp.GTE, exp.LTE, exp.EQ)):
        if isinstance(one.find_ancestor(exp.Join, exp.Select), exp.Join) or isinstance(
            one.expression, exp.All | exp.Any
        ):
            continue  # a join on such a comparison would no longer be one by hashes
        if isinstance(one, exp.EQ | exp.NEQ) and not one.find(exp.AggFunc, exp.Add, exp.Sub, exp.Mul, exp.Div):
            continue
        near = exp.Anonymous(this="__near", expressions=[one.this.copy(), one.expression.copy()])
        strict = isinstance(one, exp.GT | exp.LT | exp.NEQ)
        one.replace(exp.paren(exp.and_(one.copy(), exp.not_(near)) if strict else exp.or_(one.copy(), near)))
    return replace(statement, tree=tree)


def target_of(tree: exp.Expr) -> str:
    from sqlglot import exp

    named = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier) or named.db:
        raise refuse("what is changed is to be a table of the copy.")
    return named.name.lower()


def fill(tree: exp.Expr, values: Mapping[str, Value]) -> None:
    """Parameters of these names become literals, in place."""
    from sqlglot import exp

    for place in list(tree.find_all(exp.Placeholder)):
        if place.name in values:
            place.replace(literal(values[place.name]))


def literal(value: Value) -> exp.Expr:
    from sqlglot import exp

    if isinstance(value, float):
        return exp.cast(exp.Literal.number(repr(value)) if value >= 0 else exp.Literal.string(repr(value)), "DOUBLE")
    return exp.convert(value if isinstance(value, int | str | None) else str(value))


def with_factor(statement: Statement, factor: float) -> Statement:
    """Where it stands as ``$__factor``."""
    if FACTOR not in statement.names:
        return statement
    tree = statement.tree.copy()
    fill(tree, {FACTOR: factor})
    return replace(statement, tree=tree, names=statement.names - {FACTOR})


def assigned(statement: Statement) -> tuple[str, ...]:
    """The columns that an UPDATE sets.

    >>> assigned(changes("change", "UPDATE t SET a = 1, b = 2", {})[0])
    ('a', 'b')
    """
    from sqlglot import exp

    if not isinstance(statement.tree, exp.Update):
        return ()
    return tuple(one.this.name for one in statement.tree.expressions if isinstance(one, exp.EQ))
