"""Candidates and their outcomes: all at once, one by one and worked out in Python are the same."""

from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest

from decision_shops import CLOSE, SITES, opened
from decisor.decision_models.client import OpenModel
from decisor.decision_models.ranking import rank_model
from decisor.errors import ToolError
from decisor.system.tasks import COUNTER
from decisor.system.wording import format_ranking

PRICES = """
format = 3
decide = "a price for each product"
choice.pick.rows = "SELECT product, factor FROM step"
choice.pick.take   = "one per product"
change = '''
UPDATE item SET units = units * (SELECT exp(sum(e.value * ln(c.factor)))
    FROM elasticity e JOIN pick c ON c.product = e.changed WHERE e.product = item.product);
UPDATE item SET price = price * (SELECT factor FROM pick c WHERE c.product = item.product)'''
[measure.profit]
goal = "max"
unit = "EUR"
sql  = "SELECT sum(units * (price - cost)) FROM item"
[measure.units]
goal = "max"
sql  = "SELECT sum(units) FROM item"
[rule.order]
absent = "SELECT a.price AS pro, b.price AS plus FROM item a, item b WHERE a.product = 'pro' AND b.product = 'plus' AND a.price < 1.4 * b.price"
[input]
"elasticity.value" = { spread = "30 % each" }
"item.cost"        = { lowers = "profit", spread = "5 % each" }
"""  # noqa: E501
ITEMS = """CREATE TABLE item AS SELECT * FROM (VALUES ('basic',10.0,6.0,900),('plus',14.0,8.5,600),
    ('pro',22.0,12.0,250))
    t(product, price, cost, units);
CREATE TABLE step AS SELECT product, factor FROM item, (VALUES (.9),(.95),(1.0),(1.05),(1.1)) t(factor);
CREATE TABLE elasticity AS SELECT * FROM (VALUES ('basic','basic',-2.1),('basic','plus',.6),('plus','basic',.5),
    ('plus','plus',-1.9),('pro','plus',.5),('pro','pro',-1.4)) t(product, changed, value);"""
STAFF = """
format = 3
decide = "how many people answer the phone"
choice.pick.rows = "SELECT range AS people FROM range(1, 31)"
[measure.wages]
goal = "min"
sql  = "SELECT (SELECT people FROM pick) * wage FROM shop"
[measure.wait]
goal = "min"
sql  = "SELECT load / (SELECT people FROM pick) FROM shop"
[rule.wait]
rows = "SELECT wait, patience FROM measured, shop"
must = "wait <= patience"
[scenario.busy]
change = "UPDATE shop SET load = load * 2"
[input]
"shop.load" = { spread = "20 % each" }
"""
SHOP = "CREATE TABLE shop AS SELECT 24.0 AS wage, 55 AS load, 5.0 AS patience"
GROWTH = """
format = 3
decide = "the rate"
choice.pick.rows = "SELECT rate FROM rates"
[recompute]
until = "SELECT sum(level) FROM tank"
sql = "UPDATE tank SET level = level * (SELECT rate FROM pick) + 1"
[measure.level]
goal = "max"
sql = "SELECT level FROM tank"
"""
TANK = "CREATE TABLE rates AS SELECT i / 10.0 AS rate FROM range(0, 8) t(i); CREATE TABLE tank AS SELECT 0 AS level"


def same(model: OpenModel, scenario: str = "", seed: int | None = None) -> None:
    places = sorted({0, 1, len(model.candidates) // 2, len(model.candidates) - 1})
    together = model.outcomes(places, scenario=scenario, seed=seed)
    alone = model.outcomes(places, scenario=scenario, seed=seed, one_by_one=True)
    assert together.batched and alone.execution == "one by one"
    np.testing.assert_allclose(together.values, alone.values, rtol=1e-7)
    assert (together.broken == alone.broken).all()
    counts = [{key: why.count for key, why in one.reasons.items()} for one in (together, alone)]
    assert counts[0] == counts[1]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "tables"), [(CLOSE, SITES), (PRICES, ITEMS), (STAFF, SHOP), (GROWTH, TANK)])
async def test_all_at_once_is_what_one_by_one_gives(text: str, tables: str, tmp_path: Path) -> None:
    async with opened(tmp_path, text, tables) as model:
        for scenario in ("", *(one.name for one in model.model.scenarios)):
            same(model, scenario)
            if model.model.inputs:
                same(model, scenario, seed=3)


