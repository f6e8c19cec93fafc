"""A chart of an answer: which cells are drawn, where they lie, and what is said beside it. Drawn by others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from decisor.plurals import counted
from decisor.render.text import number, one_line

Kind = Literal["line", "bar", "points"]
Scale = Literal["time", "number", "name"]
LONGEST = 60
WORDS = {"line": "Line chart", "bar": "Bar chart", "points": "Points"}


@dataclass(frozen=True, slots=True)
class Axis:
    """``name``: its column, or what several columns are called. ``zero``: it begins at 0."""

    name: str
    unit: str = ""
    scale: Scale = "number"
    zero: bool = True

    @property
    def title(self) -> str:
        """
        >>> Axis("total_revenue", "USD").title, Axis("month").title
        ('total revenue (USD)', 'month')
        """
        name = one_line(self.name.replace("_", " "), LONGEST)
        return f"{name} ({one_line(self.unit, 20)})" if self.unit else name


@dataclass(frozen=True, slots=True)
class Mark:
    """One cell: of which record, and where it is drawn. ``x``: seconds since 1970 (UTC), a number, or its place in the
    row of names; ``y`` is None where the cell is empty. ``label``: what stands at ``x``, as its cell says it."""

    record: str
    x: float
    y: float | None
    label: str


@dataclass(frozen=True, slots=True)
class Series:
    """``name`` is '' where there is only one."""

    name: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars: ``x`` is the axis of names, and every mark a bar, in order. ``notes``: what is not drawn, and why."""

    kind: Kind
    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()

    def marks(self) -> Iterator[tuple[Series, Mark, float]]:
        """Those that have a value, with their series and that value."""
        for series in self.series:
            for mark in series.marks:
                if mark.y is not None:
                    yield series, mark, mark.y

    def vega_lite(self) -> dict[str, object]:
        """As a Vega-Lite specification, with its data inside."""
        from decisor.story.answer_charts.vega_lite import vega_lite

        return vega_lite(self)

    @property
    def description(self) -> str:
        """For who does not see it: the kind, how much is drawn, and its ends."""
        marks = list(self.marks())
        low, high = min(marks, key=lambda one: one[2]), max(marks, key=lambda one: one[2])
        lines = f" in {len(self.series)} series" if len(self.series) > 1 else ""
        ends = f"lowest {words(*low)}, highest {words(*high)}"
        return f"{WORDS[self.kind]} of {self.y.title} by {self.x.title}: {counted(len(marks), 'value')}{lines}; {ends}."


def words(series: Series, mark: Mark, value: float) -> str:
    """What a mark says.

    >>> words(Series("Tea", ()), Mark("o1.r1", 0, 12.5, "1997-01"), 12.5)
    'Tea, 1997-01: 12.5'
    """
    name = f"{one_line(series.name, LONGEST)}, " if series.name else ""
    return f"{name}{one_line(mark.label, LONGEST)}: {number(value)}"
