"""``decisor model upgrade``: a decision model of the second form, written in the present one.

In the second form the chosen rows are the table ``choice``, a single one has its columns as ``$column``, a rule has a
query of the rows that break it or a bound on a measure, and the solver has sums of its own ([variable], [require]).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le

from decisor.decision_models.file import parse_model
from decisor.decision_models.schema import (
    KEYS,
    MAX_SECONDS,
    MEASURED,
    DecisionModel,
    Input,
    InputName,
    Measure,
    ModelExample,
    NamedTable,
    PartName,
    Recompute,
    RowChoice,
    Rule,
    Scalar,
    Scenario,
    Statements,
    Text,
    Texts,
    Unknown,
    parse_take,
    write_literal,
)
from decisor.system.serialization import DocumentFormat, SectionName, TextRule
from decisor.system.structured_files import FileFault, TomlFile
from decisor.system.text import quote_identifier
from decisor.types import Goal

Bound = int | float | str
"""A number, or a query that gives one."""
SIDES = ("at_most", "at_least", "equals")
SIGNS = {"at_most": "<=", "at_least": ">=", "equals": "="}
KINDS: Mapping[str, Literal["binary", "integer", "continuous"]] = {
    "yes or no": "binary",
    "whole": "integer",
    "amount": "continuous",
}
TERM = re.compile(r"\s*([+-]?)\s*(?:([A-Za-z_][\w.]*|\d+\.?\d*)\s*\*\s*)?([A-Za-z_]\w*)\s*(?:\[([^\]]*)\])?\s*")
PLACE = re.compile(r"""('(?:[^']|'')*')|\$([A-Za-z_]\w*)""")


@dataclass(frozen=True)
class SecondMeasure:
    """A measure of the second form."""

    name: Annotated[str, SectionName()]
    goal: Goal
    unit: str = ""
    sql: Text = ""
    now: float | None = None
    sum: Text = ""
    metric: Text = ""


@dataclass(frozen=True)
class SecondRule:
    """A rule of the second form: a query of the rows that break it, or a bound on a measure."""

    name: Annotated[str, SectionName()]
    text: Text = ""
    broken: Text = ""
    say: Text = ""
    measure: Text = ""
    at_most: Bound | None = None
    at_least: Bound | None = None
    testable: bool = True


@dataclass(frozen=True)
class Variable:
    """Unknowns of the second form."""

    name: Annotated[str, SectionName()]
    each: Text
    kind: Literal["yes or no", "whole", "amount"]
    most: float | None = None


@dataclass(frozen=True)
class Require:
    """A linear requirement of the second form."""

    name: Annotated[str, SectionName()]
    sum: Text
    text: Text = ""
    each: Text = ""
    at_most: Bound | None = None
    at_least: Bound | None = None
    equals: Bound | None = None


@dataclass(frozen=True)
class SecondFile:
    """A file of the second form."""

    decide: Text
    measure: Mapping[PartName, SecondMeasure]
    choice: Text = ""
    take: (
        Annotated[int, Ge(1)]
        | Annotated[str, TextRule(r"^\s*(\d+\s*-\s*\d+|one per \w+)\s*$", '1, a number, "0-2", or "one per COLUMN"')]
    ) = 1
    change: Statements = ""
    recompute: Recompute | None = None
    rule: Mapping[PartName, SecondRule] = field(default_factory=dict)
    scenario: Mapping[PartName, Scenario] = field(default_factory=dict)
    input: Mapping[InputName, Input] = field(default_factory=dict)
    variable: Mapping[PartName, Variable] = field(default_factory=dict)
    require: Mapping[PartName, Require] = field(default_factory=dict)
    example: tuple[Mapping[str, float | tuple[str | int | float, ...]], ...] = ()
    """Candidates worked by hand: choice, breaks, and each measure under its own name."""
    copy: Mapping[str, Text] = field(default_factory=dict)
    parameter: Mapping[PartName, Scalar] = field(default_factory=dict)
    key: Mapping[str, Texts] = field(default_factory=dict)
    seconds: Annotated[float, Gt(0), Le(MAX_SECONDS)] = 20.0


SECOND_FILE = DocumentFormat(SecondFile, is_closed=True, keys=KEYS)
SECTIONS = ("measure", "rule", "scenario", "input", "variable", "require")


