"""Plans of the solver: as good as programs written by hand for the same tables, measured by the file's own SQL."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from decision_worlds import World, blend, depots, machine_on, milling, model_text, portfolio, rota, teams
from decisor.decision_models.candidates import Candidates
from decisor.errors import ToolError
from decisor.sandbox.engine import Caps

highspy = pytest.importorskip("highspy")
REQUEST = {"seconds": 60, "scenario": "", "changes": "", "forced": [], "excluded": []}


def solved(text: str, world: World) -> dict[str, Any]:
    """Solve a model; return its status, the parts of its first measure, and the other rows of the reply by kind."""
    with machine_on(text, world) as (model, machine):
        rows = machine.run("solve", REQUEST, Caps()).rows
    found: dict[str, Any] = {"status": rows[0][1], "figures": {}, "parts": {}, "plan": {}, "rule": {}, "conflict": {}}
    for kind, name, value, more in rows[1:]:
        if kind == "figure":
            found["figures"][name] = value
        elif kind == "part" and name == model.first.name:
            found["parts"][more] = value
        elif kind in ("plan", "rule", "reduced", "conflict", "fault"):
            found.setdefault(kind, {})[name] = (value, more)
    return found


def program() -> Any:
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("mip_rel_gap", 0.0)
    return solver


def milling_by_hand(world: World) -> float:
    h, products = program(), {name: rest for name, *rest in world["product"][1]}
    demand = {(product, week): tons for product, week, tons in world["demand"][1]}
    weeks = {week: rest for week, *rest in world["week"][1]}
    room, overtime = world["silo"][1][0]
    make = {key: h.addVariable(lb=0) for key in demand}
    lost = {key: h.addVariable(lb=0, ub=tons) for key, tons in demand.items()}
    stock = {key: h.addVariable(lb=0) for key in demand}
    extra = {week: h.addVariable(lb=0, ub=hours[1]) for week, hours in weeks.items()}
    for (product, week), tons in demand.items():
        before = stock[product, week - 1] if week > 1 else products[product][4]
        h.addConstr(stock[product, week] == before + make[product, week] - tons + lost[product, week])
    for week, (hours, _) in weeks.items():
        h.addConstr(sum(products[one][3] * make[one, week] for one in products) <= hours + extra[week])
        h.addConstr(sum(stock[one, week] for one in products) <= room)
    cost = sum(
        products[p][0] * make[p, w] + products[p][1] * stock[p, w] + products[p][2] * lost[p, w] for p, w in demand
    )
    h.minimize(cost + sum(overtime * one for one in extra.values()))
    return float(h.getObjectiveValue())


def depots_by_hand(world: World) -> float:
    h, places = program(), {name: rest for name, *rest in world["depot"][1]}
    shops: dict[str, float] = dict(world["shop"][1])
    lanes = {(a, b): eur for a, b, eur in world["lane"][1]}
    is_open = {name: h.addBinary() for name in places}
    ship = {key: h.addVariable(lb=0, ub=shops[key[1]]) for key in lanes}
    for shop, pallets in shops.items():
        h.addConstr(sum(ship[key] for key in lanes if key[1] == shop) == pallets)
    for name, (_, capacity) in places.items():
        h.addConstr(sum(ship[key] for key in lanes if key[0] == name) <= capacity * is_open[name])
    h.addConstr(sum(is_open.values()) <= 5)
    h.minimize(sum(places[one][0] * is_open[one] for one in places) + sum(lanes[key] * ship[key] for key in lanes))
    return float(h.getObjectiveValue())


def rota_by_hand(world: World) -> float:
    h = program()
    patterns = {name: (contract, eur) for name, _, contract, _, _, eur in world["pattern"][1]}
    follow = {name: h.addIntegral(lb=0) for name in patterns}
    cost = sum(patterns[name][1] * one for name, one in follow.items())
    for day, _, shift, people in world["need"][1]:
        short = h.addVariable(lb=0)
        cost = cost + 180 * short
        there = [follow[name] for name, on, at in world["works"][1] if (on, at) == (day, shift)]
        h.addConstr(sum(there) + short >= people)
    for contract, people in world["staff"][1]:
        h.addConstr(sum(one for name, one in follow.items() if patterns[name][0] == contract) <= people)
    h.minimize(cost)
    return float(h.getObjectiveValue())


def teams_by_hand(world: World) -> float:
    h, people = program(), {name: (skill, team) for name, skill, team in world["person"][1]}
    seats: dict[str, int] = dict(world["project"][1])
    points = {(a, b): value for a, b, value in world["fit"][1]}
    on = {key: h.addBinary() for key in points}
    goal = sum(points[key] * one for key, one in on.items())
    for person in people:
        h.addConstr(sum(on[person, project] for project in seats) <= 1)
    for project, count in seats.items():
        h.addConstr(sum(on[person, project] for person in people) == count)
        for team in "ABC":
            over = h.addVariable(lb=0)
            h.addConstr(sum(on[one, project] for one in people if people[one][1] == team) - over <= 2)
            goal = goal - 3 * over
    for project, skill, count in world["need"][1]:
        h.addConstr(sum(on[one, project] for one in people if people[one][0] == skill) >= count)
    for person, project in world["wish"][1]:
        missed = h.addVariable(lb=0)
        h.addConstr(on[person, project] + missed >= 1)
        goal = goal - 4 * missed
    h.maximize(goal)
    return float(h.getObjectiveValue())


def blend_by_hand(world: World) -> float:
    h, feeds = program(), {name: (eur, stock) for name, eur, stock in world["feed"][1]}
    per_kg = {(feed, nutrient): value for feed, nutrient, value in world["content"][1]}
    use = {name: h.addVariable(lb=0, ub=stock) for name, (_, stock) in feeds.items()}
    h.addConstr(sum(use.values()) == 1000)
    for nutrient, low, high in world["norm"][1]:
        has = [per_kg[feed, nutrient] * one for feed, one in use.items()]
        h.addConstr(sum(has) >= low * 1000)
        h.addConstr(sum(has) <= high * 1000)
    h.minimize(sum(feeds[name][0] / 1000 * one for name, one in use.items()))
    return float(h.getObjectiveValue())


@pytest.mark.parametrize(
    ("name", "world", "by_hand"),
    [
        ("milling", milling(), milling_by_hand),
        ("depots", depots(), depots_by_hand),
        ("rota", rota(), rota_by_hand),
        ("teams", teams(), teams_by_hand),
        ("blend", blend(), blend_by_hand),
    ],
)
def test_the_best_plan_is_that_of_a_program_written_by_hand(name: str, world: World, by_hand: Any) -> None:
    found = solved(model_text(name), world)
    assert found["status"] == "optimal"
    total = sum(found["parts"].values())
    assert total == pytest.approx(by_hand(world), rel=1e-9)
    assert total == pytest.approx(found["figures"]["objective"], rel=1e-9)


def test_a_price_is_what_one_more_changes() -> None:
    found = solved(model_text("milling"), milling())
    ((_, prices), before) = found["rule"]["mill"], found["figures"]["objective"]
    dearest = prices[0]
    world = dict(milling())
    head, weeks = world["week"]
    step = 0.01
    more = [(week, hours + step * (week == dearest["of week"]), extra) for week, hours, extra in weeks]
    after = solved(model_text("milling"), world | {"week": (head, more)})["figures"]["objective"]
    assert (after - before) / step == pytest.approx(dearest["price"], rel=1e-4)


def test_one_file_computed_and_solved_has_the_same_best() -> None:
    text = model_text("portfolio")
    for section in ("[rule.risk]", "[rule.mixed]", "[measure.risk]", "[table.weight]"):
        begin = text.index(section)
        text = text[:begin] + text[text.index("\n[", begin + 1) + 1 :]
    text = text.replace('"covariance.value" = { unit = "", raises = "risk" }', "")
    world = portfolio()
    budget, projects = world["limits"][1][0][0], {name: rest for name, *rest in world["project"][1]}
    best = max(
        sum(projects[one][1] for one in some)
        for count in (4, 5)
        for some in combinations(projects, count)
        if sum(projects[one][0] for one in some) <= budget and sum(projects[one][3] for one in some) <= 1
    )
    assert solved(text, world)["parts"][""] == pytest.approx(best, rel=1e-12)
    with machine_on(text, world) as (model, machine):
        candidates = Candidates.of(machine.choice(), model.choices[0].takes)
        results = machine.outcomes(candidates.places, most=0)
    values = results.parts["income"][""].copy()
    broken = {place for one in results.broken.values() for place in one.places}
    values[list(broken)] = -math.inf
    assert values.max() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "world", "old", "new", "rules"),
    [
        ("depots", depots(), "depots <= 5", "depots <= 1", {"few", "served", "capacity", "closed"}),
        ("blend", blend(), "kg = $batch", "kg = 3 * $batch", {"batch"}),
        ("rota", rota(), "used <= people", "used <= people AND used >= 50", {"contracts"}),
        ("teams", teams(), "there >= people", "there >= 4 * people", {"skills", "seats"}),
    ],
)
def test_what_cannot_hold_together_is_named_by_rule(
    name: str, world: World, old: str, new: str, rules: set[str]
) -> None:
    text = model_text(name)
    assert old in text
    found = solved(text.replace(old, new), world)
    named = {one for one in found["conflict"] if not one.startswith("take of")}
    assert found["status"] == "infeasible" and named and named <= rules


def test_a_rule_that_the_data_alone_break_is_said() -> None:
    text = model_text("blend") + '\n[rule.prices]\nrows = "feed"\nmust = "eur_per_ton <= 900"\n'
    found = solved(text, blend())
    assert found["fault"]["prices"][0] == 1 and found["fault"]["prices"][1][0]["feed"] == "oil"


def test_a_plan_that_breaks_a_rule_only_a_query_can_tell_is_no_plan() -> None:
    text = model_text("blend") + "\n[rule.oats]\nexists = \"SELECT 1 FROM use WHERE feed = 'oats' AND amount > 299\"\n"
    with machine_on(text, blend()) as (_, machine):
        rows = machine.run("solve", REQUEST, Caps()).rows
    assert [row[1] for row in rows if row[0] == "broken"] == ["oats"]


def test_when_needs_bounds_and_a_strict_comparison_a_margin() -> None:
    for old, new, why in (
        ('upper = "pallets"', "", r"rule\.closed: when needs bounds; give upper"),
        ("pallets <= capacity", "pallets < capacity", "strict comparison of an amount has no nearest plan"),
        ("gets = needs", "gets = needs OR gets = 0", "compares two sums with"),
    ):
        text = model_text("depots")
        assert old in text
        with pytest.raises(ToolError, match=why):
            solved(text.replace(old, new), depots())


def test_ten_thousand_unknowns_are_read() -> None:
    rng = np.random.default_rng(1)
    places = [(f"D{at}", float(rng.uniform(9e3, 1.8e4)), 1e5) for at in range(40)]
    shops = [(f"S{at}", float(rng.uniform(8, 38))) for at in range(250)]
    lanes = [
        (a, b, float(cost))
        for (a, *_), cost_of in zip(places, rng.uniform(2, 62, (40, 250)), strict=True)
        for (b, _), cost in zip(shops, cost_of, strict=True)
    ]
    world: World = {
        "depot": ("depot TEXT, rent_eur REAL, capacity REAL", places),
        "shop": ("shop TEXT, pallets REAL", shops),
        "lane": ("depot TEXT, shop TEXT, eur REAL", lanes),
    }
    text = model_text("depots").replace('kind  = "binary"', "upper = 1")
    text = text[: text.index("[rule.closed]")] + text[text.index("[rule.capacity]") :]
    found = solved(text, world)
    assert found["status"] == "optimal" and found["figures"]["unknowns"] == 10_040
    # No depot is needed where none is asked for: each shop takes its cheapest lane.
    cheapest = sum(tons * min(cost for _, shop, cost in lanes if shop == name) for name, tons in shops)
    assert sum(found["parts"].values()) == pytest.approx(cheapest, rel=1e-9)


def test_an_amount_of_0_is_used_once_it_is_cheaper_by_its_reduced_cost() -> None:
    world = dict(blend())
    count, rows = solved(model_text("blend"), world)["reduced"]["use"]
    assert count >= 1
    head, feeds = world["feed"]
    feed, price = rows[0]["label"], rows[0]["price"]
    for more, is_used in ((0.5, True), (-0.5, False)):
        # A kilogram costs a thousandth of a ton.
        cheaper = [
            tuple(
                cell - 1000 * price - more if name == "eur_per_ton" and row[0] == feed else cell
                for name, cell in zip([one.split()[0] for one in head.split(", ")], row, strict=True)
            )
            for row in feeds
        ]
        used = solved(model_text("blend"), world | {"feed": (head, cheaper)})["plan"]["use"][1]
        assert (feed in {row["label"] for row in used}) == is_used
