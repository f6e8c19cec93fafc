"""Definitions as their file says them. Expressions are SQL of the database that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from decisor.decision_models.lines import Lines, line_of

Cardinality = Literal["many to one", "one to one", "one to many", "many to many"]
KINDS = ("metric", "dimension", "calendar", "entity", "join", "value", "reading", "example")


@dataclass(frozen=True)
class Origin:
    """Who wrote it, on which day (ISO), and why."""

    by: str = ""
    on: str = ""
    why: str = ""

    def __str__(self) -> str:
        """
        >>> str(Origin("ann", "2026-11-22")), str(Origin())
        (' (by ann, 2026-11-22)', '')
        """
        words = ", ".join(part for part in (f"by {self.by}" if self.by else "", self.on) if part)
        return f" ({words})" if words else ""


@dataclass(frozen=True)
class Metric:
    """A number. Either ``sql``, an expression over the rows of ``source`` (a FROM clause) that ``where`` leaves, or a
    whole ``query``. ``grain``: the columns that tell these rows apart. ``date``: the column that a period is about."""

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
        """The query that gives it, over all rows."""
        if self.query:
            return self.query.strip().rstrip(";")
        where = f" WHERE {' AND '.join(f'({one})' for one in self.where)}" if self.where else ""
        return f"SELECT {self.sql} AS {self.name} FROM {self.source}{where}"


@dataclass(frozen=True)
class Dimension:
    """What is grouped and filtered by: an expression over the rows of ``source``."""

    name: str
    sql: str
    source: str = ""
    synonyms: Sequence[str] = ()
    about: str = ""
    origin: Origin = Origin()


@dataclass(frozen=True)
class Calendar:
    """A year that ``starts`` on a month and day ("07-01") and has the number of the year in which it starts or ends.
    ``default``: it is what "year" and "quarter" mean where nothing else is said."""

    name: str
    starts: str = "01-01"
    named_by: Literal["start", "end"] = "end"
    default: bool = False
    synonyms: Sequence[str] = ()
    about: str = ""
    origin: Origin = Origin()


@dataclass(frozen=True)
class Entity:
    """What a row of ``table`` is one of. ``key``: the columns that tell them apart."""

    name: str
    table: str
    key: Sequence[str]
    synonyms: Sequence[str] = ()
    about: str = ""
    origin: Origin = Origin()


@dataclass(frozen=True)
class Join:
    """How two tables belong together: columns as TABLE.COLUMN, in the same order on both sides."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    cardinality: Cardinality = "many to one"
    origin: Origin = Origin()


@dataclass(frozen=True)
class ValueWords:
    """Of a column (TABLE.COLUMN): stored value -> what people call it."""

    name: str
    words: Mapping[str, Sequence[str]]
    origin: Origin = Origin()


@dataclass(frozen=True)
class Reading:
    """What ``words`` of a question mean, where they could mean something else. ``metric``: that it is measured by."""

    name: str
    words: Sequence[str]
    means: str
    metric: str = ""
    origin: Origin = Origin()


@dataclass(frozen=True)
class Example:
    """A question with the query that answers it, or with its answer, approved by a person."""

    name: str
    question: str
    sql: str = ""
    answer: str = ""
    origin: Origin = Origin()


Definition: TypeAlias = Metric | Dimension | Calendar | Entity | Join | ValueWords | Reading | Example
KIND: Mapping[type, str] = {
    Metric: "metric", Dimension: "dimension", Calendar: "calendar", Entity: "entity", Join: "join",
    ValueWords: "value", Reading: "reading", Example: "example",
}  # fmt: skip


def title(one: Definition) -> str:
    """As its section is called.

    >>> title(Calendar("fiscal_year", "07-01"))
    'calendar.fiscal_year'
    """
    return f"{KIND[type(one)]}.{one.name}"


@dataclass(frozen=True)
class Definitions:
    """All of a file, in its order. ``path``: the file, '' where there is none."""

    metrics: Sequence[Metric] = ()
    dimensions: Sequence[Dimension] = ()
    calendars: Sequence[Calendar] = ()
    entities: Sequence[Entity] = ()
    joins: Sequence[Join] = ()
    values: Sequence[ValueWords] = ()
    readings: Sequence[Reading] = ()
    examples: Sequence[Example] = ()
    path: str = ""
    lines: Lines = field(default_factory=dict, repr=False, compare=False)

    def __iter__(self) -> Iterator[Definition]:
        for group in (self.metrics, self.dimensions, self.calendars, self.entities, self.joins, self.values,
                      self.readings, self.examples):  # fmt: skip
            yield from group

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def line(self, one: Definition, key: str = "") -> int:
        """Where it stands in the file, from 1; 0 where it stands nowhere."""
        return line_of(self.lines, (KIND[type(one)], one.name, *([key] if key else [])))

    def find(self, name: str) -> Definition | None:
        """By its title (``metric.revenue``), or by its name alone where one has it."""
        match = [one for one in self if name in (title(one), one.name)]
        return match[0] if len(match) == 1 else None
