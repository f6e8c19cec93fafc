"""Models as a user writes them, with outcomes that were worked out by hand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from decision_shops import model_in_process, opened, source_of
from decisor.decision_models.analyses import compare_scenarios, compute_regrets, compute_worst_cases
from decisor.decision_models.ranking import rank_model
from decisor.decision_models.tool import ModelTool
from decisor.decision_models.turning_points import find_turning_points


@dataclass(frozen=True)
class ByHand:
    """``ranked``: allowed candidates, best first, with their outcome. ``out``: the others, with words of the reason."""

    name: str
    tables: str
    toml: str
    ranked: dict[str, float]
    out: dict[str, str] = field(default_factory=dict)
    ties: int = 1


EVERY = [
    ByHand(
        "a supplier without a price is out, and one without freight too",
        "CREATE TABLE offer AS SELECT * FROM (VALUES ('north', 10.0, 50), ('east', NULL, 0), ('south', 8.0, 300), "
        "('west', 7.0, NULL)) t(supplier, price, freight)",
        """format = 3
decide = "the supplier"
choice.pick.rows = "SELECT supplier, price, freight FROM offer"
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT 100 * (SELECT price FROM pick) + (SELECT freight FROM pick)" """,
        {"north": 1050, "south": 1100},
        {"east": "price", "west": "freight"},
    ),
    ByHand(
        "the same sum in three ways is a tie, in the order of the data",
        "CREATE TABLE offer AS SELECT * FROM (VALUES ('c', 0.3::DOUBLE, 0.0::DOUBLE), ('a', 0.1, 0.2), "
        "('b', 0.2, 0.1), ('d', 0.31, 0.0)) t(who, price, fee)",
        """format = 3
decide = "the offer"
choice.pick.rows = "SELECT who, price, fee FROM offer"
[measure.cost]
goal = "min"
sql = "SELECT (SELECT price FROM pick) + (SELECT fee FROM pick)" """,
        {"c": 0.3, "a": 0.3, "b": 0.3, "d": 0.31},
        ties=3,
    ),
    ByHand(
        "29 February counts, and the due day is in time",
        "CREATE TABLE carrier AS SELECT * FROM (VALUES ('road', 3, 90), ('rail', 4, 40), ('air', 1, 300)) "
        "t(name, days, cost); CREATE TABLE job AS SELECT DATE '2024-02-27' AS leaves, DATE '2024-03-01' AS due",
        """format = 3
decide = "the carrier"
choice.pick.rows = "SELECT name, days, cost FROM carrier"
[measure.cost]
goal = "min"
sql = "SELECT (SELECT cost FROM pick)"
[rule.due]
text = "It is there on the due day."
absent = "SELECT leaves + days::INTEGER AS arrives, due FROM job, pick WHERE leaves + days::INTEGER > due"
because = "arrives on {arrives}, due {due}" """,
        {"road": 90, "air": 300},
        {"rail": "2024-03-02"},
    ),
    ByHand(
        "months by the calendar, not by 30 days",
        "CREATE TABLE lease AS SELECT * FROM (VALUES ('flat', 1000.0, DATE '2023-01-31', DATE '2023-03-31'), "
        "('loft', 600.0, DATE '2022-12-15', DATE '2023-03-15'), ('hall', 2500.0, NULL, DATE '2023-03-31')) "
        "t(name, rent, since, until)",
        """format = 3
decide = "the lease to keep"
choice.pick.rows = "SELECT name FROM lease"
[measure.paid]
goal = "min"
sql = "SELECT rent * date_diff('month', since, until) FROM lease JOIN pick USING (name)" """,
        {"loft": 1800, "flat": 2000},
        {"hall": "since"},
    ),
    ByHand(
        "a limit of exactly the sum of decimals is kept",
        "CREATE TABLE part AS SELECT * FROM (VALUES ('p', 'x', 0.1::DOUBLE), ('p', 'y', 0.2), ('q', 'x', 0.15), "
        "('q', 'y', 0.15), ('r', 'x', 0.3), ('r', 'y', 0.0001)) t(kit, item, weight)",
        """format = 3
decide = "the kit"
choice.pick.rows = "SELECT DISTINCT kit FROM part ORDER BY kit"
[measure.weight]
goal = "max"
unit = "kg"
sql = "SELECT sum(weight) FROM part JOIN pick USING (kit)"
[rule.limit]
text = "At most 0.3 kg."
rows = "measured"
must = "weight <= 0.3"
because = "{weight} kg is over 0.3" """,
        {"p": 0.3, "q": 0.3},
        {"r": "0.3"},
        ties=2,
    ),
    ByHand(
        "prices by pound, by kilogram and by ten kilograms",
        "CREATE TABLE bid AS SELECT * FROM (VALUES ('kilo', 2.4, 'kg'), ('pound', 1.0, 'lb'), "
        "('sack', 24.0, 'bag'), ('ton', 1.0, 't')) t(who, price, unit); CREATE TABLE weight AS SELECT * FROM "
        "(VALUES ('kg', 1.0), ('lb', 0.45359237), ('bag', 10.0)) t(unit, kg); CREATE TABLE need AS SELECT 500 AS kg",
        """format = 3
decide = "the bid"
choice.pick.rows = "SELECT who, price, unit FROM bid"
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT n.kg / w.kg * price FROM need AS n, weight AS w JOIN pick USING (unit)" """,
        {"pound": 1102.3113109243880, "kilo": 1200, "sack": 1200},
        {"ton": ""},
    ),
    ByHand(
        "two of four, without the pair that quarrels and within the budget",
        "CREATE TABLE site AS SELECT * FROM (VALUES ('A', 5, 9), ('B', 4, 8), ('C', 3, 7), ('D', 6, 12)) "
        "t(name, cost, value); CREATE TABLE quarrel AS SELECT 'B' AS one, 'C' AS other; "
        "CREATE TABLE firm AS SELECT 9 AS budget",
        """format = 3
decide = "two sites"
choice.pick.rows = "SELECT name FROM site"
choice.pick.take = 2
[measure.value]
goal = "max"
sql = "SELECT sum(value) FROM site JOIN pick USING (name)"
[measure.cost]
goal = "min"
sql = "SELECT sum(cost) FROM site JOIN pick USING (name)"
[rule.budget]
text = "Within the budget."
rows = "SELECT cost, budget FROM measured, firm"
must = "cost <= budget"
because = "{cost} is over {budget}"
[rule.quarrel]
text = "Not both."
absent = "SELECT one, other FROM quarrel WHERE one IN (SELECT name FROM pick) AND other IN (SELECT name FROM pick)"
because = "{one} and {other}" """,
        {"C + D": 19, "A + B": 17, "A + C": 16},
        {"A + D": "11", "B + D": "10", "B + C": "B and C"},
    ),
    ByHand(
        "nothing is chosen where everything loses money",
        "CREATE TABLE ad AS SELECT * FROM (VALUES ('tv', -10), ('web', -1)) t(name, profit)",
        """format = 3
decide = "which ads to run"
choice.pick.rows = "SELECT name FROM ad"
choice.pick.take = "0-2"
[measure.profit]
goal = "max"
sql = "SELECT coalesce(sum(profit), 0) FROM ad JOIN pick USING (name)" """,
        {"nothing": 0, "web": -1, "tv": -10, "tv + web": -11},
    ),
    ByHand(
        "one size for each day",
        "CREATE TABLE shift AS SELECT * FROM (VALUES ('Mo', 1, 10), ('Mo', 2, 19), ('Tu', 1, 12), ('Tu', 2, 20)) "
        "t(day, people, wage); CREATE TABLE need AS SELECT 3 AS people",
        """format = 3
decide = "people for each day"
choice.pick.rows = "SELECT day, people FROM shift"
choice.pick.take = "one per day"
[measure.wages]
goal = "min"
sql = "SELECT sum(wage) FROM shift JOIN pick USING (day, people)"
[rule.enough]
text = "Enough people."
absent = "SELECT n.people AS needed FROM need AS n WHERE (SELECT sum(people) FROM pick) < n.people"
because = "{needed} are needed" """,
        {"Mo 1, Tu 2": 30, "Mo 2, Tu 1": 31, "Mo 2, Tu 2": 39},
        {"Mo 1, Tu 1": "3 are needed"},
    ),
    ByHand(
        "interest is paid three times",
        "CREATE TABLE account AS SELECT * FROM (VALUES ('plain', 0.05::DOUBLE, 0.0::DOUBLE), ('bonus', 0.04, 40.0)) "
        "t(name, rate, gift); CREATE TABLE money AS SELECT 1000.0::DOUBLE AS eur",
        """format = 3
decide = "the account"
choice.pick.rows = "SELECT name, rate, gift FROM account"
change = "UPDATE money SET eur = eur + (SELECT gift FROM pick)"
[recompute]
sql = "UPDATE money SET eur = eur * (1 + (SELECT rate FROM pick))"
times = 3
[measure.eur]
goal = "max"
sql = "SELECT eur FROM money" """,
        {"bonus": 1169.85856, "plain": 1157.625},
    ),
    ByHand(
        "the smallest loss, and a branch without a figure",
        "CREATE TABLE branch AS SELECT * FROM (VALUES ('a', -5.5), ('b', -3.25), ('c', NULL)) t(name, result)",
        """format = 3
decide = "the branch to keep"
choice.pick.rows = "SELECT name FROM branch"
[measure.result]
goal = "max"
sql = "SELECT result FROM branch JOIN pick USING (name)" """,
        {"b": -3.25, "a": -5.5},
        {"c": "result"},
    ),
    ByHand(
        "an average of no rows is no outcome, a count of none is 0",
        "CREATE TABLE agent AS SELECT * FROM (VALUES ('x'), ('y'), ('z')) t(name); "
        "CREATE TABLE vote AS SELECT * FROM (VALUES ('x', 4), ('x', 5), ('z', 3)) t(agent, stars)",
        """format = 3
decide = "the agent"
choice.pick.rows = "SELECT name FROM agent"
[measure.stars]
goal = "max"
sql = "SELECT avg(stars) FROM vote JOIN pick ON agent = name"
[measure.votes]
goal = "max"
sql = "SELECT count(*) FROM vote JOIN pick ON agent = name" """,
        {"x": 4.5, "z": 3},
        {"y": ""},
    ),
    ByHand(
        "ids beside 2^53 are told apart",
        "CREATE TABLE account AS SELECT * FROM (VALUES (9007199254740992, 'old'), (9007199254740993, 'new')) "
        "t(id, name); CREATE TABLE fee AS SELECT * FROM (VALUES (9007199254740993, 5), (9007199254740993, 6), "
        "(9007199254740992, 20)) t(account, eur)",
        """format = 3
decide = "the account"
choice.pick.rows = "SELECT name, id FROM account"
[measure.fees]
goal = "min"
sql = "SELECT sum(eur) FROM fee JOIN pick ON account = id" """,
        {"new": 11, "old": 20},
    ),
    ByHand(
        "ids beside 2^53 stay apart in a table that was empty",
        "CREATE TABLE account AS SELECT * FROM (VALUES (9007199254740992, 'old'), (9007199254740993, 'new'), "
        "(9007199254740996, 'far')) t(id, name); CREATE TABLE booking (account BIGINT, eur DOUBLE)",
        """format = 3
decide = "two accounts"
choice.pick.rows = "SELECT name, id FROM account"
choice.pick.take = 2
change = "INSERT INTO booking SELECT id, 5 FROM pick"
[measure.fees]
goal = "min"
sql = "SELECT sum(eur) FROM booking JOIN pick ON account = id" """,
        {"old + new": 10, "old + far": 10, "new + far": 10},
        ties=3,
    ),
    ByHand(
        "hours over midnight and the change of year",
        "CREATE TABLE flight AS SELECT * FROM (VALUES ('night', TIMESTAMP '2023-12-31 22:30', "
        "TIMESTAMP '2024-01-01 01:00', 80), ('day', TIMESTAMP '2024-01-01 08:00', "
        "TIMESTAMP '2024-01-01 10:00', 120)) t(name, departs, lands, fare)",
        """format = 3
decide = "the flight"
choice.pick.rows = "SELECT name FROM flight"
[parameter]
hour = 20.0
[measure.cost]
goal = "min"
sql = '''SELECT fare + $hour * date_diff('minute', departs, lands) / 60
FROM flight JOIN pick USING (name)''' """,
        {"night": 130, "day": 160},
    ),
    ByHand(
        "names with commas, quotes and umlauts; zero is a price, and a division by zero is out",
        "CREATE TABLE vendor AS SELECT * FROM (VALUES ('Müller, Söhne', 0.0, 4.0), ('O''Neil \"Bob\"', 6.0, 2.0), "
        "('', 1.0, 0.0)) t(name, price, packs)",
        """format = 3
decide = "the vendor"
choice.pick.rows = "SELECT name, price, packs FROM vendor"
[measure.price]
goal = "min"
sql = "SELECT (SELECT price FROM pick) / (SELECT packs FROM pick)" """,
        {"Müller, Söhne": 0, 'O\'Neil "Bob"': 3},
        {"''": "infinite"},
    ),
]


