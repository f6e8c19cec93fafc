"""A report as one HTML file that needs nothing else: no network, no server, no build.

Its content policy runs only the one script that is named by its hash, and loads nothing. Words of LLMs and data are in
JSON blocks, which no browser runs, and are shown as text. A case's story is read when it is opened. Between the
results and the list of cases are charts, groups, comparisons and failures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import TextIO

from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.comparisons import Agreement
from decisor.lab.evaluation.store import Key
from decisor.lab.report.charts import (
    describe_agreement,
    draw_track,
    format_interval,
    format_money,
    format_percent,
    format_points,
    format_points_range,
    format_probability,
    format_short_number,
    spell_out_name,
)
from decisor.lab.report.document import BenchmarkReport, Report, ReportDiff, figure_table, metric_cell, render_results
from decisor.lab.statistics import STATES, ComparedSide, PairedComparison, SummaryRow
from decisor.system.serialization import finite_json_value, json_value
from decisor.system.wording import format_count
from decisor.trace.events import TraceEntry
from decisor.views.chart_drawing import chart_html
from decisor.views.markup import Html, csp_hash, join, json_block, read_static, tag
from decisor.views.page import cut_text, join_modules, story_json

PAIRED = """On the same cases: the difference in accuracy, in points, with its bootstrap interval, and p by McNemar’s
exact test (with repeats, by flipping signs), corrected by Holm for all rows."""
WRONG = "The class of each answer that is not right, as a share of all outcomes."
MARKS = "Runs with each mark: their share of all outcomes, and how many of them came out right."


def render_benchmark(one: BenchmarkReport, report: Report, numbers: Mapping[str, int]) -> Html:
    """Return the section of one benchmark."""
    plots = []
    for chart in one.charts:
        series = tuple(replace(line, number=numbers.get(line.name)) for line in chart.series)
        plots.append(chart_html(replace(chart, series=series)))
    figures = tag("div", *plots, cls="charts")
    return tag(
        "section",
        tag("h2", one.name if len(report.benchmarks) > 1 else "Results"),
        render_results(one, report, numbers),
        render_all_metrics(one, report),
        render_groups(one, report),
        join(tag("h3", "Charts"), figures) if plots else "",
        render_comparisons("Techniques against each other", PAIRED, one.comparisons, report),
        render_failures(one, report),
        id=section_anchor(one.name),
    )


def render_groups(one: BenchmarkReport, report: Report) -> Html:
    """Return the accuracy by technique and group, shaded."""
    names = sorted({row.group for row in one.rows if row.group})
    if not names:
        return Html()
    rows = {(report.label_of_row(row), row.group): row for row in one.rows}
    sides = dict.fromkeys(side for side, _ in rows)
    body = ([side, *(accuracy_cell(rows.get((side, name))) for name in names)] for side in sides)
    return join(tag("h3", "By group"), figure_table(("Technique", *names), body, "heat"))


def accuracy_cell(row: SummaryRow | None) -> Html:
    if row is None or row.accuracy is None or row.interval is None:
        return tag("td")
    within = f"{format_interval(row.interval, 0)}, of {row.counted}"
    return render_shaded_cell(row.accuracy, format_percent(row.accuracy, 1), within)


def render_shaded_cell(share: float, text: str, small: str) -> Html:
    """Return a table cell shaded by a share."""
    return tag("td", tag("i"), tag("span", text), tag("small", small), cls=f"h{round(10 * share)}")


def render_all_metrics(one: BenchmarkReport, report: Report) -> Html:
    """Return every metric and the mean of every count, folded away."""
    overall = [row for row in one.rows if not row.group]
    counts = sorted({name for row in overall for name in row.counts})
    if not one.metrics and not counts:
        return Html()
    body = (
        [
            report.label_of_row(row),
            *(metric_cell(row, name) for name in one.metrics),
            *(f"{row.counts[name]:.3g}" if name in row.counts else "" for name in counts),
        ]
        for row in overall
    )
    heads = ("Technique", *map(spell_out_name, (*one.metrics, *counts)))
    summary = tag("summary", "All metrics and counts: means, metrics with 95 % bootstrap intervals")
    return tag("details", summary, figure_table(heads, body), cls="more")


def render_comparisons(
    title: str, lead: str, pairs: Sequence[PairedComparison], report: Report, sides: tuple[str, str] = ("This", "That")
) -> Html:
    if not pairs:
        return Html()
    heads = (*sides, "Difference", "p (Holm)", "Clear?", "", *(f"Only {side.lower()} right" for side in sides))
    most = max(max(abs(one.interval.low), abs(one.interval.high)) for one in pairs)
    # Both ends of the drawing.
    reach = next(size for size in (0.1, 0.25, 0.5, 1.0, 10.0) if most <= size)
    body = []
    for one in pairs:
        within = format_points_range(one.interval)
        low, at, high = (50 + 50 * value / reach for value in (one.interval.low, one.difference, one.interval.high))
        span, tick = ("s0 span", low, max(0.4, high - low), 3.4, 3.2), ("s0 tick", at - 0.5, 1.0, 1, 8)
        words = f"{format_points(one.difference)}, 95 % interval {within}"
        # The corrected p decides: of many pairs some differ by chance.
        clear = "yes" if one.p_holm < 0.05 else "no"
        row: list[Html | str | int] = [
            report.label(one.one),
            report.label(one.other),
            join(format_points(one.difference), tag("br"), tag("small", within)),
            format_probability(one.p_holm),
            tag("span", clear, cls=clear),
            tag("td", draw_track("effect", words, (span, tick), "M50 0V10")),
            one.only_one,
            one.only_other,
            join(one.pairs, tag("small", f" ({one.left_out} left out)") if one.left_out else None),
            format_probability(one.p),
        ]
        body.append(row)
    return join(
        tag("h3", title), tag("p", lead, cls="lead"), figure_table((*heads, "Pairs", "p"), body, text_columns=2)
    )


def render_failures(one: BenchmarkReport, report: Report) -> Html:
    """Return failure classes and marks as shares of a technique's outcomes, and how runs ended."""
    rows = {report.label_of_row(row): row for row in one.rows if not row.group}
    ended = {side: row.stopped for side, row in rows.items()}
    odd = any(set(classes) - {"answered"} for classes in ended.values())
    # Without tags that only repeat the right ones.
    marks = {
        side: {name: many for name, many in row.tags.items() if not name.startswith("fixed:")}
        for side, row in rows.items()
    }
    return join(
        render_tag_counts("What went wrong", WRONG, {side: row.failures for side, row in rows.items()}, rows),
        render_tag_counts("What happened on the way", MARKS, marks, rows, right=True),
        render_tag_counts("How runs ended", "", ended, rows) if odd else "",
    )


