"""The plots of a report, as plain values: what is drawn is also what ``--json`` gives. Shares are 0 to 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from decisor.benchmarks.dqa.questions import KINDS, kind_of, kinds
from decisor.benchmarks.paper_figures import PublishedFigure
from decisor.benchmarks.qa.paper_figures import DEPTHS
from decisor.outcome import Outcome
from decisor.statistics.compare import Side, sides_of
from decisor.statistics.curves import Point, budget_curve, by_count, by_kind, deciles, limits_for
from decisor.statistics.estimates import Interval
from decisor.statistics.summary import COUNTED, SummaryRow

Kind = Literal["forest", "line", "scatter", "bars"]
MOST_SERIES = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """One figure. ``x`` is a place on the axis; in a forest and in bars it only orders. ``of``: how many outcomes."""

    x: float
    y: float
    label: str = ""
    interval: Interval | None = None
    of: int = 0


@dataclass(frozen=True, slots=True)
class Series:
    """Marks of one technique, or what was published (``published``: drawn apart, with its source in ``note``)."""

    name: str
    marks: tuple[Mark, ...]
    published: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """``x_label`` and ``y_label`` say what the axes are; ``note`` what a reader needs to know to read it rightly."""

    id: str
    title: str
    kind: Kind
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    note: str = ""


def charts(
    benchmark: str, outcomes: Sequence[Outcome], rows: Sequence[SummaryRow], published: Sequence[PublishedFigure],
    label: Callable[[Side], str],
) -> tuple[Chart, ...]:  # fmt: skip
    """Every plot that the outcomes of one benchmark have data for."""
    overall = [row for row in rows if not row.group and row.benchmark == benchmark]
    entries = [(label(Side(row.technique, row.model)), row) for row in overall]
    sides = sides_of(outcomes, benchmark)
    parts = {label(side): sides[side] for side in (Side(row.technique, row.model) for row in overall)}
    curve = budget(parts)
    cost = against("cost", "dollars a case", entries, _dollars)
    plots = [
        forest(entries, published),
        curve or against("calls", "LM calls a case", entries, lambda row: row.usage.calls / row.outcomes),
        cost or against("tokens", "tokens a case", entries, lambda row: row.usage.tokens / row.outcomes),
        against("critical", "seconds a case (critical path)", entries, lambda row: row.critical),
        counted(parts, "replans", "Accuracy by number of replans", "replans"),
        sr_mr(parts, outcomes),
        counted(parts, "depth", "Accuracy by depth of the plan", "depth of the plan"),
        depths(benchmark, parts),
        rated(outcomes, entries, label),
        repeated(entries),
    ]  # fmt: skip
    return tuple(chart for chart in plots if chart is not None)


def forest(entries: Sequence[tuple[str, SummaryRow]], published: Sequence[PublishedFigure]) -> Chart | None:
    """Accuracy by technique with its interval, published accuracies below."""
    ours = [(name, row, row.accuracy) for name, row in entries if row.accuracy is not None]
    if not ours:
        return None
    series = [Series(name, (Mark(0, accuracy, name, row.interval, row.counted),)) for name, row, accuracy in ours]
    ended = ("accuracy", "acc")
    theirs = [one for one in published if one.metric in ended]
    for one in theirs:
        where = f"{one.technique}, {one.group}" if one.group else one.technique
        series.append(Series(where, (Mark(0, one.value / 100, where),), True, one.source))
    note = "Published figures are diamonds: other models and settings." if theirs else ""
    return Chart(
        id="accuracy",
        title="Accuracy by technique",
        kind="forest",
        x_label="",
        y_label="accuracy",
        series=tuple(series),
        note=note,
    )


def budget(parts: dict[str, list[Outcome]]) -> Chart | None:
    """Accuracy if each run had been cut at so many calls."""
    limits = limits_for(one for part in parts.values() for one in part)
    if len(limits) < 2:
        return None
    series = tuple(Series(name, _marks(budget_curve(part, limits))) for name, part in parts.items())
    has_snapshots = any(one.snapshots for part in parts.values() for one in part)
    note = "A run counts with the answer it held at that many calls; " + (
        "between snapshots, with the last one."
        if has_snapshots
        else "no snapshots were kept, so with none before its end."
    )
    return Chart(
        id="budget",
        title="Accuracy against calls allowed",
        kind="line",
        x_label="LM calls allowed",
        y_label="accuracy",
        series=series,
        note=note,
    )


def against(
    id: str, x_label: str, entries: Sequence[tuple[str, SummaryRow]], x: Callable[[SummaryRow], float | None]
) -> Chart | None:
    """Accuracy of each technique against something that it costs."""
    series = []
    for name, row in entries:
        at = x(row)
        if at is not None and row.accuracy is not None:
            series.append(Series(name, (Mark(at, row.accuracy, name, row.interval, row.counted),)))
    if len(series) < 2 or not any(one.marks[0].x for one in series):
        return None
    return Chart(
        id=id,
        title=f"Accuracy against {x_label}",
        kind="scatter",
        x_label=x_label,
        y_label="accuracy",
        series=tuple(series),
    )


def counted(parts: dict[str, list[Outcome]], count: str, title: str, x_label: str) -> Chart | None:
    series = [Series(name, marks) for name, part in parts.items() if (marks := _marks(by_count(part, count)))]
    values = {mark.x for one in series for mark in one.marks}
    return (
        Chart(id=count, title=title, kind="line", x_label=x_label, y_label="accuracy", series=tuple(series))
        if len(values) > 1
        else None
    )


def sr_mr(parts: dict[str, list[Outcome]], outcomes: Sequence[Outcome]) -> Chart | None:
    """Only where IterRAG ran: it sorts the questions."""
    by_question = kinds(outcomes)
    series = [Series(name, marks) for name, part in parts.items()
              if (marks := _marks(by_kind(part, KINDS, lambda one: kind_of(one, by_question))))]  # fmt: skip
    if not by_question or not series:
        return None
    return Chart(
        id="sr-mr",
        title="Questions of one retrieval or several",
        kind="bars",
        x_label="",
        y_label="accuracy",
        series=tuple(series),
        note="SR: questions for which iter_rag made exactly one retrieval; MR: several.",
    )


def depths(benchmark: str, parts: dict[str, list[Outcome]]) -> Chart | None:
    """How deep plans are, beside the published shares."""
    series = []
    for name, part in parts.items():
        levels = [min(4, one.counts["depth"]) for one in part if "depth" in one.counts and one.state in COUNTED]
        if levels:
            marks = tuple(Mark(at, levels.count(at) / len(levels), _depth(at), None, len(levels)) for at in range(5))
            series.append(Series(name, marks))
    if not series:
        return None
    if benchmark in DEPTHS:
        marks = tuple(Mark(at, share / 100, _depth(at)) for at, share in enumerate(DEPTHS[benchmark]))
        series.append(Series("reasoning_dag (Llama-3-8B)", marks, True, "Plan*RAG (arXiv 2410.20753), table 2"))
    note = "0: no plan; 1: parts side by side; 2 and more: parts that wait for each other."
    return Chart(
        id="depth-share",
        title="How deep plans are",
        kind="bars",
        x_label="",
        y_label="share of cases",
        series=tuple(series),
        note=note,
    )


def rated(
    outcomes: Sequence[Outcome], entries: Sequence[tuple[str, SummaryRow]], label: Callable[[Side], str]
) -> Chart | None:
    """Accuracy by tenths of the rating that a technique gave its own answers."""
    curves = deciles(outcomes, lambda one: label(Side(one.technique, one.model)))
    if not curves:
        return None
    raters = list(dict.fromkeys(label(Side(one.technique, one.model)) for one in outcomes if "elo" in one.metrics))
    series = tuple(Series(name, _marks(curves[name])) for name, _ in entries if name in curves)
    note = (
        f"Cases in up to ten equal parts by the Elo that {' and '.join(raters)} gave the chosen answer, scaled to 0..1."
    )
    return Chart(
        id="elo",
        title="Accuracy by Elo of the answer",
        kind="line",
        x_label="scaled Elo",
        y_label="accuracy",
        series=series,
        note=note,
    )


def repeated(entries: Sequence[tuple[str, SummaryRow]]) -> Chart | None:
    series = [
        Series(name, tuple(Mark(k, share) for k, share in row.repeats.pass_at.items()))
        for name, row in entries if row.repeats
    ]  # fmt: skip
    note = "The chance that one of k tries is right, estimated without bias from all tries."
    return (
        Chart(
            id="pass-at-k", title="pass@k", kind="line", x_label="k", y_label="pass@k", series=tuple(series), note=note
        )
        if series
        else None
    )


def _marks(points: Sequence[Point]) -> tuple[Mark, ...]:
    return tuple(Mark(point.at, point.share, point.label, point.interval, point.total) for point in points)


def _depth(at: int) -> str:
    return "4+" if at == 4 else str(at)


def _dollars(row: SummaryRow) -> float | None:
    return None if row.usage.dollars is None else row.usage.dollars / row.outcomes