@pytest.mark.parametrize("case", EVERY, ids=lambda one: one.name)
async def test_a_model_by_hand(case: ByHand, tmp_path: Path) -> None:
    async with source_of(case.tables, tmp_path / "shop.duckdb") as source:
        model = await model_in_process(case.toml, source)
        try:
            ranking = rank_model(model)
        finally:
            model.close()
    assert {one.name: one.outcome for one in ranking.options} == pytest.approx(case.ranked)
    assert [one.name for one in ranking.options] == list(case.ranked)
    assert {one.name for one in ranking.excluded} == set(case.out)
    assert all(case.out[one.name] in one.why for one in ranking.excluded), ranking.excluded
    assert ranking.ties == tuple(case.ranked)[: case.ties]


HALLS = """CREATE TABLE hall AS SELECT * FROM
    (VALUES ('tent', 100.0, 10.0), ('castle', 400.0, 4.0), ('barn', 250.0, 9.0)) t(name, rent, each);
CREATE TABLE party AS SELECT 40 AS guests"""
PARTY = """format = 3
decide = "the hall"
choice.pick.rows = "SELECT name FROM hall"
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT rent + each * guests FROM party, hall JOIN pick USING (name)"
[scenario.full]
change = "UPDATE party SET guests = 90"
[scenario.half]
change = "UPDATE party SET guests = 20"
[input]
"party.guests" = { spread = "20 % each" }
"""


