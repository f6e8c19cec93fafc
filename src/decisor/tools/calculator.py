"""Arithmetic for an LM: numbers, + - * / ^, brackets, and a few functions. Read by recursive descent; nothing is run.

sum    := term (("+" | "-") term)*
term   := signed (("*" | "/") signed)*
signed := ("-" | "+")* power
power  := atom ("^" signed)?
atom   := number | name "(" sum ("," sum)* ")" | "(" sum ")"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decisor.errors import ToolError
from decisor.types import Observation, Record

LONGEST, DEEPEST, MOST_LINES = 10_000, 100, 100
TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[-+*/^(),]))")


def _round(value: float, digits: float = 0) -> float:
    return round(value, int(digits))


def _average(*values: float) -> float:
    return math.fsum(values) / len(values)


def _total(*values: float) -> float:
    return math.fsum(values)


FUNCTIONS: dict[str, tuple[Callable[..., float], int, int]] = {
    "min": (min, 2, LONGEST),
    "max": (max, 2, LONGEST),
    "abs": (abs, 1, 1),
    "round": (_round, 1, 2),
    "sqrt": (math.sqrt, 1, 1),
    "sum": (_total, 1, LONGEST),
    "avg": (_average, 1, LONGEST),
}


@dataclass(frozen=True)
class CalculatorTool:
    """A tool that does arithmetic. Satisfies ``types.Tool``."""

    name: str = "calculator"

    def describe(self) -> str:
        return (
            "Does arithmetic. Input: one expression per line, of numbers, + - * / ^ and brackets, "
            f"and {', '.join(FUNCTIONS)}. Example: 1.05 * (12.5 + max(3, 4)) / 7"
        )

    async def call(self, text: str) -> Observation:
        """Return one record for each line. Raise ToolError if a line is unreadable or has no value."""
        lines = [line.strip() for line in text.strip().strip("`").splitlines() if line.strip()]
        if not lines:
            raise ToolError("The calculator needs an expression, such as 2 * (3 + 4).")
        if len(lines) > MOST_LINES:
            raise ToolError(f"The calculator reads at most {MOST_LINES} lines at once; these are {len(lines):,}.")
        values = [calculate(line) for line in lines]
        records = tuple(
            Record(f"r{number}", {"expression": line, "value": value}, source=self.name)
            for number, (line, value) in enumerate(zip(lines, values, strict=True), 1)
        )
        texts = (f"{line} = {value:.12g}" for line, value in zip(lines, values, strict=True))
        return Observation(records, "\n".join(texts))

    async def close(self) -> None:
        """Close nothing; the tool holds nothing open."""


def calculate(text: str) -> float:
    """Compute the value of an expression.

    >>> calculate("1.05 * (2 + max(10 / 4, 2)) ^ 2")
    21.2625
    >>> calculate("-2 ^ 2"), calculate("2 ^ -1"), calculate("2 ^ 3 ^ 2"), calculate("10 - 3 - 2")
    (-4.0, 0.5, 512.0, 5.0)
    >>> calculate("1 / 0")
    Traceback (most recent call last):
    decisor.errors.ToolError: Division by zero in '1 / 0'.
    """
    if len(text) > LONGEST:
        raise ToolError(f"An expression has at most {LONGEST:,} characters.")
    reader = _ExpressionReader(text, _split_expression(text))
    try:
        value = float(reader.sum())
    except ZeroDivisionError as error:
        raise ToolError(f"Division by zero in {text!r}.") from error
    except (OverflowError, ValueError, TypeError) as error:
        raise ToolError(f"{text!r} has no value: {error}.") from error
    if reader.at < len(reader.tokens):
        raise ToolError(f"{reader.tokens[reader.at]!r} is not expected there, in {text!r}.")
    if not math.isfinite(value):
        raise ToolError(f"The value of {text!r} is too large.")
    return value


def _split_expression(text: str) -> list[str]:
    tokens, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ToolError(f"{text[at:].strip()[0]!r} cannot be read in {text!r}; write numbers without separators.")
        tokens.append("^" if match[3] == "**" else match[0].strip())
        at = match.end()
    return tokens


@dataclass
class _ExpressionReader:
    text: str
    tokens: Sequence[str]
    at: int = 0
    depth: int = 0

    def sum(self) -> float:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ToolError(f"Brackets are nested more than {DEEPEST} deep.")
        value = self._term()
        while sign := self._take("+", "-"):
            other = self._term()
            value = value + other if sign == "+" else value - other
        self.depth -= 1
        return value

    def _term(self) -> float:
        value = self._signed()
        while sign := self._take("*", "/"):
            other = self._signed()
            value = value * other if sign == "*" else value / other
        return value

    def _signed(self) -> float:
        negative = False
        while sign := self._take("+", "-"):
            negative ^= sign == "-"
        value = self._power()
        return -value if negative else value

    def _power(self) -> float:
        base = self._atom()
        if not self._take("^"):
            return base
        self.depth += 1
        if self.depth > DEEPEST:
            raise ToolError(f"Powers are nested more than {DEEPEST} deep.")
        value = math.pow(base, self._signed())
        self.depth -= 1
        return value

    def _atom(self) -> float:
        token = self._next()
        if token == "(":
            value = self.sum()
            self._expect(")")
            return value
        if token[0].isdigit() or token[0] == ".":
            return float(token)
        if token.lower() in FUNCTIONS:
            return self._call(token.lower())
        raise ToolError(f"{token!r} is not expected in {self.text!r}; there are numbers, {', '.join(FUNCTIONS)}.")

    def _call(self, name: str) -> float:
        function, least, most = FUNCTIONS[name]
        self._expect("(")
        values = [self.sum()]
        while self._take(","):
            values.append(self.sum())
        self._expect(")")
        if not least <= len(values) <= most:
            raise ToolError(f"{name} takes {least if len(values) < least else most} values, not {len(values)}.")
        return float(function(*values))

    def _next(self) -> str:
        if self.at == len(self.tokens):
            raise ToolError(f"{self.text!r} ends too early.")
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, *options: str) -> str:
        """Return the next token if it is one of the options, else an empty string."""
        if self.at < len(self.tokens) and self.tokens[self.at] in options:
            return self._next()
        return ""

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise ToolError(f"{token!r} is missing in {self.text!r}.")
