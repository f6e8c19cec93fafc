"""Answers of the tool ``whatif``: rankings, comparisons, changed data, scenarios and sensitivity.

Each answer is citable records.

A comparison or a reason (``why``) is about single candidates. A what-if shows the same decision on changed data or in
a scenario beside the unchanged data. Studies are about the whole decision: the winner of every scenario with worst
case and least regret, the Pareto front, the inputs that move the lead most (each varies alone, as its spread says),
and turning points.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decisor.decision_models.candidates import explain_broken_rule
from decisor.decision_models.client import OpenModel, build_updates, resolve_name, run_rule_tests
from decisor.decision_models.optimize import rank_or_solve
from decisor.decision_models.outcomes import Outcomes
from decisor.decision_models.ranking import (
    CONTENDERS,
    MIDDLE,
    build_scenario_outcome,
    choose_contenders,
    explain_broken_rules,
    explain_no_outcome,
    find_pareto_front,
    rank_model,
    rank_outcomes,
)
from decisor.decision_models.turning_points import HIGH, LOW, build_knobs, find_turning_points
from decisor.errors import ToolError
from decisor.parsing.whatif_request import WhatIfWish
from decisor.system.wording import format_amount, format_count, format_ranking, turn_distance, turn_percent
from decisor.types import CandidatePoint, Goal, Observation, Ranking, Record, ScenarioOutcome, Study, Swing, Turn, Value

NOW = "now"


@dataclass(frozen=True)
class ScenarioComparison:
    """The first measure of n candidates in s scenarios, with the winner of each."""

    names: tuple[str, ...]
    """``now`` and the scenarios."""
    values: NDArray[np.float64]
    """(n, s), nan if a rule or its outcome shuts a candidate out."""
    scenes: tuple[ScenarioOutcome, ...]
    """Winner of each scenario."""
    note: str = ""
    """Remark on the outcomes; '' if there is none."""


def compare_scenarios(model: OpenModel, now: Outcomes) -> ScenarioComparison:
    """Compute all candidates in every scenario; raise ToolError if a statement fails.

    Args:
        now: outcomes of all candidates on the unchanged data.
    """
    names = (NOW, *(one.name for one in model.model.scenarios))
    every = [now, *(model.outcomes(now.candidates.tolist(), scenario=name, most=1) for name in names[1:])]
    order = now.order()
    usual = int(order[0]) if len(order) else None
    columns = [np.where(one.allowed, one.values[:, 0], np.nan) for one in every]
    scenes = tuple(build_scenario_outcome(model, name, one, usual) for name, one in zip(names, every, strict=True))
    note = next((f"in {name} {one.note}" for name, one in zip(names, every, strict=True) if one.note), "")
    return ScenarioComparison(names, np.stack(columns, axis=1), scenes, note)


def compute_worst_cases(values: NDArray[np.float64], goal: Goal) -> NDArray[np.float64]:
    """Compute each candidate's worst outcome, (n, s) -> (n,) for n candidates in s scenarios. nan if it is shut out in
    one of them.

    >>> compute_worst_cases(np.array([[1.0, 9.0], [4.0, 5.0], [np.nan, 0.0]]), "min").tolist()
    [9.0, 5.0, nan]
    """
    return np.asarray(values.max(axis=1) if goal == "min" else values.min(axis=1))


def compute_regrets(values: NDArray[np.float64], goal: Goal) -> NDArray[np.float64]:
    """Compute each candidate's largest distance from the best of a scenario, (n, s) -> (n,). nan if it is shut out in
    one of them.

    >>> compute_regrets(np.array([[1.0, 9.0], [4.0, 5.0]]), "min").tolist()
    [4.0, 3.0]
    """
    costs = values if goal == "min" else -values
    best = np.nanmin(np.where(np.isnan(costs), np.inf, costs), axis=0)
    return np.asarray((costs - best).max(axis=1))


TRIALS = 100


def compute_swings(model: OpenModel, outcomes: Outcomes, *, seconds: float = float("inf")) -> tuple[Swing, ...]:
    """Compute how far each input with a spread moves the lead, largest first.

    Inputs that the seconds do not reach are left out.

    Args:
        outcomes: outcomes of all candidates on the unchanged data.

    Raises:
        ToolError: a statement fails.
    """
    until = time.monotonic() + seconds
    contenders = outcomes.candidates[outcomes.order()[:CONTENDERS]].tolist()
    swings = []
    for column in model.model.varied if len(contenders) > 1 else ():
        left = until - time.monotonic()
        if left <= 0:
            break
        shaken = model.trials(contenders, TRIALS, varies=(column.name,), seconds=left)
        # Only trials that all contenders have finished can be compared.
        known = shaken.known.all(axis=0)
        if known.any():
            leads = compute_leads(shaken)[known]
            # A trial in which the best is shut out, or nothing else is allowed, has no lead.
            finite = leads[np.isfinite(leads)]
            low, high = np.percentile(finite, MIDDLE) if len(finite) else (0.0, 0.0)
            stays = float(shaken.best[0][known].mean())
            swings.append(Swing(column.name, column.spread, float(low), float(high), stays))
    return tuple(sorted(swings, key=lambda swing: swing.low - swing.high))


def compute_leads(shaken: Outcomes) -> NDArray[np.float64]:
    """Compute the lead of the first candidate over the best other one in each trial, shape (t,).

    In the measure's unit: below 0 if it is behind, -inf if it is not allowed, inf if no other is.
    """
    costs = shaken.costs()
    # If no candidate is allowed, inf - inf is nan.
    with np.errstate(invalid="ignore"):
        leads = costs[1:].min(axis=0) - costs[0]
    return np.where(np.isinf(costs[0]), -np.inf, leads)


SOURCE = "whatif"
MAX_SHOWN = 10


@dataclass(frozen=True)
class BaseOutcomes:
    """The outcomes of all candidates on the unchanged data."""

    outcomes: Outcomes
    order: tuple[int, ...]
    """Places of the allowed candidates, best first."""
    ranking: Ranking

    @property
    def best(self) -> int | None:
        """Number of the best candidate; None if no candidate is allowed."""
        return int(self.outcomes.candidates[self.order[0]]) if self.order else None

    @property
    def best_name(self) -> str:
        """Name of the best candidate; '' if no candidate is allowed."""
        return self.ranking.options[0].name if self.order else ""


def compute_base_outcomes(model: OpenModel) -> BaseOutcomes:
    """Compute the outcomes of all candidates; raise ToolError if a statement fails."""
    outcomes = model.outcomes(most=3)
    return BaseOutcomes(outcomes, tuple(outcomes.order().tolist()), rank_outcomes(model, outcomes))


def find_candidate_or_none(model: OpenModel, name: str) -> int | None:
    """Find the number of a candidate by its name, also if ``+`` stands without blanks; None if unknown."""
    for words in (name, re.sub(r"\s*\+\s*", " + ", name)):
        try:
            return model.candidates.find(words)
        except ToolError:
            continue
    return None


def resolve_candidate(model: OpenModel, name: str) -> int:
    """Return the number of a candidate by its name; raise ToolError with close names."""
    number = find_candidate_or_none(model, name)
    return model.candidates.find(name) if number is None else number


def resolve_wished_candidates(model: OpenModel, wish: WhatIfWish) -> tuple[int, ...]:
    """Return the numbers of the candidates of a wish; raise ToolError with close names.

    A name may hold a comma, so the whole text is tried first.
    """
    whole = find_candidate_or_none(model, wish.text) if wish.text else None
    if whole is not None:
        return (whole,)
    return tuple(dict.fromkeys(resolve_candidate(model, name) for name in wish.candidates))


def answer_rank(model: OpenModel, wish: WhatIfWish) -> Observation:
    scenario = resolve_scenario(model, wish.scenario)
    ranking = rank_or_solve(model, trials=wish.trials, seconds=wish.seconds, scenario=scenario)
    records, total = ranking_records(ranking), len(ranking.options)
    is_cut = total > len(records)
    if scenario:
        return Observation(records, f"In scenario {scenario}. {format_ranking(ranking)}", False, is_cut, total)
    rules = run_rule_tests(model, ranking.options[0].name) if ranking.options else ()
    return Observation(records, format_ranking(ranking), truncated=is_cut, total=total, ranking=ranking, rules=rules)


def ranking_records(ranking: Ranking) -> tuple[Record, ...]:
    return build_cited_records(
        {"candidate": option.name, ranking.measure: option.outcome, "rank": at}
        for at, option in enumerate(ranking.options[:MAX_SHOWN], 1)
    )


def build_cited_records(rows: Iterable[dict[str, Value]], first: int = 1) -> tuple[Record, ...]:
    return tuple(Record(f"r{at}", fields, source=SOURCE) for at, fields in enumerate(rows, first))


def answer_comparison(model: OpenModel, base: BaseOutcomes, wish: WhatIfWish) -> Observation:
    """Rank some candidates, with the best of all beside them."""
    numbers = resolve_wished_candidates(model, wish)
    ranking = rank_model(model, numbers, trials=wish.trials if len(numbers) > 1 else 0, seconds=wish.seconds)
    lines = [format_ranking(ranking)]
    if base.best is not None and base.best not in numbers:
        first, value = model.model.first, float(base.outcomes.values[base.order[0], 0])
        best = f"{base.best_name} ({format_amount(value, first.unit)} {first.name})"
        lines.append(f"Of all candidates the best is {best}.")
    return Observation(ranking_records(ranking), "\n".join(lines), total=len(ranking.options), ranking=ranking)


def answer_why(model: OpenModel, base: BaseOutcomes, wish: WhatIfWish) -> Observation:
    """Report each measure of a candidate against the best, and each rule with its breaking rows."""
    number = resolve_candidate(model, wish.text or " ".join(wish.candidates))
    outcomes = model.outcomes([number], most=5)
    name = model.candidates.name(number)
    facts = [*measure_facts(model, base, outcomes, name), *rule_facts(model, outcomes, name)]
    records = build_cited_records(fields for fields, _ in facts)
    place = next((at for at, one in enumerate(base.order, 1) if base.outcomes.candidates[one] == number), None)
    head = f"{name} is number {place} of {len(base.order):,} that are allowed." if place else f"{name} is not allowed."
    return Observation(records, "\n".join([head, *(line for _, line in facts)]), total=len(records))


Fact = tuple[dict[str, Value], str]


def measure_facts(model: OpenModel, base: BaseOutcomes, outcomes: Outcomes, name: str) -> Iterator[Fact]:
    for at, measure in enumerate(model.model.measures):
        value = float(outcomes.values[0, at])
        here = "no outcome" if math.isnan(value) else format_amount(value, measure.unit)
        fields: dict[str, Value] = {"candidate": name, measure.name: none_of(value)}
        if not base.order:
            yield fields, f"{measure.name} is {here}; nothing is allowed to compare with."
            continue
        best = float(base.outcomes.values[base.order[0], at])
        effect = value - best
        fields |= {"best": base.best_name, f"{measure.name} of the best": none_of(best), "difference": none_of(effect)}
        sign = 1 if measure.goal == "max" else -1
        word = "as good as" if not effect else "better than" if sign * effect > 0 else "worse than"
        ahead = "" if math.isnan(effect) or not effect else f"{format_amount(abs(effect), measure.unit)} "
        yield fields, f"{measure.name} is {here}, {ahead}{word} the best, {base.best_name}."


def rule_facts(model: OpenModel, outcomes: Outcomes, name: str) -> Iterator[Fact]:
    number = int(outcomes.candidates[0])
    for at, rule in enumerate(outcomes.rules):
        text = model.model.rule(rule).text or rule
        fields: dict[str, Value] = {"candidate": name, "rule": rule, "kept": not outcomes.broken[0, at]}
        if not outcomes.broken[0, at]:
            yield fields, f"It keeps {rule}: {text}"
            continue
        reason = outcomes.reasons.get((number, rule))
        rows = [dict(row) for row in reason.rows] if reason else []
        fields |= {"rows that break it": reason.count if reason else 0, "rows": rows}
        yield fields, f"It breaks {rule}: {explain_broken_rule(model.model, rule, reason)}"


def resolve_scenario(model: OpenModel, name: str) -> str:
    """Return the name of a scenario as the file writes it; raise ToolError with the known names."""
    names = [one.name for one in model.model.scenarios]
    if name and not names:
        raise ToolError("This model has no scenarios; change the data with `set TABLE.COLUMN = ...`.")
    return resolve_name(name.strip("\"'` "), names, "scenario") if name else ""


def observe_study(
    model: OpenModel,
    base: BaseOutcomes,
    title: str,
    rows: Sequence[dict[str, Value]],
    lines: Iterable[str],
    **parts: object,
) -> Observation:
    """Build an observation of citable rows with the study that the page draws."""
    study, records = build_study(model, base, title, **parts), build_cited_records(rows[:MOST])
    return Observation(records, "\n".join(lines), truncated=len(rows) > MOST, total=len(rows), study=study)


def build_study(model: OpenModel, base: BaseOutcomes, title: str, **parts: object) -> Study:
    measures = model.model.measures
    return Study(
        title,
        tuple(measure.name for measure in measures),
        tuple(measure.unit for measure in measures),
        tuple(measure.goal for measure in measures),
        base.best_name,
        base.ranking.lead,
        **parts,  # type: ignore[arg-type]
    )


def none_of(value: float) -> float | None:
    return None if np.isnan(value) else value


def answer_change(model: OpenModel, base: BaseOutcomes, wish: WhatIfWish) -> Observation:
    """Answer the decision on changed data, beside the unchanged data."""
    scenario, text, what = resolve_condition(model, wish)
    outcomes = model.outcomes(base.outcomes.candidates.tolist(), scenario=scenario, changes=text, most=3)
    usual = base.order[0] if base.order else None
    scenes = (
        build_scenario_outcome(model, NOW, base.outcomes, usual),
        build_scenario_outcome(model, what, outcomes, usual),
    )
    ranking = rank_outcomes(model, outcomes)
    counts = [each.broken.sum(axis=0).tolist() for each in (base.outcomes, outcomes)]
    changed: list[dict[str, Value]] = [
        {"rule": rule, "candidates that break it now": now, "then": then}
        for rule, now, then in zip(outcomes.rules, *counts, strict=True)
        if now != then
    ]
    records = (effect_record(model, *scenes), *build_cited_records(changed, first=2))
    study = build_study(model, base, f"What if {what}", scenes=scenes)
    idle = (
        ["This moves no measure and no rule of any candidate."]
        if np.array_equal(base.outcomes.values, outcomes.values, equal_nan=True)
        and np.array_equal(base.outcomes.broken, outcomes.broken)
        else []
    )
    idle += [f"Mind: {outcomes.note}."] if outcomes.note else []
    # Nothing varies here on purpose.
    ranked = [line for line in format_ranking(ranking).splitlines() if not line.startswith("Nothing was varied")]
    return Observation(
        records, "\n".join([*idle, *effect_lines(model, *scenes), *ranked]), total=len(records), study=study
    )


def resolve_condition(model: OpenModel, wish: WhatIfWish) -> tuple[str, str, str]:
    """Return the scenario's name, the changes as SQL, and a description of either."""
    if wish.kind == "scenario":
        scenario = resolve_scenario(model, wish.scenario)
        return scenario, "", f"scenario {scenario}"
    text = build_updates(model, wish.changes)
    return "", text, "; ".join(map(str, wish.changes))


