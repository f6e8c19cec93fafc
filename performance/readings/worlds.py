"""The three databases that the questions are about: Northwind and Chinook, where they lie, and one made here."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

CONTRACTS = """
CREATE TABLE client (id INTEGER PRIMARY KEY, name TEXT, region TEXT, industry TEXT);
CREATE TABLE employee (id INTEGER PRIMARY KEY, name TEXT, team TEXT, hired_on DATE);
CREATE TABLE contract (id INTEGER PRIMARY KEY, client_id INTEGER REFERENCES client(id), signed_on DATE,
    starts_on DATE, ends_on DATE, monthly_gross REAL, monthly_net REAL, state TEXT);
CREATE TABLE payment (id INTEGER PRIMARY KEY, contract_id INTEGER REFERENCES contract(id), invoiced_on DATE,
    paid_on DATE, amount REAL, tax REAL);
CREATE TABLE ticket (id INTEGER PRIMARY KEY, client_id INTEGER REFERENCES client(id),
    employee_id INTEGER REFERENCES employee(id), opened_at DATE, closed_at DATE, priority TEXT, state TEXT);
"""


def contracts(path: Path, seed: int = 5) -> str:
    """The URL of a firm's clients, contracts, payments and tickets."""
    draw = random.Random(seed)

    def day(start: date, most: int) -> date:
        return start + timedelta(days=draw.randrange(most))

    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(CONTRACTS)
        for id in range(1, 31):
            row = (id, f"Client {id}", draw.choice(["north", "south", "west"]), draw.choice(["steel", "food", "law"]))
            database.execute("INSERT INTO client VALUES (?, ?, ?, ?)", row)
        for id in range(1, 13):
            hired = day(date(2015, 1, 1), 3000)
            database.execute(
                "INSERT INTO employee VALUES (?, ?, ?, ?)",
                (id, f"Employee {id}", draw.choice(["blue", "red"]), f"{hired}"),
            )
        for id in range(1, 61):
            signed = day(date(2022, 1, 1), 1000)
            gross = draw.randrange(200, 4000)
            state = draw.choice(["active", "active", "paused", "ended"])
            ends = f"{signed + timedelta(days=700)}" if state == "ended" else None
            database.execute(
                "INSERT INTO contract VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    id,
                    draw.randrange(1, 31),
                    f"{signed}",
                    f"{day(signed, 90)}",
                    ends,
                    gross,
                    round(gross * draw.choice([0.7, 0.81, 0.9]), 2),
                    state,
                ),
            )
        for id in range(1, 401):
            sent = day(date(2023, 1, 1), 700)
            amount = draw.randrange(100, 3000)
            paid = f"{day(sent, 60)}" if draw.random() < 0.9 else None
            database.execute(
                "INSERT INTO payment VALUES (?, ?, ?, ?, ?, ?)",
                (id, draw.randrange(1, 61), f"{sent}", paid, amount, round(amount * 0.19, 2)),
            )
        for id in range(1, 501):
            opened = day(date(2023, 6, 1), 550)
            state = draw.choice(["open", "closed", "closed", "waiting"])
            closed = f"{day(opened, 40)}" if state == "closed" else None
            database.execute(
                "INSERT INTO ticket VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    id,
                    draw.randrange(1, 31),
                    draw.randrange(1, 13),
                    f"{opened}",
                    closed,
                    draw.choice(["urgent", "normal", "low"]),
                    state,
                ),
            )
    return f"sqlite:///{path}"


def northwind(path: Path, data: Path) -> str:
    """``data``: the folder with the test data."""
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript((data / "decisions" / "northwind" / "create.sql").read_text("utf-8"))
    return f"sqlite:///{path}"


def chinook(data: Path) -> str:
    return f"sqlite:///{data / 'decisions' / 'chinook' / 'Chinook_Sqlite.sqlite'}"
