"""A chart of an answer: which cells are drawn, where they lie, and what is said beside it. Others draw it, also from
Vega-Lite, where texts are titles and values, never expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from decisor.plurals import counted
from decisor.render.text import clean, number, one_line
from decisor.story.answer_charts.moments import iso

Kind = Literal["line", "bar", "points"]
Scale = Literal["time", "number", "name"]
LONGEST = 60
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
MARKS: dict[str, dict[str, object]] = {
    "line": {"type": "line", "point": True},
    "bar": {"type": "bar"},
    "points": {"type": "point", "filled": True},
}
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
        """As a Vega-Lite specification, version 5, with its data inside: ``x``, ``y``, ``label`` (the cell of x),
        ``series`` and ``record``, the id that the value is cited by. ``usermeta.notes``: what is not drawn."""
        across, up = channel("x", self.x), channel("y", self.y)
        if self.kind == "bar":
            across, up = {**channel("y", self.y)}, {**channel("label", self.x), "sort": None}
        encoding = {
            "x": across,
            "y": up,
            "tooltip": [{"field": "label", "type": "nominal"}, {"field": "y", "type": "quantitative"}],
        }
        if len(self.series) > 1:
            encoding["color"] = {"field": "series", "type": "nominal", "sort": None, "title": None}
        return {
            "$schema": SCHEMA,
            "title": clean(self.title),
            "description": clean(self.description),
            "data": {"values": values_of(self)},
            "mark": {**MARKS[self.kind], "tooltip": True},
            "encoding": encoding,
            "usermeta": {"notes": list(self.notes)},
        }

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


def channel(field: str, axis: Axis) -> dict[str, object]:
    title = clean(axis.title)
    match axis.scale:
        case "time":
            return {"field": field, "type": "temporal", "title": title, "scale": {"type": "utc"}}
        case "number":
            return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": axis.zero}}
        case "name":
            return {"field": field, "type": "nominal", "title": title}


def values_of(chart: Chart) -> list[dict[str, object]]:
    return [
        {
            "x": iso(mark.x) if chart.x.scale == "time" else mark.x, "y": mark.y, "label": clean(mark.label),
            "record": mark.record, **({"series": clean(series.name)} if len(chart.series) > 1 else {}),
        }
        for series in chart.series
        for mark in series.marks
    ]  # fmt: skip
