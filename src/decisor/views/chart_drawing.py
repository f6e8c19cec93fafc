"""The one drawing of a chart: as SVG for pages, notebooks, records and reports, and as text for terminals.

The HTML holds a drawing for wide and one for narrow screens, and the notes. A chart of cited cells leads to their rows
and can be taken along as Vega-Lite; any other has its figures in a table. Colours come from ``static/chart.css`` by
class: ``s0`` to ``s7``, and ``pub`` for published figures.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from textwrap import wrap
from unicodedata import east_asian_width

from decisor.system.text import clean_for_terminal, clean_one_line
from decisor.views.charts import EPOCH, Axis, Chart, ChartKind, ChartMark, ChartSeries, seconds_since_1970
from decisor.views.links import row_anchor
from decisor.views.markup import Html, tag

WIDTHS = {"wide": 680, "narrow": 340}
"""Pixels: for a screen, and for a phone."""
LETTER = 6.9
"""Pixels of a letter, about."""
LINE, ROW, PLOT = 18, 24, 240
SPANS: tuple[ChartKind, ...] = ("span", "steps")
BARS: tuple[ChartKind, ...] = ("bar", *SPANS)
MOST_ROWS = 20
MOST_DOTS, MOST_LINKS = 120, 400
MOST_LABELS = 12
MOST_BANDS, WIDEST_BAND = 4, 0.4
"""Bands of more series, or wider than this part of the axis on average, would hide the lines."""
SHAPES = {
    "circle": (),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)),
    "triangle": ((0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
}
MINUTE, HOUR = 60, 3600
STEPS = (MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR, 168 * HOUR)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12000, 60000)


def chart_html(chart: Chart, records: frozenset[str] = frozenset()) -> Html:
    """Return a chart as HTML; a mark of one of the ``records`` leads to its row of the evidence."""
    notes = (tag("p", clean_for_terminal(note), cls="soft") for note in list_notes(chart))
    # Marks that are cells of cited records stand in the tables of the evidence.
    has_records = any(mark.record for _, mark, _ in chart.marks())
    below = vega_lite_link(chart) if has_records else figures_table(chart)
    drawings = (chart_svg(chart, kind, records) for kind in WIDTHS)
    return tag("figure", tag("figcaption", clean_one_line(chart.title)), *drawings, *notes, below, cls="chart")


def list_notes(chart: Chart) -> Iterator[str]:
    """Yield the notes of a chart, and how many of its bars the drawing has no room for."""
    yield from chart.notes
    marks = {mark.x: value for _, mark, value in chart.marks()} if chart.kind in BARS else {}
    if len(marks) > MOST_ROWS:
        yield f"The first {MOST_ROWS} of {len(marks)} are drawn; the last has {chart.y.format(marks[max(marks)])}."


def vega_lite_link(chart: Chart) -> Html:
    text = json.dumps(chart.vega_lite(), ensure_ascii=False)
    # A data address needs no server and no script.
    href = "data:application/json;base64," + base64.b64encode(text.encode()).decode()
    return tag("p", tag("a", "Chart as Vega-Lite", href=href, download="chart.vl.json"), cls="soft")


def figures_table(chart: Chart) -> Html:
    """Return the values of a chart as a folded table, with those that the drawing has no room for."""
    rows = [
        tag(
            "tr",
            *(tag("td", clean_one_line(cell)) for cell in (series.name, mark.label, chart.format_mark(mark)) if cell),
        )
        for series, mark, _ in chart.marks()
    ]
    inner = tag("div", tag("table", tag("tbody", *rows)), cls="scroll", tabindex=0, role="group", aria_label="Figures")
    return tag("details", tag("summary", "Figures"), inner)


@dataclass(frozen=True, slots=True)
class PlacedMarks:
    """The shapes of a drawing, and over them a place for each mark that says its value."""

    height: float
    shapes: Sequence[Html]
    links: Sequence[tuple[ChartMark, Html]]


def chart_svg(chart: Chart, kind: str = "wide", records: frozenset[str] = frozenset()) -> Html:
    """Draw a chart as SVG. kind: of ``WIDTHS``.

    The evidence or the figures say the same to readers who do not see the drawing, so marks are no stops of the
    keyboard.
    """
    width = WIDTHS[kind]
    drawing = draw_bars(chart, width) if chart.kind in BARS else draw_plot(chart, width)
    picture = tag(
        "g",
        tag("title", clean_one_line(chart.title)),
        tag("desc", chart.description),
        *drawing.shapes,
        role="img",
        aria_label=f"{clean_one_line(chart.title)}. {chart.description}",
    )
    links = (
        tag("a", hit, href=f"#{row_anchor(mark.record)}", tabindex=-1) if mark.record in records else hit
        for mark, hit in drawing.links
    )
    box = f"0 0 {width} {drawing.height:g}"
    return tag("svg", picture, tag("g", *links, aria_hidden="true"), cls=kind, viewBox=box)


@dataclass(frozen=True, slots=True)
class LinearScale:
    """A linear scale from data to the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        return self.start + (self.end - self.start) * ((value - self.low) / span if span else 0.5)


