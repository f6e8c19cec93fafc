"""The charts of a report: plain values, their drawing as inline SVG, and figures and names as words.

The values that are drawn are also the ones that ``--json`` gives. Shares are 0 to 1. Colours come from the page's
style by class: ``s0`` to ``s7``, ``pub`` for published figures. A chart is drawn 520 wide and scales with the page;
each mark has a title that a pointer, or a screen reader, finds. Words for figures and names are the same in every form
of a report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

from decisor.lab.benchmark import Outcome
from decisor.lab.curves import (
    CurvePoint,
    accuracy_by_count,
    accuracy_by_decile,
    accuracy_by_kind,
    choose_curve_limits,
    compute_budget_curve,
)
from decisor.lab.dqa.bench import KINDS, find_retrieval_kinds, retrieval_kind_of
from decisor.lab.papers import PublishedFigure, published_table
from decisor.lab.statistics import COUNTED, ComparedSide, Interval, SummaryRow, sides_of
from decisor.system.wording import plural
from decisor.views.markup import (
    Html,
    Scale,
    box_rect,
    caption_svg,
    line_svg,
    round_steps,
    series_class,
    series_mark,
    stretched_svg,
    tag,
)

if TYPE_CHECKING:
    from decisor.lab.evaluation.comparisons import Agreement, WinRate


Kind = Literal["forest", "line", "scatter", "bars"]
MOST_SERIES = 8


@dataclass(frozen=True, slots=True)
class ReportMark:
    """A figure in a chart."""

    x: float
    """Place on the axis; in a forest and in bars it only orders."""
    y: float
    label: str = ""
    interval: Interval | None = None
    of: int = 0
    """Number of outcomes."""


@dataclass(frozen=True, slots=True)
class ReportSeries:
    """The marks of one technique or of one published line."""

    name: str
    marks: tuple[ReportMark, ...]
    published: bool = False
    """Whether it is drawn separately, with its source in ``note``."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportChart:
    """A plot of a report as plain values."""

    id: str
    title: str
    kind: Kind
    x_label: str
    """Meaning of the axis across."""
    y_label: str
    """Meaning of the axis up."""
    series: tuple[ReportSeries, ...]
    note: str = ""
    """What a reader needs to read it correctly."""


def make_charts(
    benchmark: str,
    outcomes: Sequence[Outcome],
    rows: Sequence[SummaryRow],
    published: Sequence[PublishedFigure],
    label: Callable[[ComparedSide], str],
) -> tuple[ReportChart, ...]:
    """Return every plot for which the outcomes of one benchmark have data."""
    overall = [row for row in rows if not row.group and row.benchmark == benchmark]
    entries = [(label(ComparedSide(row.technique, row.model)), row) for row in overall]
    sides = sides_of(outcomes, benchmark)
    parts = {label(side): sides[side] for side in (ComparedSide(row.technique, row.model) for row in overall)}
    curve = make_budget_chart(parts)
    cost = make_cost_chart("cost", "dollars a case", entries, _dollars)
    plots = [
        make_accuracy_chart(entries, published),
        # A curve over calls says more than the mean of calls, and dollars more than tokens; the others stand in for
        # them.
        curve or make_cost_chart("calls", "LLM calls a case", entries, lambda row: row.usage.calls / row.outcomes),
        cost or make_cost_chart("tokens", "tokens a case", entries, lambda row: row.usage.tokens / row.outcomes),
        make_cost_chart("critical", "seconds a case (critical path)", entries, lambda row: row.critical),
        make_count_chart(parts, "replans", "Accuracy by number of replans", "replans"),
        make_retrieval_kind_chart(parts, outcomes),
        make_count_chart(parts, "depth", "Accuracy by depth of the plan", "depth of the plan"),
        make_depth_chart(benchmark, parts),
        make_rating_chart(outcomes, entries, label),
        make_repeats_chart(entries),
    ]
    return tuple(chart for chart in plots if chart is not None)


