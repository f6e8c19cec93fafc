"""Decisions for the solver: a plan of amounts, measured by the model's SQL, with its parts, rules and prices."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from decisor.decision_models.candidates import LIMIT, explain_broken_rule, format_cells
from decisor.decision_models.client import FIRST, MORE_SECONDS, TIME_OVER, OpenModel, TimeOver
from decisor.decision_models.outcomes import Reason, is_tied, measure_lead, relative_distance
from decisor.decision_models.ranking import NO_READING, compare_parts, describe_near, describe_not_computed, rank_model
from decisor.decision_models.turning_points import FACTOR, build_knobs, find_turns_of_knob
from decisor.errors import ToolError
from decisor.system.wording import format_amount, format_count
from decisor.types import (
    AmountPlan,
    HeldPlan,
    Option,
    PlanRow,
    PlanTable,
    Ranking,
    ScenarioOutcome,
    Turn,
    Value,
    Winner,
)

ENUMERATE_SECONDS = 60.0
SURELY_ENUMERABLE = 2_000
SOLVE_SECONDS = 120.0
TRIAL_SECONDS = 30.0
"""So long are trials solved, one after the other."""
AGREE = 1e-6
NAMED_ROWS = 8
MOST_TIES = 3
NONE_ALLOWED: tuple[str, ...] = ("none allowed",)
Rows = Sequence[Mapping[str, Value]]
ONE_CHOICE = (
    "Several choices are for the solver. To have every candidate computed, write one choice: the rows of all (UNION "
    'ALL) with a column kind, and take = "one per kind"'
)


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
    """The dearest rows, with their cells as ``of NAME``.

    ``price`` is the dual value, with whole numbers held; ``step`` is by solving again.
    """


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
    chosen: dict[str, dict[int, float]] = field(default_factory=dict)
    """By table, the numbers of the rows that are not 0, and their amounts."""
    rules: dict[str, RuleState] = field(default_factory=dict)
    reduced: dict[str, tuple[int, Rows]] = field(default_factory=dict)
    """How many amounts of a table are 0 at a price, and the ``label`` and ``price`` of the nearest."""
    conflict: dict[str, tuple[int, Rows]] = field(default_factory=dict)
    """Rules that cannot hold together: how many of their rows, and the first of them."""
    faults: dict[str, tuple[int, Rows]] = field(default_factory=dict)
    """Rules that the data alone break."""
    held: tuple[float, tuple[str, ...]] = (float("nan"), ())
    """The objective that the plan held to has on these data, and the rules that it breaks there."""

    @property
    def measures(self) -> dict[str, float | None]:
        """Each measure by the model's SQL; none if there is no plan."""
        totals: dict[str, float | None] = {}
        for (measure, _), value in self.parts.items():
            before = totals.get(measure, 0.0)
            totals[measure] = None if value is None or before is None else before + value
        return totals

    def parts_of(self, measure: str) -> dict[str, float | None]:
        """Return the parts of a measure; '' is one without a name."""
        return {part: value for (name, part), value in self.parts.items() if name == measure}

    @property
    def value(self) -> float:
        """The objective, as the solver has it."""
        return self.figures["objective"]

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
    required: Sequence[tuple[str, bool]] = (),
    excluded: Sequence[Iterable[int]] = (),
    stepped: bool = False,
) -> SolvedPlan:
    """Find the best plan with the solver.

    Args:
        required: names of rows, each with whether it is to be in the plan or out of it.
        excluded: choices of the first table, by rows, that may not come out.
        stepped: solve the rows that bind most again with one more, if there are whole numbers.

    Raises:
        ToolError: the model is not linear or a query fails (with its line), or the plan breaks a rule.
        SetupError: the solver is not installed.
    """
    request = {"required": list(required), "excluded": list(map(list, excluded))}
    plan = propose(model, seconds, scenario, changes, **request, stepped=stepped)
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
                plan.chosen[name] = dict(zip(value["places"], value["amounts"], strict=True))
                cells = tuple(PlanRow(**row) for row in more)
                plan.tables[name] = PlanTable(name, value["rows"], len(value["places"]), value["unit"], cells)
            case "rule":
                plan.rules[name] = RuleState(value["rows"], value["binding"], value["slack"], more)
            case "reduced":
                plan.reduced[name] = (value, more)
            case "conflict":
                plan.conflict[name] = (value, more)
            case "fault":
                plan.faults[name] = (value, more)
            case "held":
                plan = replace(plan, held=(float("nan") if value is None else value, tuple(more)))
    return plan