def draw_bars(chart: Chart, width: int) -> PlacedMarks:
    """Draw bars: names to the left, values to the right; where values need much room, names stand above their bars.

    On an axis that does not begin at 0 a bar's length would mislead, so there each value is a point.
    """
    rows = rows_of_bars(chart)
    is_grouped = any(len(row) > 1 for row in rows)
    marks = [mark for row in rows for _, mark in row]
    words = {mark: chart.y.format(mark.y or 0.0) if is_grouped else chart.format_mark(mark) for mark in marks}
    room = LETTER * max(map(len, words.values())) + 16
    is_stacked = not is_grouped and room > width / 4
    names = min(max(text_width(mark.label) for mark in marks) + 18, (0.36 if width > 500 else 0.4) * width)
    left, right = (8.0, width - 8.0) if is_stacked else (names, max(width - room, names + 40))
    low, high, steps = axis_range(chart.values(), chart.y)
    if chart.y.zero:
        # Values are written beside their bars, so the axis needs no round ends.
        low, high, steps = min(0.0, *chart.values()), max(0.0, *chart.values()), []
    scale = LinearScale(low, high, left, right)
    shapes, top = draw_legend(chart, width)
    shapes.append(draw_text(left, top + 14, chart.y.title, cls="soft"))
    start, links = top + 24, list[tuple[ChartMark, Html]]()
    top = start
    thick, step = (12.0, 14.0) if is_grouped else (ROW - 7.0, 0.0)
    for row in rows:
        label = row[0][1].label
        height = ROW + LINE * is_stacked + step * (len(row) - 1)
        if is_stacked:
            words[row[0][1]] = fit_text(words[row[0][1]], 0.7 * width)
            shapes.append(draw_text(left, top + 14, fit_text(label, width - text_width(words[row[0][1]]) - left - 16)))
        else:
            shapes.append(draw_text(left - 8, top + height / 2 + 4, fit_text(label, left - 8), "end"))
        for at, (series, mark) in enumerate(row):
            bar = top + 3 + LINE * is_stacked + step * at
            shapes += draw_bar(chart, series, mark, scale, (bar, thick))
            baseline = top + 14 if is_stacked else bar + thick / 2 + 4.5
            shapes.append(draw_text(width - 4, baseline, words[mark], "end", "value"))
            hit = {"x": 0, "y": bar - 3, "width": width, "height": thick + 7} if is_grouped else {}
            hit = hit or {"x": 0, "y": top, "width": width, "height": height}
            title = tag("title", chart.describe_mark(chart.series[series], mark))
            links.append((mark, draw_shape("rect", "hit", title, **hit)))
        top += height
    if not steps:
        zero = draw_line(scale(0.0), start - 2, scale(0.0), top, "zero")
        return PlacedMarks(round(top + 6, 1), [zero, *shapes], links)
    grid = [draw_line(scale(value), start - 2, scale(value), top, "grid") for value in steps]
    grid += draw_ticks(scale, ((value, chart.y.format(value)) for value in steps), top, width)
    grid.append(draw_break(scale.start, top))
    return PlacedMarks(round(top + 24, 1), [*grid, *shapes], links)


