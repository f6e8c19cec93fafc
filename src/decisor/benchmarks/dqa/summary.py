"""Decision QA's own figures beyond right and wrong: how often was retrieved, what was missed, how plans changed. They
are read from finished cases, so any run store has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from decisor.benchmarks.dqa import failures
from decisor.benchmarks.dqa.paper_figures import CEILING, PAPER, paper_figures
from decisor.benchmarks.dqa.replans import ReplanClass, classify
from decisor.encoding import json_value
from decisor.outcome import Outcome
from decisor.statistics.estimates import wilson
from decisor.trace.events import Entry, Plan, PlanChange
from decisor.trace.graph_events import GraphPlan
from decisor.types import Value

COURSES = ("none", "once", "several")


class Course(NamedTuple):
    """How the run of a question went, from its outcome's tags. ``retrieved``: none, once or several times; ``missed``:
    needed values that were not retrieved; ``replans``: change and kind of each."""

    retrieved: str
    missed: list[str]
    replans: list[tuple[str, str]]


def course(outcome: Outcome) -> Course:
    tags = [tag.partition(": ") for tag in outcome.tags]
    replans = [what.partition(", ") for kind, _, what in tags if kind == "replan"]
    return Course(
        COURSES[min(outcome.counts.get("retrievals", 0), 2)],
        [what for kind, _, what in tags if kind == "missed"],
        [(change, kind) for change, _, kind in replans],
    )


def replans(events: Sequence[Entry]) -> tuple[ReplanClass, ...]:
    """Each replan of a trace against the plan before it."""
    changes: list[ReplanClass] = []
    plan: Sequence[str] = ()
    for entry in events:
        match entry.event:
            case Plan(steps=steps) | GraphPlan(steps=steps):
                plan = steps
            case PlanChange(steps=steps):
                changes.append(classify(plan, steps))
                plan = steps
    return tuple(changes)


def document(outcomes: Sequence[Outcome], form: str) -> dict[str, Value]:
    """As JSON values: figures of all questions and of each scenario, the published ones, and every question. Accuracies
    and rates are shares from 0 to 1, intervals in percent (95 %)."""
    rows = sorted(outcomes, key=lambda one: (one.group != "locating", number(one)))
    parts = {name: [row for row in rows if row.group == name] for name in dict.fromkeys(row.group for row in rows)}
    published: list[Value] = [
        {"technique": one.technique, "scenario": name, "form": one.group.partition(" ")[2], "accuracy": one.value,
         "source": one.source}
        for name in parts for one in paper_figures(name, form)
    ]  # fmt: skip
    return {
        **accuracies(rows), "scenarios": {name: scenario(name, part) for name, part in parts.items()},
        "published": published, "questions": [question(row) for row in rows],
    }  # fmt: skip


def beside_the_paper(outcomes: Sequence[Outcome], form: str) -> Iterator[str]:
    """A line for each scenario: our accuracy, what was published, and what can be reached at all."""
    for name in sorted({row.group for row in outcomes}, reverse=True):
        rows = [row for row in outcomes if row.group == name]
        right, ties = sum(row.state == "right" for row in rows), sum(map(is_tie_right, rows))
        printed = sum(map(is_printed_right, rows))
        figures = ", ".join(f"{one.technique} {one.value}" for one in paper_figures(name, form))
        yield (
            f"{name}, {form}: {100 * right / len(rows):.1f} % right, {100 * ties / len(rows):.1f} % with ties, "
            f"{100 * printed / len(rows):.1f} % right by the printed rules. "
            f"Published ({PAPER}): {figures}. On the release, a reader of the printed rules reaches {CEILING[name]} at "
            "most."
        )


def accuracies(rows: Sequence[Outcome]) -> dict[str, Value]:
    right = sum(row.state == "right" for row in rows)
    return {
        "asked": len(rows),
        "accuracy": share(right, len(rows)) or 0.0,
        "tie_accuracy": share(sum(is_tie_right(row) for row in rows), len(rows)) or 0.0,
        "printed_accuracy": share(sum(is_printed_right(row) for row in rows), len(rows)) or 0.0,
    }


def scenario(name: str, rows: Sequence[Outcome]) -> dict[str, Value]:
    """``missed_any`` and ``missed_all``: two readings of the rate of missed data analysis, of the questions that were
    retrieved for; None where there were none. ``by_...``: how many are right, of how many."""
    within = wilson(sum(row.state == "right" for row in rows), len(rows))
    courses = [course(row) for row in rows]
    missed = [len(one.missed) for one in courses if one.retrieved != "none"]
    all_of_them = len(failures.NEEDED[name])

    def right_of(which: Sequence[bool]) -> list[int]:
        return [sum(row.state == "right" for row, here in zip(rows, which, strict=True) if here), sum(which)]

    return {
        **accuracies(rows),
        "interval": [100 * within.low, 100 * within.high],
        "missed_any": share(sum(count > 0 for count in missed), len(missed)),
        "missed_all": share(sum(count == all_of_them for count in missed), len(missed)),
        "by_retrievals": {
            kind: right_of([one.retrieved == kind for one in courses]) for kind in ("none", "once", "several")
        },
        "failures": dict(Counter(row.failure for row in rows if row.failure)),
        "stopped": dict(Counter(row.stopped for row in rows)),
        "replans": dict(Counter(label for one in courses for replan in one.replans for label in replan)),
        "by_replans": {
            str(count): right_of([len(one.replans) == count for one in courses])
            for count in sorted({len(one.replans) for one in courses})
        },
    }


def question(row: Outcome) -> dict[str, Value]:
    """``failure`` is None where the answer is right, or as good as the released one."""
    retrieved_by, missed, changes = course(row)
    return {
        "scenario": row.group, "question_num": number(row), "answer": row.answer, "gold": row.gold[0],
        "right": row.state == "right", "tie_right": is_tie_right(row), "printed_right": is_printed_right(row),
        "stopped": row.stopped, "seconds": row.seconds,
        "text": row.text, "reasons": row.reasons, "failure": row.failure or None, "retrieved": retrieved_by,
        "missed": missed, "replans": [{"change": change, "kind": kind} for change, kind in changes],
        "usage": json_value(row.usage),
    }  # fmt: skip


def number(row: Outcome) -> int:
    """The question's number in the released file of its scenario."""
    return int(row.case.rpartition("-")[2])


def is_tie_right(row: Outcome) -> bool:
    return row.metrics.get("ties") == 1.0


def is_printed_right(row: Outcome) -> bool:
    return row.metrics.get("printed") == 1.0


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
