"""The charts of a report, its drawings in the cells of tables, and figures and names as words.

The values that are drawn are also the ones that ``--json`` gives. Shares are 0 to 1. Words for figures and names are
the same in every form of a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from decisor.lab.benchmark import Outcome
from decisor.lab.dqa.bench import KINDS, find_retrieval_kinds, retrieval_kind_of
from decisor.lab.statistics import (
    COUNTED,
    ComparedSide,
    CurvePoint,
    Interval,
    SummaryRow,
    accuracy_by_count,
    accuracy_by_decile,
    accuracy_by_kind,
    choose_curve_limits,
    compute_budget_curve,
    sides_of,
)
from decisor.system.wording import format_count
from decisor.views.charts import Axis, Chart, ChartKind, ChartMark, ChartSeries
from decisor.views.markup import Html, tag

if TYPE_CHECKING:
    from decisor.lab.evaluation.comparisons import Agreement


def make_charts(
    benchmark: str, outcomes: Sequence[Outcome], rows: Sequence[SummaryRow], label: Callable[[ComparedSide], str]
) -> tuple[Chart, ...]:
    """Return every plot for which the outcomes of one benchmark have data."""
    overall = [row for row in rows if not row.group and row.benchmark == benchmark]
    entries = [(label(ComparedSide(row.technique, row.model)), row) for row in overall]
    sides = sides_of(outcomes, benchmark)
    parts = {label(side): sides[side] for side in (ComparedSide(row.technique, row.model) for row in overall)}
    curve = make_budget_chart(parts)
    cost = make_cost_chart("cost", "dollars a case", entries, lambda row: row.dollars)
    plots = [
        # A curve over calls says more than the mean of calls, and dollars more than tokens; the others stand in for
        # them.
        curve or make_cost_chart("calls", "LLM calls a case", entries, lambda row: row.usage.calls / row.outcomes),
        cost or make_cost_chart("tokens", "tokens a case", entries, lambda row: row.usage.tokens / row.outcomes),
        make_cost_chart("critical", "seconds a case (critical path)", entries, lambda row: row.critical),
        make_count_chart(parts, "replans", "Accuracy by number of replans", "replans"),
        make_retrieval_kind_chart(parts, outcomes),
        make_count_chart(parts, "depth", "Accuracy by depth of the plan", "depth of the plan"),
        make_depth_chart(parts),
        make_rating_chart(outcomes, entries, label),
        make_repeats_chart(entries),
    ]
    return tuple(chart for chart in plots if chart is not None)


def share_chart(
    id: str, kind: ChartKind, title: str, x: str, series: Iterable[ChartSeries], *, y: str = "accuracy", note: str = ""
) -> Chart | None:
    """Make a chart of shares; None if it has no marks."""
    drawn = tuple(one for one in series if one.marks)
    across = Axis(x, scale="name" if kind == "bar" else "number", zero=kind == "points")
    chart = Chart(kind, title, across, Axis(y, scale="share"), drawn, (note,) if note else (), id)
    return chart if drawn else None


def curve_series(curves: Mapping[str, Sequence[CurvePoint]]) -> list[ChartSeries]:
    return [
        ChartSeries(
            name,
            tuple(
                ChartMark(
                    "",
                    point.at,
                    point.share,
                    point.label or format_short_number(point.at),
                    point.interval.low if point.interval else None,
                    point.interval.high if point.interval else None,
                    f"of {point.total}" if point.total else "",
                )
                for point in points
            ),
        )
        for name, points in curves.items()
    ]


def accuracy_mark(name: str, x: float, row: SummaryRow) -> ChartMark:
    low, high = (row.interval.low, row.interval.high) if row.interval else (None, None)
    return ChartMark("", x, row.accuracy, name, low, high, f"of {row.counted}")


def make_budget_chart(parts: dict[str, list[Outcome]]) -> Chart | None:
    """Make the chart of accuracy if each run had been cut at a number of calls."""
    limits = choose_curve_limits(outcome for part in parts.values() for outcome in part)
    # One point is no curve.
    if len(limits) < 2:
        return None
    series = curve_series({name: compute_budget_curve(part, limits) for name, part in parts.items()})
    has_snapshots = any(outcome.snapshots for part in parts.values() for outcome in part)
    note = "A run counts with the answer it held at that many calls; " + (
        "between snapshots, with the last one."
        if has_snapshots
        else "no snapshots were kept, so with none before its end."
    )
    return share_chart("budget", "line", "Accuracy against calls allowed", "LLM calls allowed", series, note=note)


def make_cost_chart(
    id: str, x_label: str, entries: Sequence[tuple[str, SummaryRow]], cost_of: Callable[[SummaryRow], float | None]
) -> Chart | None:
    """Make the chart of each technique's accuracy against one of its costs.

    None if fewer than two techniques have both.
    """
    costs = [(name, row, cost_of(row)) for name, row in entries if row.accuracy is not None]
    series = [ChartSeries(name, (accuracy_mark(name, cost, row),)) for name, row, cost in costs if cost is not None]
    # One point, or all at cost 0, compares nothing.
    if len(series) < 2 or not any(one.marks[0].x for one in series):
        return None
    return share_chart(id, "points", f"Accuracy against {x_label}", x_label, series)


def make_count_chart(parts: dict[str, list[Outcome]], count: str, title: str, x_label: str) -> Chart | None:
    series = curve_series({name: accuracy_by_count(part, count) for name, part in parts.items()})
    values = {mark.x for one in series for mark in one.marks}
    return share_chart(count, "line", title, x_label, series) if len(values) > 1 else None


def make_retrieval_kind_chart(parts: dict[str, list[Outcome]], outcomes: Sequence[Outcome]) -> Chart | None:
    """Make the chart of accuracy by retrieval kind. None unless IterRAG ran, because it sorts the questions."""
    by_question = find_retrieval_kinds(outcomes)
    if not by_question:
        return None
    kinds = {
        name: accuracy_by_kind(part, KINDS, lambda outcome: retrieval_kind_of(outcome, by_question))
        for name, part in parts.items()
    }
    note = "SR: questions for which iter_rag made exactly one retrieval; MR: several."
    return share_chart("sr-mr", "bar", "Questions of one retrieval or several", "", curve_series(kinds), note=note)


def make_depth_chart(parts: dict[str, list[Outcome]]) -> Chart | None:
    """Make the chart of plan depths."""
    series = []
    for name, part in parts.items():
        depths = [min(4, one.counts["depth"]) for one in part if "depth" in one.counts and one.state in COUNTED]
        if depths:
            shares = [depths.count(depth) / len(depths) for depth in range(5)]
            of_all = f"of {len(depths)}"
            marks = [ChartMark("", at, share, f"{at}{'+' * (at == 4)}", note=of_all) for at, share in enumerate(shares)]
            series.append(ChartSeries(name, tuple(marks)))
    if not series:
        return None
    note = "0: no plan; 1: parts side by side; 2 and more: parts that wait for each other."
    return share_chart("depth-share", "bar", "How deep plans are", "", series, y="share of cases", note=note)


def make_rating_chart(
    outcomes: Sequence[Outcome], entries: Sequence[tuple[str, SummaryRow]], label: Callable[[ComparedSide], str]
) -> Chart | None:
    """Make the chart of accuracy by tenths of the rating that a technique gave its own answers."""
    curves = accuracy_by_decile(outcomes, lambda outcome: label(ComparedSide(outcome.technique, outcome.model)))
    raters = dict.fromkeys(label(ComparedSide(one.technique, one.model)) for one in outcomes if "elo" in one.metrics)
    series = curve_series({name: curves[name] for name, _ in entries if name in curves})
    note = (
        f"Cases in up to ten equal parts by the Elo that {' and '.join(raters)} gave the chosen answer, scaled to 0..1."
    )
    return share_chart("elo", "line", "Accuracy by Elo of the answer", "scaled Elo", series, note=note)


def make_repeats_chart(entries: Sequence[tuple[str, SummaryRow]]) -> Chart | None:
    series = [
        ChartSeries(f"{name}, {words}", tuple(ChartMark("", k, share, str(k)) for k, share in shares.items()))
        for name, row in entries
        for words, shares in (("pass@k", row.pass_at), ("pass^k", row.pass_hat))
        if shares
    ]
    note = "The chance that one (pass@k) or each (pass^k) of k tries is right, estimated without bias from all tries."
    return share_chart("pass-at-k", "line", "Repeats", "k", series, y="share", note=note)


SPACE = "\u202f"
"""A narrow space that does not break."""


def format_percent(share: float, digits: int = 0) -> str:
    """Format a share in percent, with a narrow space.

    >>> format_percent(0.1234, 1).replace(SPACE, " ")
    '12.3 %'
    """
    return f"{100 * share:.{digits}f}{SPACE}%"


def format_interval(interval: Interval | None, digits: int = 1) -> str:
    """Format an interval of shares in percent; '' for None."""
    return f"{format_percent(interval.low, digits)} to {format_percent(interval.high, digits)}" if interval else ""


def format_points(share: float) -> str:
    """Format a difference of shares in percentage points.

    >>> format_points(0.125), format_points(-0.02)
    ('+12.5', '−2.0')
    """
    return f"{100 * share:+.1f}".replace("-", "\u2212")


def format_points_range(interval: Interval) -> str:
    """Format an interval of a difference of shares in percentage points."""
    return f"{format_points(interval.low)} to {format_points(interval.high)}"


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


def describe_spending(row: SummaryRow) -> tuple[str, str, str, str]:
    """Return the mean calls, tokens, cost and seconds of an outcome."""
    calls, tokens = (format_short_number(total / row.outcomes) for total in (row.usage.calls, row.usage.tokens))
    return calls, tokens, format_money(row.dollars), f"{row.seconds:.3g}"


def describe_unmeasured(row: SummaryRow) -> str:
    """Describe the metrics that are no finite number in some outcomes, empty if there are none."""
    parts = [f"{spell_out_name(name)} in {format_count(many, 'outcome')}" for name, many in row.unmeasured.items()]
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
        return f"{agreement.judge} was asked about {agreement.asked} failures; none of its replies could be read."
    kappa = "" if agreement.kappa is None else f" (Cohen’s kappa {agreement.kappa:.2f})"
    return (
        f"{agreement.judge} was asked about {agreement.asked} failures, {agreement.read} of its replies could "
        f"be read, and {format_percent(agreement.agreed)} of these name the class that the rules gave{kappa}."
    )


GRID = "M0 0V10M25 0V10M50 0V10M75 0V10M100 0V10"


def draw_track(cls: str, words: str, boxes: Iterable[tuple[str, float, float, float, float]], lines: str = "") -> Html:
    """Draw boxes in a cell of a table, stretched to its width.

    Args:
        boxes: Class, left end, width, top and height of each, in a room of 100 by 10.
        lines: Path of the lines behind them.
    """
    return tag(
        "svg",
        tag("title", words),
        tag("path", cls="grid", d=lines) if lines else None,
        *(
            tag("rect", cls=name, x=f"{x:.2f}", y=f"{y:g}", width=f"{width:.2f}", height=f"{height:g}")
            for name, x, width, y, height in boxes
        ),
        cls=cls,
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
    )
