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
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeAlias, TypeVar

from decisor.decision_models.copies import ColumnOf, TableOf
from decisor.errors import SetupError
from decisor.parsing.toml_reply import format_toml_key, format_toml_value
from decisor.sandbox.wire import number_repeated_names
from decisor.system.serialization import SECTION_NAME, DecodeError, DocumentFormat, DocumentPath, SectionName, TextRule
from decisor.system.structured_files import FileFault, Lines, TomlFile, find_line_number, read_text_file
from decisor.system.text import fit_on_one_line

Cardinality = Literal["many to one", "one to one", "one to many", "many to many"]
Text = Annotated[str, TextRule()]
Texts = Annotated[Sequence[str], TextRule(is_list=True)]
Place = Annotated[str, TextRule(r"^.+\..+$", "TABLE.COLUMN")]
Places = Annotated[Sequence[str], TextRule(r"^.+\..+$", "TABLE.COLUMN", is_list=True)]


@dataclass(frozen=True)
class SectionOrigin:
    """The name of a definition's section, and who wrote it, when and why."""

    name: Annotated[str, SectionName()]
    by: str = field(default="", kw_only=True)
    """The author."""
    on: Annotated[str, TextRule(r"^\d{4}-\d{2}-\d{2}$", "YYYY-MM-DD")] = field(default="", kw_only=True)
    """The day it was written."""
    why: str = field(default="", kw_only=True)
    """The reason."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names under which a question may mention it."""
        return (self.name,)

    def signature(self) -> str:
        """Format the author and the day in parentheses, '' if both are missing.

        >>> Join("a", ["t.b"], ["u.b"], by="ann", on="2026-11-22").signature()
        ' (by ann, 2026-11-22)'
        """
        words = ", ".join(part for part in (f"by {self.by}" if self.by else "", self.on) if part)
        return f" ({words})" if words else ""


@dataclass(frozen=True)
class NamedSection(SectionOrigin):
    """A definition that questions mention by its name or a synonym."""

    synonyms: Texts = field(default=(), kw_only=True)
    """Names that people use too."""
    about: str = field(default="", kw_only=True)
    """A description in words."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.synonyms)


@dataclass(frozen=True)
class Metric(NamedSection):
    """A number that is computed from the data: an expression over rows, or a whole query."""

    sql: Text = ""
    """An expression over the rows of ``from`` that ``where`` leaves, such as SUM(price * quantity)."""
    source: Text = ""
    """The rows: the text after FROM."""
    where: Texts = ()
    """Filters that always hold."""
    query: Text = ""
    """The whole query, instead of sql and from."""
    unit: str = ""
    grain: Texts = ()
    """Columns that tell the rows apart."""
    date: Text = ""
    """The column that a period is about."""

    def full_query(self) -> str:
        """Return the query that computes the metric over all rows."""
        if self.query:
            return self.query.strip().rstrip(";")
        where = f" WHERE {' AND '.join(f'({condition})' for condition in self.where)}" if self.where else ""
        return f"SELECT {self.sql} AS {self.name} FROM {self.source}{where}"


@dataclass(frozen=True)
class Dimension(NamedSection):
    """An expression over the rows of ``from`` to group and filter by."""

    sql: Text
    source: Text = ""


@dataclass(frozen=True)
class Calendar(NamedSection):
    """A year that begins on a fixed month and day."""

    starts: Annotated[str, TextRule(r"^(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$", "MM-DD")]
    """Month and day, such as 07-01."""
    named_by: Literal["start", "end"] = "end"
    """Whether the year has the number of the year in which it starts or ends."""
    default: bool = False
    """Whether "year" and "quarter" mean this calendar if nothing else is said."""


@dataclass(frozen=True)
class Entity(NamedSection):
    """The kind of thing that a row of ``table`` is."""

    table: Text
    key: Texts
    """Columns that tell the rows apart."""


@dataclass(frozen=True)
class Join(SectionOrigin):
    """A relation between two tables: columns on both sides, in the same order."""

    left: Places
    right: Places
    cardinality: Cardinality = "many to one"


@dataclass(frozen=True)
class ValueWords(SectionOrigin):
    """The words that people use for the stored values of a column, which is the name (TABLE.COLUMN)."""

    words: Mapping[str, Sequence[str]]
    """Names by stored value."""


@dataclass(frozen=True)
class Reading(SectionOrigin):
    """The meaning of words of a question that could mean something else."""

    words: Texts
    means: Text
    metric: Text = ""
    """The metric of this file that measures it."""


@dataclass(frozen=True)
class ApprovedExample(SectionOrigin):
    """A question with the query that answers it, or with its answer, approved by a person."""

    question: Text
    sql: Text = ""
    answer: Text = ""


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


D = TypeVar("D", bound="Definition")


@dataclass(frozen=True)
class Definitions:
    """The definitions of a file."""

    entries: Sequence[Definition] = ()
    """In the order of their kinds, those of one kind as the file has them."""
    path: str = ""
    """The file, '' if there is none."""
    lines: Lines = field(default_factory=dict, repr=False, compare=False)

    def of(self, kind: type[D]) -> list[D]:
        return [definition for definition in self.entries if isinstance(definition, kind)]

    @property
    def metrics(self) -> list[Metric]:
        return self.of(Metric)

    def __iter__(self) -> Iterator[Definition]:
        return iter(self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

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


def format_section(definition: Definition) -> str:
    """Format a definition as a section of the file, its origin last.

    >>> print(format_section(Reading("best", ["best customer"], "by revenue", by="ann")), end="")
    [reading.best]
    words = "best customer"
    means = "by revenue"
    by = "ann"
    """
    shared = [one.name for one in fields(NamedSection)]
    names = sorted((one.name for one in fields(definition)), key=lambda name: (name in ORIGIN, name in shared))
    values: dict[str, object] = {name: getattr(definition, name) for name in names if name != "name"}
    if isinstance(definition, ValueWords):
        # The stored values are themselves the keys of the section.
        values = {**definition.words, **{name: values[name] for name in ORIGIN}}
    unchanged = {one.name: one.default for one in fields(definition)}
    lines = [
        f"{format_toml_key(KEYS.get(name, name))} = {format_toml_value(single_or_list(value))}"
        for name, value in values.items()
        if value not in ("", (), []) and value != unchanged.get(name)
    ]
    head = f"[{KIND[type(definition)]}.{format_toml_key(definition.name)}]"
    return "\n".join([head, *lines, ""])


def single_or_list(value: object) -> object:
    """Return the only item of a list, as a person would write it; any other value unchanged."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def make_section_name(text: str) -> str:
    """Convert a text to a name that can stand in a section.

    >>> make_section_name("net revenue (EUR)"), make_section_name("7 days")
    ('net_revenue_EUR', '_7_days')
    """
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "one"
    return f"_{name}" if name[0].isdigit() else name


