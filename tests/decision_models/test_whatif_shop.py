"""What if on the shop of the demo, against the same worked out in plain Python."""

import asyncio
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from decisor.decision_models.file import parse_model
from decisor.decision_models.tool import ModelTool
from decisor.demo.demo import write_shop
from decisor.session.decision_models import opened_model


def profit(shop: Path, drop: int, veltra: float = 1.0) -> float:
    """Of the year without supplier ``drop``; what Veltra, number 2, asks is multiplied."""
    with closing(sqlite3.connect(shop)) as db:
        offers = db.execute("SELECT supplier, product, unit_cost FROM offer").fetchall()
        costs = {(who, what): cost * (veltra if who == 2 else 1) for who, what, cost in offers if who != drop}
        price = dict(db.execute("SELECT id, price FROM product"))
        refund = dict(db.execute("SELECT purchase, refund FROM product_return WHERE reason = 'faulty'"))
        purchases = db.execute("SELECT id, supplier, product, quantity FROM purchase").fetchall()
    total = 0.0
    for number, who, what, quantity in purchases:
        if (who, what) in costs:
            total += quantity * (price[what] - costs[who, what]) - refund.get(number, 0)
        else:
            total += quantity * (price[what] - min(cost for (_, other), cost in costs.items() if other == what))
    return total


async def test_a_dearer_supplier_costs_what_plain_python_says(tmp_path: Path) -> None:
    shop = tmp_path / "shop.db"
    await asyncio.to_thread(write_shop, shop)
    text = (files("decisor.demo") / "shop.toml").read_text("utf-8")
    async with opened_model(parse_model(text), f"sqlite:///{shop}") as model:
        tool = ModelTool(model)
        record = (await tool.call("offer.unit_cost × 1.2 where supplier = 2")).records[0].fields
        note = (await tool.call("why Norrik")).note
    assert (record["best now"], record["best then"]) == ("Tamsin & Co", "Tamsin & Co")
    assert record["profit now"] == pytest.approx(profit(shop, 4))
    assert record["effect"] == pytest.approx(profit(shop, 4, 1.2) - profit(shop, 4))
    assert "nobody else has the wool rug" in note
