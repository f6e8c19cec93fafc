"""Answers of the tool ``whatif`` on a model of the solver: each question is solved again, beside the plan as it is."""

from __future__ import annotations

from decisor.decision_models.analyses import (
    MAX_SHOWN,
    MOST,
    build_cited_records,
    compare_decisions,
    describe_turns,
    resolve_condition,
    turn_rows,
)
from decisor.decision_models.client import OpenModel
from decisor.decision_models.optimize import (
    SOLVE_SECONDS,
    SolvedPlan,
    explain_no_plan,
    find_solved_turning_points,
    rank_or_explain,
    solve_model,
)
from decisor.decision_models.turning_points import HIGH, LOW
from decisor.errors import ToolError
from decisor.parsing.whatif_request import WhatIfWish
from decisor.system.wording import format_amount
from decisor.types import Observation, Value


def answer_solved_change(model: OpenModel, wish: WhatIfWish, seconds: float) -> Observation:
    """Answer the decision on changed data for a model of the solver."""
    scenario, text, what = resolve_condition(model, wish)
    now, then = rank_or_explain(model, seconds), rank_or_explain(model, seconds, scenario, text)
    return compare_decisions(model, now, then, what)


def answer_solved_why(model: OpenModel, wish: WhatIfWish, seconds: float) -> Observation:
    """Answer why a row is in the best plan or not, by solving again with it out or in."""
    name, first = wish.text or " ".join(wish.candidates), model.model.first
    best = solve_best_plan(model, seconds)
    is_in = any(row.label.lower() == name.lower() for table in best.tables.values() for row in table.rows)
    other = solve_model(model, seconds=seconds, required=[(name, not is_in)])
    head = (
        f"{name} is {'' if is_in else 'not '}in the best plan ({format_amount(best.value, first.unit)} {first.name})."
    )
    side = "without" if is_in else "with"
    fields: dict[str, Value] = {"row": name, "in the best plan": is_in, f"{first.name} of the best": best.value}
    if other.status != "optimal":
        fields["effect"] = None
        return Observation(build_cited_records([fields]), f"{head} {side.title()} it: {explain_no_plan(model, other)}")
    effect = other.value - best.value
    fields |= {f"{first.name} {side} it": other.value, "effect": effect, "unit": first.unit}
    more, less = (
        [f"{table}: {row.label}" for table, rows in one.tables.items() for row in rows.rows if row.label not in labels]
        for one, labels in ((other, list_plan_labels(best)), (best, list_plan_labels(other)))
    )
    lines = [head, f"The best plan {side} it has {format_amount(other.value, first.unit)}: {effect:+,.6g}."]
    lines += [f"It takes {', '.join(more[:MAX_SHOWN])} instead."] if more else []
    lines += [f"It leaves out {', '.join(less[:MAX_SHOWN])}."] if less else []
    return Observation(build_cited_records([fields]), "\n".join(lines), total=1)


def list_plan_labels(plan: SolvedPlan) -> set[str]:
    return {row.label for table in plan.tables.values() for row in table.rows}


def solve_best_plan(model: OpenModel, seconds: float) -> SolvedPlan:
    """Solve the model on the unchanged data; raise ToolError if nothing fits."""
    best = solve_model(model, seconds=min(seconds, SOLVE_SECONDS))
    if best.status != "optimal":
        raise ToolError(explain_no_plan(model, best))
    return best


def answer_solved_turning_points(model: OpenModel, seconds: float) -> Observation:
    """Report how far each input has to move until another plan is best, by solving again."""
    if not model.model.inputs:
        raise ToolError("This model names no [input], so nothing can be turned; use `set TABLE.COLUMN = ...`.")
    best = solve_best_plan(model, seconds)
    turns = tuple(find_solved_turning_points(model, best, seconds))
    head = (
        f"{best.name()} is best now. Each input alone, from {LOW:g} to {HIGH:g} times its value, solved again until "
        "another plan is best:"
    )
    rows = turn_rows(turns)
    lines = [head, *describe_turns(model, turns, best.name())]
    return Observation(build_cited_records(rows[:MOST]), "\n".join(lines), truncated=len(rows) > MOST, total=len(rows))
