"""Decisions too large to enumerate: the solver proposes, the model's SQL measures, and both must say the same."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from decisor.decision_models.candidates import LIMIT
from decisor.decision_models.explain import say
from decisor.decision_models.machine import FIRST, TIME_OVER, OpenModel, Progress, TimeOver
from decisor.decision_models.outcomes import TIE, Reason
from decisor.decision_models.rank_model import distance, rank_model
from decisor.errors import ToolError
from decisor.rankings import amount
from decisor.types import Option, Ranking, Value, Winner

ENUMERATE_SECONDS = 60.0
SOLVE_SECONDS = 120.0
TRIAL_SECONDS = 30.0
"""So long are trials solved, one after the other."""
AGREE = 1e-6
NAMED_ROWS = 20
NONE_ALLOWED: tuple[str, ...] = ("none allowed",)


@dataclass(frozen=True)
class Proposal:
    """``status``: optimal, infeasible, unbounded, time limit. ``chosen``: variable -> rows, with ``row`` (its number)
    and ``amount``. ``measures``: by the model's SQL. ``broken``: rules that it breaks. ``figures``: objective, bound,
    seconds, unknowns, requirements, checked."""

    status: str
    figures: Mapping[str, float]
    measures: Mapping[str, float | None] = field(default_factory=dict)
    broken: Mapping[str, Reason] = field(default_factory=dict)
    chosen: Mapping[str, Sequence[Mapping[str, Value]]] = field(default_factory=dict)

    @property
    def first(self) -> Sequence[Mapping[str, Value]]:
        """The rows of the first variable that are chosen."""
        return next(iter(self.chosen.values()), ())

    @property
    def choice(self) -> tuple[str, ...]:
        """Each chosen row of the first variable by its first column, with its number where that is another than 1."""
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


def solve(
    model: OpenModel, *, seconds: float = SOLVE_SECONDS, scenario: str = "", changes: str = "",
    forced: Sequence[tuple[str, int, float]] = (), excluded: Sequence[Sequence[int]] = (),
) -> Proposal:  # fmt: skip
    """The best choice of the variables. ``forced``: variable, row, amount. ``excluded``: choices of the first variable,
    by rows, that may not come out.

    Raises:
        ToolError: the program is not linear or a query fails (with its line), or the SQL measures another thing.
        SetupError: the solver is not installed.
    """
    wish = {"seconds": seconds, "scenario": scenario, "changes": changes, "forced": list(forced),
            "excluded": [list(rows) for rows in excluded]}  # fmt: skip
    proposal = proposal_of(model.job("solve", wish, seconds + 4 * model.model.seconds).rows)
    check(model, proposal)
    return proposal


def proposal_of(rows: Sequence[Sequence[Any]]) -> Proposal:
    figures: dict[str, float] = {}
    measures: dict[str, float | None] = {}
    broken: dict[str, Reason] = {}
    chosen: dict[str, Sequence[Mapping[str, Value]]] = {}
    status = ""
    for kind, name, value, more in rows:
        match kind:
            case "status":
                status = name
            case "figure":
                figures[name] = value
            case "measure":
                measures[name] = value
            case "rule":
                broken[name] = Reason(int(value), tuple(more))
            case "chosen":
                chosen[name] = more
    return Proposal(status, figures, measures, broken, chosen)


def check(model: OpenModel, proposal: Proposal) -> None:
    """What the solver was asked and what the SQL measures is the same. Raises ToolError where it is not."""
    first = model.model.first
    value, objective = proposal.measures.get(first.name), proposal.figures["objective"]
    if not proposal.measures:
        return
    if value is None or abs(value - objective) > AGREE * max(1.0, abs(value), abs(objective)):
        raise ToolError(
            f"The solver's sum for {first.name} is {amount(objective, first.unit)}, the SQL measures "
            f"{'nothing' if value is None else amount(value, first.unit)} for the same choice: sum and sql of "
            f"measure.{first.name} do not say the same."
        )
    if proposal.broken:
        name, reason = next(iter(proposal.broken.items()))
        raise ToolError(f"What the solver proposes breaks rule {name}: {say(model.model, name, reason)}. "
                        "Say the rule as [require] too.")  # fmt: skip


def rank_solved(
    model: OpenModel, *, seconds: float = SOLVE_SECONDS, scenario: str = "", changes: str = "", trials: int = 0
) -> Ranking:
    """The best choice and the second best, by the solver; and how often it solves the trials with the best choice, as
    many as half a minute allows.

    Raises:
        ToolError: as ``solve``; or nothing meets the requirements.
    """
    began = time.monotonic()
    best = solve(model, seconds=seconds, scenario=scenario, changes=changes)
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
    options, cut = [option(best, first.name)], ""
    left = seconds - (time.monotonic() - began)
    binary = model.model.variables[0].kind == "yes or no"
    if best.status == "optimal" and binary and left > 1:
        rows = [int(str(row["row"])) for row in best.first]
        try:
            second = solve(model, seconds=left, scenario=scenario, changes=changes, excluded=[rows])
            options += [option(second, first.name)] if second.measures else []
        except TimeOver:
            cut = f"{TIME_OVER} before a second choice was found"
    figures = best.figures
    proof = (
        "no other is better"
        if best.status == "optimal"
        else f"at best {amount(figures['bound'], first.unit)} is possible"
    )
    method = (f"Found by the solver HiGHS among {figures['unknowns']:,.0f} unknowns and {figures['requirements']:,.0f} "
              f"requirements in {figures['seconds']:.1f} s: {best.status}, {proof}; measured by the SQL")  # fmt: skip
    ties = tuple(one.name for one in options if distance(options[0].outcome, one.outcome) <= TIE)
    lead = margin = None
    if len(ties) < len(options):
        lead = abs(options[1].outcome - options[0].outcome)
        margin = distance(options[0].outcome, options[1].outcome)
    stopped = cut if best.status == "optimal" else best.status
    ranking = Ranking(first.name, first.goal, tuple(options), ties, margin, unit=first.unit, lead=lead,
                      compared=len(options), stopped=stopped, method=method)  # fmt: skip
    left = min(TRIAL_SECONDS, seconds - (time.monotonic() - began))
    if not trials or stopped or left <= 0 or not any(one.spread for one in model.model.inputs):
        return ranking
    return with_solved_trials(model, ranking, best.choice, trials, left, {"scenario": scenario, "changes": changes})


def with_solved_trials(
    model: OpenModel, ranking: Ranking, best: tuple[str, ...], trials: int, seconds: float,
    wish: Mapping[str, object],
) -> Ranking:  # fmt: skip
    """Each trial is a program of its own, solved to its end. ``best``: the choice that may stay so."""
    began, counts = time.monotonic(), Counter[tuple[str, ...]]()
    names = {NONE_ALLOWED: "none allowed"}
    for seed in range(trials):
        left = seconds - (time.monotonic() - began)
        if left <= 0:
            break
        solved = {**wish, "seconds": left, "seed": seed, "forced": [], "excluded": []}
        try:
            proposal = proposal_of(model.job("solve", solved, left + 4 * model.model.seconds).rows)
        except TimeOver:
            break
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
    return replace(ranking, robustness=counts[best] / done, trials=done, winners=winners,
                   varied=tuple(f"{one.name} {one.spread}" for one in model.model.inputs if one.spread),
                   covered=f"Each trial was solved anew{cut}")  # fmt: skip


def option(proposal: Proposal, measure: str) -> Option:
    return Option(proposal.name(), float(proposal.measures[measure] or 0.0))


def decide(
    model: OpenModel, *, trials: int = 200, seconds: float = float("inf"), scenario: str = "", changes: str = "",
    progress: Progress | None = None,
) -> Ranking:  # fmt: skip
    """By computing every candidate where that takes about a minute at most, by the solver where it does not.

    Raises:
        ToolError: there are too many candidates, and the model is not linear.
    """
    linear = bool(model.model.variables)
    if not model.model.choice or (linear and not enumerable(model)):
        limit = min(seconds, SOLVE_SECONDS)
        return rank_solved(model, seconds=limit, scenario=scenario, changes=changes, trials=trials)
    return rank_model(model, trials=trials, seconds=seconds, scenario=scenario, changes=changes, progress=progress)


def enumerable(model: OpenModel) -> bool:
    """There are not too many, and a sample says that all are computed in about a minute."""
    count = len(model.candidates)
    if count > LIMIT:
        return False
    sample = range(min(count, 4 * FIRST))
    return model.outcomes(sample, most=0).seconds / len(sample) * count <= ENUMERATE_SECONDS
