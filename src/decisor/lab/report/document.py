"""A report as plain values; the page, Markdown, CSV and JSON are made from these and nothing else.

Here are also the table of results of a benchmark for the page, and the number, and so the colour and shape, that each
technique has everywhere on the page. Cells of Markdown and CSV are model output: nothing in them is markup, and none is
a formula.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.comparisons import Agreement
from decisor.lab.report.charts import (
    GRID,
    SPACE,
    describe_agreement,
    describe_auxiliary_costs,
    describe_spending,
    describe_unmeasured,
    draw_track,
    format_interval,
    format_percent,
    format_points,
    format_points_range,
    format_probability,
    make_charts,
    spell_out_name,
)
from decisor.lab.statistics import (
    STATES,
    ComparedSide,
    OutcomeChange,
    PairedComparison,
    SummaryRow,
    compare_all_pairs,
    compare_with_earlier_run,
    find_changed_outcomes,
    summarise_outcomes,
)
from decisor.system.serialization import dataclass_values
from decisor.system.text import guard_formula
from decisor.system.wording import format_count
from decisor.types import Usage, Value
from decisor.views.chart_drawing import legend_swatch
from decisor.views.charts import Chart
from decisor.views.markup import Html, join, scroll_table_html, tag

MOST_SIDES = 12
"""Every pair of more sides than these is not compared: the correction would leave nothing."""


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The report of one benchmark of a run."""

    name: str
    cases: int
    rows: tuple[SummaryRow, ...]
    """Of all groups and then of each, best first."""
    metrics: tuple[str, ...]
    """Names of the metrics that rows have."""
    comparisons: tuple[PairedComparison, ...]
    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True)
class ReportDiff:
    """The differences between this run and an earlier one."""

    comparisons: tuple[PairedComparison, ...]
    """Each technique's difference: this run minus the earlier one."""
    changed: tuple[OutcomeChange, ...]
    """Outcomes with another state than before."""
    only_here: tuple[str, ...]
    """Sides that only this run has."""
    only_there: tuple[str, ...]
    """Sides that only the earlier run has."""

    @property
    def gained(self) -> int:
        return sum(one.after == "right" for one in self.changed)

    @property
    def lost(self) -> int:
        return sum(one.before == "right" for one in self.changed)


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run."""

    title: str
    about: Mapping[str, Value]
    benchmarks: tuple[BenchmarkReport, ...]
    outcomes: tuple[Outcome, ...]
    usage: Usage
    one_model: str | None
    """Name of the LLM if there is only one, so that techniques need not name it; else None."""
    diff: ReportDiff | None = None
    opinion: Agreement | None = None

    def label(self, side: ComparedSide) -> str:
        return side.technique if self.one_model is not None else str(side)

    def label_of_row(self, row: SummaryRow) -> str:
        return self.label(ComparedSide(row.technique, row.model))


def make_report(
    outcomes: Sequence[Outcome],
    about: Mapping[str, Value] | None = None,
    before: Sequence[Outcome] | None = None,
    opinion: Agreement | None = None,
) -> Report:
    """Make the report of a run.

    before: outcomes of an earlier run to compare with. opinion: agreement of a judge on its failures.
    """
    models = {one.model for one in outcomes}
    one_model = models.pop() if len(models) == 1 else None
    names = tuple(dict.fromkeys(one.benchmark for one in outcomes))
    usage = Usage()
    for one in outcomes:
        usage = usage + one.usage
    report = Report(
        title=", ".join(names) or "empty run",
        about=about or {},
        benchmarks=(),
        outcomes=tuple(outcomes),
        usage=usage,
        one_model=one_model,
        diff=None if before is None else _diff(outcomes, before),
        opinion=opinion,
    )
    # The parts need the report for the labels of techniques, so they come second.
    benchmarks = tuple(_benchmark(name, outcomes, report) for name in names)
    return replace(report, benchmarks=benchmarks)


def _benchmark(name: str, outcomes: Sequence[Outcome], report: Report) -> BenchmarkReport:
    part = [one for one in outcomes if one.benchmark == name]
    rows = sort_rows_best_first(summarise_outcomes(part, by_group=True))
    # The first row of a side is its place: those of its groups follow.
    places = {ComparedSide(row.technique, row.model): at for at, row in reversed(list(enumerate(rows)))}
    pairs = compare_all_pairs(part) if len(places) <= MOST_SIDES else ()
    return BenchmarkReport(
        name=name,
        cases=len({one.case for one in part}),
        rows=rows,
        metrics=tuple(sorted({name for row in rows for name in row.metrics})),
        # Holm multiplies the smallest p by the number of pairs, 66 for 12 sides.
        comparisons=tuple(sorted(pairs, key=lambda one: (places[one.one], places[one.other]))),
        charts=make_charts(name, part, rows, report.label),
    )


def sort_rows_best_first(rows: Sequence[SummaryRow]) -> tuple[SummaryRow, ...]:
    """Sort rows by the accuracy of all groups together. The rows of a technique's groups stay with it."""
    overall = {(row.technique, row.model): row.accuracy for row in rows if not row.group}
    # Techniques without accuracy come last.
    ranked = {key: -1.0 if accuracy is None else accuracy for key, accuracy in overall.items()}
    return tuple(sorted(rows, key=lambda row: (-ranked[row.technique, row.model], row.technique, row.model, row.group)))


