"""Which site should we open? A table in SQLite beside notes as documents, in one plan.

python examples/site_to_open.py [FOLDER]

The cheapest site by its rent has a lease that ends; only the notes say so. The LLM is scripted, so that this needs no
key: give a name such as "gpt-4.1-mini" to ``decide`` for a real one. Needs the extra `documents`.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import decisor

SITES = (("Basel", 118_000, 640), ("Linz", 74_000, 590), ("Namur", 81_000, 610), ("Turin", 96_000, 700))
"""Rent in EUR a year, and square metres."""
NOTES = {
    "basel": "# Basel\n\nThe lease runs for ten years. Trams stop in front of the site.",
    "linz": "# Linz\n\nThe owner sells: the lease of the site in Linz ends in May 2027.",
    "namur": "# Namur\n\nThe lease runs for eight years, with an option for five more.",
    "turin": "# Turin\n\nThe lease runs for six years.",
}
RULES = "At least 600 square metres, and a lease of five years or more. Of these the lowest rent."
REPLIES = (
    "Plan: [Step 1: compare rents and sizes, Step 2: read the leases of the cheapest, Step 3: decide]\n"
    "Thought: The table first.\nAction: sql\n"
    "Action input: SELECT name, rent, metres FROM site ORDER BY rent",
    "Re-plan: N\nThought: Linz is cheapest, but has 590 square metres. I read its lease too.\nAction: passages\n"
    "Action input: lease of the site in Linz ends",
    "Re-plan: Y, Linz is too small and its lease ends, so the next one decides\n"
    "Plan: [Step 1: read the lease in Namur, Step 2: decide]\nThought: Namur is next by rent.\n"
    "Action: passages\nAction input: Namur lease option",
    "Re-plan: N\nThought: Namur keeps the rules.\nFinal answer: Namur\nBecause: Linz is ruled out: it has 590 "
    "square metres [o1.r1], and its lease ends in May 2027 [o2.r1]. Namur costs 81,000 EUR for "
    "610 square metres [o1.r2] with a lease of eight years [o3.r1].",
)


def write_data(folder: Path) -> None:
    (folder / "notes").mkdir(parents=True, exist_ok=True)
    for name, text in NOTES.items():
        (folder / "notes" / f"{name}.md").write_text(text)
    (folder / "sites.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "sites.db")) as database, database:
        database.execute("CREATE TABLE site (name TEXT PRIMARY KEY, rent INTEGER, metres INTEGER)")
        database.executemany("INSERT INTO site VALUES (?, ?, ?)", SITES)


def decide(folder: Path, llm: object = None) -> decisor.Result:
    write_data(folder)
    return decisor.ask(
        "Which site should we open?",
        rules=RULES,
        db=str(folder / "sites.db"),
        docs=str(folder / "notes"),
        llm=llm or decisor.ScriptedLLM(REPLIES),
        technique="plan_rag",
        settings={} if llm else {"calling": "text"},
    )


if __name__ == "__main__":
    print(decide(Path(sys.argv[1] if len(sys.argv) > 1 else "site_to_open")))
