"""A small shop with gross and net amounts, dates and states, and definitions of it, for the tests of definitions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, country TEXT);
INSERT INTO customer VALUES (1, 'Ann', 'USA'), (2, 'Bo', 'USA'), (3, 'Cy', 'Norway');
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer(id), ordered_on DATE,
    shipped_on DATE, status TEXT);
INSERT INTO purchase VALUES (1, 1, '2023-05-02', '2023-05-09', 'closed'), (2, 1, '2023-08-02', NULL, 'open'),
    (3, 2, '2023-06-12', '2023-07-02', 'closed'), (4, 3, '2024-02-12', '2024-02-13', 'closed');
CREATE TABLE line (purchase_id INTEGER REFERENCES purchase(id), product TEXT, price REAL, quantity INTEGER,
    discount REAL, PRIMARY KEY (purchase_id, product));
INSERT INTO line VALUES (1, 'tea', 10, 5, 0.5), (1, 'cup', 4, 2, 0), (2, 'tea', 10, 1, 0), (3, 'tea', 9, 4, 0),
    (4, 'pot', 30, 2, 0.1);
"""
DEFINITIONS = """
[metric.net_revenue]
synonyms = ["revenue", "turnover"]
sql      = "SUM(l.price * l.quantity * (1 - l.discount))"
from     = "line l JOIN purchase p ON p.id = l.purchase_id"
where    = "p.status = 'closed'"
grain    = ["l.purchase_id", "l.product"]
date     = "p.ordered_on"
unit     = "EUR"
by       = "ann"
on       = "2026-01-31"

[calendar.fiscal]
synonyms = ["fiscal year", "FY"]
starts   = "07-01"
default  = true

[entity.purchase]
synonyms = ["order"]
table    = "purchase"
key      = "id"

[join.line_purchase]
left  = "line.purchase_id"
right = "purchase.id"

[value."customer.country"]
USA = ["United States", "America"]

[reading.best_customer]
words  = ["best customer", "top customer"]
means  = "the customer with the most net revenue"
metric = "net_revenue"
why    = "agreed in the sales meeting"

[example.late]
question = "Which purchases are late?"
sql      = "SELECT id FROM purchase WHERE shipped_on IS NULL"
"""


def shop(folder: Path) -> str:
    """The URL of a SQLite file with it."""
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(SHOP)
    return f"sqlite:///{path}"


def definitions_file(folder: Path, text: str = DEFINITIONS) -> Path:
    path = folder / "definitions.toml"
    path.write_text(text)
    return path
