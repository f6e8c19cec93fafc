"""A decision model as its file describes it, and the parser of the file.

Statements are DuckDB's SQL for one candidate. ``parse_model`` checks a text by its schema, then for unknown names and
parts that need each other. Every fault is named with its line. No statement is run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le

from decisor.errors import SetupError
from decisor.system.serialization import SECTION_NAME, DocumentFormat, SectionName, TextRule
from decisor.system.structured_files import MAX_CHARS, FileFault, Lines, TomlFile, find_line_number, read_text_file
from decisor.types import Goal

MAX_SECONDS = 3600
SPREAD = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*(each|together|by\s+(\w+))\s*")
Text = Annotated[str, TextRule()]
Texts = Annotated[tuple[str, ...], TextRule(is_list=True)]
Statements = Annotated[str, TextRule(is_list=True, joint=";\n")]
"""SQL; the file may hold a list of statements."""
Bound = int | float | str
"""A number, or a query that gives one."""
PartName = Annotated[str, TextRule(r"^[A-Za-z_]\w*$")]
InputName = Annotated[str, TextRule(r"^[^.]+\.[^.]+$", "TABLE.COLUMN")]


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
    """Statements after the change, which run ``times`` times or until a number settles."""

    sql: Statements
    times: Annotated[int, Ge(1), Le(10_000)] = 0
    until: Text = ""
    """A query of that number, compared at relative 1e-9."""


@dataclass(frozen=True)
class Measure:
    """What is computed. The first measure decides; several give the Pareto front."""

    name: Annotated[str, SectionName()]
    goal: Goal
    unit: str = ""
    sql: Text = ""
    """A query of one number."""
    now: float | None = None
    """The value in the books today."""
    sum: Text = ""
    """The same as a linear sum over variables, for the solver."""
    metric: Text = ""
    """Instead of sql: a metric of the definitions."""


@dataclass(frozen=True)
class Rule:
    """What a candidate may not do: a query of the rows that break the rule, or a bound on a measure."""

    name: Annotated[str, SectionName()]
    text: Text = ""
    broken: Text = ""
    """A query of the rows that break it."""
    say: Text = ""
    """A sentence for each of these rows, with {column}."""
    measure: Text = ""
    at_most: Bound | None = None
    """A number, or a query that gives one."""
    at_least: Bound | None = None
    """A number, or a query that gives one."""
    testable: bool = True
    """False if no data can test it; then it has only its text."""

    @property
    def bound(self) -> Bound | None:
        return self.at_least if self.at_most is None else self.at_most

    @property
    def limit(self) -> str:
        """The bound on a measure in words: "cost at most 100"."""
        return f"{self.measure} {'at least' if self.at_most is None else 'at most'} {self.bound}"


@dataclass(frozen=True)
class Scenario:
    """A change of the data before the choice."""

    name: Annotated[str, SectionName()]
    change: Statements
    weight: Annotated[float, Ge(0)] | None = None
    """Its likelihood; None if unknown."""
    text: Text = ""


@dataclass(frozen=True)
class Input:
    """A column of the data that the outcome depends on. Its name is TABLE.COLUMN."""

    name: Annotated[str, SectionName()]
    unit: str = ""
    raises: Texts = ()
    """Measures that grow if it grows."""
    lowers: Texts = ()
    """Measures that fall if it grows."""
    variation: Annotated[str, TextRule(f"^{SPREAD.pattern}$", "10 % each | together | by COLUMN")] = ""
    """Largest relative change in a trial, and the rows that vary alike."""

    @property
    def table(self) -> str:
        return self.name.partition(".")[0]

    @property
    def column(self) -> str:
        return self.name.partition(".")[2]

    @property
    def share(self) -> float:
        """The largest relative change in a trial, 0.1 for 10 %."""
        match = SPREAD.fullmatch(self.variation)
        return float(match[1]) / 100 if match else 0.0

    @property
    def how(self) -> str:
        """The rows that vary alike: "each" by itself, all "together", or those with one value in the column of this
        name; '' if the input is taken as certain.
        """
        match = SPREAD.fullmatch(self.variation)
        return (match[3] or match[2]) if match else ""

    @property
    def spread(self) -> str:
        """The variation in trials, such as "10 % each"; '' if the input is taken as certain."""
        how = self.how if self.how in ("each", "together") else f"by {self.how}"
        return f"{self.share * 100:g} % {how}" if self.how else ""


@dataclass(frozen=True)
class Variable:
    """Unknowns of an integer program, one for each row of the query ``each``."""

    name: Annotated[str, SectionName()]
    each: Text
    kind: Literal["yes or no", "whole", "amount"]
    most: float | None = None
    """Highest value of a whole number or an amount."""


Side = Literal["at_most", "at_least", "equals"]
SIDES: tuple[Side, ...] = ("at_most", "at_least", "equals")


@dataclass(frozen=True)
class Require:
    """A linear requirement for each row of the query ``each``, or a single one."""

    name: Annotated[str, SectionName()]
    sum: Text
    text: Text = ""
    each: Text = ""
    at_most: Bound | None = None
    """A number, or a query that gives one."""
    at_least: Bound | None = None
    """A number, or a query that gives one."""
    equals: Bound | None = None
    """A number, or a query that gives one."""

    @property
    def sides(self) -> dict[Side, Bound]:
        """The bounds that the file has; a sound file has one."""
        bounds = zip(SIDES, (self.at_most, self.at_least, self.equals), strict=True)
        return {side: bound for side, bound in bounds if bound is not None}

    @property
    def side(self) -> Side:
        return next(iter(self.sides))

    @property
    def bound(self) -> Bound:
        return self.sides[self.side]


@dataclass(frozen=True)
class ModelExample:
    """A candidate worked by hand: its measures, each under its own name, and the rules it breaks."""

    choice: tuple[str, ...]
    outcomes: Mapping[str, float] = field(default_factory=dict)
    breaks: tuple[str, ...] | None = None
    """None if the rules were not worked out."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Any) -> Any:
        from pydantic_core import core_schema

        def build(table: dict[str, Any]) -> ModelExample:
            choice, breaks = tuple(map(str, table.pop("choice"))), table.pop("breaks", None)
            return cls(choice, table, breaks)

        keys = {
            "choice": core_schema.typed_dict_field(handler.generate_schema(tuple[str | int | float, ...])),
            "breaks": core_schema.typed_dict_field(handler.generate_schema(tuple[Text, ...]), required=False),
        }
        # Every other key is the name of a measure. This schema does not take over the settings of the format.
        settings = core_schema.CoreConfig(strict=True, allow_inf_nan=False)
        table = core_schema.typed_dict_schema(
            keys, extra_behavior="allow", extras_schema=core_schema.float_schema(), config=settings
        )
        return core_schema.no_info_after_validator_function(build, table)