def render_opinion(agreement: Agreement) -> Html:
    """Return the classes of a judge beside those of the rules."""
    counts = Counter({(rule, name): count for rule, name, count in agreement.table})
    classes = sorted({name for _, name in counts})
    body = [
        [
            spell_out_name(rule),
            *(render_shaded_cell(counts[rule, name] / agreement.read, str(counts[rule, name]), "") for name in classes),
        ]
        for rule in sorted({rule for rule, _ in counts})
    ]
    heads = ("By rule, and by the judge:", *map(spell_out_name, classes))
    return tag(
        "section",
        tag("h2", "A second opinion on failures"),
        tag("p", describe_agreement(agreement), cls="lead"),
        figure_table(heads, body, "heat") if body else "",
        id="opinion",
    )


def render_tag_counts(
    title: str, lead: str, by_side: Mapping[str, Mapping[str, int]], rows: Mapping[str, SummaryRow], right: bool = False
) -> Html:
    """Return counts by technique. right: also show the share of the tagged outcomes that were right."""
    names = sorted({name for counts in by_side.values() for name in counts})
    if not names:
        return Html()
    body = []
    for side, counts in by_side.items():
        row: list[Html | str] = [side]
        for name in names:
            share = counts.get(name, 0) / rows[side].outcomes
            small = format_percent(share)
            if right and name in counts:
                small += f", {format_percent(rows[side].tags_right.get(name, 0) / counts[name])} right"
            row.append(render_shaded_cell(share, str(counts.get(name, 0)), small))
        body.append(row)
    heads = ("Technique", *map(spell_out_name, names))
    return join(tag("h3", title), tag("p", lead, cls="lead") if lead else "", figure_table(heads, body, "heat"))


def render_diff(diff: ReportDiff, report: Report) -> Html:
    """Return this run against an earlier one. The filter of the list below shows the cases that changed."""
    others = len(diff.changed) - diff.gained - diff.lost
    lead = f"{format_count(diff.gained, 'case')} gained, {diff.lost} lost, {others} changed between other outcomes."
    missing = [
        tag("p", f"Only in {where}: {', '.join(names)}", cls="note")
        for where, names in (("this run", diff.only_here), ("the earlier run", diff.only_there))
        if names
    ]
    return tag(
        "section",
        tag("h2", "Against the earlier run"),
        tag("p", lead, cls="lead"),
        render_comparisons("By technique", PAIRED, diff.comparisons, report, ("Now", "Before")),
        *missing,
        id="diff",
    )


def section_anchor(name: str) -> str:
    """Return the anchor of a benchmark's section.

    >>> section_anchor("DQA: locating <x>")
    'b-dqa--locating--x-'
    """
    return "b-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower())


