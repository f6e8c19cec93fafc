"""Definitions of the words of a database, and the definitions file that holds them.

Expressions are SQL of the database that the definitions are about. The JSON Schema ``DEFINITIONS`` describes a file;
``system.structured_files`` checks against it. Parsing names every fault with its line; writing gives the text of a
file. ``Column`` and ``Relation`` are protocols for the schema of a database: the tools that read it stand beside this
package, and nothing here opens one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from decisor.decision_models.copies import ColumnOf, TableOf
from decisor.errors import ModelMistake, SetupError
from decisor.parsing.toml_reply import format_toml_key, format_toml_value
from decisor.system.structured_files import (
    TEXT,
    TEXTS,
    Lines,
    Schema,
    TomlFault,
    find_fault_line,
    find_line_number,
    find_line_numbers,
    find_schema_faults,
    format_faults,
    named_tables_schema,
    object_schema,
    parse_toml,
    read_text_file,
)
from decisor.system.text import fit_on_one_line

Cardinality = Literal["many to one", "one to one", "one to many", "many to many"]
KINDS = ("metric", "dimension", "calendar", "entity", "join", "value", "reading", "example")


@dataclass(frozen=True)
class Origin:
    """The author of a definition, its day (ISO) and its reason."""

    by: str = ""
    on: str = ""
    why: str = ""

    def __str__(self) -> str:
        """Format the author and the day in parentheses, '' if both are missing.

        >>> str(Origin("ann", "2026-11-22")), str(Origin())
        (' (by ann, 2026-11-22)', '')
        """
        words = ", ".join(part for part in (f"by {self.by}" if self.by else "", self.on) if part)
        return f" ({words})" if words else ""


@dataclass(frozen=True)
class Metric:
    """A number that is computed from the data.

    It has either ``sql``, an expression over the rows of ``source`` (a FROM clause) that ``where`` leaves, or a whole
    ``query``. grain: columns that tell these rows apart. date: column that a period is about.
    """

    name: str
    sql: str = ""
    source: str = ""
    where: Sequence[str] = ()
    query: str = ""
    unit: str = ""
    grain: Sequence[str] = ()
    date: str = ""
    synonyms: Sequence[str] = ()
    about: str = ""
    origin: Origin = Origin()

    def whole(self) -> str:
        """Return the query that computes the metric over all rows."""
        if self.query:
            return self.query.strip().rstrip(";")
        where = f" WHERE {' AND '.join(f'({one})' for one in self.where)}" if self.where else ""
        return f"SELECT {self.sql} AS {self.name} FROM {self.source}{where}"


@dataclass(frozen=True)
class Dimension:
    """An expression over the rows of ``source`` to group and filter by."""

    name: str
    sql: str
    source: str = ""
    synonyms: Sequence[str] = ()
    about: str = ""
    origin: Origin = Origin()


@dataclass(frozen=True)
class Calendar:
    """A year that begins on a fixed month and day. starts: month and day, such as "07-01". named_by: whether the year
    has the number of the year in which it starts or ends. default: whether "year" and "quarter" mean this calendar
    if nothing else is said.
    """

    name: str
    starts: str = "01-01"
    named_by: Literal["start", "end"] = "end"
    default: bool = False
    synonyms: Sequence[str] = ()
    about: str = ""
    origin: Origin = Origin()


@dataclass(frozen=True)
class Entity:
    """The kind of thing that a row of ``table`` is. key: columns that tell the rows apart."""

    name: str
    table: str
    key: Sequence[str]
    synonyms: Sequence[str] = ()
    about: str = ""
    origin: Origin = Origin()


@dataclass(frozen=True)
class Join:
    """A relation between two tables. left, right: columns as TABLE.COLUMN, in the same order on both sides."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    cardinality: Cardinality = "many to one"
    origin: Origin = Origin()


@dataclass(frozen=True)
class ValueWords:
    """The words that people use for the stored values of a column. name: the column, as TABLE.COLUMN. words: names by
    stored value.
    """

    name: str
    words: Mapping[str, Sequence[str]]
    origin: Origin = Origin()


