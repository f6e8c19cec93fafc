"""Rows of the problems in words, read from their texts when they are needed: no row of them is kept here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from answers import Tables

Row = Mapping[str, Any]


def read_numbers(text: str) -> list[int | float]:
    """The numbers in digits, in the order of the text."""
    found = re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))
    return [float(n) if "." in n else int(n) for n in found]


def rows(pattern: str, text: str, *columns: str) -> list[Row]:
    """One row for each match, with its groups as numbers."""
    return [dict(zip(columns, map(int, match), strict=True)) for match in re.findall(pattern, text)]


def grouped(head: str, cell: str, text: str, *columns: str) -> list[Row]:
    """A row for each ``cell``, whose first column is the number of the last ``head`` before it."""
    found: list[Row] = []
    at = 0
    for match in re.finditer(f"(?:{head})|{cell}", text):
        if match[1] is not None:
            at = int(match[1])
        if match[2] is not None:
            found.append(dict(zip(columns, (at, *map(int, match.groups()[1:])), strict=True)))
    return found


def part(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


def read_flow(text: str) -> Tables:
    nets = re.findall(r"City (\d+) has a (net demand of|net supply of|balanced)(?: (\d+))?", text)
    rooms = dict(re.findall(r"City (\d+) is (\d+) units", part(text, "storage capacity for", "Your task")))
    city: list[Row] = [
        {
            "city": int(number),
            "demand": int(units or 0) * (-1 if "supply" in kind else 1),
            "room": int(rooms[number]) if rooms else None,
        }
        for number, kind, units in nets
    ]
    links = rows(
        r"[Ff]rom City (\d+) to City (\d+)\D+(\d+), with a capacity of (\d+)", text, "a", "b", "cost", "capacity"
    )
    if not links:
        legs = [r"[Ff]rom City (\d+)", r"to City (\d+) is (\d+)"]
        costs = grouped(*legs, part(text, "The cost of", "The maximum capacity"), "a", "b", "cost")
        most = grouped(*legs, part(text, "The maximum capacity", "The maximum storage"), "a", "b", "capacity")
        capacity = {(row["a"], row["b"]): row["capacity"] for row in most}
        links = [{**row, "capacity": capacity[row["a"], row["b"]]} for row in costs]
    return {"city": city, "link": links}


def read_dispersion(text: str) -> Tables:
    distance = rows(r"Node (\d+) and Node (\d+): (\d+)", text, "a", "b", "weight")
    return {"node": [{"node": node} for node in sorted({row["a"] for row in distance})], "distance": distance}


def read_tour(text: str) -> Tables:
    return {"leg": grouped(r"From City (\d+)", r"[Tt]o City (\d+)(?:: | costs )(\d+)", text, "a", "b", "cost")}


def read_assignment(text: str) -> Tables:
    most = grouped(
        r"Employee (\d+) can contribute up to", r"(\d+) hours to Project (\d+)", text, "employee", "most", "project"
    )
    costs = grouped(
        r"assigning Employee (\d+)",
        r"to Project (\d+) is (\d+)",
        part(text, "The cost of", "objective"),
        "employee",
        "project",
        "cost",
    )
    cost = {(row["employee"], row["project"]): row["cost"] for row in costs}
    return {
        "employee": rows(r"Employee (\d+) must contribute exactly (\d+) hour", text, "employee", "hours"),
        "project": rows(r"Project (\d+) requires exactly (\d+) hours", text, "project", "hours"),
        "fit": [{**row, "cost": cost[row["employee"], row["project"]]} for row in most],
    }


def read_job_shop(text: str) -> Tables:
    ops = grouped(r"Job (\d+) has", r"Operation (\d+) (?:with duration|takes) (\d+)", text, "job", "op", "hours")
    ops = [row for at, row in enumerate(ops) if (row["job"], row["op"]) not in {(r["job"], r["op"]) for r in ops[:at]}]
    clash = ("op_a", "job_a", "op_b", "job_b")
    if "are assigned to the same machine, so" in text:
        pairs = part(text, "share the same machine and cannot", "To enforce")
        return {
            "op": ops,
            "clash": rows(r"Operation (\d+) of Job (\d+) and Operation (\d+) of Job (\d+)", pairs, *clash),
        }
    machines = rows(r"Operation (\d+) of Job (\d+): Machine (\d+)", text, "op", "job", "machine")
    for sentence in text.split("."):
        if match := re.search(r"(?:share|on) machine M(\d+)", sentence):
            machines += [
                {**row, "machine": int(match[1])}
                for row in rows(r"Operation (\d+) of Job (\d+)", sentence, "op", "job")
            ]
    ops = ops or [{"job": row["job"], "op": row["op"], "hours": 1} for row in machines]
    return {
        "op": ops,
        "clash": [
            dict(zip(clash, (a["op"], a["job"], b["op"], b["job"]), strict=True))
            for at, a in enumerate(machines)
            for b in machines[at + 1 :]
            if a["machine"] == b["machine"]
        ],
    }


def read_landing(text: str) -> Tables:
    text = text.replace("\\$", "")
    columns = ("aircraft", "target", "earliest", "latest", "early_cost", "late_cost")
    own = r"Aircraft (\d+) has a target landing time of (\d+)\D+(\d+)\D+(\d+)\D+(\d+) per minute\D+(\d+)"
    aircraft = rows(own, text, *columns)
    if not aircraft:

        def series(pattern: str) -> list[int | float]:
            match = re.search(pattern, text)
            return read_numbers(match[1].replace(" and", "")) if match else []

        listed = r"((?:\d+,? (?:and )?){5})"
        earliest = series(rf"earliest landing times of {listed}") or [
            int(a) for a, _ in re.findall(r"aircraft \d between (\d+) and (\d+)", text)
        ]
        latest = [int(b) for _, b in re.findall(r"aircraft \d between (\d+) and (\d+)", text)] or [100] * 5
        early = series(rf"landing early are {listed}") or series(rf"penalties are {listed}per minute early")
        late = series(rf"landing late are {listed}") or series(rf"early, and {listed}per minute late")
        target = series(rf"target landing times are {listed}")
        aircraft = [
            dict(zip(columns, (n, *cells), strict=True))
            for n, cells in enumerate(zip(target, earliest, latest, early, late, strict=True))
        ]
    gap = r"between aircraft (\d) and (\d), (\d+) units if aircraft \d lands first or (\d+) units"
    pairs = rows(gap, text, "a", "b", "gap_ab", "gap_ba")
    if not pairs:
        both = rows(r"(\d+) minutes between Aircraft (\d) and Aircraft (\d)", text, "gap_ab", "a", "b")
        pairs = [{**row, "gap_ba": row["gap_ab"]} for row in both]
    return {"aircraft": aircraft, "pair": pairs}


def read_lots(text: str) -> Tables:
    setup, startup, *rest = (float(n) for n in re.findall(r"\d+\.\d{4,}", text))
    hold, back, rest = rest[:2], rest[2:4], rest[4:]
    periods = 4 if "Period 3" in text else 3
    asked, rest = rest[: 2 * periods], rest[2 * periods :]
    times = rest[2:] or [0.0, 0.0]
    return {
        "price": [{"setup_cost": setup, "startup_cost": startup}],
        "product": [{"product": p, "hold_cost": hold[p], "back_cost": back[p]} for p in range(2)],
        "demand": [
            {"product": p, "period": t, "units": asked[p * periods + t]} for p in range(2) for t in range(periods)
        ],
        "machine": [{"machine": m, "capacity": rest[m], "start_time": times[m]} for m in range(2)],
    }


def read_flow_shop(text: str) -> Tables:
    takes = grouped(r"Job (\d+) takes", r"(\d+) (?:units|hours) on Machine (\d+)", text, "job", "hours", "machine")
    return {
        "takes": takes,
        "job": [{"job": n} for n in sorted({row["job"] for row in takes})],
        "machine": [{"machine": n} for n in sorted({row["machine"] for row in takes})],
    }


def read_commitment(text: str) -> Tables:
    limits = rows(r"Type (\d): Minimum (\d+) MW, Maximum (\d+) MW", text, "type", "low", "high")
    most = dict(re.findall(r"Type (\d): Maximum (\d+) generator", text))
    mw_costs = {kind: cost for cost, kind in re.findall(r"(\d+) units per MW for Type (\d)", text)}
    base = re.search(r"fixed cost of (\d+) units", text)
    starts = re.search(r"cost of (\d+) units for Type 0 and (\d+) units for Types 1 and 2", text)
    assert base and starts
    return {
        "generator": [
            {
                **row,
                "most": int(most[str(row["type"])]),
                "mw_cost": int(mw_costs[str(row["type"])]),
                "base_cost": int(base[1]),
                "start_cost": int(starts[1] if row["type"] == 0 else starts[2]),
                "before": 2 if row["type"] == 2 else 0,
            }
            for row in limits
        ],
        "period": rows(r"Period (\d): (\d+) MW", part(text, "Demand Satisfaction", "Capacity Limits"), "period", "mw"),
    }


def read_team(text: str) -> Tables:
    level = r"Skill (\d) \(Level (\d)\)"
    has = grouped(
        r"Person (\d) has", level, part(text, "levels are as follows", "Project skill"), "person", "skill", "level"
    )
    needs = grouped(
        r"Project (\d) requires", level, part(text, "Project skill", "The objective"), "project", "skill", "level"
    )
    return {
        "has": has,
        "needs": needs,
        "person": [{"person": n} for n in sorted({row["person"] for row in has})],
        "project": [{"project": n} for n in sorted({row["project"] for row in needs})],
    }


KEYS = {
    *("a", "b", "city", "node", "aircraft", "machine", "product", "period", "type"),
    *("job", "op", "job_a", "op_a", "job_b", "op_b", "employee", "project", "person", "skill"),
}
"""Columns that tell rows apart; in the other columns are figures."""
READERS: Mapping[str, tuple[Callable[[str], Tables], Sequence[int]]] = {
    "flow": (read_flow, (38, 54)),
    "dispersion": (read_dispersion, (40,)),
    "tour": (read_tour, (28, 91, 122)),
    "assignment": (read_assignment, (43,)),
    "jobshop": (read_job_shop, (3, 13, 118)),
    "lots": (read_lots, (66, 93, 120)),
    "landing": (read_landing, (39, 50, 107)),
    "flowshop": (read_flow_shop, (45, 126)),
    "commitment": (read_commitment, (110,)),
    "team": (read_team, (86,)),
}
"""Model -> its reader, and the numbers of OptMATH's problems that it takes."""
