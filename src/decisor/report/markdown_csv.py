"""A report as Markdown and as CSV. Cells are model output: nothing in them is markup, and none is a formula."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence

from decisor.benchmarks.paper_tables import PaperTable
from decisor.outcome import Outcome
from decisor.plurals import counted
from decisor.report import formatting
from decisor.report.document import Report
from decisor.report.formatting import SPACE, agreed, money, percent, points, probability, short, spoken, won_over
from decisor.statistics.compare import Comparison, Side
from decisor.statistics.summary import STATES, SummaryRow
from decisor.types import Usage

SPECIAL = re.compile(r"([\\`*\[\]<>|~&:@]|(?<!\w)_|_(?!\w))")
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r]")
COLUMNS = ("benchmark", "case", "group", "technique", "model", "repeat", "state", "answer", "gold", "text", "stopped",
           "failure", "tags", "reasons", "calls", "actions", "prompt_tokens", "cache_reads", "completion_tokens",
           "dollars", "seconds", "critical")  # fmt: skip


def markdown(report: Report) -> str:
    """Tables of results, published figures and comparisons."""
    parts = [f"# {plain(report.title)}"]
    for one in report.benchmarks:
        overall = [row for row in one.rows if not row.group]
        parts += [f"## {plain(one.name)}", results(overall, report)]
        parts += [plain(line) for line in asides(overall, report)]
        if grouped := [row for row in one.rows if row.group]:
            parts += ["### By group", results(grouped, report, groups=True)]
        if one.comparisons:
            parts += ["### Techniques against each other", comparisons(one.comparisons, report)]
        if one.published:
            lines = [(figure.technique, figure.group, spoken(figure.metric), f"{figure.value:g}", figure.source)
                     for figure in one.published]  # fmt: skip
            parts += ["### Published by others", grid(("technique", "part", "metric", "value", "source"), lines)]
        for paper in one.tables:
            parts += [f"### {plain(paper.title)}", paper_table(paper), plain(f"{paper.source}. {paper.note}".strip())]
    for ranks in report.ranks:
        best = sorted(ranks.ranks.items(), key=lambda item: item[1])
        cases = counted(ranks.cases, "case")
        parts += [f"## Preference ranks on {plain(ranks.benchmark)}, {cases}, by {plain(ranks.judge)}",
                  grid(("technique", "mean rank"), [(name, f"{rank:.2f}") for name, rank in best])]  # fmt: skip
    if report.wins:
        parts += ["## Win rates", *(plain(won_over(one)) for one in report.wins)]
    if report.opinion:
        parts += ["## A second opinion on failures", plain(agreed(report.opinion))]
    if report.diff:
        gained = sum(one.after == "right" for one in report.diff.changed)
        lost = sum(one.before == "right" for one in report.diff.changed)
        parts += ["## Against the earlier run", f"{gained} gained, {lost} lost.",
                  comparisons(report.diff.comparisons, report)]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def paper_table(paper: PaperTable) -> str:
    names = (f"{line.cells[0]} (published)" if line.published else line.cells[0] for line in paper.lines)
    return grid(paper.head, [(name, *line.cells[1:]) for name, line in zip(names, paper.lines, strict=True)])


def results(rows: Sequence[SummaryRow], report: Report, groups: bool = False) -> str:
    metrics = sorted({name for row in rows for name in row.metrics} - {"accuracy"})
    head = ["technique", *(["group"] if groups else []), "accuracy", "95 %", *(spoken(state) for state in STATES),
            *(spoken(name) for name in metrics), "calls", "tokens", "cost", "seconds",
            *(["unread"] if (unread := any(row.unread for row in rows)) else [])]  # fmt: skip
    lines = []
    for row in rows:
        within = f"{percent(row.interval.low, 1)} to {percent(row.interval.high, 1)}" if row.interval else ""
        dollars = None if row.usage.dollars is None else row.usage.dollars / row.outcomes
        lines.append([
            report.label(Side(row.technique, row.model)), *([row.group] if groups else []),
            "" if row.accuracy is None else percent(row.accuracy, 1), within,
            *(str(row.states[state]) for state in STATES),
            *(f"{row.metrics[name][0]:.3g}" if name in row.metrics else "" for name in metrics),
            short(row.usage.calls / row.outcomes), short(row.usage.tokens / row.outcomes), money(dollars),
            f"{row.seconds:.3g}", *([percent(row.unread, 1)] if unread else []),
        ])  # fmt: skip
    return grid(head, lines)


def asides(rows: Sequence[SummaryRow], report: Report) -> list[str]:
    """List what LMs cost that the benchmark asked itself, and metrics that were left out, a line a technique."""
    costs = [(report.label(Side(row.technique, row.model)), "; ".join(formatting.beside(row))) for row in rows]
    notes = [(report.label(Side(row.technique, row.model)), formatting.say_unmeasured(row)) for row in rows]
    lines = [f"Beside {name}, an outcome: {cost}." for name, cost in costs if cost]
    return lines + [f"{name}: {note}" for name, note in notes if note]


def comparisons(pairs: Sequence[Comparison], report: Report) -> str:
    lines = [
        (report.label(one.one), report.label(one.other), points(one.difference),
         f"{points(one.interval.low)} to {points(one.interval.high)}", str(one.only_one), str(one.only_other),
         str(one.pairs), str(one.left_out), probability(one.p), probability(one.p_holm))
        for one in pairs
    ]  # fmt: skip
    head = ("this", "against", "points", "95 %", "only this", "only that", "pairs", "left out", "p", "p (Holm)")
    return grid(head, lines) if lines else ""


def grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table. Cells are escaped.

    >>> print(grid(["a", "b"], [["x|y", "<b>"]]))
    | a | b |
    |---|---|
    | x\\|y | \\<b\\> |
    """
    table_lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    table_lines += [f"| {' | '.join(plain(cell) for cell in line)} |" for line in lines]
    return "\n".join(table_lines)


