"""Answers about the whole decision: worst case, Pareto front, sensitivity, turning points. Each is citable records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decisor.decision_models import pareto as fronts
from decisor.decision_models.answers import SOURCE, Base, none_of, study_of
from decisor.decision_models.explain import say
from decisor.decision_models.machine import OpenModel
from decisor.decision_models.no_outcome import no_outcome
from decisor.decision_models.scenarios import first_place, regrets, side_by_side, worst_cases
from decisor.decision_models.sensitivity import CONTENDERS, TRIALS, swings
from decisor.decision_models.turning_points import HIGH, LOW, contenders, knobs, turning_points
from decisor.errors import ToolError
from decisor.plurals import counted
from decisor.rankings import amount
from decisor.types import Observation, Point, Record, Turn, Value

MOST = 30
DOTS = 400
"""So many candidates are in a picture of the front."""


def allowed(base: Base) -> int:
    if base.best is None:
        raise ToolError("No candidate is allowed, so there is nothing to compare; ask `why NAME`, or change the data.")
    return base.best


def scenarios(model: OpenModel, base: Base) -> Observation:
    """Who wins where, and who is best in the worst case and regrets least."""
    if not model.model.scenarios:
        raise ToolError("This model has no scenarios; change the data with `set TABLE.COLUMN = ...`.")
    allowed(base)
    first = model.model.first
    sides = side_by_side(model, base.outcomes)
    picks = {"best in the worst case": worst_cases(sides.values, first.goal)}
    regret = regrets(sides.values, first.goal)
    name = model.candidates.name
    lines = [f"In {one.name}: {one.best or 'nothing is allowed'}{at_value(one.outcome, first.unit)}."
             + (f" {base.ranking.options[0].name}: {one.why}." if one.usual is None and one.why else "")
             for one in sides.scenes]  # fmt: skip
    lines += [f"Mind: {sides.note}."] if sides.note else []
    rows: list[dict[str, Value]] = [
        {"scenario": one.name, "best": one.best, first.name: one.outcome, f"{base.ranking.options[0].name} there":
         one.usual if one.usual is not None else one.why} for one in sides.scenes]  # fmt: skip
    picked = {base.order[0]: base.ranking.options[0].name}
    for words, values in picks.items():
        if (place := first_place(values, first.goal)) is not None:
            picked[place] = name(int(base.outcomes.candidates[place]))
            lines.append(f"The {words} is {picked[place]}: {amount(float(values[place]), first.unit)}.")
    if (place := first_place(regret, "min")) is not None:
        picked[place] = name(int(base.outcomes.candidates[place]))
        lines.append(f"Least regret has {picked[place]}: at most {amount(float(regret[place]), first.unit)} "
                     "behind the best of a scenario.")  # fmt: skip
    else:
        lines.append("No candidate is allowed in every scenario.")
    for place, candidate in picked.items():
        cells = {side: none_of(float(value)) for side, value in zip(sides.names, sides.values[place], strict=True)}
        rows.append({"candidate": candidate, **cells, "worst": none_of(float(picks["best in the worst case"][place]))})
    study = study_of(model, base, "Scenarios side by side", scenes=sides.scenes)
    return Observation(records(rows), "\n".join(lines), total=len(rows), study=study)


def at_value(value: float | None, unit: str) -> str:
    return "" if value is None else f" ({amount(value, unit)})"


def pareto(model: OpenModel, base: Base) -> Observation:
    """The allowed candidates that no other allowed one beats by every measure."""
    measures = model.model.measures
    if len(measures) < 2:
        raise ToolError(f"This model has one measure, {measures[0].name}; a front needs two. Ask `rank`.")
    allowed(base)
    order = np.array(base.order)
    values = base.outcomes.values[order]
    on = fronts.front(values, [one.goal for one in measures])
    points = [Point(model.candidates.name(int(base.outcomes.candidates[place])),
                    tuple(float(value) for value in values[at]), bool(on[at]))
              for at, place in enumerate(order) if on[at] or at < DOTS]  # fmt: skip
    ends = [one for one in points if one.front]
    rows: list[dict[str, Value]] = [
        {"candidate": one.name, **{m.name: v for m, v in zip(measures, one.values, strict=True)}} for one in ends[:MOST]
    ]
    names = " and ".join(f"{one.name} ({one.goal})" for one in measures)
    lines = [
        f"On the Pareto front of {names}: {counted(len(ends), 'candidate')} of {len(order):,} that are allowed. For "
        "every other one, one of these is as good in all measures and better in one."
    ]
    for one in ends[:MOST]:
        pairs = zip(measures, one.values, strict=True)
        lines.append(f"{one.name}: {', '.join(f'{m.name} {amount(v, m.unit)}' for m, v in pairs)}")
    study = study_of(model, base, "Pareto front", points=tuple(points))
    return Observation(records(rows), "\n".join(lines), truncated=len(ends) > MOST, total=len(ends), study=study)


def sensitivity(model: OpenModel, base: Base, seconds: float) -> Observation:
    """Which input moves the lead of the best most."""
    allowed(base)
    first = model.model.first
    if not any(one.spread for one in model.model.inputs):
        raise ToolError("No input of this model has a spread, so nothing varies; ask `turning points`.")
    every = swings(model, base.outcomes, seconds=seconds)
    if not every and len(base.order) > 1:
        raise ToolError("The limit of seconds is reached before any input was varied. Give it more seconds.")
    if not every:
        raise ToolError("There is no second candidate that is allowed, so no lead that could move.")
    rows: list[dict[str, Value]] = [
        {"input": one.input, "varies by": one.spread, "lead from": one.low, "lead to": one.high,
         "best stays in front": one.stays} for one in every]  # fmt: skip
    lead = "nothing" if base.ranking.lead is None else amount(base.ranking.lead, first.unit)
    lines = [
        f"{base.ranking.options[0].name} leads by {lead}. Each input alone, in {TRIALS} trials among the best "
        f"{min(CONTENDERS, len(base.order))}; 90 % of the leads lie between:"
    ]
    for one in every:
        ends = f"{amount(one.low, first.unit)} and {amount(one.high, first.unit)}"
        lines.append(f"{one.input} ({one.spread}): {ends}; stays best in {one.stays:.0%}")
    lines += cut_off(
        [one.name for one in model.model.inputs if one.spread and one.name not in {s.input for s in every}]
    )
    study = study_of(model, base, "What moves the lead", swings=every)
    return Observation(records(rows), "\n".join(lines), total=len(rows), study=study)


def turning(model: OpenModel, base: Base, target: int | None, seconds: float) -> Observation:
    """How far each input has to move until another one wins, or ``target``."""
    if not model.model.inputs:
        raise ToolError("This model names no [input], so nothing can be turned; use `set TABLE.COLUMN = ...`.")
    best, names = allowed(base), model.candidates
    if target == best:
        return Observation(
            records([{"candidate": names.name(best), "rank": 1}]), f"{names.name(best)} wins as the data are."
        )
    numbers = contenders(base.outcomes, model.model.first.goal, best, *([] if target is None else [target]))
    turns = tuple(turning_points(model, numbers, best, target, seconds))
    hits = [one for one in turns if one.factor is not None]
    whom = "another candidate" if target is None else names.name(target)
    rows: list[dict[str, Value]] = [
        {"input": one.input, "times": one.factor, "change": share(one), "wins": one.winner or "nothing is allowed",
         "because": one.why or ("it is then best" if one.winner else "")} for one in sorted_turns(hits)]  # fmt: skip
    lines = [f"{names.name(best)} is best now. Each input alone, from {LOW:g} to {HIGH:g} times its value, among "
             f"{len(numbers):,} of {len(names):,} candidates, until {whom} wins:"]  # fmt: skip
    lines += [turn_line(model, one, best) for one in sorted_turns(hits)]
    still = list(dict.fromkeys(one.input.removesuffix(", falling") for one in turns if one.factor is None))
    still = [one for one in still if one not in {hit.input for hit in hits}]
    if still:
        lines.append(f"No such point by {', '.join(still[:MOST])}{' alone' if len(still) < MOST else ' and more'}.")
    names_of_turns = {one.input.removesuffix(", falling") for one in turns}
    lines += cut_off([one.name for one in knobs(model) if one.name not in names_of_turns])
    if target is not None:
        lines += standing(model, base, target)
    title = f"What it takes for {whom} to win" if target is not None else "Turning points"
    return Observation(
        records(rows), "\n".join(lines), total=len(rows), study=study_of(model, base, title, turns=turns)
    )


def cut_off(inputs: Sequence[str]) -> list[str]:
    """What the limit of seconds left out."""
    if not inputs:
        return []
    names = f"{', '.join(inputs[:MOST])}{' and more' if len(inputs) > MOST else ''}"
    return [f"It ended early: the limit of seconds is reached, and {names} was not looked at; more seconds say it."]


def standing(model: OpenModel, base: Base, target: int) -> list[str]:
    """Where the wanted candidate stands as the data are."""
    place = int(np.flatnonzero(base.outcomes.candidates == target)[0])
    first, name = model.model.first, model.candidates.name(target)
    if base.outcomes.allowed[place]:
        gap = abs(float(base.outcomes.values[place, 0] - base.outcomes.values[base.order[0], 0]))
        return [f"As the data are {name} is {amount(gap, first.unit)} of {first.name} behind."]
    rules = [rule for at, rule in enumerate(base.outcomes.rules) if base.outcomes.broken[place, at]]
    why = [f"{rule}: {say(model.model, rule, base.outcomes.reasons.get((target, rule)))}" for rule in rules]
    return [f"As the data are {name} is ruled out by {one}." for one in why] or [
        f"{name} has no outcome: {no_outcome(model, target, float(base.outcomes.values[place, 0]))}."
    ]


def sorted_turns(turns: Sequence[Turn]) -> list[Turn]:
    """The smallest change first."""
    return sorted(turns, key=lambda one: abs(np.log(one.factor or 1.0)))


def share(turn: Turn) -> str:
    """
    >>> share(Turn("units", 1.0513)), share(Turn("units", 0.9))
    ('+5.13 %', '-10 %')
    """
    return f"{((turn.factor or 1.0) - 1) * 100:+.3g} %"


def turn_line(model: OpenModel, turn: Turn, best: int) -> str:
    wins = f"{turn.winner} wins" if turn.winner else "nothing is allowed"
    why = f", because {model.candidates.name(best)} then breaks {turn.why}" if turn.why else ""
    return f"{turn.input} {share(turn)}: {wins}{why}"


def records(rows: Sequence[dict[str, Value]]) -> tuple[Record, ...]:
    return tuple(Record(f"r{at}", fields, source=SOURCE) for at, fields in enumerate(rows[:MOST], 1))
