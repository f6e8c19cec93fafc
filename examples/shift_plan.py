"""How many people should begin their week on which day? Amounts, found by the solver.

python examples/shift_plan.py [FOLDER]

Everybody works five days in a row, then has two off. Each day needs its people; a week that begins on a weekend costs
more. Needs the extra `solver`.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import decisor

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NEEDS = (5, 4, 4, 5, 6, 6, 3)
WAGES = (800, 800, 830, 860, 860, 860, 830)
"""EUR for a week that begins on that day."""

MODEL = """
format = 3
decide = "how many people begin their week on which day"

[unknown.begin]
per   = "SELECT day, wage FROM week ORDER BY number"
kind  = "integer"
upper = "8"
unit  = "person"

[measure.wages]
goal = "min"
unit = "EUR"
sql  = "SELECT sum(amount * wage) FROM begin"

[rule.enough]
text    = "Every day has its people."
rows    = '''SELECT works.day AS day, any_value(week.needs) AS needs, sum(begin.amount) AS people
             FROM begin JOIN works ON works.first = begin.day JOIN week ON week.day = works.day
             GROUP BY works.day'''
must    = "people >= needs"
because = "{day} has {people} of {needs}"
"""


def write_data(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    works = [(first, DAYS[(n + later) % 7]) for n, first in enumerate(DAYS) for later in range(5)]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE week (number INTEGER, day TEXT, needs INTEGER, wage INTEGER)")
        database.executemany("INSERT INTO week VALUES (?, ?, ?, ?)", zip(range(7), DAYS, NEEDS, WAGES, strict=True))
        database.execute("CREATE TABLE works (first TEXT, day TEXT)")
        database.executemany("INSERT INTO works VALUES (?, ?)", works)


def decide(folder: Path) -> decisor.Result:
    write_data(folder / "shifts.db")
    (folder / "model.toml").write_text(MODEL)
    return decisor.ask(
        "How many people should begin on which day?",
        db=str(folder / "shifts.db"),
        model=str(folder / "model.toml"),
        llm="none",
    )


if __name__ == "__main__":
    print(decide(Path(sys.argv[1] if len(sys.argv) > 1 else "shift_plan")))
