"""A decision model as its file describes it.

What is decided is a table: ``[choice.pick]`` makes the table ``pick`` with the rows that are taken, ``[unknown.make]``
the table ``make`` with all its rows and their ``amount``. Rules, measures and named tables read them like any other
table. Statements are DuckDB's SQL for one candidate. ``find_model_contradictions`` finds unknown names and parts that
need each other. No statement is run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from annotated_types import Ge, Gt, Le, MinLen

from decisor.system.serialization import SECTION_NAME, DocumentFormat, SectionName, TextRule
from decisor.system.structured_files import FileFault, Lines, find_line_number
from decisor.types import Goal, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_SECONDS = 3600
SPREAD = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*(each|together|by\s+(\w+))\s*(?:where\s+(.+?)\s*)?", re.S)
WITHIN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")
TAKE = r"\s*(\d+(\s*-\s*\d+)?|(at most )?one per \w+)\s*"
Text = Annotated[str, TextRule()]
Texts = Annotated[tuple[str, ...], TextRule(is_list=True)]
Statements = Annotated[str, TextRule(is_list=True, joint=";\n")]
"""SQL; the file may hold a list of statements."""
Scalar = bool | int | float | str
Best = TypeVar("Best", float, "NDArray[np.float64]")
PartName = Annotated[str, TextRule(r"^[A-Za-z_]\w*$")]
InputName = Annotated[str, TextRule(r"^[^.]+\.[^.]+$", "TABLE.COLUMN")]
TakeText = Annotated[str, TextRule(f"^{TAKE}$", '1, a number, "0-2", "one per COLUMN" or "at most one per COLUMN"')]
MEASURED = "measured"
"""A table of one row, with a column for each measure, that rules may read."""


@dataclass(frozen=True)
class Take:
    """The number of rows of a choice that make up a candidate.

    From ``low`` to ``high`` of all, or of those that share a value of the column ``per``.
    """

    low: int = 1
    high: int = 1
    per: str = ""

    @property
    def single(self) -> bool:
        """Whether a candidate is one row."""
        return self.low == self.high == 1 and not self.per

    def __str__(self) -> str:
        if self.per:
            return f"{'' if self.low else 'at most '}one per {self.per}"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


@dataclass(frozen=True)
class NamedTable:
    """A query with a name. Later tables, rules and measures read it."""

    name: Annotated[str, SectionName()]
    sql: Text
    says: str = ""
    """What it holds, in words."""
    key: Texts = ()
    """Columns that tell its rows apart."""


@dataclass(frozen=True)
class FunctionTable:
    """What a person's function gave, called once: a table that statements read under its name."""

    name: Annotated[str, SectionName()]
    call: Text
    """Name of the function among the tools."""
    rows: Text
    """A query of the arguments: each column is an argument of its name."""
    gives: Mapping[PartName, str]
    """The values that are taken of its result, and their units."""
    at: Text
    """When it was called."""
    values: Annotated[tuple[Mapping[PartName, Scalar], ...], MinLen(1)]
    """Arguments and values of each call."""

    @property
    def table(self) -> NamedTable:
        rows = ", ".join(f"({', '.join(map(write_literal, row.values()))})" for row in self.values)
        columns = ", ".join(self.values[0])
        return NamedTable(self.name, f"SELECT * FROM (VALUES {rows}) AS f({columns})", f"{self.call}, called {self.at}")


@dataclass(frozen=True)
class RowChoice:
    """Rows of which some are taken. The taken rows are the table of its name."""

    name: Annotated[str, SectionName()]
    rows: Text
    """A query of the rows that may be taken, or the name of a table."""
    take: Annotated[int, Ge(1)] | TakeText | tuple[TakeText, ...] = 1
    """How many; a list holds all at once."""
    label: Text = ""
    """SQL of the name of a row; its first column without it."""
    now: tuple[str | int | float, ...] | None = None
    """Names of the rows that are taken today, [] for none; None if that is not known."""
    says: str = ""

    @property
    def takes(self) -> tuple[Take, ...]:
        return tuple(map(parse_take, self.take if isinstance(self.take, tuple) else (self.take,)))

    @property
    def single(self) -> bool:
        """Whether a candidate is one row."""
        return len(self.takes) == 1 and self.takes[0].single


