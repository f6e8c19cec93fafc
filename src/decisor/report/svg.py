"""Charts as inline SVG. Colours come from the page's style by class: ``s0`` to ``s7``, ``pub`` for what was published.

A chart is drawn 520 wide and scales with the page; each mark has a title that a pointer, or a screen reader, finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from decisor.render.markup import Html, tag
from decisor.render.svg import Scale, box, caption, line, round_steps, series_class, shape, strip
from decisor.report.charts import Chart, Mark, Series
from decisor.report.formatting import percent, short
from decisor.statistics.estimates import Interval

WIDTH, HEIGHT = 520.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 12.0, 50.0
TICKS = {0.25: 0.05, 0.5: 0.1, 0.75: 0.25, 1.0: 0.25}
"""Height of an axis of shares, and the distance of its lines."""
WIDEST = 0.4
"""Bands whose intervals are wider on average hide the lines: they are left to the table of figures."""


def draw(chart: Chart, style: Callable[[Series], int | None]) -> Html:
    """The SVG of a line, scatter or bar chart; ``style`` gives each series its number, None what was published."""
    top = _ceiling(mark.interval.high if mark.interval else mark.y for one in chart.series for mark in one.marks)
    y = Scale(0.0, top, HEIGHT - BOTTOM, TOP)
    body = _bars(chart, style, y) if chart.kind == "bars" else _plane(chart, style, y)
    grid = "".join(
        line(LEFT, y(at), WIDTH - RIGHT, y(at), "axis" if not at else "grid")
        + caption(LEFT - 7, y(at) + 4, percent(at), "end")
        for at in round_steps(0.0, top, round(top / TICKS[top]))
    )
    label = f"{chart.title}. {chart.note}".strip()
    return tag("svg", Html(grid + body), cls="plot", viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=label)


def _plane(chart: Chart, style: Callable[[Series], int | None], y: Scale) -> str:
    """Marks at their places; in a line chart joined, with a band of their intervals."""
    places = sorted({mark.x for one in chart.series for mark in one.marks})
    floor = 0.0 if chart.kind == "scatter" or places[0] < 0.3 * places[-1] else places[0]
    last = round_steps(floor, places[-1], 6)[-1] if chart.kind == "scatter" else places[-1]
    x = Scale(floor, max(last, floor + 1e-9), LEFT + 14, WIDTH - RIGHT - 14)
    whole = len(places) <= 9 and all(place == int(place) for place in places)
    ticks = places if whole and chart.kind == "line" else round_steps(floor, max(last, floor + 1e-9), 6)
    parts = [caption(x(at), HEIGHT - BOTTOM + 19, short(at), "middle") for at in ticks if at <= x.high * 1.0001]
    parts.append(caption((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, chart.x_label, "middle", "label"))
    is_line = chart.kind == "line"
    if is_line and len(chart.series) <= 4:
        parts += [_band(one, style(one), x, y) for one in chart.series]
    for one in chart.series:
        kind = style(one)
        if is_line:
            points = " ".join(f"{x(mark.x):.1f},{y(mark.y):.1f}" for mark in one.marks)
            parts.append(f'<polyline class="{series_class(kind)} join" points="{points}"/>')
        whiskers = not is_line or (len(chart.series) <= 4 and len(one.marks) == 1)
        parts += [_mark(one, mark, kind, x(mark.x), y, whiskers, chart) for mark in one.marks]
    return "".join(parts)


def _bars(chart: Chart, style: Callable[[Series], int | None], y: Scale) -> str:
    """Groups by the marks' labels, a bar for each series that has one there."""
    marks = sorted((mark.x, mark.label) for one in chart.series for mark in one.marks)
    groups = list(dict.fromkeys(label for _, label in marks))
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    width = min(34.0, 0.74 * room / max(1, len(chart.series)))
    parts = []
    for at, group in enumerate(groups):
        middle = LEFT + (at + 0.5) * room
        parts.append(caption(middle, HEIGHT - BOTTOM + 19, group, "middle"))
        bars = [(one, mark) for one in chart.series for mark in one.marks if mark.label == group]
        for place, (one, mark) in enumerate(bars):
            left = middle + (place - len(bars) / 2) * width
            parts.append(_bar(one, mark, style(one), left, width, y, chart))
    return "".join(parts)


def _bar(one: Series, mark: Mark, kind: int | None, left: float, width: float, y: Scale, chart: Chart) -> str:
    top, middle = y(mark.y), left + width / 2
    box = (f'<rect class="{series_class(kind)} bar" x="{left + 1:.1f}" y="{top:.1f}" width="{width - 2:.1f}" '
           f'height="{max(0.8, y.start - top):.1f}" rx="2"/>')  # fmt: skip
    return f"<g>{title(one, mark, chart)}{box}{_whisker(mark.interval, 'dark', middle, y)}</g>"