def effect_record(model: OpenModel, now: ScenarioOutcome, then: ScenarioOutcome) -> Record:
    first = model.model.first
    effect = None if then.outcome is None or now.outcome is None else then.outcome - now.outcome
    fields: dict[str, Value] = {
        "what if": then.name,
        "best now": now.best or None,
        f"{first.name} now": now.outcome,
        "best then": then.best or None,
        f"{first.name} then": then.outcome,
        "effect": effect,
        "unit": first.unit,
    }
    # Of a plan, the amounts are found anew: there is no present candidate with an outcome of its own then.
    usual = then.usual if then.usual is not None else then.why or None
    fields |= {} if usual is None else {f"{now.best} then": usual}
    return Record("r1", fields, source=SOURCE)


def compare_decisions(model: OpenModel, now: Ranking | str, then: Ranking | str, what: str) -> Observation:
    """Compare two rankings of a decision, each of which may be the reason why nothing fits."""
    options = [None if isinstance(side, str) or not side.options else side.options[0] for side in (now, then)]
    scenes = [
        ScenarioOutcome(name, option.name if option else "", option.outcome if option else None, None)
        for name, option in zip((NOW, what), options, strict=True)
    ]
    record, first = effect_record(model, *scenes), model.model.first
    amounts = [format_amount(option.outcome, first.unit) for option in options if option]
    effect = record.fields["effect"]
    lines = [] if effect is None else [f"{first.name} {amounts[1]} instead of {amounts[0]}: {effect:+,.6g}."]
    lines.append(f"Then: {then}" if isinstance(then, str) else format_ranking(then))
    return Observation((record,), "\n".join(lines), total=1)


