"""The examples: every outcome and every rule against plain Python, and the decision that their page names."""

import asyncio
import importlib.util
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import duckdb
import pytest

from decisor.decision_models.checks import check_model
from decisor.decision_models.optimize import rank_or_solve
from decisor.session.decision_models import opened_model

FOLDER = Path(__file__).parents[2] / "examples" / "decision_models"
Rows: TypeAlias = dict[str, list[dict[str, float | str]]]
Truth: TypeAlias = dict[str, tuple[float, bool]]
"""Name -> outcome, and whether it is allowed."""


def number(value: float | str) -> float:
    assert not isinstance(value, str)
    return float(value)


def close_two(rows: Rows) -> Truth:
    sites = {str(one["name"]): (number(one["rent"]), number(one["capacity"])) for one in rows["warehouse"]}
    cost = {(one["customer"], str(one["warehouse"])): number(one["cost"]) for one in rows["lane"]}
    truth = {}
    for pair in itertools.combinations(sites, 2):
        left, loads, total = [one for one in sites if one not in pair], dict.fromkeys(sites, 0.0), 0.0
        for customer in rows["customer"]:
            near = min(left, key=lambda one: (cost[customer["id"], one], one))
            loads[near] += number(customer["units"])
            total += number(customer["units"]) * cost[customer["id"], near]
        fits = all(loads[one] <= sites[one][1] for one in left)
        truth[" + ".join(pair)] = (total + sum(sites[one][0] for one in left), fits)
    return truth


def supplier_offer(rows: Rows) -> Truth:
    need, euros = rows["need"][0], {one["currency"]: number(one["eur"]) for one in rows["rate"]}
    truth = {}
    for one in rows["offer"]:
        late = [i for i in rows["incident"] if i["supplier"] == one["supplier"] and i["day"] >= need["since"]]  # type: ignore[operator]
        fits = bool(one["contract"]) and number(one["capacity"]) >= number(need["pieces"]) and len(late) <= 2
        price = number(one["price"]) * euros[one["currency"]] + number(one["freight"])
        truth[str(one["supplier"])] = (number(need["pieces"]) * price, fits)
    return truth


def call_centre(rows: Rows) -> Truth:
    """Erlang's C by the recursion of Erlang's B, which the model does not use."""
    desk, truth = rows["desk"][0], {}
    for people in range(1, 21):
        worst = 0.0
        for hour in rows["hour"]:
            load = number(hour["calls"]) * number(desk["minutes"]) / 60
            blocked = 1.0
            for n in range(1, people + 1):
                blocked = load * blocked / (n + load * blocked)
            if load >= people:
                worst = math.inf
                continue
            waits = people * blocked / (people - load * (1 - blocked))
            worst = max(worst, waits * number(desk["minutes"]) * 60 / (people - load))
        truth[str(people)] = (people * number(desk["wage"]) * len(rows["hour"]), worst <= number(desk["patience"]))
    return truth


def prices(rows: Rows) -> Truth:
    products = [str(one["product"]) for one in rows["product"]]
    power = {(one["product"], one["other"]): number(one["power"]) for one in rows["elasticity"]}
    truth = {}
    for shares in itertools.product(sorted(number(one["share"]) for one in rows["step"]), repeat=3):
        profit = sold = 0.0
        for one, share in zip(rows["product"], shares, strict=True):
            pull = math.prod(s ** power[one["product"], o] for o, s in zip(products, shares, strict=True))
            sold += number(one["units"]) * pull
            profit += (share * number(one["price"]) - number(one["cost"])) * number(one["units"]) * pull
        name = ", ".join(f"{o} {s}" for o, s in zip(products, shares, strict=True))
        truth[name] = (profit, sold <= number(rows["shelf"][0]["units"]))
    return truth


def projects(rows: Rows) -> Truth:
    firm, truth = rows["firm"][0], {}
    for size in range(len(rows["project"]) + 1):
        for some in itertools.combinations(rows["project"], size):
            names = {one["name"] for one in some}
            fits = sum(number(one["cost"]) for one in some) <= number(firm["budget"])
            fits &= sum(number(one["people"]) for one in some) <= number(firm["people"])
            fits &= not any({one["one"], one["other"]} <= names for one in rows["excludes"])
            fits &= all(one["one"] not in names or one["before"] in names for one in rows["needs"])
            truth[" + ".join(str(one["name"]) for one in some)] = (sum(number(one["value"]) for one in some), fits)
    return truth


