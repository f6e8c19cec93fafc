"""The solver proposes, and the SQL measures: as good as the best of all subsets, worked out in Python."""

import asyncio
from itertools import combinations
from pathlib import Path

import duckdb
import pytest

from decision_shops import SITES, opened
from decisor.decision_models.optimize import rank_or_solve, rank_solved, solve_model
from decisor.errors import ToolError
from decisor.system.wording import format_ranking

pytest.importorskip("highspy")
CLOSE_MANY = """
format = 3
decide = "the warehouses to close, and who then serves each customer"
[unknown.keep]
per = "SELECT name AS site, rent, capacity FROM site"
kind = "binary"
[unknown.serve]
per = "SELECT customer, site, units, units * cost AS cost FROM lane JOIN customer ON id = customer"
kind = "binary"
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT (SELECT sum(rent * amount) FROM keep) + (SELECT sum(cost * amount) FROM serve)"
[rule.served]
text = "Every customer is served by one warehouse."
rows = 'SELECT id, (SELECT sum(amount) FROM serve WHERE customer = id) AS served FROM customer'
must = "served = 1"
[rule.open]
text = "A closed warehouse serves nobody."
rows = '''SELECT customer, site,
    (SELECT sum(amount) FROM serve s WHERE s.customer = lane.customer AND s.site = lane.site) AS served,
    (SELECT sum(amount) FROM keep k WHERE k.site = lane.site) AS kept FROM lane'''
must = "served <= kept"
[rule.close]
text = "Two are closed."
rows = "SELECT (SELECT sum(amount) FROM keep) AS kept, (SELECT count(*) - 2 FROM site) AS wanted"
must = "kept = wanted"
"""


def best_pairs(path: Path) -> list[tuple[float, str]]:
    with duckdb.connect(str(path)) as db:
        rents = {name: float(rent) for name, rent in db.execute("SELECT name, rent FROM site").fetchall()}
        lanes = db.execute(
            "SELECT customer, site, cost * units FROM lane JOIN customer ON id = customer ORDER BY 1"
        ).fetchall()
    by_customer: dict[int, list[tuple[float, str]]] = {}
    for customer, site, cost in lanes:
        by_customer.setdefault(customer, []).append((float(cost), site))
    costs = []
    for shut in combinations(rents, 2):
        rent = sum(rent for name, rent in rents.items() if name not in shut)
        costs.append(
            (
                rent + sum(min(c for c, s in sites if s not in shut) for sites in by_customer.values()),
                " + ".join(name for name in rents if name not in shut),
            )
        )
    return sorted(costs)


async def test_the_solver_finds_the_best_and_the_second_best_of_all_subsets(tmp_path: Path) -> None:
    async with opened(tmp_path, CLOSE_MANY) as model:
        ranking = await asyncio.to_thread(rank_or_solve, model)
    first, second = best_pairs(tmp_path / "shop.duckdb")[:2]
    assert ranking.options[0].name == first[1] and ranking.options[0].outcome == pytest.approx(first[0])
    assert ranking.options[1].name == second[1] and ranking.lead == pytest.approx(second[0] - first[0])
    assert "optimal, no other is better; measured by the SQL" in format_ranking(ranking)


@pytest.mark.slow
async def test_a_choice_that_is_forced_comes_out(tmp_path: Path) -> None:
    async with opened(tmp_path, CLOSE_MANY) as model:
        forced = await asyncio.to_thread(lambda: solve_model(model, required=[("Basel", False)]))
    assert "Basel" not in forced.name() and forced.status == "optimal"


async def test_rules_that_nothing_meets_are_said(tmp_path: Path) -> None:
    wrong = CLOSE_MANY.replace("count(*) - 2", "count(*) + 2")
    with pytest.raises(ToolError, match=r"Nothing meets all requirements \(also without presolve\)"):
        async with opened(tmp_path, wrong) as model:
            await asyncio.to_thread(rank_solved, model)


async def test_too_many_candidates_without_a_linear_form_are_refused_with_their_count(tmp_path: Path) -> None:
    text = """format = 3
decide = "x"
choice.pick.rows = "SELECT id FROM customer"
choice.pick.take = 5
[measure.n]
goal = "min"
sql = "SELECT count(DISTINCT id) FROM pick"
"""
    async with opened(tmp_path, text, SITES) as model:
        with pytest.raises(
            ToolError, match=r"2,535,650,040 candidates, more than 200,000 to compute, and .*not linear"
        ):
            await asyncio.to_thread(rank_or_solve, model)


async def test_trials_tell_choices_apart_that_differ_after_the_last_row_that_is_named(tmp_path: Path) -> None:
    text = """format = 3
decide = "x"
[unknown.buy]
per = "SELECT name, value FROM item ORDER BY name"
kind = "binary"
[rule.number]
rows = "SELECT sum(amount) AS number FROM buy"
must = "number = 22"
[measure.value]
goal = "max"
sql = "SELECT sum(value * amount) FROM buy"
[input]
"item.value" = { spread = "20 % each" }
"""
    tables = "CREATE TABLE item AS SELECT 'i' || (10 + i) AS name, CASE WHEN i < 21 THEN 100.0 ELSE 50 END AS value"
    async with opened(tmp_path, text, f"{tables} FROM range(23) t(i)") as model:
        ranking = await asyncio.to_thread(lambda: rank_solved(model, trials=16))
    assert ranking.robustness is not None and 0 < ranking.robustness < 1 and len(ranking.winners) == 2
    assert len(ranking.ties) == 2 and ranking.options[0].name == "a plan with 22 of 23 rows of buy"


@pytest.mark.parametrize("bound", ["bought >= most", "-bought <= -most"])
async def test_no_amount_is_enough_for_an_infinite_requirement(bound: str, tmp_path: Path) -> None:
    text = f"""format = 3
decide = "x"
[unknown.take]
per = "SELECT name, weight FROM item"
kind = "integer"
[rule.enough]
rows = "SELECT sum(weight * amount) AS bought, (SELECT most FROM cap) AS most FROM take"
must = "{bound}"
[measure.weight]
goal = "min"
sql = "SELECT coalesce(sum(weight * amount), 0) FROM take"
"""
    tables = """CREATE TABLE item AS SELECT 'a' AS name, 2.0::DOUBLE AS weight;
        CREATE TABLE cap AS SELECT 'inf'::DOUBLE AS most"""
    async with opened(tmp_path, text, tables) as model:
        assert solve_model(model).status == "infeasible"
