"""Game of 24 as a benchmark: four numbers, three steps, 24 left, in exact fractions.

Yao et al., "Tree of Thoughts", NeurIPS 2023: a state is the numbers that are left, a step is ``x op y``. In the
environment two of these numbers become one, until one is left; it never says whether that one is right. Fractions are
exact, so 8 / (3 - 8 / 3) is 24. Division by zero is refused; a refusal leaves the state unchanged.

An answer is right if it uses exactly the four numbers and equals 24. ``selected`` is the answer that the technique
chose; ``found``: any sequence that it finished was right. The released puzzles are in ``24.csv``, sorted from easy to
hard by the time that people took; rows count from 0.
"""

from __future__ import annotations

import ast
import csv
import operator
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from decisor.errors import SetupError, ToolError
from decisor.lab.benchmark import Case, Score, compute_search_metrics
from decisor.trace.events import ActionResult, TraceEntry, events_of
from decisor.types import Action, Decision, Environment, Observation, Question, Value

RULES = "Use each of the four numbers exactly once, with + - * / and brackets, and reach exactly 24."


def make_puzzle_question(numbers: str) -> Question:
    return Question(f"Make 24 from the numbers {numbers}", RULES)


def read_puzzle_cases(path: Path, first: int = 900, last: int = 999) -> tuple[Case, ...]:
    """Read the rows ``first`` to ``last``, both included; 900 to 999 is the papers' test. path: the file or its folder.

    Raises:
        SetupError: the file is missing or not of this form, or there are no such rows.
    """
    file = path / "24.csv" if path.is_dir() else path
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        where = "It is src/tot/data/24/24.csv of the Tree of Thoughts release."
        raise SetupError(f"Cannot read {file}: {error}. {where}") from error
    if not 0 <= first <= last < len(rows):
        raise SetupError(f"{file} has rows 0 to {len(rows) - 1}, not {first} to {last}.")
    try:
        cases = []
        for at in range(first, last + 1):
            numbers = " ".join(str(int(number)) for number in rows[at]["Puzzles"].split())
            facts: dict[str, Value] = {"numbers": numbers, "rank": int(rows[at]["Rank"])}
            cases.append(Case(str(at), make_puzzle_question(numbers), facts=facts))
        return tuple(cases)
    except (KeyError, AttributeError, ValueError) as error:
        raise SetupError(f"{file} is not a list of puzzles: it needs the columns Rank and Puzzles.") from error


TOOL = "combine"
NUMBER = re.compile(r"-?\d{1,12}(?:/\d{1,12})?")
FORM = "Write x op y, with two of the numbers left and one of + - * /, such as {example}."


@dataclass(frozen=True, slots=True)
class PuzzleNumber:
    """A number that is left, with the expression that made it from the first ones."""

    value: Fraction
    expression: str


@dataclass(slots=True)
class Puzzle:
    """One puzzle as an environment (``types.Environment``)."""

    left: tuple[PuzzleNumber, ...]

    @classmethod
    def of(cls, numbers: str) -> Puzzle:
        """Make the puzzle of four numbers that are written with blanks between them.

        >>> Puzzle.of("4 5 6 10").left_text()
        '4 5 6 10'
        """
        return cls(tuple(PuzzleNumber(Fraction(number), number) for number in numbers.split()))

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
        """Combine two numbers. Raise ToolError, with nothing changed, if the input names no possible step."""
        if action.tool != TOOL:
            raise ToolError(f"There is no tool {action.tool!r}; there is {TOOL}.")
        if len(self.left) < 2:
            raise ToolError("One number is left: no step can follow.")
        first, op, second = self.read(action.input)
        value = combine(self.left[first].value, op, self.left[second].value)
        equation = f"{self.left[first].value} {op} {self.left[second].value} = {value}."
        expression = f"({self.left[first].expression} {op} {self.left[second].expression})"
        rest = [operand for at, operand in enumerate(self.left) if at not in (first, second)]
        self.left = (*rest, PuzzleNumber(value, expression))
        # The answer is handed in without saying whether it is 24: the environment is no oracle.
        ended = expression[1:-1] if len(self.left) == 1 else None
        return Observation(note=f"{equation} Left: {self.left_text()}", answer=ended)

    def wrong_form(self, answer: str) -> str:
        """Return a complaint if the answer is no expression of all four numbers.

        The value of the expression does not matter.

        >>> Puzzle.of("4 5 6 10").wrong_form("24"), Puzzle.of("4 5 6 10").wrong_form("(10 - 4) * 5 - 6")
        ('The answer is an expression that uses each of 4 5 6 10 once, not a number or a part of it.', '')
        """
        first = re.findall(r"\d+", " ".join(operand.expression for operand in self.left))
        formula = answer.partition("=")[0]
        if sorted(re.findall(r"\d+", formula)) == sorted(first):
            return ""
        return f"The answer is an expression that uses each of {' '.join(first)} once, not a number or a part of it."

    def read(self, text: str) -> tuple[int, str, int]:
        """Parse a step: the positions of two numbers that are left, and the operator between them."""
        values = [operand.value for operand in self.left]
        example = f"{values[0]} + {values[1]}"
        steps = list(iterate_step_readings(text))
        if not steps:
            raise ToolError(f"That is no step. {FORM.format(example=example)}")
        # "8/3/2" has two readings; the one whose numbers are left counts.
        for x, op, y in steps:
            # The second number must be another one, unless the same value is left twice.
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


