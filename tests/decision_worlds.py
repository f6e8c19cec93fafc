"""Small worlds of decision models with choices and amounts, generated, and a machine on them in this process."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from decisor.decision_models.copies import Copy, CopyColumn, build_machine_content
from decisor.decision_models.file import parse_model
from decisor.decision_models.schema import DecisionModel
from decisor.decision_models.worker.engine import Machine, connect_machine
from decisor.sandbox.engine import Caps

MODELS = Path(__file__).parent / "decision_models" / "models"
Rows = Sequence[tuple[Any, ...]]
World = Mapping[str, tuple[str, Rows]]
"""By table, its columns with their types and its rows."""


def model_text(name: str) -> str:
    return (MODELS / f"{name}.toml").read_text(encoding="utf-8")


@contextmanager
def machine_on(text: str, world: World) -> Iterator[tuple[DecisionModel, Machine]]:
    """Open the machine of a model on a world, in this process."""
    model = parse_model(text)
    copies = {}
    for name, (head, rows) in world.items():
        columns = [one.split() for one in head.split(", ")]
        values = zip(*rows, strict=True)
        cells = tuple(
            CopyColumn(column, list(cell), kind) for (column, kind), cell in zip(columns, values, strict=True)
        )
        copies[name] = Copy(name, cells, "")
    machine = connect_machine(build_machine_content(model, copies), Caps(memory_mb=2000))
    try:
        yield model, machine
    finally:
        machine.close()


def milling() -> World:
    """Three flours, eight weeks, one mill and a silo."""
    dice = random.Random(11)
    products = [
        ("spelt", 410.0, 9.0, 950.0, 0.9, 12.0),
        ("rye", 300.0, 6.0, 700.0, 0.6, 20.0),
        ("wheat", 260.0, 4.0, 620.0, 0.5, 35.0),
    ]
    usual = {"spelt": 18, "rye": 34, "wheat": 60}
    demand = [
        (one[0], week, round(dice.uniform(0.6, 1.5) * usual[one[0]] * (1.45 if week in (5, 6) else 1), 1))
        for one in products
        for week in range(1, 9)
    ]
    columns = "product TEXT, milling_eur REAL, keeping_eur REAL, lost_eur REAL, hours_per_ton REAL, opening_tons REAL"
    return {
        "product": (columns, products),
        "demand": ("product TEXT, week INTEGER, tons REAL", demand),
        "week": (
            "week INTEGER, hours REAL, overtime_hours REAL",
            [(week, 60.0 if week != 4 else 20.0, 14.0) for week in range(1, 9)],
        ),
        "silo": ("tons REAL, overtime_eur REAL", [(70.0, 55.0)]),
    }


def depots(count: int = 12, shops: int = 60) -> World:
    dice = random.Random(5)
    places = [
        (f"D{at:02d}", round(dice.uniform(9000, 21000)), round(dice.uniform(260, 620)), dice.random(), dice.random())
        for at in range(1, count + 1)
    ]
    served = [(f"S{at:03d}", round(dice.uniform(8, 42)), dice.random(), dice.random()) for at in range(1, shops + 1)]
    lanes = [
        (one[0], shop[0], round(2 + 90 * math.dist(one[3:], shop[2:]), 2))
        for one in places
        for shop in served
        if math.dist(one[3:], shop[2:]) < 0.75
    ]
    return {
        "depot": ("depot TEXT, rent_eur REAL, capacity REAL", [(a, float(b), float(c)) for a, b, c, *_ in places]),
        "shop": ("shop TEXT, pallets REAL", [(a, float(b)) for a, b, *_ in served]),
        "lane": ("depot TEXT, shop TEXT, eur REAL", lanes),
    }


def rota() -> World:
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    need = {"early": [14, 13, 15, 16, 19, 12, 9], "late": [10, 9, 11, 12, 15, 16, 8]}
    patterns = [
        (
            f"{shift} {kind} from {days[first]}",
            shift,
            kind,
            first,
            5 if kind == "full" else 3,
            (640.0 if kind == "full" else 399.0) + (35.0 if shift == "late" else 0),
        )
        for shift in need
        for kind in ("full", "part")
        for first in range(7)
    ]
    works = [(one[0], days[(one[3] + at) % 7], one[1]) for one in patterns for at in range(one[4])]
    wanted = [(day, at, shift, need[shift][at]) for shift in need for at, day in enumerate(days)]
    columns = "pattern TEXT, shift TEXT, contract TEXT, first INTEGER, days INTEGER, eur_per_week REAL"
    return {
        "pattern": (columns, patterns),
        "works": ("pattern TEXT, day TEXT, shift TEXT", works),
        "need": ("day TEXT, at INTEGER, shift TEXT, people INTEGER", wanted),
        "staff": ("contract TEXT, people INTEGER", [("full", 30), ("part", 14)]),
    }


def teams() -> World:
    dice = random.Random(23)
    skills = ["welding", "control", "software"]
    people = [(f"E{at:02d}", dice.choice(skills), dice.choice("ABC")) for at in range(1, 25)]
    projects = [("crane", 4), ("press", 4), ("line 7", 5), ("kiln", 3), ("robot", 4)]
    need = [
        ("crane", "welding", 2),
        ("crane", "control", 1),
        ("press", "welding", 1),
        ("press", "control", 1),
        ("line 7", "software", 2),
        ("kiln", "welding", 1),
        ("robot", "software", 1),
        ("robot", "control", 1),
    ]
    fit = [(one[0], project[0], dice.randint(1, 10)) for one in people for project in projects]
    wishes = [(one[0], dice.choice(projects)[0]) for one in people if dice.random() < 0.6]
    return {
        "person": ("person TEXT, skill TEXT, team TEXT", people),
        "project": ("project TEXT, seats INTEGER", projects),
        "need": ("project TEXT, skill TEXT, people INTEGER", need),
        "fit": ("person TEXT, project TEXT, points INTEGER", fit),
        "wish": ("person TEXT, project TEXT", wishes),
    }


def portfolio() -> World:
    dice = random.Random(77)
    projects = []
    for at in range(1, 16):
        cost = round(dice.uniform(0.4, 2.2), 2)
        kind = dice.choice(["grid", "solar", "heat"])
        projects.append((f"P{at:02d}", cost, round(cost * dice.uniform(0.05, 0.16), 3), kind, dice.choice([0, 0, 1])))
    load = {one[0]: [dice.uniform(-0.3, 1), dice.uniform(-0.3, 1), dice.uniform(0.1, 0.5)] for one in projects}
    covariance = [
        (
            a,
            b,
            round(
                0.01 * sum(x * y for x, y in zip(load[a][:2], load[b][:2], strict=True))
                + (a == b) * load[a][2] ** 2 * 0.02,
                6,
            ),
        )
        for a in load
        for b in load
    ]
    return {
        "project": ("project TEXT, cost_m REAL, yearly_m REAL, kind TEXT, foreign_law INTEGER", projects),
        "covariance": ("a TEXT, b TEXT, value REAL", covariance),
        "limits": ("budget_m REAL, risk REAL", [(7.0, 0.06)]),
    }


def blend() -> World:
    feeds = [
        ("maize", 212.0, 900.0),
        ("wheat bran", 148.0, 220.0),
        ("soya meal", 415.0, 400.0),
        ("rape meal", 268.0, 260.0),
        ("oats", 236.0, 300.0),
        ("lucerne", 190.0, 150.0),
        ("lime", 70.0, 40.0),
        ("oil", 905.0, 50.0),
    ]
    grams: dict[str, list[float]] = {
        "protein": [85, 155, 440, 335, 110, 165, 0, 0],
        "fibre": [22, 105, 65, 122, 100, 260, 0, 0],
        "calcium": [0.2, 1.3, 3.0, 6.8, 1.1, 14.5, 380, 0],
        "energy": [13.5, 8.6, 13.0, 10.2, 11.1, 6.9, 0, 36.0],
    }
    content = [(feed[0], name, float(per[at])) for name, per in grams.items() for at, feed in enumerate(feeds)]
    norms = [("protein", 180.0, 215.0), ("fibre", 0.0, 72.0), ("calcium", 8.0, 11.0), ("energy", 11.9, 13.2)]
    return {
        "feed": ("feed TEXT, eur_per_ton REAL, stock_kg REAL", feeds),
        "content": ("feed TEXT, nutrient TEXT, per_kg REAL", content),
        "norm": ("nutrient TEXT, low REAL, high REAL", norms),
    }


def cold_stores() -> World:
    """A dairy leases a cold store for 2027: 30 offers, what each costs in all, and which may not be taken."""
    dice = random.Random(41)
    regions = ["north", "coast", "hills", "plain"]
    plants = [("Aachen", None, 420), ("Bonn", None, 310), ("Celle", "2027-06-30", 170)]
    lots = [
        (
            f"L{at:02d}",
            dice.randint(1, 14),
            dice.choice(regions),
            round(dice.uniform(7.2, 10.5), 2),
            dice.randint(900, 1700),
            round(dice.uniform(38, 62), 1),
            float(round(dice.uniform(0, 60000))),
            dice.choice([-25, -22, -18]),
        )
        for at in range(1, 31)
    ]
    tariffs = [
        (region, f"2026-{month:02d}-01", round(dice.uniform(0.15, 0.24), 4))
        for region in regions
        for month in range(1, 12)
    ] + [(region, "2027-02-01", round(dice.uniform(0.2, 0.3), 4)) for region in regions]
    pallets = [
        (plant, f"2027-{month:02d}", round(usual * (1 + 0.25 * (month in (6, 7, 8))) * dice.uniform(0.93, 1.07)))
        for plant, _, usual in plants
        for month in range(1, 13)
    ]
    checks = []
    for _ in range(150):
        owner, day, count = (
            dice.randint(1, 14),
            f"202{dice.choice([4, 5, 6])}-{dice.randint(1, 12):02d}-03",
            dice.randint(800, 2500),
        )
        checks.append((owner, day, count, round(count * dice.uniform(0, 0.012))))
    ends = ["2027-12-31", "2028-06-30", "2029-12-31", "2027-10-31"]
    permits = [(lot[0], dice.choice(["food", "food", "goods"]), "2024-01-01", dice.choice(ends)) for lot in lots]
    permits[3] = ("L04", "food", "2024-01-01", "2027-10-31")
    findings = [
        (lot[0], "2026-05-15", dice.choice(["major", "minor"]))
        for lot in lots
        for _ in range(dice.choice([0, 0, 1, 2, 3]))
    ]
    ways = [
        (lot[0], plant, float(round(dice.uniform(15, 190))))
        for lot in lots
        for plant, *_ in plants
        if dice.random() > 0.04
    ]
    columns = (
        "lot TEXT, owner_id INTEGER, region TEXT, eur_per_pallet_month REAL, places INTEGER, kwh_per_place REAL, "
        "fit_out_eur REAL, lowest_c INTEGER"
    )
    return {
        "owner": ("id INTEGER, name TEXT", [(at, f"Kalt-{at}") for at in range(1, 15)]),
        "lot": (columns, lots),
        "tariff": ("region TEXT, day DATE, eur_per_kwh REAL", tariffs),
        "plant": ("plant TEXT, closes DATE", [(plant, closes) for plant, closes, _ in plants]),
        "pallets": ("plant TEXT, month TEXT, pallets INTEGER", pallets),
        "way": ("lot TEXT, plant TEXT, km REAL", ways),
        "inspected": ("owner_id INTEGER, day DATE, pallets INTEGER, spoiled INTEGER", checks),
        "permit": ("lot TEXT, kind TEXT, valid_from DATE, valid_to DATE", permits),
        "finding": ("lot TEXT, day DATE, severity TEXT", findings),
    }
