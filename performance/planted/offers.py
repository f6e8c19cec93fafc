"""Which supplier's offer to take: a minimum each month, a currency, discounted payments, and days by port."""

from __future__ import annotations

import random
from collections.abc import Sequence

from planted.world import Rows, World

MODEL = '''
format = 3
decide = "which supplier's offer to take"
choice.pick.rows = "SELECT name FROM offer"
[measure.cost]
goal = "min"
unit = "EUR"
sql  = """SELECT o.fee * r.eur + (SELECT sum(greatest(n.units, o.minimum) * o.price * r.eur / 1.01 ** n.month)
          FROM need n) FROM offer o JOIN rate r ON r.currency = o.currency WHERE o.name = (SELECT name FROM pick)"""
[rule.days]
text   = "On average a unit is under way for at most 20 days, weighted by the shares of the ports."
absent = """SELECT sum(share * days) / sum(share) AS days FROM leg WHERE offer = (SELECT name FROM pick)
            HAVING sum(share * days) / sum(share) > 20"""
because    = "{days} days"
[rule.most]
text   = "No month may need more than the supplier can deliver."
absent = "SELECT month, units FROM need WHERE units > (SELECT most FROM offer WHERE name = (SELECT name FROM pick))"
[input]
"offer.price" = { unit = "EUR/piece", raises = "cost", spread = "5 % each" }
"offer.fee"   = { unit = "EUR", raises = "cost" }
"need.units"  = { unit = "piece", raises = "cost", spread = "10 % together" }
"rate.eur"    = { unit = "1", raises = "cost" }
"leg.days"    = { unit = "day" }
"leg.share"   = { unit = "1" }
'''


def rows(seed: int) -> Rows:
    chance = random.Random(seed)
    offers = [
        {
            "name": f"s{at:02}",
            "price": round(chance.uniform(3, 5), 2),
            "fee": round(chance.uniform(200, 900), 1),
            "minimum": chance.choice([0, 80, 150]),
            "most": chance.choice([160, 230, 260, 300]),
            "currency": chance.choice(["EUR", "USD", "PLN"]),
        }
        for at in range(16)
    ]
    legs = [
        {"offer": one["name"], "port": port, "share": share, "days": chance.randint(8, 38)}
        for one in offers
        for port, share in zip("abc", chance.choice([(70, 20, 10), (50, 45, 5), (10, 15, 75)]), strict=True)
    ]
    return {
        "offer": offers,
        "leg": legs,
        "rate": [{"currency": name, "eur": eur} for name, eur in (("EUR", 1.0), ("USD", 0.92), ("PLN", 1.15))],
        "need": [{"month": at, "units": chance.randint(60, 220)} for at in range(1, 13)],
    }


def truth(rows: Rows, choice: Sequence[str]) -> tuple[float, list[str]]:
    (offer,) = [one for one in rows["offer"] if one["name"] == choice[0]]
    (eur,) = [one["eur"] for one in rows["rate"] if one["currency"] == offer["currency"]]
    cost = offer["fee"] * eur
    for need in rows["need"]:
        cost += max(need["units"], offer["minimum"]) * offer["price"] * eur / 1.01 ** need["month"]
    legs = [one for one in rows["leg"] if one["offer"] == choice[0]]
    days = sum(one["share"] * one["days"] for one in legs) / sum(one["share"] for one in legs)
    late = ["days"] if days > 20 else []
    return cost, late + (["most"] if max(one["units"] for one in rows["need"]) > offer["most"] else [])


OFFERS = World(
    "offers",
    rows,
    MODEL,
    "cost",
    truth,
    [
        (
            """SELECT o.fee * r.eur + (SELECT sum(greatest(n.units, o.minimum) * o.price * r.eur / 1.01 ** n.month)
          FROM need n) FROM offer o JOIN rate r ON r.currency = o.currency WHERE o.name = (SELECT name FROM pick)""",
            "SELECT any_value(r.eur) * (any_value(o.fee) + "
            """sum(CASE WHEN n.units < o.minimum THEN o.minimum ELSE n.units END
          * o.price * pow(1.01, -n.month))) FROM need n, offer o, rate r
          WHERE r.currency = o.currency AND o.name = (SELECT name FROM pick)""",
        ),
        ("HAVING sum(share * days) / sum(share) > 20", "HAVING sum(share * days) > 20 * sum(share)"),
    ],
    {
        "wrong aggregate": ("sum(greatest(n.units", "max(greatest(n.units"),
        "counted twice": ("FROM need n) FROM offer", "FROM need n, rate x) FROM offer"),
        "unit or constant": ("o.price * r.eur /", "o.price /"),
        "term missing": ("o.fee * r.eur + ", ""),
        "wrong column or sign": ("1.01 ** n.month", "1.01 ** -n.month"),
        "rule inverted or off": ("units > (SELECT most", "units > (SELECT minimum"),
        "one term of a series": ("FROM need n)", "FROM need n WHERE n.month = 1)"),
        "plain average": ("HAVING sum(share * days) / sum(share) > 20", "HAVING avg(days) > 20"),
    },
)
