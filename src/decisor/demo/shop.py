"""A shop that never was: suppliers, products, customers, purchases and returns, from one seed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from random import Random

SEED = 7
FIRST_DAY = date(2025, 1, 1)
PURCHASES = 2_400
SCHEMA = """
CREATE TABLE supplier (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, since INTEGER NOT NULL);
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL NOT NULL);
CREATE TABLE offer (
    supplier INTEGER NOT NULL REFERENCES supplier (id), product INTEGER NOT NULL REFERENCES product (id),
    unit_cost REAL NOT NULL, PRIMARY KEY (supplier, product));
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL);
CREATE TABLE purchase (
    id INTEGER PRIMARY KEY, day TEXT NOT NULL, customer INTEGER NOT NULL REFERENCES customer (id),
    supplier INTEGER NOT NULL REFERENCES supplier (id), product INTEGER NOT NULL REFERENCES product (id),
    quantity INTEGER NOT NULL);
CREATE TABLE product_return (
    purchase INTEGER PRIMARY KEY REFERENCES purchase (id), reason TEXT NOT NULL, refund REAL NOT NULL);
"""
SUPPLIERS = (
    ("Arlo Works", "Ghent", 2016), ("Veltra", "Turin", 2018), ("Norrik", "Bergen", 2014),
    ("Tamsin & Co", "Leeds", 2020), ("Oskar Lind", "Malmo", 2012), ("Pelago", "Naples", 2019),
    ("Quill Bros", "Cork", 2015),
)  # fmt: skip
PRODUCTS = (
    ("desk lamp", 39.0), ("floor lamp", 89.0), ("oak stool", 59.0), ("beech stool", 49.0), ("side table", 119.0),
    ("coat rack", 69.0), ("wall shelf", 45.0), ("mirror", 99.0), ("linen rug", 149.0), ("wool rug", 219.0),
    ("tray", 25.0), ("vase", 35.0), ("clock", 55.0), ("planter", 29.0), ("bench", 189.0), ("basket", 32.0),
)  # fmt: skip
OFFERS = {
    "Arlo Works": {"desk lamp": 0.55, "floor lamp": 0.58, "clock": 0.52, "mirror": 0.60},
    "Veltra": {"mirror": 0.50, "vase": 0.46, "floor lamp": 0.52, "tray": 0.50, "planter": 0.49},
    "Norrik": {"wool rug": 0.93, "linen rug": 0.92, "bench": 0.90},
    "Tamsin & Co": {"desk lamp": 0.78, "wall shelf": 0.81, "coat rack": 0.80, "basket": 0.76},
    "Oskar Lind": {"oak stool": 0.57, "beech stool": 0.56, "side table": 0.60, "bench": 0.62, "wall shelf": 0.60},
    "Pelago": {"vase": 0.58, "basket": 0.55, "planter": 0.60, "tray": 0.57, "linen rug": 0.70},
    "Quill Bros": {"coat rack": 0.61, "clock": 0.60, "side table": 0.66, "oak stool": 0.64},
}
"""What each supplier asks for its products, as a share of our price. Only Norrik has wool rugs."""
FAULTS = {"Tamsin & Co": 0.12, "Norrik": 0.03}
"""How often a purchase comes back faulty; elsewhere one in fifty does."""
DAMAGE = {"Veltra": 0.17}
"""How often it breaks on its way: Veltra's glass goes by another carrier."""
TOWNS = ("Basel", "Lyon", "Genoa", "Bremen", "Graz", "Namur")


def write_shop(path: Path) -> None:
    """An SQLite file with the shop. Raises OSError."""
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(SCHEMA)
        suppliers = {name: number for number, (name, _, _) in enumerate(SUPPLIERS, 1)}
        products = {name: number for number, (name, _) in enumerate(PRODUCTS, 1)}
        prices = dict(PRODUCTS)
        database.executemany("INSERT INTO supplier VALUES (NULL, ?, ?, ?)", SUPPLIERS)
        database.executemany("INSERT INTO product VALUES (NULL, ?, ?)", PRODUCTS)
        rows = [(suppliers[supplier], products[product], round(prices[product] * share, 2))
                for supplier, shares in OFFERS.items() for product, share in shares.items()]  # fmt: skip
        database.executemany("INSERT INTO offer VALUES (?, ?, ?)", rows)
        random = Random(SEED)
        customers = [(f"customer {number}", TOWNS[int(random.random() * len(TOWNS))]) for number in range(1, 181)]
        database.executemany("INSERT INTO customer VALUES (NULL, ?, ?)", customers)
        for purchase, returned in purchases(random, rows):
            database.execute("INSERT INTO purchase VALUES (?, ?, ?, ?, ?, ?)", purchase)
            if returned:
                reason, share = returned
                refund = round(share * purchase[5] * PRODUCTS[purchase[4] - 1][1], 2)
                database.execute("INSERT INTO product_return VALUES (?, ?, ?)", (purchase[0], reason, refund))


Purchase = tuple[int, str, int, int, int, int]


def purchases(
    random: Random, offers: list[tuple[int, int, float]]
) -> Iterator[tuple[Purchase, tuple[str, float] | None]]:
    """Each with why it came back and the share of its price that was paid back, or None."""
    for number in range(1, PURCHASES + 1):
        supplier, product, _ = offers[int(random.random() * len(offers))]
        day = FIRST_DAY + timedelta(days=int(random.random() * 365))
        customer, quantity = 1 + int(random.random() * 180), 1 + int(random.random() * 4)
        name, chance = SUPPLIERS[supplier - 1][0], random.random()
        faults, damage = FAULTS.get(name, 0.02), DAMAGE.get(name, 0.02)
        reason = (
            ("faulty", 1.0) if chance < faults
            else ("damaged in transport", 1.0) if chance < faults + damage
            else ("changed mind", 0.9) if chance > 0.98
            else None
        )  # fmt: skip
        yield (number, day.isoformat(), customer, supplier, product, quantity), reason
