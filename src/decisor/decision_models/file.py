"""A decision model as its file describes it, and the parser of the file.

Statements are DuckDB's SQL for one candidate. ``parse_model`` checks a text by its schema, then for unknown names and
parts that need each other. Every fault is named with its line. No statement is run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from decisor.errors import ModelMistake, SetupError
from decisor.system.structured_files import (
    MAX_CHARS,
    SPREAD,
    Lines,
    TomlFault,
    find_line_number,
    find_line_numbers,
    find_schema_faults,
    format_faults,
    parse_toml,
    read_text_file,
)
from decisor.types import Goal

Bound = int | float | str
"""A number, or a query that gives one."""


@dataclass(frozen=True)
class Take:
    """The number of rows of ``choice`` that make up a candidate.

    From ``low`` to ``high``, or one for each value of the column ``per``.
    """

    low: int = 1
    high: int = 1
    per: str = ""

    @property
    def single(self) -> bool:
        """Whether a candidate is one row. Its columns are parameters ($name) of the statements then."""
        return self.low == self.high == 1 and not self.per

    def __str__(self) -> str:
        return (
            f"one per {self.per}" if self.per else str(self.low) if self.low == self.high else f"{self.low}-{self.high}"
        )


@dataclass(frozen=True)
class Recompute:
    """Statements that run repeatedly:

    ``times`` times, or until a number settles. until: a query of that number, compared at relative 1e-9.
    """

    sql: str
    times: int = 0
    until: str = ""


@dataclass(frozen=True)
class Measure:
    """A measure of a candidate, by its query. now: the value in the books today. sum: the same as a linear sum over
    variables, for the solver. metric: name of a metric of the definitions, whose query becomes ``sql``.
    """

    name: str
    goal: Goal
    unit: str = ""
    sql: str = ""
    now: float | None = None
    sum: str = ""
    metric: str = ""


@dataclass(frozen=True)
class Rule:
    """A rule that candidates keep or break.

    It has ``broken``, a query of the rows that break it, or a measure with ``at_most`` or ``at_least``; a rule that no
    data can test is not ``testable`` and has neither.
    """

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

    @property
    def limit(self) -> str:
        """The bound on a measure in words: "cost at most 100"."""
        return f"{self.measure} {'at least' if self.at_most is None else 'at most'} {self.bound}"


@dataclass(frozen=True)
class Scenario:
    """A change of the data before the choice. weight: its likelihood; None if unknown."""

    name: str
    change: str
    weight: float | None = None
    text: str = ""


@dataclass(frozen=True)
class Input:
    """A column of the data that the outcome depends on."""

    table: str
    column: str
    unit: str = ""
    raises: tuple[str, ...] = ()
    """Measures that grow if it grows."""
    lowers: tuple[str, ...] = ()
    """Measures that fall if it grows."""
    share: float = 0.0
    """Largest relative change in a trial, 0.1 for 10 %."""
    how: str = ""
    """Rows that vary alike: "each" row by itself, all "together", or those with the same value in the column of this
    name; '' if the input is taken as certain."""

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"

    @property
    def spread(self) -> str:
        """The variation in trials as the file writes it; '' if it is taken as certain."""
        how = self.how if self.how in ("each", "together") else f"by {self.how}"
        return f"{self.share * 100:g} % {how}" if self.how else ""


@dataclass(frozen=True)
class Variable:
    """Unknowns of an integer program, one for each row of ``each``.

    most: highest value of a whole number or an amount.
    """

    name: str
    each: str
    kind: Literal["yes or no", "whole", "amount"] = "yes or no"
    most: float | None = None


@dataclass(frozen=True)
class Require:
    """A linear requirement for each row of ``each`` ('' means one).

    ``sum`` is at most, at least or equal to ``bound``.
    """

    name: str
    sum: str
    side: Literal["at_most", "at_least", "equals"]
    bound: Bound
    each: str = ""
    text: str = ""


@dataclass(frozen=True)
class ModelExample:
    """A candidate worked by hand: its measures and the rules it breaks.

    breaks: None if the rules were not worked out.
    """

    choice: tuple[str, ...]
    outcomes: Mapping[str, float] = field(default_factory=dict)
    breaks: tuple[str, ...] | None = None


@dataclass(frozen=True)
class DecisionModel:
    """A decision model as its file describes it. copy: table of the copy -> query in the source's own language.
    parameters: $name in statements. keys: table -> columns that tell its rows apart. seconds: the longest that a
    statement may take.
    """

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
    examples: tuple[ModelExample, ...] = ()
    copy: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seconds: float = 20.0
    text: str = field(default="", repr=False, compare=False)
    lines: Lines = field(default_factory=dict, repr=False, compare=False)

    @property
    def first(self) -> Measure:
        """The measure that decides."""
        return self.measures[0]

    @property
    def varied(self) -> tuple[Input, ...]:
        """The inputs that vary in trials."""
        return tuple(column for column in self.inputs if column.how)

    def rule(self, name: str) -> Rule:
        return next(rule for rule in self.rules if rule.name == name)

    def line(self, *path: str) -> int:
        """Return the line of a part of the file, from 1; 0 if it has none."""
        return find_line_number(self.lines, path)

    def statements(self) -> dict[str, str]:
        """Return the SQL of each part of the file (rule.NAME.broken) that runs on the copy."""
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


SIDES = ("at_most", "at_least", "equals")


class ModelFault(ModelMistake):
    """A fault of a text that is no decision model. faults: pairs of line (0 if it has none) and complaint."""

    def __init__(self, faults: list[tuple[int, str]]) -> None:
        super().__init__(format_faults(faults))
        self.faults = tuple(faults)


def read_model_text(path: Path) -> str:
    """Read the text of a model file; raise SetupError if it cannot be read."""
    return read_text_file(path, "a decision model")


def read_model_file(path: Path, **parameters: str | float | bool) -> DecisionModel:
    """Read a model file; raise SetupError, with lines, if it is missing or is no decision model."""
    try:
        return parse_model(read_model_text(path), **parameters)
    except ModelFault as error:
        raise SetupError(f"{path}: {error}") from error


def parse_model(text: str, **parameters: str | float | bool) -> DecisionModel:
    """Parse the text of a model file. ``parameters`` take the place of the file's own.

    >>> parse_model('decide = "a site"\\n[measure.cost]\\ngoal = "low"\\nsql = "SELECT 1"')
    Traceback (most recent call last):
    decisor.decision_models.file.ModelFault: line 3: measure.cost.goal is to be "min" or "max", not "low".

    Raises:
        ModelFault: all faults, with their lines.
    """
    content = parse_model_toml(text)
    lines = find_line_numbers(text)
    wrong = [
        (find_line_number(lines, path), f"{'.'.join(path) or 'a decision model'} {words}")
        for path, words in find_schema_faults(content)
    ]
    if wrong:
        raise ModelFault(wrong)
    model = build_model(content, text, lines, parameters)
    wrong = [(find_line_number(lines, path), words) for path, words in find_model_contradictions(model)]
    if wrong:
        raise ModelFault(wrong)
    return model


def parse_model_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raise ModelFault if the text is too long or no TOML."""
    if len(text) > MAX_CHARS:
        raise ModelFault([(0, f"a decision model has at most {MAX_CHARS:,} characters")])
    try:
        return parse_toml(text)
    except TomlFault as error:
        raise ModelFault([(error.line, str(error))]) from error


