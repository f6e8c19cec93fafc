"""Several choices: the solver takes them, and one choice of all rows computes every candidate."""

import random
from itertools import product
from pathlib import Path

import pytest

from decision_shops import model_in_process, source_of
from decisor.decision_models.optimize import rank_or_solve
from decisor.errors import ToolError

TWO = """format = 3
decide = "the offer and its carrier"
[choice.offer_taken]
rows = "offer"
[choice.carrier_taken]
rows = "carrier"
[measure.cost]
goal = "min"
sql = "SELECT (SELECT sum(price) FROM offer_taken) + (SELECT sum(fee) FROM carrier_taken)"
"""
ONE = """format = 3
decide = "the offer and its carrier"
[choice.pick]
rows = '''SELECT 'offer' AS kind, name FROM offer UNION ALL SELECT 'carrier', name FROM carrier'''
take = "one per kind"
[measure.cost]
goal = "min"
sql = '''SELECT max(price) * max(fee) FROM offer, carrier
WHERE offer.name IN (SELECT name FROM pick) AND carrier.name IN (SELECT name FROM pick)'''
"""


def create_prices(table: str, column: str, prices: dict[str, float]) -> str:
    rows = ", ".join(f"('{name}', {price}::DOUBLE)" for name, price in prices.items())
    return f"CREATE TABLE {table} AS SELECT * FROM (VALUES {rows}) t(name, {column});"


async def test_every_pair_is_computed_by_one_choice_and_the_sum_is_solved_by_two(tmp_path: Path) -> None:
    chance = random.Random(5)
    for case in range(5):
        offers = {f"o{at}": float(chance.randint(1, 50)) for at in range(4)}
        carriers = {f"c{at}": float(chance.randint(1, 50)) for at in range(3)}
        tables = create_prices("offer", "price", offers) + create_prices("carrier", "fee", carriers)
        pairs = {f"offer {one}, carrier {two}": offers[one] * carriers[two] for one, two in product(offers, carriers)}
        async with source_of(tables, tmp_path / f"{case}.duckdb") as source:
            model = await model_in_process(ONE, source)
            assert {one.name: one.outcome for one in rank_or_solve(model).options} == pairs
            model.close()
            model = await model_in_process(TWO, source)
            best = rank_or_solve(model).options[0].outcome
            model.close()
            assert best == min(offers.values()) + min(carriers.values())
            model = await model_in_process(TWO.replace(") + (", ") * ("), source)
            with pytest.raises(ToolError, match=r"not linear: .* write one choice: .* take = \"one per kind\""):
                rank_or_solve(model)
            model.close()
