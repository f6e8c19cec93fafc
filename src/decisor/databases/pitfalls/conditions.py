"""Conditions that mean something else than they seem to: AND beside OR, and comparisons that are never true.

    SELECT name FROM cards WHERE format = 'duel' AND power IS NULL OR power = '*'

takes all cards with power '*', for AND binds before OR (and_or). Where each part of an OR is an AND, or brackets say
what belongs together, it is meant.

    SELECT COUNT(*) FROM orders WHERE strftime('%m', placed) = '9' OR name = 'Ann%'

holds two comparisons that are true of no row or hardly any: a month has two digits, and = takes % as a letter
(never_true). So do two values of one column joined by AND, a value that is compared with, divided by or taken from
itself, and an age that is a birthday less a later date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import FromColumn, SelectBlock, find_column
from decisor.databases.pitfalls.joins import kind_of_type
from decisor.databases.pitfalls.rule import COMPARISONS, RuleInput
from decisor.types import Pitfall

WIDTH_OF_FORMAT = {"%Y": 4, "%m": 2, "%d": 2, "%H": 2, "%M": 2, "%w": 1, "%j": 3, "%Y-%m": 7, "%Y-%m-%d": 10}
"""Characters that strftime returns for a format."""


BIRTH = re.compile(r"birth|born|dob\b", re.I)


async def and_or(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for node in rule_input.find(exp.Or):
        if isinstance(node.parent, exp.Or):
            continue
        parts = list(node.flatten(unnest=False))
        # Alternatives that are all ANDs are written on purpose, and so is anything in brackets.
        joined = [part for part in parts if isinstance(part, exp.And)]
        single = [part for part in parts if not isinstance(part, exp.And | exp.Paren)]
        if joined and single:
            text = (
                f"AND binds before OR: {rule_input.shorten(single[-1])} alone is enough for a row, whatever the "
                "conditions joined by AND say. Put brackets around the part with OR, or around the part with AND."
            )
            pitfalls.append(rule_input.pitfall("and_or", node, text, "ask"))
    return pitfalls


async def never_true(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for value, literal, node in rule_input.comparisons:
        is_like = isinstance(node, exp.Like | exp.ILike)
        if not is_like and is_number_column(value, rule_input) and not re.search(r"\d", literal.name):
            text = "{} compares a column of numbers with a text that is none."
            pitfalls.append(rule_input.pitfall("never_true", node, text))
        if not is_like and re.search(r"^%\w.|\w%$", literal.name):
            text = "{} takes % as a letter of the text. Use LIKE for a pattern."
            pitfalls.append(rule_input.pitfall("never_true", node, text))
    for node in rule_input.find(exp.Div, exp.Sub, exp.EQ, exp.NEQ, exp.GT, exp.LT):
        if first_factor(node.this) == first_factor(node.expression) and not isinstance(node.this, exp.Literal):
            pitfalls.append(rule_input.pitfall("never_true", node, "{} has the same value on both sides."))
    for node in rule_input.find(exp.Sub):
        if isinstance(node.find_ancestor(exp.Abs, exp.Select), exp.Abs):
            continue
        births = [
            [bool(BIRTH.search(column.name)) for column in side.find_all(exp.Column)]
            for side in (node.this, node.expression)
        ]
        is_later = node.expression.find(exp.Column, exp.CurrentTimestamp, exp.CurrentDate) is not None
        if births[0] and all(births[0]) and is_later and not any(births[1]):
            text = "{} takes a later date from a birthday: an age below zero. Write the later date first."
            pitfalls.append(rule_input.pitfall("never_true", node, text))
    for block in rule_input.blocks:
        pitfalls += find_two_values(block, rule_input)
    if rule_input.dialect.name == "sqlite":
        for comparison in rule_input.find(exp.EQ, exp.NEQ, exp.In, exp.Between, exp.GT, exp.GTE, exp.LT, exp.LTE):
            if text := explain_strftime(comparison):
                pitfalls.append(rule_input.pitfall("never_true", comparison, text))
    return pitfalls


def first_factor(value: Expr) -> Expr:
    """Return the value inside casts, and before a * 100."""
    value = value.unnest()
    while isinstance(value, exp.Cast | exp.Mul):
        value = value.this.unnest()
    return value


def find_two_values(block: SelectBlock, rule_input: RuleInput) -> Iterator[Pitfall]:
    """Yield the equalities by which a column would have two values at once."""
    values: dict[FromColumn, str] = {}
    for home, condition in block.conditions:
        if isinstance(condition, exp.EQ) and isinstance(condition.expression, exp.Literal):
            origin = home.source_column(condition.this)
            if origin is not None and values.setdefault(origin, condition.expression.name) != condition.expression.name:
                text = "{} and another value of this column: no row has both. Write OR, IN, or one subquery for each."
                yield rule_input.pitfall("never_true", condition, text)


def is_number_column(value: Expr, rule_input: RuleInput) -> bool:
    block = rule_input.statement.blocks.get(id(value.parent_select))
    origin = block.source_column(value) if block and isinstance(value, exp.Column) else None
    column = find_column(origin) if origin else None
    # In SQLite a column of any type may hold texts.
    examples = column.examples if column else ()
    return kind_of_type(column) == "number" and not any(example.startswith('"') for example in examples)


def explain_strftime(comparison: Expr) -> str:
    """Say why a comparison with a part of a date is never true; '' if it may be."""
    function = comparison.this.unnest()
    if not isinstance(function, exp.TimeToStr):
        return ""
    form = function.args["format"].name
    match comparison:
        case exp.In():
            values = comparison.expressions
        case exp.Between():
            values = [comparison.args["low"], comparison.args["high"]]
        case _:
            values = [comparison.expression] if isinstance(comparison, COMPARISONS) else []
    for value in values:
        if isinstance(value, exp.Literal) and not value.is_string:
            return f"{{}} compares a text with a number: they are never equal in SQLite. Write '{value.name}'."
        width = WIDTH_OF_FORMAT.get(form)
        if isinstance(value, exp.Literal) and width and len(value.name) != width:
            return f"{{}} is never equal: strftime returns {width} digits for {form}. Write '{value.name}' that way."
    return ""
