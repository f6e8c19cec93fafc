"""One question of Decision QA through a technique, and what all of them together amount to. Only here and in the
scorers do a decision and its gold answer meet; the technique gets the question and an environment.

A seam for resuming and statistics: ``Answered`` is everything that is kept of a question, as plain values.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from decisor.budget import Budget, Limits
from decisor.errors import BudgetExceeded, LMError, ModelMistake
from decisor.evaluation import dqa_failures, dqa_replans
from decisor.evaluation.dqa_failures import Facts, Failure
from decisor.evaluation.dqa_replans import Replanned
from decisor.evaluation.dqa_score import any_mention, score
from decisor.evaluation.statistics import wilson
from decisor.run import Run
from decisor.trace import Event, Trace
from decisor.types import LM, Decision, Environment, Question, Technique, Usage


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its gold answer. ``ties``: what is as good as it; ``able``: what can change the outcome."""

    scenario: str
    question_num: int
    question: Question
    gold: str
    candidates: tuple[str, ...]
    ties: tuple[str, ...] = ()
    able: frozenset[str] = frozenset()


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
    failure: Failure | None
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


async def ask(
    case: Case, technique: Technique, lm: LM, env: Environment, limits: Limits = Limits(), trace: Trace | None = None
) -> Answered:
    """Put one question. A limit, a reply that cannot be read and a failing endpoint are outcomes, not exceptions.

    Raises:
        LMError: the endpoint will not answer any question (key, quota, model).
        SetupError: the technique cannot work in this environment.
    """
    run = Run(lm, env, Budget(limits), trace or Trace())
    began = time.monotonic()
    try:
        decision = await technique(case.question, run)
    except BudgetExceeded as error:
        decision = Decision("", reasons=(str(error),), stopped="budget")
    except ModelMistake as error:
        decision = Decision("", reasons=(str(error),), stopped="failed")
    except LMError as error:
        if error.permanent:
            raise
        decision = Decision("", reasons=(str(error),), stopped="failed")
    return judge(case, decision, run.trace.events, run.budget.spent, time.monotonic() - began)


def judge(case: Case, decision: Decision, events: Sequence[Event], spent: Usage, seconds: float) -> Answered:
    """Score a decision, and say what went wrong where it is wrong."""
    held = score(decision.answer, case.gold, case.candidates, case.ties)
    facts = Facts(case.scenario, case.gold, case.able)
    named = held.answer or (decision.answer if not any_mention(decision.answer, case.candidates) else "")
    failure = None if held.tie_right else dqa_failures.classify(events, facts, named, decision.stopped)
    return Answered(
        case.scenario, case.question_num, held.answer, case.gold, held.right, held.tie_right, decision.stopped,
        round(seconds, 6), decision.answer, decision.reasons, failure, dqa_failures.retrieved_by(events),
        dqa_failures.missed(events, case.scenario), replans(events), spent,
    )  # fmt: skip


def replans(events: Sequence[Event]) -> tuple[Replanned, ...]:
    """Each replan of a trace against the plan before it."""
    found: list[Replanned] = []
    plan: Sequence[str] = ()
    for event in events:
        if event.kind in ("plan", "replan"):
            if event.kind == "replan":
                found.append(dqa_replans.classify(plan, event.data["plan"]))
            plan = event.data["plan"]
    return tuple(found)


def summary(rows: Sequence[Answered]) -> Summary:
    """All rows of one scenario, form and technique."""
    right = sum(row.right for row in rows)
    retrieving = [row for row in rows if row.retrieved != "none"]
    within = wilson(right, len(rows))
    needed = {row.scenario: len(dqa_failures.NEEDED[row.scenario]) for row in rows}
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
