"""What the checks are, and what each is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from decisor.decision_models.machine import MORE_SECONDS, OpenModel, TimeOver
from decisor.decision_models.outcomes import Outcomes
from decisor.finding import Finding

CHECKS = {
    1: "every statement is allowed, and runs",
    2: "every candidate has one number for each measure",
    3: "the measured present is what the books say",
    4: "outcomes worked by hand",
    5: "rules worked by hand",
    6: "the outcome differs between candidates",
    7: "every statement moves something",
    8: "every input moves something",
    9: "inputs push measures the way the file says",
    10: "another unit scales the outcome",
    11: "every rule can break and can hold, and something is allowed",
    12: "the goal fits the name of its measure",
    13: "rows in another order",
    14: "alone and together are the same",
    15: "no row is counted twice or lost in a join",
    16: "a second model says the same",
    17: "the solver's sum is what the SQL measures",
    18: "numbers of the text are in the queries or the data",
}


@dataclass(frozen=True)
class Subject:
    """An open model, and the outcomes of its candidates as they are; of very many, of a sample. ``until``: the moment
    (``time.monotonic``) at which the checks end."""

    model: OpenModel
    outcomes: Outcomes
    until: float = float("inf")

    def name(self, place: int) -> str:
        return self.model.candidates.name(int(self.outcomes.candidates[place]))

    def again(self, **changes: object) -> Outcomes:
        """The same candidates, with something changed. Raises TimeOver."""
        return self.outcomes_of(self.model, self.outcomes.candidates, **changes)

    def outcomes_of(self, model: OpenModel, candidates: Iterable[int], **changes: object) -> Outcomes:
        """In the time that is left. Raises TimeOver."""
        seconds = self.until - time.monotonic()
        outcomes = model.outcomes(candidates, most=0, seconds=seconds, **changes)  # type: ignore[arg-type]
        if outcomes.stopped:
            raise TimeOver(MORE_SECONDS)
        return outcomes


Check: TypeAlias = Callable[[Subject], Iterable[Finding]]
