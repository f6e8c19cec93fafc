"""Expressions in one normal form, so that two that compute the same are the same: sums of products of columns.

``a * b * (1 - c)`` is ``a*b - a*b*c``, and ``SUM(a) - SUM(b)`` is ``SUM(a - b)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sqlglot import Expr

Terms: TypeAlias = Mapping[tuple[str, ...], Fraction]
"""Factors in order -> how often: a*b - 2*c is {("a", "b"): 1, ("c",): -2}."""
Find: TypeAlias = "Callable[[Expr], Terms | str]"
"""A column as its full name, or as the terms of the expression that it stands for."""
ADDITIVE = ("sum(", "count(")
NUMERIC = {"FLOAT", "DOUBLE", "DECIMAL", "BIGDECIMAL", "UDECIMAL", "NUMERIC", "REAL"}
MOST_TERMS = 200
NUMBER = re.compile(r"(\d{1,40}\.?\d{0,40}|\.\d{1,40})([eE][-+]?\d{1,2})?")
"""Any other stays the text that it is: 1e999999999 would be a whole number of as many digits."""


def terms(node: Expr, find: Find) -> Terms:
    """
    >>> import sqlglot
    >>> one, two = (sqlglot.parse_one(text) for text in ("SUM(a * (1 - b))", "round(sum(a) - sum(b * a), 2)"))
    >>> terms(one, str) == terms(two, str)
    True
    """
    from sqlglot import exp

    match node:
        case exp.Paren() | exp.Alias() | exp.Round():
            return terms(node.this, find)
        case exp.Literal() if not node.is_string and NUMBER.fullmatch(node.name):
            return {(): Fraction(str(node.this))}
        case exp.Neg():
            return scaled(terms(node.this, find), Fraction(-1))
        case exp.Add():
            return added(terms(node.left, find), terms(node.right, find))
        case exp.Sub():
            return added(terms(node.left, find), scaled(terms(node.right, find), Fraction(-1)))
        case exp.Mul():
            return times(terms(node.left, find), terms(node.right, find))
        case exp.Div():
            return divided(terms(node.left, find), terms(node.right, find))
        case exp.Cast() if node.to.this.name in NUMERIC:
            return terms(node.this, find)
        case exp.Coalesce() if node.this.find(exp.AggFunc) and not node.find(exp.Subquery):
            return terms(node.this, find)
        case exp.Column() | exp.Identifier():
            full = find(node)
            return {(full.lower(),): Fraction(1)} if isinstance(full, str) else full
        case exp.Sum() if not isinstance(node.this, exp.Distinct):
            return summed(terms(node.this, find))
        case exp.Count() if isinstance(node.this, exp.Star | exp.Literal):
            return {("count(*)",): Fraction(1)}
    return {(atom(node, find),): Fraction(1)}


def atom(node: Expr, find: Find) -> str:
    """Anything else as text, with its arguments in normal form."""
    from sqlglot import exp

    if isinstance(node, exp.Distinct):
        return f"distinct {', '.join(text(terms(one, find)) for one in node.expressions)}"
    if isinstance(node, exp.AggFunc) and node.this is not None and not node.expressions:
        inner = atom(node.this, find) if isinstance(node.this, exp.Distinct) else text(terms(node.this, find))
        return f"{type(node).__name__.lower()}({inner})"

    def named(part: Expr) -> Expr:
        if not isinstance(part, exp.Column):
            return part
        full = find(part)
        return exp.column(full.lower() if isinstance(full, str) else text(full))

    return node.transform(named).sql(normalize=True, comments=False).lower().replace('"', "")


def text(whole: Terms) -> str:
    """
    >>> text({("a", "b"): Fraction(1), (): Fraction(-2)})
    '-2 + a*b'
    """
    parts = []
    for factors, count in sorted(whole.items()):
        name = "*".join(factors)
        parts.append(str(count) if not name else name if count == 1 else f"{count}*{name}")
    return " + ".join(parts) or "0"


def added(one: Terms, other: Terms) -> Terms:
    whole = dict(one)
    for factors, count in other.items():
        whole[factors] = whole.get(factors, Fraction(0)) + count
    return {factors: count for factors, count in whole.items() if count}


def scaled(one: Terms, by: Fraction) -> Terms:
    return {factors: count * by for factors, count in one.items()}


def times(one: Terms, other: Terms) -> Terms:
    """A product that would be very long stays one factor."""
    if len(one) * len(other) > MOST_TERMS:
        return {tuple(sorted((f"({text(one)})", f"({text(other)})"))): Fraction(1)}
    whole: Terms = {}
    for a, x in one.items():
        for b, y in other.items():
            whole = added(whole, {tuple(sorted((*a, *b))): x * y})
    return whole


def divided(one: Terms, other: Terms) -> Terms:
    """By a number that is not 0, or by anything else, which is then one factor."""
    if set(other) == {()} and other[()]:
        return scaled(one, 1 / other[()])
    return times(one, {(f"1/({text(other)})",): Fraction(1)})


def summed(inner: Terms) -> Terms:
    """Of a sum the sums, and of sums of groups the sum of all."""
    whole: Terms = {}
    for factors, count in inner.items():
        name = "count(*)" if not factors else f"sum({'*'.join(factors)})"
        if len(factors) == 1 and factors[0].startswith(ADDITIVE):
            name = factors[0]
        whole = added(whole, {(name,): count})
    return whole
