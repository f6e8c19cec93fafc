"""All checks of a decision model, in their order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from decisor.decision_models.candidates import LIMIT
from decisor.decision_models.checks import by_hand, shaking, twofold
from decisor.decision_models.checks.subject import Check, Subject
from decisor.decision_models.checks.twofold import Difference
from decisor.decision_models.machine import MORE_SECONDS, OpenModel, TimeOver
from decisor.errors import ToolError
from decisor.finding import Finding

SAMPLE = 2_000
CHECKS: tuple[Check, ...] = (
    by_hand.numbers, by_hand.present, by_hand.examples, shaking.differs, shaking.statements, shaking.inputs,
    shaking.constants, shaking.units, shaking.rules, shaking.goals, shaking.order, twofold.together, twofold.joins,
)  # fmt: skip


def check(model: OpenModel, second: OpenModel | None = None, seconds: float = float("inf")) -> Iterator[Finding]:
    """What is wrong, as it is found. ``second``: an independent model of the same question. Of more than 2,000
    candidates a sample is computed. After ``seconds`` it says so and leaves the other checks on changed data out."""
    subject = None
    try:
        if model.model.choice:
            try:
                subject = subject_of(model, seconds)
            except ToolError as error:
                yield finding(error)
                return
            if subject.outcomes.stopped:
                yield over(subject, seconds)
                return
            for each in CHECKS:
                yield from shielded(lambda each=each: each(subject))  # type: ignore[misc]
            if second is not None:
                yield from shielded(lambda: twofold.second(subject, second))
        yield from shielded(lambda: twofold.solver(model))
    except TimeOver as error:
        yield over(subject, seconds) if subject else Finding(1, 0, str(error).rstrip("."))
    yield from twofold.words(model)


def shielded(each: Callable[[], object]) -> Iterator[Finding]:
    """A check that fails is a finding too."""
    try:
        yield from each()  # type: ignore[misc]
    except ToolError as error:
        yield finding(error)


def compared(model: OpenModel, other: OpenModel, seconds: float) -> Difference | None:
    """Check 16 alone. Raises ToolError where a statement of one of them does not run."""
    subject = subject_of(model, seconds)
    try:
        if subject.outcomes.stopped:
            raise TimeOver(MORE_SECONDS)
        return twofold.difference(subject, other)
    except TimeOver:
        return Difference(over(subject, seconds))


def over(subject: Subject, seconds: float) -> Finding:
    took = f"{int(subject.outcomes.known.sum()):,} candidates take {subject.outcomes.seconds:.1f} s"
    how = "" if subject.outcomes.how == "together" else f", as they are computed {subject.outcomes.how}"
    return Finding(1, 0, f"{seconds:.0f} s were over before all checks were made: {took}{how}", "doubt")


def finding(error: ToolError) -> Finding:
    """Check 1: the complaint has the line."""
    return Finding(1, 0, str(error).rstrip("."))


def subject_of(model: OpenModel, seconds: float = float("inf")) -> Subject:
    """Raises ToolError where a statement, also of a scenario, does not run."""
    until = time.monotonic() + seconds
    count = len(model.candidates)
    if count > LIMIT and model.model.variables:
        raise ToolError(f"choice: {count:,} candidates are too many to enumerate; they are for the solver.")
    numbers = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(int)).tolist()
    model.outcomes(numbers[:1], alone=True)
    for scenario in model.model.scenarios:
        model.outcomes(numbers[:1], scenario=scenario.name, alone=True)
    return Subject(model, model.outcomes(numbers, most=1, seconds=seconds), until)
