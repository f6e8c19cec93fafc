"""Which chart fits the cited records of an answer.

The kinds of the columns decide the chart, never the content of a text. A time and a measure make a line, a name and a
measure bars, two measures points. Anything else, and anything with fewer than three rows, stays a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Literal

from decisor.system.text import clean_one_line
from decisor.system.wording import format_count
from decisor.trace.events import ActionResult, RunStart, TraceEntry, events_of
from decisor.types import Decision, Observation, Record, Value
from decisor.views.charts import (
    LONGEST,
    Axis,
    Chart,
    ChartKind,
    ChartMark,
    ChartSeries,
    Scale,
    begins_at_zero,
    seconds_since_1970,
)
from decisor.views.terminal import group_records

MONTH_VALUE, QUARTER_VALUE = re.compile(r"(\d{4})-(\d{2})"), re.compile(r"(\d{4})[- ]?Q([1-4])", re.I)
WEEK, DAY = re.compile(r"(\d{4})-?W(\d{2})"), re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?", re.S)


def parse_time(text: str) -> float | None:
    """Return a time in seconds since 1970 (UTC); None if the text is no time.

    >>> (parse_time("1970-01-02"), parse_time("1970-Q2") == parse_time("1970-04"),
    ...     parse_time("1970-01-01 00:01:00"), parse_time("May"))
    (86400.0, True, 60.0, None)
    """
    text = text.strip()
    try:
        if match := MONTH_VALUE.fullmatch(text):
            return seconds_since_1970(datetime(int(match[1]), int(match[2]), 1))
        if match := QUARTER_VALUE.fullmatch(text):
            return seconds_since_1970(datetime(int(match[1]), 3 * int(match[2]) - 2, 1))
        if match := WEEK.fullmatch(text):
            return seconds_since_1970(datetime.fromisocalendar(int(match[1]), int(match[2]), 1))
        return seconds_since_1970(datetime.fromisoformat(text)) if DAY.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def seconds_of_year(number: float) -> float | None:
    """Return the beginning of a year in seconds since 1970; None if the number is no year.

    >>> seconds_of_year(1971), seconds_of_year(12)
    (31536000.0, None)
    """
    return seconds_since_1970(datetime(int(number), 1, 1)) if 1000 <= number <= 2999 and number == int(number) else None


ColumnsKind = Literal["time", "number", "name", "key", "none"]
KEY = re.compile(r"(?:^|[_\W])(?:id|code|key|no|nr|zip|postcode|phone)$", re.I)
CAMEL_KEY = re.compile(r"[a-z](?:ID|Id|Key|Code)$")
YEAR, MONTH, QUARTER = (re.compile(f"(?:{name})$", re.I) for name in ("year|yr", "month", "quarter|qtr"))
DECIMAL = re.compile(r"-?\d+\.\d+")


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """A column of an answer."""

    name: str
    kind: ColumnsKind
    cells: tuple[Value, ...]
    """Values as they were read."""
    places: tuple[float | None, ...] = ()
    """Number of each cell, for a time its seconds; None for a cell that has none."""

    def text(self, at: int) -> str:
        value = self.cells[at]
        return "" if value is None else str(value)


def classify_column(name: str, cells: Sequence[Value]) -> ChartColumn:
    """Return a column with its kind: time, number, name, key or none.

    >>> classify_column("month", ["1997-01", None]).kind, classify_column("total", [1, 2.5]).kind
    ('time', 'number')
    >>> (classify_column("orderID", [1, 2]).kind, classify_column("year", [1996]).kind,
    ...     classify_column("tags", [["a"]]).kind)
    ('key', 'time', 'none')
    """
    values = [value for value in cells if value is not None]
    if not values or not all(isinstance(value, str | int | float) for value in values):
        return ChartColumn(name, "none", tuple(cells))
    numbers = tuple(number_of_cell(value) for value in cells)
    if YEAR.search(name):
        # A year is a whole number too, so its name decides before the numbers do.
        texts = map(str, cells)
        years = tuple(seconds_of_year(int(text)) if re.fullmatch(r"\d{4}", text) else None for text in texts)
        if all(one is not None for one, value in zip(years, cells, strict=True) if value is not None):
            return ChartColumn(name, "time", tuple(cells), years)
    if all(one is not None for one, value in zip(numbers, cells, strict=True) if value is not None):
        # A number that names something is no measure: a sum of ids means nothing.
        is_key = (KEY.search(name) or CAMEL_KEY.search(name)) and all(one is None or one == int(one) for one in numbers)
        return ChartColumn(name, "key" if is_key else "number", tuple(cells), numbers)
    times = tuple(parse_time(value) if isinstance(value, str) else None for value in cells)
    if all(one is not None for one, value in zip(times, cells, strict=True) if value is not None):
        return ChartColumn(name, "time", tuple(cells), times)
    return ChartColumn(name, "name", tuple(cells))


def number_of_cell(value: Value) -> float | None:
    """Return a number, or the number of a decimal that a database gives as text; else None."""
    if isinstance(value, str):
        return float(value) if DECIMAL.fullmatch(value) else None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value) if math.isfinite(value) else None
    return None


def with_periods(columns: list[ChartColumn]) -> list[ChartColumn]:
    """Join a year with its month or quarter into one column.

    >>> with_periods([classify_column("year", [1997, 1997]), classify_column("month", [1, "02"]),
    ...     classify_column("n", [5, 6])])[0].cells
    ('1997-01', '1997-02')
    """
    years = next((one for one in columns if one.kind == "time" and YEAR.search(one.name)), None)
    for part in columns:
        for pattern, most, form in ((MONTH, 12, "{}-{:02}"), (QUARTER, 4, "{}-Q{}")):
            if years and part is not years and pattern.search(part.name) and is_period_part(part, most):
                both = zip(years.cells, part.cells, strict=True)
                cells = [None if None in (a, b) else form.format(a, int(str(b))) for a, b in both]
                whole = classify_column(part.name, cells)
                return [whole if one is years else one for one in columns if one is not part]
    return columns


def is_period_part(column: ChartColumn, most: int) -> bool:
    """Return whether a column holds numbers of months or quarters."""
    texts = [column.text(at) for at, value in enumerate(column.cells) if value is not None]
    return bool(texts) and all(re.fullmatch(r"\d{1,2}", text) and 1 <= int(text) <= most for text in texts)


def unit_of(name: str, units: Mapping[str, str]) -> str:
    """Return the unit of a column that is called as a metric is, else ''.

    >>> unit_of("Net Revenue", {"net_revenue": "USD"}), unit_of("revenue_share", {"revenue": "USD"})
    ('USD', '')
    """
    return next((unit for metric, unit in units.items() if fold_column_name(metric) == fold_column_name(name)), "")


def fold_column_name(name: str) -> str:
    return re.sub(r"\W|_", "", name).casefold()


LEAST_ROWS = 3
MOST_BARS = 20
MOST_SERIES = 8
APART = 20
"""Measures whose largest values are further apart than this many times do not share an axis."""
JOINED = " · "
NO_UNITS: Mapping[str, str] = {}


def choose_chart(records: Sequence[Record], units: Mapping[str, str] = NO_UNITS) -> Chart | None:
    """Choose a chart for records with the same fields, in the query's order; None if none fits. units: unit of each
    metric name, for the column of that name.

    >>> rows = [Record(f"o1.r{n}", {"month": f"1997-0{n}", "revenue": 10.0 * n}) for n in (1, 2, 3)]
    >>> chart = choose_chart(rows, {"revenue": "USD"})
    >>> chart.kind, chart.title, chart.y.title
    ('line', 'Revenue by month', 'revenue (USD)')
    """
    if len(records) < LEAST_ROWS:
        return None
    names = records[0].fields
    # A year beside its month or quarter becomes one column with both.
    columns = with_periods([classify_column(name, [record.fields[name] for record in records]) for name in names])
    by_kind: dict[str, list[ChartColumn]] = {kind: [] for kind in ("time", "number", "name", "key")}
    for one in columns:
        by_kind.setdefault(one.kind, []).append(one)
    return ChartTable(records, by_kind, units).chart()


class ChartTable:
    """Records with their columns, sorted by kind."""

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
        # A query that sorts by a measure, not by time, asks for the largest: bars show that, a line would hide it.
        ranked = self.times and not is_sorted(self.times[0]) and is_sorted(self.measures[0]) and not self.names
        if self.times and not ranked and (chart := self.line(self.times[0], "time", self.measures, self.names)):
            return chart
        if self.times or self.names or self.keys:
            return self.by_name()
        if len(self.measures) > 1 and is_rising(self.measures[0]):
            return self.line(self.measures[0], "number", self.measures[1:], ())
        return self.points(None) if len(self.measures) == 2 else None

    def line(
        self, x: ChartColumn, scale: Scale, measures: Sequence[ChartColumn], names: Sequence[ChartColumn]
    ) -> Chart | None:
        """Build a chart with one line for each name or measure; None if that makes no lines."""
        groups = self.groups(x, measures[0], names) if names else {}
        same = measures[:1] if names else self.of_one_scale(measures)
        every = list(groups.values()) or [self.marks(x, one) for one in same]
        # Lines need two points each on average, and one value at a time: otherwise they would jump.
        is_crowded = any(len({mark.x for mark in marks}) < len(marks) for marks in every)
        if sum(map(len, every)) < max(LEAST_ROWS, 2 * len(every)) or is_crowded:
            return None
        values = [mark.y for marks in every for mark in marks if mark.y is not None]
        if len(values) < LEAST_ROWS:
            return None
        # Say what the chart does not show.
        self.left_out(sum(place is None for place in x.places), x)
        self.beside([one for one in measures if one not in same])
        if not (zero := begins_at_zero(values)):
            self.notes.append(f"The axis of {join_column_names(same)} does not begin at 0.")
        lines = zip(same, every, strict=False)
        single = [ChartSeries(one.name.replace("_", " ") if len(same) > 1 else "", marks) for one, marks in lines]
        series = self.largest(groups) if names else single
        y = Axis(join_column_names(same), unit_of(same[0].name, self.units), zero=zero)
        across = Axis(x.name, unit_of(x.name, self.units), scale, zero=False)
        by = f"{x.name} and {join_column_names(names)}" if names else x.name
        return self.drawn("line", across, y, series, by)

    def groups(
        self, x: ChartColumn, measure: ChartColumn, names: Sequence[ChartColumn]
    ) -> dict[str, tuple[ChartMark, ...]]:
        """Return the marks of each name, in the order in which the names come."""
        every = self.marks(x, measure)
        name_of = {self.ids[at]: join_name_cells(names, at) for at in range(len(self.ids))}
        groups: dict[str, list[ChartMark]] = {}
        for mark in every:
            groups.setdefault(name_of[mark.record], []).append(mark)
        return {name: tuple(marks) for name, marks in groups.items()}

    def largest(self, groups: Mapping[str, Sequence[ChartMark]]) -> list[ChartSeries]:
        size = {name: sum(abs(mark.y or 0.0) for mark in marks) for name, marks in groups.items()}
        names = sorted(groups, key=lambda name: -size[name])[:MOST_SERIES]
        if len(groups) > MOST_SERIES:
            self.notes.append(f"The {MOST_SERIES} largest of {len(groups)} are drawn; the table has all.")
        return [ChartSeries(name, tuple(groups[name])) for name in groups if name in names]

    def by_name(self) -> Chart | None:
        """Build bars, or points of two measures if the query sorted by neither."""
        # The shortest name that tells all rows apart.
        ways = [self.names, [*self.names, *self.times], [*self.names, *self.keys], self.keys]
        names = next((way for way in ways if way and self.tells_apart(way)), None)
        if names is None:
            return None
        # The measure that the query sorted by is the one that it is about.
        order = [one for one in self.measures if is_sorted(one)]
        if len(self.measures) == 2 and not order:
            return self.points(names)
        measure = (order or self.measures)[0]
        self.beside([one for one in self.measures if one is not measure])
        return self.bars(names, measure, bool(order))

    def tells_apart(self, names: Sequence[ChartColumn]) -> bool:
        return len({join_name_cells(names, at) for at in range(len(self.ids))}) == len(self.ids)

    def bars(self, names: Sequence[ChartColumn], measure: ChartColumn, in_order: bool) -> Chart | None:
        """Build bars in the order of the query.

        Of too many it draws the first, or the largest if the query did not sort.
        """
        every = [
            ChartMark(self.ids[at], 0.0, value, join_name_cells(names, at)) for at, value in enumerate(measure.places)
        ]
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
        return self.drawn(
            "bar", Axis(join_column_names(names), scale="name"), y, [ChartSeries("", places)], join_column_names(names)
        )

    def points(self, names: Sequence[ChartColumn] | None) -> Chart | None:
        """Build points with one measure across and another one up."""
        across, up = self.measures[:2]
        labels = {id: join_name_cells(names, at) for at, id in enumerate(self.ids)} if names else {}
        marks = [
            replace(mark, label=labels.get(mark.record, f"{across.name} {mark.label}"))
            for mark in self.marks(across, up)
            if mark.y is not None
        ]
        if len(marks) < LEAST_ROWS:
            return None
        self.left_out(len(self.ids) - len(marks), up)
        x, y = (Axis(one.name, unit_of(one.name, self.units), zero=begins_at_zero(one.places)) for one in (across, up))
        return self.drawn("points", x, y, [ChartSeries("", tuple(marks))], across.name)

    def marks(self, x: ChartColumn, y: ChartColumn) -> tuple[ChartMark, ...]:
        """Return the marks that have a place, from left to right."""
        marks = [
            ChartMark(self.ids[at], place, y.places[at], x.text(at))
            for at, place in enumerate(x.places)
            if place is not None
        ]
        return tuple(sorted(marks, key=lambda mark: mark.x))

    def of_one_scale(self, measures: Sequence[ChartColumn]) -> Sequence[ChartColumn]:
        """Return the measures that can share an axis with the first."""
        first = measures[0]
        return [
            one
            for one in measures
            if unit_of(one.name, self.units) == unit_of(first.name, self.units)
            and 1 / APART <= (largest_size(one) or 1.0) / (largest_size(first) or 1.0) <= APART
        ][:MOST_SERIES]

    def beside(self, measures: Sequence[ChartColumn]) -> None:
        if measures:
            self.notes.append(f"In the table alone: {join_column_names(measures)}.")

    def left_out(self, rows: int, column: ChartColumn) -> None:
        if rows:
            self.notes.append(f"Not drawn: {format_count(rows, 'row')} without {join_column_names([column])}.")

    def drawn(self, kind: ChartKind, x: Axis, y: Axis, series: Sequence[ChartSeries], by: str) -> Chart:
        title = clean_one_line(f"{y.name} {'against' if kind == 'points' else 'by'} {by}".replace("_", " "), LONGEST)
        return Chart(kind, title[:1].upper() + title[1:], x, y, tuple(series), tuple(self.notes))


def join_name_cells(names: Sequence[ChartColumn], at: int) -> str:
    return JOINED.join(one.text(at) or "(empty)" for one in names)


def join_column_names(columns: Sequence[ChartColumn]) -> str:
    return ", ".join(one.name.replace("_", " ") for one in columns)


def is_rising(column: ChartColumn) -> bool:
    """Return whether a column holds whole numbers, each larger than the one before.

    Such are hours, months and classes.
    """
    places = [place for place in column.places if place is not None]
    return all(a < b for a, b in pairwise(places)) and all(place == int(place) for place in places)


def is_sorted(column: ChartColumn) -> bool:
    places = [place for place in column.places if place is not None]
    return len(set(places)) > 1 and (places == sorted(places) or places == sorted(places, reverse=True))


def largest_size(column: ChartColumn) -> float:
    return max((abs(place) for place in column.places if place is not None), default=0.0)


MOST_CHARTS = 3
LONG = 50
"""First rows of an observation too long for a prompt: so many are cited by nobody one by one."""
DEFINITION = "definition"
UNIT = re.compile(r"(?:^|; )in ([^;]{1,20})(?:;|$)")


@dataclass(frozen=True, slots=True)
class CitedTable:
    """Records of one observation with the same fields, all of them cited, in its order."""

    records: tuple[Record, ...]
    note: str = ""
    """Rows that are not there."""


def charts_of_decision(
    entries: Sequence[TraceEntry], decision: Decision, records: Sequence[Record]
) -> tuple[Chart, ...]:
    """Return the charts of an answer that is a table or a series.

    A ranking's bars are left out, as the ranking shows them already. records: cited records, as the reader may see
    them.
    """
    if not decision.answer:
        return ()
    units = units_of(records)
    charts = []
    for table in find_cited_tables(entries, records):
        chart = choose_chart(table.records, units)
        if chart is not None and not (decision.ranking and chart.kind == "bar"):
            notes = (table.note, *chart.notes) if table.note else chart.notes
            charts.append(replace(chart, notes=notes))
    return tuple(charts[:MOST_CHARTS])


def find_cited_tables(entries: Sequence[TraceEntry], records: Sequence[Record]) -> Iterator[CitedTable]:
    """Yield the cited tables of a decision.

    A decision that cites only some rows of a query compares candidates, and has no table.
    """
    observations = {observation_of_record(one.records[0]): one for one in observations_of(entries) if one.records}
    for group in group_records([record for record in records if record.fields and DEFINITION not in record.fields]):
        observation = observations.get(observation_of_record(group[0]), Observation())
        ids = [record.id for record in observation.records]
        by_id = {record.id: record for record in group}
        rows = tuple(by_id[id] for id in ids if id in by_id)
        # No answer cites hundreds of rows one by one: of a long table its first rows stand for all.
        is_long = len(rows) >= LONG and all(id in by_id for id in ids[: len(rows)])
        if observation.ranking is None and (len(rows) == len(ids) or is_long):
            yield CitedTable(rows, unseen_rows_note(len(rows), observation))


def observations_of(entries: Sequence[TraceEntry]) -> Iterator[Observation]:
    """Yield the observations of a run, after those of the decision that it goes on from."""
    for start in events_of(entries, RunStart):
        yield from (step.observation for step in (start.question.earlier.all_steps if start.question.earlier else ()))
    yield from (result.observation for result in events_of(entries, ActionResult))


def observation_of_record(record: Record) -> str:
    """Return the name of a record's observation."""
    return record.id.partition(".")[0]


def unseen_rows_note(rows: int, observation: Observation) -> str:
    """Return a note if the query has more rows than are drawn, else ''."""
    total = max(observation.total or 0, len(observation.records))
    if total > rows:
        return f"The first {rows:,} of the {total:,} rows that the query has."
    return f"The first {rows:,} rows; the query has more." if observation.truncated else ""


def units_of(records: Sequence[Record]) -> Mapping[str, str]:
    """Return the units of the metrics whose definitions a decision cites, by name.

    >>> units_of([Record("o1.r1", {"definition": "metric.revenue", "says": "sum(x) over sale; in USD"})])
    {'revenue': 'USD'}
    """
    units = {}
    for record in records:
        kind, _, name = str(record.fields.get(DEFINITION, "")).partition(".")
        if kind == "metric" and (unit := UNIT.search(str(record.fields.get("says", "")))):
            units[name] = unit[1]
    return units
