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
DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}([./-]\d{1,2})?|\d{1,2}\.? [A-Za-z]{3,9}\.?,? \d{4}|"
    r"[A-Za-z]{3,9}\.? \d{1,2},? \d{4}"
)
SORTS = re.compile(r"9999[./-]99([./-]99)?")
AS_DATE = "Compare dates: cut the text apart (SUBSTR) into year-month-day, or convert both sides."


async def text_dates(look: Look) -> list[Pitfall]:
    from sqlglot import exp

    pitfalls = []
    for block in look.blocks:
        for node in block.select.find_all(exp.Predicate, exp.Max, exp.Min, exp.Ordered):
            if node.parent_select is block.select and not isinstance(node.parent, exp.Window | exp.WindowSpec):
                texts = complaints(block, node)
                pitfalls += [Pitfall(KIND, f"{short_sql(node, look.dialect)} {text}") for text in texts]
    return pitfalls


def complaints(block: Block, node: Expr) -> Iterator[str]:
    """What it does."""
    from sqlglot import exp

    if isinstance(node, exp.Max | exp.Min | exp.Ordered):
        shape, example = stored_shape(block, block.meant(node.this))
        if shape and not SORTS.match(shape):
            yield f"sorts dates as text, such as {example}. {AS_DATE}"
        return
    for column, literal, upper, equal in comparisons(node):
        shape, example = stored_shape(block, column)
        if not shape or not DATE.match(literal):
            continue
        own = shape_of(literal)
        if not equal and not SORTS.match(shape):
            yield f"compares dates as text, such as {example}. {AS_DATE}"
        elif not (shape.startswith(own) or own.startswith(shape)):
            yield f"compares texts that are not written alike: stored are texts such as {example}. {AS_DATE}"
        elif (equal or upper) and len(own) < len(shape) and SORTS.fullmatch(own):
            end = "matches no text with a time" if equal else "leaves out all of that day but midnight"
            yield f"{end}: stored are texts such as {example}. Use >= the day and < the next one."


def comparisons(node: Expr) -> Iterator[tuple[Expr, str, bool, bool]]:
    """What is compared, with which literal, whether it is the last that counts, and whether they are to be equal."""
    from sqlglot import exp

    if isinstance(node, exp.Between):
        for key in ("low", "high"):
            if node.args[key].is_string:
                yield node.this, node.args[key].name, key == "high", False
    elif isinstance(node, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        equal = isinstance(node, exp.EQ)
        if node.expression.is_string:
            yield node.this, node.expression.name, isinstance(node, exp.LTE), equal
        elif node.this.is_string:
            yield node.expression, node.this.name, isinstance(node, exp.GTE), equal


def stored_shape(block: Block, value: Expr) -> tuple[str, str]:
    """How the dates in a column of texts are written, with one of them; '' where it is no such column."""
    origin = block.bare(value)
    columns = origin.source.table.columns if origin and origin.source.table else ()
    for column in columns:
        texts = [text for text in map(json.loads, column.examples) if isinstance(text, str)]
        typed = TEXT.search(column.type) or block_is_sqlite(texts)
        if origin and column.name.lower() == origin.column and texts and typed and all(map(DATE.match, texts)):
            return shape_of(texts[0]), texts[0]
    return "", ""


def block_is_sqlite(texts: list[str]) -> bool:
    """A column that is declared as a date holds texts in SQLite alone; elsewhere its texts begin with the year."""
    return not all(re.match(r"\d{4}-\d\d-\d\d", text) for text in texts)


def shape_of(text: str) -> str:
    """
    >>> shape_of("25/12/2023"), shape_of("5 Mar 2024")
    ('99/99/9999', '9 aaa 9999')
    """
    return re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "9", text))
