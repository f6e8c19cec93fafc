"""Which crop on each field: yields by month of harvest, water, and nitrogen by hectare."""

from __future__ import annotations

import random
from collections.abc import Sequence

from planted.world import Rows, World

MODEL = '''
format = 3
decide = "which crop to grow on each field"
choice.pick.rows = "SELECT f.field, c.crop FROM field f, crop c ORDER BY f.field, c.crop"
choice.pick.take   = "one per field"
[measure.profit]
goal = "max"
unit = "EUR"
sql  = """SELECT sum(f.area * (h.income - c.cost - c.water * w.price)) FROM pick x JOIN field f ON f.field = x.field
          JOIN crop c ON c.crop = x.crop JOIN (SELECT crop, sum(tons * price) AS income FROM harvest GROUP BY crop) h
          ON h.crop = x.crop, water w"""
[rule.water]
text   = "All fields together take at most the water of the well."
absent = """SELECT sum(f.area * c.water) AS water FROM pick x JOIN field f ON f.field = x.field JOIN crop c
            ON c.crop = x.crop HAVING sum(f.area * c.water) > (SELECT well FROM water)"""
because    = "{water} of water"
[rule.nitrogen]
text   = "On average a hectare gets at most 130 kg of nitrogen."
absent = """SELECT sum(f.area * c.nitrogen) / sum(f.area) AS kg FROM pick x JOIN field f ON f.field = x.field
            JOIN crop c ON c.crop = x.crop HAVING sum(f.area * c.nitrogen) / sum(f.area) > 130"""
[input]
"harvest.price" = { unit = "EUR/ton", raises = "profit", spread = "15 % each" }
"harvest.tons"  = { unit = "ton", raises = "profit", spread = "10 % each" }
"crop.cost"     = { unit = "EUR/ha", lowers = "profit" }
"crop.water"    = { unit = "m3", lowers = "profit" }
"water.price"   = { unit = "EUR/m3", lowers = "profit" }
"field.area"    = { unit = "ha" }
"crop.nitrogen" = { unit = "kg" }
'''


def rows(seed: int) -> Rows:
    chance = random.Random(seed)
    fields = [
        {"field": name, "area": area} for name, area in (("east", 31.0), ("hill", 4.0), ("mill", 12.5), ("west", 7.0))
    ]
    crops = [
        {
            "crop": name,
            "cost": float(chance.randint(300, 900)),
            "water": chance.randint(1, 9) * 100,
            "nitrogen": nitrogen,
        }
        for name, nitrogen in (("beet", 120), ("kale", 220), ("maize", 180), ("oats", 70), ("peas", 20))
    ]
    harvests = [
        {
            "crop": one["crop"],
            "month": month,
            "tons": round(chance.uniform(0.5, 4), 2),
            "price": chance.randint(150, 320),
        }
        for one in crops
        for month in (7, 8, 9)
    ]
    return {
        "field": fields,
        "crop": crops,
        "harvest": harvests,
        "water": [{"price": 0.35, "well": 27_000 + 100 * seed}],
    }


def truth(rows: Rows, choice: Sequence[str]) -> tuple[float, list[str]]:
    area = {one["field"]: one["area"] for one in rows["field"]}
    crops = {one["crop"]: one for one in rows["crop"]}
    (water,) = rows["water"]
    profit = taken_water = nitrogen = 0.0
    for label in choice:
        field, crop = label.split()
        income = sum(one["tons"] * one["price"] for one in rows["harvest"] if one["crop"] == crop)
        profit += area[field] * (income - crops[crop]["cost"] - crops[crop]["water"] * water["price"])
        taken_water += area[field] * crops[crop]["water"]
        nitrogen += area[field] * crops[crop]["nitrogen"]
    broken = ["water"] if taken_water > water["well"] else []
    return profit, broken + (["nitrogen"] if nitrogen / sum(area.values()) > 130 else [])


CROPS = World(
    "crops",
    rows,
    MODEL,
    "profit",
    truth,
    [
        (
            "SELECT sum(f.area * (h.income - c.cost - c.water * w.price)) "
            """FROM pick x JOIN field f ON f.field = x.field
          JOIN crop c ON c.crop = x.crop JOIN (SELECT crop, sum(tons * price) AS income FROM harvest GROUP BY crop) h
          ON h.crop = x.crop, water w""",
            "SELECT (SELECT sum(f.area * h.tons * h.price) "
            """FROM pick x JOIN field f ON f.field = x.field JOIN harvest h
          ON h.crop = x.crop) - (SELECT sum(f.area * (c.cost + c.water * w.price)) FROM pick x JOIN field f
          ON f.field = x.field JOIN crop c ON c.crop = x.crop, water w)""",
        ),
        ("HAVING sum(f.area * c.nitrogen) / sum(f.area) > 130", "HAVING sum(f.area * (c.nitrogen - 130)) > 0"),
    ],
    {
        "wrong aggregate": ("sum(tons * price) AS income", "max(tons * price) AS income"),
        "counted twice": (
            "JOIN crop c ON c.crop = x.crop JOIN (SELECT",
            "JOIN crop c ON c.crop = x.crop JOIN harvest g ON g.crop = x.crop JOIN (SELECT",
        ),
        "unit or constant": ("sum(f.area * (h.income", "sum(f.area / 2.471 * (h.income"),
        "term missing": (" - c.water * w.price", ""),
        "wrong column or sign": ("h.income - c.cost -", "h.income + c.cost -"),
        "rule inverted or off": ("HAVING sum(f.area * c.water) >", "HAVING sum(c.water) >"),
        "one term of a series": ("FROM harvest GROUP BY crop", "FROM harvest WHERE month = 7 GROUP BY crop"),
        "plain average": ("HAVING sum(f.area * c.nitrogen) / sum(f.area) > 130", "HAVING avg(c.nitrogen) > 130"),
    },
)