TOTAL_CHARS = 40_000_000
"""About what all stories together may take."""
LEAST_CHARS, MOST_CHARS = 4_000, 60_000
SORTS = (("", "as in the run"), ("9", "most calls"), ("10", "most tokens"), ("12", "slowest"))
STORY = (
    "Each opens its story: the plan, what was asked of the data, what came back, and the decision with its evidence."
)
CHANGES = (("", "all"), ("gained", "gained"), ("lost", "lost"), ("other", "changed otherwise"), ("new", "not in it"))


def write_page(
    report: Report,
    trace: Callable[[Outcome], Sequence[TraceEntry]],
    out: TextIO,
    before: Mapping[Key, str] | None = None,
) -> None:
    """Write the page of a report. trace: returns the events of an outcome, called for one at a time so that memory
    stays flat. before: states of an earlier run by key.
    """
    own, cases = (files("decisor.lab.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    of_run = read_static("text.css") + read_static("run.css")
    style = f"{read_static('colours.css')}.told {{ {of_run} }}\n{own}{read_static('chart.css')}"
    script = join_modules(cases)
    out.write("<!doctype html>\n")
    out.write('<html lang="en">')
    out.write(render_page_head(report, style, script))
    out.write("<body>")
    out.write(render_page_body(report, before is not None))
    out.write(json_block(encode_case_rows(report, before), "rows"))
    # The more cases, the shorter each story: a page of any run can be opened.
    most = min(MOST_CHARS, max(LEAST_CHARS, TOTAL_CHARS // max(1, len(report.outcomes))))
    # One trace at a time: all of them together may not fit in memory.
    for at, outcome in enumerate(report.outcomes):
        out.write(json_block(encode_case_story(outcome, trace(outcome), most), f"s{at}"))
    out.write(tag("script", Html(script)))
    out.write("</body></html>\n")


def render_page_head(report: Report, style: str, script: str) -> Html:
    policy = (
        # Hashes name the one script and style; words of LLMs that pass for markup run nothing.
        f"default-src 'none'; script-src '{csp_hash(script)}'; style-src '{csp_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{report.title}: Decisor report"),
        tag("style", Html(style)),
    )


def render_page_body(report: Report, compared: bool) -> Html:
    # The number of a technique is its colour and shape everywhere on the page.
    names = dict.fromkeys(report.label_of_row(row) for one in report.benchmarks for row in one.rows)
    numbers = {name: number for number, name in enumerate(names)}
    several = len(report.benchmarks) > 1
    links = [
        tag("a", one.name if several else "Results", href=f"#{section_anchor(one.name)}") for one in report.benchmarks
    ]
    if report.diff:
        links.append(tag("a", "Against the earlier run", href="#diff"))
    links.append(tag("a", "Cases", href="#cases"))
    diff = render_diff(report.diff, report) if report.diff else Html()
    opinion = render_opinion(report.opinion) if report.opinion else Html()
    about = json.dumps(json_value(report.about), ensure_ascii=False, indent=2, default=str)
    settings = tag("details", tag("summary", "Settings of the run"), tag("pre", about))
    sections = (render_benchmark(one, report, numbers) for one in report.benchmarks)
    return join(
        tag(
            "header",
            tag("p", tag("b", "Decisor"), " report", cls="brand"),
            tag("h1", report.title),
            render_tiles(report),
            cls="wrap",
        ),
        tag("nav", tag("div", *links, cls="wrap"), aria_label="Parts of this report"),
        tag("main", diff, *sections, opinion, render_case_filters(report, compared), cls="wrap"),
        tag("footer", settings if report.about else "", "Made by decisor report.", cls="wrap"),
    )


def render_tiles(report: Report) -> Html:
    """Return the main figures of the run."""
    many = len(report.outcomes)
    sides = {(row.technique, row.model) for one in report.benchmarks for row in one.rows}
    best = [row for one in report.benchmarks for row in one.rows if not row.group and row.accuracy is not None]
    top = max(best, key=lambda row: row.accuracy or 0.0, default=None)
    models = sorted({row.model for one in report.benchmarks for row in one.rows})
    usage = report.usage
    cached = f" ({format_short_number(usage.cache_reads)} from a cache)" if usage.cache_reads else ""
    tokens_in, tokens_out = map(format_short_number, (usage.prompt_tokens, usage.completion_tokens))
    figures = [
        ("Cases", f"{sum(one.cases for one in report.benchmarks):,}", format_count(many, "outcome")),
        ("Techniques", str(len({technique for technique, _ in sides})), ", ".join(models) or "no model"),
        (
            "Best accuracy",
            format_percent(top.accuracy, 1) if top and top.accuracy is not None else "none",
            top.technique if top else "",
        ),
        (
            "LLM calls",
            format_short_number(usage.calls),
            f"{format_short_number(usage.calls / many)} an outcome" if many else "",
        ),
        ("Tokens", format_short_number(usage.tokens), f"{tokens_in} in{cached}, {tokens_out} out"),
        ("Cost", format_money(usage.dollars), "a price is not known" if usage.dollars is None else "all outcomes"),
    ]
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, tag("small", small, title=small)))
            for name, value, small in figures
        ),
        cls="tiles",
    )


