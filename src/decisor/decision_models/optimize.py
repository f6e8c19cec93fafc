"""Decisions for the solver: a plan of amounts, measured by the model's SQL, with its parts, rules and prices."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from decisor.decision_models.candidates import LIMIT, explain_broken_rule, format_rule_value
from decisor.decision_models.client import FIRST, TIME_OVER, OpenModel, Progress, TimeOver
from decisor.decision_models.outcomes import Reason, measure_lead
from decisor.decision_models.ranking import rank_model
from decisor.errors import ToolError
from decisor.system.wording import format_amount, format_count
from decisor.types import AmountPlan, Option, PlanRow, PlanTable, Ranking, Value, Winner

ENUMERATE_SECONDS = 60.0
SURELY_ENUMERABLE = 2_000
SOLVE_SECONDS = 120.0
TRIAL_SECONDS = 30.0
"""So long are trials solved, one after the other."""
AGREE = 1e-6
NAMED_ROWS = 8
NONE_ALLOWED: tuple[str, ...] = ("none allowed",)
Rows = Sequence[Mapping[str, Value]]


class NothingFits(ToolError):
    """No plan meets all rules."""


@dataclass(frozen=True)
class RuleState:
    """A rule at a plan."""

    rows: int
    binding: int
    """Number of rows that hold with nothing to spare."""
    slack: float | None
    """What the nearest of the other rows has to spare; None if all bind."""
    prices: Rows = ()
    """``price`` of the dearest rows, and their cells as ``of NAME``."""


@dataclass(frozen=True)
class SolvedPlan:
    """What the solver found, measured by the model's SQL."""

    status: str = ""
    """optimal, infeasible, unbounded or time limit."""
    figures: dict[str, float] = field(default_factory=dict)
    """objective, bound, seconds, unknowns, requirements, checked."""
    parts: dict[tuple[str, str], float | None] = field(default_factory=dict)
    """(measure, part) -> its value by the model's SQL; none if there is no plan."""
    broken: dict[str, Reason] = field(default_factory=dict)
    """Rules that only a query can tell, and the plan breaks."""
    tables: dict[str, PlanTable] = field(default_factory=dict)
    chosen: dict[str, Sequence[int]] = field(default_factory=dict)
    """Numbers of the rows that are not 0, by table."""
    rules: dict[str, RuleState] = field(default_factory=dict)
    conflict: dict[str, tuple[int, Rows]] = field(default_factory=dict)
    """Rules that cannot hold together: how many of their rows, and the first of them."""
    faults: dict[str, tuple[int, Rows]] = field(default_factory=dict)
    """Rules that the data alone break."""

    @property
    def measures(self) -> dict[str, float | None]:
        """Each measure by the model's SQL; none if there is no plan."""
        totals: dict[str, float | None] = {}
        for (measure, _), value in self.parts.items():
            before = totals.get(measure, 0.0)
            totals[measure] = None if value is None or before is None else before + value
        return totals

    @property
    def choice(self) -> tuple[str, ...]:
        """Name of each row of the first table that is not 0, with its amount if that is a whole number and not 1."""
        first = next(iter(self.tables.values()), PlanTable("", 0, 0))
        words = []
        for row in first.rows:
            is_count = row.amount != 1 and float(row.amount).is_integer()
            words.append(f"{row.amount:.0f} x {row.label}" if is_count else row.label)
        return tuple(words)

    def name(self) -> str:
        """Return a name for the plan: the rows of the first table, or how many there are."""
        words = self.choice
        if len(words) <= NAMED_ROWS:
            return " + ".join(words) or "nothing"
        first = next(iter(self.tables.values()))
        return f"a plan with {first.used:,} of {format_count(first.count, 'row')} of {first.name}"


def solve_model(
    model: OpenModel,
    *,
    seconds: float = SOLVE_SECONDS,
    scenario: str = "",
    changes: str = "",
    forced: Sequence[tuple[str, int, float]] = (),
    excluded: Sequence[Sequence[int]] = (),
) -> SolvedPlan:
    """Find the best plan with the solver.

    Args:
        forced: triples of table, row and amount.
        excluded: choices of the first table, by rows, that may not come out.

    Raises:
        ToolError: the model is not linear or a query fails (with its line), or the plan breaks a rule.
        SetupError: the solver is not installed.
    """
    plan = propose(model, seconds, scenario, changes, forced=list(forced), excluded=list(map(list, excluded)))
    check_plan(model, plan)
    return plan


