"""What if, on a decision that the solver makes: which crates go on the lorry."""

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from decision_shops import factors_of, model_in_process, opened, source_of
from decisor.decision_models.optimize import rank_or_solve, solve_model
from decisor.decision_models.tool import ModelTool, describe_model
from decisor.decision_record.build import points_of_trials
from decisor.errors import ToolError
from decisor.system.wording import format_ranking
from decisor.views.rankings import plan_html

pytest.importorskip("highspy")

LORRY = """
format = 3
decide = "which crates go on the lorry"
[unknown.load]
per = "SELECT crate, value, weight FROM crate"
kind = "binary"
[measure.value]
goal = "max"
unit = "EUR"
sql = "SELECT sum(value * amount) FROM load"
[rule.weight]
text = "The lorry carries so much."
rows = "SELECT (SELECT sum(weight * amount) FROM load) AS total, most FROM lorry"
must = "total <= most"
"""
CRATES = """CREATE TABLE crate AS SELECT * FROM (VALUES ('a', 60.0, 10.0), ('b', 100.0, 20.0), ('c', 120.0, 30.0))
    t(crate, value, weight); CREATE TABLE lorry AS SELECT 50.0 AS most"""


async def test_a_change_is_solved_anew_beside_the_data_as_they_are(tmp_path: Path) -> None:
    async with opened(tmp_path, LORRY, CRATES) as model:
        tool = ModelTool(model, describe_model(model))
        assert "rule weight: The lorry carries so much." in tool.describe()
        assert (await tool.call("rank")).records[0].fields["candidate"] == "b + c"  # 220 of 50 kg
        record = (await tool.call("set lorry.most = 30")).records[0].fields
        assert (record["value now"], record["best then"], record["value then"]) == (220.0, "a + b", 160.0)
        assert record["effect"] == -60.0
        with pytest.raises(ToolError, match="names no"):
            await tool.call("turning points")
        with pytest.raises(ToolError, match="for the solver"):
            await tool.call("pareto")


VARIED = """
[input]
"crate.value" = { unit = "EUR", raises = "value", spread = "30 % by crate" }
"""


async def test_trials_of_a_solver_model_are_solved_each_and_counted(tmp_path: Path) -> None:
    """b + c (220) is before a + c (180) and a + b (160), so crate a has to gain much and b to lose much."""
    async with opened(tmp_path, LORRY + VARIED, CRATES) as model:
        ranking = await asyncio.to_thread(rank_or_solve, model, trials=25)
    assert (ranking.trials, ranking.varied) == (25, ("crate.value 30 % by crate",))
    assert ranking.robustness is not None and 0.7 < ranking.robustness <= 1
    assert {one.name for one in ranking.winners} <= {"b + c", "a + c", "a + b"}
    assert "Each trial was solved anew." in format_ranking(ranking)


CRATE = {"a": (60.0, 10.0), "b": (100.0, 20.0), "c": (120.0, 30.0)}


def best_value(most: float, fits: Callable[[set[str]], bool] = lambda some: True, factor: float = 1.0) -> float:
    """The best of all loads, the values of b times a factor."""
    loads = (set(some) for count in range(4) for some in itertools.combinations(CRATE, count))
    return max(
        sum(CRATE[one][0] * (factor if one == "b" else 1) for one in load)
        for load in loads
        if fits(load) and sum(CRATE[one][1] for one in load) <= most
    )


async def test_why_a_row_is_in_the_plan_or_out_of_it_is_the_best_of_all_loads_with_or_without_it(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, LORRY, CRATES) as model:
        tool = ModelTool(model)
        fields = (await tool.call("why a")).records[0].fields
        with_a = best_value(50, lambda some: "a" in some)
        assert (fields["in the best plan"], fields["value with it"]) == (False, with_a)
        fields = (await tool.call("why c")).records[0].fields
        without_c = best_value(50, lambda some: "c" not in some)
        assert (fields["in the best plan"], fields["effect"]) == (True, without_c - 220)
        with pytest.raises(ToolError, match="no single row"):
            await tool.call("why crate z")


async def test_a_turning_point_of_a_plan_is_that_of_all_loads(tmp_path: Path) -> None:
    group = '[input]\n"crate.value" = { unit = "EUR", spread = "30 % by crate" }\n'
    async with opened(tmp_path, LORRY + group, CRATES) as model:
        found = {one.fields["input"]: one.fields for one in (await ModelTool(model).call("turning points")).records}
    # b + c is 220; a + c is 180 and a + b 160: b may fall to 60, c to 60; a has to rise to 100.
    assert set(found) == {"crate.value (crate a)", "crate.value (crate b)"}
    assert found["crate.value (crate b)"]["times"] == pytest.approx(0.6, abs=1e-3)
    assert found["crate.value (crate b)"]["wins"] == "a + c"
    assert found["crate.value (crate a)"]["times"] == pytest.approx(100 / 60, abs=1e-3)
    assert best_value(50, factor=0.61) == 61 + 120 and best_value(50, factor=0.59) == 180


