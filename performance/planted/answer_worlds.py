"""Questions with their rows, of Northwind, Chinook and worlds of our own, for answers that are true of them.

A case has its candidates in one observation (o1) and, of the best three, the figures by quarter or year in another
(o2), as a technique is shown them.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from decisor.types import Action, Observation, Question, Record, Step, Value
from planted.offers import OFFERS
from planted.tariffs import TARIFFS


@dataclass(frozen=True)
class Unit:
    """A unit as it is written; ``symbol`` is '' where nothing is written before the figure."""

    code: str
    word: str
    symbol: str = ""


USD, EUR, GBP = Unit("USD", "dollars", "$"), Unit("EUR", "euros", "€"), Unit("GBP", "pounds", "£")
DAYS, HOURS, UNITS, KILOGRAMS = Unit("d", "days"), Unit("h", "hours"), Unit("units", "units"), Unit("kg", "kilograms")
KWH, TONNES, PERCENT, MINUTES = (
    Unit("kWh", "kilowatt hours"),
    Unit("t", "tonnes"),
    Unit("%", "percent"),
    Unit("min", "minutes"),
)
LITRES = Unit("l", "litres")
OTHER_UNIT: Mapping[Unit, Sequence[Unit]] = {
    USD: (EUR, GBP),
    EUR: (USD, GBP),
    GBP: (EUR, USD),
    DAYS: (HOURS, MINUTES),
    HOURS: (DAYS, MINUTES),
    UNITS: (KILOGRAMS, USD),
    KWH: (LITRES, TONNES),
    TONNES: (LITRES, KWH),
    MINUTES: (DAYS, HOURS),
    PERCENT: (EUR, DAYS),
}


@dataclass(frozen=True)
class Candidate:
    """A candidate with its figures; ``more`` are columns that no answer speaks of."""

    name: str
    value: float
    tally: int
    seen: date
    more: Mapping[str, Value]
    id: str = ""


@dataclass(frozen=True)
class Period:
    """The value of a candidate in a quarter or year."""

    name: str
    label: str
    value: float
    id: str = ""


@dataclass(frozen=True)
class Case:
    """A question with its rows. ``candidates`` are ranked, ``by_name`` says that the rows are not."""

    world: str
    question: str
    noun: str
    nouns: str
    label: str
    column: str
    unit: Unit
    goal: str
    tallies: tuple[str, str]
    tally_column: str
    name_column: str
    date_column: str
    sql: str
    candidates: tuple[Candidate, ...]
    periods: tuple[Period, ...] = ()
    year: str = ""
    by_name: bool = False

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What a technique was shown."""
        shown = sorted(self.candidates, key=lambda row: int(row.id.rpartition("r")[2]))
        records = tuple(
            Record(
                row.id,
                {
                    self.name_column: row.name,
                    **row.more,
                    self.tally_column: row.tally,
                    self.column: row.value,
                    self.date_column: row.seen.isoformat(),
                },
            )
            for row in shown
        )
        steps = [Step(Action("sql", self.sql), Observation(records, total=len(records)))]
        if self.periods:
            column = "quarter" if "Q" in self.periods[0].label else "year"
            rows = tuple(
                Record(row.id, {self.name_column: row.name, column: row.label, self.column: row.value})
                for row in self.periods
            )
            sql = self.sql.replace("GROUP BY 1", "GROUP BY 1, 2").replace("ORDER BY", "ORDER BY 1, 2 --")
            steps.append(Step(Action("sql", sql), Observation(rows, total=len(rows))))
        return tuple(steps)

    @property
    def asked(self) -> Question:
        return Question(self.question)


def numbered(case: Case) -> Case | None:
    """The case with ids on its rows and its candidates ranked; None if the first three are too close to be ranked."""
    sign = -1 if case.goal == "max" else 1
    ranked = sorted(case.candidates, key=lambda row: (sign * row.value, row.name))
    shown = sorted(ranked, key=lambda row: row.name) if case.by_name else ranked
    id_of = {row.name: f"o1.r{at}" for at, row in enumerate(shown, 1)}
    if len(ranked) < 6 or len(id_of) < len(ranked):
        return None
    values = [row.value for row in ranked]
    size = max(abs(value) for value in values[:4])
    if any(abs(x - y) < 0.003 * size for x, y in pairwise(values[:5])) or min(values) <= 0:
        return None
    if len({row.tally for row in ranked[:4]}) < 3 or any(set(row.name) & set("{}[]<>^|") for row in ranked):
        return None
    candidates = tuple(replace(row, id=id_of[row.name]) for row in ranked)
    best = [row.name for row in ranked[:3]]
    periods = tuple(
        replace(row, id=f"o2.r{at}")
        for at, row in enumerate(
            sorted(
                (row for row in case.periods if row.name in best), key=lambda row: (best.index(row.name), row.label)
            ),
            1,
        )
    )
    return replace(case, candidates=candidates, periods=periods)


