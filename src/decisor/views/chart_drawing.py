"""The chart of an answer, drawn as SVG on a page and as text on a terminal.

A layout has shapes, lines and texts with their places, and links to records. The HTML holds a drawing for wide and one
for narrow screens, the notes, and the Vega-Lite specification to take along. Which chart fits is decided in
``charts``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import east_asian_width

from decisor.system.text import clean_one_line, format_number
from decisor.views.charts import AnswerChart, Axis, ChartMark, ChartSeries, describe_mark, time_ticks
from decisor.views.links import row_anchor
from decisor.views.markup import Html, Scale, join, round_steps, tag

WIDTHS = (680, 340)
"""Pixels: for a screen, and for a phone."""
LETTER = 6.9
"""Pixels of a letter, about."""
LINE, ROW, PLOT = 18, 24, 240
MOST_DOTS, MOST_LINKS = 120, 400
MOST_LABELS = 12
SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class SvgShape:
    """An element of SVG."""

    tag: str
    kind: str
    """Its class."""
    at: Mapping[str, float | str] = field(default_factory=dict)
    """Its attributes."""
    text: str = ""
    """The text in it."""


@dataclass(frozen=True, slots=True)
class ChartLink:
    """A place in a chart that leads to a record."""

    record: str
    title: str
    """Words of the mark there."""
    shape: SvgShape


@dataclass(frozen=True, slots=True)
class Layout:
    width: float
    height: float
    shapes: tuple[SvgShape, ...]
    links: tuple[ChartLink, ...]


def layout_chart(chart: AnswerChart, width: int) -> Layout:
    return layout_bars(chart, width) if chart.kind == "bar" else layout_plot(chart, width)


def layout_all_widths(chart: AnswerChart) -> tuple[Layout, ...]:
    return tuple(layout_chart(chart, width) for width in WIDTHS)


def layout_bars(chart: AnswerChart, width: int) -> Layout:
    """Lay out bars: names to the left, values to the right. There is a line at 0."""
    marks = list(chart.marks())
    values = [value for _, _, value in marks]
    texts = [format_number(value) for value in values]
    right = width - 8 - LETTER * max(map(len, texts))
    room = max(text_width(mark.label) for _, mark, _ in marks) + 12
    left = min(room, (0.36 if width > 500 else 0.4) * width)
    scale = Scale(min(0.0, *values), max(0.0, *values), left, max(right - 8, left + 40))
    shapes = [text_shape(left, 14, chart.y.title, "start", "soft")]
    links = []
    for row, ((series, mark, value), words_of_value) in enumerate(zip(marks, texts, strict=True)):
        top = 24 + ROW * row
        start, end = sorted((scale(0.0), scale(value)))
        bar = {"x": start, "y": top + 3.0, "width": max(end - start, 1.0), "height": ROW - 7.0}
        shapes.append(text_shape(left - 8, top + 16, fit_text(mark.label, left - 8), "end"))
        shapes.append(SvgShape("rect", "s0" if value >= 0 else "s3", {**bar, "rx": 2.0}))
        shapes.append(text_shape(width - 4, top + 16, words_of_value, "end", "value"))
        whole = SvgShape("rect", "hit", {"x": 0.0, "y": float(top), "width": float(width), "height": float(ROW)})
        links.append(ChartLink(mark.record, describe_mark(series, mark, value), whole))
    bottom = 24 + ROW * len(marks)
    shapes.append(line_shape(scale(0.0), 22, scale(0.0), bottom, "zero"))
    return round_layout(width, bottom + 6, shapes, links)


def layout_plot(chart: AnswerChart, width: int) -> Layout:
    """Lay out lines or points, in a frame with round numbers."""
    legend, top = layout_legend(chart, width)
    marks = list(chart.marks())
    low, high, steps = axis_range([value for _, _, value in marks], chart.y)
    left = 14 + LETTER * max(len(format_number(step)) for step in steps)
    y = Scale(low, high, top + LINE + 8 + PLOT, top + LINE + 8)
    places = [mark.x for _, mark, _ in marks]
    first, last = (
        (min(places), max(places))
        if chart.x.scale == "time" or chart.kind == "line"
        else axis_range(places, chart.x)[:2]
    )
    x = Scale(first, last, left + 6, width - 14)
    shapes = [*legend, text_shape(4, top + 14, chart.y.title, "start", "soft")]
    for step in steps:
        shapes += [
            line_shape(left, y(step), width - 8, y(step), "zero" if step == 0 else "grid"),
            text_shape(left - 6, y(step) + 4, format_number(step), "end", "soft"),
        ]
    shapes += layout_x_axis(chart.x, x, y.start, width)
    links: list[ChartLink] = []
    # Many dots on a line run into each other; links stay, as they are not seen.
    dots, size = (True, 4.5) if chart.kind == "points" else (len(marks) <= MOST_DOTS, 3.2)
    for at, series in enumerate(chart.series):
        if chart.kind == "line":
            shapes += [SvgShape("path", f"s{at} run", {"d": path}) for path in line_paths(series, x, y)]
        for mark in series.marks:
            if mark.y is not None:
                shapes += [mark_shape(at, x(mark.x), y(mark.y), size)] if dots else []
                links.append(
                    ChartLink(mark.record, describe_mark(series, mark, mark.y), hit_area(x(mark.x), y(mark.y)))
                )
    if chart.kind == "points":
        shapes += layout_labels([mark for _, mark, _ in marks], x, y, width)
    return round_layout(width, y.start + 44, shapes, links if len(links) <= MOST_LINKS else ())


def axis_range(values: Sequence[float], axis: Axis) -> tuple[float, float, list[float]]:
    """Return the ends of an axis, with the round numbers on it."""
    low, high = min(values), max(values)
    if axis.zero:
        low, high = min(low, 0.0), max(high, 0.0)
    # A scale of no length would divide by zero.
    if low == high:
        low, high = low - 1.0, high + 1.0
    steps = round_steps(low, high, 5)
    return steps[0], steps[-1], steps


def layout_x_axis(axis: Axis, x: Scale, bottom: float, width: int) -> Iterator[SvgShape]:
    """Yield the ticks of the axis across, with as many labels as fit, and its title."""
    most = max(2, int((x.end - x.start) / (62 if axis.scale == "time" else 80)))
    if axis.scale == "time":
        places = time_ticks(x.low, x.high, most)
    else:
        whole = float(x.low).is_integer() and float(x.high).is_integer()
        steps = [step for step in round_steps(x.low, x.high, most) if x.low <= step <= x.high]
        places = [(step, format_number(step)) for step in steps if not whole or step == int(step) or axis.zero]
    end = -1e9
    for place, label in places:
        half = LETTER * len(label) / 2
        # A label at the edge is moved in, so that it is not cut off.
        middle = min(max(x(place), half + 2), width - half - 2)
        yield line_shape(x(place), bottom, x(place), bottom + 4, "grid")
        if middle - half > end:
            yield text_shape(middle, bottom + 18, label, "middle", "soft")
            end = middle + half + 6
    yield text_shape((x.start + x.end) / 2, bottom + 36, axis.title, "middle", "soft")


def layout_legend(chart: AnswerChart, width: int) -> tuple[list[SvgShape], float]:
    """Return the name of each series beside its mark, in lines, and the height of these lines."""
    if len(chart.series) < 2:
        return [], 0.0
    shapes: list[SvgShape] = []
    x, y = 4.0, 0.0
    for at, series in enumerate(chart.series):
        name = clean_one_line(series.name, 28)
        room = 30 + text_width(name)
        if x > 4 and x + room > width:
            x, y = 4.0, y + LINE
        shapes += [mark_shape(at, x + 6, y + 10, 5), text_shape(x + 17, y + 14, name, "start")]
        x += room
    return shapes, y + LINE + 8


def line_paths(series: ChartSeries, x: Scale, y: Scale) -> Iterator[str]:
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


def layout_labels(marks: Sequence[ChartMark], x: Scale, y: Scale, width: int) -> Iterator[SvgShape]:
    """Yield the names of points that overlap no other name and no other point."""
    rooms = [(x(mark.x) - 5, x(mark.x) + 5, y(mark.y or 0.0)) for mark in marks]
    for mark in marks if len(marks) <= MOST_LABELS else ():
        name = clean_one_line(mark.label, 24)
        room, place, height = text_width(name), x(mark.x), y(mark.y or 0.0)
        # To the right of its point, or to the left where the drawing ends.
        start = place - 9 - room if place + 9 + room > width else place + 9
        if all(abs(height - other) > 13 or start > end or start + room < begin for begin, end, other in rooms):
            rooms.append((start, start + room, height))
            yield text_shape(start, height + 4, name, "start")


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


def mark_shape(series: int, x: float, y: float, size: float) -> SvgShape:
    """Return a series' own mark, so that colour is never the only thing that tells two apart."""
    kind, name = f"s{series} dot", SHAPES[series % len(SHAPES)]
    if name == "circle":
        return SvgShape("circle", kind, {"cx": x, "cy": y, "r": size})
    corners = {
        "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
        "diamond": ((0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)),
        "triangle": ((0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    }[name]
    return SvgShape("polygon", kind, {"points": " ".join(f"{x + size * a:.1f},{y + size * b:.1f}" for a, b in corners)})


def hit_area(x: float, y: float) -> SvgShape:
    """Return a circle around a mark, large enough for a finger."""
    return SvgShape("circle", "hit", {"cx": x, "cy": y, "r": 9.0})


def line_shape(x1: float, y1: float, x2: float, y2: float, kind: str) -> SvgShape:
    return SvgShape("line", kind, {"x1": x1, "y1": y1, "x2": x2, "y2": y2})


def text_shape(x: float, y: float, words: str, anchor: str, kind: str = "") -> SvgShape:
    return SvgShape("text", kind, {"x": x, "y": y, "text-anchor": anchor}, words)


def round_layout(width: float, height: float, shapes: Sequence[SvgShape], links: Sequence[ChartLink]) -> Layout:
    """Round all places of a layout to a tenth of a pixel."""
    return Layout(
        width,
        round(height, 1),
        tuple(map(to_tenths, shapes)),
        tuple(ChartLink(one.record, one.title, to_tenths(one.shape)) for one in links),
    )


def to_tenths(shape: SvgShape) -> SvgShape:
    at = {name: value if isinstance(value, str) else round(value, 1) for name, value in shape.at.items()}
    return SvgShape(shape.tag, shape.kind, at, shape.text)


def chart_html(chart: AnswerChart, records: frozenset[str]) -> Html:
    """Return a chart as HTML; a mark of one of the ``records`` leads to its row of the evidence.

    The table says the same to readers who do not see the drawing, so marks are no stops of the keyboard.
    """
    drawings = (
        layout_svg(chart, one, kind, records)
        for one, kind in zip(layout_all_widths(chart), ("wide", "narrow"), strict=True)
    )
    text = json.dumps(chart.vega_lite(), ensure_ascii=False)
    # A data address needs no server and no script.
    href = "data:application/json;base64," + base64.b64encode(text.encode()).decode()
    notes = [tag("p", note, cls="soft") for note in chart.notes]
    link = tag("p", tag("a", "Chart as Vega-Lite", href=href, download="chart.vl.json"), cls="soft")
    return join(tag("h2", chart.title), tag("div", *drawings, cls="answer-chart"), *notes, link)


def layout_svg(chart: AnswerChart, drawing: Layout, kind: str, records: frozenset[str]) -> Html:
    words = f"{chart.title}. {chart.description}"
    picture = tag(
        "g",
        tag("title", chart.title),
        tag("desc", chart.description),
        *map(shape_element, drawing.shapes),
        role="img",
        aria_label=words,
    )
    links = [
        tag("a", shape_element(one.shape, one.title), href=f"#{row_anchor(one.record)}", tabindex=-1)
        if one.record in records
        else shape_element(one.shape, one.title)
        for one in drawing.links
    ]
    box = f"0 0 {drawing.width:g} {drawing.height:g}"
    return tag("svg", picture, tag("g", *links, aria_hidden="true"), cls=kind, viewBox=box)


def shape_element(shape: SvgShape, title: str = "") -> Html:
    places = {name.replace("-", "_"): str(value) for name, value in shape.at.items()}
    return tag(shape.tag, tag("title", title) if title else None, shape.text or None, cls=shape.kind or None, **places)


WIDTH, NAME, HEIGHT = 40, 28, 10
EIGHTHS = " ▁▂▃▄▅▆▇█"


def chart_lines(chart: AnswerChart) -> Iterator[str]:
    """Yield the title of a chart, its drawing, and its notes on parts that are not drawn."""
    yield chart.title
    match chart.kind:
        case "bar":
            yield from bar_chart_lines(chart)
        case "line":
            yield from line_chart_lines(chart)
        case "points":
            yield from point_chart_lines(chart)
    yield from (f"  {note}" for note in chart.notes)


def bar_chart_lines(chart: AnswerChart) -> Iterator[str]:
    """Yield a line for each bar; bars to the left of | are below 0."""
    marks = list(chart.marks())
    values = [value for _, _, value in marks]
    low, high = min(0.0, *values), max(0.0, *values)
    scale = WIDTH / (high - low or 1.0)
    below, above = round(-low * scale), round(high * scale)
    name = min(NAME, max(len(mark.label) for _, mark, _ in marks))
    digits = max(len(format_number(value)) for value in values)
    for _, mark, value in marks:
        bar = "█" * (round(abs(value) * scale) or (1 if value else 0))
        left = f"{bar if value < 0 else '':>{below}}|" if low < 0 else ""
        right = f"{bar if value > 0 else '':<{above}} {format_number(value):>{digits}}"
        yield f"  {clean_one_line(mark.label, name):<{name}} {left}{right}"
    yield f"  {'':<{name}} {chart.y.title}"


def line_chart_lines(chart: AnswerChart) -> Iterator[str]:
    """Yield one row for each series, from its first to its last value, all on one scale."""
    values = [value for _, _, value in chart.marks()]
    low, high = (min(0.0, *values), max(0.0, *values)) if chart.y.zero else (min(values), max(values))
    places = [mark.x for _, mark, _ in chart.marks()]
    # No more columns than places: empty ones between would look like gaps.
    start, end, many = min(places), max(places), min(WIDTH, len(set(places)))
    name = min(NAME, max(len(one.name) for one in chart.series))
    for one in chart.series:
        cells = mean_of_columns(one.marks, start, end, many)
        drawn = "".join(
            " " if cell is None else EIGHTHS[1 + round(7 * (cell - low) / (high - low or 1.0))] for cell in cells
        )
        if ends := [format_number(mark.y) for mark in one.marks if mark.y is not None]:
            yield f"  {clean_one_line(one.name, max(name, 1)):<{name}} {drawn} {ends[0]} to {ends[-1]}"
    first, last = (min(chart.marks(), key=lambda each: each[1].x), max(chart.marks(), key=lambda each: each[1].x))
    across = f"{chart.x.title} {first[1].label} to {last[1].label}"
    yield f"  {'':<{name}} {across}; {chart.y.title} {format_number(min(values))} to {format_number(max(values))}"


def mean_of_columns(marks: Sequence[ChartMark], start: float, end: float, many: int) -> list[float | None]:
    """Return ``many`` values from left to right: the mean of the marks in each column.

    A column without marks is None.
    """
    cells: list[list[float]] = [[] for _ in range(many)]
    for mark in marks:
        if mark.y is not None:
            cells[round((mark.x - start) / (end - start or 1.0) * (many - 1))].append(mark.y)
    return [sum(cell) / len(cell) if cell else None for cell in cells]


def point_chart_lines(chart: AnswerChart) -> Iterator[str]:
    """Yield the rows of a grid; a number says how many points are at one place."""
    marks = list(chart.marks())
    xs, ys = [mark.x for _, mark, _ in marks], [value for _, _, value in marks]
    grid = [[0] * WIDTH for _ in range(HEIGHT)]
    for x, y in zip(xs, ys, strict=True):
        column = round((x - min(xs)) / (max(xs) - min(xs) or 1.0) * (WIDTH - 1))
        row = round((y - min(ys)) / (max(ys) - min(ys) or 1.0) * (HEIGHT - 1))
        grid[HEIGHT - 1 - row][column] += 1
    yield f"  {chart.y.title}, {format_number(min(ys))} to {format_number(max(ys))}"
    for cells in grid:
        yield "  |" + "".join(" " if not cell else "•" if cell == 1 else str(min(cell, 9)) for cell in cells).rstrip()
    yield f"  +{'-' * WIDTH} {chart.x.title}, {format_number(min(xs))} to {format_number(max(xs))}"
