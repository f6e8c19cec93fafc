"""Answers about candidates: ranked, compared, why not. Each is citable records."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from decisor.decision_models import solver
from decisor.decision_models.changing import one_of
from decisor.decision_models.explain import say
from decisor.decision_models.machine import OpenModel
from decisor.decision_models.outcomes import Outcomes
from decisor.decision_models.rank_model import rank_model, ranking_of
from decisor.decision_models.rule_tests import rule_tests
from decisor.errors import ToolError
from decisor.rankings import amount, note
from decisor.replies.wishes import Wish
from decisor.types import Observation, Ranking, Record, Study, Value

SOURCE = "whatif"
MOST = 10


@dataclass(frozen=True)
class Base:
    """All candidates as the data are. ``order``: places of the allowed ones, best first."""

    outcomes: Outcomes
    order: tuple[int, ...]
    ranking: Ranking

    @property
    def best(self) -> int | None:
        """The number of the best; None where nothing is allowed."""
        return int(self.outcomes.candidates[self.order[0]]) if self.order else None


def base_of(model: OpenModel) -> Base:
    """Raises ToolError where a statement fails."""
    outcomes = model.outcomes(most=3)
    return Base(outcomes, tuple(outcomes.order(model.model.first.goal).tolist()), ranking_of(model, outcomes))


def number_of(model: OpenModel, name: str) -> int | None:
    """Also where the parts stand without blanks."""
    for words in (name, re.sub(r"\s*\+\s*", " + ", name)):
        try:
            return model.candidates.find(words)
        except ToolError:
            continue
    return None


def find(model: OpenModel, name: str) -> int:
    """Raises ToolError with close names."""
    number = number_of(model, name)
    return model.candidates.find(name) if number is None else number


def number_or_raise(model: OpenModel, wish: Wish) -> int:
    """Raises ToolError with close names."""
    return find(model, wish.text or " ".join(wish.candidates))


def numbers_of(model: OpenModel, wish: Wish) -> tuple[int, ...]:
    """A name may hold a comma, so the whole text is tried first. Raises ToolError with close names."""
    whole = number_of(model, wish.text) if wish.text else None
    if whole is not None:
        return (whole,)
    return tuple(dict.fromkeys(find(model, name) for name in wish.candidates))


def rank(model: OpenModel, wish: Wish) -> Observation:
    scenario = scenario_of(model, wish.scenario)
    ranking = solver.decide(model, trials=wish.trials, seconds=wish.seconds, scenario=scenario)
    records = records_of(ranking)
    total = len(ranking.options)
    if scenario:
        return Observation(records, f"In scenario {scenario}. {note(ranking)}", False, total > len(records), total)
    rules = rule_tests(model, ranking.options[0].name) if ranking.options else ()
    return Observation(
        records, note(ranking), truncated=total > len(records), total=total, ranking=ranking, rules=rules
    )


def records_of(ranking: Ranking) -> tuple[Record, ...]:
    return tuple(
        Record(f"r{at}", {"candidate": option.name, ranking.measure: option.outcome, "rank": at}, source=SOURCE)
        for at, option in enumerate(ranking.options[:MOST], 1)
    )


def compare(model: OpenModel, base: Base, wish: Wish) -> Observation:
    """Some candidates; the best of all stands beside them."""
    numbers = numbers_of(model, wish)
    ranking = rank_model(model, numbers, trials=wish.trials if len(numbers) > 1 else 0, seconds=wish.seconds)
    lines = [note(ranking)]
    if base.best is not None and base.best not in numbers:
        lines.append(f"Of all candidates the best is {best_words(model, base)}.")
    return Observation(records_of(ranking), "\n".join(lines), total=len(ranking.options), ranking=ranking)


def best_words(model: OpenModel, base: Base) -> str:
    first = model.model.first
    value = float(base.outcomes.values[base.order[0], 0])
    return f"{base.ranking.options[0].name} ({amount(value, first.unit)} {first.name})"


def why(model: OpenModel, base: Base, wish: Wish) -> Observation:
    """Each rule with the rows that break it, and each measure against the best."""
    number = number_or_raise(model, wish)
    outcomes = model.outcomes([number], most=5)
    name = model.candidates.name(number)
    facts = [*measure_facts(model, base, outcomes, name), *rule_facts(model, outcomes, name)]
    records = tuple(Record(f"r{at}", fields, source=SOURCE) for at, (fields, _) in enumerate(facts, 1))
    place = next((at for at, one in enumerate(base.order, 1) if base.outcomes.candidates[one] == number), None)
    head = f"{name} is number {place} of {len(base.order):,} that are allowed." if place else f"{name} is not allowed."
    return Observation(records, "\n".join([head, *(line for _, line in facts)]), total=len(records))


Fact = tuple[dict[str, Value], str]


def measure_facts(model: OpenModel, base: Base, outcomes: Outcomes, name: str) -> Iterator[Fact]:
    for at, measure in enumerate(model.model.measures):
        value = float(outcomes.values[0, at])
        here = "no outcome" if math.isnan(value) else amount(value, measure.unit)
        fields: dict[str, Value] = {"candidate": name, measure.name: none_of(value)}
        if not base.order:
            yield fields, f"{measure.name} is {here}; nothing is allowed to compare with."
            continue
        best = float(base.outcomes.values[base.order[0], at])
        effect = value - best
        fields |= {"best": base.ranking.options[0].name, f"{measure.name} of the best": none_of(best),
                   "difference": none_of(effect)}  # fmt: skip
        sign = 1 if measure.goal == "max" else -1
        word = "as good as" if not effect else "better than" if sign * effect > 0 else "worse than"
        ahead = "" if math.isnan(effect) or not effect else f"{amount(abs(effect), measure.unit)} "
        yield fields, f"{measure.name} is {here}, {ahead}{word} the best, {base.ranking.options[0].name}."


def rule_facts(model: OpenModel, outcomes: Outcomes, name: str) -> Iterator[Fact]:
    number = int(outcomes.candidates[0])
    for at, rule in enumerate(outcomes.rules):
        text = next(one.text for one in model.model.rules if one.name == rule) or rule
        fields: dict[str, Value] = {"candidate": name, "rule": rule, "kept": not outcomes.broken[0, at]}
        if not outcomes.broken[0, at]:
            yield fields, f"It keeps {rule}: {text}"
            continue
        reason = outcomes.reasons.get((number, rule))
        rows = [dict(row) for row in reason.rows] if reason else []
        fields |= {"rows that break it": reason.count if reason else 0, "rows": rows}
        yield fields, f"It breaks {rule}: {say(model.model, rule, reason)}"


def scenario_of(model: OpenModel, name: str) -> str:
    """Raises ToolError with those that there are."""
    names = [one.name for one in model.model.scenarios]
    if name and not names:
        raise ToolError("This model has no scenarios; change the data with `set TABLE.COLUMN = ...`.")
    return one_of(name.strip("\"'` "), names, "scenario") if name else ""


def study_of(model: OpenModel, base: Base, title: str, **parts: object) -> Study:
    measures = model.model.measures
    ranking = base.ranking
    return Study(title, tuple(one.name for one in measures), tuple(one.unit for one in measures),
                 tuple(one.goal for one in measures), ranking.options[0].name if ranking.options else "",
                 ranking.lead, **parts)  # type: ignore[arg-type]  # fmt: skip


def none_of(value: float) -> float | None:
    return None if np.isnan(value) else value
