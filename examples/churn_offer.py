"""Which offer should each group of customers get, so that they stay? PostgreSQL, a decision model, no LLM.

python examples/churn_offer.py postgresql://USER@HOST/DATABASE

Writes the tables ``customer`` and ``offer`` into a schema of its own, ``churn_offer``, and replaces what is there.
Needs the extra `postgres`.
"""

from __future__ import annotations

import sys
from random import Random

import psycopg

import decisor

SEED = 11
GROUPS = (("family", 240, 42.0, 0.30), ("student", 310, 15.0, 0.45), ("business", 60, 130.0, 0.22))
"""Name, customers, margin in EUR a month, chance to leave within a year."""
OFFERS = (("none", 0.0, 0.0), ("month free", 1.0, 0.35), ("10 % off", 1.2, 0.40), ("two months free", 2.0, 0.62))
"""Name, cost in months of margin, share of those about to leave who stay."""
BUDGET = 22_000

MODEL = f"""
format = 3
decide = "the offer for each group of customers"

[parameter]
budget = {{ value = {BUDGET}, unit = "EUR" }}

[choice.give]
rows = "SELECT segment, offer FROM (SELECT DISTINCT segment FROM customer), offer"
take = "one per segment"

[table.effect]
says = "what each offer costs and keeps in a year"
sql  = '''SELECT segment, sum(margin * months) AS cost, sum(margin * 12 * chance * stays) AS kept
          FROM give JOIN customer USING (segment) JOIN offer USING (offer) GROUP BY segment'''

[measure.gain]
goal = "max"
unit = "EUR a year"
sql  = "SELECT sum(kept - cost) FROM effect"

[rule.budget]
text    = "All offers together keep to the budget."
rows    = "SELECT sum(cost) AS cost FROM effect"
must    = "cost <= $budget"
because = "they cost {{cost}}"

[input]
"customer.chance" = {{ raises = "gain", spread = "25 % by segment" }}
"offer.stays"     = {{ raises = "gain", spread = "20 % each" }}
"""


def generate_customers() -> list[tuple[int, str, float, float]]:
    """Return id, segment, margin and chance of each customer."""
    random = Random(SEED)
    rows = []
    for segment, count, margin, chance in GROUPS:
        for _ in range(count):
            # Only random(): its numbers are the same in every version of Python.
            rows.append((len(rows) + 1, segment, round(margin * (0.7 + 0.6 * random.random()), 2), chance))
    return rows


def write_data(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP SCHEMA IF EXISTS churn_offer CASCADE")
        database.execute("CREATE SCHEMA churn_offer")
        database.execute(
            "CREATE TABLE churn_offer.customer (id int PRIMARY KEY, segment text, margin float8, chance float8)"
        )
        database.execute("CREATE TABLE churn_offer.offer (offer text PRIMARY KEY, months float8, stays float8)")
        with database.cursor() as cursor:
            cursor.executemany("INSERT INTO churn_offer.customer VALUES (%s, %s, %s, %s)", generate_customers())
            cursor.executemany("INSERT INTO churn_offer.offer VALUES (%s, %s, %s)", OFFERS)


def decide(url: str, model: str = "churn_offer.toml") -> decisor.Result:
    write_data(url)
    with open(model, "w") as file:  # noqa: PTH123
        # Tables of a schema that is not the default one are copied by name.
        file.write(
            MODEL
            + '\n[copy]\ncustomer = "SELECT * FROM churn_offer.customer"\noffer = "SELECT * FROM churn_offer.offer"\n'
        )
    return decisor.ask("Which offer should each group get?", db=url, model=model, llm="none")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name a database: python examples/churn_offer.py postgresql://USER@HOST/DATABASE")
    print(decide(sys.argv[1]))