def make_accuracy_chart(
    entries: Sequence[tuple[str, SummaryRow]], published: Sequence[PublishedFigure]
) -> ReportChart | None:
    """Make the chart of accuracy by technique with its interval, published accuracies below."""
    ours = [(name, row, row.accuracy) for name, row in entries if row.accuracy is not None]
    if not ours:
        return None
    series = [
        ReportSeries(name, (ReportMark(0, accuracy, name, row.interval, row.counted),)) for name, row, accuracy in ours
    ]
    ended = ("accuracy", "acc")
    theirs = [one for one in published if one.metric in ended]
    for one in theirs:
        where = f"{one.technique}, {one.group}" if one.group else one.technique
        series.append(ReportSeries(where, (ReportMark(0, one.value / 100, where),), True, one.source))
    note = "Published figures are diamonds: other models and settings." if theirs else ""
    return ReportChart(
        id="accuracy",
        title="Accuracy by technique",
        kind="forest",
        x_label="",
        y_label="accuracy",
        series=tuple(series),
        note=note,
    )


def make_budget_chart(parts: dict[str, list[Outcome]]) -> ReportChart | None:
    """Make the chart of accuracy if each run had been cut at a number of calls."""
    limits = choose_curve_limits(one for part in parts.values() for one in part)
    # One point is no curve.
    if len(limits) < 2:
        return None
    series = tuple(ReportSeries(name, _marks(compute_budget_curve(part, limits))) for name, part in parts.items())
    has_snapshots = any(one.snapshots for part in parts.values() for one in part)
    note = "A run counts with the answer it held at that many calls; " + (
        "between snapshots, with the last one."
        if has_snapshots
        else "no snapshots were kept, so with none before its end."
    )
    return ReportChart(
        id="budget",
        title="Accuracy against calls allowed",
        kind="line",
        x_label="LLM calls allowed",
        y_label="accuracy",
        series=series,
        note=note,
    )


def make_cost_chart(
    id: str, x_label: str, entries: Sequence[tuple[str, SummaryRow]], x: Callable[[SummaryRow], float | None]
) -> ReportChart | None:
    """Make the chart of each technique's accuracy against one of its costs.

    None if fewer than two techniques have both.
    """
    series = []
    for name, row in entries:
        at = x(row)
        if at is not None and row.accuracy is not None:
            series.append(ReportSeries(name, (ReportMark(at, row.accuracy, name, row.interval, row.counted),)))
    # One point, or all at cost 0, compares nothing.
    if len(series) < 2 or not any(one.marks[0].x for one in series):
        return None
    return ReportChart(
        id=id,
        title=f"Accuracy against {x_label}",
        kind="scatter",
        x_label=x_label,
        y_label="accuracy",
        series=tuple(series),
    )


def make_count_chart(parts: dict[str, list[Outcome]], count: str, title: str, x_label: str) -> ReportChart | None:
    series = [
        ReportSeries(name, marks) for name, part in parts.items() if (marks := _marks(accuracy_by_count(part, count)))
    ]
    values = {mark.x for one in series for mark in one.marks}
    return (
        ReportChart(id=count, title=title, kind="line", x_label=x_label, y_label="accuracy", series=tuple(series))
        if len(values) > 1
        else None
    )


def make_retrieval_kind_chart(parts: dict[str, list[Outcome]], outcomes: Sequence[Outcome]) -> ReportChart | None:
    """Make the chart of accuracy by retrieval kind. None unless IterRAG ran, because it sorts the questions."""
    by_question = find_retrieval_kinds(outcomes)
    series = [
        ReportSeries(name, marks)
        for name, part in parts.items()
        if (marks := _marks(accuracy_by_kind(part, KINDS, lambda one: retrieval_kind_of(one, by_question))))
    ]
    # Without IterRAG nobody knows which questions need one retrieval.
    if not by_question or not series:
        return None
    return ReportChart(
        id="sr-mr",
        title="Questions of one retrieval or several",
        kind="bars",
        x_label="",
        y_label="accuracy",
        series=tuple(series),
        note="SR: questions for which iter_rag made exactly one retrieval; MR: several.",
    )


