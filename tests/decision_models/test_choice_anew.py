"""Prices that stand in the choice move in trials, scenarios and what-ifs: it is read on the changed data."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from decision_shops import opened
from decisor.decision_models.ranking import rank_model
from decisor.decision_models.tool import ModelTool

OFFERS = """CREATE TABLE offer AS SELECT * FROM (VALUES ('a', 'X', 10.0, 5.0), ('b', 'X', 11.0, 1.0),
    ('c', 'Y', 30.0, 2.0)) t(name, maker, price, freight); CREATE TABLE need AS SELECT 100 AS pieces"""
MODEL = """
format = 3
decide = "the offer to take"
choice.pick.rows = "{choice}"
[measure.cost]
goal = "min"
unit = "EUR"
sql = "{sql}"
[scenario.dear]
change = "UPDATE offer SET price = price * 3 WHERE name = 'a'"
[input]
"offer.price" = {{ spread = "50 % by name" }}
"""
PLAIN = MODEL.format(
    choice="SELECT name, price, freight FROM offer",
    sql="SELECT pieces * (SELECT price FROM pick) + (SELECT freight FROM pick) FROM need",
)


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True])
async def test_a_price_that_is_read_by_the_choice_moves_in_a_scenario(tmp_path: Path, alone: bool) -> None:
    async with opened(tmp_path, PLAIN, OFFERS) as model:
        now = await asyncio.to_thread(model.outcomes, one_by_one=alone)
        dear = await asyncio.to_thread(lambda: model.outcomes(scenario="dear", one_by_one=alone))
    assert now.values[:, 0].tolist() == [1005.0, 1101.0, 3002.0]
    assert (dear.values[:, 0].tolist(), dear.note) == ([3005.0, 1101.0, 3002.0], "")


@pytest.mark.slow
async def test_a_trial_is_the_same_through_the_choice_and_through_the_table(tmp_path: Path) -> None:
    table = MODEL.format(
        choice="SELECT name FROM offer", sql="SELECT pieces * price + freight FROM need, offer JOIN pick USING (name)"
    )
    async with opened(tmp_path, PLAIN, OFFERS) as model:
        one = await asyncio.to_thread(model.trials, range(3), 40)
        robust = (await asyncio.to_thread(rank_model, model)).robustness
    folder = tmp_path / "other"
    folder.mkdir()
    async with opened(folder, table, OFFERS) as model:
        other = await asyncio.to_thread(model.trials, range(3), 40)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
    assert one.values.std(axis=2).min() > 0 and robust is not None and 0.3 < robust < 0.8


async def test_several_trials_at_once_give_what_each_gives(tmp_path: Path) -> None:
    async with opened(tmp_path, PLAIN, OFFERS) as model:
        all_at_once = await asyncio.to_thread(model.trials, range(3), 20)
        each = [await asyncio.to_thread(model.trials, range(3), 1, first_seed=at) for at in (0, 7, 19)]
    for at, one in zip((0, 7, 19), each, strict=True):
        np.testing.assert_allclose(all_at_once.values[:, 0, at], one.values[:, 0, 0], rtol=1e-12)


async def test_a_what_if_and_a_turning_point_move_the_choice(tmp_path: Path) -> None:
    async with opened(tmp_path, PLAIN, OFFERS) as model:
        tool = ModelTool(model)
        fields = (await tool.call("set offer.price = price * 2 where name = 'a'")).records[0].fields
        assert (fields["best then"], fields["cost then"], fields["a then"]) == ("b", 1101.0, 2005.0)
        turn = (await tool.call("turning points")).records[0].fields
    assert (turn["input"], turn["wins"]) == ("offer.price (name b)", "b")
    assert turn["times"] == pytest.approx(1004 / 1100, abs=1e-3)


async def test_a_row_that_is_no_longer_to_be_chosen_keeps_its_values_and_that_is_said(tmp_path: Path) -> None:
    narrow = MODEL.format(
        choice="SELECT name, price, freight FROM offer WHERE price < 20",
        sql="SELECT pieces * (SELECT price FROM pick) + (SELECT freight FROM pick) FROM need",
    )
    async with opened(tmp_path, narrow, OFFERS) as model:
        answer = await ModelTool(model).call("scenario dear")
        ranking = await asyncio.to_thread(rank_model, model)
    assert "Mind: rows that choice no longer gives on the changed data keep the values of before." in answer.note
    assert ranking.varied == ("offer.price 50 % by name",)


async def test_rows_that_nothing_tells_apart_keep_their_values_and_that_is_said(tmp_path: Path) -> None:
    prices = MODEL.format(choice="SELECT price FROM offer", sql="SELECT pieces * (SELECT price FROM pick) FROM need")
    async with opened(tmp_path, prices, OFFERS) as model:
        ranking = await asyncio.to_thread(rank_model, model)
    assert ranking.varied[-1].startswith("choice keeps the values that it read before")