@dataclass(frozen=True)
class Reading:
    """The meaning of words of a question that could mean something else. metric: name of the metric that measures it,
    '' if there is none.
    """

    name: str
    words: Sequence[str]
    means: str
    metric: str = ""
    origin: Origin = Origin()


@dataclass(frozen=True)
class ApprovedExample:
    """A question with the query that answers it, or with its answer, approved by a person."""

    name: str
    question: str
    sql: str = ""
    answer: str = ""
    origin: Origin = Origin()


Definition: TypeAlias = Metric | Dimension | Calendar | Entity | Join | ValueWords | Reading | ApprovedExample
KIND: Mapping[type, str] = {
    Metric: "metric",
    Dimension: "dimension",
    Calendar: "calendar",
    Entity: "entity",
    Join: "join",
    ValueWords: "value",
    Reading: "reading",
    ApprovedExample: "example",
}


def section_title(one: Definition) -> str:
    """Return the title of a definition's section in the file.

    >>> section_title(Calendar("fiscal_year", "07-01"))
    'calendar.fiscal_year'
    """
    return f"{KIND[type(one)]}.{one.name}"


@dataclass(frozen=True)
class Definitions:
    """The definitions of a file, by kind and in its order. path: the file, '' if there is none."""

    metrics: Sequence[Metric] = ()
    dimensions: Sequence[Dimension] = ()
    calendars: Sequence[Calendar] = ()
    entities: Sequence[Entity] = ()
    joins: Sequence[Join] = ()
    values: Sequence[ValueWords] = ()
    readings: Sequence[Reading] = ()
    examples: Sequence[ApprovedExample] = ()
    path: str = ""
    lines: Lines = field(default_factory=dict, repr=False, compare=False)

    def __iter__(self) -> Iterator[Definition]:
        for group in (
            self.metrics,
            self.dimensions,
            self.calendars,
            self.entities,
            self.joins,
            self.values,
            self.readings,
            self.examples,
        ):
            yield from group

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def line(self, one: Definition, key: str = "") -> int:
        """Return the line of a definition, or of one of its keys, in the file.

        Lines count from 1; 0 means that it stands nowhere.
        """
        return find_line_number(self.lines, (KIND[type(one)], one.name, *([key] if key else [])))

    def find(self, name: str) -> Definition | None:
        """Find a definition by its title (``metric.revenue``), or by its name if only one has it.

        None if none or several fit.
        """
        match = [one for one in self if name in (section_title(one), one.name)]
        return match[0] if len(match) == 1 else None


KEYS = {"source": "from"}


