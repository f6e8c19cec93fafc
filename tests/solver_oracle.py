"""Random integer programs as decision models, and what is right for them: every integer point, in exact fractions.

It imports nothing of Decisor. A program has at most four unknowns. NULL as a coefficient or bound is an error.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeVar, cast

from decision_oracle import Row, World, written

FAR = 12
"""So far goes an unknown that no amount limits; no optimum of these programs is farther."""
RAYS = 6
KINDS = {"yes or no": "binary", "whole": "integer"}
SIGNS = {"at_most": "<=", "at_least": ">=", "equals": "="}
Point = tuple[int, ...]
Exact = TypeVar("Exact", int, Fraction)


class NoProgram(Exception):
    """A coefficient or bound is no finite number; the text is the part of the file."""


@dataclass(frozen=True)
class Term:
    """``sign * factor * variable``. ``factor``: a number, or a column of the variable or of the requirement's rows."""

    sign: int
    factor: str
    variable: str
    pairs: tuple[tuple[str, str], ...] | None = None
    """Columns that are to agree, of the variable and of the row; None: those that both have."""

    def query(self, columns: Sequence[str], keys: Sequence[str]) -> str:
        """In SQL: ``v`` has the columns of the variable, ``k`` those of the requirement's row."""
        shared = [(name, name) for name in columns if name in keys] if self.pairs is None else self.pairs
        where = " AND ".join(f"v.{one} = k.{other}" for one, other in shared)
        owner = "" if not self.factor or self.factor[0].isdigit() else "v." if self.factor in columns else "k."
        amount = f"{owner}{self.factor} * v.amount" if self.factor else "v.amount"
        sign = "-" if self.sign < 0 else "+"
        return f"{sign} (SELECT coalesce(sum({amount}), 0) FROM {self.variable} AS v{where and f' WHERE {where}'})"

    def coefficient(self, part: str, mine: Row, other: Row) -> Fraction:
        """Of an unknown in one row; 0 where they do not belong together. Raises NoProgram."""
        shared = tuple((name, name) for name in mine if name in other) if self.pairs is None else self.pairs
        if any(mine[a] is None or mine[a] != other[b] for a, b in shared):
            return Fraction(0)
        value = (
            Fraction(self.factor or 1)
            if not self.factor or self.factor[0].isdigit()
            else {**other, **mine}[self.factor]
        )
        return self.sign * finite(part, value)


def finite(part: str, value: Any) -> Fraction:
    if value is None or not math.isfinite(value):
        raise NoProgram(part)
    return Fraction(value)


@dataclass(frozen=True)
class Variable:
    name: str
    table: str
    columns: tuple[str, ...]
    kind: str
    most: float | None


@dataclass(frozen=True)
class Requirement:
    name: str
    terms: tuple[Term, ...]
    side: str
    bound: float | str
    """A number, a column of the rows, or a query."""
    each: tuple[str, tuple[str, ...]] = ("", ())
    """The table of its rows and their columns; without one it is one row."""


@dataclass(frozen=True)
class Line:
    """One inequality, in whole numbers."""

    coefficients: tuple[int, ...]
    side: str
    bound: int | float

    @classmethod
    def of(cls, coefficients: Sequence[Fraction], side: str, bound: Fraction | float) -> Line:
        scale = math.lcm(*(one.denominator for one in coefficients))
        scale *= bound.denominator if isinstance(bound, Fraction) else 1
        most = int(bound * scale) if isinstance(bound, Fraction) else bound
        return cls(tuple(int(one * scale) for one in coefficients), side, most)

    def holds(self, point: Point) -> bool:
        value = value_of(self.coefficients, point)
        return {"at_most": value <= self.bound, "at_least": value >= self.bound, "equals": value == self.bound}[
            self.side
        ]


@dataclass(frozen=True)
class Truth:
    """``points``: all of the best. ``feasible``: all that meet the requirements."""

    status: str
    best: Fraction = Fraction(0)
    points: tuple[Point, ...] = ()
    feasible: tuple[Point, ...] = ()