def build_model(content: Mapping[str, Any], text: str, lines: Lines, parameters: Mapping[str, Any]) -> DecisionModel:
    recompute = content.get("recompute")
    return DecisionModel(
        decide=" ".join(content["decide"].splitlines()),
        measures=tuple(Measure(name, **one) for name, one in content["measure"].items()),
        choice=content.get("choice", ""),
        take=parse_take(content.get("take", 1)),
        change=join_statements(content.get("change", "")),
        recompute=Recompute(join_statements(recompute["sql"]), recompute.get("times", 0), recompute.get("until", ""))
        if recompute
        else None,
        rules=tuple(Rule(name, **one) for name, one in content.get("rule", {}).items()),
        scenarios=tuple(
            Scenario(name, **(one | {"change": join_statements(one["change"])}))
            for name, one in content.get("scenario", {}).items()
        ),
        inputs=tuple(input_of(name, one) for name, one in content.get("input", {}).items()),
        variables=tuple(Variable(name, **one) for name, one in content.get("variable", {}).items()),
        requires=tuple(require_of(name, one) for name, one in content.get("require", {}).items()),
        examples=tuple(map(build_model_example, content.get("example", ()))),
        copy=content.get("copy", {}),
        parameters={**content.get("parameter", {}), **parameters},
        keys={name: to_text_tuple(columns) for name, columns in content.get("key", {}).items()},
        seconds=content.get("seconds", 20.0),
        text=text,
        lines=lines,
    )


