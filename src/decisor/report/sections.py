"""The parts of the page between the results and the list of cases: charts, groups, comparisons, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from decisor.evaluation.failure_judge import Agreement
from decisor.evaluation.preference_ranks import Ranks
from decisor.evaluation.win_rates import WinRate
from decisor.plurals import counted
from decisor.render.markup import Html, join, table, tag
from decisor.render.svg import swatch
from decisor.report import svg
from decisor.report.charts import Chart
from decisor.report.document import Benchmark, Diff, Report
from decisor.report.formatting import agreed, percent, points, probability, short, spoken, won_over
from decisor.report.palette import Palette
from decisor.report.results import metric_cell, results
from decisor.statistics.compare import Comparison, Side
from decisor.statistics.summary import SummaryRow

PAIRED = """On the same cases: the difference in accuracy, in points, with its bootstrap interval, and p by McNemar’s
exact test (with repeats, by flipping signs), corrected by Holm for all rows."""
WRONG = "The class of each answer that is not right, as a share of all outcomes."
MARKS = "Runs with each mark: their share of all outcomes, and how many of them came out right."


def benchmark_section(one: Benchmark, report: Report, colours: Palette) -> Html:
    """Everything about one benchmark."""
    plots = [chart for chart in one.charts if chart.kind != "forest"]
    figures = tag("div", *(figure(chart, colours) for chart in plots), cls="charts")
    return tag(
        "section", tag("h2", one.name if len(report.benchmarks) > 1 else "Results"), results(one, report, colours),
        other_metrics(one, report), groups(one, report),
        join(tag("h3", "Charts"), figures) if plots else "",
        comparisons("Techniques against each other", PAIRED, one.comparisons, report), failures(one, report),
        paper_tables(one),
        id=slug(one.name),
    )  # fmt: skip


def groups(one: Benchmark, report: Report) -> Html:
    """Accuracy by technique and group, shaded."""
    names = sorted({row.group for row in one.rows if row.group})
    if not names:
        return Html()
    by_side_and_group = {(report.label(Side(row.technique, row.model)), row.group): row for row in one.rows}
    body = [
        tag("tr", tag("th", side, scope="row"), *(accuracy_cell(by_side_and_group.get((side, name))) for name in names))
        for side in dict.fromkeys(side for side, _ in by_side_and_group)
    ]
    head = join(tag("th", "Technique"), *(tag("th", name) for name in names))
    return join(tag("h3", "By group"), table(head, join(*body), "heat"))


def accuracy_cell(row: SummaryRow | None) -> Html:
    if row is None or row.accuracy is None or row.interval is None:
        return tag("td")
    within = f"{percent(row.interval.low)} to {percent(row.interval.high)}, of {row.counted}"
    return heat(row.accuracy, percent(row.accuracy, 1), within)


def heat(share: float, text: str, small: str) -> Html:
    """A cell shaded by a share."""
    return tag("td", tag("i"), tag("span", text), tag("small", small), cls=f"h{round(10 * share)}")


def other_metrics(one: Benchmark, report: Report) -> Html:
    """Every metric and the mean of every count, folded away."""
    overall = [row for row in one.rows if not row.group]
    counts = sorted({name for row in overall for name in row.counts})
    if not one.metrics and not counts:
        return Html()
    body = [
        tag("tr", tag("th", report.label(Side(row.technique, row.model)), scope="row"),
            *(metric_cell(row, name) for name in one.metrics),
            *(tag("td", f"{row.counts[name]:.3g}" if name in row.counts else "", cls="n") for name in counts))
        for row in overall
    ]  # fmt: skip
    head = join(tag("th", "Technique"), *(tag("th", spoken(name), cls="n") for name in (*one.metrics, *counts)))
    summary = tag("summary", "All metrics and counts: means, metrics with 95 % bootstrap intervals")
    return tag("details", summary, table(head, join(*body)), cls="more")


def figure(chart: Chart, colours: Palette) -> Html:
    """A chart with its legend and the same figures as a table."""
    badge = tag("span", "published", cls="badge")
    legend = [tag("li", swatch(colours(one)), one.name, badge if one.published else "") for one in chart.series]
    return tag(
        "figure", tag("figcaption", chart.title), tag("ul", *legend, cls="legend"), svg.draw(chart, colours),
        tag("p", chart.note, cls="note") if chart.note else "", figures_of(chart), cls="panel",
    )  # fmt: skip


def figures_of(chart: Chart) -> Html:
    lines = []
    for one in chart.series:
        for mark in one.marks:
            place = mark.label if mark.label not in ("", one.name) else short(mark.x)
            within = f"{percent(mark.interval.low, 1)} to {percent(mark.interval.high, 1)}" if mark.interval else ""
            values = (place, percent(mark.y, 1), within, mark.of or "")
            lines.append(tag("tr", tag("td", one.name), *(tag("td", value, cls="n") for value in values)))
    heads = ("", chart.x_label or "at", chart.y_label, "95 %", "of")
    top = tag("tr", *(tag("th", head, cls="n") for head in heads))
    figure_table = tag("table", tag("thead", top), tag("tbody", *lines))
    return tag("details", tag("summary", "Figures"), tag("div", figure_table, cls="scroll"))


def comparisons(
    title: str, lead: str, pairs: Sequence[Comparison], report: Report, sides: tuple[str, str] = ("This", "That")
) -> Html:
    if not pairs:
        return Html()
    only = (f"Only {side.lower()} right" for side in sides)
    heads = (*sides, "Difference", "p (Holm)", "Clear?", "", *only, "Pairs", "p")
    head = join(*(tag("th", name, cls=None if at in (0, 1, 5) else "n") for at, name in enumerate(heads)))
    most = max(max(abs(one.interval.low), abs(one.interval.high)) for one in pairs)
    reach = next(size for size in (0.1, 0.25, 0.5, 1.0, 10.0) if most <= size)
    body = join(*(comparison(one, report, reach) for one in pairs))
    return join(tag("h3", title), tag("p", lead, cls="lead"), table(head, body))


def comparison(one: Comparison, report: Report, reach: float) -> Html:
    """``reach``: the difference at either end of the drawing."""
    within = f"{points(one.interval.low)} to {points(one.interval.high)}"
    clear = one.p_holm < 0.05
    left = tag("small", f" ({one.left_out} left out)") if one.left_out else ""
    values = (one.only_one, one.only_other, join(one.pairs, left), probability(one.p))
    return tag(
        "tr", tag("th", report.label(one.one), scope="row"), tag("td", report.label(one.other)),
        tag("td", points(one.difference), tag("br"), tag("small", within), cls="n"),
        tag("td", probability(one.p_holm), cls="n"),
        tag("td", tag("span", "yes" if clear else "no", cls="yes" if clear else "no"), cls="n"),
        tag("td", svg.effect(one.difference, one.interval, reach, f"{points(one.difference)}, 95 % interval {within}")),
        *(tag("td", value, cls="n") for value in values),
    )  # fmt: skip


def failures(one: Benchmark, report: Report) -> Html:
    """Failure classes and marks, each as a share of the technique's outcomes, and how runs ended."""
    rows = {report.label(Side(row.technique, row.model)): row for row in one.rows if not row.group}
    ended = {side: row.stopped for side, row in rows.items()}
    odd = any(set(classes) - {"answered"} for classes in ended.values())
    return join(
        tally("What went wrong", WRONG, {side: row.failures for side, row in rows.items()}, rows),
        tally("What happened on the way", MARKS, {side: marks(row) for side, row in rows.items()}, rows, right=True),
        tally("How runs ended", "", ended, rows) if odd else "",
    )