def _diff(outcomes: Sequence[Outcome], before: Sequence[Outcome]) -> ReportDiff:
    here, there = (
        {f"{one.benchmark}: {ComparedSide(one.technique, one.model)}" for one in part} for part in (outcomes, before)
    )
    return ReportDiff(
        compare_with_earlier_run(outcomes, before),
        find_changed_outcomes(outcomes, before),
        tuple(sorted(here - there)),
        tuple(sorted(there - here)),
    )


def figure_table(
    heads: Sequence[str], rows: Iterable[Sequence[Html | str | int]], cls: str | None = None, text_columns: int = 1
) -> Html:
    """Return a table whose first column names its rows. text_columns: columns of words, not figures."""
    head = join(*(tag("th", name, cls="n" if at >= text_columns else None) for at, name in enumerate(heads)))
    body = []
    for name, *cells in rows:
        line = [
            # A cell with a class of its own is made already.
            cell
            if isinstance(cell, Html) and cell.startswith("<td")
            else tag("td", cell, cls="n" if at >= text_columns else None)
            for at, cell in enumerate(cells, 1)
        ]
        body.append(tag("tr", tag("th", name, scope="row"), *line))
    return scroll_table_html(head, join(*body), cls)


MAIN_METRICS = 3


def render_results(one: BenchmarkReport, report: Report, numbers: Mapping[str, int]) -> Html:
    overall = [row for row in one.rows if not row.group]
    metrics = [name for name in one.metrics if name not in ("elo", "accuracy")][:MAIN_METRICS]
    ticks = tag("div", *(tag("span", at) for at in (0, 25, 50, 75, 100)), cls="ticks")
    head = join(
        tag("th", "Technique"),
        tag("th", ticks, cls="plotcell"),
        tag("th", "Accuracy", cls="n"),
        tag("th", "Outcomes"),
        *(tag("th", spell_out_name(name), cls="n") for name in metrics),
        tag("th", "Spent on a case", cls="n"),
    )
    ours = [render_result_row(row, metrics, report, numbers) for row in overall]
    left = sum(row.outcomes - row.counted for row in overall)
    note = (
        f"{format_count(left, 'outcome')} crashed or could not be scored: left out of accuracy, never counted as wrong."
    )
    results_table = scroll_table_html(head, join(*ours), "results")
    return join(results_table, state_legend(), tag("p", note, cls="note") if left else "")


