"""A chart as a value: its title, axes, and series of marks.

``chart_drawing`` draws it, as SVG and as text; Vega-Lite takes it along to other programs, where texts are titles and
values, never expressions. Times are seconds since 1970 (UTC), as people and databases write them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from decisor.system.text import clean_for_terminal, clean_one_line, format_number
from decisor.system.wording import format_count

ChartKind = Literal["line", "bar", "span", "steps", "points"]
"""A bar begins at 0, or is a point if its axis does not; a span reaches from ``low`` to ``high``, and so does a step,
whose value is the difference."""
Scale = Literal["time", "number", "share", "name"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST = 60
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
VEGA_LITE_MARKS: dict[str, dict[str, object]] = {
    "line": {"type": "line", "point": True},
    "bar": {"type": "bar"},
    "points": {"type": "point", "filled": True},
}
WORDS = {"line": "Line chart", "bar": "Bar chart", "span": "Ranges", "steps": "Waterfall", "points": "Points"}
NEAR = 0.75
"""An axis begins at 0 where the smallest value is less than this part of the largest."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a chart."""

    name: str
    """Its column, or a name for several columns."""
    unit: str = ""
    scale: Scale = "number"
    zero: bool = True
    """Whether it begins at 0."""

    @property
    def title(self) -> str:
        """Name of the axis with its unit.

        >>> Axis("total_revenue", "USD").title, Axis("month").title
        ('total revenue (USD)', 'month')
        """
        name = clean_one_line(self.name.replace("_", " "), LONGEST)
        return f"{name} ({clean_one_line(self.unit, 20)})" if self.unit else name

    def format(self, value: float) -> str:
        """Format a value of the axis; a share in percent.

        >>> Axis("rent").format(1250.5), Axis("accuracy", scale="share").format(0.1234)
        ('1,250.5', '12.3 %')
        """
        return f"{100 * value:.3g} %" if self.scale == "share" else format_number(value)


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A value as a mark of a chart."""

    record: str
    """Id of the record that it is a cell of, '' if it is none."""
    x: float
    """Seconds since 1970 (UTC), a number, or its place in the row of names."""
    y: float | None
    """None if the cell is empty."""
    label: str
    """Text of the value at ``x``."""
    low: float | None = None
    """Lower end of the range of ``y``. None means that no range is known."""
    high: float | None = None
    note: str = ""
    """Words to say beside the value."""


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """A series of marks."""

    name: str
    """'' if there is only one series."""
    marks: tuple[ChartMark, ...]
    number: int | None = None
    """Number of its colour and shape. None means its place among the series."""
    published: bool = False
    """Whether others measured it: it is drawn apart."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. In a bar chart ``x`` is the axis of names, and marks at one place are a group."""

    kind: ChartKind
    title: str
    x: Axis
    y: Axis
    series: tuple[ChartSeries, ...]
    notes: tuple[str, ...] = ()
    """Parts that are not drawn, and why."""
    id: str = ""
    """Name in the JSON of a report."""

    def marks(self) -> Iterator[tuple[ChartSeries, ChartMark, float]]:
        """Yield the marks that have a value, with their series and that value."""
        for series in self.series:
            for mark in series.marks:
                if mark.y is not None:
                    yield series, mark, mark.y

    def values(self) -> list[float]:
        """Return everything that the axis of values must show: values, and ends of ranges."""
        ends = (end for _, mark, value in self.marks() for end in (value, mark.low, mark.high))
        return [end for end in ends if end is not None]

    def format_mark(self, mark: ChartMark) -> str:
        """Format the value of a mark with its range and its note."""
        if self.kind == "steps":
            words = ""  # its note has the difference, with as many digits as the sum needs
        elif mark.low is None or mark.high is None:
            words = self.y.format(mark.y or 0.0)
        else:
            # Ends of a range are estimates: four digits say what is known of them.
            within = " to ".join(self.y.format(float(f"{end:.4g}")) for end in (mark.low, mark.high))
            words = within if self.kind == "span" else f"{self.y.format(mark.y or 0.0)} ({within})"
        return ", ".join(part for part in (words, clean_one_line(mark.note, LONGEST)) if part)

    def describe_mark(self, series: ChartSeries, mark: ChartMark) -> str:
        """Return the series, label and value of a mark as words."""
        names = dict.fromkeys(clean_one_line(name, LONGEST) for name in (series.name, mark.label) if name)
        return f"{', '.join(names)}: {self.format_mark(mark)}"

    @property
    def description(self) -> str:
        """Text for readers who do not see the chart: its kind, number of values, and ends."""
        marks = list(self.marks())
        low, high = min(marks, key=lambda mark: mark[2]), max(marks, key=lambda mark: mark[2])
        lines = f" in {len(self.series)} series" if len(self.series) > 1 else ""
        ends = f"lowest {self.describe_mark(*low[:2])}, highest {self.describe_mark(*high[:2])}"
        by = f" by {self.x.title}" if self.x.name else ""
        return f"{WORDS[self.kind]} of {self.y.title}{by}: {format_count(len(marks), 'value')}{lines}; {ends}."

    def vega_lite(self) -> dict[str, object]:
        """Return the chart as a Vega-Lite specification, version 5, with its data inside.

        The data are ``x``, ``y``, ``label`` (the cell of x), ``series`` and ``record``, the id that the value is cited
        by. ``usermeta.notes``: parts that are not drawn.
        """
        across, up = vega_lite_channel("x", self.x), vega_lite_channel("y", self.y)
        if self.kind == "bar":
            # Bars lie on their side, so that long names can be read; sort None keeps the query's order.
            across, up = up, {**vega_lite_channel("label", self.x), "sort": None}
        encoding = {
            "x": across,
            "y": up,
            "tooltip": [{"field": "label", "type": "nominal"}, {"field": "y", "type": "quantitative"}],
        }
        if len(self.series) > 1:
            encoding["color"] = {"field": "series", "type": "nominal", "sort": None, "title": None}
        return {
            "$schema": SCHEMA,
            "title": clean_for_terminal(self.title),
            "description": clean_for_terminal(self.description),
            "data": {"values": vega_lite_values(self)},
            "mark": {**VEGA_LITE_MARKS[self.kind], "tooltip": True},
            "encoding": encoding,
            "usermeta": {"notes": list(self.notes)},
        }


