"""Random decision models, and what is right for them: plain Python, row by row, one candidate at a time.

It imports nothing of Decisor. Finite numbers are exact fractions, a missing one is None, so 0.1 + 0.2 is 0.3 here and
an id of 30 digits is itself. A model is a handful of parts, each with its SQL and the Python that means the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import combinations, product
from typing import Any

Row = dict[str, Any]
World = dict[str, list[Row]]
Number = Fraction | float | None
NULL = "NULL"


class NoLimit(Exception):
    """A limit is NULL: the model has no answer."""


def fraction(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Fraction(str(value)) if is_number and math.isfinite(value) else value


def calculated(sign: Callable[[Any, Any], Any], one: Number, two: Number) -> Number:
    if one is None or two is None:
        return None
    if isinstance(one, float) or isinstance(two, float):
        return sign(float(one), float(two))  # type: ignore[no-any-return]
    return sign(one, two)  # type: ignore[no-any-return]


def plus(one: Number, two: Number) -> Number:
    return calculated(lambda a, b: a + b, one, two)


def minus(one: Number, two: Number) -> Number:
    return calculated(lambda a, b: a - b, one, two)


def times(one: Number, two: Number) -> Number:
    return calculated(lambda a, b: a * b, one, two)


def over(one: Number, two: Number) -> Number:
    if one is None or two is None:
        return None
    if two == 0:
        return math.nan if one == 0 or one != one else math.copysign(math.inf, one)
    return calculated(lambda a, b: a / b, one, two)


def total(values: Iterable[Number]) -> Number:
    there = [value for value in values if value is not None]
    result: Number = Fraction(0)
    for value in there:
        result = plus(result, value)
    return result if there else None


def above(one: Any, two: Any) -> bool:
    """As engines order them: NULL is no answer, not-a-number is above all."""
    if one is None or two is None:
        return False
    odd = [isinstance(value, float) and value != value for value in (one, two)]
    return odd[0] and not odd[1] if any(odd) else bool(one > two)


def smallest(values: Iterable[Any]) -> Any:
    best = None
    for value in values:
        if value is not None and (best is None or above(best, value)):
            best = value
    return best


def greatest(values: Iterable[Any]) -> Any:
    best = None
    for value in values:
        if value is not None and (best is None or above(value, best)):
            best = value
    return best


@dataclass
class Measure:
    name: str
    goal: str
    sql: str
    value: Callable[[World, list[Row]], Number]


@dataclass
class Rule:
    """``breaking``: how many rows break it. ``measure``: of a limit, with its side, SQL and value."""

    name: str
    toml: str
    breaking: Callable[[World, list[Row]], int] | None = None
    measure: str = ""
    side: int = 0
    limit: Callable[[World], Number] = lambda world: None


@dataclass
class Change:
    sql: str
    do: Callable[[World, list[Row]], None]


@dataclass
class Case:
    """One model. ``groups``: candidates, as numbers of the rows of offer."""

    number: int
    world: World
    types: dict[str, dict[str, str]]
    take: str
    groups: list[tuple[int, ...]]
    where: str
    measures: list[Measure]
    rules: list[Rule]
    change: Change
    scenarios: dict[str, Change]
    inputs: dict[str, str]
    limit: Fraction
    recompute: Change
    rounds: str
    """How often it recomputes, in TOML."""

    def table(self, name: str) -> str:
        return f"{name}_{self.number}"

    @property
    def toml(self) -> str:
        lines = [
            "format = 3",
            'decide = "what to take"',
            f"choice.pick.rows = '''SELECT * FROM {self.table('offer')}{self.where}'''",
            f"choice.pick.take = {self.take}",
        ]
        if self.change.sql:
            lines.append(f"change = '''{self.change.sql}'''")
        if self.recompute.sql:
            lines += ["[recompute]", f"sql = '''{self.recompute.sql}'''", self.rounds]
        lines += ["[parameter]", f"cap = {float(self.limit)!r}"]
        for one in self.measures:
            lines += [f"[measure.{one.name}]", f'goal = "{one.goal}"', f"sql = '''{one.sql}'''"]
        for rule in self.rules:
            lines += [f"[rule.{rule.name}]", rule.toml]
        for name, change in self.scenarios.items():
            lines += [f"[scenario.{name}]", f"change = '''{change.sql}'''"]
        lines += ["[input]", *(f'"{name}" = {{ spread = "{how}" }}' for name, how in self.inputs.items())]
        return "\n".join(lines)

    @property
    def sql(self) -> str:
        """The tables, in DuckDB."""
        parts = []
        for name, kinds in self.types.items():
            parts.append(f"CREATE TABLE {self.table(name)} ({', '.join(f'{c} {kind}' for c, kind in kinds.items())});")
            for row in self.world[name]:
                parts.append(f"INSERT INTO {self.table(name)} VALUES ({', '.join(map(written, row.values()))});")
        return "\n".join(parts)

    def outcome(self, group: Sequence[int], before: Change | None = None, world: World | None = None) -> Outcome:
        """Of one candidate. Raises NoLimit."""
        here = deepcopy(world or self.world)
        chosen = [here["offer"][at] for at in group]
        if before:
            before.do(here, [])
        chosen = deepcopy(chosen)  # the choice is a table of its own
        self.change.do(here, chosen)
        self.recompute.do(here, chosen)
        values = {one.name: one.value(here, chosen) for one in self.measures}
        broken = {}
        for rule in self.rules:
            if rule.breaking:
                broken[rule.name] = rule.breaking(here, chosen)
                continue
            limit, value = rule.limit(here), values[rule.measure]
            if limit is None or limit != limit:
                raise NoLimit(rule.name)
            bad = value is None or value != value
            broken[rule.name] = int(bad or above(*((value, limit) if rule.side > 0 else (limit, value))))
        return Outcome(values, {name: count for name, count in broken.items() if count})

    def present(self) -> dict[str, Number]:
        """The measures that are not made of the choice, with nothing chosen."""
        here = deepcopy(self.world)
        self.recompute.do(here, [])
        return {one.name: None if "pick" in one.sql else one.value(here, []) for one in self.measures}

    def every(self, before: Change | None = None, world: World | None = None) -> list[Outcome]:
        return [self.outcome(group, before, world) for group in self.groups]


@dataclass
class Outcome:
    """``broken``: rule -> rows that break it."""

    values: dict[str, Number]
    broken: dict[str, int]

    @property
    def first(self) -> Number:
        return next(iter(self.values.values()))

    @property
    def allowed(self) -> bool:
        return self.first is not None and math.isfinite(self.first) and not self.broken


def written(value: Any) -> str:
    match value:
        case None:
            return NULL
        case bool():
            return str(value).upper()
        case Fraction():
            text = f"{value.numerator}" if value.denominator == 1 else f"{float(value)!r}"
            return text if len(text) < 18 else f"'{text}'"
        case float():
            return f"'{value}'"
        case date():
            return f"DATE '{value}'"
        case _:
            return f"'{value}'"


def ranked(case: Case, every: Sequence[Outcome]) -> list[int]:
    """Places of the allowed ones, best first."""
    sign = 1 if case.measures[0].goal == "min" else -1
    places = [at for at, one in enumerate(every) if one.allowed]
    return sorted(places, key=lambda at: sign * every[at].first)  # type: ignore[operator]


# --- random models


def rows_of(rng: random.Random) -> tuple[World, dict[str, dict[str, str]]]:
    kinds = {
        "offer": {
            "name": "VARCHAR",
            "id": rng.choice(["BIGINT", "HUGEINT", "DECIMAL(38, 0)"]),
            "price": rng.choice(["DOUBLE", "DECIMAL(12, 2)", "INTEGER"]),
            "fee": "DECIMAL(6, 1)",
            "since": "DATE",
            "grp": "VARCHAR",
            "ok": "BOOLEAN",
        },
        "line": {
            "offer": "VARCHAR",
            "item": "VARCHAR",
            "units": rng.choice(["INTEGER", "BIGINT", "DOUBLE"]),
            "cost": rng.choice(["DOUBLE", "DOUBLE", "DECIMAL(9, 2)"]),
            "day": "DATE",
        },
        "firm": {"budget": "DOUBLE", "least": "INTEGER"},
    }
    kinds["line"]["ref"] = kinds["offer"]["id"]
    start = {"BIGINT": 2**53, "HUGEINT": 10**29 + 1, "DECIMAL(38, 0)": 123456789012345678901234567890}
    first, holes = start[kinds["offer"]["id"]], rng.choice([0, 0, 0.15, 0.4])

    def maybe(value: Any) -> Any:
        return None if rng.random() < holes else fraction(value)

    def price() -> Any:
        return rng.choice([1, 2, 3, 5]) if kinds["offer"]["price"] == "INTEGER" else rng.choice([0.1, 0.3, 2.5, 9.9])

    def cost() -> Any:
        odd = kinds["line"]["cost"] == "DOUBLE" and rng.random() < 0.04
        return rng.choice([math.inf, math.nan]) if odd else rng.choice([0.1, 0.2, 0.3, 0.7, -1.5, 4, 2.25])

    count = rng.randint(2, 6)

    def day() -> date:
        return date(2024, rng.randint(1, 12), rng.randint(1, 28))

    offers = [
        {
            "name": f"o{at}",
            "id": Fraction(first + at),
            "price": maybe(price()),
            "fee": maybe(rng.choice([0, 0, 0.5, 1.5, 2])),
            "since": maybe(day()),
            "grp": rng.choice("ab"),
            "ok": maybe(rng.random() < 0.7),
        }
        for at in range(count)
    ]
    lines = [
        {
            "offer": maybe(f"o{rng.randrange(count + 1)}"),
            "item": rng.choice("xyz"),
            "units": maybe(rng.randint(0, 4)),
            "cost": maybe(cost()),
            "day": maybe(day()),
            "ref": maybe(Fraction(first + rng.randrange(count + 2))),
        }
        for _ in range(rng.choice([0, 1, 5, 12]))
    ]
    firm = [
        {
            "budget": None if rng.random() < 0.1 else fraction(rng.choice([0.3, 0.6, 3, 10])),
            "least": None if rng.random() < 0.1 else fraction(rng.choice([-2, 0, 1])),
        }
    ]
    return {"offer": offers, "line": lines, "firm": firm}, kinds


def lines_of(world: World, chosen: Sequence[Row]) -> list[Row]:
    names = {row["name"] for row in chosen}
    return [row for row in world["line"] if row["offer"] in names]


def measures_of(rng: random.Random, line: str, single: bool) -> list[Measure]:
    def spent(rows: Iterable[Row]) -> Number:
        return total(times(row["units"], row["cost"]) for row in rows)

    def rest(world: World, chosen: list[Row]) -> Number:
        names = {row["name"] for row in chosen}
        kept = [row for row in world["line"] if row["offer"] not in names and (row["offer"] is not None or not names)]
        left = spent(kept)
        return plus(total(row["price"] for row in chosen), Fraction(0) if left is None else left)

    def average(world: World, chosen: list[Row]) -> Number:
        costs = [row["cost"] for row in lines_of(world, chosen) if row["cost"] is not None]
        return over(total(costs), Fraction(len(costs))) if costs else None

    def later(world: World, chosen: list[Row]) -> Number:
        least = smallest(row["since"] for row in chosen)
        return Fraction(sum(1 for row in world["line"] if least and row["day"] and row["day"] >= least))

    def width(world: World, chosen: list[Row]) -> Number:
        costs = [row["cost"] for row in lines_of(world, chosen)]
        return minus(greatest(costs), smallest(costs))

    every = [
        ("spent", f"SELECT sum(units * cost) FROM {line}", lambda w, c: spent(w["line"])),
        ("prices", "SELECT sum(price) FROM pick", lambda w, c: total(row["price"] for row in c)),
        (
            "rest",
            f"SELECT (SELECT sum(price) FROM pick) + coalesce((SELECT sum(units * cost) FROM {line} "
            "WHERE offer NOT IN (SELECT name FROM pick)), 0)",
            rest,
        ),
        ("average", f"SELECT avg(cost) FROM {line} WHERE offer IN (SELECT name FROM pick)", average),
        (
            "quotient",
            "SELECT sum(price) / sum(fee) FROM pick",
            lambda w, c: over(total(row["price"] for row in c), total(row["fee"] for row in c)),
        ),
        ("later", f"SELECT count(*) FROM {line} WHERE day >= (SELECT min(since) FROM pick)", later),
        ("width", f"SELECT max(cost) - min(cost) FROM {line} JOIN pick ON offer = name", width),
        (
            "hits",
            f"SELECT count(*) FROM {line} JOIN pick ON ref = id",
            lambda w, c: Fraction(sum(1 for row in w["line"] for one in c if row["ref"] == one["id"])),
        ),
        ("digits", "SELECT min(id % 1000) FROM pick", lambda w, c: smallest(row["id"] % 1000 for row in c)),
    ]
    if single:
        every.append(
            (
                "both",
                "SELECT (SELECT price FROM pick) + (SELECT fee FROM pick)",
                lambda w, c: plus(c[0]["price"], c[0]["fee"]),
            )
        )
        every.append(("own", "SELECT price FROM pick", lambda w, c: c[0]["price"]))
    picked = rng.sample(every, rng.randint(1, 3))
    return [Measure(name, rng.choice(["min", "max"]), sql, value) for name, sql, value in picked]


def limited(measure: str, sign: str, limit: str) -> str:
    """A rule's lines that hold a measure against a limit; a limit that is NULL is an error."""
    checked = f"coalesce({limit}, CAST('its limit is NULL' AS DOUBLE))"
    return f"""rows = "SELECT {measure}, {checked} AS most FROM measured"\nmust = '{measure} {sign} most'"""