def join_statements(sql: str | list[str]) -> str:
    return sql if isinstance(sql, str) else ";\n".join(sql)


def to_text_tuple(words: str | list[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def parse_take(take: int | str) -> Take:
    """Parse the number of rows that a candidate has.

    >>> parse_take("0-2"), parse_take("one per month"), parse_take(3)
    (Take(low=0, high=2, per=''), Take(low=1, high=1, per='month'), Take(low=3, high=3, per=''))
    """
    if isinstance(take, int):
        return Take(take, take)
    if take.strip().startswith("one per "):
        return Take(per=take.strip().removeprefix("one per ").strip())
    low, high = (int(word) for word in take.split("-"))
    return Take(low, high)


def input_of(name: str, one: Mapping[str, Any]) -> Input:
    table, _, column = name.partition(".")
    spread = re.fullmatch(SPREAD, one.get("spread", ""))
    return Input(
        table,
        column,
        one.get("unit", ""),
        to_text_tuple(one.get("raises", [])),
        to_text_tuple(one.get("lowers", [])),
        float(spread[1]) / 100 if spread else 0.0,
        spread[3].removeprefix("by").strip() if spread else "",
    )


def require_of(name: str, one: Mapping[str, Any]) -> Require:
    side = next((side for side in SIDES if side in one), "equals")
    return Require(name, one["sum"], side, one.get(side, 0.0), one.get("each", ""), one.get("text", ""))  # type: ignore[arg-type]


def build_model_example(one: Mapping[str, Any]) -> ModelExample:
    outcomes = {name: float(value) for name, value in one.items() if name not in ("choice", "breaks")}
    breaks = tuple(one["breaks"]) if "breaks" in one else None
    return ModelExample(tuple(map(str, one["choice"])), outcomes, breaks)


def find_model_contradictions(model: DecisionModel) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find faults that no schema tells: unknown names, and parts that need each other."""
    measures, rules = [one.name for one in model.measures], [one.name for one in model.rules]
    if not model.measures:
        yield ("measure",), "measure needs at least one [measure.NAME]"
    if not model.choice and not model.variables:
        yield (), "a decision model needs choice, or [variable.NAME] for the solver"
    if not model.take.per and model.take.low > model.take.high:
        yield ("take",), f"take goes from {model.take.low} to {model.take.high}; the first is to be the smaller"
    for measure in model.measures:
        if bool(measure.sql) == bool(measure.metric):
            words = "has sql and metric: one is enough" if measure.sql else "needs sql, a query that gives one number"
            yield ("measure", measure.name), f"measure.{measure.name} {words}"
    for rule in model.rules:
        yield from ((("rule", rule.name), f"rule.{rule.name} {words}") for words in faults_of_rule(rule, measures))
    for one in model.inputs:
        for name in (*one.raises, *one.lowers):
            if name not in measures:
                yield (
                    ("input", one.name),
                    f'input."{one.name}" names {name}, which is no measure; there is {", ".join(measures)}',
                )
    for require in model.requires:
        # The lines tell which keys are written; of several, the parser has taken one.
        sides = [side for side in SIDES if ("require", require.name, side) in model.lines]
        if len(sides) != 1:
            yield ("require", require.name), f"require.{require.name} needs one of {', '.join(SIDES)}"
    for number, example in enumerate(model.examples, 1):
        for name in (*example.outcomes, *(example.breaks or ())):
            if name not in (measures if name in example.outcomes else rules):
                yield (
                    ("example", str(number)),
                    f"example {number} names {name}, which is no measure or rule of this file",
                )


def faults_of_rule(rule: Rule, measures: list[str]) -> Iterator[str]:
    if not rule.testable:
        if rule.broken or rule.measure or not rule.text:
            yield "is not testable: then it has its text, and no query"
    elif bool(rule.broken) == bool(rule.measure):
        yield "needs either broken, or a measure with at_most or at_least"
    elif rule.measure and (rule.at_most is None) == (rule.at_least is None):
        yield "needs one of at_most, at_least"
    elif rule.measure and rule.measure not in measures:
        yield f"names {rule.measure}, which is no measure; there is {', '.join(measures)}"