def effect_lines(model: OpenModel, now: ScenarioOutcome, then: ScenarioOutcome) -> Iterator[str]:
    unit, measure = model.model.first.unit, model.model.first.name
    if now.outcome is None or then.outcome is None:
        yield f"Now {now.best or 'nothing'} is best; then {then.best or 'nothing is allowed'}."
        return
    effect = then.outcome - now.outcome
    way = "more" if effect > 0 else "less"
    moved = f"{format_amount(abs(effect), unit)} {way}" if effect else "the same"
    wins = f"{then.best} stays best" if then.best == now.best else f"{then.best} wins instead of {now.best}"
    yield f"{wins}: {measure} {format_amount(then.outcome, unit)}, {moved} ({format_amount(now.outcome, unit)} now)."
    if then.best != now.best:
        rest = (
            f"would have {format_amount(then.usual, unit)}" if then.usual is not None else f"is ruled out by {then.why}"
        )
        yield f"{now.best} {rest}."


MOST = 30
DOTS = 400
"""So many candidates are in a picture of the front."""


def require_best_candidate(base: BaseOutcomes) -> int:
    if base.best is None:
        raise ToolError("No candidate is allowed, so there is nothing to compare; ask `why NAME`, or change the data.")
    return base.best


def answer_scenarios(model: OpenModel, base: BaseOutcomes) -> Observation:
    """Report the winner of each scenario, the best worst case and the least regret."""
    if not model.model.scenarios:
        raise ToolError("This model has no scenarios; change the data with `set TABLE.COLUMN = ...`.")
    require_best_candidate(base)
    first = model.model.first
    sides = compare_scenarios(model, base.outcomes)
    worst, regret = compute_worst_cases(sides.values, first.goal), compute_regrets(sides.values, first.goal)
    lines = [
        f"In {one.name}: {one.best or 'nothing is allowed'}"
        + ("" if one.outcome is None else f" ({format_amount(one.outcome, first.unit)})")
        + "."
        + (f" {base.best_name}: {one.why}." if one.usual is None and one.why else "")
        for one in sides.scenes
    ]
    lines += [f"Mind: {sides.note}."] if sides.note else []
    # The rows: first the scenarios, then the candidates that a criterion picks.
    rows: list[dict[str, Value]] = [
        {
            "scenario": one.name,
            "best": one.best,
            first.name: one.outcome,
            f"{base.best_name} there": one.usual if one.usual is not None else one.why,
        }
        for one in sides.scenes
    ]
    picked = {base.order[0]: base.best_name}
    if np.isnan(worst).all():
        lines.append("No candidate is allowed in every scenario.")
    else:
        safest, calmest = int(np.nanargmin(worst if first.goal == "min" else -worst)), int(np.nanargmin(regret))
        picked |= {at: model.candidates.name(int(base.outcomes.candidates[at])) for at in (safest, calmest)}
        lines += [
            f"The best in the worst case is {picked[safest]}: {format_amount(float(worst[safest]), first.unit)}.",
            f"Least regret has {picked[calmest]}: at most {format_amount(float(regret[calmest]), first.unit)} "
            "behind the best of a scenario.",
        ]
    for place, candidate in picked.items():
        cells = {side: none_of(float(value)) for side, value in zip(sides.names, sides.values[place], strict=True)}
        rows.append({"candidate": candidate, **cells, "worst": none_of(float(worst[place]))})
    return observe_study(model, base, "Scenarios side by side", rows, lines, scenes=sides.scenes)