async def test_one_more_of_a_rule_with_whole_numbers_is_solved_again(tmp_path: Path) -> None:
    tons = f"{CRATES}; UPDATE crate SET weight = weight / 10; UPDATE lorry SET most = 5"
    async with opened(tmp_path, LORRY, tons) as model:
        plan = await asyncio.to_thread(lambda: solve_model(model, stepped=True))
    # With one ton more a comes too.
    assert plan.rules["weight"].prices[0]["step"] == best_value(60) - best_value(50) == 60


async def test_every_plan_as_good_is_told_once_and_by_its_own_name(tmp_path: Path) -> None:
    rows = ", ".join(f"('{name}', 1.0, 1.0)" for name in "abcdefghijklm")
    crates = f"CREATE TABLE crate AS SELECT * FROM (VALUES {rows}) t(crate, value, weight)"
    tables = f"{crates}; CREATE TABLE lorry AS SELECT 12.0 AS most"
    async with opened(tmp_path, LORRY, tables) as model:
        ranking = await asyncio.to_thread(rank_or_solve, model, trials=0)
    assert len(set(ranking.ties)) == len(ranking.ties) == 4 and {one.outcome for one in ranking.options} == {12.0}
    assert all(" instead of " in name for name in ranking.ties[1:])


async def test_holding_to_a_plan_costs_what_all_loads_say_and_breaks_what_its_weight_says(tmp_path: Path) -> None:
    spreads = {"crate.value": "60 % each", "crate.weight": "20 % each"}
    inputs = "".join(f'"{name}" = {{ spread = "{spread}" }}\n' for name, spread in spreads.items())
    async with source_of(CRATES.replace("50.0", "51.0"), tmp_path / "crates.duckdb") as source:
        values, weights = [await factors_of(source, name, spread, 40) for name, spread in spreads.items()]
        model = await model_in_process(f"{LORRY}\n[input]\n{inputs}", source)
        ranking = rank_or_solve(model, trials=40)
        model.close()
    costs, broken = [], 0
    for trial in range(40):
        crates = {
            name: (value * values[at, trial], weight * weights[at, trial])
            for at, (name, (value, weight)) in enumerate(CRATE.items())
        }
        loads = [set(some) for count in range(4) for some in itertools.combinations(crates, count)]
        worth = {
            frozenset(load): sum(crates[one][0] for one in load)
            for load in loads
            if sum(crates[one][1] for one in load) <= 51
        }
        if frozenset("bc") in worth:
            costs.append(max(worth.values()) - worth[frozenset("bc")])
        else:
            broken += 1
    held = ranking.held
    assert held is not None and 5 < broken < 35 and max(costs) > 0
    assert (held.kept, held.broken) == (len(costs), {"weight": broken})
    assert held.mean == pytest.approx(np.mean(costs)) and held.high == pytest.approx(np.percentile(costs, 95))
    # Where it is as good as the best plan of a trial, it stays best.
    assert ranking.robustness == sum(cost == 0 for cost in costs) / 40
    words = f"Held to, this plan keeps every rule in {len(costs)} of 40 trials. There it brings "
    assert words in format_ranking(ranking) and f"It breaks weight in {broken}." in format_ranking(ranking)
    assert words in str(plan_html(ranking)) and any(words in one.what for one in points_of_trials(ranking))


async def test_a_plan_of_more_rows_than_are_shown_is_held_to_whole(tmp_path: Path) -> None:
    tables = """CREATE TABLE crate AS SELECT 'c' || i AS crate, 1.0 AS value, 1.0 AS weight FROM range(1200) t(i);
        INSERT INTO crate VALUES ('z', 0.0, 1.0); CREATE TABLE lorry AS SELECT 1200.0 AS most"""
    reading = """[scenario.dear]\nopen = "Is z worth 5?"\nchange = "UPDATE crate SET value = 5 WHERE crate = 'z'"\n"""
    async with opened(tmp_path, f"{LORRY}\n{reading}", tables) as model:
        ranking = await asyncio.to_thread(rank_or_solve, model, trials=0)
    (found,) = ranking.readings
    assert (found.outcome, found.usual) == (1204.0, 1200.0)
