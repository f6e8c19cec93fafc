"""Two years of sales in a real SQLite file, and an LLM that queries once and answers with all of what came back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from decisor.llms.scripted import ScriptedLLM

CATEGORIES = ("Beverages", "Dairy", "Produce", "Seafood", "Snacks", "Grains", "Meat", "Frozen", "Sweets", "Tea")
BY_MONTH = """SELECT substr(day, 1, 7) AS month, category, sum(amount) AS revenue FROM sale
    WHERE category IN ('Beverages', 'Produce', 'Seafood') GROUP BY 1, 2 ORDER BY 1, 2"""
ANSWER = "Final answer: revenue by month and category [o1]\nBecause: the query added up every sale [o1]"


def sales(folder: Path) -> Path:
    """A sale a month and category; its amount is 100 times the number of the category, and the number of the month."""
    path = folder / "sales.db"
    rows = [
        (
            f"{1996 + month // 12}-{month % 12 + 1:02}-03",
            category,
            f"city {(7 * month + at) % 40}",
            100.0 * (at + 1) + month,
            (3 * month + 5 * at) % 11 - 4,
        )
        for month in range(24)
        for at, category in enumerate(CATEGORIES)
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE sale (day TEXT, category TEXT, city TEXT, amount REAL, change INTEGER)")
        connection.executemany("INSERT INTO sale VALUES (?, ?, ?, ?, ?)", rows)
    return path


def llm(query: str = BY_MONTH, answer: str = ANSWER) -> ScriptedLLM:
    return ScriptedLLM([f"Plan: [Step 1: add up]\nThought: t\nAction: sql\nAction input: {query}", answer])
