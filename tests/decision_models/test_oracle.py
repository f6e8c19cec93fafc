"""Random decision models come out as plain Python says.

    PYTHONPATH=tests python tests/decision_models/test_oracle.py [--models 3000] [--first 0]

runs more of them than a test run does.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decision_oracle as oracle
from decision_oracle import Case, NoLimit, Outcome, fraction, random_case, ranked
from decision_shops import factors_of, model_in_process, source_of
from decisor.databases.sql import SqlTool
from decisor.decision_models.analyses import compare_scenarios as side_by_side
from decisor.decision_models.analyses import compute_regrets, compute_worst_cases
from decisor.decision_models.client import OpenModel
from decisor.decision_models.outcomes import Outcomes
from decisor.decision_models.ranking import check_joint_outcomes, find_pareto_front, rank_model
from decisor.decision_models.turning_points import find_turning_points
from decisor.errors import ToolError

MODELS = 40
TRIALS = 5


def close(one: Any, other: Any) -> bool:
    """Of a fraction or None and a number of the product."""
    if one is None or one != one:
        return bool(other != other)
    return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-12)


def compare(case: Case, expected: Sequence[Outcome], got: Outcomes, trial: int | None = None) -> None:
    end: tuple[Any, ...] = () if trial is None else (trial,)
    for at, one in enumerate(expected):
        for name, value in one.values.items():
            here = got.values[(at, got.names.index(name), *end)]
            assert close(value, here), (name, case.groups[at], value and float(value), here)
        broken = {rule for number, rule in enumerate(got.rules) if got.broken[(at, number, *end)]}
        assert broken == set(one.broken), (case.groups[at], broken, one.broken)
        assert bool(got.allowed[(at, *end)]) == one.allowed, (case.groups[at], one)
        if trial is None:
            counts = {rule: got.reasons[at, rule].count for rule in broken}
            assert counts == one.broken, (counts, one.broken)


def compare_ranking(case: Case, model: OpenModel, expected: Sequence[Outcome]) -> None:
    ranking = rank_model(model, trials=0)
    order, name = ranked(case, expected), model.candidates.name
    assert ranking.compared == len(case.groups) and ranking.excluded_count == len(expected) - len(order)
    assert [option.name for option in ranking.options] == [name(at) for at in order]
    for rule, count in ranking.excluded_by.items():
        assert rule == "no outcome" or count == sum(rule in one.broken for one in expected)
    assert all(one.why for one in ranking.excluded)
    if not order:
        return
    best = expected[order[0]].first
    tied = [at for at in order if expected[at].first == best]
    assert ranking.ties == tuple(name(at) for at in tied)
    if len(tied) < len(order):
        lead = abs(expected[order[len(tied)]].first - best)  # type: ignore[operator]
        assert math.isclose(float(lead), ranking.lead or 0, rel_tol=1e-6)
        assert ranking.margin is not None and math.isfinite(ranking.margin)


def compare_front(case: Case, expected: Sequence[Outcome], got: Outcomes) -> None:
    signs = [1 if one.goal == "min" else -1 for one in case.measures]
    costs = {
        at: [sign * value for sign, value in zip(signs, one.values.values(), strict=True)]  # type: ignore[operator]
        for at, one in enumerate(expected)
        if one.allowed and all(v is not None and v == v for v in one.values.values())
    }
    on = {
        at
        for at, own in costs.items()
        if not any(all(a <= b for a, b in zip(other, own, strict=True)) and other != own for other in costs.values())
    }
    order = got.order()
    goals: Any = [one.goal for one in case.measures]
    here = find_pareto_front(np.round(got.values[order], 9), goals)
    assert {int(at) for at, hit in zip(order, here, strict=True) if hit} == on


def compare_scenarios(case: Case, model: OpenModel, got: Outcomes) -> None:
    sides = [case.every(), *(case.every(change) for change in case.scenarios.values())]
    for name, expected in zip(case.scenarios, sides[1:], strict=True):
        compare(case, expected, model.outcomes(scenario=name))
        compare(case, expected, model.outcomes(changes=case.scenarios[name].sql))
    goal = model.model.first.goal
    costs = [
        [float(side[at].first) if side[at].allowed else math.nan for side in sides]  # type: ignore[arg-type]
        for at in range(len(case.groups))
    ]
    best = [
        (min if goal == "min" else max)((v for v in column if v == v), default=math.nan)
        for column in zip(*costs, strict=True)
    ]
    shut = [any(v != v for v in row) for row in costs]
    worst = [math.nan if out else (max if goal == "min" else min)(row) for row, out in zip(costs, shut, strict=True)]
    regret = [
        math.nan if out else max(abs(v - b) for v, b in zip(row, best, strict=True))
        for row, out in zip(costs, shut, strict=True)
    ]
    values = side_by_side(model, got).values
    np.testing.assert_allclose(values, costs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(compute_worst_cases(values, goal), worst, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(compute_regrets(values, goal), regret, rtol=1e-9, atol=1e-9)


async def compare_trials(case: Case, model: OpenModel, source: SqlTool) -> None:
    """The trials are those of the worlds in which each cell is moved so."""
    worlds = [deepcopy(case.world) for _ in range(TRIALS)]
    for name, how in case.inputs.items():
        table, column = name.split(".")
        rows = case.world[table.rpartition("_")[0]]
        if not rows:
            continue
        factors = await factors_of(source, name, how, TRIALS)
        share, kind = float(how.split()[0]) / 100, how.split()[-1]
        assert (np.abs(factors - 1) <= share).all() and (factors != 1).all()
        keys = [at if kind == "each" else 0 if kind == "together" else row[kind] for at, row in enumerate(rows)]
        for trial, world in enumerate(worlds):
            assert len({factors[at, trial] for at in range(len(rows))}) == len(set(keys))
            assert len({(key, factors[at, trial]) for at, key in enumerate(keys)}) == len(set(keys))
            for at, row in enumerate(world[table.rpartition("_")[0]]):
                row[column] = oracle.times(row[column], fraction(float(factors[at, trial])))
    got = model.trials(range(len(case.groups)), TRIALS)
    for trial, world in enumerate(worlds):
        compare(case, case.every(world=world), got, trial)


def compare_present(case: Case, model: OpenModel) -> None:
    got = model.present()
    for name, value in case.present().items():
        parts = got[name]
        here = math.nan if parts is None else sum(parts.values())
        assert close(value, here), (name, value, here)


def compare_turns(case: Case, model: OpenModel, order: Sequence[int], target: int | None = None) -> None:
    """At the factor another one is best, or the target; a little before it is not so."""
    best = model.candidates.name(order[0])
    wanted = None if target is None else model.candidates.name(target)

    def is_turned(winner: str) -> bool:
        return winner != best if wanted is None else winner == wanted

    for turn in find_turning_points(model, range(len(case.groups)), order[0], target):
        table, column = turn.input.partition(" (")[0].removesuffix(", falling").split(".")
        group = turn.input.partition(" (")[2].removesuffix(", falling").rstrip(")").split(" ")

        def winner(factor: float, table: str = table, column: str = column, group: Sequence[str] = group) -> str:
            world = deepcopy(case.world)
            for row in world[table.rpartition("_")[0]]:
                if group == [""] or row[group[0]] == group[1]:
                    row[column] = oracle.times(row[column], fraction(factor))
            here = ranked(case, case.every(world=world))
            return model.candidates.name(here[0]) if here else ""

        if turn.factor is not None:
            assert winner(turn.factor) == turn.winner and is_turned(turn.winner)
            before = min(1.0, turn.factor + 0.0006) if turn.factor < 1 else max(1.0, turn.factor - 0.0006)
            assert not is_turned(winner(before))
        else:
            assert not is_turned(winner(0.5 if "falling" in turn.input else 2.0))


async def check_case(case: Case, source: SqlTool) -> None:
    model = await model_in_process(case.toml, source)
    try:
        try:
            expected = case.every()
        except NoLimit as error:
            with pytest.raises(ToolError, match=f"rule.{error}.*NULL"):
                model.outcomes()
            return
        got = model.outcomes()
        compare(case, expected, got)
        compare(case, expected, model.outcomes(one_by_one=True))
        check_joint_outcomes(model, got)
        compare_present(case, model)
        compare_ranking(case, model, expected)
        compare_front(case, expected, got)
        try:
            compare_scenarios(case, model, got)
            await compare_trials(case, model, source)
            if got.allowed.any() and case.inputs:
                order = ranked(case, expected)
                compare_turns(case, model, order)
                compare_turns(case, model, order, order[-1]) if len(order) > 1 else None
        except NoLimit:
            pass
    finally:
        model.close()


async def check_many(numbers: Sequence[int], folder: Path) -> list[str]:
    """What is wrong, of each model that is."""
    wrong = []
    cases = [random_case(number) for number in numbers]
    sql = "\n".join(case.sql for case in cases)
    async with source_of(sql, folder / f"cases{cases[0].number}.duckdb") as source:
        for case in cases:
            try:
                await check_case(case, source)
            except (Exception, pytest.fail.Exception) as error:  # each is a finding
                lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)]
                words = f"{type(error).__name__} {str(error)[:400]} (lines {lines})"
                wrong.append(f"model {case.number}: {words}\n{case.toml}\n")
    return wrong


@pytest.mark.slow
async def test_random_models_come_out_as_plain_python_says(tmp_path: Path) -> None:
    wrong = await check_many(range(MODELS), tmp_path)
    assert not wrong, f"{len(wrong)} of {MODELS} models\n" + "\n".join(wrong[:3])


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=int, default=MODELS)
    options.add_argument("--first", type=int, default=0)
    settings = options.parse_args()
    warnings.simplefilter("ignore")
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for first in range(settings.first, settings.first + settings.models, 50):
            some = range(first, min(first + 50, settings.first + settings.models))
            wrong += await check_many(some, Path(folder))
            print(f"{some.stop - settings.first} models, {len(wrong)} wrong", flush=True)
    print("\n".join(wrong[:10]))


if __name__ == "__main__":
    asyncio.run(main())