def make_depth_chart(benchmark: str, parts: dict[str, list[Outcome]]) -> ReportChart | None:
    """Make the chart of plan depths, beside the published shares."""
    series = []
    for name, part in parts.items():
        levels = [min(4, one.counts["depth"]) for one in part if "depth" in one.counts and one.state in COUNTED]
        if levels:
            marks = tuple(
                ReportMark(at, levels.count(at) / len(levels), _depth(at), None, len(levels)) for at in range(5)
            )
            series.append(ReportSeries(name, marks))
    if not series:
        return None
    printed = published_table("qa_plan_depth")
    for line in printed.lines:
        if line.about == benchmark:
            marks = tuple(ReportMark(at, float(share) / 100, _depth(at)) for at, share in enumerate(line.cells[1:]))
            series.append(ReportSeries("reasoning_dag (Llama-3-8B)", marks, True, printed.source))
    note = "0: no plan; 1: parts side by side; 2 and more: parts that wait for each other."
    return ReportChart(
        id="depth-share",
        title="How deep plans are",
        kind="bars",
        x_label="",
        y_label="share of cases",
        series=tuple(series),
        note=note,
    )


def make_rating_chart(
    outcomes: Sequence[Outcome], entries: Sequence[tuple[str, SummaryRow]], label: Callable[[ComparedSide], str]
) -> ReportChart | None:
    """Make the chart of accuracy by tenths of the rating that a technique gave its own answers."""
    curves = accuracy_by_decile(outcomes, lambda one: label(ComparedSide(one.technique, one.model)))
    if not curves:
        return None
    raters = list(
        dict.fromkeys(label(ComparedSide(one.technique, one.model)) for one in outcomes if "elo" in one.metrics)
    )
    series = tuple(ReportSeries(name, _marks(curves[name])) for name, _ in entries if name in curves)
    note = (
        f"Cases in up to ten equal parts by the Elo that {' and '.join(raters)} gave the chosen answer, scaled to 0..1."
    )
    return ReportChart(
        id="elo",
        title="Accuracy by Elo of the answer",
        kind="line",
        x_label="scaled Elo",
        y_label="accuracy",
        series=series,
        note=note,
    )


def make_repeats_chart(entries: Sequence[tuple[str, SummaryRow]]) -> ReportChart | None:
    series = [
        ReportSeries(name, tuple(ReportMark(k, share) for k, share in row.repeats.pass_at.items()))
        for name, row in entries
        if row.repeats
    ]
    note = "The chance that one of k tries is right, estimated without bias from all tries."
    return (
        ReportChart(
            id="pass-at-k", title="pass@k", kind="line", x_label="k", y_label="pass@k", series=tuple(series), note=note
        )
        if series
        else None
    )


def _marks(points: Sequence[CurvePoint]) -> tuple[ReportMark, ...]:
    return tuple(ReportMark(point.at, point.share, point.label, point.interval, point.total) for point in points)


def _depth(at: int) -> str:
    return "4+" if at == 4 else str(at)


def _dollars(row: SummaryRow) -> float | None:
    return None if row.usage.dollars is None else row.usage.dollars / row.outcomes


SPACE = "\u202f"
"""A narrow space that does not break."""


def format_percent(share: float, digits: int = 0) -> str:
    """Format a share in percent, with a narrow space.

    >>> format_percent(0.1234, 1).replace(SPACE, " ")
    '12.3 %'
    """
    return f"{100 * share:.{digits}f}{SPACE}%"


def format_points(share: float) -> str:
    """Format a difference of shares in percentage points.

    >>> format_points(0.125), format_points(-0.02)
    ('+12.5', '−2.0')
    """
    return f"{100 * share:+.1f}".replace("-", "\u2212")


def format_probability(p: float) -> str:
    """Format a p-value with two digits.

    >>> format_probability(0.0312), format_probability(0.00001), format_probability(1.0)
    ('0.031', '<0.001', '1')
    """
    return "<0.001" if p < 0.001 else f"{p:.2g}"


def format_short_number(value: float) -> str:
    """Format a number in few characters.

    >>> (format_short_number(12.0), format_short_number(15300), format_short_number(2_400_000),
    ...     format_short_number(0.00123), format_short_number(9.97), format_short_number(99.9),
    ...     format_short_number(1234.5))
    ('12', '15.3k', '2.4M', '0.0012', '10', '99.9', '1,234')
    """
    for size, unit, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= size:
            return f"{value / unit:.3g}{letter}"
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2g}"