def shifts(rows: Rows) -> Truth:
    plant = {name: number(value) for name, value in rows["plant"][0].items()}
    truth = {}
    for crew in itertools.product(range(4, 9), repeat=4):
        cost, fits, before = 0.0, True, plant["people"]
        for people, month in zip(crew, rows["month"], strict=True):
            over = max(0.0, number(month["hours"]) - people * plant["hours_each"])
            fits &= over <= people * plant["hours_each"] * plant["most_overtime"] + 1e-9
            cost += people * plant["wage"] + over * plant["overtime"]
            cost += max(people - before, 0) * plant["hiring"] + max(before - people, 0) * plant["leaving"]
            before = people
        name = ", ".join(f"{month['month']} {people}" for people, month in zip(crew, rows["month"], strict=True))
        truth[name] = (cost, fits)
    return truth


def customers_to_call(rows: Rows) -> Truth:
    team, notes = rows["team"][0], {one["name"]: str(one["text"]).lower() for one in rows["note"]}
    truth = {}
    for three in itertools.combinations(rows["customer"], 3):
        saved = 0.0
        for one in three:
            leaves = number(one["leaves"]) + number(team["cancels"]) * ("cancel" in notes[one["name"]])
            leaves += number(team["complains"]) * ("complain" in notes[one["name"]])
            saved += number(one["margin"]) * number(team["success"]) * leaves
        fits = sum(number(one["minutes"]) for one in three) <= number(team["minutes"])
        fits &= not any("do not call" in notes[one["name"]] for one in three)
        truth[" + ".join(str(one["name"]) for one in three)] = (saved, fits)
    return truth


EXAMPLES: dict[str, Callable[[Rows], Truth]] = {
    one.__name__: one for one in (close_two, supplier_offer, call_centre, prices, projects, shifts, customers_to_call)
}


def made(name: str, folder: Path) -> tuple[str, Rows]:
    """The URL of an example's database, and its rows."""
    spec = importlib.util.spec_from_file_location("make", FOLDER / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = module.make(name, folder)
    rows: Rows = {}
    with duckdb.connect(str(path)) as db:
        for (table,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            cursor = db.execute(f'SELECT * FROM "{table}" ORDER BY rowid')
            names = [one for one, *_ in cursor.description or ()]
            rows[table] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return f"duckdb:///{path}", rows


def test_each_example_stands_in_the_table_of_their_page() -> None:
    page = (FOLDER / "README.md").read_text()
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.M)) == sorted(EXAMPLES)
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted(EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_decides_as_plain_python_does_and_as_its_page_says(name: str, tmp_path: Path) -> None:
    url, rows = made(name, tmp_path)
    truth = EXAMPLES[name](rows)
    if name == "projects":
        pytest.importorskip("highspy")
    async with opened_model(FOLDER / f"{name}.toml", url) as model:
        ranking = await asyncio.to_thread(rank_or_solve, model, trials=5)
        if model.model.choice:
            outcomes = await asyncio.to_thread(model.outcomes)
            names = [model.candidates.name(at) for at in range(len(model.candidates))]
            expected = {one: fits for one, (_, fits) in truth.items()}
            assert dict(zip(names, outcomes.allowed.tolist(), strict=True)) == expected
            assert outcomes.values[:, 0].tolist() == pytest.approx([truth[one][0] for one in names])
    sign = 1 if ranking.goal == "min" else -1
    best = min((one for one, (_, fits) in truth.items() if fits), key=lambda one: sign * truth[one][0])
    assert ranking.options[0].name == best
    assert ranking.options[0].outcome == pytest.approx(truth[best][0])
    line = next(line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith(f"| `{name}`"))
    assert line.split(" | ")[2] == best
    assert ranking.trials == 5


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
async def test_no_check_complains_about_an_example(name: str, tmp_path: Path) -> None:
    if name == "projects":
        pytest.importorskip("highspy")
    url, _ = made(name, tmp_path)
    async with opened_model(FOLDER / f"{name}.toml", url) as model:
        assert [one for one in await asyncio.to_thread(lambda: list(check_model(model))) if one.kind == "error"] == []
