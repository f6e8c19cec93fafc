"""Small databases with a question each, for the careless policy: freight, people, deliveries, parts and shops.

A world knows its right query, and what a careless reader would leave out of it, order by, or take for a candidate.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

Rows = Mapping[str, Sequence[tuple[object, ...]]]


@dataclass(frozen=True)
class World:
    """A database with its question."""

    tables: str
    """Its CREATE TABLE statements."""
    make_rows: Callable[[random.Random], Rows]
    question: str
    rules: str
    joined: str
    """Tables of the right query."""
    name: str
    """Column of the candidates' names."""
    names: Sequence[str]
    invented: Sequence[str]
    """Names of no candidate."""
    measure: tuple[str, str]
    """Formula and name of what decides."""
    other: tuple[str, str]
    """Formula and name of what does not."""
    condition: str
    """What a careless reader does not forget; may be empty."""
    rule: str
    """What it forgets."""
    rule_column: str
    """Column that shows whether a candidate keeps the rule."""
    is_allowed: Callable[[str], bool]
    """Whether it does, by the value of this column as it is shown."""
    noun: str
    """What decides, in words."""
    extreme: str
    unit: str
    wrong_unit: str
    other_unit: str = ""
    goal: str = "min"
    group: str = ""
    home: str = ""
    """What the question wants to reach; empty if it wants to reach nothing."""
    home_column: str = ""

    @property
    def first_table(self) -> str:
        return self.tables.split()[2].partition("(")[0]

    def allows(self, row: Mapping[str, str]) -> bool:
        column = self.rule_column.rpartition(" AS ")[2].rpartition(".")[2]
        return column not in row or self.is_allowed(row[column])

    def query(
        self,
        measure: tuple[str, str] | None = None,
        rule: bool = True,
        order: bool = True,
        columns: Sequence[str] = (),
        also: str = "",
        tail: str = "",
    ) -> str:
        """Write the right query, or one that differs."""
        formula, alias = measure or self.measure
        conditions = " AND ".join(filter(None, [self.condition, self.rule if rule else "", also]))
        selected = ", ".join([self.name, f"{formula} AS {alias}", *columns])
        where = f" WHERE {conditions}" if conditions else ""
        group = f" GROUP BY {self.group}" if self.group else ""
        by = f" ORDER BY {alias}{' DESC' if self.goal == 'max' else ''}" if order else ""
        return f"SELECT {selected} FROM {self.joined}{where}{group}{by}{tail}"


def fill_world(world: World, path: Path, dice: random.Random) -> list[str]:
    """Write a database in which no error leads to the best candidate; return the allowed ones, best first."""
    while True:
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        try:
            connection.executescript(f"PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; {world.tables}")
            for table, rows in world.make_rows(dice).items():
                connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            connection.commit()
            right = connection.execute(world.query()).fetchall()
            wrong = [
                world.query(rule=False),
                world.query(measure=world.other),
                world.query(order=False),
                world.query(order=False, tail=" LIMIT 1"),
            ]
            firsts = [row[0] for query in wrong for row in connection.execute(query).fetchmany(1)]
            measures = [row[1] for row in connection.execute(world.query(rule=False))]
            others = [row[1] for row in connection.execute(world.query(measure=world.other))]
        finally:
            connection.close()
        is_told_apart = len({*measures}) == len(measures) and len({*others}) == len(others)
        if 4 <= len(right) < len(world.names) and right[0][0] not in firsts and is_told_apart:
            return [str(row[0]) for row in right]


def shuffled(names: Sequence[str], dice: random.Random) -> list[str]:
    return dice.sample(names, len(names))


def days(dice: random.Random, first: date, last: date) -> str:
    return (first + timedelta(dice.randint(0, (last - first).days))).isoformat()


DEPOTS = ["Arles", "Bremen", "Cordoba", "Dresden", "Esbjerg", "Ferrara", "Gdansk", "Huelva", "Izmir"]
PORTS = ["Rotterdam", "Antwerp", "Le Havre"]