def ranks_section(ranks: Sequence[Ranks]) -> Html:
    """Mean ranks, best first."""
    lines = [
        tag("tr", tag("th", name, scope="row"), tag("td", one.benchmark), tag("td", f"{rank:.2f}", cls="n"),
            tag("td", one.cases, cls="n"), tag("td", one.unread, cls="n"))
        for one in ranks for name, rank in sorted(one.ranks.items(), key=lambda item: (item[1], item[0]))
    ]  # fmt: skip
    heads = ("Technique", "Benchmark", "Mean rank", "Cases", "Not read")
    head = join(*(tag("th", name, cls="n" if at > 1 else None) for at, name in enumerate(heads)))
    judge = ", ".join(dict.fromkeys(one.judge for one in ranks))
    lead = f"Every two techniques’ answers to a case, compared by {judge} in both orders; 1 is best."
    return tag("section", tag("h2", "Preference ranks"), tag("p", lead, cls="lead"), table(head, join(*lines)),
               id="ranks")  # fmt: skip


def wins_section(wins: Sequence[WinRate]) -> Html:
    """A sentence for each."""
    lines = (tag("li", won_over(one)) for one in wins)
    return tag("section", tag("h2", "Win rates"), tag("ul", *lines), id="wins")


def paper_tables(one: Benchmark) -> Html:
    """The tables of the benchmark's papers, folded away, what was published in them marked."""
    badge = tag("span", "published", cls="badge")
    parts = []
    for paper in one.tables:
        body = [tag("tr", tag("th", line.cells[0], " ", badge if line.published else "", scope="row"),
                    *(tag("td", cell, cls="n") for cell in line.cells[1:])) for line in paper.lines]  # fmt: skip
        head = join(*(tag("th", name, cls="n" if at else None) for at, name in enumerate(paper.head)))
        note = tag("p", f"{paper.source}. {paper.note}".strip(), cls="note")
        parts.append(tag("details", tag("summary", paper.title), table(head, join(*body)), note, cls="more"))
    return join(tag("h3", "The tables of the papers"), *parts) if parts else Html()


