"""A decision model as its file says it. Statements are DuckDB's SQL for one candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from decisor.decision_models.lines import Lines, line_of
from decisor.types import Goal

Bound = float | str
"""A number, or a query that gives one."""


@dataclass(frozen=True)
class Take:
    """How many rows of ``choice`` a candidate has: from ``low`` to ``high``, or one for each value of ``per``."""

    low: int = 1
    high: int = 1
    per: str = ""

    @property
    def single(self) -> bool:
        """One row, whose columns are parameters ($name) of the statements."""
        return self.low == self.high == 1 and not self.per

    def __str__(self) -> str:
        return (
            f"one per {self.per}" if self.per else str(self.low) if self.low == self.high else f"{self.low}-{self.high}"
        )


@dataclass(frozen=True)
class Recompute:
    """Statements that run ``times``, or until the number of the query ``until`` settles (relative 1e-9)."""

    sql: str
    times: int = 0
    until: str = ""


@dataclass(frozen=True)
class Measure:
    """``now``: what the books say today. ``sum``: the same as a linear sum over variables, for the solver. ``metric``:
    of the definitions, whose query ``sql`` becomes."""

    name: str
    goal: Goal
    unit: str = ""
    sql: str = ""
    now: float | None = None
    sum: str = ""
    metric: str = ""


@dataclass(frozen=True)
class Rule:
    """Either ``broken``, a query of the rows that break it, or a measure with ``at_most`` or ``at_least``. One that no
    data can test is not ``testable``, and has neither."""

    name: str
    text: str = ""
    broken: str = ""
    say: str = ""
    measure: str = ""
    at_most: Bound | None = None
    at_least: Bound | None = None
    testable: bool = True

    @property
    def bound(self) -> Bound | None:
        return self.at_least if self.at_most is None else self.at_most


@dataclass(frozen=True)
class Scenario:
    """A change before the choice. ``weight``: how likely it is, where somebody knows."""

    name: str
    change: str
    weight: float | None = None
    text: str = ""


@dataclass(frozen=True)
class Spread:
    """``share``: 0.1 for 10 %. ``how``: each row by itself, all together, or alike where a column is (its name)."""

    share: float
    how: str

    def __str__(self) -> str:
        how = self.how if self.how in ("each", "together") else f"by {self.how}"
        return f"{self.share * 100:g} % {how}"


@dataclass(frozen=True)
class Input:
    """A column. ``raises``, ``lowers``: the measures that grow, or fall, where it grows. Without a spread it is taken
    as certain."""

    table: str
    column: str
    unit: str = ""
    raises: tuple[str, ...] = ()
    lowers: tuple[str, ...] = ()
    spread: Spread | None = None

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"


@dataclass(frozen=True)
class Variable:
    """Unknowns of an integer program: one for each row of ``each``. ``most``: of a whole number or an amount."""

    name: str
    each: str
    kind: Literal["yes or no", "whole", "amount"] = "yes or no"
    most: float | None = None


@dataclass(frozen=True)
class Require:
    """A linear requirement for each row of ``each`` ('' = one): ``sum`` is at most, at least or equal to ``bound``."""

    name: str
    sum: str
    side: Literal["at_most", "at_least", "equals"]
    bound: Bound
    each: str = ""
    text: str = ""


@dataclass(frozen=True)
class Example:
    """Worked by hand: the measures of one candidate, and the rules it breaks (None where that was not worked out)."""

    choice: tuple[str, ...]
    outcomes: Mapping[str, float] = field(default_factory=dict)
    breaks: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Model:
    """``copy``: table of the copy -> query on the source, in the source's own language. ``parameters``: $name in
    statements. ``keys``: table -> columns that tell its rows apart. ``seconds``: the longest a statement may take."""

    decide: str
    measures: tuple[Measure, ...]
    choice: str = ""
    take: Take = Take()
    change: str = ""
    recompute: Recompute | None = None
    rules: tuple[Rule, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    inputs: tuple[Input, ...] = ()
    variables: tuple[Variable, ...] = ()
    requires: tuple[Require, ...] = ()
    examples: tuple[Example, ...] = ()
    copy: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str | float | bool] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seconds: float = 20.0
    text: str = field(default="", repr=False, compare=False)
    lines: Lines = field(default_factory=dict, repr=False, compare=False)

    @property
    def first(self) -> Measure:
        """The measure that decides."""
        return self.measures[0]

    def line(self, *path: str) -> int:
        """Where a part stands in the file, from 1; 0 where it stands nowhere."""
        return line_of(self.lines, path)

    def statements(self) -> dict[str, str]:
        """Part of the file (rule.NAME.broken) -> its SQL on the copy."""
        parts = {"choice": self.choice, "change": self.change}
        if self.recompute:
            parts |= {"recompute.sql": self.recompute.sql, "recompute.until": self.recompute.until}
        parts |= {f"measure.{one.name}.sql": one.sql for one in self.measures}
        parts |= {f"rule.{one.name}.broken": one.broken for one in self.rules}
        parts |= {f"rule.{one.name}": one.bound for one in self.rules if isinstance(one.bound, str)}
        parts |= {f"scenario.{one.name}.change": one.change for one in self.scenarios}
        parts |= {f"variable.{one.name}.each": one.each for one in self.variables}
        parts |= {f"require.{one.name}.each": one.each for one in self.requires}
        parts |= {f"require.{one.name}": one.bound for one in self.requires if isinstance(one.bound, str)}
        return {part: sql for part, sql in parts.items() if sql.strip()}
