"""The tool that tests candidates on a decision model, so that no LLM has to do the arithmetic in its head."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from decisor.errors import SetupError, ToolError
from decisor.parsing.whatif_request import WhatIfWish, parse_wish
from decisor.system.wording import format_ranking
from decisor.types import Goal, Observation, Ranking, Record, WhatIf

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RankCandidates(Protocol):
    """A function that ranks the candidates of a model: ``decisor.decision_models.ranking.rank``."""

    def __call__(self, model: WhatIf, percent: float = ..., trials: int = ..., *, seconds: float = ...) -> Ranking: ...


@dataclass(frozen=True)
class ModelSubset:
    """A decision model reduced to some of its candidates."""

    model: WhatIf
    names: tuple[str, ...]
    whole: int

    @property
    def measure(self) -> str:
        return self.model.measure

    @property
    def goal(self) -> Goal:
        return self.model.goal

    def candidates(self) -> tuple[str, ...]:
        return self.names

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        return self.model.outcomes(candidates)

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        return replace(self, model=self.model.varied(percent, rng))


@dataclass(frozen=True)
class WhatIfTool:
    """The tool that computes candidates on a decision model. Satisfies ``types.Tool``."""

    find: Callable[[str], WhatIf]
    """Returns the model for a semantics ("paper" or "released")."""
    rank: RankCandidates
    semantics: str = "paper"
    most: int = 10
    """Number of candidates that become records."""
    name: str = "whatif"

    def describe(self) -> str:
        facts = ""
        with suppress(SetupError, ToolError):  # the model may be unavailable until it is called
            model = self.find(self.semantics)
            names, extreme = model.candidates(), "small" if model.goal == "min" else "large"
            examples = f", such as {' and '.join(names[:2])}" if names else ""
            facts = (
                f"The outcome is {model.measure}, to be as {extreme} as possible, of {len(names):,} candidates"
                f"{examples}.\n"
            )
        return (
            "Computes the outcome of candidates on the decision model of this question.\n"
            f"{facts}"
            "Input: `rank` for all candidates, or some candidates separated by commas (or a JSON list).\n"
            "Returns the outcome of each, best first, with the margin and how robust the best one is."
        )

    async def call(self, text: str) -> Observation:
        """Return the ranking of candidates.

        Raise ToolError if a candidate does not exist or a setting is unreadable.
        """
        try:
            # Trials take seconds of CPU, and other branches go on meanwhile.
            return await asyncio.to_thread(self._compute, parse_wish(text))
        except SetupError as error:  # the LLM reads it and may answer without the model
            raise ToolError(str(error)) from error

    def _compute(self, wish: WhatIfWish) -> Observation:
        if wish.kind != "rank" or wish.scenario:
            raise ToolError(f"This model knows no {wish.kind}: its input is `rank`, or some candidates.")
        model = self.find(wish.semantics or self.semantics)
        if wish.candidates:
            every = model.candidates()
            model = ModelSubset(model, check_candidates_exist(wish.candidates, every), len(every))
        ranking = self.rank(model, percent=wish.percent, trials=wish.trials, seconds=wish.seconds)
        if isinstance(model, ModelSubset):
            ranking = replace(ranking, candidates=model.whole)
        records = tuple(
            Record(f"r{at}", {"candidate": option.name, ranking.measure: option.outcome, "rank": at}, source=self.name)
            for at, option in enumerate(ranking.options[: self.most], 1)
        )
        total = len(ranking.options)
        return Observation(
            records, format_ranking(ranking), truncated=total > len(records), total=total, ranking=ranking
        )

    async def close(self) -> None:
        """Close nothing; the tool holds nothing open."""


def check_candidates_exist(names: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """Return names without duplicates. Raise ToolError with similar names if one is no candidate."""
    candidates = set(there)
    for name in names:
        if name not in candidates:
            near = difflib.get_close_matches(name, there, 3) or list(there[:3])
            raise ToolError(f"{name!r} is no candidate; close to it: {', '.join(near)}. There are {len(there)}.")
    return tuple(dict.fromkeys(names))