def rows_of_bars(chart: Chart) -> list[list[tuple[int, ChartMark]]]:
    """Return the bars of each place with the number of their series, in order of the places."""
    rows: dict[float, list[tuple[int, ChartMark]]] = {}
    for at, series in enumerate(chart.series):
        for mark in series.marks:
            if mark.y is not None:
                rows.setdefault(mark.x, []).append((at, mark))
    return [rows[place] for place in sorted(rows)][:MOST_ROWS]


def draw_bar(
    chart: Chart, series: int, mark: ChartMark, scale: LinearScale, place: tuple[float, float]
) -> Iterator[Html]:
    """Yield a bar, span or point with its range. place: the top and the height of its row."""
    top, thick = place
    value, cls = mark.y or 0.0, series_class(chart.series[series], series)
    if chart.kind in SPANS or chart.y.zero:
        ends = (mark.low or 0.0, mark.high or 0.0) if chart.kind in SPANS else (0.0, value)
        start, end = sorted(map(scale, ends))
        below = " below" if value < 0 and len(chart.series) == 1 else ""
        yield draw_shape("rect", f"{cls} bar{below}", x=start, y=top, width=max(end - start, 1.0), height=thick, rx=2)
    if mark.low is not None and mark.high is not None and chart.kind not in SPANS:
        middle, low, high = top + thick / 2, scale(mark.low), scale(mark.high)
        path = f"M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 3:.1f}v6M{high:.1f} {middle - 3:.1f}v6"
        yield draw_shape("path", "dark whisker", d=path)
    if chart.kind == "bar" and not chart.y.zero:
        yield draw_mark(chart.series[series], series, scale(value), top + thick / 2)


def draw_plot(chart: Chart, width: int) -> PlacedMarks:
    """Draw lines or points, in a frame with round numbers."""
    shapes, top = draw_legend(chart, width)
    marks = list(chart.marks())
    low, high, steps = axis_range(chart.values(), chart.y)
    left = 14 + LETTER * max(len(chart.y.format(step)) for step in steps)
    y = LinearScale(low, high, top + LINE + 8 + PLOT, top + LINE + 8)
    places = [mark.x for _, mark, _ in marks]
    is_line = chart.kind == "line"
    first, last = (min(places), max(places)) if is_line else axis_range(places, chart.x)[:2]
    x = LinearScale(first, last, left + 6, width - 14)
    shapes.append(draw_text(4, top + 14, chart.y.title, cls="soft"))
    for step in steps:
        shapes.append(draw_line(left, y(step), width - 8, y(step), "zero" if step == 0 else "grid"))
        shapes.append(draw_text(left - 6, y(step) + 4, chart.y.format(step), "end", "soft"))
    if not chart.y.zero:
        shapes.append(draw_break(left, y.start))
    shapes += draw_axis_across(chart.x, x, y.start, width)
    has_bands = is_line and len(chart.series) <= MOST_BANDS
    if has_bands:
        shapes += [band for at, series in enumerate(chart.series) for band in draw_band(series, at, x, y)]
    links: list[tuple[ChartMark, Html]] = []
    # Many dots on a line run into each other; links stay, as they are not seen.
    has_dots, size = (len(marks) <= MOST_DOTS, 3.2) if is_line else (True, 4.5)
    for at, series in enumerate(chart.series):
        if is_line:
            cls = f"{series_class(series, at)} run"
            shapes += [draw_shape("path", cls, d=path) for path in line_paths(series, x, y)]
        for mark in series.marks:
            if mark.y is None:
                continue
            if mark.low is not None and mark.high is not None and (not is_line or len(series.marks) == 1):
                across, foot, head = x(mark.x), y(mark.low), y(mark.high)
                path = (
                    f"M{across:.1f} {foot:.1f}V{head:.1f}M{across - 4:.1f} {foot:.1f}h8M{across - 4:.1f} {head:.1f}h8"
                )
                shapes.append(draw_shape("path", f"{series_class(series, at)} whisker", d=path))
            if has_dots:
                shapes.append(draw_mark(series, at, x(mark.x), y(mark.y), size))
            # Large enough for a finger.
            title = tag("title", chart.describe_mark(series, mark))
            links.append((mark, draw_shape("circle", "hit", title, cx=x(mark.x), cy=y(mark.y), r=9)))
    if not is_line:
        shapes += draw_labels([mark for series, mark, _ in marks if mark.label != series.name], x, y, width)
    return PlacedMarks(round(y.start + 44, 1), shapes, links if len(links) <= MOST_LINKS else ())


