"""A chart laid out at a width: shapes, lines and texts with their places, and what of it leads to a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import east_asian_width

from decisor.render.svg import Scale, round_steps
from decisor.render.text import number, one_line
from decisor.story.answer_charts.chart import Axis, Chart, Mark, Series, words
from decisor.story.answer_charts.moments import ticks

WIDTHS = (680, 340)
"""Pixels: for a screen, and for a phone."""
LETTER = 6.9
"""Pixels of a letter, about."""
LINE, ROW, PLOT = 18, 24, 240
MOST_DOTS, MOST_LINKS = 120, 400
MOST_LABELS = 12
SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class Shape:
    """An element of SVG. ``kind`` is its class, ``text`` what stands in it."""

    tag: str
    kind: str
    at: Mapping[str, float | str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A place that leads to a record and says what stands there."""

    record: str
    title: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Layout:
    width: float
    height: float
    shapes: tuple[Shape, ...]
    links: tuple[Link, ...]


def layout(chart: Chart, width: int) -> Layout:
    return bars(chart, width) if chart.kind == "bar" else plot(chart, width)


def layouts(chart: Chart) -> tuple[Layout, ...]:
    return tuple(layout(chart, width) for width in WIDTHS)


def bars(chart: Chart, width: int) -> Layout:
    """Names to the left, values to the right, a line at 0 where there are values on both sides."""
    marks = list(chart.marks())
    values = [value for _, _, value in marks]
    texts = [number(value) for value in values]
    right = width - 8 - LETTER * max(map(len, texts))
    room = max(long(mark.label) for _, mark, _ in marks) + 12
    left = min(room, (0.36 if width > 500 else 0.4) * width)
    scale = Scale(min(0.0, *values), max(0.0, *values), left, max(right - 8, left + 40))
    shapes = [text(left, 14, chart.y.title, "start", "soft")]
    links = []
    for row, ((series, mark, value), words_of_value) in enumerate(zip(marks, texts, strict=True)):
        top = 24 + ROW * row
        start, end = sorted((scale(0.0), scale(value)))
        bar = {"x": start, "y": top + 3.0, "width": max(end - start, 1.0), "height": ROW - 7.0}
        shapes.append(text(left - 8, top + 16, fitting(mark.label, left - 8), "end"))
        shapes.append(Shape("rect", "s0" if value >= 0 else "s3", {**bar, "rx": 2.0}))
        shapes.append(text(width - 4, top + 16, words_of_value, "end", "value"))
        whole = Shape("rect", "hit", {"x": 0.0, "y": float(top), "width": float(width), "height": float(ROW)})
        links.append(Link(mark.record, words(series, mark, value), whole))
    bottom = 24 + ROW * len(marks)
    shapes.append(line(scale(0.0), 22, scale(0.0), bottom, "zero"))
    return rounded(width, bottom + 6, shapes, links)


def plot(chart: Chart, width: int) -> Layout:
    """Lines or points, in a frame with round numbers."""
    legend, top = legend_of(chart, width)
    marks = list(chart.marks())
    low, high, steps = ends([value for _, _, value in marks], chart.y)
    left = 14 + LETTER * max(len(number(step)) for step in steps)
    y = Scale(low, high, top + LINE + 8 + PLOT, top + LINE + 8)
    places = [mark.x for _, mark, _ in marks]
    first, last = (
        (min(places), max(places)) if chart.x.scale == "time" or chart.kind == "line" else ends(places, chart.x)[:2]
    )
    x = Scale(first, last, left + 6, width - 14)
    shapes = [*legend, text(4, top + 14, chart.y.title, "start", "soft")]
    for step in steps:
        shapes += [line(left, y(step), width - 8, y(step), "zero" if step == 0 else "grid"),
                   text(left - 6, y(step) + 4, number(step), "end", "soft")]  # fmt: skip
    shapes += below(chart.x, x, y.start, width)
    links: list[Link] = []
    dots, size = (True, 4.5) if chart.kind == "points" else (len(marks) <= MOST_DOTS, 3.2)
    for at, series in enumerate(chart.series):
        if chart.kind == "line":
            shapes += [Shape("path", f"s{at} run", {"d": path}) for path in paths(series, x, y)]
        for mark in series.marks:
            if mark.y is not None:
                shapes += [dot(at, x(mark.x), y(mark.y), size)] if dots else []
                links.append(Link(mark.record, words(series, mark, mark.y), hit(x(mark.x), y(mark.y))))
    if chart.kind == "points":
        shapes += labels([mark for _, mark, _ in marks], x, y, width)
    return rounded(width, y.start + 44, shapes, links if len(links) <= MOST_LINKS else ())


def ends(values: Sequence[float], axis: Axis) -> tuple[float, float, list[float]]:
    """Of an axis, with the round numbers on it."""
    low, high = min(values), max(values)
    if axis.zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 1.0, high + 1.0
    steps = round_steps(low, high, 5)
    return steps[0], steps[-1], steps


