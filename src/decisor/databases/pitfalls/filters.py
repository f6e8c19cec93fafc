"""Pitfalls of filters and limits: NULL in NOT IN, lost outer joins, dates as text, values not stored, ties.

    SELECT name FROM staff WHERE id NOT IN (SELECT boss_id FROM staff)

returns nothing as soon as one boss_id is NULL; and ``team NOT IN ('red')`` leaves out the rows whose team is NULL
(not_in_nulls). Whether there is a NULL is looked up.

    SELECT c.name, COUNT(o.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id
    WHERE o.status = 'paid' GROUP BY c.name

has no customer without a paid order: of those without any, o.status is NULL, and NULL = 'paid' is not true
(outer_join).

    SELECT title FROM events WHERE happened > '15/06/2023'

where happened is a text such as 25/12/2023: '25/12/2022' is behind '15/06/2023' too (text_dates). Texts that begin
with the year sort as dates do, if both sides are written alike.

    SELECT COUNT(*) FROM orders WHERE status <> 'canceled'

counts all orders if the stored word is cancelled (unstored_value). Whether a value is stored is looked up, as the
engine compares.

    SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC LIMIT 1

returns one of four countries that have three customers each (limit_order). Whether the row behind the cut is equal is
looked up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import Expr, exp

from decisor.databases.hints import MAX_VALUES, ComparedLiteral, is_substring_pattern, suggest_stored_values
from decisor.databases.pitfalls.blocks import FromColumn, SelectBlock, conjuncts_of_clause
from decisor.databases.pitfalls.rule import RuleInput
from decisor.types import Pitfall

COMPARISONS = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
LIKES = exp.Like | exp.ILike


async def outer_join(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in rule_input.blocks:
        for condition in conjuncts_of_clause(block.select, "where") if block.nullable else ():
            rejected = {origin.source for origin in find_null_rejected_columns(block, condition)}
            for source in block.sources:
                if source in rejected & block.nullable:
                    text = (
                        f"WHERE {rule_input.shorten(condition)} drops the rows that the outer join fills with NULL: "
                        f"it keeps no row without one of {source.name}. Put the condition into ON to keep them, or "
                        "write JOIN."
                    )
                    pitfalls.append(Pitfall("outer_join", text))
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
    around = column.parent
    while around is not None and around is not condition:
        if isinstance(around, exp.Coalesce | exp.Case | exp.If | exp.Is | exp.Select):
            return True
        around = around.parent
    return False


async def not_in_nulls(rule_input: RuleInput) -> list[Pitfall]:
    texts = [
        await check_not_in(block, negation, negation.this.unnest(), rule_input)
        for block in rule_input.blocks
        for negation in block.select.find_all(exp.Not)
        if isinstance(negation.this.unnest(), exp.In) and negation.parent_select is block.select
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
    inner = block.within.get(id(select))
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
    name, subquery = rule_input.dialect.quoted("v"), copy.sql(dialect=rule_input.dialect.name)
    query = f"{inner.with_clause} SELECT 1 FROM ({subquery}) AS q WHERE q.{name} IS NULL LIMIT 1"
    return await rule_input.stored.has_row(query.strip())


def is_declared_not_null(origin: FromColumn) -> bool:
    columns = origin.source.table.columns if origin.source.table else ()
    return any(column.name.lower() == origin.column and (column.key or not column.nullable) for column in columns)


async def stores_null(origin: FromColumn, rule_input: RuleInput) -> bool:
    source, stored = origin.source, rule_input.stored
    if source.table is None or not source.text or is_declared_not_null(origin):
        return False
    name = stored.quoted_column(source, origin.column)
    return await stored.has_row(f"SELECT 1 FROM {source.text} WHERE {name} IS NULL LIMIT 1")


TEXT = re.compile(r"char|text|string|clob|^$", re.I)
DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}([./-]\d{1,2})?|\d{1,2}\.? [A-Za-z]{3,9}\.?,? \d{4}|"
    r"[A-Za-z]{3,9}\.? \d{1,2},? \d{4}"
)
SORTS = re.compile(r"9999[./-]99([./-]99)?")
WHOLE_DATE = "Name a whole date, such as '2024-01-01'."
AS_DATE = "Compare dates: cut the text apart (SUBSTR) into year-month-day, or convert both sides."


async def text_dates(rule_input: RuleInput) -> list[Pitfall]:
    return [
        Pitfall("text_dates", f"{rule_input.shorten(node)} {text}")
        for block in rule_input.blocks
        for node in block.select.find_all(exp.Predicate, exp.Max, exp.Min, exp.Ordered)
        if node.parent_select is block.select and not isinstance(node.parent, exp.Window | exp.WindowSpec)
        for text in check_text_dates(block, node, rule_input)
    ]


def check_text_dates(block: SelectBlock, node: Expr, rule_input: RuleInput) -> Iterator[str]:
    """Yield the ways in which a node compares or sorts dates as text."""
    if isinstance(node, exp.Max | exp.Min | exp.Ordered):
        stored = find_stored_dates(block, block.meant(node.this), rule_input)
        if stored and not SORTS.match(stored.shape):
            yield f"sorts dates as text, such as {stored.example}. {AS_DATE}"
        return
    for column, literal, is_day_before, is_equality in compare_with_texts(node):
        stored = find_stored_dates(block, column, rule_input)
        if stored is None:
            continue
        # In SQLite any text is larger than any number, and such a column takes digits for a number.
        if stored.is_number_type and re.fullmatch(r"\d+", literal):
            yield (
                f"compares with a number, and any text is larger: stored are texts such as {stored.example}. "
                f"{WHOLE_DATE}"
            )
        if not DATE.match(literal):
            continue
        shape = shape_of_date(literal)
        if not is_equality and not SORTS.match(stored.shape):
            yield f"compares dates as text, such as {stored.example}. {AS_DATE}"
        elif not (stored.shape.startswith(shape) or shape.startswith(stored.shape)):
            yield f"compares texts that are not written alike: stored are texts such as {stored.example}. {AS_DATE}"
        # A day is a prefix of its times and sorts before them all.
        elif (is_equality or is_day_before) and len(shape) < len(stored.shape) and SORTS.fullmatch(shape):
            end = "matches no text with a time" if is_equality else "has all of that day behind it, midnight too"
            yield f"{end}: stored are texts such as {stored.example}. Use >= the day and < the next one."


def compare_with_texts(node: Expr) -> Iterator[tuple[Expr, str, bool, bool]]:
    """Yield each compared value and its literal, with two flags.

    The first: the whole day of the literal belongs to the side before it, as with ``<=`` and ``>``. The second: the two
    are to be equal.
    """
    if isinstance(node, exp.Between):
        for key in ("low", "high"):
            if node.args[key].is_string:
                yield node.this, node.args[key].name, key == "high", False
    elif isinstance(node, COMPARISONS):
        is_equality = isinstance(node, exp.EQ | exp.NEQ)
        if node.expression.is_string:
            yield node.this, node.expression.name, isinstance(node, exp.LTE | exp.GT), is_equality
        elif node.this.is_string:
            yield node.expression, node.this.name, isinstance(node, exp.GTE | exp.LT), is_equality


class StoredDates(NamedTuple):
    """How the dates in a column of texts are written."""

    shape: str
    example: str
    is_number_type: bool
    """Whether the column converts texts that look like numbers."""


def find_stored_dates(block: SelectBlock, value: Expr, rule_input: RuleInput) -> StoredDates | None:
    """Return how the dates in a column of texts are written, None for any other column."""
    origin = block.source_column(value)
    columns = origin.source.table.columns if origin and origin.source.table else ()
    for column in columns:
        texts = [text for text in map(json.loads, column.examples) if isinstance(text, str)]
        is_text_type = TEXT.search(column.type) is not None
        holds_texts = is_text_type or rule_input.dialect.name == "sqlite"  # there a column of any type may
        if origin and column.name.lower() == origin.column and texts and holds_texts and all(map(DATE.match, texts)):
            return StoredDates(shape_of_date(texts[0]), texts[0], not is_text_type)
    return None


def shape_of_date(text: str) -> str:
    """Return a text with 9 for each digit and a for each letter.

    >>> shape_of_date("25/12/2023"), shape_of_date("5 Mar 2024")
    ('99/99/9999', '9 aaa 9999')
    """
    return re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "9", text))


MAX_LITERALS = 8


async def unstored_value(rule_input: RuleInput) -> list[Pitfall]:
    texts = [
        await check_stored_literal(block, *compared, rule_input)
        for block in rule_input.blocks
        for compared in list(compare_with_literals(block, conditions_met_by_result(block, rule_input)))[:MAX_LITERALS]
    ]
    return [Pitfall("unstored_value", text) for text in texts if text]


def conditions_met_by_result(block: SelectBlock, rule_input: RuleInput) -> list[Expr]:
    """Return the conditions that all rows of the result fulfil. The values that they compare with are stored."""
    has_rows = rule_input.result is not None and rule_input.result.rows
    if not has_rows or block.select is not rule_input.tree or block.has_aggregates():
        return []
    conditions = (
        part.this if isinstance(part, exp.Escape) else part for part in conjuncts_of_clause(block.select, "where")
    )
    return [part for part in conditions if isinstance(part, exp.EQ | LIKES) and not part.args.get("negate")]


def compare_with_literals(block: SelectBlock, met: list[Expr]) -> Iterator[tuple[Expr, Expr, Expr | None]]:
    """Yield each value with the literal that it is compared with, and the LIKE or ILIKE if it is one.

    The conditions ``met`` are left out.
    """
    for node in block.select.find_all(exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike):
        if node.parent_select is not block.select or any(node is condition for condition in met):
            continue
        for side in node.expressions if isinstance(node, exp.In) else [node.expression]:
            if isinstance(side, exp.Literal):
                yield node.this, side, node if isinstance(node, LIKES) else None
            elif isinstance(node.this, exp.Literal) and not isinstance(node, exp.In | LIKES):
                yield side, node.this, None
    for case in block.select.find_all(exp.Case):
        if case.this is not None and case.parent_select is block.select:
            values = (branch.this for branch in case.args["ifs"])
            yield from ((case.this, value, None) for value in values if isinstance(value, exp.Literal))


async def check_stored_literal(
    block: SelectBlock, value: Expr, literal: Expr, pattern: Expr | None, rule_input: RuleInput
) -> str:
    """Describe a literal that no row stores, in the words used for a query without rows; '' if one does."""
    stored, dialect = rule_input.stored, rule_input.dialect
    column = value.this if isinstance(value, exp.Lower | exp.Upper | exp.Trim) else value
    origin = block.source_column(column)
    table = origin.source.table if origin else None
    if origin is None or table is None or table.view or not origin.source.text:
        return ""
    written = stored.column_name(origin.source, origin.column)
    operand: Expr = exp.column(written, quoted=True)
    operand = operand if value is column else type(value)(this=operand)
    condition: Expr = (exp.EQ if pattern is None else type(pattern))(this=operand, expression=literal.copy())
    if pattern is not None and isinstance(pattern.parent, exp.Escape):
        condition = exp.Escape(this=condition, expression=pattern.parent.expression.copy())
    query = f"SELECT 1 FROM {origin.source.text} WHERE {condition.sql(dialect=dialect.name)} LIMIT 1"
    matching = await stored.rows(query)
    # An empty literal tests for emptiness, and % matches any text.
    if matching is None or matching.rows or literal.name in ("", "%"):
        return ""
    name = dialect.quoted(written)
    source = f"{name} FROM {origin.source.text} WHERE {name} IS NOT NULL"
    number = None if literal.is_string else float(literal.name)
    query = f"SELECT DISTINCT {source} LIMIT {MAX_VALUES}"
    if number is not None:
        query = f"SELECT {source} ORDER BY abs({name} - {number!r}) LIMIT 3"
    values = await stored.rows(query, MAX_VALUES)
    compared = ComparedLiteral(
        literal.name.strip("%") if number is None else number,
        f"{table.name}.{written}",
        query,
        part=pattern is not None,
        any_case=isinstance(value, exp.Lower | exp.Upper) or isinstance(pattern, exp.ILike),
    )
    is_simple = pattern is None or is_substring_pattern(pattern)
    text = suggest_stored_values(compared, [row[0] for row in values.rows]) if values and is_simple else ""
    return text or f"{compared.place} has no {rule_input.shorten(literal)}."


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
    copy = select.copy()
    for name in ("limit", "offset", "fetch", "order"):
        copy.set(name, None)
    if select.args.get("order") is None:
        query = f"SELECT 1 FROM ({copy.sql(dialect=rule_input.dialect.name)}) AS q LIMIT 1 OFFSET {rows}"
        table = None if is_outermost else await rule_input.stored.rows(add_with_clause(block, query))
        if table is not None and not table.rows:
            return ""
        return f"LIMIT {most} without ORDER BY: which rows it keeps is left to chance. Say by what order."
    if most and not is_order_total(block) and await has_tie_at_cut(block, copy, rows, rule_input):
        return (
            f"The row behind LIMIT {most} is equal in ORDER BY to the last one before it: which of them is kept is "
            "left to chance. Name all of them (RANK(), or a larger LIMIT), or say what decides between them."
        )
    return ""


def literal_row_count(limit: Expr | None) -> int | None:
    """Return the number of LIMIT, FETCH or OFFSET if it is a literal, else None.

    A FETCH with ties cuts no equal rows apart: None.
    """
    if limit is None or "TIES" in limit.sql().upper():
        return None
    value = limit.args.get("expression") or limit.args.get("count")
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None


def is_order_total(block: SelectBlock) -> bool:
    """Return whether, by keys, no two rows are equal in ORDER BY."""
    known = block.source_columns(block.meant(term.this) for term in block.select.args["order"].expressions)
    if block.groups is not None:
        return block.determines(known, [origin for group in block.groups for origin in block.origins_of_value(group)])
    return len(block.closure(known, ())[1]) == len(block.sources)


async def has_tie_at_cut(block: SelectBlock, copy: Expr, rows: int, rule_input: RuleInput) -> bool:
    """Return whether the last row before the cut and the first one behind it are equal in ORDER BY.

    Args:
        copy: the SELECT without its order and limit.
        rows: number of rows before the cut.
    """
    dialect, terms = rule_input.dialect, list(block.select.args["order"].expressions)
    values = [block.meant(term.this) for term in terms]
    if block.select.args.get("distinct"):
        names = [name for value in values for name, output in block.outputs.items() if output == value]
        if len(names) != len(values):
            return False
        quoted = [dialect.quoted(name) for name in names]
        directions = [" DESC" if term.args.get("desc") else "" for term in terms]
        by = ", ".join(f"{name}{direction}" for name, direction in zip(quoted, directions, strict=True))
        query = f"SELECT {', '.join(quoted)} FROM ({copy.sql(dialect=dialect.name)}) AS q ORDER BY {by}"
    else:
        # The columns stay before those of the order: GROUP BY 1 and HAVING n > 1 speak of them.
        columns = [] if any(item.is_star for item in block.select.expressions) else copy.expressions
        copy.set("expressions", [*columns, *(exp.alias_(value.copy(), f"o{at}") for at, value in enumerate(values))])
        order = [term.copy() for term in terms]
        for term, value in zip(order, values, strict=True):
            term.set("this", value.copy())
        copy.set("order", exp.Order(expressions=order))
        query = copy.sql(dialect=dialect.name)
    query = add_with_clause(block, f"{query} LIMIT 2 OFFSET {rows - 1}")
    table = await rule_input.stored.rows(query)
    if table is None or len(table.rows) < 2:
        return False
    before, behind = (row[-len(values) :] for row in table.rows)
    return before == behind


def add_with_clause(block: SelectBlock, query: str) -> str:
    """Return a query on a block with the WITH that it needs, unless the block has one itself."""
    return query if block.select.args.get("with_") or not block.with_clause else f"{block.with_clause} {query}"
