"""The examples run as they stand, and each decision is that of plain Python on the same rows."""

import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from servers.sql_databases import postgres_database

FOLDER = Path(__file__).parent.parent / "examples"
pytestmark = pytest.mark.slow


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_supplier_to_drop_costs_least_and_leaves_no_part_without_one(tmp_path: Path) -> None:
    this = example("supplier_to_drop")
    costs = {}
    for gone in this.LATE:
        prices = {
            part: min((price for name, other, price in this.OFFERS if name != gone and other == part), default=None)
            for part in this.NEEDS
        }
        if None not in prices.values():
            delays = 450 * sum(late for name, late in this.LATE.items() if name != gone)
            costs[gone] = sum(pieces * prices[part] for part, pieces in this.NEEDS.items()) + delays
    result = this.decide(tmp_path)
    assert "Dorn" not in costs and result.answer == min(costs, key=lambda name: costs[name]) == "Borealis"
    assert {one.name: one.outcome for one in result.ranking.options} == pytest.approx(costs)


def test_the_site_to_open_is_the_cheapest_that_keeps_the_rules(tmp_path: Path) -> None:
    this = example("site_to_open")
    years = {"ten": 10, "eight": 8, "six": 6}
    allowed = {
        name: rent
        for name, rent, metres in this.SITES
        if metres >= 600 and any(f"for {word} years" in this.NOTES[name.lower()] for word, n in years.items() if n >= 5)
    }
    result = this.decide(tmp_path)
    assert result.answer == min(allowed, key=lambda name: allowed[name]) == "Namur"
    assert not result.evidence.objections and {"o2.r1", "o3.r1"} < set(result.evidence.ids)


def test_no_cheaper_shift_plan_covers_every_day(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    this = example("shift_plan")
    plans = np.indices((5,) * 7).reshape(7, -1)
    """Up to four people may begin on a day: a cheaper plan with five is ruled out by the bound below."""
    people = sum(plans[[(day - back) % 7 for day in range(7)]] for back in range(5))
    covered = (people >= np.array(this.NEEDS)[:, None]).all(axis=0)
    least = int((np.array(this.WAGES) @ plans)[covered].min())
    # Any plan has a fifth of the week's needs, rounded up, at the lowest wage: five on one day would cost more.
    assert -(-sum(this.NEEDS) // 5) * min(this.WAGES) <= least
    result = this.decide(tmp_path)
    assert result.ranking.options[0].outcome == pytest.approx(least)


def test_the_churn_offers_gain_most_within_the_budget(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    this = example("churn_offer")
    best, gain = None, float("-inf")
    for offers in itertools.product(this.OFFERS, repeat=len(this.GROUPS)):
        given = {group[0]: offer for group, offer in zip(this.GROUPS, offers, strict=True)}
        cost = sum(margin * given[group][1] for _, group, margin, _ in this.generate_customers())
        kept = sum(margin * 12 * chance * given[group][2] for _, group, margin, chance in this.generate_customers())
        if cost <= this.BUDGET and kept - cost > gain:
            best, gain = {group: offer[0] for group, offer in given.items()}, kept - cost
    with postgres_database([]) as url:
        result = this.decide(url, str(tmp_path / "model.toml"))
    assert best is not None and result.ranking.options[0].outcome == pytest.approx(gain)
    assert all(f"{group} {offer}" in result.answer for group, offer in best.items())


def test_the_depot_has_the_lowest_cost_with_its_freight(tmp_path: Path) -> None:
    this = example("freight_with_a_function")
    costs = {name: unit * this.PIECES + this.freight(km, this.PIECES)["eur"] for name, unit, km in this.DEPOTS}
    result = this.decide(tmp_path)
    assert result.answer == min(costs, key=lambda name: costs[name]) == "Ulm" and not result.evidence.objections


def test_the_service_to_fix_causes_most_outages(tmp_path: Path) -> None:
    pytest.importorskip("kglite")
    this = example("service_to_fix")
    below = {name: {one for one, other in this.NEEDS if other == name} for name in this.FAILURES}
    for _ in this.FAILURES:
        below = {name: ones.union(*(below[one] for one in ones)) for name, ones in below.items()}
    outages = {name: failures * (1 + len(below[name])) for name, failures in this.FAILURES.items()}
    result = this.decide(tmp_path)
    assert result.answer == max(outages, key=lambda name: outages[name]) == "auth"
    assert {one.name: one.outcome for one in result.ranking.options} == outages


def test_the_cells_of_the_notebook_run(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    cells = json.loads((FOLDER / "notebook.ipynb").read_text("utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "cells.py").write_text("\n\n".join([*code, "print(result.answer)"]))
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent / "src")}
    ran = subprocess.run(
        [sys.executable, "cells.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    costs = {
        name: rent + 20 * 20 * 2 * minutes * 24 / 60 / 50
        for name, rent, seats, minutes in (("oak", 900, 30, 18), ("elm", 700, 24, 34), ("ash", 820, 26, 21))
        if seats >= 20
    }
    assert ran.stdout.strip() == min(costs, key=lambda name: costs[name]) == "elm", ran.stderr[-1000:]


def test_the_page_of_the_examples_names_each_with_its_decision() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    names = set(re.findall(r"^\| `(\w+\.\w+)`", page, re.M))
    assert names == {path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".ipynb")}