def axis_range(values: Sequence[float], axis: Axis) -> tuple[float, float, list[float]]:
    """Return the ends of an axis, with the round numbers on it."""
    low, high = min(values), max(values)
    if axis.zero:
        low, high = min(low, 0.0), max(high, 0.0)
    # A scale of no length would divide by zero.
    if low == high:
        low, high = (0.0, 1.0) if axis.scale == "share" and axis.zero else (low - 1.0, high + 1.0)
    steps = round_steps(low, high, 5)
    return steps[0], steps[-1], steps


def round_steps(low: float, high: float, most: int) -> list[float]:
    """Return round numbers from ``low`` to at least ``high``.

    >>> round_steps(0, 1, 5), round_steps(0, 7, 6)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 2.0, 4.0, 6.0, 8.0])
    """
    if high <= low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    # A little less than raw, as 10 ** log10 rounds.
    step = next(base * power for base in (1, 2, 5, 10) if base * power >= raw * 0.999999)
    first = math.floor(low / step + 1e-9)
    return [round(step * at, 12) for at in range(first, math.ceil(high / step - 1e-9) + 1)]


def draw_axis_across(axis: Axis, x: LinearScale, bottom: float, width: int) -> Iterator[Html]:
    """Yield the ticks of the axis across, with as many labels as fit, and its title."""
    most = max(2, int((x.end - x.start) / (62 if axis.scale == "time" else 80)))
    if axis.scale == "time":
        ticks = time_ticks(x.low, x.high, most)
    else:
        is_whole = float(x.low).is_integer() and float(x.high).is_integer()
        steps = [step for step in round_steps(x.low, x.high, most) if x.low <= step <= x.high]
        ticks = [(step, axis.format(step)) for step in steps if not is_whole or step == int(step) or axis.zero]
    yield from draw_ticks(x, ticks, bottom, width)
    yield draw_text((x.start + x.end) / 2, bottom + 36, axis.title, "middle", "soft")


def draw_ticks(x: LinearScale, ticks: Iterable[tuple[float, str]], bottom: float, width: int) -> Iterator[Html]:
    end = -math.inf
    for place, label in ticks:
        half = LETTER * len(label) / 2
        # A label at the edge is moved in, so that it is not cut off.
        middle = min(max(x(place), half + 2), width - half - 2)
        yield draw_line(x(place), bottom, x(place), bottom + 4, "grid")
        if middle - half > end:
            yield draw_text(middle, bottom + 18, label, "middle", "soft")
            end = middle + half + 6