@dataclass(frozen=True)
class ImportedDefinitions:
    """Definitions from another source. notes: left out parts, each with its reason."""

    definitions: Definitions
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Format the definitions as a file; comments at its head name the parts left out."""
        return "".join(f"# Left out: {fit_on_one_line(note, 200)}\n" for note in self.notes) + format_definitions(
            self.definitions
        )


def format_definitions(definitions: Iterable[Definition]) -> str:
    """Format definitions as sections, with an empty line between two."""
    return "\n".join(format_section(one) for one in definitions)


def format_section(one: Definition) -> str:
    """Format a definition as a section of the file.

    >>> from decisor.semantics.definitions import Reading
    >>> print(format_section(Reading("best", ["best customer"], "by revenue", origin=Origin(by="ann"))), end="")
    [reading.best]
    words = "best customer"
    means = "by revenue"
    by = "ann"
    """
    head = f"[{KIND[type(one)]}.{format_toml_key(one.name)}]"
    if isinstance(one, ValueWords):
        lines = [
            f"{format_toml_key(value)} = {format_definition_value(list(words))}" for value, words in one.words.items()
        ]
    else:
        lines = [
            f"{KEYS.get(field.name, field.name)} = {format_definition_value(value)}"
            for field in fields(one)
            if field.name not in ("name", "origin")
            and (value := getattr(one, field.name)) not in ("", (), [])
            and value != field.default
        ]
    origin = [
        f"{field.name} = {format_definition_value(value)}"
        for field in fields(Origin)
        if (value := getattr(one.origin, field.name))
    ]
    return "\n".join([head, *lines, *origin, ""])


def format_definition_value(value: object) -> str:
    """Format a text, a list of texts, a mapping or a truth value as TOML.

    >>> print(format_definition_value(["a", 'b"c']), format_definition_value(True), format_definition_value("x\\x7f"))
    ["a", 'b"c'] true "x\\u007f"
    """
    if isinstance(value, list | tuple):
        if len(value) == 1:
            return format_definition_value(value[0])
        return f"[{', '.join(format_definition_value(one) for one in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{format_toml_key(key)} = {format_definition_value(one)}" for key, one in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return format_toml_value(value)


Named = TypeVar("Named", Metric, Dimension, Entity, Join)


def make_section_name(text: str) -> str:
    """Convert a text to a name that can stand in a section.

    >>> make_section_name("net revenue (EUR)"), make_section_name("7 days")
    ('net_revenue_EUR', '_7_days')
    """
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "one"
    return f"_{name}" if name[0].isdigit() else name


def make_names_unique(several: Iterable[Named]) -> list[Named]:
    """Add a number to each name that occurs again."""
    names: set[str] = set()
    whole: list[Named] = []
    for one in several:
        name, number = one.name, 2
        while name in names:
            name, number = f"{one.name}_{number}", number + 1
        names.add(name)
        whole.append(one if name == one.name else replace(one, name=name))
    return whole


SCHEMA_ORIGIN: dict[str, Schema] = {
    "by": {"type": "string", "description": "who wrote it"},
    "on": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$", "description": "YYYY-MM-DD"},
    "why": {"type": "string", "description": "the reason"},
}
WORDS: dict[str, Schema] = {
    "synonyms": {**TEXTS, "description": "what people call it too"},
    "about": {"type": "string", "description": "what it says, in words"},
}
METRIC = object_schema(
    "A number, as an expression over rows, or as a whole query.",
    (),
    sql={**TEXT, "description": "an expression, such as SUM(price * quantity)"},
    **{"from": {**TEXT, "description": "the rows: what stands after FROM"}},
    where={**TEXTS, "description": "filters that always hold"},
    query={**TEXT, "description": "instead of sql and from"},
    unit={"type": "string"},
    grain={**TEXTS, "description": "the columns that tell the rows apart"},
    date={**TEXT, "description": "the column that a period is about"},
    **WORDS,
    **SCHEMA_ORIGIN,
)
DIMENSION = object_schema(
    "What is grouped and filtered by.", ("sql",), sql=TEXT, **{"from": TEXT}, **WORDS, **SCHEMA_ORIGIN
)
CALENDAR = object_schema(
    "A year that starts on another day.",
    ("starts",),
    starts={"type": "string", "pattern": r"^(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$", "description": "MM-DD"},
    named_by={"enum": ["start", "end"]},
    default={"type": "boolean"},
    **WORDS,
    **SCHEMA_ORIGIN,
)
ENTITY = object_schema("What a row is one of.", ("table", "key"), table=TEXT, key=TEXTS, **WORDS, **SCHEMA_ORIGIN)
PLACE: Schema = {"type": ["string", "array"], "items": TEXT, "pattern": r"^.+\..+$", "description": "TABLE.COLUMN"}
JOIN = object_schema(
    "How two tables belong together.",
    ("left", "right"),
    left=PLACE,
    right=PLACE,
    cardinality={"enum": ["many to one", "one to one", "one to many", "many to many"]},
    **SCHEMA_ORIGIN,
)
VALUE: Schema = {"type": "object", "additionalProperties": TEXTS}
READING = object_schema(
    "What words of a question mean.",
    ("words", "means"),
    words=TEXTS,
    means=TEXT,
    metric={**TEXT, "description": "a metric of this file"},
    **SCHEMA_ORIGIN,
)
EXAMPLE = object_schema(
    "A question with its query or its answer.", ("question",), question=TEXT, sql=TEXT, answer=TEXT, **SCHEMA_ORIGIN
)
DEFINITIONS: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Decisor's definitions",
    **object_schema(
        "What the words of a question mean in these data.",
        metric=named_tables_schema(METRIC),
        dimension=named_tables_schema(DIMENSION),
        calendar=named_tables_schema(CALENDAR),
        entity=named_tables_schema(ENTITY),
        join=named_tables_schema(JOIN),
        reading=named_tables_schema(READING),
        example=named_tables_schema(EXAMPLE),
        value={"type": "object", "additionalProperties": VALUE, "propertyNames": {"pattern": r"^.+\..+$"}},
    ),
}


ORIGIN = ("by", "on", "why")
LISTS = ("synonyms", "where", "grain", "key", "left", "right", "words")


class DefinitionsFault(ModelMistake):
    """The faults of a text that is no definitions file. faults: line (0 if unknown) and complaint of each fault."""

    def __init__(self, faults: list[tuple[int, str]]) -> None:
        super().__init__(format_faults(faults))
        self.faults = tuple(faults)


def read_definitions_file(path: Path, metrics: Collection[str] = ()) -> Definitions:
    """Read a definitions file; raise SetupError, with lines, if it is missing or has faults."""
    try:
        return replace(parse_definitions(read_definitions_text(path), metrics), path=str(path))
    except DefinitionsFault as error:
        raise SetupError(f"{path}: {error}") from error


def read_definitions_text(path: Path) -> str:
    """Read the text of a definitions file; raise SetupError if it cannot be read."""
    return read_text_file(path, "a definitions file")


def parse_definitions(text: str, metrics: Collection[str] = ()) -> Definitions:
    """Parse the text of a definitions file. metrics: names of metrics in another file, which readings may name too.

    >>> parse_definitions('[metric.revenue]\\nsql = "SUM(total)"\\nfrom = "invoice"').metrics[0].whole()
    'SELECT SUM(total) AS revenue FROM invoice'
    >>> parse_definitions('[calendar.fiscal]\\nstarts = "July"')
    Traceback (most recent call last):
    decisor.semantics.definitions.DefinitionsFault: line 2: calendar.fiscal.starts "July" is not in the form MM-DD.

    Raises:
        DefinitionsFault: all faults, with their lines.
    """
    definitions, wrong = parse_sound_definitions(text, metrics)
    if wrong:
        raise DefinitionsFault(wrong)
    return definitions


def parse_sound_definitions(text: str, metrics: Collection[str] = ()) -> tuple[Definitions, list[tuple[int, str]]]:
    """Parse a definitions file; return the definitions without faults, and all faults with lines.

    Raises:
        DefinitionsFault: it is no TOML.
    """
    content = parse_definitions_toml(text)
    lines, broken = find_line_numbers(text), list(find_schema_faults(content, DEFINITIONS))
    known = [*metrics, *(path[1] for path in lines if path[0] == "metric" and len(path) > 1)]
    wrong = [(find_fault_line(lines, path), f"{'.'.join(path)} {words}") for path, words in broken]
    definitions = build_definitions(drop_faulty_sections(content, broken))
    broken = list(find_definition_contradictions(definitions, known))
    wrong += [(find_line_number(lines, path), words) for path, words in broken]
    definitions = build_definitions(drop_faulty_sections(content, broken)) if broken else definitions
    return replace(definitions, lines=lines), sorted(wrong)


def drop_faulty_sections(content: dict[str, Any], broken: Sequence[tuple[tuple[str, ...], str]]) -> dict[str, Any]:
    """Remove the sections that have a fault from the parsed content."""
    for path, _ in broken:
        group = content.get(path[0]) if path else None
        if isinstance(group, dict) and len(path) > 1:
            group.pop(path[1], None)
        elif path:
            content.pop(path[0], None)
    return content


def parse_definitions_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raise DefinitionsFault if it is none. A date without quotes in ``on`` becomes its text."""
    try:
        content = parse_toml(text)
    except TomlFault as error:
        raise DefinitionsFault([(error.line, str(error))]) from error
    for group in content.values():
        for section in group.values() if isinstance(group, dict) else ():
            if isinstance(section, dict) and isinstance(section.get("on"), date):
                section["on"] = section["on"].isoformat()[:10]
    return content


