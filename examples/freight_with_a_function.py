"""Which depot should deliver? A table, and a Python function that the LLM calls.

python examples/freight_with_a_function.py [FOLDER]

The function is yours: here a tariff. Values of rows reach it because ``row_values="allow"`` says so; otherwise a person
is asked. The LLM is scripted, so that this needs no key.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import decisor

DEPOTS = (("Ghent", 14.2, 310), ("Metz", 12.9, 420), ("Ulm", 13.4, 150))
"""Unit cost in EUR, and kilometres to the customer."""
PIECES = 400
REPLIES = (
    "Plan: [Step 1: unit costs and distances, Step 2: the freight from each, Step 3: add up]\n"
    "Thought: Start with the table.\nAction: sql\n"
    f"Action input: SELECT depot, km, unit_cost * {PIECES} AS goods FROM depot ORDER BY depot",
    'Re-plan: N\nThought: Metz is cheapest before freight.\nAction: freight\nAction input: {"km": 420, "pieces": 400}',
    'Re-plan: N\nThought: Now Ulm.\nAction: freight\nAction input: {"km": 150, "pieces": 400}',
    'Re-plan: N\nThought: And Ghent.\nAction: freight\nAction input: {"km": 310, "pieces": 400}',
    "Re-plan: N\nThought: Add up.\nFinal answer: Ulm\nBecause: Ulm's goods cost 5,360 EUR [o1.r3] and its freight 285 "
    "EUR [o3.r1]. Metz has goods of 5,160 EUR [o1.r2], and a freight of 690 EUR [o2.r1].",
)


def freight(km: float, pieces: int) -> dict[str, float]:
    """The freight of an order, in EUR.

    Args:
        km: distance to the customer
        pieces: pieces of the order
    """
    pallets = -(-pieces // 80)
    return {"eur": 60 + pallets * km * 0.30}


def write_data(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE depot (depot TEXT PRIMARY KEY, unit_cost REAL, km INTEGER)")
        database.executemany("INSERT INTO depot VALUES (?, ?, ?)", DEPOTS)


def decide(folder: Path, llm: object = None) -> decisor.Result:
    write_data(folder / "depots.db")
    return decisor.ask(
        f"Which depot should deliver {PIECES} pieces?",
        db=str(folder / "depots.db"),
        tools=decisor.ToolSpecs([freight], row_values="allow"),
        llm=llm or decisor.ScriptedLLM(REPLIES),
        technique="plan_rag",
        settings={} if llm else {"calling": "text"},
    )


if __name__ == "__main__":
    print(decide(Path(sys.argv[1] if len(sys.argv) > 1 else "freight")))