@dataclass(frozen=True)
class DecisionModel:
    """A decision model as its file describes it."""

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
    """Query in the source's own language by table of the copy."""
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Value of $name in statements."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns that tell the rows of a table apart."""
    seconds: float = 20.0
    """The longest that a statement may take."""
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

    def statement_words(self) -> set[str]:
        """Return the words of all statements in lower case: any of them may be a table or column."""
        return set(re.findall(r"\w+", " ".join(self.statements().values()).lower()))


@dataclass(frozen=True)
class ModelFile:
    """What may be chosen, what choosing it changes, and what is measured."""

    decide: Text
    """What is chosen, in words."""
    measure: Mapping[PartName, Measure]
    choice: Text = ""
    """A query of the rows that may be chosen."""
    take: (
        Annotated[int, Ge(1)]
        | Annotated[str, TextRule(r"^\s*(\d+\s*-\s*\d+|one per \w+)\s*$", '1, a number, "0-2", or "one per COLUMN"')]
    ) = 1
    change: Statements = ""
    """UPDATE, DELETE, INSERT: what choosing it does to the copy."""
    recompute: Recompute | None = None
    rule: Mapping[PartName, Rule] = field(default_factory=dict)
    scenario: Mapping[PartName, Scenario] = field(default_factory=dict)
    input: Mapping[InputName, Input] = field(default_factory=dict)
    variable: Mapping[PartName, Variable] = field(default_factory=dict)
    require: Mapping[PartName, Require] = field(default_factory=dict)
    example: tuple[ModelExample, ...] = ()
    copy: Mapping[str, Text] = field(default_factory=dict)
    """By table, a query on the source."""
    parameter: Mapping[PartName, str | int | float | bool] = field(default_factory=dict)
    """$name in statements, and its value."""
    key: Mapping[str, Texts] = field(default_factory=dict)
    """By table, the columns that tell its rows apart."""
    seconds: Annotated[float, Gt(0), Le(MAX_SECONDS)] = 20.0
    """The longest that a statement may take."""


MODEL_FILE = DocumentFormat(ModelFile, is_closed=True, keys={"name": SECTION_NAME, "variation": "spread"})


def read_model_text(path: Path) -> str:
    """Read the text of a model file; raise SetupError if it cannot be read."""
    return read_text_file(path, "a decision model")


def read_model_file(path: Path, **parameters: str | float | bool) -> DecisionModel:
    """Read a model file; raise SetupError, with lines, if it is missing or is no decision model."""
    try:
        return parse_model(read_model_text(path), **parameters)
    except FileFault as error:
        raise SetupError(f"{path}: {error}") from error


def parse_model(text: str, **parameters: str | float | bool) -> DecisionModel:
    """Parse the text of a model file. ``parameters`` take the place of the file's own.

    >>> parse_model('decide = "a site"\\n[measure.cost]\\ngoal = "low"\\nsql = "SELECT 1"')
    Traceback (most recent call last):
    decisor.system.structured_files.FileFault: line 3: measure.cost.goal is to be "min" or "max", not "low".

    Raises:
        FileFault: all faults, with their lines.
    """
    if len(text) > MAX_CHARS:
        raise FileFault([(0, f"a decision model has at most {MAX_CHARS:,} characters")])
    return build_model(TomlFile(text), text, **parameters)


def build_model(toml: TomlFile, text: str, **parameters: str | float | bool) -> DecisionModel:
    """Build the model of a TOML file; raise FileFault with all faults."""
    toml.name_sections("measure", "rule", "scenario", "input", "variable", "require")
    file = toml.decode(MODEL_FILE, "a decision model")
    model = DecisionModel(
        decide=" ".join(file.decide.splitlines()),
        measures=tuple(file.measure.values()),
        choice=file.choice,
        take=parse_take(file.take),
        change=file.change,
        recompute=file.recompute,
        rules=tuple(file.rule.values()),
        scenarios=tuple(file.scenario.values()),
        inputs=tuple(file.input.values()),
        variables=tuple(file.variable.values()),
        requires=tuple(file.require.values()),
        examples=file.example,
        copy=file.copy,
        parameters={**file.parameter, **parameters},
        keys=file.key,
        seconds=file.seconds,
        text=text,
        lines=toml.lines,
    )
    if faults := [(find_line_number(toml.lines, path), words) for path, words in find_model_contradictions(model)]:
        raise FileFault(faults)
    return model


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
        if len(require.sides) != 1:
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