def time_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Return at most about ``most`` round times from ``low`` to ``high``, each with its words.

    >>> year = 365.2425 * 24 * HOUR
    >>> [text for _, text in time_ticks(27 * year, 28 * year, 5)]
    ['Jan 1997', 'Apr', 'Jul', 'Oct']
    >>> [text for _, text in time_ticks(20 * year, 29.9 * year, 6)]
    ['1990', '1992', '1994', '1996', '1998']
    """
    span = high - low
    step = next((step for step in STEPS if span / step <= most), None)
    if step is not None:
        # -(-a // b) rounds up, also for times before 1970.
        seconds = (step * at for at in range(int(-(-low // step)), int(high // step) + 1))
        return list(label_times((EPOCH + timedelta(seconds=value) for value in seconds), clock=step < 24 * HOUR))
    # Longer spans have ticks by calendar months, which differ in length; 30.4 days is their mean.
    months = next(months for months in MONTHS if span / (months * 30.4 * 24 * HOUR) <= most)
    start, end = ((EPOCH + timedelta(seconds=value)) for value in (low, high))
    first = -(-(start.year * 12 + start.month - 1) // months) * months
    times = (datetime(at // 12, at % 12 + 1, 1, tzinfo=UTC) for at in range(first, end.year * 12 + end.month, months))
    ticks = label_times(times, years=months % 12 == 0)
    return [(value, label) for value, label in ticks if low <= value <= high]


def label_times(times: Iterable[datetime], clock: bool = False, years: bool = False) -> Iterator[tuple[float, str]]:
    """Yield times with labels; the year, or the day of a clock, stands only where it changes."""
    before = ""
    for time in times:
        head = f"{time.day} {time:%b}" if clock else f"{time.year}"
        part = f"{time:%H:%M}" if clock else f"{time:%b}" if time.day == 1 else f"{time.day} {time:%b}"
        words = part if head == before else f"{head} {part}" if clock else f"{part} {head}"
        before = head
        yield seconds_since_1970(time), head if years else words


def draw_legend(chart: Chart, width: int) -> tuple[list[Html], float]:
    """Return the name of each series beside its mark, in lines, and the height of these lines."""
    shapes: list[Html] = []
    if len(chart.series) < 2:
        return shapes, 0.0
    x, y = 4.0, 0.0
    for at, series in enumerate(chart.series):
        name = clean_one_line(series.name, 28) + " (published)" * series.published
        room = 30 + text_width(name)
        if x > 4 and x + room > width:
            x, y = 4.0, y + LINE
        shapes += [draw_mark(series, at, x + 6, y + 10), draw_text(x + 17, y + 14, name)]
        x += room
    return shapes, y + LINE + 8


def legend_swatch(number: int | None) -> Html:
    """Draw the mark of a series for a legend. None means published figures."""
    series = ChartSeries("", (), number, published=number is None)
    return tag("svg", draw_mark(series, 0, 7, 7), cls="swatch", viewBox="0 0 14 14", aria_hidden="true")


def line_paths(series: ChartSeries, x: LinearScale, y: LinearScale) -> Iterator[str]:
    """Yield paths through the marks, broken where a cell is empty."""
    parts: list[str] = []
    for mark in series.marks:
        if mark.y is not None:
            parts.append(f"{'L' if parts else 'M'}{x(mark.x):.1f} {y(mark.y):.1f}")
        elif parts:
            yield "".join(parts)
            parts = []
    if parts:
        yield "".join(parts)


def draw_band(series: ChartSeries, at: int, x: LinearScale, y: LinearScale) -> Iterator[Html]:
    """Yield the ranges of a line as a band, unless they are so wide that it would hide the lines."""
    ends = [(x(mark.x), y(mark.low), y(mark.high)) for mark in series.marks if None not in (mark.low, mark.high)]  # type: ignore[arg-type]
    if len(ends) > 1 and sum(low - high for _, low, high in ends) <= WIDEST_BAND * PLOT * len(ends):
        corners = [*((across, high) for across, _, high in ends), *((across, low) for across, low, _ in reversed(ends))]
        yield draw_polygon(f"{series_class(series, at)} band", corners)


def draw_labels(marks: Sequence[ChartMark], x: LinearScale, y: LinearScale, width: int) -> Iterator[Html]:
    """Yield the names of points that overlap no other name and no other point."""
    rooms = [(x(mark.x) - 5, x(mark.x) + 5, y(mark.y or 0.0)) for mark in marks]
    for mark in marks if len(marks) <= MOST_LABELS else ():
        name = clean_one_line(mark.label, 24)
        room, place, height = text_width(name), x(mark.x), y(mark.y or 0.0)
        # To the right of its point, or to the left where the drawing ends.
        start = place - 9 - room if place + 9 + room > width else place + 9
        if all(abs(height - y2) > 13 or start > end or start + room < begin for begin, end, y2 in rooms):
            rooms.append((start, start + room, height))
            yield draw_text(start, height + 4, name)


def text_width(words: str) -> float:
    """Return the width of a text in pixels, roughly. Some scripts have letters twice as wide.

    >>> round(text_width("Tea")), round(text_width("\u8336"))
    (21, 14)
    """
    return LETTER * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in words)


def fit_text(words: str, room: float) -> str:
    """Cut a text to the room that there is."""
    text = clean_one_line(words, int(room / LETTER))
    while len(text) > 1 and text_width(text) > room:
        text = f"{text[:-2]}…"
    return text


def series_class(series: ChartSeries, at: int) -> str:
    return "pub" if series.published else f"s{(at if series.number is None else series.number) % 8}"


def draw_mark(series: ChartSeries, at: int, x: float, y: float, size: float = 5.0) -> Html:
    """Draw a series' own mark, so that colour is never the only thing that tells two apart."""
    number = 2 if series.published else at if series.number is None else series.number
    corners = tuple(SHAPES.values())[number % len(SHAPES)]
    cls = f"{series_class(series, at)} dot"
    if not corners:
        return draw_shape("circle", cls, cx=x, cy=y, r=size)
    return draw_polygon(cls, [(x + size * dx, y + size * dy) for dx, dy in corners])