@dataclass(frozen=True)
class SecondForm:
    """A file of the second form on its way to a model."""

    file: SecondFile
    table: str
    """The name that the table of the chosen rows gets."""

    def model(self) -> DecisionModel:
        file = self.file
        return DecisionModel(
            decide=" ".join(file.decide.splitlines()),
            measures=tuple(self.measure(one) for one in file.measure.values()),
            choices=(RowChoice(self.table, self.sql(file.choice), self.file.take),) if file.choice else (),
            unknowns=tuple(self.unknown(one) for one in file.variable.values()) if not file.choice else (),
            change=self.sql(file.change),
            recompute=file.recompute
            and replace(file.recompute, sql=self.sql(file.recompute.sql), until=self.sql(file.recompute.until)),
            rules=(*map(self.rule, file.rule.values()), *(self.requirement(one) for one in self.requires)),
            scenarios=tuple(file.scenario.values()),
            inputs=tuple(file.input.values()),
            examples=tuple(map(self.example, file.example)),
            copy=file.copy,
            parameters=file.parameter,
            seconds=file.seconds,
        )

    def example(self, one: Mapping[str, float | tuple[str | int | float, ...]]) -> ModelExample:
        numbers = {name: value for name, value in one.items() if not isinstance(value, tuple)}
        lists = {name: tuple(map(str, value)) for name, value in one.items() if isinstance(value, tuple)}
        return ModelExample({self.table: lists.get("choice", ())}, "", numbers, {}, lists.get("breaks"))

    @property
    def requires(self) -> list[Require]:
        """The requirements, if the solver decides."""
        return [] if self.file.choice else [*self.file.require.values()]

    def sql(self, text: str) -> str:
        """Write a statement with a query for each column of the chosen row, and with the table's name."""
        single = bool(self.file.choice) and parse_take(self.file.take).single

        def fill(match: re.Match[str]) -> str:
            if match[1] or match[2] in self.file.parameter or not single:
                return match[0]
            return f"(SELECT {quote_identifier(match[2])} FROM {self.table})"

        return re.sub(r"\bchoice\b", self.table, PLACE.sub(fill, text))

    def measure(self, one: SecondMeasure) -> Measure:
        # The solver takes the sum, people and candidates the query: two ways to say one thing.
        sql = self.sum_query(f"measure.{one.name}.sum", one.sum, ()) if one.sum and not self.file.choice else one.sql
        return Measure(one.name, one.goal, one.unit, self.sql(sql), now=one.now, metric=one.metric)

    def rule(self, one: SecondRule) -> Rule:
        if not one.measure:
            absent = self.sql(one.broken)
            if not self.file.choice:
                absent = re.sub(r"\bchosen\b", "(amount > 0.5)", absent)
            return Rule(one.name, one.text, absent=absent, because=one.say, testable=one.testable)
        side = "at_most" if one.at_most is not None else "at_least"
        bound = getattr(one, side)
        limit = f"CAST('{bound!r}' AS DOUBLE)"
        if isinstance(bound, str):
            # Nothing can be held against NULL: the cast fails then, and says why.
            limit = f"coalesce(({self.sql(bound)}), CAST('its limit is NULL' AS DOUBLE))"
        name, unit = quote_identifier(one.measure), self.file.measure[one.measure].unit
        rows = f'SELECT {name}, {limit} AS "limit" FROM {MEASURED}'
        words = f"{one.measure} is {{{one.measure}}}{unit and f' {unit}'}, {'over' if side == 'at_most' else 'under'} "
        must = f'{name} {SIGNS[side]} "limit"'
        return Rule(one.name, one.text, rows=rows, must=must, because=f"{words}{{limit}}{unit and f' {unit}'}")

    def unknown(self, one: Variable) -> Unknown:
        return Unknown(one.name, one.each, KINDS[one.kind], upper=one.most)

    def rule_name(self, one: Require) -> str:
        return f"require_{one.name}" if one.name in self.file.rule else one.name

    def requirement(self, one: Require) -> Rule:
        side = next(side for side in SIDES if getattr(one, side) is not None)
        bound, part = getattr(one, side), f"require.{one.name}"
        each = one.each or "SELECT 0 AS one"
        keys = columns_of_query(f"{part}.each", each)
        limit = f"CAST('{float(bound)!r}' AS DOUBLE)" if not isinstance(bound, str) else f"({bound})"
        if isinstance(bound, str) and bound.strip() in keys:
            limit = f"k.{quote_identifier(bound.strip())}"
        total = self.sum_query(f"{part}.sum", one.sum, keys).removeprefix("SELECT ")
        rows = f"SELECT k.*, {total} AS total, {limit} AS bound FROM ({each}) AS k"
        return Rule(self.rule_name(one), one.text, rows=rows, must=f"total {SIGNS[side]} bound")

    def sum_query(self, part: str, words: str, keys: tuple[str, ...]) -> str:
        """Write a sum of the second form as a query; the rows of the requirement are ``k``."""
        return "SELECT " + " ".join(self.term(part, *pieces, keys) for pieces in parse_linear_terms(part, words))

    def term(self, part: str, sign: str, coefficient: str, variable: str, pairs: str, keys: tuple[str, ...]) -> str:
        each = self.file.variable.get(variable)
        if each is None:
            raise FileFault([(0, f"{part}: there is no variable {variable}; there is {', '.join(self.file.variable)}")])
        columns = columns_of_query(f"variable.{variable}.each", each.each)
        mine, theirs = [one.lower() for one in columns], [one.lower() for one in keys]
        equal = [[side.strip() for side in pair.split("=")] for pair in pairs.split(",")] if pairs else []
        same = [(pair[0], pair[-1]) for pair in equal] or [(one, one) for one in mine if one in theirs]
        if any(a.lower() not in mine or b.lower() not in theirs for a, b in same):
            raise FileFault([(0, f"{part}: [{pairs}] names no column of {variable} and of each")])
        if coefficient and not coefficient[0].isdigit() and coefficient.lower() not in (*mine, *theirs):
            raise FileFault([(0, f"{part}: {coefficient} is no column of the variable or of each")])
        owner = "v." if coefficient.lower() in mine else "k."
        factor = coefficient if not coefficient or coefficient[0].isdigit() else owner + quote_identifier(coefficient)
        where = " AND ".join(f"v.{quote_identifier(a)} = k.{quote_identifier(b)}" for a, b in same)
        amount = f"sum({f'{factor} * ' if factor else ''}v.amount)"
        query = f"(SELECT coalesce({amount}, 0) FROM {variable} AS v{f' WHERE {where}' if where else ''})"
        return f"{sign} {query}".strip()