def answer_pareto(model: OpenModel, base: BaseOutcomes) -> Observation:
    """Report the allowed candidates that no other allowed one beats by every measure."""
    measures = model.model.measures
    if len(measures) < 2:
        raise ToolError(f"This model has one measure, {measures[0].name}; a front needs two. Ask `rank`.")
    require_best_candidate(base)
    order = np.array(base.order)
    values = base.outcomes.values[order]
    on = find_pareto_front(values, [one.goal for one in measures])
    # All of the front, and of the others the best as far as the picture has room.
    points = [
        CandidatePoint(
            model.candidates.name(int(base.outcomes.candidates[place])),
            tuple(float(value) for value in values[at]),
            bool(on[at]),
        )
        for at, place in enumerate(order)
        if on[at] or at < DOTS
    ]
    ends = [one for one in points if one.front]
    rows: list[dict[str, Value]] = [
        {"candidate": one.name, **{m.name: v for m, v in zip(measures, one.values, strict=True)}} for one in ends
    ]
    names = " and ".join(f"{one.name} ({one.goal})" for one in measures)
    lines = [
        f"On the Pareto front of {names}: {format_count(len(ends), 'candidate')} of {len(order):,} that are allowed. "
        "For every other one, one of these is as good in all measures and better in one."
    ]
    for one in ends[:MOST]:
        pairs = zip(measures, one.values, strict=True)
        lines.append(f"{one.name}: {', '.join(f'{m.name} {format_amount(v, m.unit)}' for m, v in pairs)}")
    return observe_study(model, base, "Pareto front", rows, lines, points=tuple(points))