def make_freight(dice: random.Random) -> Rows:
    depots = [
        (name, dice.choice(["north", "south"]), dice.randint(400, 4000), int(dice.random() < 0.7))
        for name in shuffled(DEPOTS, dice)
    ]
    pairs = [(depot[0], port) for depot in depots for port in PORTS]
    routes = [
        (*pair, round(dice.uniform(900, 9000), 2), dice.randint(1, 60)) for pair in dice.sample(pairs, len(pairs))
    ]
    return {"depot": depots, "route": routes}


FREIGHT = World(
    "CREATE TABLE depot (name TEXT PRIMARY KEY, region TEXT, handling_eur INTEGER, is_open INTEGER);"
    "CREATE TABLE route (depot TEXT, port TEXT, freight_eur REAL, days INTEGER, PRIMARY KEY (depot, port));",
    make_freight,
    "From which depot can Rotterdam be supplied at the lowest cost?",
    "The cost is the handling of the depot plus the freight to the port. Only open depots may be chosen.",
    "depot JOIN route ON route.depot = depot.name",
    "depot.name",
    DEPOTS,
    ["Tromso", "Malaga", "Veurne"],
    ("ROUND(depot.handling_eur + route.freight_eur, 2)", "cost_eur"),
    ("route.days", "days"),
    "route.port = 'Rotterdam'",
    "depot.is_open = 1",
    "depot.is_open",
    lambda shown: shown == "1",
    "cost",
    "lowest",
    "EUR",
    "kg",
    other_unit="days",
    home="Rotterdam",
    home_column="route.port",
)

PEOPLE = [
    "Ana Ruiz",
    "Ben Okoro",
    "Carla Weiss",
    "Dmitri Ivanov",
    "Elif Demir",
    "Farid Haddad",
    "Grace Lin",
    "Hugo Marin",
]
PLANTS = ["Turin", "Ghent", "Porto"]


def make_people(dice: random.Random) -> Rows:
    people = [
        (name, days(dice, date(2015, 1, 1), date(2024, 12, 31)), dice.choice(["welding", "control"]))
        for name in shuffled(PEOPLE, dice)
    ]
    pairs = [(person[0], plant) for person in people for plant in PLANTS]
    trips = [
        (*pair, round(dice.uniform(1, 19), 1), round(dice.uniform(60, 900), 2))
        for pair in dice.sample(pairs, len(pairs))
    ]
    return {"engineer": people, "trip": trips}


TRAVEL = World(
    "CREATE TABLE engineer (name TEXT PRIMARY KEY, hired DATE, skill TEXT);"
    "CREATE TABLE trip (engineer TEXT, plant TEXT, travel_h REAL, fare_eur REAL, PRIMARY KEY (engineer, plant));",
    make_people,
    "Which engineer gets to the plant in Turin soonest?",
    "What counts is the travel time. Only engineers who were hired before 2021 may go.",
    "engineer JOIN trip ON trip.engineer = engineer.name",
    "engineer.name",
    PEOPLE,
    ["Ivo Petrov", "Jana Novak", "Kofi Mensah"],
    ("trip.travel_h", "travel_h"),
    ("trip.fare_eur", "fare_eur"),
    "trip.plant = 'Turin'",
    "engineer.hired < '2021-01-01'",
    "engineer.hired",
    lambda shown: shown < "2021-01-01",
    "travel time",
    "shortest",
    "h",
    "min",
    other_unit="EUR",
    home="Turin",
    home_column="trip.plant",
)

SUPPLIERS = ["Aurora", "Borealis Ltd", "Cedar & Sons", "Delta Foods", "Elm Trading", "Fjord AS", "Garnet"]


def make_deliveries(dice: random.Random) -> Rows:
    deliveries = [
        (at, dice.choice(SUPPLIERS), days(dice, date(2022, 1, 1), date(2024, 12, 31)), dice.randint(40, 900))
        + (round(dice.uniform(100, 4000), 2),)
        for at in range(1, 90)
    ]
    return {
        "supplier": [(name, dice.choice("ABC")) for name in SUPPLIERS[:-1] + SUPPLIERS[-1:]],
        "delivery": deliveries,
    }


