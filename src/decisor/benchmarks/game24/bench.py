"""Game of 24 for the runner. An answer is right where it is made of exactly the four numbers and is exactly 24.

``selected`` is the answer that the technique chose; ``found``: any sequence that it finished was right.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from decisor.benchmarks.game24.load import cases
from decisor.benchmarks.game24.puzzle import Puzzle
from decisor.benchmarks.protocol import Case, Score
from decisor.benchmarks.search_metrics import search_metrics
from decisor.trace.events import ActionResult, Entry, events_of
from decisor.types import Decision, Environment

PLAIN = re.compile(r"[\d+\-*/() ]{1,200}")
OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


@dataclass(frozen=True)
class Game24Bench:
    """``data``: the folder of 24.csv, or the file. Rows ``first`` to ``last``, counted from 0, both included."""

    data: Path
    first: int = 900
    last: int = 999
    name: str = "game24"

    def cases(self) -> Sequence[Case]:
        return cases(self.data, self.first, self.last)

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        yield Puzzle.of(str(case.facts["numbers"]))

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        numbers = str(case.facts["numbers"])
        handed = finished(events)
        right = makes_24(decision.answer, numbers)
        any_right = right or any(makes_24(answer, numbers) for answer in handed)
        failure = "" if right else "no_answer" if not decision.answer else "not_selected" if any_right else "not_found"
        metrics = {"selected": float(right), "found": float(any_right), **search_metrics(events)}
        return Score(
            right,
            decision.answer,
            metrics,
            failure=failure,
            tags=("found",) if any_right else (),
            counts={"sequences": len(handed)},
        )

    async def close(self) -> None:
        """Holds nothing open."""


def finished(events: Sequence[Entry]) -> list[str]:
    """What the environment was handed, in order."""
    answers = (result.observation.answer for result in events_of(events, ActionResult))
    return [answer for answer in answers if answer]


def makes_24(expression: str, numbers: str) -> bool:
    """
    >>> makes_24("8 / (3 - 8 / 3)", "3 3 8 8"), makes_24("(4 * 6) = 24", "4 5 6 10"), makes_24("4 +", "4 5 6 10")
    (True, False, False)
    """
    formula = expression.partition("=")[0].replace("×", "*").replace("÷", "/").replace("−", "-").strip()
    if not PLAIN.fullmatch(formula) or sorted(re.findall(r"\d+", formula)) != sorted(numbers.split()):
        return False
    try:
        return value(ast.parse(formula, mode="eval").body) == 24
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return False


def value(node: ast.expr) -> Fraction:
    """Raises ValueError for anything but whole numbers under + - * /."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](value(node.left), value(node.right))
    raise ValueError(ast.dump(node))