def make_names_unique(definitions: Sequence[Definition]) -> list[Definition]:
    """Return definitions in the order of their kinds, with a number after each name that its kind has already."""
    groups = [[definition for definition in definitions if type(definition) is kind] for kind in KIND]
    names = (number_repeated_names([definition.name for definition in group]) for group in groups)
    return [
        definition if definition.name == name else replace(definition, name=name)
        for group, group_names in zip(groups, names, strict=True)
        for definition, name in zip(group, group_names, strict=True)
    ]


SectionKey = Annotated[str, TextRule(r"^[A-Za-z_]\w*$")]
ORIGIN = ("by", "on", "why")
KEYS = {"name": SECTION_NAME, "source": "from"}


@dataclass(frozen=True)
class DefinitionsFile:
    """Meanings of a question's words in these data."""

    metric: Mapping[SectionKey, Metric] = field(default_factory=dict)
    dimension: Mapping[SectionKey, Dimension] = field(default_factory=dict)
    calendar: Mapping[SectionKey, Calendar] = field(default_factory=dict)
    entity: Mapping[SectionKey, Entity] = field(default_factory=dict)
    join: Mapping[SectionKey, Join] = field(default_factory=dict)
    value: Mapping[Place, Mapping[str, Texts]] = field(default_factory=dict)
    """By column, its stored values and what people call each of them."""
    reading: Mapping[SectionKey, Reading] = field(default_factory=dict)
    example: Mapping[SectionKey, ApprovedExample] = field(default_factory=dict)

    def definitions(self, lines: Lines) -> Definitions:
        entries: list[Definition] = [*self.metric.values(), *self.dimension.values(), *self.calendar.values()]
        entries += [*self.entity.values(), *self.join.values()]
        for place, words in self.value.items():
            # The keys by, on and why stand among the stored values.
            origin = {key: words[key][0] for key in ORIGIN if key in words}
            entries.append(ValueWords(place, {key: words[key] for key in words if key not in ORIGIN}, **origin))
        return Definitions([*entries, *self.reading.values(), *self.example.values()], lines=lines)


