"""What a gain consists of, held against plain sums over the rows: against today, and against the runner-up."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import pytest

from decision_models.test_third_form import example_of_docs
from decision_shops import opened
from decisor.decision_models.ranking import rank_model
from decisor.demo.demo import compute_decision, write_shop
from decisor.types import MeasurePart, Option, Ranking
from decisor.views.chart_drawing import chart_html, chart_lines
from decisor.views.rankings import gain_chart

SIGNED = re.compile(r"([+−])([\d,]+(?:\.\d+)?)\s*$")


def steps_of(ranking: Ranking) -> dict[str, Decimal]:
    """The bars as the terminal writes them."""
    chart = gain_chart(ranking)
    assert chart is not None
    steps = {}
    for line in chart_lines(chart):
        if match := SIGNED.search(line):
            steps[line.split()[0]] = Decimal(match[2].replace(",", "")) * (1 if match[1] == "+" else -1)
    return steps


def shop_parts(shop: Path, dropped: str) -> dict[str, Decimal]:
    """Sales, goods and refunds of the year if a supplier is dropped ('' for none), row by row."""
    with closing(sqlite3.connect(shop)) as database:
        suppliers = dict(database.execute("SELECT name, id FROM supplier"))
        prices = dict(database.execute("SELECT id, price FROM product"))
        offers = {
            (supplier, product): cost
            for supplier, product, cost in database.execute("SELECT supplier, product, unit_cost FROM offer")
            if supplier != suppliers.get(dropped)
        }
        refunds = dict(database.execute("SELECT purchase, refund FROM product_return WHERE reason = 'faulty'"))
        parts = dict.fromkeys(("sales", "goods", "refunds"), Decimal(0))
        rows = database.execute("SELECT id, supplier, product, quantity FROM purchase").fetchall()
    for id, supplier, product, quantity in rows:
        costs = [cost for (_, other), cost in offers.items() if other == product]
        if not costs:
            continue
        is_kept = (supplier, product) in offers
        parts["sales"] += quantity * Decimal(str(prices[product]))
        parts["goods"] -= quantity * Decimal(str(offers[supplier, product] if is_kept else min(costs)))
        parts["refunds"] -= Decimal(str(refunds.get(id, 0))) if is_kept else 0
    return parts


def test_a_gain_against_today_adds_up_to_the_cent(tmp_path: Path) -> None:
    write_shop(shop := tmp_path / "shop.db")
    ranking = compute_decision(shop).ranking
    assert ranking is not None
    best, today = shop_parts(shop, ranking.options[0].name), shop_parts(shop, "")
    assert ranking.today == pytest.approx(float(sum(today.values())), abs=1e-6)
    assert [part.name for part in ranking.parts] == list(best)
    assert [part.value for part in ranking.parts] == pytest.approx(list(map(float, best.values())))
    assert [part.against for part in ranking.parts] == pytest.approx(list(map(float, today.values())))
    steps = steps_of(ranking)
    total = steps.pop("profit")
    assert steps == {name: best[name] - today[name] for name in best if best[name] != today[name]}
    assert total == sum(steps.values()) == sum(best.values()) - sum(today.values())
    html = str(chart_html(gain_chart(ranking)))  # type: ignore[arg-type]
    assert all(f"{step:+,.2f}" in html for step in (total, *steps.values()))


async def test_without_a_today_the_runner_up_is_what_it_is_held_against(tmp_path: Path) -> None:
    rents = {"Basel": 41000, "Genua": 38000, "Lyon": 52000, "Mainz": 33000, "Linz": 29000, "Ulm": 31000, "Metz": 27000}
    units = [20 + (at * 37) % 90 for at in range(200)]

    def freight(at: int, name: str) -> float:
        return 2 + (at * 131 + ord(name[0]) * 17 + ord(name[1]) * 59) % 900 / 100

    def parts(closed: tuple[str, ...]) -> dict[str, float]:
        kept = [name for name in rents if name not in closed]
        served = sum(unit * min(freight(at, name) for name in kept) for at, unit in enumerate(units))
        return {"rent": float(sum(rents[name] for name in kept)), "freight": served}

    every = sorted((sum(parts(pair).values()), pair) for pair in combinations(rents, 2))
    text = re.sub(r"\[rule\.capacity\].*?(?=\n\[)", "", example_of_docs(), flags=re.S)
    async with opened(tmp_path, text) as model:
        ranking = await asyncio.to_thread(lambda: rank_model(model, trials=0))
    assert [one.outcome for one in ranking.options[:2]] == pytest.approx([value for value, _ in every[:2]])
    best, following = parts(every[0][1]), parts(every[1][1])
    steps = steps_of(ranking)
    total = steps.pop("cost")
    assert {name: float(step) for name, step in steps.items()} == pytest.approx(
        {name: best[name] - following[name] for name in best}, abs=0.005
    )
    assert total == sum(steps.values()) and float(total) == pytest.approx(every[0][0] - every[1][0], abs=0.005)


def test_parts_that_round_badly_are_written_with_as_many_digits_as_their_sum_needs() -> None:
    parts = tuple(MeasurePart(name, value, 0.0) for name, value in (("a", 0.005), ("b", 0.005), ("c", 0.005)))
    ranking = Ranking("cost", "max", (Option("x", 0.015), Option("y", 0.0)), ("x",), parts=parts)
    steps = steps_of(ranking)
    assert sum(steps[name] for name in "abc") == steps["cost"] == Decimal("0.015")


def test_a_single_part_or_an_unknown_one_has_no_chart() -> None:
    options = (Option("x", 3.0), Option("y", 1.0))
    for parts in (
        (),
        (MeasurePart("a", 3.0, 1.0), MeasurePart("b", 0.0, 0.0)),
        (MeasurePart("a", 3.0), MeasurePart("b", 1.0)),
    ):
        assert gain_chart(Ranking("cost", "max", options, ("x",), parts=parts)) is None