def render_result_row(row: SummaryRow, metrics: Sequence[str], report: Report, numbers: Mapping[str, int]) -> Html:
    name = report.label_of_row(row)
    number = numbers[name]
    plot, figure = Html(), join("not scored")
    if row.accuracy is not None and row.interval is not None:
        within = format_interval(row.interval)
        title = f"{format_percent(row.accuracy, 1)}, 95 % interval {within}"
        at, low, high = (100 * share for share in (row.accuracy, row.interval.low, row.interval.high))
        span = (f"s{number % 8} span", low, max(0.3, high - low), 3, 4)
        tick = (f"s{number % 8} tick", max(0.0, at - 0.35), 0.7, 0.6, 8.8)
        plot = draw_track("forest", title, (span, tick), GRID)
        figure = join(tag("span", format_percent(row.accuracy, 1), cls="big"), tag("br"), tag("small", within))
    words = ", ".join(f"{row.states[state]} {spell_out_name(state)}" for state in STATES if row.states[state])
    widths = [100 * row.states[state] / row.outcomes for state in STATES]
    stack = draw_track(
        "stack",
        words,
        [(f"state-{state}", sum(widths[:at]), widths[at], 0, 10) for at, state in enumerate(STATES) if widths[at]],
    )
    calls, tokens, money, seconds = describe_spending(row)
    cost = f"{seconds} s" if row.dollars is None else f"{money}, {seconds} s"
    cost_cell = join(tag("span", f"{calls} calls, {tokens} tokens"), " ", tag("span", cost))
    if row.unread:
        cost_cell = join(cost_cell, " ", tag("span", f"{format_percent(row.unread, 1)} of replies unread"))
    if unmeasured := describe_unmeasured(row):
        cost_cell = join(cost_cell, " ", tag("span", unmeasured))
    if row.beside:
        cost_cell = join(
            cost_cell, *(join(" ", tag("span", f"beside it: {one}")) for one in describe_auxiliary_costs(row))
        )
    return tag(
        "tr",
        tag("th", legend_swatch(number), " ", name, scope="row"),
        tag("td", plot, cls="plotcell"),
        tag("td", figure, cls="n"),
        tag("td", stack, tag("span", words, cls="stackwords"), cls="states"),
        *(metric_cell(row, metric) for metric in metrics),
        tag("td", cost_cell, cls="n extra spent"),
    )


def metric_cell(row: SummaryRow, metric: str) -> Html:
    estimate = row.metrics.get(metric)
    if estimate is None:
        return tag("td", cls="n extra", data_label=spell_out_name(metric))
    mean, within = estimate
    figure = tag("span", f"{mean:.3g}", tag("br"), tag("small", f"{within.low:.3g} to {within.high:.3g}"))
    return tag("td", figure, cls="n extra", data_label=spell_out_name(metric))


def state_legend() -> Html:
    items = []
    for state in STATES:
        box = tag("rect", cls=f"state-{state}", x=2, y=2, width=10, height=10, rx=2)
        swatch = tag("svg", box, cls="swatch", viewBox="0 0 14 14", aria_hidden="true")
        items.append(tag("li", swatch, spell_out_name(state)))
    return tag("ul", *items, cls="legend note")


SPECIAL = re.compile(r"([\\`*\[\]<>|~&:@]|(?<!\w)_|_(?!\w))")
FIGURE = re.compile(r"[\u2212+<-]?\$?[\d.,]+[kMG]?(?: %)?(?: to [\u2212+-]?[\d.,]+(?: %)?)?")


