"""Which two vans to sell: every job by the cheapest van that carries it, over three years, and emissions by tons."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

from planted.world import Rows, World

CARRIED = """(SELECT j.job, any_value(j.km) AS km, any_value(j.tons) AS tons, min(v.per_km) AS per_km
          FROM job j JOIN van v ON v.room >= j.tons GROUP BY j.job)"""
MODEL = f'''
format = 3
decide = "the two vans to sell"
choice.pick.rows = "SELECT van FROM van"
choice.pick.take   = 2
change = "DELETE FROM van WHERE van IN (SELECT van FROM pick)"
[measure.cost]
goal = "min"
unit = "EUR"
sql  = """SELECT (SELECT sum(fixed) FROM van) * 3 + (SELECT sum(growth) FROM year) * (SELECT sum(km * per_km)
          FROM {CARRIED})"""
[rule.carried]
text   = "Every job is carried by a van that has room for it."
absent = "SELECT job, tons FROM job WHERE tons > (SELECT max(room) FROM van)"
because    = "{{job}} has {{tons}} tons"
[rule.clean]
text   = "The vans that stay have at most 190 grams on average, weighted by their room."
absent = "SELECT sum(room * grams) / sum(room) AS grams FROM van HAVING sum(room * grams) / sum(room) > 190"
[input]
"van.per_km" = {{ unit = "EUR/km", raises = "cost", spread = "10 % together" }}
"van.fixed"  = {{ unit = "EUR", raises = "cost" }}
"job.km"     = {{ unit = "km", raises = "cost", spread = "10 % each" }}
"year.growth" = {{ unit = "1", raises = "cost" }}
"van.grams"  = {{ unit = "gram" }}
'''


def rows(seed: int) -> Rows:
    """The first that allow some pairs of vans and not others: where a rule rules out all, a model of it is complained
    about, and rightly."""
    chance = random.Random(seed)
    while True:
        some = draw(chance)
        names = [one["van"] for one in some["van"]]
        clean = [not truth(some, pair)[1] for pair in combinations(names, 2)]
        if any(clean) and not all(clean):
            return some


def draw(chance: random.Random) -> Rows:
    vans = [
        {
            "van": f"v{at}",
            "room": chance.choice([1.0, 2.0, 3.5, 5.0]),
            "per_km": round(chance.uniform(0.4, 1.4), 3),
            "fixed": round(chance.uniform(900, 2900), 1),
            "grams": chance.randint(120, 260),
        }
        for at in range(8)
    ]
    vans += [{"van": "v8", "room": 6.0, "per_km": 1.7, "fixed": 3100.5, "grams": 240}]
    jobs = [
        {"job": at, "km": chance.randint(300, 4000), "tons": round(chance.uniform(0.2, 3.4), 1)} for at in range(30)
    ] + [{"job": 30, "km": 500, "tons": 5.5}]
    return {"van": vans, "job": jobs, "year": [{"year": at, "growth": round(1.04**at, 4)} for at in range(3)]}


def truth(rows: Rows, choice: Sequence[str]) -> tuple[float, list[str]]:
    vans = [one for one in rows["van"] if one["van"] not in choice]
    cost = 3 * sum(one["fixed"] for one in vans)
    broken = []
    for job in rows["job"]:
        fit = [one["per_km"] for one in vans if one["room"] >= job["tons"]]
        if not fit:
            broken = ["carried"]
            continue
        cost += sum(year["growth"] for year in rows["year"]) * job["km"] * min(fit)
    grams = sum(one["room"] * one["grams"] for one in vans) / sum(one["room"] for one in vans)
    return cost, broken + (["clean"] if grams > 190 else [])


VANS = World(
    "vans",
    rows,
    MODEL,
    "cost",
    truth,
    [
        (
            "(SELECT sum(fixed) FROM van) * 3 + (SELECT sum(growth) FROM year) * (SELECT sum(km * per_km)\n          "
            f"FROM {CARRIED})",
            "sum(3 * v.fixed) + "
            """(SELECT sum(y.growth * j.km * (SELECT min(w.per_km) FROM van w WHERE w.room >= j.tons))
          FROM job j, year y) FROM van v""",
        ),
        ("HAVING sum(room * grams) / sum(room) > 190", "HAVING sum(room * grams) > 190 * sum(room)"),
    ],
    {
        "wrong aggregate": ("min(v.per_km)", "avg(v.per_km)"),
        "counted twice": (
            "FROM job j JOIN van v ON v.room >= j.tons GROUP BY j.job)",
            "FROM job j JOIN van v ON v.room >= j.tons GROUP BY j.job, v.room)",
        ),
        "unit or constant": ("FROM van) * 3", "FROM van) * 36"),
        "term missing": ("(SELECT sum(fixed) FROM van) * 3 + ", ""),
        "wrong column or sign": ("sum(km * per_km)", "sum(tons * per_km)"),
        "rule inverted or off": ("(SELECT max(room) FROM van)", "(SELECT sum(room) FROM van)"),
        "one term of a series": ("(SELECT sum(growth) FROM year)", "(SELECT growth FROM year WHERE year = 0)"),
        "plain average": ("HAVING sum(room * grams) / sum(room) > 190", "HAVING avg(grams) > 190"),
    },
)