def answer_sensitivity(model: OpenModel, base: BaseOutcomes, seconds: float) -> Observation:
    """Report how far each input moves the lead of the best candidate."""
    require_best_candidate(base)
    first = model.model.first
    if not any(one.spread for one in model.model.inputs):
        raise ToolError("No input of this model has a spread, so nothing varies; ask `turning points`.")
    every = compute_swings(model, base.outcomes, seconds=seconds)
    if not every and len(base.order) > 1:
        raise ToolError("The limit of seconds is reached before any input was varied. Give it more seconds.")
    if not every:
        raise ToolError("There is no second candidate that is allowed, so no lead that could move.")
    rows: list[dict[str, Value]] = [
        {
            "input": one.input,
            "varies by": one.spread,
            "lead from": one.low,
            "lead to": one.high,
            "best stays in front": one.stays,
        }
        for one in every
    ]
    lead = "nothing" if base.ranking.lead is None else format_amount(base.ranking.lead, first.unit)
    lines = [
        f"{base.best_name} leads by {lead}. Each input alone, in {TRIALS} trials among the best "
        f"{min(CONTENDERS, len(base.order))}; 90 % of the leads lie between:"
    ]
    for one in every:
        ends = f"{format_amount(one.low, first.unit)} and {format_amount(one.high, first.unit)}"
        lines.append(f"{one.input} ({one.spread}): {ends}; stays best in {one.stays:.0%}")
    lines += explain_unreached_inputs(
        [one.name for one in model.model.inputs if one.spread and one.name not in {s.input for s in every}]
    )
    return observe_study(model, base, "What moves the lead", rows, lines, swings=every)