def draw_polygon(cls: str, corners: Iterable[tuple[float, float]]) -> Html:
    return draw_shape("polygon", cls, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners))


def draw_break(x: float, y: float) -> Html:
    """Draw the sign of an axis that does not begin at 0."""
    return draw_shape("path", "break", d=f"M{x - 5:.1f} {y + 3:.1f}l10 -6M{x - 5:.1f} {y + 8:.1f}l10 -6")


def draw_line(x1: float, y1: float, x2: float, y2: float, cls: str) -> Html:
    return draw_shape("line", cls, x1=x1, y1=y1, x2=x2, y2=y2)


def draw_text(x: float, y: float, words: str, anchor: str = "start", cls: str = "") -> Html:
    return draw_shape("text", cls, words, x=x, y=y, text_anchor=anchor)


def draw_shape(name: str, cls: str, *inside: Html | str, **places: float | str) -> Html:
    """Build an element of SVG, its places rounded to a tenth of a pixel."""
    texts = {key: place if isinstance(place, str) else f"{round(place, 1):g}" for key, place in places.items()}
    return tag(name, *inside, cls=cls or None, **texts)


WIDTH, NAME, HEIGHT = 40, 28, 10
EIGHTHS = " ▁▂▃▄▅▆▇█"


def chart_lines(chart: Chart, width: int = 100) -> Iterator[str]:
    """Yield the title of a chart, its drawing, and its notes. width: characters of a line of notes."""
    yield chart.title
    match chart.kind:
        case "bar" | "span" | "steps":
            yield from bar_chart_lines(chart)
        case "line":
            yield from line_chart_lines(chart)
        case "points":
            yield from point_chart_lines(chart)
    yield from (
        f"  {line}" for note in list_notes(chart) for line in wrap(clean_for_terminal(note), max(width - 4, 20))
    )


