"""Which energy tariff to take: a rise each quarter, day and night, and grams of CO2 by source."""

from __future__ import annotations

import random
from collections.abc import Sequence

from planted.world import Rows, World

MODEL = '''
format = 3
decide = "which energy tariff to take for a year"
choice.pick.rows = "SELECT tariff FROM tariff"
[measure.bill]
goal = "min"
unit = "EUR"
sql  = """SELECT sum(t.base + (u.day_kwh * t.day_cent + u.night_kwh * t.night_cent) / 100
                 * (1 + t.rise / 100) ** ((u.month - 1) // 3))
          FROM tariff t, use u WHERE t.tariff = (SELECT tariff FROM pick)"""
[rule.green]
text   = "The power of the tariff has at most 300 grams of CO2 on average, by the shares of its sources."
absent = """SELECT sum(m.share * s.grams) / sum(m.share) AS grams FROM mix m JOIN source s ON s.source = m.source
            WHERE m.tariff = (SELECT tariff FROM pick) HAVING sum(m.share * s.grams) / sum(m.share) > 300"""
because    = "{grams} grams"
[rule.term]
text   = "The contract lasts at most 24 months."
absent = "SELECT months FROM tariff WHERE tariff = (SELECT tariff FROM pick) AND months > 24"
[input]
"tariff.base"       = { unit = "EUR", raises = "bill" }
"tariff.day_cent"   = { unit = "cent/kWh", raises = "bill", spread = "5 % each" }
"tariff.night_cent" = { unit = "cent/kWh", raises = "bill", spread = "5 % each" }
"tariff.rise"       = { unit = "%", raises = "bill" }
"use.day_kwh"       = { unit = "kWh", raises = "bill", spread = "10 % together" }
"use.night_kwh"     = { unit = "kWh", raises = "bill", spread = "10 % together" }
"source.grams"      = { unit = "gram" }
'''


def rows(seed: int) -> Rows:
    chance = random.Random(seed)
    tariffs = [
        {
            "tariff": f"t{at:02}",
            "base": round(chance.uniform(5, 15), 2),
            "rise": chance.choice([0.5, 1.5, 3.0]),
            "day_cent": round(chance.uniform(26, 38), 2),
            "night_cent": round(chance.uniform(18, 29), 2),
            "months": chance.choice([12, 24, 36]),
        }
        for at in range(20)
    ]
    mixes = [
        {"tariff": one["tariff"], "source": source, "share": share}
        for one in tariffs
        for source, share in zip(
            ("coal", "gas", "wind"), chance.choice([(55, 15, 30), (10, 20, 70), (25, 60, 15)]), strict=True
        )
    ]
    uses = [
        {"month": at, "day_kwh": chance.randint(120, 400), "night_kwh": chance.randint(80, 350)} for at in range(1, 13)
    ]
    grams = [("coal", 820 + seed), ("gas", 410), ("wind", 12)]
    return {
        "tariff": tariffs,
        "mix": mixes,
        "use": uses,
        "source": [{"source": name, "grams": gram} for name, gram in grams],
    }


def truth(rows: Rows, choice: Sequence[str]) -> tuple[float, list[str]]:
    (tariff,) = [one for one in rows["tariff"] if one["tariff"] == choice[0]]
    bill = 0.0
    for use in rows["use"]:
        quarter = (use["month"] - 1) // 3
        energy = use["day_kwh"] * tariff["day_cent"] + use["night_kwh"] * tariff["night_cent"]
        bill += tariff["base"] + energy / 100 * (1 + tariff["rise"] / 100) ** quarter
    grams = {one["source"]: one["grams"] for one in rows["source"]}
    mix = [one for one in rows["mix"] if one["tariff"] == choice[0]]
    average = sum(one["share"] * grams[one["source"]] for one in mix) / sum(one["share"] for one in mix)
    return bill, (["green"] if average > 300 else []) + (["term"] if tariff["months"] > 24 else [])


TARIFFS = World(
    "tariffs",
    rows,
    MODEL,
    "bill",
    truth,
    [
        (
            """SELECT sum(t.base + (u.day_kwh * t.day_cent + u.night_kwh * t.night_cent) / 100
                 * (1 + t.rise / 100) ** ((u.month - 1) // 3))
          FROM tariff t, use u WHERE t.tariff = (SELECT tariff FROM pick)""",
            """SELECT 12 * any_value(base) + sum(day_cent * kwh + night_cent * night) / 100.0 FROM
          (SELECT t.base, t.day_cent, t.night_cent, u.day_kwh * pow(1 + t.rise / 100, floor((u.month - 1) / 3)) AS kwh,
           u.night_kwh * pow(1 + t.rise / 100, floor((u.month - 1) / 3)) AS night
           FROM tariff t, use u WHERE t.tariff = (SELECT tariff FROM pick))""",
        ),
        ("HAVING sum(m.share * s.grams) / sum(m.share) > 300", "HAVING sum(m.share * (s.grams - 300)) > 0"),
    ],
    {
        "wrong aggregate": ("SELECT sum(t.base", "SELECT avg(t.base"),
        "counted twice": (
            "FROM tariff t, use u WHERE t.tariff",
            "FROM tariff t JOIN mix m ON m.tariff = t.tariff, use u WHERE t.tariff",
        ),
        "unit or constant": ("u.night_kwh * t.night_cent) / 100", "u.night_kwh * t.night_cent)"),
        "term missing": ("t.base + ", ""),
        "wrong column or sign": ("u.night_kwh * t.night_cent", "u.night_kwh * t.day_cent"),
        "rule inverted or off": ("months > 24", "months >= 24"),
        "one term of a series": ("** ((u.month - 1) // 3)", "** 1"),
        "plain average": ("HAVING sum(m.share * s.grams) / sum(m.share) > 300", "HAVING avg(s.grams) > 300"),
    },
)