def iterate_step_readings(text: str) -> Iterator[tuple[Fraction, str, Fraction]]:
    """Yield every reading of a text as two numbers around an operator. A result behind = is left out.

    >>> [op for _, op, _ in iterate_step_readings("8/3 - -2 = 4.66")]
    ['-']
    """
    plain_text = text.partition("=")[0].replace("×", "*").replace("÷", "/").replace("−", "-").strip()
    for at, op in enumerate(plain_text):
        if op in "+-*/" and at:
            x, y = parse_fraction(plain_text[:at]), parse_fraction(plain_text[at + 1 :])
            if x is not None and y is not None:
                yield x, op, y


def parse_fraction(text: str) -> Fraction | None:
    """Parse a number, in brackets or not; return None if the text is no number."""
    bare = text.strip()
    if bare.startswith("(") and bare.endswith(")"):
        bare = bare[1:-1].strip()
    if not bare.isascii() or not NUMBER.fullmatch(bare) or (("/" in bare) and not int(bare.partition("/")[2])):
        return None
    return Fraction(bare)


def combine(x: Fraction, op: str, y: Fraction) -> Fraction:
    """Apply an operator to two numbers. Raise ToolError for a division by zero."""
    if op == "/":
        if not y:
            raise ToolError("Division by zero is not possible.")
        return x / y
    return x + y if op == "+" else x - y if op == "-" else x * y


PLAIN = re.compile(r"[\d+\-*/() ]{1,200}")
OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Game24Bench:
    """The benchmark Game of 24."""

    data: Path
    """The folder of 24.csv, or the file."""
    first: int = 900
    """First row, counted from 0."""
    last: int = 999
    """Last row, included."""
    name: str = "game24"

    def cases(self) -> Sequence[Case]:
        return read_puzzle_cases(self.data, self.first, self.last)

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        yield Puzzle.of(str(case.facts["numbers"]))

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        numbers = str(case.facts["numbers"])
        handed = list_finished_answers(events)
        right = makes_24(decision.answer, numbers)
        any_right = right or any(makes_24(answer, numbers) for answer in handed)
        failure = "" if right else "no_answer" if not decision.answer else "not_selected" if any_right else "not_found"
        metrics = {"selected": float(right), "found": float(any_right), **compute_search_metrics(events)}
        return Score(
            right,
            decision.answer,
            metrics,
            failure=failure,
            tags=("found",) if any_right else (),
            counts={"sequences": len(handed)},
        )

    async def close(self) -> None:
        """Do nothing, as nothing is open."""


def list_finished_answers(events: Sequence[TraceEntry]) -> list[str]:
    """Return the answers that the environment received, in order."""
    answers = (result.observation.answer for result in events_of(events, ActionResult))
    return [answer for answer in answers if answer]


def makes_24(expression: str, numbers: str) -> bool:
    """Return whether an expression uses exactly the given numbers and equals 24.

    >>> makes_24("8 / (3 - 8 / 3)", "3 3 8 8"), makes_24("(4 * 6) = 24", "4 5 6 10"), makes_24("4 +", "4 5 6 10")
    (True, False, False)
    """
    formula = expression.partition("=")[0].replace("×", "*").replace("÷", "/").replace("−", "-").strip()
    # The text is an LLM's: only digits, operators and brackets reach the parser.
    if not PLAIN.fullmatch(formula) or sorted(re.findall(r"\d+", formula)) != sorted(numbers.split()):
        return False
    try:
        # ast, not eval: ** and calls would be code of the LLM.
        return evaluate_formula(ast.parse(formula, mode="eval").body) == 24
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return False


def evaluate_formula(node: ast.expr) -> Fraction:
    """Evaluate a formula exactly. Raise ValueError for anything but whole numbers under + - * /."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -evaluate_formula(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate_formula(node.left), evaluate_formula(node.right))
    raise ValueError(ast.dump(node))