def propose(model: OpenModel, seconds: float, scenario: str, changes: str, **request: object) -> SolvedPlan:
    request = {"seconds": seconds, "scenario": scenario, "changes": changes, "forced": [], "excluded": [], **request}
    # The queries around the solver take time beside its own limit.
    reply = model.job("solve", request, seconds + 4 * model.model.seconds)
    plan, rows = SolvedPlan(), cast(Any, reply.rows)
    for kind, name, value, more in rows:
        match kind:
            case "status":
                plan = replace(plan, status=name)
            case "figure":
                plan.figures[name] = value
            case "part":
                plan.parts[name, more] = value
            case "broken":
                plan.broken[name] = Reason(value, tuple(more))
            case "plan":
                cells = tuple(PlanRow(row["label"], row["amount"], row["now"]) for row in more)
                plan.tables[name] = PlanTable(name, value["rows"], value["used"], value["unit"], cells)
                plan.chosen[name] = [row["row"] for row in more]
            case "rule":
                plan.rules[name] = RuleState(value["rows"], value["binding"], value["slack"], more)
            case "conflict":
                plan.conflict[name] = (value, more)
            case "fault":
                plan.faults[name] = (value, more)
    return plan


def check_plan(model: OpenModel, plan: SolvedPlan) -> None:
    """Check that the solver's objective equals the SQL of the measure, and that no rule is broken.

    Raises:
        ToolError: they differ, or the plan breaks a rule that the solver cannot take.
    """
    first = model.model.first
    value, objective = plan.measures.get(first.name), plan.figures["objective"]
    if not plan.parts:
        return
    if value is None or abs(value - objective) > AGREE * max(1.0, abs(value), abs(objective)):
        raise ToolError(
            f"The solver has {format_amount(objective, first.unit)} for {first.name}, the SQL measures "
            f"{'nothing' if value is None else format_amount(value, first.unit)} for the same plan: NULLs are passed "
            "over by one of them, or the rewriting for the solver is wrong."
        )
    if plan.broken:
        name, reason = next(iter(plan.broken.items()))
        raise ToolError(
            f"The best plan breaks rule {name}: {explain_broken_rule(model.model, name, reason)}. The solver cannot "
            f"take {model.model.rule(name).form}; write the rule as rows and must."
        )


def explain_no_plan(model: OpenModel, plan: SolvedPlan) -> str:
    """Explain why there is no plan: which rules conflict, or what is not limited."""
    first = model.model.first
    if plan.status == "unbounded":
        return f"Nothing limits {first.name}: the program is unbounded. Give an unknown upper, or add a rule."
    if plan.status != "infeasible":
        return f"The solver ended with: {plan.status}. Give it more seconds."
    if plan.faults:
        told = "; ".join(describe_rule_rows(model, *one) for one in plan.faults.items())
        return f"No plan is possible: the data alone break {told}."
    twice = " (also without presolve)" if plan.figures["checked"] else ""
    if not plan.conflict:
        return f"Nothing meets all requirements{twice}: {', '.join(one.name for one in model.model.rules)}."
    told = "; ".join(describe_rule_rows(model, *one) for one in plan.conflict.items())
    return f"Nothing meets all requirements{twice}. These cannot hold together: {told}."


def describe_rule_rows(model: OpenModel, name: str, rows: tuple[int, Rows]) -> str:
    """Describe rows of a rule: "rule served in 2 rows, such as shop S01 (Every shop gets what it needs.)"."""
    count, first = rows
    text = next((one.text for one in model.model.rules if one.name == name), "")
    cells = ", ".join(f"{key} {format_rule_value(value)}" for key, value in first[0].items()) if first else ""
    such = f"{', such as' if count > 1 else ':'} {cells}" if cells else ""
    head = name if name.startswith("take of") else f"rule {name}"
    return f"{head} in {format_count(count, 'row')}{such}{f' ({text})' if text else ''}"