def opinion_section(agreement: Agreement) -> Html:
    """A judge's classes beside the rules'."""
    rules = sorted({rule for rule, _, _ in agreement.table})
    judge_classes = sorted({name for _, name, _ in agreement.table})
    counts = Counter({(rule, name): many for rule, name, many in agreement.table})
    lines = [
        tag("tr", tag("th", spoken(rule), scope="row"),
            *(heat(counts[rule, name] / agreement.read, str(counts[rule, name]), "") for name in judge_classes))
        for rule in rules
    ]  # fmt: skip
    head = join(tag("th", "By rule, and by the judge:"), *(tag("th", spoken(name)) for name in judge_classes))
    return tag(
        "section", tag("h2", "A second opinion on failures"), tag("p", agreed(agreement), cls="lead"),
        table(head, join(*lines), "heat") if lines else "", id="opinion",
    )  # fmt: skip


def marks(row: SummaryRow) -> dict[str, int]:
    """Tags but for those that have a chart, and those that only say again what was right."""
    return {name: many for name, many in row.tags.items()
            if name not in ("SR", "MR", "none") and not name.startswith("fixed:")}  # fmt: skip


def tally(
    title: str, lead: str, by_side: Mapping[str, Mapping[str, int]], rows: Mapping[str, SummaryRow], right: bool = False
) -> Html:
    """Counts by technique; with ``right`` also the share of the tagged outcomes that were right."""
    names = sorted({name for counts in by_side.values() for name in counts})
    if not names:
        return Html()
    body = []
    for side, counts in by_side.items():
        many = rows[side].outcomes
        cells = []
        for name in names:
            share = counts.get(name, 0) / many
            small = percent(share)
            if right and name in counts:
                small += f", {percent(rows[side].tags_right.get(name, 0) / counts[name])} right"
            cells.append(heat(share, str(counts.get(name, 0)), small))
        body.append(tag("tr", tag("th", side, scope="row"), *cells))
    head = join(tag("th", "Technique"), *(tag("th", spoken(name)) for name in names))
    return join(tag("h3", title), tag("p", lead, cls="lead") if lead else "", table(head, join(*body), "heat"))


def diff_section(diff: Diff, report: Report) -> Html:
    """This run against an earlier one; the cases that changed are in the list below, by its filter."""
    gained = sum(one.after == "right" for one in diff.changed)
    lost = sum(one.before == "right" for one in diff.changed)
    others = len(diff.changed) - gained - lost
    lead = f"{counted(gained, 'case')} gained, {lost} lost, {others} changed between other outcomes."
    missing = [
        tag("p", f"Only in {where}: {', '.join(names)}", cls="note")
        for where, names in (("this run", diff.only_here), ("the earlier run", diff.only_there)) if names
    ]  # fmt: skip
    return tag(
        "section", tag("h2", "Against the earlier run"), tag("p", lead, cls="lead"),
        comparisons("By technique", PAIRED, diff.comparisons, report, ("Now", "Before")), *missing, id="diff",
    )  # fmt: skip


def slug(name: str) -> str:
    """
    >>> slug("DQA: locating <x>")
    'b-dqa--locating--x-'
    """
    return "b-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower())
