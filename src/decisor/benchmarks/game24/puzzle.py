"""The environment: two of the numbers left become one, until one is left. It never says whether that one is right.

Yao et al., "Tree of Thoughts", NeurIPS 2023: a state is what is left, a step is ``x op y``. Exact fractions, so that
8 / (3 - 8 / 3) is 24. Division by zero is refused; a refusal leaves the state as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from decisor.errors import ToolError
from decisor.types import Action, Observation

TOOL = "combine"
NUMBER = re.compile(r"-?\d{1,12}(?:/\d{1,12})?")
FORM = "Write x op y, with two of the numbers left and one of + - * /, such as {example}."


@dataclass(frozen=True, slots=True)
class Operand:
    """A number left, and how it was made of the first ones."""

    value: Fraction
    expression: str


@dataclass(slots=True)
class Puzzle:
    """Satisfies ``types.Environment``."""

    left: tuple[Operand, ...]

    @classmethod
    def of(cls, numbers: str) -> Puzzle:
        """
        >>> Puzzle.of("4 5 6 10").left_text()
        '4 5 6 10'
        """
        return cls(tuple(Operand(Fraction(number), number) for number in numbers.split()))

    def tools(self) -> tuple[str, ...]:
        return (TOOL,)

    def describe(self) -> str:
        return (
            f"### Tool: {TOOL}\nTakes two of the numbers left away and puts their sum, difference, product or quotient "
            "in their place. Input: x op y, with op one of + - * /, such as 10 - 4. Fractions are exact and written "
            "8/3. It ends when one number is left."
        )

    def left_text(self) -> str:
        return " ".join(str(operand.value) for operand in self.left)

    async def step(self, action: Action) -> Observation:
        """Raises ToolError, with nothing changed, where the input names no possible step."""
        if action.tool != TOOL:
            raise ToolError(f"There is no tool {action.tool!r}; there is {TOOL}.")
        if len(self.left) < 2:
            raise ToolError("One number is left: no step can follow.")
        first, op, second = self.read(action.input)
        value = combine(self.left[first].value, op, self.left[second].value)
        equation = f"{self.left[first].value} {op} {self.left[second].value} = {value}."
        expression = f"({self.left[first].expression} {op} {self.left[second].expression})"
        rest = [operand for at, operand in enumerate(self.left) if at not in (first, second)]
        self.left = (*rest, Operand(value, expression))
        ended = expression[1:-1] if len(self.left) == 1 else None
        return Observation(note=f"{equation} Left: {self.left_text()}", answer=ended)

    def wrong_form(self, answer: str) -> str:
        """An answer is an expression of all four numbers, whatever it comes to.

        >>> Puzzle.of("4 5 6 10").wrong_form("24"), Puzzle.of("4 5 6 10").wrong_form("(10 - 4) * 5 - 6")
        ('The answer is an expression that uses each of 4 5 6 10 once, not a number or a part of it.', '')
        """
        first = re.findall(r"\d+", " ".join(operand.expression for operand in self.left))
        formula = answer.partition("=")[0]
        if sorted(re.findall(r"\d+", formula)) == sorted(first):
            return ""
        return f"The answer is an expression that uses each of {' '.join(first)} once, not a number or a part of it."

    def read(self, text: str) -> tuple[int, str, int]:
        """Which two of the numbers left, by position, and the operator between them."""
        values = [operand.value for operand in self.left]
        example = f"{values[0]} + {values[1]}"
        steps = list(readings(text))
        if not steps:
            raise ToolError(f"That is no step. {FORM.format(example=example)}")
        for x, op, y in steps:
            if x in values and y in [value for at, value in enumerate(values) if at != values.index(x)]:
                first = values.index(x)
                second = next(at for at, value in enumerate(values) if value == y and at != first)
                return first, op, second
        x, _, y = steps[0]
        missing = next((number for number in (x, y) if number not in values), None)
        why = f"There is only one {x}" if missing is None else f"There is no {missing}"
        raise ToolError(f"{why}: left are {self.left_text()}. {FORM.format(example=example)}")

    def fork(self) -> Puzzle:
        return Puzzle(self.left)


def readings(text: str) -> Iterator[tuple[Fraction, str, Fraction]]:
    """Every way to read it as two numbers around an operator; a result behind = is left out.

    >>> [op for _, op, _ in readings("8/3 - -2 = 4.66")]
    ['-']
    """
    plain_text = text.partition("=")[0].replace("×", "*").replace("÷", "/").replace("−", "-").strip()
    for at, op in enumerate(plain_text):
        if op in "+-*/" and at:
            x, y = number(plain_text[:at]), number(plain_text[at + 1 :])
            if x is not None and y is not None:
                yield x, op, y


def number(text: str) -> Fraction | None:
    """A number, in brackets or not; None where it is none."""
    bare = text.strip()
    if bare.startswith("(") and bare.endswith(")"):
        bare = bare[1:-1].strip()
    if not bare.isascii() or not NUMBER.fullmatch(bare) or (("/" in bare) and not int(bare.partition("/")[2])):
        return None
    return Fraction(bare)


def combine(x: Fraction, op: str, y: Fraction) -> Fraction:
    """Raises ToolError for a division by zero."""
    if op == "/":
        if not y:
            raise ToolError("Division by zero is not possible.")
        return x / y
    return x + y if op == "+" else x - y if op == "-" else x * y
