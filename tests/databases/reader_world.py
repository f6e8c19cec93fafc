"""A shop in which most orders and all addresses are not for who asks, and ways to read them all the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.sql_databases import MYSQL, mysql_database, postgres_database

ENGINES = ("sqlite", "duckdb", "postgres", "mariadb", "mysql")
ROWS = {"orders": "region = 'EU'"}
MASK = ("customers.email", "customers.phone", "newsletter.address")
HIDDEN_ORDERS, OWN_ORDERS = 1009, 12
"""Of other regions, and of this reader's."""
FORBIDDEN = (HIDDEN_ORDERS, HIDDEN_ORDERS + OWN_ORDERS)


def emails() -> list[str]:
    return [
        f"{name}.secret{n}@private.example" for n, name in enumerate(("ann", "bea", "cyd", "dov", "eli", "fay"), 71)
    ]


def phones() -> list[int]:
    return [4915570000 + n * 131 for n in range(1, 7)]


def notes() -> list[str]:
    """Of orders of other regions."""
    return [f"zebra-{n}-{n * 37 % 997}-quilt" for n in range(1, HIDDEN_ORDERS + 1)]


def secrets() -> list[str]:
    """What no LLM may be sent."""
    totals = [str(8800000 + n) for n in range(1, HIDDEN_ORDERS + 1)]
    return [*emails(), *map(str, phones()), *notes(), *totals]


def statements() -> list[str]:
    customers = ", ".join(
        f"({n}, 'C{n}', '{email}', {phone}, 'city{n % 3}')"
        for n, (email, phone) in enumerate(zip(emails(), phones(), strict=True), 1)
    )
    own = [f"({n}, {1 + n % 6}, 'EU', 'open-{n}', '{n * 3}', {10 * n})" for n in range(1, OWN_ORDERS + 1)]
    hidden = [
        f"({OWN_ORDERS + n}, {1 + n % 6}, 'US', '{note}', '{note}', {8800000 + n})" for n, note in enumerate(notes(), 1)
    ]
    letters = ", ".join(f"({n}, '{email}')" for n, email in enumerate(emails()[:4], 1))
    return [
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40), email VARCHAR(60), phone BIGINT, "
        "city VARCHAR(20))",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, region VARCHAR(5), note VARCHAR(60), "
        "code VARCHAR(60), total INTEGER)",
        "CREATE TABLE newsletter (id INTEGER PRIMARY KEY, address VARCHAR(60))",
        f"INSERT INTO customers VALUES {customers}",
        f"INSERT INTO orders VALUES {', '.join([*own, *hidden])}",
        f"INSERT INTO newsletter VALUES {letters}",
        "CREATE VIEW all_orders AS SELECT o.id, o.customer_id, o.region, o.note, o.code, o.total FROM orders o",
        "CREATE VIEW order_mails AS SELECT a.note, a.total, c.email FROM all_orders a JOIN customers c "
        "ON c.id = a.customer_id",
        "CREATE VIEW mails (m, p) AS SELECT email, phone FROM customers",
        "CREATE VIEW order_count AS SELECT COUNT(*) AS n FROM orders",
        f"CREATE VIEW vips AS SELECT id, name FROM customers WHERE email = '{emails()[0]}'",
        "CREATE VIEW dear AS SELECT id, total FROM orders "
        f"WHERE note NOT IN ('{notes()[0]}') OR code LIKE '%{notes()[1]}'",
        f"CREATE VIEW rated AS SELECT id, CASE email WHEN '{emails()[1]}' THEN 1 ELSE 0 END AS rate FROM customers",
    ]


EXTRA = {
    "sqlite": [
        "CREATE VIRTUAL TABLE words USING fts5(note, content='orders', content_rowid='id')",
        "INSERT INTO words(words) VALUES ('rebuild')",
        "ANALYZE",
    ],
    "duckdb": [
        "CREATE MACRO every_note() AS TABLE SELECT note FROM orders",
        "CREATE MACRO most() AS (SELECT max(total) FROM orders)",
    ],
    "postgres": [
        "CREATE MATERIALIZED VIEW kept_orders AS SELECT * FROM orders",
        "CREATE TABLE parts () INHERITS (orders)",
        "ANALYZE",
    ],
    "mysql": ["ANALYZE TABLE orders"],
    "mariadb": ["ANALYZE TABLE orders"],
}


@contextmanager
def reader_world(engine: str, folder: Path) -> Iterator[str]:
    """Gives the URL of the database."""
    texts = [*statements(), *EXTRA[engine]]
    if engine == "postgres":
        with postgres_database(texts) as url:
            yield url
    elif engine in ("mariadb", "mysql"):
        with mysql_database(texts, *([MYSQL] if engine == "mysql" else [])) as url:
            yield url
    else:
        path = folder / f"readers.{engine}"
        if engine == "sqlite":
            import apsw

            db = apsw.Connection(str(path))
            for text in texts:
                db.execute(text)
            db.close()
        else:
            import duckdb

            with duckdb.connect(str(path)) as duck:
                for text in texts:
                    duck.execute(text)
        yield f"{engine}:///{path}"