RETURNS = World(
    "CREATE TABLE supplier (name TEXT PRIMARY KEY, class TEXT);"
    "CREATE TABLE delivery (id INTEGER PRIMARY KEY, supplier TEXT, day DATE, returned_kg INTEGER, value_eur REAL);",
    make_deliveries,
    "Which supplier had the largest weight of returned goods in 2023?",
    "Suppliers of class C are not considered.",
    "delivery JOIN supplier ON supplier.name = delivery.supplier",
    "supplier.name",
    SUPPLIERS,
    ["Harbour Co", "Ibex", "Juniper Group"],
    ("SUM(delivery.returned_kg)", "returned_kg"),
    ("ROUND(SUM(delivery.value_eur), 2)", "value_eur"),
    "delivery.day >= '2023-01-01' AND delivery.day < '2024-01-01'",
    "supplier.class <> 'C'",
    "supplier.class",
    lambda shown: shown != "C",
    "weight of returned goods",
    "largest",
    "kg",
    "h",
    other_unit="EUR",
    goal="max",
    group="supplier.name",
)

CODES = ["K-104", "K-118", "K-121", "K-207", "K-233", "K-250", "K-301", "K-316", "K-342", "K-377"]
MACHINES = ["MX-7", "MX-9"]


def make_parts(dice: random.Random) -> Rows:
    parts = [
        (code, round(dice.uniform(2, 480), 2), dice.randint(20, 9000), dice.randint(0, 40))
        for code in shuffled(CODES, dice)
    ]
    fits = [(part[0], machine) for part in parts for machine in MACHINES if machine == "MX-7" or dice.random() < 0.5]
    return {"part": parts, "fits": dice.sample(fits, len(fits))}


PARTS = World(
    "CREATE TABLE part (code TEXT PRIMARY KEY, price_usd REAL, weight_g INTEGER, stock INTEGER);"
    "CREATE TABLE fits (part TEXT, machine TEXT, PRIMARY KEY (part, machine));",
    make_parts,
    "Which part should be built into the machine MX-7 at the lowest price?",
    "A part may be taken if more than 10 pieces are in stock.",
    "part JOIN fits ON fits.part = part.code",
    "part.code",
    CODES,
    ["K-999", "K-411", "K-108"],
    ("part.price_usd", "price_usd"),
    ("part.weight_g", "weight_g"),
    "fits.machine = 'MX-7'",
    "part.stock > 10",
    "part.stock",
    lambda shown: int(shown) > 10,
    "price",
    "lowest",
    "USD",
    "EUR",
    other_unit="g",
    home="MX-7",
    home_column="fits.machine",
)

SHOPS = [
    "Old Market",
    "North Gate",
    "Harbour Street",
    "Mill Lane",
    "Station Square",
    "West End",
    "Kings Road",
    "Lake Side",
]


def make_shops(dice: random.Random) -> Rows:
    shops = [
        (
            at,
            name,
            days(dice, date(2012, 1, 1), date(2024, 6, 30)),
            dice.randint(80000, 990000),
            dice.randint(2000, 30000),
        )
        for at, name in enumerate(shuffled(SHOPS, dice), 1)
    ]
    return {"shop": shops}


SALES = World(
    "CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT, opened DATE, revenue_eur INTEGER, visitors INTEGER);",
    make_shops,
    "Which shop earns the most per visitor?",
    "What counts is the revenue divided by the visitors. Shops opened in 2020 or later are left out.",
    "shop",
    "shop.name",
    SHOPS,
    ["Bridge Street", "Castle Hill", "Park Row"],
    ("ROUND(1.0 * shop.revenue_eur / shop.visitors, 2)", "revenue_per_visitor_eur"),
    ("shop.revenue_eur", "revenue_eur"),
    "",
    "shop.opened < '2020-01-01'",
    "shop.opened",
    lambda shown: shown < "2020-01-01",
    "revenue per visitor",
    "highest",
    "EUR",
    "USD",
    other_unit="EUR",
    goal="max",
)

WORLDS = {"freight": FREIGHT, "travel": TRAVEL, "returns": RETURNS, "parts": PARTS, "sales": SALES}


def list_worlds(with_home: bool) -> Iterator[World]:
    """Iterate over the worlds, or over those that want to reach something."""
    yield from (world for world in WORLDS.values() if world.home or not with_home)
