"""Stock over several weeks: three models of ours with generated data, each beside a plain program in highspy.

    python performance/decision_models/stock.py [--seeds N]

``perishable``: ages, lead times, fixed prices of an order, waste. ``network``: a depot and shops, transfers, running
sums of stock, hours of work. ``cases``: whole cases and trucks, a bonus from a threshold, substitutes, a share that is
served. Compared is the optimum, at N (5) drawings of data; the programs share nothing but the rows. Lines are those
with content.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import highspy

from answers import Tables, ask_optimum, count_lines, write_tables

MODELS = Path(__file__).parent / "stock"
WEEKS = range(1, 7)
FEW_WEEKS = WEEKS[:4]
"""For whole cases and trucks, so that both solvers end in a second or two."""


def draw_perishable(draw: random.Random) -> Tables:
    products: list[dict[str, Any]] = [
        {
            "product": f"P{i}",
            "life": draw.randint(1, 3),
            "lead": draw.randint(0, 2),
            "price_eur": draw.randint(30, 60) / 10,
            "cost_eur": draw.randint(10, 25) / 10,
            "keep_eur": draw.randint(1, 4) / 20,
            "waste_eur": draw.randint(1, 9) / 10,
            "order_eur": float(draw.randint(20, 60)),
            "most": 150.0,
            "volume": draw.randint(5, 15) / 10,
        }
        for i in range(5)
    ]
    return {
        "product": products,
        "age": [{"product": p["product"], "age": a} for p in products for a in range(p["life"])],
        "demand": [
            {"product": p["product"], "week": w, "units": float(draw.randint(10, 70))} for p in products for w in WEEKS
        ],
        "due": [
            {"product": p["product"], "week": w, "units": float(draw.randint(0, 40))}
            for p in products
            for w in range(1, p["lead"] + 1)
        ],
        "opening": [
            {"product": p["product"], "age": a, "units": float(draw.randint(0, 20))}
            for p in products
            for a in range(1, p["life"])
        ],
        "shop": [{"volume": 90.0}],
    }


def draw_network(draw: random.Random) -> Tables:
    shops, products = [f"S{i}" for i in range(4)], [f"P{i}" for i in range(3)]
    return {
        "site": [{"site": "depot", "room": 2000.0, "hours": 0.0}]
        + [{"site": s, "room": float(draw.randint(120, 200)), "hours": float(draw.randint(10, 18))} for s in shops],
        "lane": [{"a": "depot", "b": s, "lead": draw.randint(0, 1), "eur": draw.randint(5, 15) / 10} for s in shops]
        + [{"a": a, "b": b, "lead": 0, "eur": draw.randint(8, 20) / 10} for a in shops for b in shops if a < b],
        "week": [{"week": w} for w in WEEKS],
        "product": [
            {
                "product": p,
                "volume": draw.randint(5, 15) / 10,
                "hours_per_unit": draw.randint(5, 12) / 100,
                "keep_eur": draw.randint(1, 5) / 20,
                "lost_eur": float(draw.randint(4, 12)),
            }
            for p in products
        ],
        "demand": [
            {"site": s, "product": p, "week": w, "units": float(draw.randint(10, 80))}
            for s in shops
            for p in products
            for w in WEEKS
        ],
        "supply": [
            {"site": "depot", "product": p, "week": w, "units": float(draw.randint(80, 220))}
            for p in products
            for w in WEEKS
        ],
        "opening": [
            {"site": s, "product": p, "units": float(draw.randint(5, 40))} for s in ["depot", *shops] for p in products
        ],
    }


def draw_cases(draw: random.Random) -> Tables:
    products: list[dict[str, Any]] = [
        {
            "product": f"P{i}",
            "supplier": f"U{i % 2}",
            "per_case": draw.choice([6, 8, 12]),
            "price_eur": draw.randint(30, 60) / 10,
            "pallets": draw.randint(5, 12) / 100,
            "keep_eur": draw.randint(1, 4) / 20,
            "opening": float(draw.randint(10, 30)),
            "closing": float(draw.randint(5, 15)),
        }
        for i in range(4)
    ]
    for p in products:
        p["case_eur"] = round(p["per_case"] * p["price_eur"] * draw.randint(50, 75) / 100, 2)
    return {
        "product": products,
        "supplier": [
            {
                "supplier": f"U{i}",
                "truck_eur": float(draw.randint(30, 60)),
                "truck_pallets": 1.5,
                "bonus_eur": float(draw.randint(15, 40)),
                "bonus_from_eur": float(draw.randint(250, 400)),
            }
            for i in range(2)
        ],
        "week": [{"week": w, "budget_eur": float(draw.randint(450, 650))} for w in FEW_WEEKS],
        "demand": [
            {"product": p["product"], "week": w, "units": float(draw.randint(15, 60))}
            for p in products
            for w in FEW_WEEKS
        ],
        "substitute": [
            {"asked": "P0", "taken": "P1", "rebate_eur": 0.5},
            {"asked": "P2", "taken": "P3", "rebate_eur": 0.4},
            {"asked": "P3", "taken": "P2", "rebate_eur": 0.6},
        ],
    }


def solve_perishable(t: Tables) -> float:
    h = highspy.Highs()  # type: ignore[no-untyped-call]
    h.silent()
    units = {(d["product"], d["week"]): d["units"] for d in t["demand"]}
    due = {(d["product"], d["week"]): d["units"] for d in t["due"]}
    opening = {(o["product"], o["age"]): o["units"] for o in t["opening"]}
    taken: dict[int, Any] = dict.fromkeys(WEEKS, 0)
    for p in t["product"]:
        order, left = {}, {}
        for w in WEEKS:
            order[w] = h.addVariable(0, p["most"], -p["cost_eur"])
            placed = h.addBinary(-p["order_eur"])
            h.addConstr(order[w] <= p["most"] * placed)
        for w in WEEKS:
            sold: Any = 0
            for age in range(p["life"]):
                last = age == p["life"] - 1
                sell = h.addVariable(0, highspy.kHighsInf, p["price_eur"])
                left[w, age] = h.addVariable(0, highspy.kHighsInf, -(p["waste_eur"] if last else p["keep_eur"]))
                if age == 0:
                    there = order.get(w - p["lead"], 0) + due.get((p["product"], w), 0)
                else:
                    there = opening[p["product"], age] if w == 1 else left[w - 1, age - 1]
                h.addConstr(left[w, age] + sell - there == 0)
                sold += sell
                taken[w] += 0 if last else left[w, age] * p["volume"]
            h.addConstr(sold <= units[p["product"], w])
    for w in WEEKS:
        h.addConstr(taken[w] <= t["shop"][0]["volume"])
    h.setOptionValue("mip_rel_gap", 0)
    h.maximize()
    return h.getObjectiveValue()


def solve_network(t: Tables) -> float:
    h = highspy.Highs()  # type: ignore[no-untyped-call]
    h.silent()
    site = {s["site"]: s for s in t["site"]}
    units = {(d["site"], d["product"], d["week"]): d["units"] for d in t["demand"]}
    supply = {(s["site"], s["product"], s["week"]): s["units"] for s in t["supply"]}
    opening = {(o["site"], o["product"]): o["units"] for o in t["opening"]}
    move = {
        (i, p["product"], w): h.addVariable(0, highspy.kHighsInf, lane["eur"])
        for i, lane in enumerate(t["lane"])
        for p in t["product"]
        for w in WEEKS
    }
    stock = {}
    for p in t["product"]:
        for s in site:
            for w in WEEKS:
                stock[s, p["product"], w] = h.addVariable(0, highspy.kHighsInf, p["keep_eur"])
                left = stock[s, p["product"], w - 1] if w > 1 else opening[s, p["product"]]
                left = left + supply.get((s, p["product"], w), 0)
                for i, lane in enumerate(t["lane"]):
                    if lane["b"] == s and w - lane["lead"] >= 1:
                        left = left + move[i, p["product"], w - lane["lead"]]
                    if lane["a"] == s:
                        left = left - move[i, p["product"], w]
                if asked := units.get((s, p["product"], w)):
                    left = left - asked + h.addVariable(0, asked, p["lost_eur"])
                h.addConstr(stock[s, p["product"], w] - left == 0)
    for s in site:
        for w in WEEKS:
            h.addConstr(sum(stock[s, p["product"], w] * p["volume"] for p in t["product"]) <= site[s]["room"])
    for s in list(site)[1:]:
        for w in [*WEEKS, len(WEEKS) + 1]:
            used = [
                move[i, p["product"], w - lane["lead"]] * p["hours_per_unit"]
                for i, lane in enumerate(t["lane"])
                for p in t["product"]
                if lane["b"] == s and w - lane["lead"] in WEEKS
            ]
            if used:
                h.addConstr(sum(used) <= site[s]["hours"])
    h.minimize()
    return h.getObjectiveValue()


def solve_cases(t: Tables) -> float:
    h = highspy.Highs()  # type: ignore[no-untyped-call]
    h.silent()
    inf, integer = highspy.kHighsInf, highspy.HighsVarType.kInteger
    price = {p["product"]: p["price_eur"] for p in t["product"]}
    units = {(d["product"], d["week"]): d["units"] for d in t["demand"]}
    cases = {(p["product"], w): h.addVariable(0, inf, -p["case_eur"], integer) for p in t["product"] for w in FEW_WEEKS}
    sell = {(p, w): h.addVariable(0, inf, price[p]) for p in price for w in FEW_WEEKS}
    swap = {
        (s["asked"], s["taken"], w): h.addVariable(0, inf, price[s["taken"]] - s["rebate_eur"])
        for s in t["substitute"]
        for w in FEW_WEEKS
    }
    for p in t["product"]:
        left: Any = p["opening"]
        total: Any = 0
        for w in FEW_WEEKS:
            served = sell[p["product"], w] + sum(
                v for (asked, _, at), v in swap.items() if (asked, at) == (p["product"], w)
            )
            h.addConstr(served <= units[p["product"], w])
            total = total + served
            stock = h.addVariable(0 if w < len(FEW_WEEKS) else p["closing"], inf, -p["keep_eur"])
            gone = sell[p["product"], w] + sum(
                v for (_, taken, at), v in swap.items() if (taken, at) == (p["product"], w)
            )
            h.addConstr(stock - left - cases[p["product"], w] * p["per_case"] + gone == 0)
            left = stock
        h.addConstr(total >= 0.9 * sum(units[p["product"], w] for w in FEW_WEEKS))
    for week in t["week"]:
        bills = []
        for s in t["supplier"]:
            own = [p for p in t["product"] if p["supplier"] == s["supplier"]]
            bills.append(sum(cases[p["product"], week["week"]] * p["case_eur"] for p in own))
            trucks = h.addVariable(0, 9, -s["truck_eur"], integer)
            h.addConstr(
                sum(cases[p["product"], week["week"]] * p["pallets"] for p in own) <= trucks * s["truck_pallets"]
            )
            bonus = h.addBinary(s["bonus_eur"])
            h.addConstr(bills[-1] >= bonus * s["bonus_from_eur"])
        h.addConstr(sum(bills) <= week["budget_eur"])
    h.setOptionValue("mip_rel_gap", 0)
    h.maximize()
    return h.getObjectiveValue()


PROBLEMS: Mapping[str, tuple[Callable[[random.Random], Tables], Callable[[Tables], float]]] = {
    "perishable": (draw_perishable, solve_perishable),
    "network": (draw_network, solve_network),
    "cases": (draw_cases, solve_cases),
}


async def main(seeds: int) -> None:
    for name, (draw, program) in PROBLEMS.items():
        same, path = 0, MODELS / f"{name}.toml"
        model, began = path.read_text("utf-8"), time.perf_counter()
        with tempfile.TemporaryDirectory() as own:
            for seed in range(seeds):
                tables = draw(random.Random(f"{name} {seed}"))
                answer, gold = (
                    await ask_optimum(model, write_tables(tables, Path(own) / f"{seed}.sqlite")),
                    program(tables),
                )
                right = answer.value is not None and abs(answer.value - gold) <= 1e-6 * max(1, abs(gold))
                same += right
                if not right:
                    print(f"{name} {seed}: {answer}, the plain program {gold}")
        lines = (
            f"{count_lines(path)} lines, {len(inspect.getsource(program).strip().splitlines())} of the plain program"
        )
        print(f"{name:10} {same} of {seeds} optima equal; {lines}; {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    asyncio.run(main(parser.parse_args().seeds))