@dataclass(frozen=True)
class Case:
    number: int
    world: World
    types: dict[str, dict[str, str]]
    variables: tuple[Variable, ...]
    requirements: tuple[Requirement, ...]
    goal: str
    terms: tuple[Term, ...]
    share: Fraction

    def table(self, name: str) -> str:
        return f"{name}_{self.number}"

    @property
    def toml(self) -> str:
        lines = ["format = 3", 'decide = "x"', "[parameter]", f"share = {float(self.share)!r}"]
        for one in self.variables:
            lines += [
                f"[unknown.{one.name}]",
                f'per = "{self.query(one.table, one.columns)}"',
                f'kind = "{KINDS[one.kind]}"',
            ]
            lines += [] if one.most is None else [f"upper = {one.most!r}"]
        for require in self.requirements:
            table, columns = require.each
            each = self.query(table, columns) if table else "SELECT 0 AS one"
            total = self.sum_query(require.terms, columns)
            bound = f"CAST('{require.bound!r}' AS DOUBLE)"
            if isinstance(require.bound, str):
                bound = f"({require.bound.replace('firm', self.table('firm'))})"
                bound = f"k.{require.bound}" if require.bound in columns else bound
            lines += [
                f"[rule.{require.name}]",
                f'rows = "SELECT k.*, {total} AS total, {bound} AS bound FROM ({each}) AS k"',
                f'must = "total {SIGNS[require.side]} bound"',
            ]
        lines += ["[measure.gain]", f'goal = "{self.goal}"', f'sql = "SELECT {self.sum_query(self.terms, ())}"']
        lines += ["[measure.weight]", 'goal = "min"', 'sql = "SELECT coalesce(sum(weight * amount), 0) FROM take"']
        lines += [
            "[scenario.dear]",
            f"change = \"UPDATE {self.table('item')} SET weight = weight * 2 WHERE grp = 'a'\"",
        ]
        return "\n".join(lines)

    def sum_query(self, terms: Sequence[Term], keys: Sequence[str]) -> str:
        """The sum of terms for a row ``k`` that has these columns."""
        columns_of = {one.name: one.columns for one in self.variables}
        return " ".join(term.query(columns_of[term.variable], keys) for term in terms).removeprefix("+ ")

    def query(self, table: str, columns: Sequence[str]) -> str:
        return f"SELECT {', '.join(columns)} FROM {self.table(table)}"

    @property
    def sql(self) -> str:
        parts = []
        for name, kinds in self.types.items():
            parts.append(f"CREATE TABLE {self.table(name)} ({', '.join(f'{c} {kind}' for c, kind in kinds.items())});")
            parts += [
                f"INSERT INTO {self.table(name)} VALUES ({', '.join(map(written, row.values()))});"
                for row in self.world[name]
            ]
        return "\n".join(parts)

    def unknowns(self, world: World) -> list[tuple[Variable, Row]]:
        return [(one, {c: row[c] for c in one.columns}) for one in self.variables for row in world[one.table]]

    def line(self, part: str, terms: Sequence[Term], other: Row, world: World) -> tuple[Fraction, ...]:
        return tuple(
            sum((term.coefficient(part, mine, other) for term in terms if term.variable == one.name), Fraction(0))
            for one, mine in self.unknowns(world)
        )

    def lines(self, world: World) -> Iterator[Line]:
        for one in self.requirements:
            part = f"require.{one.name}"
            table, columns = one.each
            rows = [{c: row[c] for c in columns} for row in world[table]] if table else [{}]
            bounds = [self.bound(part, one, row, world) for row in rows]
            for row, bound in zip(rows, bounds, strict=True):
                yield Line.of(self.line(part, one.terms, row, world), one.side, bound)

    def bound(self, part: str, one: Requirement, row: Row, world: World) -> Fraction | float:
        if not isinstance(one.bound, str):
            return Fraction(str(one.bound))
        value: Fraction | float | None = row[one.bound] if one.bound in row else world["firm"][0]["budget"]
        if value is None or value != value:
            raise NoProgram(part)
        return value if isinstance(value, float) or one.bound in row else value * self.share

    def solve(self, world: World | None = None) -> Truth:
        """Raises NoProgram."""
        here = world or self.world
        exact = self.line("measure.gain", self.terms, {}, here)
        cost = Line.of(exact, "", Fraction(0)).coefficients
        lines, unknowns = list(self.lines(here)), self.unknowns(here)
        top = [
            1 if one.kind == "yes or no" else math.floor(one.most) if one.most is not None else FAR
            for one, _ in unknowns
        ]
        feasible = [
            point for point in product(*(range(most + 1) for most in top)) if all(one.holds(point) for one in lines)
        ]
        sign = 1 if self.goal == "min" else -1
        if not feasible:
            return Truth("infeasible")
        free = [one.kind == "whole" and one.most is None for one, _ in unknowns]
        for ray in product(*(range(RAYS + 1 if one else 1) for one in free)):
            still = all(Line(one.coefficients, one.side, 0).holds(ray) or math.isinf(one.bound) for one in lines)
            if still and sign * value_of(cost, ray) < 0:
                return Truth("unbounded")
        best = min(feasible, key=lambda point: sign * value_of(cost, point))
        points = tuple(point for point in feasible if value_of(cost, point) == value_of(cost, best))
        return Truth("optimal", value_of(exact, best), points, tuple(feasible))

    def value(self, point: Point) -> Fraction:
        return value_of(self.line("measure.gain", self.terms, {}, self.world), point)


