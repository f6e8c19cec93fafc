"""A shop, a school and a clinic in one database of each engine, made up, and the queries that are asked of them."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.sql_databases import MYSQL, mysql_database, postgres_database

FOLDER = Path(__file__).parent / "pitfalls"
ENGINES = ("sqlite", "duckdb", "postgres", "mariadb", "mysql")
MARK = re.compile(r"-- (?P<kind>\w+): (?P<engines>.*)")


def queries(kind: str, engine: str) -> list[str]:
    """Those of a file, and those of this kind that are this engine's own."""
    lines = (FOLDER / f"{kind}.sql").read_text().splitlines()
    own, fits = [], False
    for line in (FOLDER / "engine_specific.sql").read_text().splitlines():
        if match := MARK.fullmatch(line):
            fits = match["kind"] == kind and dialect_of(engine) in match["engines"].split()
        elif fits:
            own.append(line)
    return [line.rstrip(";") for line in (*lines, *own) if line]


def dialect_of(engine: str) -> str:
    return "mysql" if engine == "mariadb" else engine


def in_sight(query: str) -> bool:
    """Of the half that the rules were written by; the other half only counts."""
    return hashlib.sha256(query.encode()).digest()[0] % 2 == 0


def statements() -> list[str]:
    """What makes the tables and fills them, in the SQL that all engines share."""
    made = [line.rstrip(";") for line in (FOLDER / "world.sql").read_text().splitlines()]
    return [*made, *(f"INSERT INTO {table} VALUES {', '.join(map(row, rows))}" for table, rows in tables().items())]


def row(values: tuple[object, ...]) -> str:
    texts = [value if not isinstance(value, str) or value in SPELT else f"'{value}'" for value in values]
    return f"({', '.join(map(str, texts))})"


SPELT = ("NULL",)


def kinds(engine: str) -> list[tuple[str, bool, str]]:
    """The rule, whether it should notice something, and the query."""
    lines, rule, wrong, fits = [], "", False, False
    for line in (FOLDER / "kinds.sql").read_text().splitlines():
        if line.startswith("-- "):
            rule, word, *engines = line[3:].replace(":", "").split()
            wrong, fits = word == "wrong", dialect_of(engine) in engines
        elif fits and line:
            lines.append((rule, wrong, line.rstrip(";")))
    return lines


def tables() -> dict[str, list[tuple[object, ...]]]:
    day = [f"2024-{1 + n % 12:02}-{1 + n * 7 % 28:02}" for n in range(60)]
    countries = ("DE", "FR", "IT", "ES")
    return {
        "customers": [(n, f"C{n}", countries[n % 4], 100 + 10 * n, day[n]) for n in range(1, 13)],
        "categories": [(n, f"K{n}") for n in range(1, 5)],
        "products": [(n, f"P{n}", 1 + n % 4, 3 + n, 40 + n) for n in range(1, 13)],
        "orders": [
            (n, 1 + n * 5 % 11, day[n], ("paid", "open", "cancelled")[n % 3], 20 + 3 * n, 2 + n % 4)
            for n in range(1, 31)
        ],
        "order_items": [
            (n, line, 1 + (n + line) % 12, 1 + (n * line) % 4, 2 + n % 9) for n in range(1, 31) for line in (1, 2, 3)
        ],
        "payments": [(n, 1 + n % 20, 10 + n, ("card", "cash")[n % 2]) for n in range(1, 41)],
        "tags": [(1, "gift"), (2, "rush"), (3, "bulk")],
        "order_tags": [(n, tag) for n in range(1, 31) for tag in (1, 2, 3) if (n + tag) % 3],
        "tickets": [(n, 1 + n % 7, 0.5 * n) for n in range(1, 16)],
        "prices": [(n, start, 2 + n) for n in range(1, 13) for start in ("2024-01-01", "2024-06-01")],
        "teachers": [(n, f"T{n}", 3000 + 100 * n, ("maths", "arts")[n % 2]) for n in range(1, 6)],
        "courses": [(n, f"Course {n}", 1 + n % 4, 3 + n % 3) for n in range(1, 9)],
        "students": [(n, f"S{n}", 1 + n % 3, 500 + n, 1 + n % 3) for n in range(1, 16)],
        "enrolments": [(n, c, 5 + (n + c) % 5) for n in range(1, 16) for c in range(1, 9) if (n + c) % 3],
        "absences": [(n, 1 + n % 9, n % 5) for n in range(1, 31)],
        "rooms": [(n, 10 * n) for n in range(1, 5)],
        "lessons": [(n, 1 + n % 8, 1 + n % 4, 45 + n) for n in range(1, 25)],
        "student_contacts": [(n, f"0{n}") for n in range(1, 16)],
        "patient": [(n, f"Pat{n}", 60 + n, ("Rome", "Oslo")[n % 2]) for n in range(1, 11)],
        "visit": [(n, 1 + n % 9, f"d{1 + n % 4}", 40 + n, day[n]) for n in range(1, 31)],
        "prescription": [(1 + n % 20, f"g{1 + n % 5}", 1 + n % 3) for n in range(1, 41)],
        "drug": [(f"g{n}", f"Drug {n}", 2 + n) for n in range(1, 6)],
        "lab": [(1 + n % 18, ("blood", "urine", "scan")[n % 3], 5 + n) for n in range(1, 41)],
        "doctor": [(f"d{n}", f"Doc{n}", 5000 + n, f"w{1 + n % 2}") for n in range(1, 6)],
        "ward": [(f"w{n}", f"Ward {n}", 10 + n) for n in range(1, 3)],
        "insurance": [(n, ("basic", "full")[n % 2], 90 + n) for n in range(1, 11)],
        "settings": [(0.2, "EUR")],
        "staff": [
            (n, f"W{n}", "NULL" if n < 3 else 1 + n % 2, "NULL" if n == 8 else "red" if n % 2 else "blue")
            for n in range(1, 9)
        ],
        "events": [
            (
                n,
                f"E{n}",
                f"{1 + n * 5 % 28:02}/{1 + n * 7 % 12:02}/{2022 + n % 3}",
                f"2024-{1 + n % 6:02}-{n:02} 1{n % 10}:15:00",
                f"2024-{1 + n % 6:02}-{n:02}",
                "NULL" if n == 9 else 1 + n % 6,
                n % 5,
            )
            for n in range(1, 26)
        ],
    }


@contextmanager
def world(engine: str, folder: Path) -> Iterator[str]:
    """Gives the URL of the database."""
    if engine == "postgres":
        with postgres_database(statements()) as url:
            yield url
    elif engine in ("mariadb", "mysql"):
        with mysql_database(statements(), *([MYSQL] if engine == "mysql" else [])) as url:
            yield url
    else:
        path = folder / f"world.{engine}"
        if engine == "sqlite":
            import apsw

            db = apsw.Connection(str(path))
            for statement in ("BEGIN", *statements(), "COMMIT"):
                db.execute(statement)
            db.close()
        else:
            import duckdb

            with duckdb.connect(str(path)) as duck:
                for statement in statements():
                    duck.execute(statement)
        yield f"{engine}:///{path}"