async def test_scenarios_regret_and_turning_point_by_hand(tmp_path: Path) -> None:
    # guests       40    90    20
    # tent        500  1000   300   worst 1000, regret 1000 - 760 = 240
    # castle      560   760   480   worst  760, regret  480 - 300 = 180
    # barn        610  1060   430   worst 1060, regret 1060 - 760 = 300
    # 100 + 10 n = 400 + 4 n at n = 50, which is 1.25 times 40.
    async with opened(tmp_path, PARTY, HALLS) as model:
        outcomes = await asyncio.to_thread(model.outcomes)
        values = (await asyncio.to_thread(compare_scenarios, model, outcomes)).values
        assert values.tolist() == [[500, 1000, 300], [560, 760, 480], [610, 1060, 430]]
        assert compute_worst_cases(values, "min").tolist() == [1000, 760, 1060]
        assert compute_regrets(values, "min").tolist() == [240, 180, 300]
        turns = await asyncio.to_thread(lambda: list(find_turning_points(model, range(3), 0)))
        more = next(one for one in turns if one.factor is not None)
        assert (more.input, more.winner) == ("party.guests", "castle") and more.factor == pytest.approx(1.25, abs=6e-4)
        ranking = await asyncio.to_thread(rank_model, model)
        assert (ranking.robustness, ranking.options[0].name) == (1.0, "tent")  # at most 48 guests
        tool = ModelTool(model)
        assert (await tool.call("set party.guests = 60")).records[0].fields["best then"] == "castle"
        assert (await tool.call("party.guests + 25 %")).records[0].fields["cost then"] == 600
        assert (await tool.call("hall.rent * 0.5 where name = 'castle'")).records[0].fields["cost then"] == 360


async def test_a_missing_limit_is_met_by_nobody(tmp_path: Path) -> None:
    limit = "SELECT max(guests) FROM party WHERE guests > 99"
    text = f'{PARTY}[rule.most]\ntext = "x"\nrows = "SELECT cost, ({limit}) AS most FROM measured"\n'
    text += 'must = "cost <= most"\n'
    async with opened(tmp_path, text, HALLS) as model:
        assert (await asyncio.to_thread(model.outcomes)).broken.all()