def answer_turning_points(model: OpenModel, base: BaseOutcomes, target: int | None, seconds: float) -> Observation:
    """Report how far each input has to move until another candidate wins, or ``target``."""
    if not model.model.inputs:
        raise ToolError("This model names no [input], so nothing can be turned; use `set TABLE.COLUMN = ...`.")
    best, names = require_best_candidate(base), model.candidates
    if target == best:
        return Observation(
            build_cited_records([{"candidate": names.name(best), "rank": 1}]),
            f"{names.name(best)} wins as the data are.",
        )
    numbers = choose_contenders(base.outcomes, best, *([] if target is None else [target]))
    turns = tuple(find_turning_points(model, numbers, best, target, seconds))
    whom = "another candidate" if target is None else names.name(target)
    lines = [
        f"{names.name(best)} is best now. Each input alone, from {LOW:g} to {HIGH:g} times its value, among "
        f"{len(numbers):,} of {len(names):,} candidates, until {whom} wins:",
        *describe_turns(model, turns, names.name(best)),
    ]
    if target is not None:
        lines += describe_candidate_standing(model, base, target)
    title = f"What it takes for {whom} to win" if target is not None else "Turning points"
    return observe_study(model, base, title, turn_rows(turns), lines, turns=turns)


def turn_rows(turns: Sequence[Turn]) -> list[dict[str, Value]]:
    return [
        {
            "input": one.input,
            "times": one.factor,
            "change": f"{turn_percent(one):+.3g} %",
            "wins": one.winner or "nothing is allowed",
            "because": one.why or ("it is then best" if one.winner else ""),
        }
        for one in sorted(turns, key=turn_distance)
        if one.factor is not None
    ]