def build_definitions(content: Mapping[str, Any]) -> Definitions:
    """Build definitions from content that fits the schema."""
    return Definitions(
        metrics=[Metric(name, **fields_of_section(one)) for name, one in content.get("metric", {}).items()],
        dimensions=[Dimension(name, **fields_of_section(one)) for name, one in content.get("dimension", {}).items()],
        calendars=[Calendar(name, **fields_of_section(one)) for name, one in content.get("calendar", {}).items()],
        entities=[Entity(name, **fields_of_section(one)) for name, one in content.get("entity", {}).items()],
        joins=[Join(name, **fields_of_section(one)) for name, one in content.get("join", {}).items()],
        values=[build_value_words(name, one) for name, one in content.get("value", {}).items()],
        readings=[Reading(name, **fields_of_section(one)) for name, one in content.get("reading", {}).items()],
        examples=[ApprovedExample(name, **fields_of_section(one)) for name, one in content.get("example", {}).items()],
    )


def fields_of_section(one: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a section to the fields of its definition.

    The keys of its origin become one field; a single text becomes a tuple where several are allowed.
    """
    values = {
        ("source" if key == "from" else key): tuple_of_texts(value) if key in LISTS else value
        for key, value in one.items()
        if key not in ORIGIN
    }
    return {**values, "origin": Origin(**{key: one[key] for key in ORIGIN if key in one})}


def build_value_words(name: str, one: Mapping[str, Any]) -> ValueWords:
    words = {key: tuple_of_texts(value) for key, value in one.items() if key not in ORIGIN}
    return ValueWords(name, words, Origin(**{key: str(one[key]) for key in ORIGIN if key in one}))


def tuple_of_texts(words: str | list[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def find_definition_contradictions(
    definitions: Definitions, metrics: Collection[str] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield faults that no schema finds: parts that need each other, and unknown names."""
    names = list(dict.fromkeys([*(one.name for one in definitions.metrics), *metrics]))
    for metric in definitions.metrics:
        if bool(metric.query) == bool(metric.sql):
            yield ("metric", metric.name), f"metric.{metric.name} needs either sql with from, or query"
        elif metric.sql and not metric.source:
            yield ("metric", metric.name), f"metric.{metric.name} needs from: the rows that sql is computed over"
    for join in definitions.joins:
        if len(join.left) != len(join.right):
            yield ("join", join.name), f"join.{join.name} needs as many columns in left as in right"
    for reading in definitions.readings:
        if reading.metric and reading.metric not in names:
            there = f"there is {', '.join(names)}" if names else "there is none"
            yield (
                ("reading", reading.name, "metric"),
                f"reading.{reading.name} names the metric {reading.metric}; {there}",
            )
    for example in definitions.examples:
        if not (example.sql or example.answer):
            yield ("example", example.name), f"example.{example.name} needs sql or answer"
    if len(ours := [one.name for one in definitions.calendars if one.default]) > 1:
        yield ("calendar", ours[1], "default"), f"calendar.{ours[1]} is the second default; one calendar is"


class Column(ColumnOf, Protocol):
    """The metadata of a column that definitions need. examples: values as JSON."""

    @property
    def references(self) -> str: ...
    @property
    def joins(self) -> str: ...
    @property
    def examples(self) -> Sequence[str]: ...


class Relation(TableOf, Protocol):
    """The metadata of a table or view that definitions need. rows: None if the count is unknown."""

    @property
    def rows(self) -> int | None: ...
    @property
    def columns(self) -> Sequence[Column]: ...
