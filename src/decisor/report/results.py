"""The table of results of a benchmark: ours with intervals and outcomes, below it what others published."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.benchmarks.paper_figures import PublishedFigure
from decisor.render.markup import Html, join, table, tag
from decisor.render.svg import swatch
from decisor.report import svg
from decisor.report.document import Benchmark, Report
from decisor.report.formatting import beside, counted, money, percent, say_unmeasured, short, spoken
from decisor.report.palette import Palette
from decisor.statistics.compare import Side
from decisor.statistics.summary import STATES, SummaryRow

MAIN_METRICS = 3
ACCURACIES = ("accuracy", "acc")
NO_SHARE = ("seconds", "preference_rank")
FEW = 8
"""So many published rows are shown at first."""
PUBLISHED = "Published by others, with other models and settings"


def results(one: Benchmark, report: Report, colours: Palette) -> Html:
    overall = [row for row in one.rows if not row.group]
    metrics = [name for name in one.metrics if name not in ("elo", "accuracy")][:MAIN_METRICS]
    ticks = tag("div", *(tag("span", at) for at in (0, 25, 50, 75, 100)), cls="ticks")
    head = join(
        tag("th", "Technique"), tag("th", ticks, cls="plotcell"), tag("th", "Accuracy", cls="n"), tag("th", "Outcomes"),
        *(tag("th", spoken(name), cls="n") for name in metrics), tag("th", "Spent on a case", cls="n"),
    )  # fmt: skip
    ours = [result(row, metrics, report, colours) for row in overall]
    ranked = sorted(one.published, key=lambda figure: figure.technique not in {row.technique for row in overall})
    theirs, sources = published_rows(ranked, 5 + len(metrics))
    left = sum(row.outcomes - row.counted for row in overall)
    note = f"{counted(left, 'outcome')} crashed or could not be scored: left out of accuracy, never counted as wrong."
    results_table = table(head, join(*ours, *theirs), "results")
    return join(results_table, state_legend(), tag("p", note, cls="note") if left else "", sources)


def result(row: SummaryRow, metrics: Sequence[str], report: Report, colours: Palette) -> Html:
    name = report.label(Side(row.technique, row.model))
    number = colours.of(name)
    plot, figure = Html(), join("not scored")
    if row.accuracy is not None and row.interval is not None:
        within = f"{percent(row.interval.low, 1)} to {percent(row.interval.high, 1)}"
        title = f"{percent(row.accuracy, 1)}, 95 % interval {within}"
        plot = svg.whisker_row(row.accuracy, row.interval, number, title)
        figure = join(tag("span", percent(row.accuracy, 1), cls="big"), tag("br"), tag("small", within))
    words = ", ".join(f"{row.states[state]} {spoken(state)}" for state in STATES if row.states[state])
    stack = svg.stack([(state, row.states[state]) for state in STATES], words)
    dollars = None if row.usage.dollars is None else row.usage.dollars / row.outcomes
    calls, tokens = short(row.usage.calls / row.outcomes), short(row.usage.tokens / row.outcomes)
    cost = f"{money(dollars)}, {row.seconds:.3g} s" if dollars is not None else f"{row.seconds:.3g} s"
    cost_cell = join(tag("span", f"{calls} calls, {tokens} tokens"), " ", tag("span", cost))
    if row.unread:
        cost_cell = join(cost_cell, " ", tag("span", f"{percent(row.unread, 1)} of replies unread"))
    if unmeasured := say_unmeasured(row):
        cost_cell = join(cost_cell, " ", tag("span", unmeasured))
    if row.beside:
        cost_cell = join(cost_cell, *(join(" ", tag("span", f"beside it: {one}")) for one in beside(row)))
    return tag(
        "tr", tag("th", swatch(number), " ", name, scope="row"), tag("td", plot, cls="plotcell"),
        tag("td", figure, cls="n"), tag("td", stack, tag("span", words, cls="stackwords"), cls="states"),
        *(metric_cell(row, metric) for metric in metrics),
        tag("td", cost_cell, cls="n extra spent"),
    )  # fmt: skip


def metric_cell(row: SummaryRow, metric: str) -> Html:
    estimate = row.metrics.get(metric)
    if estimate is None:
        return tag("td", cls="n extra", data_label=spoken(metric))
    mean, within = estimate
    figure = tag("span", f"{mean:.3g}", tag("br"), tag("small", f"{within.low:.3g} to {within.high:.3g}"))
    return tag("td", figure, cls="n extra", data_label=spoken(metric))


def published_rows(figures: Sequence[PublishedFigure], columns: int) -> tuple[list[Html], Html]:
    """A row for each technique and source, and the list of sources that their numbers refer to."""
    if not figures:
        return [], Html()
    sources = list(dict.fromkeys(one.source for one in figures))
    rows: dict[tuple[str, str], list[PublishedFigure]] = {}
    for one in figures:
        rows.setdefault((one.technique, one.source), []).append(one)
    more = len(rows) - FEW
    button = tag("button", f"Show {more} more", type="button", cls="cite pubs") if more > 0 else ""
    lines = [tag("tr", tag("td", PUBLISHED, " ", button, colspan=columns), cls="pubhead")]
    lines += [
        published_row(technique, some, sources.index(source) + 1, columns, at >= FEW)
        for at, ((technique, source), some) in enumerate(rows.items())
    ]
    return lines, tag("ul", *(tag("li", f"{at} {source}") for at, source in enumerate(sources, 1)), cls="sources")


def published_row(technique: str, figures: Sequence[PublishedFigure], number: int, columns: int, hidden: bool) -> Html:
    """Accuracies as marks on the axis of ours; everything else in words."""
    main = [one for one in figures if one.metric in ACCURACIES]
    words = [f"{one.group} {one.value:g} %".strip() for one in main if len(main) > 1 or one.group]
    words += [f"{spoken(one.metric)} {one.value:g}{'' if one.metric in NO_SHARE else ' %'}" for one in figures
              if one.metric not in ACCURACIES]  # fmt: skip
    plot = svg.published_row([one.value / 100 for one in main], f"published: {', '.join(words)}") if main else Html()
    name = tag("th", swatch(None), " ", technique, tag("sup", number), scope="row")
    return tag(
        "tr", name, tag("td", plot, cls="plotcell"),
        tag("td", percent(main[0].value / 100, 1) if len(main) == 1 else "", cls="n"),
        tag("td", ", ".join(words), colspan=columns - 3, cls="rest"), cls="pub", hidden=hidden,
    )  # fmt: skip


def state_legend() -> Html:
    return tag("ul", *(tag("li", svg.state_swatch(state), spoken(state)) for state in STATES), cls="legend note")
