"""Dates that are compared or sorted as texts (text_dates).

    SELECT title FROM events WHERE happened > '15/06/2023'

where happened is a text such as 25/12/2023: '25/12/2022' is behind '15/06/2023' too. Texts that begin with the year
sort as dates do, if both sides are written alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import SelectBlock, find_column
from decisor.databases.pitfalls.rule import COMPARISONS, RuleInput
from decisor.types import Pitfall

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
        rule_input.pitfall("text_dates", node, f"{{}} {text}")
        for block in rule_input.blocks
        for node in block.nodes.find(exp.Predicate, exp.Max, exp.Min, exp.Ordered)
        if not isinstance(node.parent, exp.Window | exp.WindowSpec)
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
    column = find_column(origin) if origin else None
    is_text_type = column is not None and TEXT.search(column.type) is not None
    # In SQLite a column of any type may hold texts.
    if column is not None and (is_text_type or rule_input.dialect.name == "sqlite"):
        texts = [text for text in map(json.loads, column.examples) if isinstance(text, str)]
        if texts and all(map(DATE.match, texts)):
            return StoredDates(shape_of_date(texts[0]), texts[0], not is_text_type)
    return None


def shape_of_date(text: str) -> str:
    """Return a text with 9 for each digit and a for each letter.

    >>> shape_of_date("25/12/2023"), shape_of_date("5 Mar 2024")
    ('99/99/9999', '9 aaa 9999')
    """
    return re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "9", text))
