"""Opening and describing a database of 5,000 tables, on SQLite and PostgreSQL.

    python performance/big_schema.py [--only sqlite] [--tables 5000] [--rounds 3] [--server postgresql://...]

`--only sqlite --tables 1000 --rounds 1` takes half a minute; all of it some minutes, and PostgreSQL.

Of each: seconds to open for the first time and again (when the catalog is known by its fingerprint), with the CPU of
this process; milliseconds of the first description after opening, and of later ones, wall and CPU (bars: 3 s, 100 ms).
Best of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from decisor.databases.sql import SqlTool

NOUNS = (
    "order",
    "customer",
    "product",
    "invoice",
    "payment",
    "shipment",
    "store",
    "site",
    "rent",
    "price",
    "stock",
    "supplier",
    "account",
    "ticket",
    "visit",
)
THINGS = (
    "name",
    "amount",
    "status",
    "date",
    "region",
    "currency",
    "weight",
    "category",
    "total",
    "owner",
    "note",
    "quantity",
    "country",
    "score",
)
QUESTIONS = ("Which store has the highest rents?", "How many shipments were late?", "Which supplier has most invoices?")
DATABASE = "decisor_big_schema"


def statements(tables: int) -> Iterator[str]:
    """Tables of twelve columns, every third with a reference to the one before it."""
    for at in range(tables):
        noun, other = NOUNS[at % len(NOUNS)], NOUNS[at // len(NOUNS) % len(NOUNS)]
        columns = [f"{THINGS[(at + 3 * k) % len(THINGS)]}_{k} text" for k in range(9)]
        parent = f", parent_id integer REFERENCES {name_of(at - 1)} (id)" if at % 3 else ", parent_id integer"
        first = f"id integer PRIMARY KEY, {noun}_{other}_code integer"
        yield f"CREATE TABLE {name_of(at)} ({first}, {', '.join(columns)}{parent})"


def name_of(at: int) -> str:
    letters = "".join(chr(97 + at // 26**k % 26) for k in range(3))
    return f"{NOUNS[at % len(NOUNS)]}_{NOUNS[at // 7 % len(NOUNS)]}_{letters}"


@contextmanager
def sqlite_url(tables: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.db"
        with closing(sqlite3.connect(path)) as db, db:
            for statement in statements(tables):
                db.execute(statement)
        yield f"sqlite:///{path}"


@contextmanager
def postgres_url(server: str, tables: int) -> Iterator[str]:
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        admin.execute(f"CREATE DATABASE {DATABASE}")
        try:
            with psycopg.connect(f"{server}/{DATABASE}") as db:
                for at, statement in enumerate(statements(tables)):
                    db.execute(statement.encode())
                    if at % 500 == 499:
                        db.commit()
            yield f"{server}/{DATABASE}"
        finally:
            admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


async def once(url: str) -> list[float]:
    """Wall and CPU seconds to open; milliseconds of the first description and of the mean later one, wall and CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    tool = await SqlTool.open(url)
    spent = [time.perf_counter() - wall, time.process_time() - cpu]
    times: list[tuple[float, float]] = []
    for question in QUESTIONS:
        wall, cpu = time.perf_counter(), time.process_time()
        (await tool.about(question)).describe()
        times.append((1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)))
    await tool.close()
    later = [sum(one) / len(one) for one in zip(*times[1:], strict=True)]
    return [*spent, *times[0], *later]


def measure(label: str, url: str, rounds: int) -> None:
    first, again = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache
            first.append(asyncio.run(once(url)))
            again.append(asyncio.run(once(url)))
    for what, rows in (("first time", first), ("again", again)):
        wall, cpu, brief, own, later, own_later = (min(row[at] for row in rows) for at in range(6))
        opening = f"{label:11}{what:11} open {wall:5.2f} s ({cpu:.2f} s CPU here)"
        first_ms, later_ms = f"{brief:4.0f} ms ({own:.0f} CPU)", f"{later:3.0f} ms ({own_later:.0f} CPU)"
        load = os.getloadavg()[0]
        print(f"{opening}, first description {first_ms}, later {later_ms}; load {load:.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("sqlite", "postgres"))
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432")
    given = parser.parse_args()
    if given.only != "postgres":
        with sqlite_url(given.tables) as url:
            measure("SQLite", url, given.rounds)
    if given.only != "sqlite":
        with postgres_url(given.server, given.tables) as url:
            measure("PostgreSQL", url, given.rounds)


if __name__ == "__main__":
    main()
