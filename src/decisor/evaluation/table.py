"""The plain table of a run. It holds no time of a clock, so a resumed run prints what an uninterrupted one does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from decisor.evaluation.outcome import Outcome, State
from decisor.evaluation.statistics import wilson
from decisor.types import Usage

STATES: tuple[State, ...] = ("right", "wrong", "over_budget", "unscored", "crashed")
HEAD = ("benchmark", "technique", "model", *(state.replace("_", " ") for state in STATES), "accuracy %", "95 %",
        "calls", "tokens", "dollars")  # fmt: skip


@dataclass
class Line:
    """The outcomes of one technique on one benchmark with one model. ``usage``: what they cost, bought or replayed."""

    states: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)


def lines(outcomes: Iterable[Outcome]) -> dict[tuple[str, str, str], Line]:
    """By benchmark, technique and model. Holds no outcome, so any number of them will do."""
    found: dict[tuple[str, str, str], Line] = {}
    for outcome in outcomes:
        line = found.setdefault((outcome.benchmark, outcome.technique, outcome.model), Line())
        line.states[outcome.state] += 1
        line.usage = line.usage + outcome.usage
    return dict(sorted(found.items()))


def table(outcomes: Iterable[Outcome]) -> str:
    """Columns of text. Accuracy: right ones of those that were judged or ran over their budget; the other two states
    stand beside it. Calls and tokens are means over cases, dollars the sum."""
    rows = [HEAD, *(cells(names, line) for names, line in lines(outcomes).items())]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    return "\n".join(told(row, widths) for row in rows)


def cells(names: tuple[str, str, str], line: Line) -> tuple[str, ...]:
    right = line.states["right"]
    counted = right + line.states["wrong"] + line.states["over_budget"]
    within = wilson(right, counted)
    asked = line.states.total()
    dollars = line.usage.dollars
    return (
        *names, *(str(line.states[state]) for state in STATES),
        f"{100 * right / counted:.1f}" if counted else "-",
        f"{100 * within.low:.1f}-{100 * within.high:.1f}" if counted else "-",
        f"{line.usage.calls / asked:.1f}", f"{line.usage.tokens / asked:,.0f}",
        "unknown" if dollars is None else f"{dollars:.4f}",
    )  # fmt: skip


def told(row: Sequence[str], widths: Sequence[int]) -> str:
    left = 3
    padded = [cell.ljust(width) if at < left else cell.rjust(width)
              for at, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
    return "  ".join(padded).rstrip()
