"""Exact and the whatif tool on a toy model: a price list."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.techniques.exact import Exact
from decisor.tools.toolbox import Toolbox
from decisor.tools.whatif import WhatIfTool
from decisor.types import Action, Goal, Option, Question, Ranking, WhatIf


@dataclass(frozen=True)
class Prices:
    """Each candidate's outcome is given."""

    of: dict[str, float]
    measure: str = "price"
    goal: Goal = "min"

    def candidates(self) -> tuple[str, ...]:
        return tuple(self.of)

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        return np.array([self.of[name] for name in candidates], dtype=np.float64)

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        return self


def rank(model: WhatIf, percent: float = 5.0, trials: int = 200, *, seconds: float = 0.0) -> Ranking:
    """The ranking of a toy: smallest first, ties exact."""
    names = model.candidates()
    outcomes = model.outcomes(names).tolist()
    options = sorted((Option(n, o) for n, o in zip(names, outcomes, strict=True)), key=lambda option: option.outcome)
    best = options[0].outcome
    rest = [option.outcome for option in options if option.outcome != best]
    return Ranking(
        model.measure,
        model.goal,
        tuple(options),
        tuple(o.name for o in options if o.outcome == best),
        (rest[0] - best) / best if rest else None,
        1.0 if trials else None,
        percent,
    )


def run_on(prices: dict[str, float]) -> Run:
    return Run(ScriptedLLM([]), Toolbox([WhatIfTool(lambda semantics: Prices(prices), rank)]))


async def test_exact_takes_the_best_and_says_that_no_llm_planned_it() -> None:
    decision = await Exact()(Question("Which?"), run_on({"oak": 4.0, "elm": 2.0, "fir": 3.0}))
    assert decision.answer == "elm"
    assert decision.evidence.ids == ("o1.r1", "o1.r2")
    assert decision.reasons[0] == "elm gives the smallest price of 3 candidates: 2."
    assert "fir with 3, 50 % behind" in decision.reasons[1]
    assert "No LLM planned this" in decision.reasons[-1]


async def test_exact_names_its_tie_set() -> None:
    decision = await Exact(trials=0)(Question("Which?"), run_on({"oak": 2.0, "elm": 2.0, "fir": 3.0}))
    assert decision.answer == "oak"
    assert decision.ranking is not None and decision.ranking.ties == ("oak", "elm")
    assert decision.evidence.ids == ("o1.r1", "o1.r2", "o1.r3")
    assert "2 candidates are equally good: oak, elm; oak comes first" in decision.reasons[1]


async def test_exact_without_a_decision_model_tells_the_person_what_to_do() -> None:
    with pytest.raises(SetupError, match=r"--model FILE\.toml"):
        await Exact()(Question("Which?"), Run(ScriptedLLM([]), Toolbox([])))


async def test_the_tool_compares_just_the_candidates_it_is_given() -> None:
    observation = await run_on({"oak": 4.0, "elm": 2.0, "fir": 3.0}).act(Action("whatif", "oak, fir"))
    assert [record.fields["candidate"] for record in observation.records] == ["fir", "oak"]
    assert "Best for min price: fir (3)." in observation.note


async def test_a_misspelt_candidate_is_an_observation_with_close_names() -> None:
    observation = await run_on({"oak": 4.0, "elm": 2.0}).act(Action("whatif", '["oka"]'))
    assert observation.error
    assert "'oka' is no candidate; close to it: oak" in observation.note


@pytest.mark.parametrize("text", ["rank trials=many", "rank speed=9", "rank percent=-1", '["oak"'])
async def test_an_input_that_cannot_be_read_is_the_models_mistake(text: str) -> None:
    assert (await run_on({"oak": 4.0}).act(Action("whatif", text))).error
