"""Which chart fits a table: decided by what its columns hold, never by what is in a text.

A time and a measure: a line; a name and a measure: bars; two measures: points. Anything else, and anything with fewer
than three rows, is a table and no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from decisor.plurals import counted
from decisor.render.text import one_line
from decisor.story.answer_charts.chart import LONGEST, Axis, Chart, Kind, Mark, Scale, Series
from decisor.story.answer_charts.columns import ChartColumn, columns_of, unit_of
from decisor.types import Record

LEAST_ROWS = 3
MOST_BARS = 20
MOST_SERIES = 8
APART = 20
"""Measures whose largest values are further apart than this many times do not share an axis."""
NEAR = 0.75
"""An axis of a line begins at 0 where the smallest value is less than this part of the largest."""
JOINED = " · "
NO_UNITS: Mapping[str, str] = {}


def chart_of(records: Sequence[Record], units: Mapping[str, str] = NO_UNITS) -> Chart | None:
    """Of records with the same fields, in the order of the query. ``units``: of columns that are called so.

    >>> rows = [Record(f"o1.r{n}", {"month": f"1997-0{n}", "revenue": 10.0 * n}) for n in (1, 2, 3)]
    >>> chart = chart_of(rows, {"revenue": "USD"})
    >>> chart.kind, chart.title, chart.y.title
    ('line', 'Revenue by month', 'revenue (USD)')
    """
    if len(records) < LEAST_ROWS:
        return None
    columns = columns_of(records)
    by_kind: dict[str, list[ChartColumn]] = {kind: [] for kind in ("time", "number", "name", "key")}
    for one in columns:
        by_kind.setdefault(one.kind, []).append(one)
    return Table(records, by_kind, units).chart()


class Table:
    """Records with their columns, by what these hold."""

    def __init__(
        self, records: Sequence[Record], by_kind: Mapping[str, Sequence[ChartColumn]], units: Mapping[str, str]
    ) -> None:
        self.ids = [record.id for record in records]
        self.units = units
        self.times, self.measures = by_kind["time"], by_kind["number"]
        self.names, self.keys = by_kind["name"], by_kind["key"]
        self.notes: list[str] = []

    def chart(self) -> Chart | None:
        if not self.measures:
            return None
        ranked = self.times and not is_sorted(self.times[0]) and is_sorted(self.measures[0]) and not self.names
        if self.times and not ranked and (chart := self.line(self.times[0], "time", self.measures, self.names)):
            return chart
        if self.times or self.names or self.keys:
            return self.by_name()
        if len(self.measures) > 1 and rises(self.measures[0]):
            return self.line(self.measures[0], "number", self.measures[1:], ())
        return self.points(None) if len(self.measures) == 2 else None

    def line(
        self, x: ChartColumn, scale: Scale, measures: Sequence[ChartColumn], names: Sequence[ChartColumn]
    ) -> Chart | None:
        """One line a name, or one a measure; None where that makes no lines."""
        groups = self.groups(x, measures[0], names) if names else {}
        same = measures[:1] if names else self.of_one_scale(measures)
        every = list(groups.values()) or [self.marks(x, one) for one in same]
        if sum(map(len, every)) < max(LEAST_ROWS, 2 * len(every)) or any(is_crowded(marks) for marks in every):
            return None
        values = [mark.y for marks in every for mark in marks if mark.y is not None]
        if len(values) < LEAST_ROWS:
            return None
        self.left_out(sum(place is None for place in x.places), x)
        self.beside([one for one in measures if one not in same])
        if not (zero := from_zero(values)):
            self.notes.append(f"The axis of {listed(same)} does not begin at 0.")
        lines = zip(same, every, strict=False)
        single = [Series(one.name.replace("_", " ") if len(same) > 1 else "", marks) for one, marks in lines]
        series = self.largest(groups) if names else single
        y = Axis(listed(same), unit_of(same[0].name, self.units), zero=zero)
        across = Axis(x.name, unit_of(x.name, self.units), scale, zero=False)
        by = f"{x.name} and {listed(names)}" if names else x.name
        return self.drawn("line", across, y, series, by)

    def groups(self, x: ChartColumn, measure: ChartColumn, names: Sequence[ChartColumn]) -> dict[str, tuple[Mark, ...]]:
        """The marks of each name, in the order in which the names come."""
        every = self.marks(x, measure)
        name_of = {self.ids[at]: joined(names, at) for at in range(len(self.ids))}
        groups: dict[str, list[Mark]] = {}
        for mark in every:
            groups.setdefault(name_of[mark.record], []).append(mark)
        return {name: tuple(marks) for name, marks in groups.items()}

    def largest(self, groups: Mapping[str, Sequence[Mark]]) -> list[Series]:
        size = {name: sum(abs(mark.y or 0.0) for mark in marks) for name, marks in groups.items()}
        names = sorted(groups, key=lambda name: -size[name])[:MOST_SERIES]
        if len(groups) > MOST_SERIES:
            self.notes.append(f"The {MOST_SERIES} largest of {len(groups)} are drawn; the table has all.")
        return [Series(name, tuple(groups[name])) for name in groups if name in names]

    def by_name(self) -> Chart | None:
        """Bars, or points of two measures where the query sorted by neither."""
        ways = [self.names, [*self.names, *self.times], [*self.names, *self.keys], self.keys]
        names = next((way for way in ways if way and self.tells_apart(way)), None)
        if names is None:
            return None
        order = [one for one in self.measures if is_sorted(one)]
        if len(self.measures) == 2 and not order:
            return self.points(names)
        measure = (order or self.measures)[0]
        self.beside([one for one in self.measures if one is not measure])
        return self.bars(names, measure, bool(order))

    def tells_apart(self, names: Sequence[ChartColumn]) -> bool:
        return len({joined(names, at) for at in range(len(self.ids))}) == len(self.ids)

    def bars(self, names: Sequence[ChartColumn], measure: ChartColumn, in_order: bool) -> Chart | None:
        """In the order of the query; of too many the first, or the largest where the query did not sort."""
        every = [Mark(self.ids[at], 0.0, value, joined(names, at)) for at, value in enumerate(measure.places)]
        marks = [mark for mark in every if mark.y is not None]
        if len(marks) < LEAST_ROWS:
            return None
        self.left_out(len(every) - len(marks), measure)
        if len(marks) > MOST_BARS:
            which = "first" if in_order else "largest"
            self.notes.append(f"The {which} {MOST_BARS} of {len(marks)} are drawn; the table has all.")
            marks = (marks if in_order else sorted(marks, key=lambda mark: -abs(mark.y or 0.0)))[:MOST_BARS]
        places = tuple(replace(mark, x=float(at)) for at, mark in enumerate(marks))
        y = Axis(measure.name, unit_of(measure.name, self.units))
        return self.drawn("bar", Axis(listed(names), scale="name"), y, [Series("", places)], listed(names))

    def points(self, names: Sequence[ChartColumn] | None) -> Chart | None:
        """A measure across, another one up."""
        across, up = self.measures[:2]
        labels = {id: joined(names, at) for at, id in enumerate(self.ids)} if names else {}
        marks = [replace(mark, label=labels.get(mark.record, f"{across.name} {mark.label}"))
                 for mark in self.marks(across, up) if mark.y is not None]  # fmt: skip
        if len(marks) < LEAST_ROWS:
            return None
        self.left_out(len(self.ids) - len(marks), up)
        x, y = (Axis(one.name, unit_of(one.name, self.units), zero=from_zero(one.places)) for one in (across, up))
        return self.drawn("points", x, y, [Series("", tuple(marks))], across.name)

    def marks(self, x: ChartColumn, y: ChartColumn) -> tuple[Mark, ...]:
        """Those that have a place, from left to right."""
        marks = [Mark(self.ids[at], place, y.places[at], x.text(at))
                 for at, place in enumerate(x.places) if place is not None]  # fmt: skip
        return tuple(sorted(marks, key=lambda mark: mark.x))

    def of_one_scale(self, measures: Sequence[ChartColumn]) -> Sequence[ChartColumn]:
        """Those that can share an axis with the first."""
        first = measures[0]
        return [one for one in measures if unit_of(one.name, self.units) == unit_of(first.name, self.units)
                and 1 / APART <= (top(one) or 1.0) / (top(first) or 1.0) <= APART][:MOST_SERIES]  # fmt: skip

    def beside(self, measures: Sequence[ChartColumn]) -> None:
        if measures:
            self.notes.append(f"In the table alone: {listed(measures)}.")

    def left_out(self, rows: int, column: ChartColumn) -> None:
        if rows:
            self.notes.append(f"Not drawn: {counted(rows, 'row')} without {listed([column])}.")

    def drawn(self, kind: Kind, x: Axis, y: Axis, series: Sequence[Series], by: str) -> Chart:
        title = one_line(f"{y.name} {'against' if kind == 'points' else 'by'} {by}".replace("_", " "), LONGEST)
        return Chart(kind, title[:1].upper() + title[1:], x, y, tuple(series), tuple(self.notes))


def joined(names: Sequence[ChartColumn], at: int) -> str:
    return JOINED.join(one.text(at) or "(empty)" for one in names)


def listed(columns: Sequence[ChartColumn]) -> str:
    return ", ".join(one.name.replace("_", " ") for one in columns)


def is_crowded(marks: Sequence[Mark]) -> bool:
    """Two of them stand at one place."""
    return len({mark.x for mark in marks}) < len(marks)


def rises(column: ChartColumn) -> bool:
    """Whole numbers, each larger than the one before: hours, months, classes."""
    places = [place for place in column.places if place is not None]
    return all(a < b for a, b in pairwise(places)) and all(place == int(place) for place in places)


def is_sorted(column: ChartColumn) -> bool:
    places = [place for place in column.places if place is not None]
    return len(set(places)) > 1 and (places == sorted(places) or places == sorted(places, reverse=True))


def from_zero(values: Sequence[float | None]) -> bool:
    """Whether an axis of these begins at 0: it does unless they all lie close together, far from it.

    >>> from_zero([3.0, 12.0]), from_zero([980.0, 1000.0])
    (True, False)
    """
    sizes = [abs(value) for value in values if value is not None]
    signs = {value > 0 for value in values if value}
    return not sizes or len(signs) > 1 or min(sizes) < NEAR * max(sizes)


def top(column: ChartColumn) -> float:
    return max((abs(place) for place in column.places if place is not None), default=0.0)
