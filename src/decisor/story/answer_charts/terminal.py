"""A chart of an answer in text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisor.render.text import number, one_line
from decisor.story.answer_charts.chart import Chart, Mark

WIDTH, NAME, HEIGHT = 40, 28, 10
EIGHTHS = " ▁▂▃▄▅▆▇█"


def chart_lines(chart: Chart) -> Iterator[str]:
    """The title, the drawing, what is not drawn."""
    yield chart.title
    match chart.kind:
        case "bar":
            yield from bars(chart)
        case "line":
            yield from lines(chart)
        case "points":
            yield from points(chart)
    yield from (f"  {note}" for note in chart.notes)


def bars(chart: Chart) -> Iterator[str]:
    """Bars to the left of | are below 0."""
    marks = list(chart.marks())
    values = [value for _, _, value in marks]
    low, high = min(0.0, *values), max(0.0, *values)
    scale = WIDTH / (high - low or 1.0)
    below, above = round(-low * scale), round(high * scale)
    name = min(NAME, max(len(mark.label) for _, mark, _ in marks))
    digits = max(len(number(value)) for value in values)
    for _, mark, value in marks:
        bar = "█" * (round(abs(value) * scale) or (1 if value else 0))
        left = f"{bar if value < 0 else '':>{below}}|" if low < 0 else ""
        right = f"{bar if value > 0 else '':<{above}} {number(value):>{digits}}"
        yield f"  {one_line(mark.label, name):<{name}} {left}{right}"
    yield f"  {'':<{name}} {chart.y.title}"


def lines(chart: Chart) -> Iterator[str]:
    """One row a series, from its first to its last value, all on one scale."""
    values = [value for _, _, value in chart.marks()]
    low, high = (min(0.0, *values), max(0.0, *values)) if chart.y.zero else (min(values), max(values))
    places = [mark.x for _, mark, _ in chart.marks()]
    start, end, many = min(places), max(places), min(WIDTH, len(set(places)))
    name = min(NAME, max(len(one.name) for one in chart.series))
    for one in chart.series:
        cells = columns(one.marks, start, end, many)
        drawn = "".join(
            " " if cell is None else EIGHTHS[1 + round(7 * (cell - low) / (high - low or 1.0))] for cell in cells
        )
        if ends := [number(mark.y) for mark in one.marks if mark.y is not None]:
            yield f"  {one_line(one.name, max(name, 1)):<{name}} {drawn} {ends[0]} to {ends[-1]}"
    first, last = (min(chart.marks(), key=lambda each: each[1].x), max(chart.marks(), key=lambda each: each[1].x))
    across = f"{chart.x.title} {first[1].label} to {last[1].label}"
    yield f"  {'':<{name}} {across}; {chart.y.title} {number(min(values))} to {number(max(values))}"


def columns(marks: Sequence[Mark], start: float, end: float, many: int) -> list[float | None]:
    """So many values, from left to right: each the mean of the marks there, None where there is none."""
    cells: list[list[float]] = [[] for _ in range(many)]
    for mark in marks:
        if mark.y is not None:
            cells[round((mark.x - start) / (end - start or 1.0) * (many - 1))].append(mark.y)
    return [sum(cell) / len(cell) if cell else None for cell in cells]


def points(chart: Chart) -> Iterator[str]:
    """A grid; a number says how many points stand at one place."""
    marks = list(chart.marks())
    xs, ys = [mark.x for _, mark, _ in marks], [value for _, _, value in marks]
    grid = [[0] * WIDTH for _ in range(HEIGHT)]
    for x, y in zip(xs, ys, strict=True):
        column = round((x - min(xs)) / (max(xs) - min(xs) or 1.0) * (WIDTH - 1))
        row = round((y - min(ys)) / (max(ys) - min(ys) or 1.0) * (HEIGHT - 1))
        grid[HEIGHT - 1 - row][column] += 1
    yield f"  {chart.y.title}, {number(min(ys))} to {number(max(ys))}"
    for cells in grid:
        yield "  |" + "".join(" " if not cell else "•" if cell == 1 else str(min(cell, 9)) for cell in cells).rstrip()
    yield f"  +{'-' * WIDTH} {chart.x.title}, {number(min(xs))} to {number(max(xs))}"