async def test_outcomes_are_those_worked_out_in_python(tmp_path: Path) -> None:
    async with opened(tmp_path) as model:
        outcomes = model.outcomes()
        names = [model.candidates.name(at) for at in outcomes.candidates]
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        sites = db.execute("SELECT name, rent, capacity FROM site").fetchall()
        units = dict(db.execute("SELECT id, units FROM customer").fetchall())
        lanes = db.execute("SELECT customer, site, cost FROM lane").fetchall()
    for at, pair in enumerate(combinations(sites, 2)):
        shut = {site[0] for site in pair}
        best: dict[int, tuple[float, str]] = {}
        for customer, site, cost in lanes:
            if site not in shut:
                best[customer] = min(best.get(customer, (1e9, "")), (float(cost), site))
        cost = sum(float(site[1]) for site in sites if site[0] not in shut)
        cost += sum(units[customer] * lane[0] for customer, lane in best.items())
        load = {site[0]: sum(units[who] for who, lane in best.items() if lane[1] == site[0]) for site in sites}
        over = [site[0] for site in sites if load[site[0]] > site[2]]
        assert names[at] == " + ".join(site[0] for site in pair)
        assert outcomes.values[at, 0] == pytest.approx(cost, rel=1e-12)
        assert outcomes.broken[at, 0] == bool(over)
        reason = outcomes.reasons.get((at, "capacity"))
        assert sorted(str(row["site"]) for row in (reason.rows if reason else ())) == sorted(over)[:3]


async def test_many_trials_in_one_request_are_the_trials_one_by_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as model:
        picks = [0, 5, 20]
        trials = model.trials(picks, 7, first_seed=4, scenario="dear_fuel")
        for trial in range(7):
            one = model.outcomes(picks, seed=4 + trial, scenario="dear_fuel")
            np.testing.assert_allclose(trials.values[..., trial], one.values, rtol=1e-12)
            assert (trials.broken[..., trial] == one.broken).all()
        assert len(set(trials.values[0, 0].tolist())) == 7


async def test_a_candidate_is_named_by_its_rows_in_any_order(tmp_path: Path) -> None:
    async with opened(tmp_path) as model:
        candidates = model.candidates
        assert candidates.find(["Lyon", "Basel"]) == candidates.find("Basel + Lyon") == candidates.find("lyon + basel")
        with pytest.raises(ToolError, match="'Lion' is no candidate; close to it: Lyon"):
            candidates.find(["Basel", "Lion"])
        with pytest.raises(ToolError, match="takes 2 of"):
            candidates.find("Basel")


async def test_a_ranking_says_all_that_was_compared_ruled_out_and_varied(tmp_path: Path) -> None:
    async with opened(tmp_path) as model:
        ranking = rank_model(model, trials=40)
        part = rank_model(model, [0, 1], trials=0)
    assert (ranking.compared, ranking.candidates) == (21, 21)
    assert ranking.excluded_count + len(ranking.options) == 21 and ranking.excluded_by == {
        "capacity": ranking.excluded_count
    }
    assert ranking.lead == pytest.approx(ranking.options[1].outcome - ranking.options[0].outcome)
    text = format_ranking(ranking)
    for words in (
        "Compared: 21 candidates, all there are",
        "lane.cost 15 % together",
        "of 40 trials",
        "EUR (",
        "would hold",
        "better than the best allowed",
        "ruled out by capacity",
    ):
        assert words.removeprefix("Compared: 21 candidates, ") in text, text
    assert "Compared: 2 of 21 candidates; the other 19 were not computed." in format_ranking(part)


async def test_a_limit_of_seconds_ends_it_with_what_is_known(tmp_path: Path) -> None:
    async with opened(tmp_path) as model:
        none = model.outcomes(seconds=0.0)
        assert none.stopped and not none.known.any()
        ranking = rank_model(model, seconds=0.0)
        assert ranking.compared == 0 and ranking.stopped
        heard: list[tuple[str, int, int]] = []
        COUNTER.set(lambda *news: heard.append(news))  # in the context of this test alone
        assert model.outcomes().known.all()
        assert heard[-1] == ("candidate", 21, 21)


@pytest.mark.slow
async def test_one_after_the_other_where_a_statement_cannot_be_rewritten(tmp_path: Path) -> None:
    text = CLOSE.replace(
        'change = "DELETE FROM site WHERE name IN (SELECT name FROM pick)"',
        'change = "DELETE FROM site WHERE name IN (SELECT name FROM pick); '
        'INSERT INTO site BY NAME SELECT * FROM site WHERE rent < 0"',
    )
    async with opened(tmp_path) as model:
        expected = model.outcomes([3, 4])
    (tmp_path / "shop.duckdb").unlink()
    async with opened(tmp_path, text) as model:
        outcomes = model.outcomes([3, 4])
        assert outcomes.execution.startswith("one by one: INSERT with")
        np.testing.assert_allclose(outcomes.values, expected.values)


async def test_a_statement_that_fails_is_named_by_its_line(tmp_path: Path) -> None:
    async with opened(tmp_path, CLOSE.replace("sum(rent)", "sum(rents)")) as model:
        with pytest.raises(ToolError, match=r"line 11: measure\.cost\.sql: Binder Error.*rents"):
            model.outcomes([0])


async def test_what_depends_on_the_order_of_rows_is_no_ranking(tmp_path: Path) -> None:
    text = 'format = 3\ndecide = "x"\nchoice.pick.rows = "SELECT name FROM site"\n[measure.n]\n'
    text += 'goal = "min"\nsql = "SELECT count(*) FROM site"\n'
    async with opened(tmp_path, text) as model:
        ranking = rank_model(model)
        assert len(ranking.ties) == 7 and ranking.margin is None and ranking.robustness is None
        assert "Nothing was varied" in format_ranking(ranking)