def plain(text: str) -> str:
    """A text that Markdown shows as it is, on one line.

    >>> plain("[x](javascript:alert(1))")
    '\\\\[x\\\\](javascript\\\\:alert(1))'
    """
    line = " ".join(visible(text).replace(SPACE, " ").split())
    return line if _figure(line) else SPECIAL.sub(r"\\\1", line)


def visible(text: str) -> str:
    """Without control characters and marks that reorder or hide text."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))


def _figure(text: str) -> bool:
    return re.fullmatch(r"[\u2212+<-]?\$?[\d.,]+[kMG]?(?: %)?(?: to [\u2212+-]?[\d.,]+(?: %)?)?", text) is not None


def as_csv(report: Report) -> str:
    """One line for each outcome; metrics, counts and what LMs beside the technique cost as columns of their own."""
    metrics = sorted({name for one in report.outcomes for name in one.metrics})
    counts = sorted({name for one in report.outcomes for name in one.counts})
    beside = sorted({name for one in report.outcomes for name in one.beside})
    cost_columns = [f"{name}_{what}" for name in beside for what in ("calls", "tokens", "dollars")]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([*COLUMNS, *(cell(f"metric {name}") for name in metrics), *(cell(f"count {n}") for n in counts),
                     *map(cell, cost_columns)])  # fmt: skip
    for one in report.outcomes:
        writer.writerow(cell(value) for value in (*fields(one), *(one.metrics.get(name, "") for name in metrics),
                                                  *(one.counts.get(name, "") for name in counts),
                                                  *aside_fields(one, beside)))  # fmt: skip
    return out.getvalue()


def aside_fields(one: Outcome, names: Sequence[str]) -> list[float | None]:
    usages = [one.beside.get(name, Usage()) for name in names]
    return [value for usage in usages for value in (usage.calls, usage.tokens, usage.dollars)]


def fields(one: Outcome) -> tuple[str | float | None, ...]:
    usage = one.usage
    return (
        one.benchmark, one.case, one.group, one.technique, one.model, one.repeat, one.state, one.answer,
        " | ".join(one.gold), one.text, one.stopped, one.failure, " ".join(one.tags), " | ".join(one.reasons),
        usage.calls, usage.actions, usage.prompt_tokens, usage.cache_reads, usage.completion_tokens, usage.dollars,
        one.seconds, one.critical,
    )  # fmt: skip


def cell(value: str | float | None) -> str | float | None:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay numbers.

    >>> cell("=HYPERLINK(1)"), cell(" @x"), cell(-3.5), cell("plain")
    ("'=HYPERLINK(1)", "' @x", -3.5, 'plain')
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    return "'" + text if FORMULA.match(value) or FORMULA.match(text) else text