def check_plan(model: OpenModel, plan: SolvedPlan) -> None:
    """Check that the solver's objective equals the SQL of the measure, and that no rule is broken.

    Raises:
        ToolError: they differ, or the plan breaks a rule that the solver cannot take.
    """
    first = model.model.first
    value, objective = plan.measures.get(first.name), plan.value
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
    cells = format_cells(first[0]) if first else ""
    such = f"{', such as' if count > 1 else ':'} {cells}" if cells else ""
    head = name if name.startswith("take of") else f"rule {name}"
    return f"{head} in {format_count(count, 'row')}{such}{f' ({text})' if text else ''}"


def describe_rules(model: OpenModel, plan: SolvedPlan) -> Iterator[str]:
    """Describe each rule at a plan: how many rows bind, their prices, and what the others have to spare.

    Then describe what the nearest amounts of 0 would have to gain.
    """
    first = model.model.first
    whole = any(one.kind != "continuous" for one in model.model.unknowns) or bool(model.model.choices)
    held = ", with whole numbers held" if whole else ""
    for name, state in plan.rules.items():
        words = f"{name}: {state.binding:,} of {format_count(state.rows, 'row')} bind"
        for row in state.prices[:2]:
            of = format_cells({key[3:]: cell for key, cell in row.items() if key[:3] == "of "})
            price = format_amount(float(str(row.get("step", row.get("price")))), first.unit)
            how = " (solved again)" if "step" in row else held
            words += f"; one more at {of or 'it'} changes {first.name} by {price}{how}"
        if state.slack is not None:
            words += f"; the nearest other has {format_amount(state.slack)} to spare"
        yield words
    better = "cheaper" if first.goal == "min" else "better"
    for name, (count, rows) in plan.reduced.items():
        near = ", ".join(f"{row['label']} {format_amount(float(str(row['price'])), first.unit)}" for row in rows)
        yield f"{name}: {format_count(count, 'amount')} at 0 would have to be {better} by more than: {near}{held}"


def name_other_plan(best: SolvedPlan, other: SolvedPlan, number: int) -> str:
    """Return a name for another plan than the best, by how it differs if both are too large for a name."""
    if other.name() != best.name():
        return other.name()
    more, less = ([*dict.fromkeys(one)] for one in (other.choice, best.choice))
    more, less = [one for one in more if one not in less], [one for one in less if one not in more]
    if 0 < len(more) + len(less) <= NAMED_ROWS:
        return f"the same with {' + '.join(more) or 'nothing'} instead of {' + '.join(less) or 'nothing'}"
    return f"{other.name()} (another, {number + 1})"


def find_other_plans(
    model: OpenModel, best: SolvedPlan, seconds: float, scenario: str, changes: str
) -> tuple[list[Option], dict[str, float | None], str]:
    """Find the plans as good as the best (three at most) and the next best.

    Return them, the parts of the next best, and why there are no more.
    """
    began, name, options = time.monotonic(), model.model.first.name, list[Option]()
    # One constraint can exclude a yes-or-no choice but no other, so only such a choice has a second best.
    binary = bool(model.model.choices) or model.model.unknowns[0].kind == "binary"
    is_near = bool(model.model.first.within)  # then a runner-up may be better by the first measure
    excluded = [next(iter(best.chosen.values()))] if best.status == "optimal" and binary and not is_near else []
    # Others as good are asked for until one is worse.
    while 0 < len(excluded) <= MOST_TIES and (left := seconds - (time.monotonic() - began)) > 1:
        try:
            second = solve_model(model, seconds=left, scenario=scenario, changes=changes, excluded=excluded)
        except TimeOver:
            return options, {}, f"{TIME_OVER} before another choice was found"
        if second.status != "optimal":
            break
        value = second.measures[name] or 0.0
        options.append(Option(name_other_plan(best, second, len(options) + 1), value))
        if not is_tied(np.array([value]), best.measures[name] or 0.0).all():
            return options, second.parts_of(name), ""
        excluded.append(next(iter(second.chosen.values())))
    return options, {}, ""