def rules_of(rng: random.Random, line: str, firm: str, measures: list[Measure], cap: Fraction) -> list[Rule]:
    def loads(world: World, chosen: list[Row]) -> int:
        names = {row["name"] for row in chosen}
        sums = {name: total(row["cost"] for row in world["line"] if row["offer"] == name) for name in names}
        return sum(above(value, Fraction("0.3")) for value in sums.values())

    every = [
        Rule(
            "dear",
            "absent = 'SELECT name, price FROM pick WHERE price > $cap'",
            lambda w, c: sum(above(row["price"], cap) for row in c),
        ),
        Rule(
            "load",
            f"absent = 'SELECT offer, sum(cost) AS load FROM {line} WHERE offer IN (SELECT name FROM pick) "
            "GROUP BY offer HAVING sum(cost) > 0.3'",
            loads,
        ),
        Rule(
            "known",
            f"absent = 'SELECT name FROM pick WHERE NOT EXISTS (SELECT 1 FROM {line} WHERE ref = id)'",
            lambda w, c: sum(all(row["ref"] != one["id"] for row in w["line"]) for one in c),
        ),
        Rule(
            "late",
            '''absent = "SELECT name, since FROM pick WHERE since < DATE '2024-06-01' OR NOT ok"''',
            lambda w, c: sum(above(date(2024, 6, 1), row["since"]) or row["ok"] is False for row in c),
        ),
        Rule(
            "least",
            "absent = 'SELECT name FROM pick WHERE price <= 0.3'",
            lambda w, c: sum(row["price"] is not None and not above(row["price"], Fraction("0.3")) for row in c),
        ),
    ]
    name = rng.choice(measures).name
    value = rng.choice([Fraction("0.3"), Fraction("0.6"), Fraction(3)])
    every += [
        Rule("most", limited(name, "<=", f"CAST('{float(value)!r}' AS DOUBLE)"), None, name, 1, lambda w: value),
        Rule(
            "budget",
            limited(name, "<=", f"(SELECT budget FROM {firm})"),
            None,
            name,
            1,
            lambda w: w["firm"][0]["budget"],
        ),
        Rule(
            "floor",
            limited(name, ">=", f"(SELECT least FROM {firm})"),
            None,
            name,
            -1,
            lambda w: w["firm"][0]["least"],
        ),
    ]
    return rng.sample(every, rng.choice([0, 1, 1, 2, 3]))