def columns_of_query(part: str, sql: str) -> tuple[str, ...]:
    """Return the names of the columns of a query; raise FileFault for a star, which does not tell them."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree: Any = sqlglot.parse_one(sql, dialect="duckdb")
    except SqlglotError as error:
        raise FileFault([(0, f"{part} does not parse as DuckDB's SQL")]) from error
    names: tuple[str, ...] = tuple(tree.named_selects)
    if "*" in names:
        raise FileFault([(0, f"{part}: name the columns, instead of *, for sums are joined by them")])
    return names


def parse_linear_terms(part: str, words: str) -> Iterator[tuple[str, str, str, str]]:
    """Parse each term of a sum into sign, coefficient, variable and pairs of columns.

    >>> list(parse_linear_terms("sum", "units * serve - pay[project = first]"))
    [('', 'units', 'serve', ''), ('-', '', 'pay', 'project = first')]
    """
    text, at = words.strip(), 0
    while at < len(text):
        match = TERM.match(text, at)
        if match is None or (at and not match[1]):
            words = f"{part}: {text[at : at + 40]!r} is no term; write coefficient * variable, with + or -"
            raise FileFault([(0, words)])
        yield match[1] or "", match[2] or "", match[3], match[4] or ""
        at = match.end()


def upgrade_text(text: str) -> str:
    """Write the text of a file of the second form in the present one; raise FileFault if it is no such model."""
    toml = TomlFile(text)
    if "format" in toml.content:
        raise FileFault([(1, f"this is a model of format {toml.content['format']} already")])
    toml.name_sections(*SECTIONS)
    file = toml.decode(SECOND_FILE, "a decision model")
    table = next(name for name in ("pick", "picked", "taken_rows") if not re.search(rf"\b{name}\b", text))
    upgraded = "\n".join(write_model(SecondForm(file, table).model())) + "\n"
    # Faults of the old file that its schema does not tell are faults of the new one too.
    parse_model(upgraded)
    return upgraded


def write_model(model: DecisionModel) -> Iterator[str]:
    """Write a model as the lines of a file of the present form."""
    yield from ("format = 3", f"decide = {write_toml(model.decide)}")
    yield from (f"change = {write_toml(model.change)}",) if model.change else ()
    yield from () if model.seconds == 20.0 else (f"seconds = {model.seconds!r}",)
    for name, values in (("copy", model.copy), ("parameter", model.parameters)):
        yield from (["", f"[{name}]"] if values else [])
        yield from (f"{write_key(key)} = {write_toml(value)}" for key, value in values.items())
    groups: Mapping[str, Sequence[RowChoice | Unknown | NamedTable | Measure | Rule]] = {
        "choice": model.choices,
        "unknown": model.unknowns,
        "table": model.tables,
        "measure": model.measures,
        "rule": model.rules,
    }
    for group, sections in groups.items():
        for section in sections:
            yield from write_section(f"{group}.{section.name}", section)
    if model.recompute:
        yield from write_section("recompute", model.recompute)
    for scenario in model.scenarios:
        yield from write_section(f"scenario.{scenario.name}", scenario)
    for column in model.inputs:
        yield from write_section(f"input.{write_key(column.name)}", column)
    for example in model.examples:
        yield from ("", "[[example]]")
        yield from (f"choice.{name} = {write_toml(rows)}" for name, rows in example.choice.items())
        yield from (f"measure.{name} = {write_toml(value)}" for name, value in example.measure.items())
        yield from () if example.breaks is None else (f"breaks = {write_toml(example.breaks)}",)


def write_section(head: str, section: object) -> Iterator[str]:
    yield from ("", f"[{head}]")
    kind: Any = type(section)
    for one in kind.__dataclass_fields__.values():
        value = getattr(section, one.name)
        if one.name == "name" or value in (one.default, None, (), {}):
            continue
        yield f"{KEYS.get(one.name, one.name)} = {write_toml(value)}"


def write_key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'


def write_toml(value: object) -> str:
    """Write a value as TOML.

    >>> write_toml("a\\nb"), write_toml((1, "x")), write_toml(True)
    ("'''\\na\\nb'''", '[1, "x"]', 'true')
    """
    if isinstance(value, bool | int | float):
        return write_literal(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(write_toml, value))}]"
    text = str(value)
    if "'''" not in text and ("\n" in text or '"' in text or "\\" in text):
        return f"'''\n{text}'''"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