def value_of(coefficients: Sequence[Exact], point: Point) -> Exact:
    return cast(Exact, sum(map(operator.mul, coefficients, point)))


def dearer(world: World) -> World:
    """The scenario."""
    rows = [
        {**row, "weight": row["weight"] * 2 if row["grp"] == "a" and row["weight"] is not None else row["weight"]}
        for row in world["item"]
    ]
    return {**world, "item": rows}


def random_program(number: int) -> Case:
    rng = random.Random(number)
    holes = rng.choice([0, 0, 0, 0.08])

    def maybe(value: Any) -> Any:
        return None if rng.random() < holes else value if math.isinf(value) else Fraction(str(value))

    types = {
        "item": {
            "name": "VARCHAR",
            "grp": "VARCHAR",
            "gain": rng.choice(["DOUBLE", "DECIMAL(9, 2)"]),
            "weight": rng.choice(["DOUBLE", "DECIMAL(9, 1)"]),
        },
        "team": {"grp": "VARCHAR", "most": "DOUBLE", "fee": "DOUBLE", "rate": "INTEGER"},
        "firm": {"budget": "DOUBLE"},
    }
    kind = rng.choice(["yes or no", "whole"])
    most = None if kind == "yes or no" else rng.choice([None, None, 1, 2, 2.5])
    endless = kind == "whole" and most is None
    count = rng.randint(1, 3 if endless else 4)
    two = count < 4 and rng.random() < 0.5
    gains = [-1.5, 0, 0.1, 0.7, 2, 2, 3.25, 4, 5, 5.5, *([math.inf] if types["item"]["gain"] == "DOUBLE" else [])]
    weights = [0.5, 1, 2, 2.5] if endless else [0.1, 0.2, 0.5, 1, 2, 2.5]
    items = [
        {
            "name": f"i{at}",
            "grp": None if rng.random() < 0.1 else rng.choice("ab"),
            "gain": maybe(rng.choice(gains[: None if rng.random() < 0.1 else 10])),
            "weight": maybe(rng.choice(weights)),
        }
        for at in range(count)
    ]
    teams = [
        {
            "grp": grp,
            "most": maybe(rng.choice([-1, 0, 0.3, 1, 2.5, 4, math.inf])),
            "fee": maybe(rng.choice([0, 0.5, 1.25])),
            "rate": maybe(rng.choice([1, 2])),
        }
        for grp in rng.sample("abc", min(3, 4 - count) if two else rng.randint(0, 3))
    ]
    firm = [{"budget": maybe(rng.choice([0.3, 0.6, 2, 5, math.inf]))}]
    variables = [Variable("take", "item", ("name", "grp", "gain", "weight"), kind, most)]
    variables += [Variable("run", "team", ("grp", "fee"), "yes or no", None)] if two else []
    take, weigh = Term(1, "", "take"), Term(1, "weight", "take")
    every = [
        Requirement("budget", (weigh,), "at_most", "SELECT budget * $share FROM firm"),
        Requirement("cap", (weigh, Term(1, "2", "take")), "at_most", rng.choice([0.3, 3, 6.1])),
        Requirement("team", (weigh,), rng.choice(["at_most", "at_least"]), "most", ("team", ("grp", "most"))),
        Requirement("rated", (Term(1, "rate", "take"),), "at_most", rng.choice([1, 2, 5]), ("team", ("grp", "rate"))),
        Requirement("some", (take,), "at_least", rng.choice([1, 2])),
        Requirement("number", (take,), "equals", rng.choice([1, 2, 2.5])),
        Requirement("rivals", (Term(1, "", "take", (("grp", "grp"),)),), "at_most", 1, ("item", ("name", "grp"))),
    ]
    if two:
        every += 2 * [Requirement("open", (take, Term(-1, "3", "run")), "at_most", 0, ("item", ("name", "grp")))]
    chosen = {one.name: one for one in rng.sample(every, rng.randint(1, 3))}
    terms = [Term(1, "gain", "take")]
    terms += [Term(rng.choice([1, -1]), rng.choice(["fee", "", "2"]), "run")] if two else []
    terms += [Term(-1, "weight", "take")] if rng.random() < 0.3 else []
    world, share = {"item": items, "team": teams, "firm": firm}, rng.choice([Fraction(1), Fraction("0.5")])
    goal = rng.choice(["min", "max", "max"])
    return Case(number, world, types, tuple(variables), tuple(chosen.values()), goal, tuple(terms), share)
