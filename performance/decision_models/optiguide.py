"""OptiGuide's what-ifs: each change of its benchmark put to ``whatif`` on one model file a problem, beside its optimum.

    python performance/decision_models/optiguide.py [--data FOLDER] [MODEL ...]     # else $DECISOR_DATA/optiguide

A change is a list of steps (changed cells, added and removed rows, added requirements), written here as a fragment of a
model file without an LLM: measured are the model files, ``whatif`` and the solver. ``expected`` is the optimum of what
the words ask, by an independent program (scipy; CBC and dynamic programming agree), ``recorded`` that of OptiGuide's
own run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from answers import Answer, ask_whatif, count_lines, open_tool

MODELS = Path(__file__).parent / "optiguide"
Step = Mapping[str, Any]


def literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def condition(where: Mapping[str, Any] | None) -> str:
    tests = [
        f"{column} IN ({', '.join(map(literal, value))})" if isinstance(value, list) else f"{column} = {literal(value)}"
        for column, value in (where or {}).items()
    ]
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def change_of(step: Step) -> str:
    """The statement of a step that changes data."""
    if step["do"] == "remove_point":
        return f"DELETE FROM point WHERE point = {literal(step['point'])}"
    table, column = step["table"], step.get("column")
    if step["op"] == "insert":
        cells = step["row"]
        return f"INSERT INTO {table} ({', '.join(cells)}) VALUES ({', '.join(map(literal, cells.values()))})"
    sign = {"set": "", "add": f"{column} + ", "multiply": f"{column} * "}[step["op"]]
    return f"UPDATE {table} SET {column} = {sign}{literal(step['value'])}{condition(step.get('where'))}"


def rule_of(step: Step, number: int) -> str:
    """The rule of a step that requires something."""
    total = " + ".join(
        f"{literal(term.get('times', 1))} * "
        f"(SELECT coalesce(sum(amount), 0) FROM {term['variable']}{condition(term.get('where'))})"
        for term in step["sum"]
    )
    return (
        f'[rule.asked_{number}]\ntext = "What is asked."\nrows = "SELECT {total} AS total"\n'
        f'must = "total {step["sense"]} {literal(step["value"])}"\n'
    )


def fragment_of(steps: Sequence[Step]) -> str:
    changes = [change_of(step) for step in steps if step["do"] != "require"]
    rules = [rule_of(step, number) for number, step in enumerate(steps, 1) if step["do"] == "require"]
    return "\n".join([f'change = "{"; ".join(changes)}"\n', *rules])


def asked(change: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Step]]]:
    """What is compared, and its steps: the words, and what the recorded run did."""
    yield "expected", change["steps"]
    if change["recorded"]:
        yield "recorded", change.get("steps_as_recorded", change["steps"])


def agrees(answer: Answer, gold: Mapping[str, Any]) -> bool:
    return answer.status == gold["status"] and (
        answer.value is None or abs(answer.value - gold["objective"]) <= 1e-6 * max(1, abs(gold["objective"]))
    )


async def measure_model(name: str, folder: Path) -> None:
    changes = [json.loads(line) for line in (folder / "changes.jsonl").read_text("utf-8").splitlines()]
    counts = {"expected": [0, 0], "recorded": [0, 0]}
    began = time.perf_counter()
    async with open_tool((MODELS / f"{name}.toml").read_text("utf-8"), f"sqlite:///{folder / 'model.sqlite'}") as tool:
        for change in changes:
            answers: dict[str, Answer] = {}
            for kind, steps in asked(change):
                fragment = fragment_of(steps)
                if fragment not in answers:
                    answers[fragment] = await ask_whatif(tool, fragment)
                right = agrees(answers[fragment], change[kind])
                counts[kind][0] += right
                counts[kind][1] += 1
                if not right:
                    print(f"{change['id']} {kind}: {answers[fragment]}, not {change[kind]}")
    figures = ", ".join(f"{right} of {count} as {kind}" for kind, (right, count) in counts.items())
    lines = count_lines(MODELS / f"{name}.toml")
    print(f"{name:10} {figures}; {lines} lines; {time.perf_counter() - began:.1f} s")


async def main(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        await measure_model(name, folder / name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DECISOR_DATA", "")) / "optiguide")
    parser.add_argument("models", nargs="*", default=sorted(path.stem for path in MODELS.glob("*.toml")))
    options = parser.parse_args()
    asyncio.run(main(options.data, options.models))
