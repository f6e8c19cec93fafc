"""A rule compares numbers as decimals are compared: 0.1 + 0.2 is 0.3. What is right is reckoned with fractions here."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from decision_shops import opened

COSTS = {"a": ("0.1", "0.2"), "b": ("0.1", "0.2000001"), "c": ("0.1", "0.1"), "d": ("inf", "0.1"), "e": ("-0.1", "0.4")}
TABLES = f"""CREATE TABLE line AS SELECT * FROM (VALUES {
    ", ".join(f"('{name}', {cost!r}::DOUBLE)" for name, pair in COSTS.items() for cost in pair)
}) t(name, cost);
CREATE TABLE offer AS SELECT DISTINCT name FROM line ORDER BY name;
CREATE TABLE cap AS SELECT 0.3::DOUBLE AS most"""
MODEL = """format = 3
decide = "x"
choice.pick.rows = "SELECT name FROM offer ORDER BY name"
[measure.one]
goal = "min"
sql = "SELECT 1"
[rule.r]
absent = "SELECT name, sum(cost) AS load FROM line WHERE name = (SELECT name FROM pick) GROUP BY name HAVING {}"
"""


def load(name: str) -> Fraction | float:
    return float("inf") if "inf" in COSTS[name] else sum(map(Fraction, COSTS[name]), Fraction(0))


LIMIT = Fraction("0.3")
COMPARISONS: dict[str, Callable[[Fraction | float], bool]] = {
    "sum(cost) > 0.3": lambda x: x > LIMIT,
    "sum(cost) >= 0.3": lambda x: x >= LIMIT,
    "sum(cost) < 0.3": lambda x: x < LIMIT,
    "0.3 >= sum(cost)": lambda x: x <= LIMIT,
    "sum(cost) <> 0.3": lambda x: x != LIMIT,
    "sum(cost) = 0.3": lambda x: x == LIMIT,
    "NOT sum(cost) <= 0.3": lambda x: x > LIMIT,
    "sum(cost) > (SELECT most FROM cap)": lambda x: x > LIMIT,
    "sum(cost) NOT BETWEEN 0 AND 0.3": lambda x: x > LIMIT,
    "sum(cost) - 0.3 > 0.00001": lambda x: x - LIMIT > Fraction("0.00001"),
}


@pytest.mark.parametrize("comparison", COMPARISONS)
async def test_a_rule_compares_within_rounding(comparison: str, tmp_path: Path) -> None:
    async with opened(tmp_path, MODEL.format(comparison), TABLES) as model:
        for alone in (False, True):
            broken = model.outcomes(one_by_one=alone).broken[:, 0].tolist()
            assert broken == [COMPARISONS[comparison](load(name)) for name in sorted(COSTS)], alone


@pytest.mark.parametrize(
    ("comparison", "broken"),
    [
        ("(SELECT id FROM pick) > 9007199254740992", [True, False]),
        ("(SELECT day FROM pick) > DATE '2024-03-01'", [False, True]),
        ("(SELECT name FROM pick) >= 'b'", [False, True]),
    ],
)
async def test_whole_numbers_dates_and_texts_are_compared_as_they_are(
    comparison: str, broken: list[bool], tmp_path: Path
) -> None:
    tables = """CREATE TABLE offer AS SELECT * FROM (VALUES ('a', 9007199254740993, DATE '2024-03-01'),
        ('b', 9007199254740992, DATE '2024-03-02')) t(name, id, day)"""
    text = MODEL.partition("absent")[0].replace("SELECT name FROM", "SELECT name, id, day FROM")
    async with opened(tmp_path, f'{text}absent = "SELECT 1 AS one WHERE {comparison}"', tables) as model:
        assert model.outcomes().broken[:, 0].tolist() == broken


@pytest.mark.parametrize(("goal", "order"), [("min", "ghbdefac"), ("max", "acdefbgh")])
async def test_candidates_that_are_equal_in_fractions_stay_in_the_order_of_the_data(
    goal: str, order: str, tmp_path: Path
) -> None:
    """0.1 + 0.2 is more than 0.3 in floating point, at the best rank as at any other."""
    costs = {
        "a": ("0.4", "0.8"),
        "b": ("0.1", "0.1"),
        "c": ("1.2",),
        "d": ("0.1", "0.2"),
        "e": ("0.3",),
        "f": ("0.2", "0.1"),
        "g": ("0.05",),
        "h": ("0.02", "0.03"),
    }
    assert float("0.1") + float("0.2") != float("0.3")
    sums = {name: sum(map(Fraction, texts)) for name, texts in costs.items()}
    assert "".join(sorted(costs, key=lambda name: sums[name] * (1 if goal == "min" else -1))) == order
    rows = ", ".join(f"('{name}', {cost}::DOUBLE)" for name, texts in costs.items() for cost in texts)
    tables = f"""CREATE TABLE line AS SELECT * FROM (VALUES {rows}) t(name, cost);
        CREATE TABLE offer AS SELECT DISTINCT name FROM line ORDER BY name"""
    text = f"""format = 3
decide = "x"
choice.pick.rows = "SELECT name FROM offer ORDER BY name"
[measure.load]
goal = "{goal}"
sql = "SELECT sum(cost) FROM line WHERE name = (SELECT name FROM pick)"
"""
    async with opened(tmp_path, text, tables) as model:
        assert "".join(model.candidates.name(at) for at in model.outcomes().order()) == order
