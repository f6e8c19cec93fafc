"""Problems in words (NL4Opt, OptMATH) as model files written by hand, beside plain programs and published optima.

    python performance/decision_models/word_problems.py [--data FOLDER] [--shaken N]      # else $DECISOR_DATA/or_words

``word_problems/`` holds the models: one for each problem of NL4Opt and each class of OptMATH. Numbers are read from
the texts when this runs: parameters $n1, $n2, ... in the order of the text, or the tables of ``word_rows``. The author
knew the optima: this says what the format can express and whether it is solved right, not how well an LLM writes it.
With --shaken, model and plain program are compared on N copies of each problem whose numbers are moved by up to 30 %.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import random
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import word_programs
from answers import Answer, Tables, ask_optimum, count_lines, write_tables
from word_rows import KEYS, READERS, read_numbers

MODELS = Path(__file__).parent / "word_problems"
CLASSES = {f"optmath-{number:03}": name for name, (_, numbers) in READERS.items() for number in numbers}
SHAKEN_BY = 0.3


@dataclass(frozen=True)
class Problem:
    """A problem in words, with the model and the plain program that were written for it."""

    id: str
    source: str
    text: str
    optima: tuple[float, ...]
    """Published; more than one where whole and fractional answers are."""

    @property
    def name(self) -> str:
        return CLASSES.get(self.id) or self.id.replace("-", "_")

    @property
    def path(self) -> Path:
        return MODELS / f"{self.name}.toml"

    @cached_property
    def program(self) -> Any:
        return getattr(word_programs, self.name)

    @cached_property
    def data(self) -> Any:
        """Numbers by their place in the text, or tables."""
        if self.id in CLASSES:
            return READERS[self.name][0](self.text)
        return dict(enumerate(read_numbers(self.text), 1))

    async def solve(self, data: Any, folder: Path) -> Answer:
        """The model's answer on data."""
        model, tables = self.path.read_text("utf-8"), data
        if self.id not in CLASSES:
            model += "\n[parameter]\n" + "\n".join(f"n{at} = {number}" for at, number in data.items())
            tables = {"problem": [{"id": self.id}]}
        return await ask_optimum(model, write_tables(tables, folder / f"{random.random()}.sqlite"))


def shake(data: Any, draw: random.Random) -> Any:
    """The data with every number moved that is no key; whole numbers stay whole."""

    def moved(value: Any) -> Any:
        if value is None:
            return None
        return type(value)(
            max(1, round(value * draw.uniform(1 - SHAKEN_BY, 1 + SHAKEN_BY), 0 if value == int(value) else 3))
        )

    if 1 in data:
        return {at: moved(number) for at, number in data.items()}
    tables: Tables = data
    return {
        table: [{name: cell if name in KEYS else moved(cell) for name, cell in row.items()} for row in rows]
        for table, rows in tables.items()
    }


def agree(answer: Answer, optimum: float | None, tolerance: float = 1e-6) -> bool:
    if answer.value is None or optimum is None:
        return answer.status == "infeasible" and optimum is None
    return abs(answer.value - optimum) <= tolerance * max(1, abs(optimum))


async def measure_problem(problem: Problem, shaken: int, folder: Path) -> Mapping[str, float]:
    """Whether the model gives the published optimum and those of the plain program, and the lines of both."""
    answer, plain = await problem.solve(problem.data, folder), word_programs.optimum(problem.program, problem.data)
    right = any(agree(answer, optimum, 1e-4) for optimum in problem.optima)
    if not right or not agree(answer, plain):
        print(f"{problem.id}: model {answer}, plain {plain}, published {problem.optima}")
    same = feasible = 0
    for seed in range(shaken):
        data = shake(problem.data, random.Random(f"{problem.id} {seed}"))
        then, gold = await problem.solve(data, folder), word_programs.optimum(problem.program, data)
        same += agree(then, gold)
        feasible += gold is not None
        if not agree(then, gold):
            print(f"{problem.id}, shaken {seed}: model {then}, plain {gold}")
    lines = len(inspect.getsource(problem.program).strip().splitlines())
    return {
        "problems": 1,
        "with the published optimum": right,
        "with that of the plain program": agree(answer, plain),
        f"of {shaken} shaken copies each, the same": same,
        "of these with a solution": feasible,
        "lines": count_lines(problem.path),
        "lines of the plain programs": lines,
    }


async def main(folder: Path, shaken: int) -> None:
    rows = [json.loads(line) for line in (folder / "problems.jsonl").read_text("utf-8").splitlines()]
    problems = [Problem(r["id"], r["source"], r["text"], (r["optimum"], *r["also_accepted"])) for r in rows]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as own:
        for source in dict.fromkeys(problem.source for problem in problems):
            found = [await measure_problem(one, shaken, Path(own)) for one in problems if one.source == source]
            sums = {key: sum(result[key] for result in found) for key in found[0]}
            print(f"{source}: {', '.join(f'{value:g} {key}' for key, value in sums.items())}")
    print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DECISOR_DATA", "")) / "or_words")
    parser.add_argument("--shaken", type=int, default=0)
    options = parser.parse_args()
    asyncio.run(main(options.data, options.shaken))
