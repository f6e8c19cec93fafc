"""Random integer programs come out as a look at every integer point says.

    PYTHONPATH=tests python tests/decision_models/test_solver_oracle.py [--models 1000] [--first 0]

runs more of them than a test run does.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from decision_shops import factors_of, model_in_process, source_of
from decisor.databases.sql import SqlTool
from decisor.decision_models.client import OpenModel
from decisor.decision_models.optimize import SolvedPlan, rank_solved, solve_model
from decisor.errors import ToolError
from solver_oracle import Case, NoProgram, Point, Truth, dearer, random_program

pytest.importorskip("highspy")
MODELS = 40
TRIALS = 4


def point_of(case: Case, proposal: SolvedPlan) -> Point:
    amounts: list[int] = []
    for one in case.variables:
        chosen = proposal.chosen[one.name]
        amounts += [round(chosen.get(at, 0.0)) for at in range(len(case.world[one.table]))]
    return tuple(amounts)


def compare(case: Case, proposal: SolvedPlan, truth: Truth) -> None:
    assert proposal.status == truth.status
    if truth.status == "optimal":
        assert point_of(case, proposal) in truth.points, (point_of(case, proposal), truth.points)
        assert proposal.measures["gain"] == pytest.approx(float(truth.best), rel=1e-9, abs=1e-9)
        assert proposal.figures["bound"] == pytest.approx(float(truth.best), rel=1e-6, abs=1e-6)


def compare_ranking(case: Case, model: OpenModel, truth: Truth) -> None:
    """The best, and the best of those that choose other rows of the first variable."""
    ranking = rank_solved(model)
    best, *others = ranking.options
    assert best.outcome == pytest.approx(float(truth.best), abs=1e-9)
    assert best.name in {name_of(case, point) for point in truth.points}
    points = [point for point in truth.feasible if name_of(case, point) != best.name]
    assert bool(others) == (case.variables[0].kind == "yes or no" and bool(points))
    if not others:
        return
    values = [case.value(point) for point in points]
    second = min(values) if case.goal == "min" else max(values)
    assert others[0].outcome == pytest.approx(float(second), abs=1e-9)
    assert others[0].name in {name_of(case, point) for point in points if case.value(point) == second}
    assert ranking.ties == tuple(
        one.name for one in ranking.options if one.outcome == pytest.approx(float(truth.best), abs=1e-9)
    )
    # The lead is over the first choice that is not as good, where the ranking holds one: a point that is worse by its
    # other variables alone is the same choice.
    tied = {name_of(case, point) for point in truth.points}
    worse = [case.value(point) for point in points if name_of(case, point) not in tied]
    following = min(worse, default=None) if case.goal == "min" else max(worse, default=None)
    following = following if len(ranking.ties) < len(ranking.options) else None
    assert ranking.lead == (None if following is None else pytest.approx(float(abs(following - truth.best))))


async def compare_trials(case: Case, source: SqlTool) -> None:
    """Each trial is won by the best choice in the world that it draws; not compared where a trial has several."""
    name, spread = f"{case.table('item')}.gain", "40 % each"
    factors = await factors_of(source, name, spread, TRIALS)
    names: list[str] = []
    for trial in range(TRIALS):
        rows = [
            {**row, "gain": row["gain"] * Fraction(str(factors[at, trial]))}
            for at, row in enumerate(case.world["item"])
        ]
        names += {name_of(case, point) for point in case.solve({**case.world, "item": rows}).points}
    if len(names) > TRIALS:
        return
    model = await model_in_process(f'{case.toml}\n[input]\n"{name}" = {{ spread = "{spread}" }}', source)
    try:
        ranking = rank_solved(model, trials=TRIALS)
    finally:
        model.close()
    counts = Counter(names)
    assert {one.name: one.share for one in ranking.winners} == {one: counts[one] / TRIALS for one in counts}
    assert ranking.robustness == counts[ranking.options[0].name] / TRIALS


async def compare_held_plan(case: Case, source: SqlTool) -> bool:
    """What it costs to hold to the best plan and what that breaks, with gains and weights varied; False if skipped."""
    inputs = {column: f"{case.table('item')}.{column}" for column in ("gain", "weight")}
    if any(row[column] is None for row in case.world["item"] for column in inputs):
        return False
    factors = {column: await factors_of(source, name, "40 % each", TRIALS) for column, name in inputs.items()}
    spreads = "".join(f'"{name}" = {{ spread = "40 % each" }}\n' for name in inputs.values())
    model = await model_in_process(f"{case.toml}\n[input]\n{spreads}", source)
    try:
        point, ranking = point_of(case, solve_model(model)), rank_solved(model, trials=TRIALS)
    finally:
        model.close()
    costs, broken, kept = list[Fraction](), Counter[str](), 0
    for trial in range(TRIALS):
        rows = [
            {**row, **{column: row[column] * Fraction(str(of[at, trial])) for column, of in factors.items()}}
            for at, row in enumerate(case.world["item"])
        ]
        drawn = replace(case, world={**case.world, "item": rows})
        truth = drawn.solve()
        if truth.status == "unbounded":
            return False
        names = [
            one.name
            for one in case.requirements
            if not all(line.holds(point) for line in replace(drawn, requirements=(one,)).lines(drawn.world))
        ]
        broken.update(names)
        kept += not names
        costs += [] if names else [abs(drawn.value(point) - truth.best)]
    held = ranking.held
    assert held is not None and ranking.trials == TRIALS
    assert (held.kept, dict(held.broken)) == (kept, dict(broken))
    mean = float(sum(costs) / len(costs)) if costs else None
    assert held.mean == (None if mean is None else pytest.approx(mean, rel=1e-9, abs=1e-9))
    if costs:
        assert held.high == pytest.approx(float(np.percentile([float(one) for one in costs], 95)), rel=1e-9, abs=1e-9)
    return True


def name_of(case: Case, point: Point) -> str:
    rows = zip(case.world["item"], point, strict=False)
    words = [row["name"] if amount == 1 else f"{amount} x {row['name']}" for row, amount in rows if amount]
    return " + ".join(words) or "nothing"


def check_case(case: Case, model: OpenModel) -> str:
    """The status that is right."""
    try:
        truth = case.solve()
    except NoProgram:
        with pytest.raises(ToolError, match=r"NULL|not a number|no number|infinite"):
            solve_model(model)
        return "error"
    compare(case, solve_model(model), truth)
    if truth.status == "optimal":
        compare_ranking(case, model, truth)
    else:
        with pytest.raises(
            ToolError, match="Nothing meets|No plan is possible" if truth.status == "infeasible" else "unbounded"
        ):
            rank_solved(model)
    compare(case, solve_model(model, scenario="dear"), case.solve(dearer(case.world)))
    return truth.status


async def check_many(numbers: Sequence[int], folder: Path) -> tuple[Counter[str], list[str]]:
    """How many have which status, and what is wrong, of each model that is."""
    counts, wrong, cases = Counter[str](), [], [random_program(number) for number in numbers]
    async with source_of("\n".join(case.sql for case in cases), folder / f"programs{numbers[0]}.duckdb") as source:
        for case in cases:
            model = await model_in_process(case.toml, source)
            try:
                status = check_case(case, model)
                counts[status] += 1
                if status == "optimal" and case.number % 3 == 0:
                    await compare_trials(case, source)
                    counts["held"] += await compare_held_plan(case, source)
            except (Exception, pytest.fail.Exception) as error:  # each is a finding
                lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)]
                words = f"{type(error).__name__} {str(error)[:400]} (lines {lines})"
                wrong.append(f"program {case.number}: {words}\n{case.toml}\n{case.world}\n")
            finally:
                model.close()
    return counts, wrong


@pytest.mark.slow
async def test_random_programs_come_out_as_a_look_at_every_point_says(tmp_path: Path) -> None:
    counts, wrong = await check_many(range(MODELS), tmp_path)
    assert not wrong, f"{len(wrong)} of {MODELS} programs\n" + "\n".join(wrong[:3])
    assert min(counts[one] for one in ("optimal", "infeasible", "unbounded", "error", "held")) >= 1, counts


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=int, default=MODELS)
    options.add_argument("--first", type=int, default=0)
    settings = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        numbers = range(settings.first, settings.first + settings.models)
        counts, wrong = asyncio.run(check_many(numbers, Path(folder)))
    print(f"{len(numbers)} programs, {dict(counts)}, {len(wrong)} wrong")
    print("\n".join(wrong[:10]))


if __name__ == "__main__":
    main()
