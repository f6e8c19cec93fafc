"""A fragment of a model file as a what-if, against a look at every plan in plain Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from decision_shops import opened
from decisor.decision_models.tool import ModelTool
from decisor.errors import ToolError

TABLES = """CREATE TABLE good AS
SELECT * FROM (VALUES ('a', 3.0, 2.0), ('b', 5.0, 4.0), ('c', 4.0, 3.0)) t(good, eur, hours);
CREATE TABLE day AS SELECT 11.0 AS hours"""
MODEL = """format = 3
decide = "what to make"
parameter.most = 3
[unknown.make]
per = "good"
kind = "integer"
upper = "$most"
[measure.profit]
goal = "max"
unit = "EUR"
sql = "SELECT sum(amount * eur) FROM make"
[rule.hours]
text = "A day has its hours."
rows = "SELECT sum(m.amount * m.hours) AS used, any_value(d.hours) AS hours FROM make m CROSS JOIN day d"
must = "used <= hours"
"""
GOODS = {"a": (3.0, 2.0), "b": (5.0, 4.0), "c": (4.0, 3.0)}
Plan = Mapping[str, int]


def best(
    goods: Mapping[str, tuple[float, float]], hours: float, most: int, fits: Callable[[Plan], bool]
) -> float | None:
    plans = (
        dict(zip(goods, amounts, strict=True)) for amounts in itertools.product(range(most + 1), repeat=len(goods))
    )
    values = [
        sum(goods[good][0] * n for good, n in plan.items())
        for plan in plans
        if fits(plan) and sum(goods[good][1] * n for good, n in plan.items()) <= hours
    ]
    return max(values, default=None)


def rule(condition: str) -> str:
    amount = "(SELECT coalesce(sum(amount), 0) FROM make WHERE good = '{}') AS {}"
    columns = ", ".join(amount.format(good, good) for good in "abcd")
    return f'[rule.asked]\ntext = "What is asked."\nrows = "SELECT {columns}"\nmust = "{condition}"\n'


def always(plan: Plan) -> bool:
    return True


CASES = {
    rule("a <= 1"): best(GOODS, 11, 3, lambda plan: plan["a"] <= 1),
    rule("b >= 2 AND c = 1"): best(GOODS, 11, 3, lambda plan: plan["b"] >= 2 and plan["c"] == 1),
    rule("b = 3"): None,
    rule("d = 1"): None,
    "parameter.most = 1": best(GOODS, 11, 1, always),
    'change = "UPDATE day SET hours = 6.5"': best(GOODS, 6.5, 3, always),
    """change = "INSERT INTO good VALUES ('d', 9, 5); DELETE FROM good WHERE good = 'a'"\n""" + rule("d <= 1"): best(
        {"b": GOODS["b"], "c": GOODS["c"], "d": (9.0, 5.0)}, 11, 3, lambda plan: plan["d"] <= 1
    ),
    '```toml\n[rule.hours]\ntext = "Twice the hours."\nrows = "SELECT sum(amount * hours) AS used FROM make"\n'
    'must = "used <= 22"\n```': best(GOODS, 22, 3, always),
}


async def test_a_fragment_gives_the_best_of_all_plans(tmp_path: Path) -> None:
    async with opened(tmp_path, MODEL, TABLES) as model:
        tool = ModelTool(model)
        for fragment, gold in CASES.items():
            fields = (await tool.call(fragment)).records[0].fields
            assert (fields["profit now"], fields["profit then"]) == (best(GOODS, 11, 3, always), gold), fragment


async def test_nothing_fits_is_an_answer_that_names_the_rule(tmp_path: Path) -> None:
    async with opened(tmp_path, MODEL, TABLES) as model:
        assert "rule asked" in (await ModelTool(model).call(rule("b = 3"))).note


@pytest.mark.parametrize(
    ("fragment", "words"),
    [("parameter.least = 3", "There is no parameter least"), ("[rule.x]\ntext = 'x'\nrows = 'make'", "exactly one of")],
)
async def test_what_does_not_fit_the_model_is_told(tmp_path: Path, fragment: str, words: str) -> None:
    async with opened(tmp_path, MODEL, TABLES) as model:
        with pytest.raises(ToolError, match=words):
            await ModelTool(model).call(fragment)


OFFICES = """CREATE TABLE office AS
SELECT * FROM (VALUES ('north', 900.0, 8), ('south', 1200.0, 14), ('west', 1000.0, 9)) t(name, rent, seats);
CREATE TABLE team AS SELECT 12 AS people"""
OFFICE = """format = 3
decide = "the office to rent"
parameter.least = 5
[choice.pick]
rows = "SELECT name, rent FROM office WHERE seats > $least"
[measure.rent]
goal = "min"
unit = "EUR"
sql = "SELECT sum(rent) FROM pick"
"""


async def test_variants_and_the_model_itself_take_turns_in_one_worker(tmp_path: Path) -> None:
    async with opened(tmp_path, OFFICE, OFFICES) as model:
        tool = ModelTool(model)
        for _ in range(2):
            fields = (await tool.call("parameter.least = 8")).records[0].fields
            assert (fields["best now"], fields["best then"]) == ("north", "west")
            assert (await tool.call("rank")).records[0].fields["candidate"] == "north"
            assert len(model.lay_over(model.model).candidates) == len(model.candidates) == 3
