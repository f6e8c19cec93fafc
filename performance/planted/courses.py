"""Which courses to add: margins of five years discounted, rooms, and ratings by seats."""

from __future__ import annotations

import random
from collections.abc import Sequence

from planted.world import Rows, World

MODEL = '''
format = 3
decide = "which one to three courses to add"
choice.pick.rows = "SELECT course FROM course WHERE NOT runs"
choice.pick.take   = "1-3"
change = "UPDATE course SET runs = true WHERE course IN (SELECT course FROM pick)"
[measure.profit]
goal = "max"
unit = "EUR"
sql  = """SELECT sum((c.seats * s.sold / 100 * c.price - c.wage) / pow(1.06, s.year)) - any_value(x.setup)
          FROM course c JOIN sale s ON s.course = c.course,
          (SELECT sum(setup) AS setup FROM course WHERE course IN (SELECT course FROM pick)) x WHERE c.runs"""
[rule.rooms]
text   = "All courses together need at most 30 hours of rooms in a week."
absent = "SELECT sum(hours) AS hours FROM course WHERE runs HAVING sum(hours) > 30"
because    = "{hours} hours"
[rule.rating]
text   = "On average a seat is rated at least 3.4."
absent = """SELECT sum(seats * rating) / sum(seats) AS rating FROM course WHERE runs
            HAVING sum(seats * rating) / sum(seats) < 3.4"""
[input]
"course.price"  = { unit = "EUR/seat", raises = "profit" }
"course.wage"   = { unit = "EUR", lowers = "profit" }
"course.setup"  = { unit = "EUR", lowers = "profit" }
"course.seats"  = { unit = "seat", raises = "profit" }
"sale.sold"     = { unit = "%", raises = "profit", spread = "10 % each" }
"course.hours"  = { unit = "hour" }
"course.rating" = { unit = "1" }
'''


def rows(seed: int) -> Rows:
    chance = random.Random(seed)
    courses = [
        {
            "course": f"c{at}",
            "runs": at < 3,
            "seats": chance.choice([8, 15, 40, 60]),
            "hours": chance.randint(3, 8),
            "price": round(chance.uniform(90, 160), 1),
            "wage": round(chance.uniform(500, 900), 1),
            "setup": round(chance.uniform(400, 3000), 1),
            "rating": round(chance.uniform(2.6, 4.9), 1),
        }
        for at in range(11)
    ]
    sales = [
        {"course": one["course"], "year": year, "sold": chance.randint(45, 98)}
        for one in courses
        for year in range(1, 6)
    ]
    return {"course": courses, "sale": sales}


def truth(rows: Rows, choice: Sequence[str]) -> tuple[float, list[str]]:
    running = [one for one in rows["course"] if one["runs"] or one["course"] in choice]
    profit = -sum(one["setup"] for one in rows["course"] if one["course"] in choice)
    for course in running:
        for sale in rows["sale"]:
            if sale["course"] == course["course"]:
                margin = course["seats"] * sale["sold"] / 100 * course["price"] - course["wage"]
                profit += margin / 1.06 ** sale["year"]
    rating = sum(one["seats"] * one["rating"] for one in running) / sum(one["seats"] for one in running)
    rooms = ["rooms"] if sum(one["hours"] for one in running) > 30 else []
    return profit, rooms + (["rating"] if rating < 3.4 else [])


COURSES = World(
    "courses",
    rows,
    MODEL,
    "profit",
    truth,
    [
        (
            """SELECT sum((c.seats * s.sold / 100 * c.price - c.wage) / pow(1.06, s.year)) - any_value(x.setup)
          FROM course c JOIN sale s ON s.course = c.course,
          (SELECT sum(setup) AS setup FROM course WHERE course IN (SELECT course FROM pick)) x WHERE c.runs""",
            """SELECT (SELECT sum(c.price * c.seats * s.sold * 0.01 * 1.06 ** -s.year) - sum(c.wage * 1.06 ** -s.year)
          FROM sale s JOIN course c ON c.course = s.course WHERE c.runs)
          - (SELECT sum(o.setup) FROM course o JOIN pick p ON p.course = o.course)""",
        ),
        ("HAVING sum(seats * rating) / sum(seats) < 3.4", "HAVING sum(seats * (rating - 3.4)) < 0"),
    ],
    {
        "wrong aggregate": ("(SELECT sum(setup) AS setup", "(SELECT max(setup) AS setup"),
        "counted twice": ("- any_value(x.setup)", "- sum(x.setup)"),
        "unit or constant": ("s.sold / 100 *", "s.sold *"),
        "term missing": (" - c.wage)", ")"),
        "wrong column or sign": ("- any_value(x.setup)", "+ any_value(x.setup)"),
        "rule inverted or off": ("WHERE runs HAVING sum(hours) > 30", "HAVING sum(hours) > 30"),
        "one term of a series": ("ON s.course = c.course,", "ON s.course = c.course AND s.year = 1,"),
        "plain average": ("HAVING sum(seats * rating) / sum(seats) < 3.4", "HAVING avg(rating) < 3.4"),
    },
)
