"""Which supplier should we drop? CSV files, a decision model, no LLM.

python examples/supplier_to_drop.py [FOLDER]

Without a supplier, each part comes from the cheapest one that is left. What late deliveries cost goes away with the
supplier, unless the next one is late as well.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import decisor

OFFERS = (
    ("Acme", "bolt", 1.20), ("Acme", "nut", 0.45), ("Acme", "hinge", 3.90),
    ("Borealis", "bolt", 1.10), ("Borealis", "hinge", 4.40), ("Borealis", "spring", 2.05),
    ("Cobalt", "nut", 0.50), ("Cobalt", "spring", 1.95), ("Cobalt", "gasket", 0.80),
    ("Dorn", "bolt", 1.25), ("Dorn", "gasket", 0.95), ("Dorn", "plate", 6.10),
)  # fmt: skip
NEEDS = {"bolt": 40_000, "nut": 55_000, "hinge": 9_000, "spring": 12_000, "gasket": 20_000, "plate": 2_500}
LATE = {"Acme": 3, "Borealis": 31, "Cobalt": 9, "Dorn": 38}
"""Deliveries that were late last year."""

MODEL = """
format = 3
decide = "the supplier to drop"

[choice.pick]
rows = "SELECT supplier FROM late"

[table.left_offers]
says = "the offers that are left"
sql  = "SELECT * FROM offer WHERE supplier NOT IN (SELECT supplier FROM pick)"

[measure.cost]
goal = "min"
unit = "EUR a year"
part.parts  = '''SELECT sum(pieces * price)
                 FROM (SELECT part, min(price) AS price FROM left_offers GROUP BY part) JOIN need USING (part)'''
part.delays = "SELECT sum(deliveries) * 450 FROM late WHERE supplier NOT IN (SELECT supplier FROM pick)"

[rule.supply]
text   = "Every part keeps a supplier."
absent = "SELECT part FROM need WHERE part NOT IN (SELECT part FROM left_offers)"
because = "nobody else has the {part}"

[input]
"offer.price"     = { unit = "EUR", raises = "cost", spread = "5 % by supplier" }
"late.deliveries" = { unit = "delivery", raises = "cost", spread = "30 % each" }
"""


def write_data(folder: Path) -> None:
    tables = {
        "offer": [("supplier", "part", "price"), *OFFERS],
        "need": [("part", "pieces"), *NEEDS.items()],
        "late": [("supplier", "deliveries"), *LATE.items()],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)


def decide(folder: Path) -> decisor.Result:
    write_data(folder / "data")
    (folder / "model.toml").write_text(MODEL)
    return decisor.ask(
        "Which supplier should we drop?", db=str(folder / "data"), model=str(folder / "model.toml"), llm="none"
    )


if __name__ == "__main__":
    print(decide(Path(sys.argv[1] if len(sys.argv) > 1 else "supplier_to_drop")))
