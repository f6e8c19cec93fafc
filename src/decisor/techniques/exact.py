"""Exact: decide by computing the outcome of every candidate, without an LLM.

ranking <- WHATIF(all candidates)
return the best, with margin, tie set and robustness
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from decisor.errors import SetupError
from decisor.runtime.run import Run
from decisor.system.wording import format_amount, format_count, format_share, list_ranking_facts, reading_lines
from decisor.trace.events import Conclusion
from decisor.types import Action, Decision, Evidence, Figure, Observation, Question, Ranking

NO_MODEL = (
    "exact needs a decision model, and there is none here: give one (decisor ask --model FILE.toml), "
    "or take a technique that asks an LLM, such as plan_rag."
)
HAND_BACK = 0.5
NO_LLM = "No LLM planned this: every candidate was computed on the decision model."


@dataclass(frozen=True)
class Exact:
    """A computation of every candidate without an LLM.

    ``semantics``: how the decision model reads its rules. ``percent``: range of variation of the inputs, in percent.
    ``trials``: number of variations.
    """

    asks_llm: ClassVar[bool] = False

    semantics: Literal["paper", "released"] = "paper"
    percent: float = 5.0
    trials: int = 200

    async def __call__(self, question: Question, run: Run) -> Decision:
        """Compute all candidates and return the best. Raise SetupError if the environment has no ``whatif`` tool."""
        if "whatif" not in run.env.tools():
            raise SetupError(NO_MODEL)
        wish = f"rank semantics={self.semantics} percent={self.percent:g} trials={self.trials}"
        left = run.budget.seconds_left()
        if left is not None:  # it ends by itself a little before, with what is known
            wish += f" seconds={max(0.1, left - max(HAND_BACK, left / 10)):.3f}"
        observation = await run.act(Action("whatif", wish))
        ranking = observation.ranking
        if observation.error or ranking is None or not ranking.options:
            why = observation.note or "The decision model has no candidate."
            return Decision("", ranking=ranking, reasons=(why,), stopped="failed")
        decision = Decision(
            ranking.options[0].name,
            collect_ranking_evidence(observation, ranking),
            ranking,
            plan=("Compute the outcome of every candidate.", f"Take the {describe_goal(ranking)} {ranking.measure}."),
            reasons=explain_ranking(ranking),
            assumptions=tuple(reading_lines(ranking)),
        )
        run.trace.add(Conclusion(decision), run.span_id)
        return decision


def collect_ranking_evidence(observation: Observation, ranking: Ranking) -> Evidence:
    """Return the records of the tie set and the first candidate after it, and the best outcome as figure."""
    records = observation.records[: max(len(ranking.ties), 1) + 1]
    support = records[0].id if records else "calculation"
    return Evidence(tuple(record.id for record in records), (Figure(f"{ranking.options[0].outcome:.6g}", support),))


def describe_goal(ranking: Ranking) -> str:
    return "largest" if ranking.goal == "max" else "smallest"


def explain_ranking(ranking: Ranking) -> tuple[str, ...]:
    """Explain ranking, margin, tie set and robustness in plain words."""
    best, count = ranking.options[0], len(ranking.options)
    outcome = format_amount(best.outcome, ranking.unit)
    # The solver compares plans without listing them.
    among = "" if ranking.plan else f" of {format_count(count, 'candidate')}"
    words = [f"{best.name} gives the {describe_goal(ranking)} {ranking.measure}{among}: {outcome}."]
    if ranking.near:
        words = [f"{best.name} has {outcome}. {ranking.near}."]
    tied = set(ranking.ties)
    behind = next((option for option in ranking.options[1:] if option.name not in tied), None)
    if len(ranking.ties) > 1:
        others = ", ".join(ranking.ties[:5]) + (", ..." if len(ranking.ties) > 5 else "")
        words.append(
            f"At least {len(ranking.ties)} plans are equally good: {others}."
            if ranking.plan
            else f"{len(ranking.ties)} candidates are equally good: {others}; {best.name} comes first in the data."
        )
    if behind is None and not ranking.plan:
        words.append(
            "No other candidate does worse, so the choice changes nothing." if count > 1 else "There is no other."
        )
    elif behind and ranking.margin is not None:
        ahead = format_share(ranking.margin)
        if ranking.lead is not None:
            ahead = f"{format_amount(ranking.lead, ranking.unit)} ({ahead})"
        words.append(f"The next is {behind.name} with {format_amount(behind.outcome, ranking.unit)}, {ahead} behind.")
    return (*words, *list_ranking_facts(ranking), NO_LLM)