@dataclass(frozen=True)
class Unknown:
    """An amount for each row of a query, which the solver finds. The rows with ``amount`` are the table of its name."""

    name: Annotated[str, SectionName()]
    per: Text
    """A query, or the name of a table; no column may be called amount."""
    kind: Literal["continuous", "integer", "binary"] = "continuous"
    lower: float | Text = 0.0
    """A number, or SQL over the row."""
    upper: float | Text | None = None
    """A number, or SQL over the row; NULL for none."""
    unit: str = ""
    label: Text = ""
    """SQL of the name of a row; its first column without it."""
    now: Text = ""
    """SQL of the amount of today's plan."""
    says: str = ""


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
    part: Mapping[PartName, Text] = field(default_factory=dict)
    """Instead of sql: queries of one number each, of which the measure is the sum."""
    now: float | None = None
    """The value in the books today."""
    within: Annotated[str, TextRule(f"^{WITHIN.pattern}$", '"1 %" or "500"')] = ""
    """Outcomes so near to the best, such as "1 %" or "500", are equal, and the next measure decides."""
    metric: Text = ""
    """Instead of sql: a metric of the definitions."""

    def tolerance(self, best: Best) -> Best | float:
        """Return by how much an outcome may be worse than the best one and still be equal to it."""
        match = WITHIN.fullmatch(self.within)
        size = float(match[1]) if match else 0.0
        return abs(best) * (size / 100) if match and match[2] else size

    @property
    def aim(self) -> str:
        """The goal in words: "as small as possible"."""
        near = f", and within {self.within} of the best the next measure decides" if self.within else ""
        return f"as {'small' if self.goal == 'min' else 'large'} as possible{near}"

    @property
    def parts(self) -> Mapping[str, str]:
        """The queries that add up to it; a measure without parts has one, under ''."""
        return self.part or {"": self.sql}


@dataclass(frozen=True)
class Soft:
    """What it costs to break a rule."""

    price: float | Text
    """For each unit that a row is beyond ``must``, or for each row that breaks another rule: a number, or SQL."""
    into: str = ""
    """The measure that it is added to; the first without it."""


@dataclass(frozen=True)
class Rule:
    """What a candidate may not do. It has one form: ``must``, ``never`` (with ``rows``), ``exists`` or ``absent``."""

    name: Annotated[str, SectionName()]
    text: Text = ""
    """The sentence of the question, word for word."""
    holds: Text = ""
    """The same as a state of affairs, for a candidate that keeps it."""
    rows: Text = ""
    """The rows that it speaks of: a query, or the name of a table."""
    must: Text = ""
    """SQL that each row must meet; NULL is not met."""
    never: Text = ""
    """SQL that no row may meet."""
    when: Text = ""
    """SQL of the rows that count, with must and never."""
    exists: Text = ""
    """A query that must give a row."""
    absent: Text = ""
    """A query that must give none."""
    because: Text = ""
    """A sentence for each row that breaks it, with {column}."""
    soft: float | Text | Soft | None = None
    """The price of breaking it; None if it may not be broken."""
    testable: bool = True
    """False if no data can test it; then it has only its text."""

    @property
    def form(self) -> str:
        """The key of its query or condition: must, never, exists or absent; '' if it is not testable."""
        return next((one for one in ("must", "never", "exists", "absent") if getattr(self, one)), "")

    @property
    def test(self) -> str:
        """Its condition as the file has it."""
        words: str = getattr(self, self.form) if self.form else ""
        if self.form in ("must", "never"):
            return f"{self.rows}: {self.form} {words}{f', where {self.when}' if self.when else ''}"
        return words

    @property
    def price(self) -> Soft | None:
        return self.soft if isinstance(self.soft, Soft | None) else Soft(self.soft)


