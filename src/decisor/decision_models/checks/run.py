"""All checks of a decision model, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from decisor.decision_models.candidates import LIMIT
from decisor.decision_models.checks import by_hand, shaking, twofold
from decisor.decision_models.checks.subject import Check, Subject
from decisor.decision_models.machine import OpenModel
from decisor.errors import ToolError
from decisor.finding import Finding

SAMPLE = 2_000
CHECKS: tuple[Check, ...] = (
    by_hand.numbers, by_hand.present, by_hand.examples, shaking.differs, shaking.statements, shaking.inputs,
    shaking.units, shaking.rules, shaking.goals, shaking.order, twofold.together, twofold.joins,
)  # fmt: skip


def check(model: OpenModel, second: OpenModel | None = None) -> Iterator[Finding]:
    """What is wrong, as it is found. ``second``: an independent model of the same question. Of more than 2,000
    candidates a sample is computed."""
    if model.model.choice:
        try:
            subject = subject_of(model)
        except ToolError as error:
            yield finding(error)
            return
        for each in CHECKS:
            yield from shielded(lambda each=each: each(subject))  # type: ignore[misc]
        if second is not None:
            yield from shielded(lambda: twofold.second(subject, second))
    yield from shielded(lambda: twofold.solver(model))
    yield from twofold.words(model)


def shielded(each: Callable[[], object]) -> Iterator[Finding]:
    """A check that fails is a finding too."""
    try:
        yield from each()  # type: ignore[misc]
    except ToolError as error:
        yield finding(error)


def finding(error: ToolError) -> Finding:
    """Check 1: the complaint has the line."""
    return Finding(1, 0, str(error).rstrip("."))


def subject_of(model: OpenModel) -> Subject:
    """Raises ToolError where a statement, also of a scenario, does not run."""
    count = len(model.candidates)
    if count > LIMIT and model.model.variables:
        raise ToolError(f"choice: {count:,} candidates are too many to enumerate; they are for the solver.")
    numbers = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(int)).tolist()
    model.outcomes(numbers[:1], alone=True)
    for scenario in model.model.scenarios:
        model.outcomes(numbers[:1], scenario=scenario.name, alone=True)
    return Subject(model, model.outcomes(numbers, most=1))