def cases(data: Path, seed: int) -> list[Case]:
    """Every case that can be ranked, in an order of the seed."""
    made = [*northwind(data), *chinook(data), *own(seed)]
    found = [case for made_case in made if (case := numbered(made_case))]
    random.Random(seed).shuffle(found)
    return found


def whole_date(text: str) -> date:
    return date.fromisoformat(text[:10])


# Northwind: who sold or bought most, fastest, in a year or in all.

NORTHWIND = """FROM [Order Details] d JOIN Orders o ON o.OrderID = d.OrderID
JOIN Products p ON p.ProductID = d.ProductID JOIN Categories c ON c.CategoryID = p.CategoryID
JOIN Suppliers s ON s.SupplierID = p.SupplierID JOIN Customers k ON k.CustomerID = o.CustomerID
JOIN Employees e ON e.EmployeeID = o.EmployeeID"""
NORTHWIND_DIMENSIONS = (
    ("supplier", "suppliers", "s.CompanyName", "CompanyName", ("s.Country", "s.Phone")),
    ("customer", "customers", "k.CompanyName", "CompanyName", ("k.City", "k.PostalCode")),
    ("product", "products", "p.ProductName", "ProductName", ("p.ProductID", "p.UnitsInStock")),
    ("category", "categories", "c.CategoryName", "CategoryName", ("c.CategoryID",)),
    ("country", "countries", "o.ShipCountry", "ShipCountry", ()),
    ("employee", "employees", "e.FirstName || ' ' || e.LastName", "employee", ("e.EmployeeID", "e.Extension")),
)
NORTHWIND_MEASURES = (
    ("revenue", "revenue_usd", "round(sum(d.UnitPrice * d.Quantity * (1 - d.Discount)), 2)", USD, "max"),
    ("revenue", "revenue_usd", "sum(d.UnitPrice * d.Quantity * (1 - d.Discount))", USD, "max"),
    ("volume", "units_sold", "sum(d.Quantity)", UNITS, "max"),
    ("time to ship", "days_to_ship", "round(avg(julianday(o.ShippedDate) - julianday(o.OrderDate)), 2)", DAYS, "min"),
)


def northwind(data: Path) -> Iterator[Case]:
    database = sqlite3.connect(":memory:")
    database.executescript((data / "decisions" / "northwind" / "create.sql").read_text("utf-8"))
    for noun, nouns, key, column, more in NORTHWIND_DIMENSIONS:
        for label, measure, formula, unit, goal in NORTHWIND_MEASURES:
            for year in ("", "1996", "1997", "1998"):
                where = f" WHERE strftime('%Y', o.OrderDate) = '{year}'" if year else ""
                form = Case(
                    "northwind",
                    wording(nouns, noun, label, goal, year, unit),
                    noun,
                    nouns,
                    label,
                    measure,
                    unit,
                    goal,
                    ("order", "orders"),
                    "orders",
                    column,
                    "last_order",
                    "",
                    (),
                    (),
                    year,
                    len(key + year) % 2 == 0,
                )
                parts = (key, f"{formula}", "count(DISTINCT o.OrderID)", "max(date(o.OrderDate))", "o.OrderDate")
                yield read_case(database, form, NORTHWIND + where, parts, more)
    database.close()


CHINOOK = """FROM InvoiceLine l JOIN Invoice i ON i.InvoiceId = l.InvoiceId JOIN Track t ON t.TrackId = l.TrackId
JOIN Genre g ON g.GenreId = t.GenreId JOIN Album a ON a.AlbumId = t.AlbumId JOIN Artist r ON r.ArtistId = a.ArtistId
JOIN Customer k ON k.CustomerId = i.CustomerId"""
CHINOOK_DIMENSIONS = (
    ("genre", "genres", "g.Name", "genre", ("g.GenreId",)),
    ("artist", "artists", "r.Name", "artist", ("r.ArtistId",)),
    ("customer", "customers", "k.FirstName || ' ' || k.LastName", "customer", ("k.CustomerId", "k.Country")),
    ("country", "countries", "i.BillingCountry", "BillingCountry", ()),
    ("city", "cities", "i.BillingCity", "BillingCity", ("i.BillingCountry",)),
)
CHINOOK_MEASURES = (
    ("sales", "sales_usd", "round(sum(l.UnitPrice * l.Quantity), 2)", USD, "max"),
    ("running time", "minutes_sold", "round(sum(t.Milliseconds) / 60000.0, 1)", MINUTES, "max"),
    ("average length", "avg_minutes", "avg(t.Milliseconds) / 60000.0", MINUTES, "min"),
)


