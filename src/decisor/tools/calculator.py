"""Arithmetic for an LLM: numbers, + - * / ^, brackets, and a few functions.

Python's own parser makes a tree of it, and only the nodes named here are computed; nothing is run.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from decisor.errors import ToolError
from decisor.types import Observation, Record

LONGEST, DEEPEST, MOST_LINES = 10_000, 100, 100
TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[-+*/^(),]))")


FUNCTIONS: dict[str, tuple[Callable[..., float], int, int]] = {
    "min": (min, 2, LONGEST),
    "max": (max, 2, LONGEST),
    "abs": (abs, 1, 1),
    "round": (lambda value, digits=0.0: round(value, int(digits)), 1, 2),
    "sqrt": (math.sqrt, 1, 1),
    "sum": (lambda *values: math.fsum(values), 1, LONGEST),
    "avg": (lambda *values: math.fsum(values) / len(values), 1, LONGEST),
}
OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
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
    tokens, at, text = list[str](), 0, text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ToolError(f"{text[at:].strip()[0]!r} cannot be read in {text!r}; write numbers without separators.")
        # Python reads 007, 1_000 and 1if otherwise, so it gets each number as it writes one.
        tokens.append(str(float(match[1])) if match[1] else (match[2] or match[3].replace("^", "**")).lower())
        at = match.end()
    if "inf" in tokens:
        raise ToolError(f"The value of {text!r} is too large.")
    # Python knows the order of operations; whatever else it makes of a text is refused by ``compute``.
    expression = " ".join(tokens)
    try:
        value = float(compute(ast.parse(expression, mode="eval").body, text))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ToolError(explain_syntax_error(error, expression, text)) from error
    except ZeroDivisionError as error:
        raise ToolError(f"Division by zero in {text!r}.") from error
    except (OverflowError, ValueError, TypeError) as error:
        raise ToolError(f"{text!r} has no value: {error}.") from error
    # Infinity is no value to decide by.
    if not math.isfinite(value):
        raise ToolError(f"The value of {text!r} is too large.")
    return value


def explain_syntax_error(error: BaseException, expression: str, text: str) -> str:
    """Explain why Python cannot parse an expression."""
    if not isinstance(error, SyntaxError) or "nested" in error.msg:
        return f"Brackets or signs are nested too deeply in {text!r}."
    if "never closed" in error.msg:
        return f"')' is missing in {text!r}."
    rest = expression[error.offset - 1 :].split() if error.offset else []
    return f"{rest[0]!r} is not expected there, in {text!r}." if rest else f"{text!r} ends too early."


def compute(node: ast.AST, text: str) -> float:
    """Compute the value of a node of an expression; raise ToolError if it is no arithmetic."""
    match node:
        case ast.Constant(value=float(value)):
            return value
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            # math.pow raises where ** would give a complex number, as for (-8) ^ 0.5.
            return math.pow(compute(left, text), compute(right, text))
        case ast.BinOp():
            steps = []
            while isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:  # a sum of 2,000 terms is as deep
                steps.append((OPERATORS[type(node.op)], node.right))
                node = node.left
            value = compute(node, text)
            for operate, right in reversed(steps):
                value = operate(value, compute(right, text))
            return value
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](compute(operand, text))
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in FUNCTIONS:
            function, least, most = FUNCTIONS[name]
            if not least <= len(arguments) <= most:
                count = least if len(arguments) < least else most
                raise ToolError(f"{name} takes {count} values, not {len(arguments)}.")
            return float(function(*(compute(argument, text) for argument in arguments)))
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            lacks = f"'(' is missing after {name}" if name in FUNCTIONS else f"{name!r} is not expected"
            raise ToolError(f"{lacks} in {text!r}; there are numbers, {', '.join(FUNCTIONS)}.")
        case ast.Tuple():
            raise ToolError(f"',' is not expected there, in {text!r}.")
        case _:
            raise ToolError(f"{text!r} is no arithmetic.")
