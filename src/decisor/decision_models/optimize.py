"""Decisions too large to enumerate: the solver proposes, the model's SQL measures, and both must say the same."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from decisor.decision_models.candidates import LIMIT, explain_broken_rule
from decisor.decision_models.client import FIRST, TIME_OVER, OpenModel, Progress, TimeOver
from decisor.decision_models.outcomes import Reason, measure_lead
from decisor.decision_models.ranking import rank_model
from decisor.errors import ToolError
from decisor.system.wording import format_amount
from decisor.types import Option, Ranking, Value, Winner

ENUMERATE_SECONDS = 60.0
SOLVE_SECONDS = 120.0
TRIAL_SECONDS = 30.0
"""So long are trials solved, one after the other."""
AGREE = 1e-6
NAMED_ROWS = 20
NONE_ALLOWED: tuple[str, ...] = ("none allowed",)


@dataclass(frozen=True)
class SolverProposal:
    """A choice that the solver proposes, measured by the model's SQL."""

    status: str = ""
    """optimal, infeasible, unbounded or time limit."""
    figures: dict[str, float] = field(default_factory=dict)
    """objective, bound, seconds, unknowns, requirements, checked."""
    measures: dict[str, float | None] = field(default_factory=dict)
    """Measures by the model's SQL; none if there is no solution."""
    broken: dict[str, Reason] = field(default_factory=dict)
    """Rules that the choice breaks."""
    chosen: dict[str, Sequence[Mapping[str, Value]]] = field(default_factory=dict)
    """Rows of each variable, with ``row`` (its number) and ``amount``."""

    @property
    def first(self) -> Sequence[Mapping[str, Value]]:
        """The chosen rows of the first variable."""
        return next(iter(self.chosen.values()), ())

    @property
    def choice(self) -> tuple[str, ...]:
        """Name of each chosen row of the first variable, with its amount if that is not 1.

        The name is the first column.
        """
        words = []
        for row in self.first:
            number = float(str(row["amount"]))
            name = str(next((cell for key, cell in row.items() if key not in ("row", "amount")), ""))
            words.append(f"{number:.0f} x {name}" if number != 1 and number.is_integer() else name)
        return tuple(words)

    def name(self) -> str:
        words = self.choice
        more = f" + {len(words) - NAMED_ROWS} more" if len(words) > NAMED_ROWS else ""
        return (" + ".join(words[:NAMED_ROWS]) or "nothing") + more


def solve_model(
    model: OpenModel,
    *,
    seconds: float = SOLVE_SECONDS,
    scenario: str = "",
    changes: str = "",
    forced: Sequence[tuple[str, int, float]] = (),
    excluded: Sequence[Sequence[int]] = (),
) -> SolverProposal:
    """Find the best choice of the variables with the solver.

    Args:
        forced: triples of variable, row and amount.
        excluded: choices of the first variable, by rows, that may not come out.

    Raises:
        ToolError: the program is not linear or a query fails (with its line), or the SQL measures another thing.
        SetupError: the solver is not installed.
    """
    proposal = propose(model, seconds, scenario, changes, forced=list(forced), excluded=list(map(list, excluded)))
    check_proposal(model, proposal)
    return proposal


def propose(model: OpenModel, seconds: float, scenario: str, changes: str, **request: object) -> SolverProposal:
    request = {"seconds": seconds, "scenario": scenario, "changes": changes, "forced": [], "excluded": [], **request}
    # The queries around the solver take time beside its own limit.
    reply = model.job("solve", request, seconds + 4 * model.model.seconds)
    proposal, rows = SolverProposal(), cast(Any, reply.rows)
    for kind, name, value, more in rows:
        match kind:
            case "status":
                proposal = replace(proposal, status=name)
            case "figure":
                proposal.figures[name] = value
            case "measure":
                proposal.measures[name] = value
            case "rule":
                proposal.broken[name] = Reason(value, tuple(more))
            case "chosen":
                proposal.chosen[name] = more
    return proposal


def check_proposal(model: OpenModel, proposal: SolverProposal) -> None:
    """Check that the solver's sum equals the SQL of the measure; raise ToolError if not.

    A proposal that breaks a rule raises it too.
    """
    first = model.model.first
    value, objective = proposal.measures.get(first.name), proposal.figures["objective"]
    if not proposal.measures:
        return
    if value is None or abs(value - objective) > AGREE * max(1.0, abs(value), abs(objective)):
        raise ToolError(
            f"The solver's sum for {first.name} is {format_amount(objective, first.unit)}, the SQL measures "
            f"{'nothing' if value is None else format_amount(value, first.unit)} for the same choice: sum and sql of "
            f"measure.{first.name} do not say the same."
        )
    if proposal.broken:
        name, reason = next(iter(proposal.broken.items()))
        raise ToolError(
            f"What the solver proposes breaks rule {name}: {explain_broken_rule(model.model, name, reason)}. "
            "Say the rule as [require] too."
        )


