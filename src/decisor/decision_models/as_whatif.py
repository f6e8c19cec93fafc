"""An open decision model where a ``types.WhatIf`` is wanted: its candidates by name, its first measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from decisor.decision_models.machine import OpenModel
from decisor.decision_models.rank_model import rank_model
from decisor.decision_models.ranking import rank
from decisor.types import Goal, Ranking, WhatIf

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class AsWhatIf:
    """``names``: none means all. ``seed``: of a trial in which the inputs vary as the file says."""

    model: OpenModel
    names: tuple[str, ...] = ()
    seed: int | None = None

    @property
    def measure(self) -> str:
        return self.model.model.first.name

    @property
    def goal(self) -> Goal:
        return self.model.model.first.goal

    def candidates(self) -> tuple[str, ...]:
        candidates = self.model.candidates
        return self.names or candidates.names(range(len(candidates.places)))

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Shape (len(candidates),); nan where one is not allowed."""
        numbers = [self.model.candidates.find(name) for name in candidates]
        outcomes = self.model.outcomes(numbers, seed=self.seed, most=0)
        return np.asarray(np.where(outcomes.allowed, outcomes.values[:, 0], np.nan))

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        """As the file says; ``percent`` is for models that say nothing of it."""
        return replace(self, seed=int(rng.integers(2**31)))

    def only(self, names: Sequence[str]) -> AsWhatIf:
        """With these candidates. Raises ToolError where one is none."""
        candidates = self.model.candidates
        return replace(self, names=candidates.names(dict.fromkeys(candidates.find(name) for name in names)))


def rank_any(
    model: WhatIf, percent: float = 5.0, trials: int = 200, seed: int = 0, *, seconds: float = float("inf")
) -> Ranking:
    """A ranking of a decision model of any kind."""
    if not isinstance(model, AsWhatIf):
        return rank(model, percent, trials, seed, seconds=seconds)
    numbers = [model.model.candidates.find(name) for name in model.names] or None
    return rank_model(model.model, numbers, trials=trials, seed=seed, seconds=seconds)