def rank_solved(
    model: OpenModel,
    *,
    seconds: float = SOLVE_SECONDS,
    scenario: str = "",
    changes: str = "",
    trials: int = 0,
    stepped: bool = True,
) -> Ranking:
    """Rank the best plan, those as good (three at most) and the next best by the solver.

    stepped: solve the rows that bind most again with one more.

    Robustness is how often the solver finds the best plan in trials, as many as half a minute allows.

    Raises:
        ToolError: as ``solve_model``; or there is no plan.
    """
    began = time.monotonic()
    # First the best plan, or the reason why there is none.
    best = solve_model(model, seconds=seconds, scenario=scenario, changes=changes, stepped=stepped)
    first = model.model.first
    if not best.parts:
        raise (NothingFits if best.status == "infeasible" else ToolError)(explain_no_plan(model, best))
    value = best.measures[first.name] or 0.0
    others, parts, cut = find_other_plans(model, best, seconds - (time.monotonic() - began), scenario, changes)
    options = [Option(best.name(), value), *others]
    figures = best.figures
    proof = "no other is better"
    if best.status != "optimal":
        gap = relative_distance(figures["bound"], best.value)
        proof = f"at best {format_amount(figures['bound'], first.unit)} is possible, a gap of {gap:.2%}"
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
        plan=AmountPlan(tuple(best.tables.values()), tuple(describe_rules(model, best))),
        parts=compare_parts(first.name, best.parts_of(first.name), parts),
        today=None if scenario or changes else first.now,
        near=describe_near(model.model, figures["bound"], "plans") if first.within and not stopped else "",
    )
    if not scenario and not changes:
        left = seconds - (time.monotonic() - began)
        ranking = replace(ranking, readings=tuple(solve_readings(model, best, left)))
    # Trials take the time that is left.
    left = min(TRIAL_SECONDS, seconds - (time.monotonic() - began))
    if not trials or stopped or left <= 0 or not model.model.varied:
        return ranking
    return add_solved_trials(model, ranking, best, trials, left, scenario, changes)


def add_solved_trials(
    model: OpenModel, ranking: Ranking, best: SolvedPlan, trials: int, seconds: float, scenario: str, changes: str
) -> Ranking:
    """Solve each trial as a program of its own, and add the winners to a ranking and what it costs to hold to ``best``.

    Robustness is the share of the trials in which ``best`` wins, or is as good as the plan that does.
    """
    began, counts = time.monotonic(), Counter[tuple[str, ...]]()
    names, sign = {NONE_ALLOWED: "none allowed"}, 1.0 if ranking.goal == "min" else -1.0
    held = {
        name: {"rows": best.tables[name].count, "places": [*rows], "amounts": [*rows.values()]}
        for name, rows in best.chosen.items()
    }
    breaks, costs, kept = Counter[str](), list[float](), 0
    for seed in range(trials):
        left = seconds - (time.monotonic() - began)
        if left <= 0:
            break
        try:
            plan = propose(model, left, scenario, changes, seed=seed, held=held)
        except (TimeOver, ToolError):
            break
        # A solution at the time limit is not proved best, so the trial has no winner.
        if plan.status not in ("optimal", "infeasible"):
            break
        shut_out = plan.status == "infeasible" or plan.broken
        choice, (value, broken) = NONE_ALLOWED if shut_out else plan.choice, plan.held
        names.setdefault(choice, plan.name())
        breaks.update(broken)
        kept += not broken
        if not broken and not shut_out:
            is_best = is_as_good(model, value, plan)
            costs.append(0.0 if is_best else max(0.0, sign * (value - plan.value)))
            choice = best.choice if is_best else choice
        counts[choice] += 1
    done = counts.total()
    if not done:
        return replace(ranking, covered=f"No trial was solved in {seconds:.0f} s")
    names[best.choice] = best.name()
    winners = tuple(Winner(names[choice], count / done) for choice, count in counts.most_common())
    cut = f", {done:,} of {trials:,} in {seconds:.0f} s" if done < trials else ""
    mean, high = (float(np.mean(costs)), float(np.percentile(costs, 95))) if costs else (None, None)
    return replace(
        ranking,
        robustness=counts[best.choice] / done,
        trials=done,
        winners=winners,
        varied=tuple(f"{column.name} {column.spread}" for column in model.model.varied),
        covered=f"Each trial was solved anew{cut}",
        held=HeldPlan(kept, dict(breaks.most_common()), mean, high),
    )


def find_solved_turning_points(model: OpenModel, best: SolvedPlan, seconds: float) -> Iterator[Turn]:
    """Find the first factor of each input at which the plan is no longer the best, by solving again.

    After ``seconds`` it ends. Raises ToolError if a statement fails.
    """
    until, plans = time.monotonic() + seconds, {best.choice: best}

    def both(factor: float) -> tuple[SolvedPlan, SolvedPlan]:
        return solve_beside(model, best, until, changes=knob.update.replace(FACTOR, repr(factor)))

    def winners(factors: Sequence[float]) -> list[int]:
        return [winner(factor) for factor in factors]

    def winner(factor: float) -> int:
        plan, held = both(factor)
        if plan.status == "infeasible":
            return -1
        if plan is held or (held.parts and is_as_good(model, held.value, plan)):
            return 0
        plans.setdefault(plan.choice, plan)
        return list(plans).index(plan.choice)

    def describe(factor: float, wins: int) -> tuple[str, str]:
        broken = ", ".join(list_conflicting_rules(both(factor)[1]))
        return ([*plans.values()][wins].name() if wins >= 0 else ""), broken

    try:
        for knob in build_knobs(model):
            yield from list(find_turns_of_knob(knob, winners, describe, 0, None))
    except TimeOver:
        return