def format_money(dollars: float | None) -> str:
    """Format an amount in dollars; None means unknown.

    >>> format_money(None), format_money(0.0), format_money(0.00123), format_money(12.5)
    ('unknown', '$0', '$0.0012', '$12.50')
    """
    if dollars is None:
        return "unknown"
    return "$0" if not dollars else f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.2g}"


def spell_out_name(name: str) -> str:
    """Convert a name with underscores to words.

    >>> spell_out_name("over_budget")
    'over budget'
    """
    return name.replace("_", " ")


def format_number_of(many: int, what: str) -> str:
    """Format a number with its noun, in the plural unless it is one.

    >>> format_number_of(1, "case"), format_number_of(1200, "case")
    ('1 case', '1,200 cases')
    """
    return f"{many:,} {plural(many, what)}"


def describe_unmeasured(row: SummaryRow) -> str:
    """Describe the metrics that are no finite number in some outcomes, empty if there are none."""
    parts = [f"{spell_out_name(name)} in {format_number_of(many, 'outcome')}" for name, many in row.unmeasured.items()]
    return f"Left out of the mean, no finite number: {', '.join(parts)}." if parts else ""


def describe_auxiliary_costs(row: SummaryRow) -> list[str]:
    """Describe the mean costs of judge and simulator per outcome, empty if there were none."""
    parts = []
    for name, usage in row.beside.items():
        many, dollars = row.outcomes, None if usage.dollars is None else usage.dollars / row.outcomes
        calls = f"{format_short_number(usage.calls / many)} {'call' if usage.calls == many else 'calls'}"
        parts.append(f"{name} {calls}, {format_short_number(usage.tokens / many)} tokens, {format_money(dollars)}")
    return parts


def describe_agreement(agreement: Agreement) -> str:
    """Describe the agreement of rules and judge in a sentence."""
    if agreement.agreed is None:
        return f"{agreement.judge} was asked about {agreement.failures} failures; none of its replies could be read."
    kappa = "" if agreement.kappa is None else f" (Cohen’s kappa {agreement.kappa:.2f})"
    return (
        f"{agreement.judge} was asked about {agreement.failures} failures, {agreement.read} of its replies could "
        f"be read, and {format_percent(agreement.agreed)} of these name the class that the rules gave{kappa}."
    )


def describe_win_rate(one: WinRate) -> str:
    """Describe a win rate in a sentence."""
    rest = f"{one.wins.ties} ties, {one.wins.unread} not read"
    if one.wins.rate is None:
        cases = format_number_of(one.cases, "case")
        return f"{one.technique} against {one.over} on {one.benchmark}: no winner in {cases} ({rest})."
    decided = one.wins.wins + one.wins.losses
    return (
        f"{one.technique} wins over {one.over} on {one.benchmark} in {format_percent(one.wins.rate, 1)} of "
        f"{format_number_of(decided, 'case')} with a winner ({rest}), "
        f"judged by {one.judge} where both or neither passed."
    )


WIDTH, HEIGHT = 520.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 12.0, 50.0
TICKS = {0.25: 0.05, 0.5: 0.1, 0.75: 0.25, 1.0: 0.25}
"""Height of an axis of shares, and the distance of its lines."""
WIDEST = 0.4
"""Bands whose intervals are wider on average hide the lines: they are left to the table of figures."""


def draw_chart_svg(chart: ReportChart, style: Callable[[ReportSeries], int | None]) -> Html:
    """Draw a line, scatter or bar chart as SVG. style: returns the number of a series, None for published figures."""
    top = _axis_top(mark.interval.high if mark.interval else mark.y for one in chart.series for mark in one.marks)
    y = Scale(0.0, top, HEIGHT - BOTTOM, TOP)
    body = _draw_bars(chart, style, y) if chart.kind == "bars" else _draw_plane(chart, style, y)
    grid = "".join(
        line_svg(LEFT, y(at), WIDTH - RIGHT, y(at), "axis" if not at else "grid")
        + caption_svg(LEFT - 7, y(at) + 4, format_percent(at), "end")
        for at in round_steps(0.0, top, round(top / TICKS[top]))
    )
    label = f"{chart.title}. {chart.note}".strip()
    return tag("svg", Html(grid + body), cls="plot", viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=label)


