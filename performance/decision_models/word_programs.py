"""The problems in words as plain programs in highspy (three of them look at each choice), beside ``word_problems/``.

Each takes an empty solver and the numbers or tables of its text. They share nothing with the models but these.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import highspy

from answers import Tables

INF, WHOLE = highspy.kHighsInf, highspy.HighsVarType.kInteger
Numbers = Mapping[int, int | float]


def nl4opt_187(h: Any, n: Numbers) -> None:
    shots, pills = h.addIntegral(0, n[5]), h.addIntegral()
    h.addConstr(n[1] * shots + n[3] * pills <= n[6])
    h.addConstr(n[2] * shots + n[4] * pills <= n[7])
    h.addConstr(pills >= shots + 1)
    h.maximize(n[8] * shots + n[9] * pills)


def nl4opt_218(h: Any, n: Numbers) -> None:
    a, b = h.addIntegral(), h.addIntegral()
    h.addConstr(n[1] * a + n[4] * b <= n[7])
    h.addConstr(n[2] * a + n[5] * b <= n[8])
    h.maximize(n[3] * a + n[6] * b)


def nl4opt_157(h: Any, n: Numbers) -> None:
    trucks, vans = h.addIntegral(), h.addIntegral()
    h.addConstr(n[1] * trucks + n[3] * vans >= n[5])
    h.addConstr(n[2] * trucks + n[4] * vans <= n[6])
    h.addConstr(trucks <= vans)
    h.minimize(trucks + vans)


def nl4opt_052(h: Any, n: Numbers) -> None:
    small, large = h.addIntegral(0, n[3]), h.addIntegral(n[5], n[4])
    h.addConstr(small >= 2 * large)
    h.addConstr(small + large <= n[6])
    h.maximize(n[1] * small + n[2] * large)


def nl4opt_182(h: Any, n: Numbers) -> None:
    ships, planes = h.addIntegral(), h.addIntegral(0, n[6])
    h.addConstr(n[1] * ships + n[3] * planes >= n[5])
    h.addConstr(100 * ships >= n[7] * (ships + planes))
    h.minimize(n[2] * ships + n[4] * planes)


def nl4opt_119(h: Any, n: Numbers) -> None:
    regular, speed = h.addIntegral(0, n[5]), h.addIntegral()
    h.addConstr(n[1] * regular + n[3] * speed >= n[7])
    h.addConstr(100 * speed >= n[6] * (regular + speed))
    h.minimize(n[2] * regular + n[4] * speed)


def nl4opt_060(h: Any, n: Numbers) -> None:
    dense, loose = h.addIntegral(), h.addIntegral(5)
    h.addConstr(n[1] * dense + n[2] * loose >= n[5])
    h.addConstr(n[3] * dense + n[4] * loose <= n[6])
    h.minimize(dense + loose)


def nl4opt_007(h: Any, n: Numbers) -> None:
    chairs, dressers = h.addIntegral(), h.addIntegral()
    h.addConstr(n[5] * chairs + n[7] * dressers <= n[3])
    h.addConstr(n[6] * chairs + n[8] * dressers <= n[4])
    h.maximize(n[1] * chairs + n[2] * dressers)


def nl4opt_020(h: Any, n: Numbers) -> None:
    ramen, fries = h.addIntegral(), h.addIntegral()
    h.addConstr(n[1] * ramen + n[4] * fries >= n[8])
    h.addConstr(n[2] * ramen + n[5] * fries >= n[9])
    h.addConstr(100 * ramen <= n[7] * (ramen + fries))
    h.minimize(n[3] * ramen + n[6] * fries)


def nl4opt_091(h: Any, n: Numbers) -> None:
    turkey, tuna = h.addIntegral(), h.addIntegral()
    h.addConstr(n[1] * turkey + n[4] * tuna >= n[7])
    h.addConstr(n[2] * turkey + n[5] * tuna >= n[8])
    h.addConstr(100 * turkey <= n[9] * (turkey + tuna))
    h.minimize(n[3] * turkey + n[6] * tuna)


def nl4opt_106(h: Any, n: Numbers) -> None:
    potatoes, cucumbers = h.addVariable(n[2]), h.addVariable(n[3])
    h.addConstr(potatoes + cucumbers <= n[1])
    h.addConstr(cucumbers >= potatoes)
    h.addConstr(cucumbers <= 2 * potatoes)
    h.maximize(n[4] * potatoes + n[5] * cucumbers)


def nl4opt_102(h: Any, n: Numbers) -> None:
    rice, kebab = h.addIntegral(), h.addIntegral()
    h.addConstr(n[2] * rice + n[5] * kebab >= n[7])
    h.addConstr(n[3] * rice + n[6] * kebab >= n[8])
    h.minimize(n[1] * rice + n[4] * kebab)


def nl4opt_011(h: Any, n: Numbers) -> None:
    bikes, cars = h.addIntegral(), h.addIntegral()
    h.addConstr(n[1] * bikes + n[2] * cars >= n[4])
    h.addConstr(100 * cars <= n[3] * (bikes + cars))
    h.minimize(1 * bikes)


def nl4opt_012(h: Any, n: Numbers) -> None:
    vans, cars = h.addIntegral(), h.addIntegral()
    h.addConstr(n[1] * vans + n[2] * cars >= n[3])
    h.addConstr(100 * vans <= n[4] * (vans + cars))
    h.minimize(1 * cars)


def nl4opt_184(h: Any, n: Numbers) -> None:
    medium, large = h.addIntegral(n[6]), h.addIntegral(n[7])
    h.addConstr(n[1] * medium + n[3] * large <= n[5])
    h.addConstr(medium == 3 * large)
    h.maximize(n[2] * medium + n[4] * large)


def nl4opt_063(h: Any, n: Numbers) -> None:
    bread, cookies = h.addIntegral(), h.addIntegral()
    h.addConstr(n[2] * bread + n[4] * cookies <= n[1])
    h.addConstr(n[3] * bread + n[5] * cookies <= n[1])
    h.maximize(n[6] * bread + n[7] * cookies)


def nl4opt_195(h: Any, n: Numbers) -> None:
    a, b = h.addIntegral(), h.addIntegral()
    h.addConstr(n[1] * a + n[3] * b >= n[5])
    h.addConstr(n[2] * a + n[4] * b >= n[6])
    h.minimize(n[7] * a + n[8] * b)


def nl4opt_101(h: Any, n: Numbers) -> None:
    subsoil, topsoil = h.addIntegral(), h.addIntegral(n[4])
    h.addConstr(subsoil + topsoil <= n[3])
    h.addConstr(100 * topsoil <= n[5] * (subsoil + topsoil))
    h.minimize(n[1] * subsoil + n[2] * topsoil)


def nl4opt_128(h: Any, n: Numbers) -> None:
    glass, plastic = h.addIntegral(n[4]), h.addIntegral()
    h.addConstr(n[1] * glass + n[2] * plastic <= n[5])
    h.addConstr(plastic >= n[3] * glass)
    h.maximize(glass + plastic)


def nl4opt_117(h: Any, n: Numbers) -> None:
    one, two = h.addIntegral(), h.addIntegral()
    h.addConstr(n[4] * one + n[8] * two <= n[15])
    h.addConstr(n[5] * one + n[9] * two <= n[16])
    h.addConstr(n[12] * one + n[14] * two <= n[17])
    h.maximize(n[6] * one + n[10] * two)


def flow(h: Any, t: Tables) -> None:
    send = {(link["a"], link["b"]): h.addVariable(0, link["capacity"], link["cost"]) for link in t["link"]}
    for city in t["city"]:
        comes = h.qsum(v for (_, b), v in send.items() if b == city["city"])
        h.addConstr(comes - h.qsum(v for (a, _), v in send.items() if a == city["city"]) == city["demand"])
        if city["room"] is not None:
            h.addConstr(comes <= city["room"])
    h.minimize()


def dispersion(h: Any, t: Tables) -> float:
    weight = {(row["a"], row["b"]): row["weight"] for row in t["distance"]}
    nodes = [row["node"] for row in t["node"]]
    return max(float(weight[a, b] + weight[b, a]) for a, b in itertools.combinations(nodes, 2))


def tour(h: Any, t: Tables) -> float:
    cost = {(row["a"], row["b"]): row["cost"] for row in t["leg"]}
    others = sorted({a for a, _ in cost} - {0})
    tours = ((0, *order, 0) for order in itertools.permutations(others))
    return min(float(sum(cost[pair] for pair in itertools.pairwise(order))) for order in tours)


def assignment(h: Any, t: Tables) -> None:
    work = {(f["employee"], f["project"]): h.addVariable(0, f["most"], f["cost"]) for f in t["fit"]}
    for row in t["employee"]:
        h.addConstr(h.qsum(v for (e, _), v in work.items() if e == row["employee"]) == row["hours"])
    for row in t["project"]:
        h.addConstr(h.qsum(v for (_, p), v in work.items() if p == row["project"]) == row["hours"])
    h.minimize()


def jobshop(h: Any, t: Tables) -> None:
    hours = {(op["job"], op["op"]): op["hours"] for op in t["op"]}
    most, makespan = sum(hours.values()), h.addVariable()
    start = {op: h.addVariable(0, most) for op in hours}
    for job, op in hours:
        h.addConstr(start[job, op] + hours[job, op] <= makespan)
        if (job, op + 1) in hours:
            h.addConstr(start[job, op] + hours[job, op] <= start[job, op + 1])
    for c in t["clash"]:
        a, b, first = (c["job_a"], c["op_a"]), (c["job_b"], c["op_b"]), h.addBinary()
        h.addConstr(start[a] + hours[a] <= start[b] + 2 * most * (1 - first))
        h.addConstr(start[b] + hours[b] <= start[a] + 2 * most * first)
    h.minimize(1 * makespan)


def landing(h: Any, t: Tables) -> None:
    land = {}
    for a in t["aircraft"]:
        land[a["aircraft"]] = h.addVariable(a["earliest"])
        h.addConstr(land[a["aircraft"]] <= a["latest"])
        early, late = h.addVariable(0, INF, a["early_cost"]), h.addVariable(0, INF, a["late_cost"])
        h.addConstr(land[a["aircraft"]] + early - late == a["target"])
    for p in t["pair"]:
        a, b, first = land[p["a"]], land[p["b"]], h.addBinary()
        h.addConstr(b - a >= p["gap_ab"] - 200 * (1 - first))
        h.addConstr(a - b >= p["gap_ba"] - 200 * first)
    h.minimize()


def lots(h: Any, t: Tables) -> None:
    price, units = t["price"][0], {(d["product"], d["period"]): d["units"] for d in t["demand"]}
    made: dict[Any, list[Any]] = {key: [] for key in units}
    periods = sorted({period for _, period in units})
    for m in t["machine"]:
        run = {key: h.addBinary(price["setup_cost"]) for key in units}
        for p, period in units:
            start, make = h.addBinary(price["startup_cost"]), h.addVariable()
            h.addConstr(start >= run[p, period] - run.get((p, period - 1), 0))
            h.addConstr(make + m["start_time"] * start <= m["capacity"] * run[p, period])
            made[p, period].append(make)
        for period in periods:
            h.addConstr(h.qsum(v for (_, at), v in run.items() if at == period) <= 1)
    for product in t["product"]:
        before: Any = 0
        for period in periods:
            key = (product["product"], period)
            hold, back = h.addVariable(0, INF, product["hold_cost"]), h.addVariable(0, INF, product["back_cost"])
            h.addConstr(h.qsum(made[key]) + before - hold + back == units[key])
            before = hold - back
    h.minimize()


def flowshop(h: Any, t: Tables) -> None:
    hours = {(row["job"], row["machine"]): row["hours"] for row in t["takes"]}
    jobs, machines = [row["job"] for row in t["job"]], [row["machine"] for row in t["machine"]]
    place = {(j, p): h.addBinary() for j in jobs for p in jobs}
    start = {(m, p): h.addVariable() for m in machines for p in jobs}
    ends = {(m, p): start[m, p] + h.qsum(hours[j, m] * place[j, p] for j in jobs) for m in machines for p in jobs}
    for j in jobs:
        h.addConstr(h.qsum(place[j, p] for p in jobs) == 1)
        h.addConstr(h.qsum(place[p, j] for p in jobs) == 1)
    for m, p in start:
        for later in ((m + 1, p), (m, p + 1)):
            if later in start:
                h.addConstr(ends[m, p] <= start[later])
    h.minimize(ends[machines[-1], jobs[-1]])


def commitment(h: Any, t: Tables) -> None:
    before: dict[Any, Any] = {g["type"]: g["before"] for g in t["generator"]}
    for period in t["period"]:
        given, could = [], []
        for g in t["generator"]:
            run, starts = (
                h.addVariable(0, g["most"], g["base_cost"], WHOLE),
                h.addVariable(0, INF, g["start_cost"], WHOLE),
            )
            give = h.addVariable(0, INF, g["mw_cost"])
            h.addConstr(give >= g["low"] * run)
            h.addConstr(give <= g["high"] * run)
            h.addConstr(run - before[g["type"]] <= starts)
            given.append(give)
            could.append(g["high"] * run)
            before[g["type"]] = run
        h.addConstr(h.qsum(given) >= period["mw"])
        h.addConstr(h.qsum(could) >= 1.15 * period["mw"])
    h.minimize()


def team(h: Any, t: Tables) -> float:
    level = {(row["person"], row["skill"]): row["level"] for row in t["has"]}
    persons, projects = [row["person"] for row in t["person"]], [row["project"] for row in t["project"]]

    def shortage(of: Sequence[Any]) -> float:
        def attained(project: Any, skill: Any) -> float:
            return max((level[p, skill] for p, q in zip(persons, of, strict=True) if q == project), default=0)

        return float(max(need["level"] - attained(need["project"], need["skill"]) for need in t["needs"]))

    return float(min(shortage(of) for of in itertools.product(projects, repeat=len(persons))))


Program = Callable[[Any, Any], float | None]


def optimum(program: Program, data: Any) -> float | None:
    """The optimum; None if nothing fits."""
    h = highspy.Highs()  # type: ignore[no-untyped-call]
    h.silent()
    h.setOptionValue("mip_rel_gap", 0.0)
    found = program(h, data)
    if found is not None:
        return found
    return h.getObjectiveValue() if h.getModelStatus() == highspy.HighsModelStatus.kOptimal else None