def report_as_markdown(report: Report) -> str:
    """Return a report as Markdown tables of results and comparisons."""
    parts = [f"# {escape_markdown_cell(report.title)}"]
    for one in report.benchmarks:
        overall = [row for row in one.rows if not row.group]
        parts += [f"## {escape_markdown_cell(one.name)}", format_markdown_results(overall, report)]
        parts += [escape_markdown_cell(line) for line in list_result_notes(overall, report)]
        if grouped := [row for row in one.rows if row.group]:
            parts += ["### By group", format_markdown_results(grouped, report, groups=True)]
        if one.comparisons:
            parts += ["### Techniques against each other", format_markdown_comparisons(one.comparisons, report)]
    if report.opinion:
        parts += ["## A second opinion on failures", escape_markdown_cell(describe_agreement(report.opinion))]
    if report.diff:
        parts += [
            "## Against the earlier run",
            f"{report.diff.gained} gained, {report.diff.lost} lost.",
            format_markdown_comparisons(report.diff.comparisons, report),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def format_markdown_results(rows: Sequence[SummaryRow], report: Report, groups: bool = False) -> str:
    metrics = sorted({name for row in rows for name in row.metrics} - {"accuracy"})
    head = [
        "technique",
        *(["group"] if groups else []),
        "accuracy",
        "95 %",
        *(spell_out_name(state) for state in STATES),
        *(spell_out_name(name) for name in metrics),
        "calls",
        "tokens",
        "cost",
        "seconds",
        *(["unread"] if (unread := any(row.unread for row in rows)) else []),
    ]
    lines = []
    for row in rows:
        lines.append(
            [
                report.label_of_row(row),
                *([row.group] if groups else []),
                "" if row.accuracy is None else format_percent(row.accuracy, 1),
                format_interval(row.interval),
                *(str(row.states[state]) for state in STATES),
                *(f"{row.metrics[name][0]:.3g}" if name in row.metrics else "" for name in metrics),
                *describe_spending(row),
                *([format_percent(row.unread, 1)] if unread else []),
            ]
        )
    return format_markdown_grid(head, lines)


def list_result_notes(rows: Sequence[SummaryRow], report: Report) -> list[str]:
    """Return the costs of the benchmark's own LLMs and the metrics left out, a line per technique."""
    costs = [(report.label_of_row(row), "; ".join(describe_auxiliary_costs(row))) for row in rows]
    notes = [(report.label_of_row(row), describe_unmeasured(row)) for row in rows]
    lines = [f"Beside {name}, an outcome: {cost}." for name, cost in costs if cost]
    return lines + [f"{name}: {note}" for name, note in notes if note]


def format_markdown_comparisons(pairs: Sequence[PairedComparison], report: Report) -> str:
    lines = [
        (
            report.label(one.one),
            report.label(one.other),
            format_points(one.difference),
            format_points_range(one.interval),
            str(one.only_one),
            str(one.only_other),
            str(one.pairs),
            str(one.left_out),
            format_probability(one.p),
            format_probability(one.p_holm),
        )
        for one in pairs
    ]
    head = ("this", "against", "points", "95 %", "only this", "only that", "pairs", "left out", "p", "p (Holm)")
    return format_markdown_grid(head, lines) if lines else ""


def format_markdown_grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with escaped cells.

    >>> print(format_markdown_grid(["a", "b"], [["x|y", "<b>"]]))
    | a | b |
    |---|---|
    | x\\|y | \\<b\\> |
    """
    table_lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    table_lines += [f"| {' | '.join(escape_markdown_cell(cell) for cell in line)} |" for line in lines]
    return "\n".join(table_lines)


def escape_markdown_cell(text: str) -> str:
    """Return a text that Markdown shows unchanged, on one line.

    >>> escape_markdown_cell("[x](javascript:alert(1))")
    '\\\\[x\\\\](javascript\\\\:alert(1))'
    """
    # One line: a line break would end the row of a Markdown table.
    line = " ".join(drop_hidden_characters(text).replace(SPACE, " ").split())
    return line if FIGURE.fullmatch(line) else SPECIAL.sub(r"\\\1", line)


def drop_hidden_characters(text: str) -> str:
    """Remove control characters and marks that reorder or hide text."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))


def report_as_csv(report: Report) -> str:
    """Return a report as CSV with one line per outcome.

    Metrics, counts and costs of LLMs beside the technique have columns of their own.
    """
    metrics = sorted({name for one in report.outcomes for name in one.metrics})
    counts = sorted({name for one in report.outcomes for name in one.counts})
    beside = sorted({name for one in report.outcomes for name in one.beside})
    rows = []
    for one in report.outcomes:
        row: dict[str, str | float | None] = list_outcome_cells(one)
        row |= {f"metric {name}": one.metrics.get(name, "") for name in metrics}
        row |= {f"count {name}": one.counts.get(name, "") for name in counts}
        for name in beside:
            usage = one.beside.get(name, Usage())
            row |= {f"{name}_calls": usage.calls, f"{name}_tokens": usage.tokens, f"{name}_dollars": usage.dollars}
        rows.append(row)
    out = io.StringIO()
    # CRLF, as RFC 4180 has it.
    writer = csv.writer(out, lineterminator="\r\n")
    for cells in (rows[0], *(row.values() for row in rows)):
        # Hidden characters go first: one before = would hide a formula.
        writer.writerow(guard_formula(drop_hidden_characters(one)) if isinstance(one, str) else one for one in cells)
    return out.getvalue()


def list_outcome_cells(one: Outcome) -> dict[str, str | float | None]:
    texts = {"gold": " | ".join(one.gold), "tags": " ".join(one.tags), "reasons": " | ".join(one.reasons)}
    # A technique's seconds are those of the case, not of its calls.
    cells: dict[str, Any] = {**dataclass_values(one), **texts, **dataclass_values(one.usage), "seconds": one.seconds}
    return {name: cell for name, cell in cells.items() if not isinstance(cell, Mapping | Usage)}
