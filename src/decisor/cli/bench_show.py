"""A benchmark run as a table for a person, beside what others published, and as one JSON object for a program."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decisor.benchmarks.dqa.published import CEILING, MISSED, PAPER, published
from decisor.benchmarks.dqa.summary import Answered, Summary, summary
from decisor.encoding import json_value

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Setup:
    """What was run, in words."""

    technique: str
    form: str
    settings: Mapping[str, str]
    lm: str

    @property
    def label(self) -> str:
        """
        >>> Setup("plan_rag", "sql", {"replan": "no"}, "m").label
        'plan_rag replan=no'
        """
        return " ".join([self.technique, *(f"{key}={value}" for key, value in self.settings.items())])


@dataclass(frozen=True)
class Ran:
    """All answers, in the order of the questions; the seconds that answering took, and reading the data before it."""

    rows: tuple[Answered, ...]
    seconds: float
    loaded: float


def document(ran: Ran, setup: Setup) -> dict[str, Any]:
    """Everything that was measured. Accuracies are shares from 0 to 1."""
    found: dict[str, Any] = {
        "benchmark": "dqa", "technique": setup.technique, "settings": dict(setup.settings), "form": setup.form,
        "lm": setup.lm, **json_value(overall(ran.rows)), "seconds": round(ran.seconds + ran.loaded, 3),
        "seconds_loading": round(ran.loaded, 3),
        "scenarios": {name: json_value(summary(rows)) for name, rows in by_scenario(ran.rows).items()},
        "published": [json_value(row) for name in by_scenario(ran.rows) for row in published(name, setup.form)],
        "questions": [json_value(row) for row in ran.rows],
    }  # fmt: skip
    return found


def overall(rows: Sequence[Answered]) -> Mapping[str, float]:
    told = summary(rows)
    return {"asked": told.asked, "accuracy": told.accuracy, "tie_accuracy": told.tie_accuracy}


def by_scenario(rows: Sequence[Answered]) -> dict[str, list[Answered]]:
    return {name: [row for row in rows if row.scenario == name] for name in dict.fromkeys(row.scenario for row in rows)}


def show(ran: Ran, setup: Setup) -> None:
    """Print one table for each scenario, then what went wrong."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 110)
    for scenario, rows in by_scenario(ran.rows).items():
        told = summary(rows)
        console.print(table(scenario, told, setup, ran.seconds))
        for line in remarks(scenario, told):
            console.print(line, highlight=False, markup=False)
    console.print(
        f"{len(ran.rows)} questions in {ran.seconds:.2f} s, after {ran.loaded:.2f} s of reading the data.",
        highlight=False,
    )


def table(scenario: str, told: Summary, setup: Setup, seconds: float) -> Table:
    """Ours first, the published figures below it, marked as such."""
    from rich.table import Table

    made = Table(
        title=f"Decision QA, {scenario}, {setup.form} (accuracy in %)", title_justify="left", caption_justify="left"
    )
    for name in ("who", "technique", "strict", "95 %", "with ties", "questions"):
        made.add_column(name, justify="left" if name in ("who", "technique") else "right")
    low, high = told.interval
    made.add_row(
        f"here, {setup.lm}", setup.label, f"{100 * told.accuracy:.1f}", f"{low:.1f}-{high:.1f}",
        f"{100 * told.tie_accuracy:.1f}", str(told.asked),
    )  # fmt: skip
    made.add_section()
    for row in published(scenario, setup.form):
        form = "" if row.form else " (mean of both forms)"
        made.add_row("published", row.technique + form, f"{row.accuracy:.1f}", "", "", "")
    made.caption = (
        f"Published: {row.source}. On the release, a reader of the printed rules reaches {CEILING[scenario]} at most."
    )
    return made


def remarks(scenario: str, told: Summary) -> list[str]:
    """Retrievals, missed data, failures and replans, a line each, where there is something to say."""
    lines = []
    if told.missed_any is not None:
        kinds = ", ".join(f"{kind} {right}/{count}" for kind, (right, count) in told.by_retrievals.items() if count)
        paper = ", ".join(f"{name} {rate} %" for (name, where), rate in MISSED.items() if where == scenario)
        lines.append(f"Right by retrievals: {kinds}")
        lines.append(
            f"Missed data: any {100 * told.missed_any:.1f} %, all {100 * (told.missed_all or 0):.1f} %"
            f" (published, {PAPER}: {paper})"
        )
    if told.failures:
        lines.append("Failures: " + counts(told.failures))
    if set(told.stopped) != {"answered"}:
        lines.append("Ended: " + counts(told.stopped))
    if told.replans:
        right = ", ".join(f"{number}: {right}/{count}" for number, (right, count) in told.by_replans.items())
        lines += [f"Replans: {counts(told.replans)}", f"Right by number of replans: {right}"]
    return lines


def counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in found.items())