def raise_cost(world: World, condition: Callable[[Row], bool], factor: Fraction) -> None:
    for row in world["line"]:
        if condition(row):
            row["cost"] = times(row["cost"], factor)


def changes_of(line: str) -> list[Change]:
    def named(chosen: list[Row]) -> set[str]:
        return {row["name"] for row in chosen}

    def delete(world: World, chosen: list[Row]) -> None:
        world["line"] = [row for row in world["line"] if row["offer"] not in named(chosen)]

    def more(world: World, chosen: list[Row]) -> None:
        for row in world["line"]:
            if row["cost"] is None:
                row["units"] = plus(row["units"], Fraction(len(chosen)))

    def insert(world: World, chosen: list[Row]) -> None:
        world["line"] += [
            {
                "offer": one["name"],
                "item": "new",
                "units": Fraction(1),
                "cost": one["price"],
                "day": one["since"],
                "ref": one["id"],
            }
            for one in chosen
        ]

    inside = "(SELECT name FROM pick)"
    return [
        Change("", lambda w, c: None),
        Change(
            f"UPDATE {line} SET cost = cost * 1.25 WHERE offer IN {inside}",
            lambda w, c: raise_cost(w, lambda row: row["offer"] in named(c), Fraction("1.25")),
        ),
        Change(f"DELETE FROM {line} WHERE offer IN {inside}", delete),
        Change(f"UPDATE {line} SET units = units + (SELECT count(*) FROM pick) WHERE cost IS NULL", more),
        Change(f"INSERT INTO {line} SELECT name, 'new', 1, price, since, id FROM pick", insert),
    ]