def bar_chart_lines(chart: Chart) -> Iterator[str]:
    """Yield a line for each bar, or point; to the left of | they are below 0."""
    rows = [(chart.series[at].name, mark) for row in rows_of_bars(chart) for at, mark in row]
    several = max(map(len, rows_of_bars(chart))) > 1
    labels = [f"{mark.label} {series}" if several else mark.label for series, mark in rows]
    words = [chart.format_mark(mark) for _, mark in rows]
    name = min(NAME, max(map(len, labels)))
    # Numbers end below each other; ranges and notes differ in length, and need room.
    has_words = any(mark.note or mark.low is not None for _, mark in rows)
    digits, width = (0, WIDTH // 2) if has_words else (max(map(len, words)), WIDTH)
    for label, words_of_mark, (_, mark) in zip(labels, words, rows, strict=True):
        yield f"  {clean_one_line(label, name):<{name}} {bar_cells(chart, mark, width)} {words_of_mark:>{digits}}"
    low, high, _ = axis_range(chart.values(), chart.y)
    ends = "" if chart.y.zero else f", {chart.y.format(low)} to {chart.y.format(high)}"
    yield f"  {'':<{name}} {chart.y.title}{ends}"


def bar_cells(chart: Chart, mark: ChartMark, width: int) -> str:
    """Draw a bar, a span, or a point with its range, in the room of all of them."""
    values = chart.values()
    low, high, _ = axis_range(values, chart.y)
    if chart.y.zero:
        low, high = min(0.0, *values), max(0.0, *values)
    scale = LinearScale(low, high, 0, width)
    value, cells = mark.y or 0.0, [" "] * width
    is_point = chart.kind == "bar" and not chart.y.zero
    ends = (mark.low, mark.high) if chart.kind in SPANS or is_point else (0.0, value)
    start, end = sorted(round(scale(value if end is None else end)) for end in ends)
    # However small it is, a bar that is not 0 is seen.
    if start == end and (value or chart.kind in SPANS):
        start, end = (start - 1, end) if value < 0 or end == width else (start, end + 1)
    cells[start:end] = ("─" if is_point else "█") * (end - start)
    if is_point:
        cells[min(round(scale(value)), width - 1)] = "•"
    if low < 0 < high:
        cells.insert(round(scale(0.0)), "|")
    return "".join(cells)


def line_chart_lines(chart: Chart) -> Iterator[str]:
    """Yield one row for each series, from its first to its last value, all on one scale."""
    values = [value for _, _, value in chart.marks()]
    low, high = (min(0.0, *values), max(0.0, *values)) if chart.y.zero else (min(values), max(values))
    marks = sorted((mark for _, mark, _ in chart.marks()), key=lambda mark: mark.x)
    # No more columns than places: empty ones between would look like gaps.
    columns = min(WIDTH, len({mark.x for mark in marks}))
    scale = LinearScale(marks[0].x, marks[-1].x, 0, columns - 1)
    name = max(1, min(NAME, max(len(series.name) for series in chart.series)))
    for series in chart.series:
        cells: list[list[float]] = [[] for _ in range(columns)]
        for mark in series.marks:
            if mark.y is not None:
                cells[round(scale(mark.x))].append(mark.y)
        # Each column is the mean of the marks in it.
        drawn = "".join(
            EIGHTHS[1 + round(7 * (sum(cell) / len(cell) - low) / (high - low or 1.0))] if cell else " "
            for cell in cells
        )
        if ends := [chart.y.format(mark.y) for mark in series.marks if mark.y is not None]:
            yield f"  {clean_one_line(series.name, name):<{name}} {drawn} {ends[0]} to {ends[-1]}"
    across = f"{chart.x.title} {marks[0].label} to {marks[-1].label}"
    up = f"{chart.y.title} {chart.y.format(min(values))} to {chart.y.format(max(values))}"
    yield f"  {'':<{name}} {across}; {up}"


def point_chart_lines(chart: Chart) -> Iterator[str]:
    """Yield the rows of a grid; a number says how many points are at one place."""
    xs, ys = [mark.x for _, mark, _ in chart.marks()], [value for _, _, value in chart.marks()]
    across = LinearScale(min(xs), max(xs), 0, WIDTH - 1)
    down = LinearScale(min(ys), max(ys), HEIGHT - 1, 0)
    grid = [[0] * WIDTH for _ in range(HEIGHT)]
    for x, y in zip(xs, ys, strict=True):
        grid[round(down(y))][round(across(x))] += 1
    yield f"  {chart.y.title}, {chart.y.format(min(ys))} to {chart.y.format(max(ys))}"
    for cells in grid:
        yield "  |" + "".join(" " if not cell else "•" if cell == 1 else str(min(cell, 9)) for cell in cells).rstrip()
    yield f"  +{'-' * WIDTH} {chart.x.title}, {chart.x.format(min(xs))} to {chart.x.format(max(xs))}"
