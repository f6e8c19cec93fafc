"""What the guard costs a query, in CPU time: with the compiled SQL parser (the extra ``fast``) or without it, whichever
this Python has.

    python performance/guard_parser.py [--rounds 200] [--json]

Ten seconds.

Milliseconds of CPU a query, mean over the rounds, for a short, a middling and a long query.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.util import find_spec

from decisor.sandbox.engines.sqlite import DIALECT
from decisor.sandbox.sql_guard import SqlGuard

MIDDLING = """SELECT s.name, COUNT(*) AS n, SUM(r.quantity * o.price) AS lost FROM supplier AS s
JOIN product AS p ON p.supplier = s.id JOIN order_line AS o ON o.product = p.id LEFT JOIN return AS r ON r.line = o.id
WHERE o.day BETWEEN '2024-01-01' AND '2024-12-31' GROUP BY s.name HAVING COUNT(*) > 5 ORDER BY lost DESC LIMIT 20"""
QUERIES = {
    "short": "SELECT id, name FROM customer WHERE city = 'Oslo' LIMIT 20",
    "middling": MIDDLING,
    "long": " UNION ALL ".join(f"SELECT * FROM ({MIDDLING}) AS q{number}" for number in range(8)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    guard = SqlGuard(DIALECT)
    row: dict[str, str | float] = {"parser": "compiled" if find_spec("sqlglot.errors__mypyc") else "Python"}
    for name, query in QUERIES.items():
        guard.query(query)
        start = time.process_time()
        for _ in range(options.rounds):
            guard.query(query)
        row[name] = round((time.process_time() - start) / options.rounds * 1000, 3)
    print(json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