DEFINITIONS_FILE = DocumentFormat(DefinitionsFile, is_closed=True, keys=KEYS)


def read_definitions_file(path: Path, metrics: Collection[str] = ()) -> Definitions:
    """Read a definitions file; raise SetupError, with lines, if it is missing or has faults."""
    try:
        return replace(parse_definitions(read_definitions_text(path), metrics), path=str(path))
    except FileFault as error:
        raise SetupError(f"{path}: {error}") from error


def read_definitions_text(path: Path) -> str:
    """Read the text of a definitions file; raise SetupError if it cannot be read."""
    return read_text_file(path, "a definitions file")


def parse_definitions(text: str, metrics: Collection[str] = ()) -> Definitions:
    """Parse the text of a definitions file. metrics: names of metrics in another file, which readings may name too.

    >>> parse_definitions('[metric.revenue]\\nsql = "SUM(total)"\\nfrom = "invoice"').metrics[0].full_query()
    'SELECT SUM(total) AS revenue FROM invoice'
    >>> parse_definitions('[calendar.fiscal]\\nstarts = "July"')
    Traceback (most recent call last):
    decisor.system.structured_files.FileFault: line 2: calendar.fiscal.starts "July" is not in the form MM-DD.

    Raises:
        FileFault: all faults, with their lines.
    """
    definitions, faults = parse_sound_definitions(text, metrics)
    if faults:
        raise FileFault(faults)
    return definitions


def parse_sound_definitions(text: str, metrics: Collection[str] = ()) -> tuple[Definitions, list[tuple[int, str]]]:
    """Parse a definitions file; return the definitions without faults, and all faults with lines.

    Raises:
        FileFault: it is no TOML.
    """
    file = TomlFile(text)
    file.name_sections(*(kind for kind in KIND.values() if kind != "value"))
    # Metrics with faults count too: a reading that names one has no fault of its own.
    known = [*metrics, *(path[1] for path in file.lines if path[0] == "metric" and len(path) > 1)]
    try:
        sections, faults = DEFINITIONS_FILE.decode_value(file.content), []
    except DecodeError as error:
        faults = [file.locate(path, words) for path, words in error.faults]
        sections = drop_faulty_sections(file, [path for path, _ in error.faults])
    definitions = sections.definitions(file.lines)
    if contradictions := list(find_definition_contradictions(definitions, known)):
        faults += [(find_line_number(file.lines, path), words) for path, words in contradictions]
        definitions = drop_faulty_sections(file, [path for path, _ in contradictions]).definitions(file.lines)
    return definitions, sorted(faults)


def drop_faulty_sections(file: TomlFile, paths: Iterable[DocumentPath]) -> DefinitionsFile:
    """Decode a file without the sections in which these paths lie."""
    for kind, *keys in map(list, paths):
        group = file.content.get(str(kind))
        if isinstance(group, dict) and keys:
            group.pop(str(keys[0]), None)
        else:
            file.content.pop(str(kind), None)
    return DEFINITIONS_FILE.decode_value(file.content)


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
    for join in definitions.of(Join):
        if len(join.left) != len(join.right):
            yield ("join", join.name), f"join.{join.name} needs as many columns in left as in right"
    for reading in definitions.of(Reading):
        if reading.metric and reading.metric not in names:
            there = f"there is {', '.join(names)}" if names else "there is none"
            yield (
                ("reading", reading.name, "metric"),
                f"reading.{reading.name} names the metric {reading.metric}; {there}",
            )
    for example in definitions.of(ApprovedExample):
        if not (example.sql or example.answer):
            yield ("example", example.name), f"example.{example.name} needs sql or answer"
    if len(ours := [one.name for one in definitions.of(Calendar) if one.default]) > 1:
        yield ("calendar", ours[1], "default"), f"calendar.{ours[1]} is the second default; one calendar is"


class Column(ColumnOf, Protocol):
    """The metadata of a column that definitions need. examples: values as JSON."""

    @property
    def references(self) -> str: ...
    @property
    def joins(self) -> str: ...
    @property
    def examples(self) -> Sequence[str]: ...
    @property
    def comment(self) -> str: ...


class Relation(TableOf, Protocol):
    """The metadata of a table or view that definitions need. rows: None if the count is unknown."""

    @property
    def rows(self) -> int | None: ...
    @property
    def comment(self) -> str: ...
    @property
    def columns(self) -> Sequence[Column]: ...