def describe_turns(model: OpenModel, turns: Sequence[Turn], best: str) -> Iterator[str]:
    """Describe the turning points, the inputs without one, and those that the limit of seconds left out."""
    hits = [one for one in turns if one.factor is not None]
    for one in sorted(hits, key=turn_distance):
        wins = f"{one.winner} wins" if one.winner else "nothing is allowed"
        why = f", because {best} then breaks {one.why}" if one.why else ""
        yield f"{one.input} {turn_percent(one):+.3g} %: {wins}{why}"
    # Where no point was found, the falling side of an input has ", falling" behind its name.
    still = list(dict.fromkeys(one.input.removesuffix(", falling") for one in turns if one.factor is None))
    still = [one for one in still if one not in {hit.input for hit in hits}]
    if still:
        yield f"No such point by {', '.join(still[:MOST])}{' alone' if len(still) < MOST else ' and more'}."
    names_of_turns = {one.input.removesuffix(", falling") for one in turns}
    yield from explain_unreached_inputs([one.name for one in build_knobs(model) if one.name not in names_of_turns])


def explain_unreached_inputs(inputs: Sequence[str]) -> list[str]:
    """Name the inputs that the limit of seconds left out."""
    if not inputs:
        return []
    names = f"{', '.join(inputs[:MOST])}{' and more' if len(inputs) > MOST else ''}"
    return [f"It ended early: the limit of seconds is reached, and {names} was not looked at; more seconds say it."]


def describe_candidate_standing(model: OpenModel, base: BaseOutcomes, target: int) -> list[str]:
    """Describe how far a candidate is behind on the unchanged data, or why it is ruled out."""
    place = int(np.flatnonzero(base.outcomes.candidates == target)[0])
    first, name = model.model.first, model.candidates.name(target)
    if base.outcomes.allowed[place]:
        gap = abs(float(base.outcomes.values[place, 0] - base.outcomes.values[base.order[0], 0]))
        return [f"As the data are {name} is {format_amount(gap, first.unit)} of {first.name} behind."]
    return [
        f"As the data are {name} is ruled out by {why}." for why in explain_broken_rules(model, base.outcomes, place)
    ] or [f"{name} has no outcome: {explain_no_outcome(model, target, float(base.outcomes.values[place, 0]))}."]
