"""What became of the questions of Decision QA, and what all of them together amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from decisor.benchmarks.dqa import failures
from decisor.benchmarks.dqa.replans import Replanned, classify
from decisor.outcome import Outcome
from decisor.statistics.estimates import wilson
from decisor.trace.events import Entry, Plan, PlanChange
from decisor.trace.graph_events import GraphPlan
from decisor.types import Usage


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one question. ``answer`` is the candidate that was read, ``text`` what the technique said."""

    scenario: str
    question_num: int
    answer: str
    gold: str
    right: bool
    tie_right: bool
    stopped: str
    seconds: float
    text: str
    reasons: tuple[str, ...]
    failure: str | None
    retrieved: str
    missed: tuple[str, ...]
    replans: tuple[Replanned, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Summary:
    """Shares are 0 to 1, intervals in percent (95 %). ``missed_any`` and ``missed_all``: two readings of the rate of
    missed data analysis, of the questions that were retrieved for; None where there were none."""

    asked: int
    accuracy: float
    tie_accuracy: float
    interval: tuple[float, float]
    missed_any: float | None
    missed_all: float | None
    by_retrievals: dict[str, tuple[int, int]]
    failures: dict[str, int]
    stopped: dict[str, int]
    replans: dict[str, int]
    by_replans: dict[int, tuple[int, int]]


def answered(outcome: Outcome) -> Answered:
    """A finished case of the benchmark ``dqa``."""
    tags = [tag.partition(": ") for tag in outcome.tags]
    scenario, _, number = outcome.case.rpartition("-")
    changes = [what.split(", ", 1) for kind, _, what in tags if kind == "replan"]
    return Answered(
        scenario, int(number), outcome.answer, outcome.gold[0], outcome.state == "right",
        outcome.metrics.get("ties", 0.0) == 1.0, outcome.stopped, outcome.seconds, outcome.text, outcome.reasons,
        outcome.failure or None, outcome.tags[0] if outcome.tags else "none",
        tuple(what for kind, _, what in tags if kind == "missed"),
        tuple(Replanned(cast(Any, change), cast(Any, kind)) for change, kind in changes), outcome.usage,
    )  # fmt: skip


def replans(events: Sequence[Entry]) -> tuple[Replanned, ...]:
    """Each replan of a trace against the plan before it."""
    found: list[Replanned] = []
    plan: Sequence[str] = ()
    for entry in events:
        match entry.event:
            case Plan(steps=steps) | GraphPlan(steps=steps):
                plan = steps
            case PlanChange(steps=steps):
                found.append(classify(plan, steps))
                plan = steps
    return tuple(found)


def summary(rows: Sequence[Answered]) -> Summary:
    """All rows of one scenario, form and technique."""
    right = sum(row.right for row in rows)
    retrieving = [row for row in rows if row.retrieved != "none"]
    within = wilson(right, len(rows))
    needed = {row.scenario: len(failures.NEEDED[row.scenario]) for row in rows}
    return Summary(
        len(rows),
        share(right, len(rows)) or 0.0,
        share(sum(row.tie_right for row in rows), len(rows)) or 0.0,
        (100 * within.low, 100 * within.high),
        share(sum(bool(row.missed) for row in retrieving), len(retrieving)),
        share(sum(len(row.missed) == needed[row.scenario] for row in retrieving), len(retrieving)),
        {kind: of([row for row in rows if row.retrieved == kind]) for kind in ("SR", "MR", "none")},
        dict(Counter(row.failure for row in rows if row.failure)),
        dict(Counter(row.stopped for row in rows)),
        dict(Counter(label for row in rows for one in row.replans for label in (one.change, one.kind))),
        {n: of([r for r in rows if len(r.replans) == n]) for n in sorted({len(row.replans) for row in rows})},
    )


def of(rows: Sequence[Answered]) -> tuple[int, int]:
    """How many are right, of how many."""
    return sum(row.right for row in rows), len(rows)


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