def describe_rules(model: OpenModel, plan: SolvedPlan) -> Iterator[str]:
    """Describe each rule at a plan: how many rows bind, their prices, and what the others have to spare."""
    first = model.model.first
    whole = any(one.kind != "continuous" for one in model.model.unknowns) or bool(model.model.choices)
    held = ", with whole numbers held" if whole else ""
    for name, state in plan.rules.items():
        words = f"{name}: {state.binding:,} of {format_count(state.rows, 'row')} bind"
        for row in state.prices[:2]:
            of = ", ".join(
                f"{key.removeprefix('of ')} {format_rule_value(cell)}" for key, cell in row.items() if key != "price"
            )
            price = format_amount(float(str(row["price"])), first.unit)
            words += f"; one more at {of or 'it'} changes {first.name} by {price}{held}"
        if state.slack is not None:
            words += f"; the nearest other has {format_amount(state.slack)} to spare"
        yield words


def build_plan(model: OpenModel, plan: SolvedPlan) -> AmountPlan:
    """Build the value of a plan that people see."""
    first = model.model.first
    values = {part: value for (measure, part), value in plan.parts.items() if measure == first.name}
    parts = {part or first.name: value for part, value in values.items() if value is not None}
    return AmountPlan(tuple(plan.tables.values()), parts if len(parts) > 1 else {}, tuple(describe_rules(model, plan)))


def rank_solved(
    model: OpenModel, *, seconds: float = SOLVE_SECONDS, scenario: str = "", changes: str = "", trials: int = 0
) -> Ranking:
    """Rank the best and the second best plan by the solver.

    Robustness is how often the solver finds the best plan in trials, as many as half a minute allows.

    Raises:
        ToolError: as ``solve_model``; or there is no plan.
    """
    began = time.monotonic()
    # First the best plan, or the reason why there is none.
    best = solve_model(model, seconds=seconds, scenario=scenario, changes=changes)
    first = model.model.first
    if not best.parts:
        raise (NothingFits if best.status == "infeasible" else ToolError)(explain_no_plan(model, best))
    options, cut = [Option(best.name(), best.measures[first.name] or 0.0)], ""
    left = seconds - (time.monotonic() - began)
    # One constraint can exclude a yes-or-no choice but no other, so only such a choice has a second best.
    binary = bool(model.model.choices) or model.model.unknowns[0].kind == "binary"
    if best.status == "optimal" and binary and left > 1:
        rows = next(iter(best.chosen.values()))
        try:
            second = solve_model(model, seconds=left, scenario=scenario, changes=changes, excluded=[rows])
            if second.parts:
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
        plan=build_plan(model, best),
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
            plan = propose(model, left, scenario, changes, seed=seed)
        except (TimeOver, ToolError):
            break
        # A solution at the time limit is not proved best, so the trial has no winner.
        if plan.status not in ("optimal", "infeasible"):
            break
        shut_out = plan.status == "infeasible" or plan.broken
        choice = NONE_ALLOWED if shut_out else plan.choice
        names.setdefault(choice, plan.name())
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
    """Rank a model by computing every candidate, or by the solver.

    The solver is used if there are unknowns, or if the candidates would take more than about a minute and the model is
    linear.

    Raises:
        ToolError: there are too many candidates, and the model is not linear.
    """
    limit = min(seconds, SOLVE_SECONDS)
    if not model.model.choice:
        return rank_solved(model, seconds=limit, scenario=scenario, changes=changes, trials=trials)
    if is_enumerable(model):
        return rank_model(model, trials=trials, seconds=seconds, scenario=scenario, changes=changes, progress=progress)
    try:
        return rank_solved(model, seconds=limit, scenario=scenario, changes=changes, trials=trials)
    except ToolError as error:
        count = len(model.candidates)
        if "not linear" not in str(error) or model.model.change or model.model.recompute:
            raise
        if count <= LIMIT:  # slow, but it can be computed
            return rank_model(
                model, trials=trials, seconds=seconds, scenario=scenario, changes=changes, progress=progress
            )
        raise ToolError(f"There are {count:,} candidates, more than {LIMIT:,} to compute, and {error}") from error


def is_enumerable(model: OpenModel) -> bool:
    """Return whether a sample says that all candidates are computed in about a minute.

    False for more than ``LIMIT`` candidates, unless a change of the data leaves the solver out.
    """
    count = len(model.candidates)
    if count <= SURELY_ENUMERABLE or model.model.change or model.model.recompute:
        return True
    if count > LIMIT:
        return False
    sample = range(min(count, 4 * FIRST))
    return model.outcomes(sample, most=0).seconds / len(sample) * count <= ENUMERATE_SECONDS
