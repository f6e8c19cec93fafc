"""Answers to what if: the same decision on changed data or in a scenario, beside the data as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from decisor.decision_models import solver
from decisor.decision_models.answers import SOURCE, Base, scenario_of, study_of
from decisor.decision_models.changing import updates
from decisor.decision_models.machine import OpenModel
from decisor.decision_models.outcomes import Outcomes
from decisor.decision_models.rank_model import ranking_of
from decisor.decision_models.scenarios import NOW, scene
from decisor.rankings import amount, lines, note
from decisor.replies.wishes import Wish
from decisor.types import Observation, Ranking, Record, Scene, Value


def changed(model: OpenModel, base: Base, wish: Wish) -> Observation:
    """The same decision on changed data, beside the data as they are."""
    scenario, text, what = condition(model, wish)
    outcomes = model.outcomes(base.outcomes.candidates.tolist(), scenario=scenario, changes=text, most=3)
    usual = base.order[0] if base.order else None
    scenes = (scene(model, NOW, base.outcomes, usual), scene(model, what, outcomes, usual))
    ranking = ranking_of(model, outcomes)
    records = (effect_record(model, *scenes), *(replace(one, id=f"r{at}") for at, one in enumerate(
        ruled_out_anew(model, base, outcomes), 2)))  # fmt: skip
    study = study_of(model, base, f"What if {what}", scenes=scenes)
    idle = ["This moves no measure and no rule of any candidate."] if same(base.outcomes, outcomes) else []
    idle += [f"Mind: {outcomes.note}."] if outcomes.note else []
    return Observation(
        records, "\n".join([*idle, *effect_lines(model, *scenes), *words_of(ranking)]), total=len(records), study=study
    )


def same(one: Outcomes, other: Outcomes) -> bool:
    """Of the same candidates."""
    return np.array_equal(one.values, other.values, equal_nan=True) and np.array_equal(one.broken, other.broken)


def words_of(ranking: Ranking) -> list[str]:
    """A ranking in which nothing varies on purpose."""
    return [line for line in lines(ranking) if not line.startswith("Nothing was varied")]


def condition(model: OpenModel, wish: Wish) -> tuple[str, str, str]:
    """A scenario's name, the changes as SQL, and both in words."""
    if wish.kind == "scenario":
        scenario = scenario_of(model, wish.scenario)
        return scenario, "", f"scenario {scenario}"
    text = updates(model, wish.changes)
    return "", text, "; ".join(map(str, wish.changes))


def effect_record(model: OpenModel, now: Scene, then: Scene) -> Record:
    first = model.model.first
    effect = None if then.outcome is None or now.outcome is None else then.outcome - now.outcome
    fields: dict[str, Value] = {"what if": then.name, "best now": now.best, f"{first.name} now": now.outcome,
        "best then": then.best, f"{first.name} then": then.outcome, "effect": effect,
        f"{now.best} then": then.usual if then.usual is not None else then.why, "unit": first.unit}  # fmt: skip
    return Record("r1", fields, source=SOURCE)


def effect_lines(model: OpenModel, now: Scene, then: Scene) -> Iterator[str]:
    unit, measure = model.model.first.unit, model.model.first.name
    if now.outcome is None or then.outcome is None:
        yield f"Now {now.best or 'nothing'} is best; then {then.best or 'nothing is allowed'}."
        return
    effect = then.outcome - now.outcome
    way = "more" if effect > 0 else "less"
    moved = f"{amount(abs(effect), unit)} {way}" if effect else "the same"
    wins = f"{then.best} stays best" if then.best == now.best else f"{then.best} wins instead of {now.best}"
    yield f"{wins}: {measure} {amount(then.outcome, unit)}, {moved} ({amount(now.outcome, unit)} now)."
    if then.best != now.best:
        rest = f"would have {amount(then.usual, unit)}" if then.usual is not None else f"is ruled out by {then.why}"
        yield f"{now.best} {rest}."


def ruled_out_anew(model: OpenModel, base: Base, outcomes: Outcomes) -> Sequence[Record]:
    """What is no longer, or newly, allowed, in numbers by rule."""
    records = []
    for at, rule in enumerate(outcomes.rules):
        before, after = int(base.outcomes.broken[:, at].sum()), int(outcomes.broken[:, at].sum())
        if before != after:
            records.append(
                Record("", {"rule": rule, "candidates that break it now": before, "then": after}, source=SOURCE)
            )
    return records


def solved(model: OpenModel, wish: Wish, seconds: float) -> Observation:
    """The same for a decision that the solver makes."""
    scenario, text, what = condition(model, wish)
    limit = min(seconds, solver.SOLVE_SECONDS)
    now = solver.rank_solved(model, seconds=limit)
    then = solver.rank_solved(model, seconds=limit, scenario=scenario, changes=text)
    scenes = [Scene(name, one.options[0].name, one.options[0].outcome, None)
              for name, one in ((NOW, now), (what, then))]  # fmt: skip
    record = effect_record(model, *scenes)
    fields = {key: value for key, value in record.fields.items() if key != f"{scenes[0].best} then"}
    unit, measure = model.model.first.unit, model.model.first.name
    effect = then.options[0].outcome - now.options[0].outcome
    line = (f"{measure} {amount(then.options[0].outcome, unit)} instead of {amount(now.options[0].outcome, unit)}: "
            f"{effect:+,.6g}.")  # fmt: skip
    return Observation((replace(record, fields=fields),), f"{line}\n{note(then)}", total=1)