def scenarios_of(rng: random.Random, offer: str, line: str, firm: str) -> dict[str, Change]:
    def dearer(world: World, _: list[Row]) -> None:
        for row in world["offer"]:
            row["price"] = plus(row["price"], Fraction(5))

    def half(world: World, _: list[Row]) -> None:
        world["firm"][0]["budget"] = over(world["firm"][0]["budget"], Fraction(2))

    every = {
        "fuel": Change(
            f"UPDATE {line} SET cost = cost * 1.3 WHERE units > 2",
            lambda w, c: raise_cost(w, lambda row: above(row["units"], 2), Fraction("1.3")),
        ),
        "dearer": Change(f"UPDATE {offer} SET price = price + 5", dearer),
        "poor": Change(f"UPDATE {firm} SET budget = budget / 2", half),
    }
    return {name: every[name] for name in rng.sample(sorted(every), rng.choice([0, 1, 2]))}


def recompute_of(rng: random.Random, line: str, firm: str) -> tuple[Change, str]:
    """A change that is made again and again, and how often."""

    def grow(world: World, _: list[Row]) -> None:
        for _round in range(3):
            for row in world["line"]:
                if above(row["cost"], Fraction("0.25")):
                    row["units"] = plus(row["units"], Fraction(1))
                    row["cost"] = over(row["cost"], Fraction(2))

    def save(world: World, chosen: list[Row]) -> None:
        firm = world["firm"][0]
        while firm["budget"] is not None and firm["budget"] < 4:
            firm["budget"] = plus(firm["budget"], Fraction(1 + len(chosen)))

    return rng.choice(
        [
            (Change(f"UPDATE {line} SET units = units + 1, cost = cost / 2 WHERE cost > 0.25", grow), "times = 3"),
            (
                Change(f"UPDATE {firm} SET budget = budget + 1 + (SELECT count(*) FROM pick) WHERE budget < 4", save),
                f'until = "SELECT budget FROM {firm}"',
            ),
        ]
    )