def _draw_plane(chart: ReportChart, style: Callable[[ReportSeries], int | None], y: Scale) -> str:
    """Draw marks at their places. A line chart joins them and has a band of their intervals."""
    places = sorted({mark.x for one in chart.series for mark in one.marks})
    # An axis begins at 0 unless all places lie far from it.
    floor = 0.0 if chart.kind == "scatter" or places[0] < 0.3 * places[-1] else places[0]
    last = round_steps(floor, places[-1], 6)[-1] if chart.kind == "scatter" else places[-1]
    x = Scale(floor, max(last, floor + 1e-9), LEFT + 14, WIDTH - RIGHT - 14)
    whole = len(places) <= 9 and all(place == int(place) for place in places)
    ticks = places if whole and chart.kind == "line" else round_steps(floor, max(last, floor + 1e-9), 6)
    parts = [
        caption_svg(x(at), HEIGHT - BOTTOM + 19, format_short_number(at), "middle")
        for at in ticks
        if at <= x.high * 1.0001
    ]
    parts.append(caption_svg((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, chart.x_label, "middle", "label"))
    is_line = chart.kind == "line"
    # Bands of more series cover each other.
    if is_line and len(chart.series) <= 4:
        parts += [_draw_band(one, style(one), x, y) for one in chart.series]
    for one in chart.series:
        kind = style(one)
        if is_line:
            points = " ".join(f"{x(mark.x):.1f},{y(mark.y):.1f}" for mark in one.marks)
            parts.append(f'<polyline class="{series_class(kind)} join" points="{points}"/>')
        whiskers = not is_line or (len(chart.series) <= 4 and len(one.marks) == 1)
        parts += [_draw_mark(one, mark, kind, x(mark.x), y, whiskers, chart) for mark in one.marks]
    return "".join(parts)


def _draw_bars(chart: ReportChart, style: Callable[[ReportSeries], int | None], y: Scale) -> str:
    """Draw groups by the marks' labels, with a bar for each series that has a mark in the group."""
    marks = sorted((mark.x, mark.label) for one in chart.series for mark in one.marks)
    groups = list(dict.fromkeys(label for _, label in marks))
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    width = min(34.0, 0.74 * room / max(1, len(chart.series)))
    parts = []
    for at, group in enumerate(groups):
        middle = LEFT + (at + 0.5) * room
        parts.append(caption_svg(middle, HEIGHT - BOTTOM + 19, group, "middle"))
        bars = [(one, mark) for one in chart.series for mark in one.marks if mark.label == group]
        for place, (one, mark) in enumerate(bars):
            left = middle + (place - len(bars) / 2) * width
            parts.append(_draw_bar(one, mark, style(one), left, width, y, chart))
    return "".join(parts)


def _draw_bar(
    one: ReportSeries, mark: ReportMark, kind: int | None, left: float, width: float, y: Scale, chart: ReportChart
) -> str:
    top, middle = y(mark.y), left + width / 2
    box = (
        f'<rect class="{series_class(kind)} bar" x="{left + 1:.1f}" y="{top:.1f}" width="{width - 2:.1f}" '
        f'height="{max(0.8, y.start - top):.1f}" rx="2"/>'
    )
    return f"<g>{mark_title(one, mark, chart)}{box}{_draw_whisker(mark.interval, 'dark', middle, y)}</g>"


def _draw_mark(
    one: ReportSeries, mark: ReportMark, kind: int | None, at: float, y: Scale, whiskers: bool, chart: ReportChart
) -> str:
    whisker = _draw_whisker(mark.interval, series_class(kind), at, y) if whiskers else ""
    return f"<g>{mark_title(one, mark, chart)}{whisker}{series_mark(kind, at, y(mark.y))}</g>"


def _draw_whisker(interval: Interval | None, kind: str, at: float, y: Scale) -> str:
    if interval is None:
        return ""
    low, high = y(max(0.0, interval.low)), y(min(y.high, interval.high))
    ends = f"M{at - 4:.1f} {low:.1f}h8M{at - 4:.1f} {high:.1f}h8"
    return f'<path class="{kind} whisker" d="M{at:.1f} {low:.1f}V{high:.1f}{ends}"/>'


def _draw_band(one: ReportSeries, kind: int | None, x: Scale, y: Scale) -> str:
    intervals = [(mark, mark.interval) for mark in one.marks if mark.interval]
    if len(intervals) < 2 or sum(interval.high - interval.low for _, interval in intervals) > WIDEST * len(intervals):
        return ""
    up = [f"{x(mark.x):.1f},{y(min(y.high, interval.high)):.1f}" for mark, interval in intervals]
    down = [f"{x(mark.x):.1f},{y(max(0.0, interval.low)):.1f}" for mark, interval in reversed(intervals)]
    return f'<polygon class="{series_class(kind)} band" points="{" ".join(up + down)}"/>'


def state_swatch(state: str) -> Html:
    box = tag("rect", cls=f"state-{state}", x=2, y=2, width=10, height=10, rx=2)
    return tag("svg", box, cls="swatch", viewBox="0 0 14 14", aria_hidden="true")


def draw_whisker_row(share: float, interval: Interval | None, kind: int | None, words: str) -> Html:
    """Draw a line of the table of results, 0 to 100 % wide. The interval is a bar, the figure a tick across it."""
    low, high = (interval.low, interval.high) if interval else (share, share)
    return stretched_svg(
        "forest",
        words,
        tag("path", cls="grid", d="M0 0V10M25 0V10M50 0V10M75 0V10M100 0V10"),
        box_rect(f"{series_class(kind)} span", 100 * low, max(0.3, 100 * (high - low)), 3, 4),
        box_rect(f"{series_class(kind)} tick", max(0.0, 100 * share - 0.35), 0.7, 0.6, 8.8),
    )


def draw_published_row(shares: Sequence[float], words: str) -> Html:
    """Draw published figures on the same axis."""
    return stretched_svg(
        "forest",
        words,
        tag("path", cls="grid", d="M0 0V10M25 0V10M50 0V10M75 0V10M100 0V10"),
        *(box_rect("pub tick", 100 * share - 0.4, 0.8, 1, 8) for share in shares),
    )


def draw_effect(difference: float, interval: Interval, reach: float, words: str) -> Html:
    """Draw a difference and its interval on a line from -``reach`` to ``reach``."""
    low, at, high = (50 + 50 * value / reach for value in (interval.low, difference, interval.high))
    return stretched_svg(
        "effect",
        words,
        tag("path", cls="zero", d="M50 0V10"),
        box_rect("s0 span", low, max(0.4, high - low), 3.4, 3.2),
        box_rect("s0 tick", at - 0.5, 1.0, 1, 8),
    )


def draw_stack(parts: Sequence[tuple[str, int]], words: str) -> Html:
    """Draw shares of a whole side by side. The name of a part is its class."""
    total, at, boxes = sum(many for _, many in parts), 0.0, []
    for name, many in parts:
        width = 100 * many / total if total else 0.0
        boxes += [box_rect(f"state-{name}", at, width, 0, 10)] if many else []
        at += width
    return stretched_svg("stack", words, *boxes)


def mark_title(one: ReportSeries, mark: ReportMark, chart: ReportChart) -> str:
    place = (
        mark.label
        if mark.label and mark.label != one.name
        else f"{format_short_number(mark.x)} {chart.x_label}".strip()
    )
    words = [f"{one.name}: {format_percent(mark.y, 1)}", f"at {place}" if place != one.name else ""]
    if mark.interval:
        words.append(f"(95 %: {format_percent(mark.interval.low, 1)} to {format_percent(mark.interval.high, 1)})")
    if mark.of:
        words.append(f"of {mark.of}")
    if one.published:
        words.append(f"published: {one.note}")
    return f"<title>{escape(' '.join(word for word in words if word))}</title>"


def _axis_top(shares: Iterable[float]) -> float:
    """Return the top of an axis of shares: a quarter, a half, three quarters or all."""
    most = max([share for share in shares if math.isfinite(share)], default=1.0)
    return next((top for top in TICKS if most <= top), 1.0)
