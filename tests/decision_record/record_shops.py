"""Decisions whose records the tests look at: one that a model computed, and one that an LLM read from rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import decisor
from decision_shops import CLOSE, SITES, database

UNTESTABLE = '[rule.early]\ntext = "The landlord hears of it a year before."\ntestable = false\n'
QUERY = "SELECT name, rent FROM site ORDER BY rent"
PLAN = f"Plan: [Step 1: compare the rents]\nThought: Start there.\nAction: sql\nAction input: {QUERY}"
ANSWER = "Final answer: elm\nBecause: it costs 400 [o1.r1], oak 700 [o1.r2], in all 9999"


def computed(folder: Path, **options: Any) -> tuple[str, decisor.Result]:
    """The URL of the data, and a decision by a model with a rule that is kept and one that no data can test."""
    url, model = database(folder, SITES), folder / "close.toml"
    model.write_text(CLOSE + UNTESTABLE)
    result = decisor.ask(
        "Which two?", db=url, model=model, technique="exact", settings={"trials": 20}, who="Ann", **options
    )
    return url, result


def sites(folder: Path) -> Path:
    path = folder / "sites.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE site (name TEXT, rent REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("oak", 700.0), ("elm", 400.0), ("fir", 900.0)])
    return path


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


def from_rows(folder: Path, **options: Any) -> tuple[Path, decisor.Result]:
    """The database, and a decision that cites two of three rows and a figure that no row supports."""
    path = sites(folder)
    llm = decisor.ScriptedLLM([PLAN, ANSWER])
    rules = "Rents are monthly."
    return path, decisor.ask(
        "Which site?", db=f"sqlite:///{path}", llm=llm, technique="plan_rag", rules=rules, who="Ann", **options
    )
