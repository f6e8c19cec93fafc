"""A date that is compared as text.

    SELECT title FROM events WHERE happened > '15/06/2023'

where happened is a text such as 25/12/2023: '25/12/2022' is behind '15/06/2023' too. Texts that begin with the year
sort as dates do, where both sides are written alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block
from decisor.tools.databases.pitfalls.pitfall import Look, Pitfall, short_sql

if TYPE_CHECKING:
    from sqlglot import Expr

KIND = "text_dates"
TEXT = re.compile(r"char|text|string|clob|^$", re.I)
YEAR = re.compile(r"\d+")
DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}([./-]\d{1,2})?|\d{1,2}\.? [A-Za-z]{3,9}\.?,? \d{4}|"
    r"[A-Za-z]{3,9}\.? \d{1,2},? \d{4}"
)
SORTS = re.compile(r"9999[./-]99([./-]99)?")
WHOLE_DATE = "Name a whole date, such as '2024-01-01'."
AS_DATE = "Compare dates: cut the text apart (SUBSTR) into year-month-day, or convert both sides."


async def text_dates(look: Look) -> list[Pitfall]:
    from sqlglot import exp

    pitfalls = []
    for block in look.blocks:
        for node in block.select.find_all(exp.Predicate, exp.Max, exp.Min, exp.Ordered):
            if node.parent_select is block.select and not isinstance(node.parent, exp.Window | exp.WindowSpec):
                texts = complaints(block, node, look)
                pitfalls += [Pitfall(KIND, f"{short_sql(node, look.dialect)} {text}") for text in texts]
    return pitfalls


def complaints(block: Block, node: Expr, look: Look) -> Iterator[str]:
    """What it does."""
    from sqlglot import exp

    if isinstance(node, exp.Max | exp.Min | exp.Ordered):
        shape, example, _ = stored_shape(block, block.meant(node.this), look)
        if shape and not SORTS.match(shape):
            yield f"sorts dates as text, such as {example}. {AS_DATE}"
        return
    for column, literal, through, equal in comparisons(node):
        shape, example, numeric = stored_shape(block, column, look)
        if numeric and YEAR.fullmatch(literal):
            yield f"compares with a number, and any text is larger: stored are texts such as {example}. {WHOLE_DATE}"
        if not shape or not DATE.match(literal):
            continue
        own = shape_of(literal)
        if not equal and not SORTS.match(shape):
            yield f"compares dates as text, such as {example}. {AS_DATE}"
        elif not (shape.startswith(own) or own.startswith(shape)):
            yield f"compares texts that are not written alike: stored are texts such as {example}. {AS_DATE}"
        elif (equal or through) and len(own) < len(shape) and SORTS.fullmatch(own):
            end = "matches no text with a time" if equal else "has all of that day behind it, midnight too"
            yield f"{end}: stored are texts such as {example}. Use >= the day and < the next one."


def comparisons(node: Expr) -> Iterator[tuple[Expr, str, bool, bool]]:
    """What is compared, with which literal, whether its day belongs to what is before it, as with ``<=`` and ``>``, and
    whether they are to be equal."""
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


def stored_shape(block: Block, value: Expr, look: Look) -> tuple[str, str, bool]:
    """How the dates in a column of texts are written, with one of them, and whether the column makes numbers of texts
    that look like one; '' where it is no such column. SQLite has texts, whatever the type is called."""
    origin = block.bare(value)
    columns = origin.source.table.columns if origin and origin.source.table else ()
    for column in columns:
        texts = [text for text in map(json.loads, column.examples) if isinstance(text, str)]
        named_text = TEXT.search(column.type) is not None
        typed = named_text or look.dialect.name == "sqlite"
        if origin and column.name.lower() == origin.column and texts and typed and all(map(DATE.match, texts)):
            return shape_of(texts[0]), texts[0], not named_text
    return "", "", False


def shape_of(text: str) -> str:
    """
    >>> shape_of("25/12/2023"), shape_of("5 Mar 2024")
    ('99/99/9999', '9 aaa 9999')
    """
    return re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "9", text))