@dataclass(frozen=True)
class Scenario:
    """A change of the data, or other parameters, before the choice."""

    name: Annotated[str, SectionName()]
    change: Statements = ""
    parameter: Mapping[PartName, Scalar] = field(default_factory=dict)
    weight: Annotated[float, Ge(0)] | None = None
    """Its likelihood; None if unknown."""
    text: Text = ""
    open: Text = ""
    """The open question that it reads the other way than the rest of the file."""

    @property
    def words(self) -> str:
        """What it is: its text, else its change and parameters."""
        values = ", ".join(f"{name} = {value}" for name, value in self.parameter.items())
        return self.text or "; ".join(filter(None, [" ".join(self.change.split()), values]))


@dataclass(frozen=True)
class Input:
    """A column of the data that the outcome depends on. Its name is TABLE.COLUMN."""

    name: Annotated[str, SectionName()]
    unit: str = ""
    raises: Texts = ()
    """Measures that grow if it grows."""
    lowers: Texts = ()
    """Measures that fall if it grows."""
    variation: Annotated[str, TextRule(f"^{SPREAD.pattern}$", "10 % each | together | by COLUMN, where CONDITION")] = ""
    """Largest relative change in a trial, the rows that vary alike, and a condition on the rows that vary."""

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
    def where(self) -> str:
        """SQL of the rows that vary; '' for all."""
        match = SPREAD.fullmatch(self.variation)
        return (match[4] or "") if match else ""

    @property
    def spread(self) -> str:
        """The variation in trials, such as "10 % each"; '' if the input is taken as certain."""
        how = self.how if self.how in ("each", "together") else f"by {self.how}"
        return f"{self.share * 100:g} % {how}{f' where {self.where}' if self.where else ''}" if self.how else ""


@dataclass(frozen=True)
class Parameter:
    """A value that stands in no column: $name in statements."""

    value: Scalar
    unit: str = ""
    source: str = ""


@dataclass(frozen=True)
class CorrectionSource:
    """Who says so: a passage of a document, or a person."""

    document: str = ""
    passage: str = ""
    person: str = ""
    on: str = ""
    """Date at which the person said it."""

    def __str__(self) -> str:
        by = f"{self.person}{f' on {self.on}' if self.on else ''}" if self.person else self.document
        return f'{by}: "{self.passage}"' if self.passage else by


@dataclass(frozen=True)
class Correction:
    """A cell of the data that a document or a person knows better."""

    table: Text
    key: Mapping[str, Scalar]
    """Value of each column that finds the row."""
    column: Text
    becomes: Scalar
    """The right value."""
    source: CorrectionSource
    was: Scalar | None = None
    """What stands in the cell; None for NULL."""
    adopted: bool = False
    """True once a person has agreed; before, it is a scenario."""


@dataclass(frozen=True)
class ModelExample:
    """A candidate worked by hand: its measures and parts, and the rules it breaks."""

    choice: Mapping[PartName, tuple[str | int | float, ...]]
    """By choice, the names of the rows taken."""
    text: str = ""
    measure: Mapping[str, float] = field(default_factory=dict)
    part: Mapping[str, float] = field(default_factory=dict)
    """Value of each part of the first measure."""
    breaks: tuple[Text, ...] | None = None
    """None if the rules were not worked out."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rows taken."""
        return tuple(str(name) for names in self.choice.values() for name in names)