def chinook(data: Path) -> Iterator[Case]:
    database = sqlite3.connect(f"file:{data / 'decisions' / 'chinook' / 'Chinook_Sqlite.sqlite'}?mode=ro", uri=True)
    for noun, nouns, key, column, more in CHINOOK_DIMENSIONS:
        for label, measure, formula, unit, goal in CHINOOK_MEASURES:
            for year in ("", "2021", "2022", "2023", "2024", "2025"):
                where = f" WHERE strftime('%Y', i.InvoiceDate) = '{year}'" if year else ""
                form = Case(
                    "chinook",
                    wording(nouns, noun, label, goal, year, unit),
                    noun,
                    nouns,
                    label,
                    measure,
                    unit,
                    goal,
                    ("invoice", "invoices"),
                    "invoices",
                    column,
                    "last_invoice",
                    "",
                    (),
                    (),
                    year,
                    len(key + year) % 3 == 0,
                )
                parts = (key, formula, "count(DISTINCT i.InvoiceId)", "max(date(i.InvoiceDate))", "i.InvoiceDate")
                yield read_case(database, form, CHINOOK + where, parts, more)
    database.close()


def read_case(
    database: sqlite3.Connection, form: Case, source: str, parts: tuple[str, str, str, str, str], more: Sequence[str]
) -> Case:
    """The rows of a query and, by quarter or year, of its best three."""
    key, formula, tally, seen, moment = parts
    extra = [column.rpartition(".")[2] for column in more]
    order = f"{form.name_column}" if form.by_name else f"{form.column} {'DESC' if form.goal == 'max' else 'ASC'}"
    columns = ", ".join(
        [
            f"{key} AS {form.name_column}",
            *(f"min({column}) AS {name}" for column, name in zip(more, extra, strict=True)),
            f"{tally} AS {form.tally_column}",
            f"{formula} AS {form.column}",
            f"{seen} AS {form.date_column}",
        ]
    )
    sql = f"SELECT {columns}\n{source} GROUP BY 1 ORDER BY {order}"
    found = [
        Candidate(row[0], row[-2], row[-3], whole_date(row[-1]), dict(zip(extra, row[1:-3], strict=True)))
        for row in database.execute(sql)
        if row[-2] is not None
    ]
    quarter = f"strftime('%Y', {moment}) || '-Q' || ((strftime('%m', {moment}) + 2) / 3)"
    period = quarter if form.year else f"strftime('%Y', {moment})"
    rows = database.execute(f"SELECT {key}, {period}, {formula} {source} GROUP BY 1, 2")
    periods = tuple(Period(*row) for row in rows if row[2])
    return replace(form, sql=sql, candidates=tuple(found), periods=periods)


def wording(nouns: str, noun: str, label: str, goal: str, year: str, unit: Unit) -> str:
    span = f" in {year}" if year else ""
    if goal == "max":
        return f"Which {noun} brought the most {label}{span}? Compare all {nouns}, in {unit.word}."
    return f"Which {noun} has the shortest {label}{span}? Compare all {nouns}, in {unit.word}."


# Our own: harbours in millions of tonnes, clinics, flats, plants and funds, offers and tariffs.

NAMES = (
    "Borealis",
    "Castell",
    "Dunmore",
    "Elbing",
    "Fenwick",
    "Garonne",
    "Halden",
    "Imatra",
    "Jarrow",
    "Kolding",
    "Lindau",
    "Marsala",
    "Norfolk",
    "Otranto",
    "Perpignan",
    "Quimper",
    "Rostock",
    "Sandnes",
    "Tarifa",
    "Umea",
    "Vlissingen",
    "Whitby",
    "Xanten",
    "Ystad",
    "Zadar",
    "Arbroath",
    "Bilbao",
    "Cuxhaven",
    "Durres",
    "Esbjerg",
)
OWN = (
    ("harbour", "harbours", "throughput", "throughput_t", TONNES, "max", 4e6, 4e7, 0, ("berth", "berths")),
    ("clinic", "clinics", "waiting time", "wait_days", DAYS, "min", 9, 80, 1, ("doctor", "doctors")),
    ("flat", "flats", "rent", "rent_eur", EUR, "min", 640, 2900, 0, ("viewing", "viewings")),
    ("plant", "plants", "output", "output_kwh", KWH, "max", 20_000, 900_000, 1, ("panel", "panels")),
    ("fund", "funds", "yield", "yield_pct", PERCENT, "max", 1.1, 9.8, 2, ("holding", "holdings")),
    ("vendor", "vendors", "cost", "cost_gbp", GBP, "min", 90_000, 3_400_000, 2, ("contract", "contracts")),
    ("region", "regions", "turnover", "turnover_eur", EUR, "max", 2e8, 6e9, 0, ("branch", "branches")),
    ("line", "lines", "downtime", "downtime_h", HOURS, "min", 11, 400, 2, ("stop", "stops")),
)