def render_case_filters(report: Report, compared: bool) -> Html:
    """Return the filters of the list of cases. The script fills the list itself."""
    states = [
        tag("button", spell_out_name(state), " ", tag("small", ""), type="button", data_state=at, cls=state)
        for at, state in enumerate(STATES)
    ]
    every = tag("button", "all ", tag("small", ""), type="button", data_state="")
    names = list_row_names(report)
    failures = sorted({one.failure for one in report.outcomes if one.failure})
    inputs = [
        tag(
            "input",
            id="text",
            type="search",
            placeholder="Find in id, answer, gold, failure, group …",
            aria_label="Find cases by text",
        ),
        render_filter("bench", "Benchmark", number_options(names["bench"])),
        render_filter("who", "Technique", number_options(names["who"])),
        render_filter("group", "Group", number_options(names["group"])),
        render_filter("failure", "Failure", [(name, spell_out_name(name)) for name in failures]),
    ]
    if compared:
        inputs.append(render_select("change", "Against the earlier run", CHANGES, ""))
    inputs.append(render_select("sort", "Order", SORTS, ""))
    return tag(
        "section",
        tag("h2", "Cases"),
        tag("p", STORY, cls="lead"),
        tag("div", every, *states, cls="chips", role="group", aria_label="Outcome"),
        tag("div", *inputs, cls="filters"),
        tag("p", id="count", cls="count", role="status"),
        tag("ul", id="list", cls="cases panel"),
        tag("div", tag("button", "Show more", type="button"), id="more", cls="pager", hidden=True),
        id="cases",
    )


def render_filter(id: str, label: str, options: Sequence[tuple[str, str]]) -> Html:
    """Return a filter, empty if there is only one thing to choose."""
    if len(options) < 2:
        return Html()
    return render_select(id, label, (("", f"{label}: all"), *options), "")


def render_select(id: str, label: str, options: Sequence[tuple[str, str]], selection: str) -> Html:
    items = [tag("option", name, value=value, selected=value == selection) for value, name in options]
    return tag("select", *items, id=id, aria_label=label)


def number_options(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(str(at), name or "none") for at, name in enumerate(names)]


def list_row_names(report: Report) -> dict[str, list[str]]:
    """Return the names to which rows refer by number."""
    sides = (report.label(ComparedSide(one.technique, one.model)) for one in report.outcomes)
    return {
        "bench": list(dict.fromkeys(one.benchmark for one in report.outcomes)),
        "who": list(dict.fromkeys(sides)),
        "state": list(STATES),
        "group": sorted({one.group for one in report.outcomes}),
    }


def encode_case_rows(report: Report, before: Mapping[Key, str] | None) -> str:
    """Return the list of cases as JSON. It is short, as the page reads it at once."""
    names = list_row_names(report)
    # Names go once and rows refer to them by number: the list of a large run stays small.
    place = {kind: {name: at for at, name in enumerate(column)} for kind, column in names.items()}
    table_rows = []
    for one in report.outcomes:
        was = (before or {}).get(one.key)
        table_rows.append(
            [
                place["bench"][one.benchmark],
                cut_text(one.case, 200),
                place["who"][report.label(ComparedSide(one.technique, one.model))],
                one.repeat,
                place["state"][one.state],
                place["group"][one.group],
                cut_text(one.answer, 160),
                cut_text(" | ".join(one.gold), 160),
                one.failure,
                one.usage.calls,
                one.usage.tokens,
                one.usage.dollars,
                round(one.seconds, 3),
                None if was is None else place["state"][was],
            ]
        )
    return json.dumps({"names": names, "rows": table_rows}, ensure_ascii=False, separators=(",", ":"))


def encode_case_story(outcome: Outcome, events: Sequence[TraceEntry], most: int) -> str:
    """Return the story of a case as JSON: everything that it adds to its row."""
    extra = {
        "text": cut_text(outcome.text, 2000),
        "stopped": outcome.stopped,
        "critical": outcome.critical,
        "reasons": [cut_text(reason, 1000) for reason in outcome.reasons],
        "tags": outcome.tags,
        "metrics": outcome.metrics,
        "counts": {**outcome.counts, **{f"{name}_calls": used.calls for name, used in outcome.beside.items()}},
    }
    own = json.dumps(finite_json_value(extra), ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    return own if not events else own[:-1] + "," + story_json(events, most)[1:]
