"""The released puzzles: ``24.csv``, sorted from easy to hard by the time that people took. Rows count from 0."""

from __future__ import annotations

import csv
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.errors import SetupError
from decisor.types import Question

RULES = "Use each of the four numbers exactly once, with + - * / and brackets, and reach exactly 24."


def question(numbers: str) -> Question:
    return Question(f"Make 24 from the numbers {numbers}", RULES)


def cases(path: Path, first: int = 900, last: int = 999) -> tuple[Case, ...]:
    """Rows ``first`` to ``last``, both included; 900 to 999 is the papers' test. ``path``: the file or its folder.

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
        return tuple(case(rows[at], at) for at in range(first, last + 1))
    except (KeyError, AttributeError, ValueError) as error:
        raise SetupError(f"{file} is not a list of puzzles: it needs the columns Rank and Puzzles.") from error


def case(row: dict[str, str], at: int) -> Case:
    numbers = " ".join(str(int(number)) for number in row["Puzzles"].split())
    return Case(f"{at}", question(numbers), facts={"numbers": numbers, "rank": int(row["Rank"])})