def _mark(one: Series, mark: Mark, kind: int | None, at: float, y: Scale, whiskers: bool, chart: Chart) -> str:
    whisker = _whisker(mark.interval, series_class(kind), at, y) if whiskers else ""
    return f"<g>{title(one, mark, chart)}{whisker}{shape(kind, at, y(mark.y))}</g>"


def _whisker(interval: Interval | None, kind: str, at: float, y: Scale) -> str:
    if interval is None:
        return ""
    low, high = y(max(0.0, interval.low)), y(min(y.high, interval.high))
    ends = f"M{at - 4:.1f} {low:.1f}h8M{at - 4:.1f} {high:.1f}h8"
    return f'<path class="{kind} whisker" d="M{at:.1f} {low:.1f}V{high:.1f}{ends}"/>'


def _band(one: Series, kind: int | None, x: Scale, y: Scale) -> str:
    intervals = [(mark, mark.interval) for mark in one.marks if mark.interval]
    if len(intervals) < 2 or sum(interval.high - interval.low for _, interval in intervals) > WIDEST * len(intervals):
        return ""
    up = [f"{x(mark.x):.1f},{y(min(y.high, interval.high)):.1f}" for mark, interval in intervals]
    down = [f"{x(mark.x):.1f},{y(max(0.0, interval.low)):.1f}" for mark, interval in reversed(intervals)]
    return f'<polygon class="{series_class(kind)} band" points="{" ".join(up + down)}"/>'


def state_swatch(state: str) -> Html:
    box = tag("rect", cls=f"state-{state}", x=2, y=2, width=10, height=10, rx=2)
    return tag("svg", box, cls="swatch", viewBox="0 0 14 14", aria_hidden="true")


def whisker_row(share: float, interval: Interval | None, kind: int | None, words: str) -> Html:
    """A line of the table of results, 0 to 100 % wide: the interval as a bar, the figure as a tick across it."""
    low, high = (interval.low, interval.high) if interval else (share, share)
    return strip(
        "forest", words, tag("path", cls="grid", d="M0 0V10M25 0V10M50 0V10M75 0V10M100 0V10"),
        box(f"{series_class(kind)} span", 100 * low, max(0.3, 100 * (high - low)), 3, 4),
        box(f"{series_class(kind)} tick", max(0.0, 100 * share - 0.35), 0.7, 0.6, 8.8),
    )  # fmt: skip


def published_row(shares: Sequence[float], words: str) -> Html:
    """Published figures on the same axis."""
    return strip("forest", words, tag("path", cls="grid", d="M0 0V10M25 0V10M50 0V10M75 0V10M100 0V10"),
                  *(box("pub tick", 100 * share - 0.4, 0.8, 1, 8) for share in shares))  # fmt: skip


def effect(difference: float, interval: Interval, reach: float, words: str) -> Html:
    """A difference and its interval on a line from -``reach`` to ``reach``."""
    low, at, high = (50 + 50 * value / reach for value in (interval.low, difference, interval.high))
    return strip(
        "effect", words, tag("path", cls="zero", d="M50 0V10"), box("s0 span", low, max(0.4, high - low), 3.4, 3.2),
        box("s0 tick", at - 0.5, 1.0, 1, 8),
    )  # fmt: skip


def stack(parts: Sequence[tuple[str, int]], words: str) -> Html:
    """Shares of a whole side by side; each part's name is its class."""
    total, at, boxes = sum(many for _, many in parts), 0.0, []
    for name, many in parts:
        width = 100 * many / total if total else 0.0
        boxes += [box(f"state-{name}", at, width, 0, 10)] if many else []
        at += width
    return strip("stack", words, *boxes)


def title(one: Series, mark: Mark, chart: Chart) -> str:
    place = mark.label if mark.label and mark.label != one.name else f"{short(mark.x)} {chart.x_label}".strip()
    words = [f"{one.name}: {percent(mark.y, 1)}", f"at {place}" if place != one.name else ""]
    if mark.interval:
        words.append(f"(95 %: {percent(mark.interval.low, 1)} to {percent(mark.interval.high, 1)})")
    if mark.of:
        words.append(f"of {mark.of}")
    if one.published:
        words.append(f"published: {one.note}")
    return f"<title>{escape(' '.join(word for word in words if word))}</title>"


def _ceiling(shares: Iterable[float]) -> float:
    """The top of an axis of shares: a quarter, a half, three quarters or all."""
    most = max([share for share in shares if math.isfinite(share)], default=1.0)
    return next((top for top in TICKS if most <= top), 1.0)
