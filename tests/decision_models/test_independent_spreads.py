"""Draws of rows, inputs, groups and trials have nothing to do with each other, and the stated interval holds."""

from pathlib import Path

import numpy as np
import pytest

from decision_shops import opened
from decisor.decision_models.machine import OpenModel
from decisor.decision_models.rank_model import rank_model
from decisor.rankings import interval

CELLS = """decide = "x"
choice = "SELECT n, which FROM cell"
[measure.value]
goal = "min"
sql = "SELECT CASE WHEN $which = 'a' THEN a ELSE b END FROM cell WHERE n = $n AND which = $which"
[input]
"cell.a" = { spread = "10 % each" }
"cell.b" = { spread = "10 % by grp" }
"""
TABLE = """CREATE TABLE cell AS SELECT i AS n, w AS which, 'g' || i AS grp, 1.0::DOUBLE AS a, 1.0::DOUBLE AS b
    FROM range(20) t(i), (VALUES ('a'), ('b')) v(w)"""
TRIALS = 2000


def factors(model: OpenModel, varies: tuple[str, ...] | None = None) -> np.ndarray:
    values: np.ndarray = model.trials(range(len(model.candidates)), TRIALS, varies=varies).values[:, 0]
    return values


async def test_rows_inputs_and_groups_vary_independently_and_uniformly(tmp_path: Path) -> None:
    async with opened(tmp_path, CELLS, TABLE) as model:
        values = factors(model)
        alone = factors(model, ("cell.a",))
    correlation = np.corrcoef(values) - np.eye(len(values))
    assert np.abs(correlation).max() < 5 / np.sqrt(TRIALS)
    units = (values - 0.9) / 0.2
    assert units.min() >= 0 and units.max() <= 1
    assert np.abs(units.mean(axis=1) - 0.5).max() < 5 / np.sqrt(12 * TRIALS)
    assert np.abs(np.corrcoef(units[:, 1:].ravel(), units[:, :-1].ravel())[0, 1]) < 5 / np.sqrt(units.size)
    of_a = (alone != 1).any(axis=1)
    assert of_a.sum() == 20 and (alone[of_a] == values[of_a]).all()


@pytest.mark.slow
async def test_the_interval_of_95_percent_holds_the_truth_about_as_often(tmp_path: Path) -> None:
    rng, held, models = np.random.default_rng(11), 0, 60
    for number in range(models):
        count, lines = int(rng.integers(2, 5)), int(rng.integers(1, 8))
        costs = rng.uniform(90, 110, (count, lines)) * 10 / lines
        rows = ", ".join(f"({who}, {cost!r})" for who, own in enumerate(costs.tolist()) for cost in own)
        text = """decide = "x"\nchoice = "SELECT DISTINCT who FROM line ORDER BY who"
[measure.cost]\ngoal = "min"\nsql = "SELECT sum(cost) FROM line WHERE who = $who"
[input]\n"line.cost" = { spread = "15 % each" }"""
        (tmp_path / str(number)).mkdir()
        table = f"CREATE TABLE line AS SELECT who, cost::DOUBLE AS cost FROM (VALUES {rows}) t(who, cost)"
        async with opened(tmp_path / str(number), text, table) as model:
            ranking = rank_model(model, trials=200, seed=1000 * number)
        shaken = (costs * rng.uniform(0.85, 1.15, (40_000, *costs.shape))).sum(axis=2)
        truth = (shaken.argmin(axis=1) == costs.sum(axis=1).argmin()).mean()
        low, high = interval(ranking.robustness or 0.0, 200)
        held += low <= truth <= high
    assert held >= 52, f"{held} of {models}"  # 57 are expected; fewer than 52 come by chance in 1 of 100 runs
    print(f"{held} of {models}")


async def test_a_spread_that_moves_a_constant_is_found(tmp_path: Path) -> None:
    from decisor.decision_models.checks.run import check

    text = """decide = "x"\nchoice = "SELECT who, price, currency FROM bid"\n[measure.cost]\ngoal = "min"\nunit = "EUR"
sql = "SELECT $price * eur FROM rate WHERE currency = $currency"\n[input]\n"rate.eur" = { spread = "5 % each" }"""
    tables = """CREATE TABLE bid AS SELECT * FROM (VALUES ('a', 5.0, 'EUR'), ('b', 6.0, 'SEK')) t(who, price, currency);
CREATE TABLE rate AS SELECT * FROM (VALUES ('EUR', 1.0), ('SEK', 0.09)) t(currency, eur)"""
    async with opened(tmp_path, text, tables) as model:
        findings = [one for one in check(model) if "EUR per EUR" in str(one)]
    assert len(findings) == 1