def below(axis: Axis, x: Scale, bottom: float, width: int) -> Iterator[Shape]:
    """The marks of the axis across, as many as fit."""
    most = max(2, int((x.end - x.start) / (62 if axis.scale == "time" else 80)))
    if axis.scale == "time":
        places = ticks(x.low, x.high, most)
    else:
        whole = float(x.low).is_integer() and float(x.high).is_integer()
        steps = [step for step in round_steps(x.low, x.high, most) if x.low <= step <= x.high]
        places = [(step, number(step)) for step in steps if not whole or step == int(step) or axis.zero]
    end = -1e9
    for place, label in places:
        half = LETTER * len(label) / 2
        middle = min(max(x(place), half + 2), width - half - 2)
        yield line(x(place), bottom, x(place), bottom + 4, "grid")
        if middle - half > end:
            yield text(middle, bottom + 18, label, "middle", "soft")
            end = middle + half + 6
    yield text((x.start + x.end) / 2, bottom + 36, axis.title, "middle", "soft")


def legend_of(chart: Chart, width: int) -> tuple[list[Shape], float]:
    """The name of each series beside its mark, in lines; and how far down they reach."""
    if len(chart.series) < 2:
        return [], 0.0
    shapes: list[Shape] = []
    x, y = 4.0, 0.0
    for at, series in enumerate(chart.series):
        name = one_line(series.name, 28)
        room = 30 + long(name)
        if x > 4 and x + room > width:
            x, y = 4.0, y + LINE
        shapes += [dot(at, x + 6, y + 10, 5), text(x + 17, y + 14, name, "start")]
        x += room
    return shapes, y + LINE + 8


def paths(series: Series, x: Scale, y: Scale) -> Iterator[str]:
    """A line through the marks, broken where a cell is empty."""
    parts: list[str] = []
    for mark in series.marks:
        if mark.y is not None:
            parts.append(f"{'L' if parts else 'M'}{x(mark.x):.1f} {y(mark.y):.1f}")
        elif parts:
            yield "".join(parts)
            parts = []
    if parts:
        yield "".join(parts)


def labels(marks: Sequence[Mark], x: Scale, y: Scale, width: int) -> Iterator[Shape]:
    """The names of points, of those that stand on no other name and no other point."""
    rooms = [(x(mark.x) - 5, x(mark.x) + 5, y(mark.y or 0.0)) for mark in marks]
    for mark in marks if len(marks) <= MOST_LABELS else ():
        name = one_line(mark.label, 24)
        room, place, height = long(name), x(mark.x), y(mark.y or 0.0)
        start = place - 9 - room if place + 9 + room > width else place + 9
        if all(abs(height - other) > 13 or start > end or start + room < begin for begin, end, other in rooms):
            rooms.append((start, start + room, height))
            yield text(start, height + 4, name, "start")


def long(words: str) -> float:
    """Pixels, about; some scripts have letters twice as wide.

    >>> round(long("Tea")), round(long("\u8336"))
    (21, 14)
    """
    return LETTER * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in words)


def fitting(words: str, room: float) -> str:
    """As much of it as there is room for."""
    text = one_line(words, int(room / LETTER))
    while len(text) > 1 and long(text) > room:
        text = f"{text[:-2]}…"
    return text


def dot(series: int, x: float, y: float, size: float) -> Shape:
    """A series' own mark, so that colour is never all that tells two apart."""
    kind, name = f"s{series} dot", SHAPES[series % len(SHAPES)]
    if name == "circle":
        return Shape("circle", kind, {"cx": x, "cy": y, "r": size})
    corners = {
        "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
        "diamond": ((0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)),
        "triangle": ((0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    }[name]
    return Shape("polygon", kind, {"points": " ".join(f"{x + size * a:.1f},{y + size * b:.1f}" for a, b in corners)})


def hit(x: float, y: float) -> Shape:
    """Around a mark, large enough for a finger."""
    return Shape("circle", "hit", {"cx": x, "cy": y, "r": 9.0})


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Shape:
    return Shape("line", kind, {"x1": x1, "y1": y1, "x2": x2, "y2": y2})


def text(x: float, y: float, words: str, anchor: str, kind: str = "") -> Shape:
    return Shape("text", kind, {"x": x, "y": y, "text-anchor": anchor}, words)


def rounded(width: float, height: float, shapes: Sequence[Shape], links: Sequence[Link]) -> Layout:
    """Places to a tenth of a pixel."""
    return Layout(width, round(height, 1), tuple(map(to_tenths, shapes)),
                  tuple(Link(one.record, one.title, to_tenths(one.shape)) for one in links))  # fmt: skip


def to_tenths(shape: Shape) -> Shape:
    at = {name: value if isinstance(value, str) else round(value, 1) for name, value in shape.at.items()}
    return Shape(shape.tag, shape.kind, at, shape.text)