def own(seed: int) -> Iterator[Case]:
    for at in range(40):
        for noun, nouns, label, column, unit, goal, low, high, digits, tallies in OWN:
            chance = random.Random(f"{seed} {at} {noun}")
            count = chance.choice((7, 9, 12, 18, 26))
            names = chance.sample(NAMES, count)
            if at % 3 == 1:
                names = [f"{noun[0].upper()}-{chance.randrange(100, 999)}-{name[:2].upper()}" for name in names]
            year = chance.choice(("", "2024", "2025"))
            rows = tuple(
                Candidate(
                    name,
                    round(chance.uniform(low, high), digits),
                    chance.randrange(3, 240),
                    date(int(year or 2025), 1, 1) + timedelta(chance.randrange(360)),
                    {"code": chance.randrange(10_000, 99_999), "grade": chance.choice("ABC")},
                )
                for name in names
            )
            labels = [f"{year}-Q{quarter}" for quarter in range(1, 5)] if year else ["2022", "2023", "2024", "2025"]
            periods = tuple(
                Period(row.name, label_of, round(row.value * chance.uniform(0.15, 0.4), max(digits, 1)))
                for row in rows
                for label_of in labels
            )
            form = Case(
                "own",
                wording(nouns, noun, label, goal, year, unit),
                noun,
                nouns,
                label,
                column,
                unit,
                goal,
                tallies,
                tallies[1],
                noun,
                "checked_on",
                "",
                rows,
                periods,
                year,
                at % 2 == 0,
            )
            order = noun if form.by_name else f"{column} {'DESC' if goal == 'max' else 'ASC'}"
            yield replace(
                form,
                sql=f"SELECT {noun}, code, grade, {tallies[1]}, {column}, checked_on FROM {nouns} ORDER BY {order}",
            )
    yield from modelled(seed)


def modelled(seed: int) -> Iterator[Case]:
    """The offers and tariffs whose outcome plain Python works out."""
    for number in range(seed, seed + 12):
        for world, table, unit_of in ((OFFERS, "offer", "minimum"), (TARIFFS, "tariff", "months")):
            rows, chance = world.rows(number), random.Random(number)
            key = "name" if table == "offer" else "tariff"
            candidates = tuple(
                Candidate(
                    row[key],
                    round(world.truth(rows, [row[key]])[0], 2),
                    row[unit_of] or chance.randrange(9, 60),
                    date(2026, 1, 1) + timedelta(chance.randrange(300)),
                    {"rank_code": chance.randrange(99)},
                )
                for row in rows[table]
            )
            label, noun, nouns = world.measure, table, f"{table}s"
            yield Case(
                "own",
                f"Which {noun} has the lowest {label}, in euros, of all {nouns}?",
                noun,
                nouns,
                label,
                f"{label}_eur",
                EUR,
                "min",
                ("unit", "units") if table == "offer" else ("month", "months"),
                unit_of,
                key,
                "valid_from",
                f"SELECT * FROM {table} ORDER BY {label}_eur",
                candidates,
            )


def wide_case(seed: int) -> Case:
    """A case of 200 rows with 10 columns."""
    chance = random.Random(seed)
    rows = tuple(
        Candidate(
            f"site {at:03}",
            round(40_000 - 190 * at + chance.uniform(0, 20), 2),
            chance.randrange(3, 240),
            date(2025, 1, 1) + timedelta(chance.randrange(360)),
            {f"extra_{column}": round(chance.uniform(0, 9999), 1) for column in range(6)},
        )
        for at in range(200)
    )
    form = Case(
        "own",
        wording("sites", "site", "turnover", "max", "", EUR),
        "site",
        "sites",
        "turnover",
        "turnover_eur",
        EUR,
        "max",
        ("visit", "visits"),
        "visits",
        "site",
        "checked_on",
        "SELECT * FROM sites",
        rows,
    )
    case = numbered(form)
    assert case
    return case