def vega_lite_channel(field: str, axis: Axis) -> dict[str, object]:
    title = clean_for_terminal(axis.title)
    match axis.scale:
        case "time":
            return {"field": field, "type": "temporal", "title": title, "scale": {"type": "utc"}}
        case "name":
            return {"field": field, "type": "nominal", "title": title}
        case "number" | "share":
            return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": axis.zero}}


def vega_lite_values(chart: Chart) -> list[dict[str, object]]:
    return [
        {
            "x": iso_time(mark.x) if chart.x.scale == "time" else mark.x,
            "y": mark.y,
            "label": clean_for_terminal(mark.label),
            "record": mark.record,
            **({"series": clean_for_terminal(series.name)} if len(chart.series) > 1 else {}),
        }
        for series in chart.series
        for mark in series.marks
    ]


def seconds_since_1970(time: datetime) -> float:
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH).total_seconds()


def iso_time(value: float) -> str:
    """Format seconds since 1970 as ISO 8601 in UTC.

    >>> iso_time(86400.0)
    '1970-01-02T00:00:00Z'
    """
    return (EPOCH + timedelta(seconds=value)).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def begins_at_zero(values: Sequence[float | None]) -> bool:
    """Return whether an axis of these values begins at 0. It does unless they all lie close together, far from 0.

    >>> begins_at_zero([3.0, 12.0]), begins_at_zero([980.0, 1000.0])
    (True, False)
    """
    sizes = [abs(value) for value in values if value is not None]
    signs = {value > 0 for value in values if value}
    return not sizes or len(signs) > 1 or min(sizes) < NEAR * max(sizes)