@dataclass(frozen=True)
class DecisionModel:
    """A decision model as its file describes it."""

    decide: str
    measures: tuple[Measure, ...]
    choices: tuple[RowChoice, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    tables: tuple[NamedTable, ...] = ()
    functions: tuple[FunctionTable, ...] = ()
    """What functions gave; their tables are among ``tables``."""
    change: str = ""
    recompute: Recompute | None = None
    rules: tuple[Rule, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    inputs: tuple[Input, ...] = ()
    corrections: tuple[Correction, ...] = ()
    examples: tuple[ModelExample, ...] = ()
    open: tuple[str, ...] = ()
    """What question and data leave open, and no scenario reads the other way."""
    copy: Mapping[str, str] = field(default_factory=dict)
    """Query in the source's own language by table of the copy."""
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    """Value of $name in statements."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Unit by parameter."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Source of the file's value by parameter."""
    seconds: float = 20.0
    """The longest that a statement may take."""
    text: str = field(default="", repr=False, compare=False)
    lines: Lines = field(default_factory=dict, repr=False, compare=False)

    @property
    def first(self) -> Measure:
        """The measure that decides."""
        return self.measures[0]

    @property
    def choice(self) -> RowChoice | None:
        """The choice whose candidates can be computed; None if only the solver can decide."""
        return self.choices[0] if len(self.choices) == 1 and not self.unknowns else None

    @property
    def varied(self) -> tuple[Input, ...]:
        """The inputs that vary in trials."""
        return tuple(column for column in self.inputs if column.how)

    @property
    def own_tables(self) -> tuple[str, ...]:
        """Names of the tables that are no tables of the data: what is decided, and the named ones."""
        decided = (*(one.name for one in self.choices), *(one.name for one in self.unknowns))
        return (*decided, *(one.name for one in self.tables))

    @property
    def tested(self) -> tuple[Rule, ...]:
        """The rules that a candidate may not break. The price of a soft one is a part of a measure instead."""
        return tuple(rule for rule in self.rules if rule.form and not (rule.price and self.choice))

    def rule(self, name: str) -> Rule:
        return next(rule for rule in self.rules if rule.name == name)

    def line(self, *path: str) -> int:
        """Return the line of a part of the file, from 1; 0 if it has none."""
        return find_line_number(self.lines, path)

    def statements(self) -> dict[str, str]:
        """Return the SQL of each part of the file (measure.NAME.part.PART) that runs on the copy."""
        parts = {f"choice.{one.name}.rows": one.rows for one in self.choices}
        parts |= {f"choice.{one.name}.label": one.label for one in self.choices}
        for unknown in self.unknowns:
            cells = {"per": unknown.per, "lower": unknown.lower, "upper": unknown.upper}
            cells |= {"label": unknown.label, "now": unknown.now}
            parts |= {f"unknown.{unknown.name}.{key}": str(value) for key, value in cells.items() if value is not None}
        parts |= {f"function.{one.name}.rows": one.rows for one in self.functions}
        parts |= {f"table.{one.name}.sql": one.sql for one in self.tables}
        parts["change"] = self.change
        if self.recompute:
            parts |= {"recompute.sql": self.recompute.sql, "recompute.until": self.recompute.until}
        for measure in self.measures:
            parts |= {name_part(measure, part): sql for part, sql in measure.parts.items()}
        for rule in self.rules:
            for key in ("rows", "must", "never", "when", "exists", "absent"):
                parts[f"rule.{rule.name}.{key}"] = getattr(rule, key)
        parts |= {f"scenario.{one.name}.change": one.change for one in self.scenarios}
        return {part: sql for part, sql in parts.items() if sql.strip()}

    def statement_words(self) -> set[str]:
        """Return the words of all statements in lower case: any of them may be a table or column."""
        return set(re.findall(r"\w+", " ".join(self.statements().values()).lower()))


def list_deciding(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """List the measures that decide: the first, and the next one after each with a ``within``."""
    return measures[: next((at for at, one in enumerate(measures, 1) if not one.within), len(measures))]


def name_part(measure: Measure, part: str) -> str:
    """Return the place of a part of a measure in the file."""
    return f"measure.{measure.name}.{f'part.{part}' if part else 'sql'}"


@dataclass(frozen=True)
class ModelFile:
    """What may be chosen, what choosing it changes, and what is measured."""

    format: Literal[3]
    """The form of the file."""
    decide: Text
    """What is decided, in words."""
    measure: Mapping[PartName, Measure]
    choice: Mapping[PartName, RowChoice] = field(default_factory=dict)
    unknown: Mapping[PartName, Unknown] = field(default_factory=dict)
    function: Mapping[PartName, FunctionTable] = field(default_factory=dict)
    table: Mapping[PartName, NamedTable | Text] = field(default_factory=dict)
    """Queries with a name, in the order in which they read each other."""
    change: Statements = ""
    """UPDATE, DELETE, INSERT: what taking rows does to the copy."""
    recompute: Recompute | None = None
    rule: Mapping[PartName, Rule] = field(default_factory=dict)
    scenario: Mapping[PartName, Scenario] = field(default_factory=dict)
    input: Mapping[InputName, Input] = field(default_factory=dict)
    correction: tuple[Correction, ...] = ()
    example: tuple[ModelExample, ...] = ()
    open: Texts = ()
    """What question and data leave open."""
    copy: Mapping[str, Text] = field(default_factory=dict)
    """By table, a query on the source."""
    parameter: Mapping[PartName, Scalar | Parameter] = field(default_factory=dict)
    """$name in statements, and its value."""
    seconds: Annotated[float, Gt(0), Le(MAX_SECONDS)] = 20.0
    """The longest that a statement may take."""


KEYS = {"name": SECTION_NAME, "variation": "spread", "becomes": "is"}
MODEL_FILE = DocumentFormat(ModelFile, is_closed=True, keys=KEYS)
SECTIONS = ("measure", "choice", "unknown", "function", "table", "rule", "scenario", "input")


def build_model_of_file(file: ModelFile, text: str, lines: Lines, parameters: Mapping[str, Scalar]) -> DecisionModel:
    """Build the model of a decoded file."""
    given = {name: one if isinstance(one, Parameter) else Parameter(one) for name, one in file.parameter.items()}
    return DecisionModel(
        decide=" ".join(file.decide.splitlines()),
        measures=tuple(file.measure.values()),
        choices=tuple(file.choice.values()),
        unknowns=tuple(file.unknown.values()),
        tables=(
            *(one.table for one in file.function.values()),
            *(one if isinstance(one, NamedTable) else NamedTable(name, one) for name, one in file.table.items()),
        ),
        functions=tuple(file.function.values()),
        change=file.change,
        recompute=file.recompute,
        rules=tuple(file.rule.values()),
        scenarios=(*file.scenario.values(), *propose_corrections(file.correction)),
        inputs=tuple(file.input.values()),
        corrections=tuple(one for one in file.correction if one.adopted),
        examples=file.example,
        open=tuple(one for one in file.open if one not in {scenario.open for scenario in file.scenario.values()}),
        copy=file.copy,
        parameters={**{name: one.value for name, one in given.items()}, **parameters},
        units={name: one.unit for name, one in given.items() if one.unit},
        sources={name: one.source for name, one in given.items() if one.source and name not in parameters},
        seconds=file.seconds,
        text=text,
        lines=lines,
    )


DRAFTED = ("choice", "unknown", "table", "change", "recompute", "measure", "rule", "input", "parameter", "copy")


@cache
def describe_model_keys() -> str:
    """Describe the keys of a model file that an LLM may write, by the classes of this module."""
    schema = MODEL_FILE.json_schema("")
    lines = []
    for name in DRAFTED:
        part = schema["properties"][name]
        found = re.search(r"#/\$defs/(\w+)", str(part))
        inside = schema["$defs"][found[1]].get("properties", {}) if found else {}
        words = part.get("description") or (schema["$defs"][found[1]].get("description", "") if found else "")
        lines.append(f"{name}: {' '.join(words.split())}")
        lines += [
            f"  {key}: {' '.join(one.get('description', '').split())}".rstrip(": ") for key, one in inside.items()
        ]
    return "\n".join(lines)


def propose_corrections(corrections: tuple[Correction, ...]) -> Iterator[Scenario]:
    """Return each correction that nobody has adopted yet as a scenario beside the data."""
    from decisor.system.text import quote_identifier

    for number, one in enumerate(corrections, 1):
        if not one.adopted:
            found = " AND ".join(
                f"{quote_identifier(name)} = {write_literal(value)}" for name, value in one.key.items()
            )
            column = quote_identifier(one.column)
            change = f"UPDATE {quote_identifier(one.table)} SET {column} = {write_literal(one.becomes)} WHERE {found}"
            question = f"Is {one.column} {one.becomes} and not {one.was}, as {one.source} says?"
            yield Scenario(f"correction_{number}", change, open=question)


def write_literal(value: Value) -> str:
    """Write a value as a literal of DuckDB's SQL.

    >>> write_literal("O'Hara"), write_literal(3), write_literal(True)
    ("'O''Hara'", '3', 'true')
    """
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    return "'" + str(value).replace("'", "''") + "'"


def parse_take(take: int | str) -> Take:
    """Parse the number of rows that a candidate has.

    >>> parse_take("0-2"), parse_take("at most one per month"), parse_take(3)
    (Take(low=0, high=2, per=''), Take(low=0, high=1, per='month'), Take(low=3, high=3, per=''))
    """
    if isinstance(take, int):
        return Take(take, take)
    rule, is_per, column = take.strip().partition("one per ")
    if is_per:
        return Take(0 if rule else 1, 1, column.strip())
    low, _, high = take.partition("-")
    return Take(int(low), int(high or low))


def raise_contradictions(model: DecisionModel) -> None:
    """Raise FileFault with all faults that no schema tells."""
    if faults := [(model.line(*path), words) for path, words in find_model_contradictions(model)]:
        raise FileFault(faults)


def find_model_contradictions(model: DecisionModel) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find faults that no schema tells: unknown names, and parts that need each other."""
    measures = [one.name for one in model.measures]
    if not model.measures:
        yield ("measure",), "measure needs at least one [measure.NAME]"
    if not model.choices and not model.unknowns:
        yield (), "a decision model needs [choice.NAME], or [unknown.NAME] for the solver"
    yield from find_contradictions_of_decided(model)
    for measure in model.measures[-1:]:
        if measure.within:
            yield ("measure", measure.name, "within"), f"measure.{measure.name}.within needs a next measure, to decide"
    for measure in model.measures:
        forms = [form for form in ("sql", "part", "metric") if getattr(measure, form)]
        if len(forms) != 1:
            words = f"has {' and '.join(forms)}: one is enough" if forms else "needs sql, a query that gives one number"
            yield ("measure", measure.name), f"measure.{measure.name} {words}"
    for rule in model.rules:
        yield from ((("rule", rule.name), f"rule.{rule.name} {words}") for words in faults_of_rule(rule, measures))
    for one in model.inputs:
        for name in (*one.raises, *one.lowers):
            if name not in measures:
                words = f'input."{one.name}" names {name}, which is no measure; there is {", ".join(measures)}'
                yield ("input", one.name), words
    rules, parts = [one.name for one in model.rules], [part for one in model.measures[:1] for part in one.parts]
    kinds = {"measure": measures, "part": parts, "breaks": rules, "choice": [one.name for one in model.choices]}
    for number, example in enumerate(model.examples, 1):
        for kind, known in kinds.items():
            for name in getattr(example, kind) or ():
                if name not in known:
                    words = "rule" if kind == "breaks" else kind
                    yield ("example", str(number)), f"example {number} names {name}, which is no {words} of this file"


def find_contradictions_of_decided(model: DecisionModel) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find faults of choices, unknowns and named tables."""
    for choice in model.choices:
        for take in choice.takes:
            if not take.per and take.low > take.high:
                words = f"take goes from {take.low} to {take.high}; the first is to be the smaller"
                yield ("choice", choice.name, "take"), words
    names = [name.lower() for name in model.own_tables]
    for name in {name for name in names if names.count(name) > 1 or name == MEASURED}:
        yield (), f"{name} is the name of two tables: what is decided, each named table and {MEASURED} need their own"
    for unknown in model.unknowns if model.change or model.recompute else ():
        yield ("change",), f"change and recompute run before the solver: {unknown.name} is not known there"


def faults_of_rule(rule: Rule, measures: list[str]) -> Iterator[str]:
    forms = [one for one in ("must", "never", "exists", "absent") if getattr(rule, one)]
    if not rule.testable:
        if forms or rule.rows or not rule.text:
            yield "is not testable: then it has its text, and no query"
    elif len(forms) != 1:
        yield f"has exactly one of must, never, exists, absent, here: {', '.join(forms) or 'none'}"
    elif bool(rule.rows) != (rule.form in ("must", "never")):
        yield "has rows beside must or never, and only there"
    elif rule.when and not rule.rows:
        yield "has when beside must or never, and only there"
    if rule.price and rule.price.into and rule.price.into not in measures:
        yield f"adds its price to {rule.price.into}, which is no measure; there is {', '.join(measures)}"
