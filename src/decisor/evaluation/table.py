"""The plain table of a run. It holds no time of a clock, so a resumed run prints what an uninterrupted one does. Its
figures are those of a report: both are made by ``summary``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from decisor.outcome import Outcome
from decisor.statistics.summary import STATES, SummaryRow, summarise

HEAD = ("benchmark", "technique", "model", "cases", *(state.replace("_", " ") for state in STATES), "accuracy %",
        "95 %", "calls", "tokens", "dollars")  # fmt: skip


def table(outcomes: Iterable[Outcome]) -> str:
    """Columns of text. States count outcomes: a case has one for each repeat. Accuracy: right ones of those that were
    judged or ran over their budget; the other two states stand beside it. Calls and tokens are means over outcomes,
    dollars the sum."""
    rows = summarise(map(slim, outcomes))
    lines = [HEAD, *(cells(row) for row in sorted(rows, key=lambda row: (row.benchmark, row.technique, row.model)))]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEAD))]
    return "\n".join(padded_line(line, widths) for line in lines)


def slim(one: Outcome) -> Outcome:
    """What the table needs of an outcome, so that any number of them can be held."""
    return Outcome(
        benchmark=one.benchmark,
        case=one.case,
        technique=one.technique,
        model=one.model,
        repeat=one.repeat,
        state=one.state,
        usage=one.usage,
    )


def cells(row: SummaryRow) -> tuple[str, ...]:
    dollars = row.usage.dollars
    return (
        row.benchmark, row.technique, row.model, str(row.cases), *(str(row.states[state]) for state in STATES),
        "-" if row.accuracy is None else f"{100 * row.accuracy:.1f}",
        "-" if row.interval is None else f"{100 * row.interval.low:.1f}-{100 * row.interval.high:.1f}",
        f"{row.usage.calls / row.outcomes:.1f}", f"{row.usage.tokens / row.outcomes:,.0f}",
        "unknown" if dollars is None else f"{dollars:.4f}",
    )  # fmt: skip


def padded_line(row: Sequence[str], widths: Sequence[int]) -> str:
    left = 3
    padded = [cell.ljust(width) if at < left else cell.rjust(width)
              for at, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
    return "  ".join(padded).rstrip()
