"""A report as Markdown and as CSV. Cells are model output: nothing in them is markup, and none is a formula."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from decisor.lab.benchmark import Outcome
from decisor.lab.report.charts import (
    SPACE,
    describe_agreement,
    describe_auxiliary_costs,
    describe_spending,
    describe_unmeasured,
    format_interval,
    format_percent,
    format_points,
    format_points_range,
    format_probability,
    spell_out_name,
)
from decisor.lab.report.document import Report
from decisor.lab.statistics import STATES, PairedComparison, SummaryRow
from decisor.system.serialization import dataclass_values
from decisor.types import Usage

SPECIAL = re.compile(r"([\\`*\[\]<>|~&:@]|(?<!\w)_|_(?!\w))")
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r]")


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
    return line if _is_figure(line) else SPECIAL.sub(r"\\\1", line)


def drop_hidden_characters(text: str) -> str:
    """Remove control characters and marks that reorder or hide text."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))


def _is_figure(text: str) -> bool:
    return re.fullmatch(r"[\u2212+<-]?\$?[\d.,]+[kMG]?(?: %)?(?: to [\u2212+-]?[\d.,]+(?: %)?)?", text) is not None


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
    writer.writerows(map(escape_csv_cell, cells) for cells in (rows[0], *(row.values() for row in rows)))
    return out.getvalue()


def list_outcome_cells(one: Outcome) -> dict[str, str | float | None]:
    texts = {"gold": " | ".join(one.gold), "tags": " ".join(one.tags), "reasons": " | ".join(one.reasons)}
    # A technique's seconds are those of the case, not of its calls.
    cells: dict[str, Any] = {**dataclass_values(one), **texts, **dataclass_values(one.usage), "seconds": one.seconds}
    return {name: cell for name, cell in cells.items() if not isinstance(cell, Mapping | Usage)}


def escape_csv_cell(value: str | float | None) -> str | float | None:
    """Return a cell that no spreadsheet takes for a formula.

    Such a text gets an apostrophe in front; numbers stay numbers.

    >>> escape_csv_cell("=HYPERLINK(1)"), escape_csv_cell(" @x"), escape_csv_cell(-3.5), escape_csv_cell("plain")
    ("'=HYPERLINK(1)", "' @x", -3.5, 'plain')
    """
    if not isinstance(value, str):
        return value
    text = drop_hidden_characters(value)
    # Both are looked at: a hidden character before = would hide a formula, and dropping it would bare one.
    return "'" + text if FORMULA.match(value) or FORMULA.match(text) else text