def solve_beside(
    model: OpenModel, best: SolvedPlan, until: float, scenario: str = "", changes: str = ""
) -> tuple[SolvedPlan, SolvedPlan]:
    """Return the best plan on changed data or in a scenario, and there the one that holds to the rows of ``best``.

    Raises:
        TimeOver: the moment ``until`` comes before.
        ToolError: a statement fails.
    """

    def solved(forced: Sequence[tuple[str, int, float]]) -> SolvedPlan:
        left = until - time.monotonic()
        plan = propose(model, left, scenario, changes, forced=list(forced)) if left > 0 else SolvedPlan()
        if plan.status not in ("optimal", "infeasible"):
            raise TimeOver(MORE_SECONDS)
        return plan

    plan = solved(())
    if not plan.parts or plan.choice == best.choice:
        return plan, plan
    # Of several plans as good, the solver may give another: the best one is then still as good.
    return plan, solved(hold_plan(model, best))


def is_as_good(model: OpenModel, value: float, plan: SolvedPlan) -> bool:
    """Return whether an outcome is as good as that of a best plan; unknown, so False, if the next measure decides."""
    return not model.model.first.within and bool(is_tied(np.array([value]), plan.value).all())


def list_conflicting_rules(plan: SolvedPlan) -> list[str]:
    return [*plan.faults, *(name for name in plan.conflict if not name.startswith("take of"))]


def solve_readings(model: OpenModel, best: SolvedPlan, seconds: float) -> Iterator[ScenarioOutcome]:
    """Solve each open question read the other way, as ``compute_readings`` does for candidates."""
    until = time.monotonic() + seconds
    for scenario in [one for one in model.model.scenarios if one.open]:
        try:
            plan, held = solve_beside(model, best, until, scenario.name)
            check_plan(model, plan)
        except (ToolError, TimeOver) as error:
            yield describe_not_computed(scenario.open, str(error))
            continue
        name = name_other_plan(best, plan, 1) if plan.parts else ""
        outcome, usual = (one.value if one.parts else None for one in (plan, held))
        is_same = bool(held.parts) and (plan is held or is_as_good(model, held.value, plan))
        why = ", ".join(list_conflicting_rules(held))
        yield ScenarioOutcome(scenario.open, name, outcome, usual, why, is_same=is_same)
    yield from (describe_not_computed(question, NO_READING) for question in model.model.open)


def hold_plan(model: OpenModel, plan: SolvedPlan) -> list[tuple[str, int, float]]:
    """Return what holds the first table to the rows of a plan: whole amounts as they are, the others 0."""
    name, table = next(iter(plan.tables.items()))
    amounts = plan.chosen[name]
    whole = all(one.kind != "continuous" for one in model.model.unknowns if one.name == name)
    return [(name, row, amounts.get(row, 0.0)) for row in range(table.count) if whole or row not in amounts]


def rank_or_solve(
    model: OpenModel,
    *,
    trials: int = 200,
    seconds: float = float("inf"),
    scenario: str = "",
    changes: str = "",
    stepped: bool = True,
) -> Ranking:
    """Rank a model by computing every candidate, or by the solver.

    The solver is used if there are unknowns, or if the candidates would take more than about a minute and the model is
    linear.

    Raises:
        ToolError: there are too many candidates or several choices, and the model is not linear.
    """

    def solve() -> Ranking:
        limit = min(seconds, SOLVE_SECONDS)
        return rank_solved(model, seconds=limit, scenario=scenario, changes=changes, trials=trials, stepped=stepped)

    def compute() -> Ranking:
        return rank_model(model, trials=trials, seconds=seconds, scenario=scenario, changes=changes)

    if model.model.choice and is_enumerable(model):
        return compute()
    try:
        return solve()
    except ToolError as error:
        if "not linear" not in str(error) or model.model.change or model.model.recompute or model.model.unknowns:
            raise
        if not model.model.choice:
            raise ToolError(f"{error}. {ONE_CHOICE}") from error
        count = len(model.candidates)
        if count <= LIMIT:  # slow, but it can be computed
            return compute()
        raise ToolError(f"There are {count:,} candidates, more than {LIMIT:,} to compute, and {error}") from error


def rank_or_explain(model: OpenModel, seconds: float, scenario: str = "", changes: str = "") -> Ranking | str:
    """Return the ranking without trials, or why nothing fits."""
    try:
        return rank_or_solve(model, trials=0, seconds=seconds, scenario=scenario, changes=changes, stepped=False)
    except NothingFits as error:
        return str(error)


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