def random_case(number: int) -> Case:
    rng, more = random.Random(number), random.Random(-1 - number)
    world, kinds = rows_of(rng)
    offer, line, firm = (f"{name}_{number}" for name in ("offer", "line", "firm"))
    count = len(world["offer"])
    where, rows = "", list(range(count))
    if rng.random() < 0.2:
        where, rows = (
            " WHERE since >= DATE '2024-03-01'",
            [at for at in rows if world["offer"][at]["since"] and world["offer"][at]["since"] >= date(2024, 3, 1)],
        )
    if not rows:
        where, rows = "", list(range(count))
    take = rng.choice(["1", "1", "1", "2" if len(rows) > 1 else "1", '"0-2"', '"one per grp"'])
    if take == '"one per grp"':
        groups: dict[str, list[int]] = {}
        for at in rows:
            groups.setdefault(world["offer"][at]["grp"], []).append(at)
        candidates = list(product(*groups.values()))
    else:
        sizes = [0, 1, 2] if take == '"0-2"' else [int(take)]
        candidates = [group for size in sizes for group in combinations(rows, size)]
    cap = rng.choice([Fraction("0.3"), Fraction("2.5"), Fraction(3)])
    measures = measures_of(rng, line, take == "1")
    spread = ["10 % each", "20 % together", "15 % by item"]
    inputs = {f"{line}.cost": rng.choice(spread)} if rng.random() < 0.8 else {}
    if rng.random() < 0.5:
        inputs[f"{offer}.price"] = rng.choice(["10 % each", "5 % together", "25 % by grp"])
    recompute, rounds = recompute_of(more, line, firm) if more.random() < 0.25 else (Change("", lambda w, c: None), "")
    return Case(
        number,
        world,
        kinds,
        take,
        candidates,
        where,
        measures,
        rules_of(rng, line, firm, measures, cap),
        rng.choice(changes_of(line)),
        scenarios_of(rng, offer, line, firm),
        inputs,
        cap,
        recompute,
        rounds,
    )