def rank_solved(
    model: OpenModel, *, seconds: float = SOLVE_SECONDS, scenario: str = "", changes: str = "", trials: int = 0
) -> Ranking:
    """Rank the best and the second best choice by the solver.

    Robustness is how often the solver finds the best choice in trials, as many as half a minute allows.

    Raises:
        ToolError: as ``solve_model``; or nothing meets the requirements.
    """
    began = time.monotonic()
    # First the best choice, or the reason why there is none.
    best = solve_model(model, seconds=seconds, scenario=scenario, changes=changes)
    first = model.model.first
    if best.status == "infeasible":
        twice = " (also without presolve)" if best.figures["checked"] else ""
        raise ToolError(
            f"Nothing meets all requirements{twice}: {', '.join(one.name for one in model.model.requires)}."
        )
    if best.status == "unbounded":
        raise ToolError(
            f"Nothing limits {first.name}: the program is unbounded. Give a variable most, or add [require]."
        )
    if not best.measures:
        raise ToolError(f"The solver ended with: {best.status}. Give it more seconds.")
    options, cut = [Option(best.name(), best.measures[first.name] or 0.0)], ""
    left = seconds - (time.monotonic() - began)
    # One constraint can exclude a yes-or-no choice but no other, so only such a choice has a second best.
    binary = model.model.variables[0].kind == "yes or no"
    if best.status == "optimal" and binary and left > 1:
        rows = [int(str(row["row"])) for row in best.first]
        try:
            second = solve_model(model, seconds=left, scenario=scenario, changes=changes, excluded=[rows])
            if second.measures:
                options.append(Option(second.name(), second.measures[first.name] or 0.0))
        except TimeOver:
            cut = f"{TIME_OVER} before a second choice was found"
    figures = best.figures
    proof = (
        "no other is better"
        if best.status == "optimal"
        else f"at best {format_amount(figures['bound'], first.unit)} is possible"
    )
    method = (
        f"Found by the solver HiGHS among {figures['unknowns']:,.0f} unknowns and {figures['requirements']:,.0f} "
        f"requirements in {figures['seconds']:.1f} s: {best.status}, {proof}; measured by the SQL"
    )
    ties, margin, lead = measure_lead(np.array([option.outcome for option in options]))
    stopped = cut if best.status == "optimal" else best.status
    ranking = Ranking(
        first.name,
        first.goal,
        tuple(options),
        tuple(option.name for option in options[:ties]),
        margin,
        unit=first.unit,
        lead=lead,
        compared=len(options),
        stopped=stopped,
        method=method,
    )
    # Trials take the time that is left.
    left = min(TRIAL_SECONDS, seconds - (time.monotonic() - began))
    if not trials or stopped or left <= 0 or not model.model.varied:
        return ranking
    return add_solved_trials(model, ranking, best.choice, trials, left, scenario, changes)


def add_solved_trials(
    model: OpenModel,
    ranking: Ranking,
    best: tuple[str, ...],
    trials: int,
    seconds: float,
    scenario: str,
    changes: str,
) -> Ranking:
    """Solve each trial as a program of its own and add the winners to a ranking.

    The share of the trials in which ``best`` wins is the robustness.
    """
    began, counts = time.monotonic(), Counter[tuple[str, ...]]()
    names = {NONE_ALLOWED: "none allowed"}
    for seed in range(trials):
        left = seconds - (time.monotonic() - began)
        if left <= 0:
            break
        try:
            proposal = propose(model, left, scenario, changes, seed=seed)
        except TimeOver:
            break
        # A solution at the time limit is not proved best, so the trial has no winner.
        if proposal.status not in ("optimal", "infeasible"):
            break
        shut_out = proposal.status == "infeasible" or proposal.broken
        choice = NONE_ALLOWED if shut_out else proposal.choice
        names.setdefault(choice, proposal.name())
        counts[choice] += 1
    done = counts.total()
    if not done:
        return replace(ranking, covered=f"No trial was solved in {seconds:.0f} s")
    winners = tuple(Winner(names[choice], count / done) for choice, count in counts.most_common())
    cut = f", {done:,} of {trials:,} in {seconds:.0f} s" if done < trials else ""
    return replace(
        ranking,
        robustness=counts[best] / done,
        trials=done,
        winners=winners,
        varied=tuple(f"{column.name} {column.spread}" for column in model.model.varied),
        covered=f"Each trial was solved anew{cut}",
    )


def rank_or_solve(
    model: OpenModel,
    *,
    trials: int = 200,
    seconds: float = float("inf"),
    scenario: str = "",
    changes: str = "",
    progress: Progress | None = None,
) -> Ranking:
    """Rank a model by computing every candidate, or by its solver.

    The solver is used if there is no choice by rows, or if the model is linear and its candidates would take more than
    about a minute.

    Raises:
        ToolError: there are too many candidates, and the model is not linear.
    """
    linear = bool(model.model.variables)
    if not model.model.choice or (linear and not is_enumerable(model)):
        limit = min(seconds, SOLVE_SECONDS)
        return rank_solved(model, seconds=limit, scenario=scenario, changes=changes, trials=trials)
    return rank_model(model, trials=trials, seconds=seconds, scenario=scenario, changes=changes, progress=progress)


def is_enumerable(model: OpenModel) -> bool:
    """Return whether a sample says that all candidates are computed in about a minute.

    False for more than ``LIMIT`` candidates.
    """
    count = len(model.candidates)
    if count > LIMIT:
        return False
    sample = range(min(count, 4 * FIRST))
    return model.outcomes(sample, most=0).seconds / len(sample) * count <= ENUMERATE_SECONDS
