"""Pitfalls of filters and limits:

NULL in NOT IN, lost outer joins, dates as text, missing values, ties.

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
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from decisor.databases.hints import MOST_VALUES, ComparedLiteral, is_substring_pattern, suggest_stored_values
from decisor.databases.pitfalls.blocks import FromColumn, FromItem, SelectBlock, own_aggregates, split_conjuncts
from decisor.databases.pitfalls.rule import RuleInput, short_sql
from decisor.types import Pitfall

if TYPE_CHECKING:
    from sqlglot import Expr, exp


OUTER_JOIN = "outer_join"


async def outer_join(look: RuleInput) -> list[Pitfall]:
    return [Pitfall(OUTER_JOIN, text) for block in look.blocks for text in check_outer_join(block, look)]


def check_outer_join(block: SelectBlock, look: RuleInput) -> Iterator[str]:
    where = block.select.args.get("where")
    for condition in split_conjuncts(where.this if where and block.nullable else None):
        for source in sources_of_columns(find_null_rejected_columns(block, condition)):
            if source in block.nullable:
                yield (
                    f"WHERE {short_sql(condition, look.dialect)} drops the rows that the outer join fills with NULL: "
                    f"it keeps no row without one of {source.name}. Put the condition into ON to keep them, or write "
                    "JOIN."
                )


def sources_of_columns(origins: set[FromColumn]) -> list[FromItem]:
    return list(dict.fromkeys(origin.source for origin in origins))


def find_null_rejected_columns(block: SelectBlock, condition: Expr) -> set[FromColumn]:
    """Return the columns that cannot be NULL if the condition is true.

    Columns that the condition tests for NULL by name are left out.
    """
    from sqlglot import exp

    condition = condition.unnest()
    if isinstance(condition, exp.Or):
        one, two = (
            find_null_rejected_columns(block, condition.this),
            find_null_rejected_columns(block, condition.expression),
        )
        both = {origin.source for origin in one} & {origin.source for origin in two}
        return {origin for origin in one | two if origin.source in both}
    if isinstance(condition, exp.And):
        return find_null_rejected_columns(block, condition.this) | find_null_rejected_columns(
            block, condition.expression
        )
    if isinstance(condition, exp.Not):
        inner = condition.this.unnest()
        return (
            find_null_rejected_columns(block, inner)
            if isinstance(inner, exp.In | exp.Like | exp.ILike | exp.Between)
            else set()
        )
    compares = isinstance(condition, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Like | exp.ILike)
    if not compares and not isinstance(condition, exp.In | exp.Between):
        return set()
    operands = [condition.this, condition.expression if compares else None]
    columns = [one for value in operands if value is not None for one in value.find_all(exp.Column)]
    return {origin for one in columns if not is_null_handled(one, condition) for origin in block.origins(one)}


def is_null_handled(column: Expr, condition: Expr) -> bool:
    """Return whether an expression around the column turns NULL into another value."""
    from sqlglot import exp

    around = column.parent
    while around is not None and around is not condition:
        if isinstance(around, exp.Coalesce | exp.Case | exp.If | exp.Is | exp.Select):
            return True
        around = around.parent
    return False


KIND = "not_in_nulls"


async def not_in_nulls(look: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in look.blocks:
        for node in negated(block):
            async for text in check_not_in(block, node, look):
                pitfalls.append(Pitfall(KIND, text))
    return pitfalls


def negated(block: SelectBlock) -> Iterator[exp.In]:
    from sqlglot import exp

    for node in block.select.find_all(exp.Not):
        inner = node.this.unnest()
        if isinstance(inner, exp.In) and node.parent_select is block.select:
            yield inner


async def check_not_in(block: SelectBlock, node: exp.In, look: RuleInput) -> AsyncIterator[str]:
    from sqlglot import exp

    query = node.args.get("query")
    written = short_sql(node.parent if isinstance(node.parent, exp.Not) else node, look.dialect)
    if query is not None:
        if await holds_null(query.unnest(), block, look):
            yield (
                f"{written} is true of no row: what the subquery brings holds NULL. Add WHERE ... IS NOT NULL to it, "
                "or use NOT EXISTS."
            )
    elif any(isinstance(one, exp.Null) for one in node.expressions):
        yield f"{written} is true of no row, as NULL is among the values. Leave it out, and use IS NOT NULL beside it."
    elif not node.find_ancestor(exp.Or, exp.Case):
        origin = block.bare(node.this)
        if origin is not None and await stores_null(origin, look):
            yield f"{written} leaves out the rows whose {origin.column} is NULL too. Add OR ... IS NULL to count them."


async def holds_null(select: Expr, block: SelectBlock, look: RuleInput) -> bool:
    from sqlglot import exp

    inner = block.within.get(id(select))
    if inner is None or not isinstance(select, exp.Select) or not select.expressions:
        return False
    value = select.expressions[0].unalias()
    origin = inner.bare(value)
    if origin is None or excludes_null(inner, origin):
        return False
    outside = any(one.source not in inner.sources for _, condition in inner.conditions for one in inner.of(condition))
    if outside:
        return await stores_null(origin, look)
    copy = select.copy()
    copy.set("expressions", [exp.alias_(copy.expressions[0].unalias(), "v")])
    name = look.dialect.quoted("v")
    query = f"{inner.before} SELECT 1 FROM ({copy.sql(dialect=look.dialect.name)}) AS q WHERE q.{name} IS NULL LIMIT 1"
    return bool((table := await look.stored.rows(query.strip())) and table.rows)


def excludes_null(inner: SelectBlock, origin: FromColumn) -> bool:
    """Return whether a column holds no NULL, by its declaration or by a condition of the subquery."""
    from sqlglot import exp

    declared = origin.source not in inner.nullable and is_declared(origin)
    for block, condition in inner.conditions:
        asks = any(one.args.get("negate") or isinstance(one.parent, exp.Not) for one in condition.find_all(exp.Is))
        if origin in find_null_rejected_columns(block, condition) or (asks and origin in block.of(condition)):
            return True
    return declared


def is_declared(origin: FromColumn) -> bool:
    columns = origin.source.table.columns if origin.source.table else ()
    return any(one.name.lower() == origin.column and (one.key or not one.nullable) for one in columns)


async def stores_null(origin: FromColumn, look: RuleInput) -> bool:
    source = origin.source
    if source.table is None or not source.text or is_declared(origin):
        return False
    name = look.dialect.quoted(look.stored.written(source, origin.column))
    table = await look.stored.rows(f"SELECT 1 FROM {source.text} WHERE {name} IS NULL LIMIT 1")
    return table is not None and bool(table.rows)


TEXT_DATES = "text_dates"
TEXT = re.compile(r"char|text|string|clob|^$", re.I)
YEAR = re.compile(r"\d+")
DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}([./-]\d{1,2})?|\d{1,2}\.? [A-Za-z]{3,9}\.?,? \d{4}|"
    r"[A-Za-z]{3,9}\.? \d{1,2},? \d{4}"
)
SORTS = re.compile(r"9999[./-]99([./-]99)?")
WHOLE_DATE = "Name a whole date, such as '2024-01-01'."
AS_DATE = "Compare dates: cut the text apart (SUBSTR) into year-month-day, or convert both sides."


async def text_dates(look: RuleInput) -> list[Pitfall]:
    from sqlglot import exp

    pitfalls = []
    for block in look.blocks:
        for node in block.select.find_all(exp.Predicate, exp.Max, exp.Min, exp.Ordered):
            if node.parent_select is block.select and not isinstance(node.parent, exp.Window | exp.WindowSpec):
                texts = check_text_dates(block, node, look)
                pitfalls += [Pitfall(TEXT_DATES, f"{short_sql(node, look.dialect)} {text}") for text in texts]
    return pitfalls


def check_text_dates(block: SelectBlock, node: Expr, look: RuleInput) -> Iterator[str]:
    """Yield the ways in which a node compares or sorts dates as text."""
    from sqlglot import exp

    if isinstance(node, exp.Max | exp.Min | exp.Ordered):
        shape, example, _ = stored_shape(block, block.meant(node.this), look)
        if shape and not SORTS.match(shape):
            yield f"sorts dates as text, such as {example}. {AS_DATE}"
        return
    for column, literal, through, equal in compare_with_texts(node):
        shape, example, numeric = stored_shape(block, column, look)
        if numeric and YEAR.fullmatch(literal):
            yield f"compares with a number, and any text is larger: stored are texts such as {example}. {WHOLE_DATE}"
        if not shape or not DATE.match(literal):
            continue
        own = shape_of_date(literal)
        if not equal and not SORTS.match(shape):
            yield f"compares dates as text, such as {example}. {AS_DATE}"
        elif not (shape.startswith(own) or own.startswith(shape)):
            yield f"compares texts that are not written alike: stored are texts such as {example}. {AS_DATE}"
        elif (equal or through) and len(own) < len(shape) and SORTS.fullmatch(own):
            end = "matches no text with a time" if equal else "has all of that day behind it, midnight too"
            yield f"{end}: stored are texts such as {example}. Use >= the day and < the next one."


def compare_with_texts(node: Expr) -> Iterator[tuple[Expr, str, bool, bool]]:
    """Yield each compared value and its literal, with two flags.

    The first: the whole day of the literal belongs to the side before it, as with ``<=`` and ``>``. The second: the two
    are to be equal.
    """
    from sqlglot import exp

    if isinstance(node, exp.Between):
        for key in ("low", "high"):
            if node.args[key].is_string:
                yield node.this, node.args[key].name, key == "high", False
    elif isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        equal = isinstance(node, exp.EQ | exp.NEQ)
        if node.expression.is_string:
            yield node.this, node.expression.name, isinstance(node, exp.LTE | exp.GT), equal
        elif node.this.is_string:
            yield node.expression, node.this.name, isinstance(node, exp.GTE | exp.LT), equal


def stored_shape(block: SelectBlock, value: Expr, look: RuleInput) -> tuple[str, str, bool]:
    """Return how the dates in a column of texts are written, with an example.

    The third value: whether the column converts texts that look like numbers. The shape is '' for any other column. In
    SQLite a column of any type may hold texts.
    """
    origin = block.bare(value)
    columns = origin.source.table.columns if origin and origin.source.table else ()
    for column in columns:
        texts = [text for text in map(json.loads, column.examples) if isinstance(text, str)]
        named_text = TEXT.search(column.type) is not None
        typed = named_text or look.dialect.name == "sqlite"
        if origin and column.name.lower() == origin.column and texts and typed and all(map(DATE.match, texts)):
            return shape_of_date(texts[0]), texts[0], not named_text
    return "", "", False


def shape_of_date(text: str) -> str:
    """Return a text with 9 for each digit and a for each letter.

    >>> shape_of_date("25/12/2023"), shape_of_date("5 Mar 2024")
    ('99/99/9999', '9 aaa 9999')
    """
    return re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "9", text))


UNSTORED_VALUE = "unstored_value"
MOST_LITERALS = 8


async def unstored_value(look: RuleInput) -> list[Pitfall]:
    pitfalls: list[Pitfall] = []
    for block in look.blocks:
        matched = conditions_met_by_result(block, look)
        for column, literal, pattern in list(compare_with_literals(block, matched))[:MOST_LITERALS]:
            async for text in check_stored_literal(block, column, literal, pattern, look):
                pitfalls.append(Pitfall(UNSTORED_VALUE, text))
    return pitfalls


def conditions_met_by_result(block: SelectBlock, look: RuleInput) -> list[Expr]:
    """Return the conditions that all rows of the result fulfil. The values that they compare with are stored."""
    from sqlglot import exp

    rows = look.result is not None and bool(look.result.rows)
    where = block.select.args.get("where")
    if not rows or block.select is not look.tree or where is None or any(own_aggregates(block)):
        return []
    conditions = [one.this if isinstance(one, exp.Escape) else one for one in split_conjuncts(where.this)]
    return [one for one in conditions if isinstance(one, exp.EQ | exp.Like | exp.ILike) and not one.args.get("negate")]


def compare_with_literals(block: SelectBlock, matched: Sequence[Expr] = ()) -> Iterator[tuple[Expr, Expr, Expr | None]]:
    """Yield each value with the literal that it is compared with, and the LIKE or ILIKE if it is one.

    The conditions ``matched`` are left out.
    """
    from sqlglot import exp

    for node in block.select.find_all(exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike):
        if node.parent_select is not block.select or any(node is one for one in matched):
            continue
        sides: Sequence[Expr] = [node.expression] if not isinstance(node, exp.In) else node.expressions
        for literal in sides:
            if isinstance(literal, exp.Literal):
                yield node.this, literal, node if isinstance(node, exp.Like | exp.ILike) else None
            elif isinstance(node.this, exp.Literal) and not isinstance(node, exp.In | exp.Like | exp.ILike):
                yield literal, node.this, None
    for case in block.select.find_all(exp.Case):
        if case.this is not None and case.parent_select is block.select:
            yield from ((case.this, one.this, None) for one in case.args["ifs"] if isinstance(one.this, exp.Literal))


async def check_stored_literal(
    block: SelectBlock, value: Expr, literal: Expr, pattern: Expr | None, look: RuleInput
) -> AsyncIterator[str]:
    from sqlglot import exp

    any_case = isinstance(value, exp.Lower | exp.Upper) or isinstance(pattern, exp.ILike)
    column = value.this if isinstance(value, exp.Lower | exp.Upper | exp.Trim) else value
    origin = block.bare(column)
    if origin is None or origin.source.table is None or origin.source.table.view or not origin.source.text:
        return
    name = look.dialect.quoted(look.stored.written(origin.source, origin.column))
    written = exp.column(look.stored.written(origin.source, origin.column), quoted=True)
    operand = written if value is column else type(value)(this=written)
    condition = (
        exp.EQ(this=operand, expression=literal.copy()) if pattern is None else copy_like_for(pattern, operand, literal)
    )
    query = f"SELECT 1 FROM {origin.source.text} WHERE {condition.sql(dialect=look.dialect.name)} LIMIT 1"
    table = await look.stored.rows(query)
    if table is None or table.rows or literal.name in ("", "%"):
        return
    yield await describe_unstored_value(origin, name, literal, pattern, any_case, look)


def copy_like_for(pattern: Expr, operand: Expr, literal: Expr) -> Expr:
    """Return a copy of a LIKE or ILIKE for another operand, with its ESCAPE and without its NOT."""
    from sqlglot import exp

    condition = type(pattern)(this=operand, expression=literal.copy())
    around = pattern.parent
    return (
        exp.Escape(this=condition, expression=around.expression.copy()) if isinstance(around, exp.Escape) else condition
    )


async def describe_unstored_value(
    origin: FromColumn, name: str, literal: Expr, pattern: Expr | None, any_case: bool, look: RuleInput
) -> str:
    """Describe a value that is not stored, in the words used for a query without rows."""
    source = f"{name} FROM {origin.source.text} WHERE {name} IS NOT NULL"
    number = None if literal.is_string else float(literal.name)
    query = f"SELECT DISTINCT {source} LIMIT {MOST_VALUES}"
    if number is not None:
        query = f"SELECT {source} ORDER BY abs({name} - {number!r}) LIMIT 3"
    table = await look.stored.rows(query, MOST_VALUES)
    table_name = origin.source.table.name if origin.source.table else origin.source.name
    place = f"{table_name}.{look.stored.written(origin.source, origin.column)}"
    simple = pattern is None or is_substring_pattern(pattern)
    one = ComparedLiteral(
        literal.name.strip("%") if number is None else number, place, query, pattern is not None, any_case
    )
    text = suggest_stored_values(one, [row[0] for row in table.rows]) if table and simple else ""
    return text or f"{place} has no {short_sql(literal, look.dialect)}."


LIMIT_ORDER = "limit_order"


async def limit_order(look: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in look.blocks:
        text = await check_limit_order(block, look)
        if text:
            pitfalls.append(Pitfall(LIMIT_ORDER, text))
    return pitfalls


async def check_limit_order(block: SelectBlock, look: RuleInput) -> str:
    from sqlglot import exp

    select = block.select
    most = literal_row_count(select.args.get("limit") or select.args.get("fetch"))
    single = not block.groups() and any(own_aggregates(block))
    if most is None or single or not block.sources or select.find_ancestor(exp.Exists):
        return ""
    outermost = select is look.tree
    if outermost and look.result is not None and len(look.result.rows) < most:
        return ""
    skip = literal_row_count(select.args.get("offset")) or 0
    if select.args.get("order") is None:
        cut = outermost or await more_than(block, most + skip, look)
        chance = f"LIMIT {most} without ORDER BY: which rows it keeps is left to chance. Say by what order."
        return chance if cut else ""
    if most and not is_order_total(block) and await has_tie_at_cut(block, most + skip, look):
        return (
            f"The row behind LIMIT {most} is equal in ORDER BY to the last one before it: which of them is kept is "
            "left to chance. Name all of them (RANK(), or a larger LIMIT), or say what decides between them."
        )
    return ""


def literal_row_count(limit: Expr | None) -> int | None:
    """Return the number of LIMIT, FETCH or OFFSET if it is a literal, else None.

    A FETCH with ties cuts no equal rows apart: None.
    """
    from sqlglot import exp

    if limit is None or "TIES" in limit.sql().upper():
        return None
    value = limit.args.get("expression") or limit.args.get("count")
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None


def is_order_total(block: SelectBlock) -> bool:
    """Return whether, by keys, no two rows are equal in ORDER BY."""
    order = [block.meant(one.this) for one in block.select.args["order"].expressions]
    known = {origin for one in order if (origin := block.bare(one)) is not None}
    columns, single = block.closure(known, ())
    groups = block.groups()
    if groups is not None:
        origins = [origin for one in groups for origin in block.of(one)]
        return all(one in columns or one.source in single for one in origins)
    return len(single) == len(block.sources)


async def more_than(block: SelectBlock, rows: int, look: RuleInput) -> bool:
    copy = uncut(block.select)
    query = f"{prefix(block, copy)}SELECT 1 FROM ({copy.sql(dialect=look.dialect.name)}) AS q LIMIT 1 OFFSET {rows}"
    table = await look.stored.rows(query)
    return table is None or bool(table.rows)


async def has_tie_at_cut(block: SelectBlock, rows: int, look: RuleInput) -> bool:
    """Return whether the last row before the cut and the first one behind it are equal in ORDER BY."""
    from sqlglot import exp

    select = block.select
    ordered = list(select.args["order"].expressions)
    values = [block.meant(one.this) for one in ordered]
    copy = uncut(select)
    if select.args.get("distinct"):
        names = [name for value in values for name, output in block.outputs.items() if output == value]
        if len(names) != len(values):
            return False
        quoted = [look.dialect.quoted(name) for name in names]
        by = ", ".join(
            f"{name}{' DESC' if one.args.get('desc') else ''}" for name, one in zip(quoted, ordered, strict=True)
        )
        inner = copy.sql(dialect=look.dialect.name)
        query = f"SELECT {', '.join(quoted)} FROM ({inner}) AS q ORDER BY {by} LIMIT 2 OFFSET {rows - 1}"
    else:
        # The columns stay before those of the order: GROUP BY 1 and HAVING n > 1 speak of them.
        columns = [] if any(one.is_star for one in select.expressions) else copy.expressions
        copy.set("expressions", [*columns, *(exp.alias_(value.copy(), f"o{at}") for at, value in enumerate(values))])
        order = exp.Order(expressions=[with_value(one, value) for one, value in zip(ordered, values, strict=True)])
        copy.set("order", order)
        query = f"{copy.sql(dialect=look.dialect.name)} LIMIT 2 OFFSET {rows - 1}"
    table = await look.stored.rows(prefix(block, copy) + query)
    if table is None or len(table.rows) < 2:
        return False
    before, behind = (row[-len(values) :] for row in table.rows)
    return before == behind


def with_value(ordered: Expr, value: Expr) -> Expr:
    copy = ordered.copy()
    copy.set("this", value.copy())
    return copy


def uncut(select: exp.Select) -> exp.Select:
    copy = select.copy()
    for name in ("limit", "offset", "fetch", "order"):
        copy.set(name, None)
    return copy


def prefix(block: SelectBlock, copy: Expr) -> str:
    return "" if copy.args.get("with_") or not block.before else f"{block.before} "
