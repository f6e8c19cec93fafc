"""From an open decision model to a ranking: all that a person needs before they trust it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from decisor.decision_models.explain import say
from decisor.decision_models.machine import OpenModel, Progress
from decisor.decision_models.no_outcome import cells_left_out, no_outcome
from decisor.decision_models.outcomes import Outcomes, is_tied
from decisor.decision_models.robustness import ranges
from decisor.decision_models.turning_points import contenders
from decisor.errors import ToolError
from decisor.types import Excluded, Option, Ranking, Winner

CONTENDERS = 50
OPTIONS = 2_000
NEAREST = 10
SAMPLE = 3
ALIKE = 1e-7


def rank_model(
    model: OpenModel, candidates: Iterable[int] | None = None, *, trials: int = 200, seed: int = 0,
    scenario: str = "", changes: str = "", seconds: float = float("inf"), progress: Progress | None = None,
) -> Ranking:  # fmt: skip
    """Allowed candidates by the first measure, best first; those ruled out with the reason; and how often the best
    stays in front while the inputs vary as the file says: of the 50 best allowed and the 50 nearest of those ruled out.
    After ``seconds`` it ends with what is known. A sample is computed one by one too, and must agree.

    Raises:
        ToolError: a statement fails, or one by one gives other outcomes than all at once.
    """
    began = time.monotonic()
    outcomes = model.outcomes(
        candidates, scenario=scenario, changes=changes, seconds=seconds, most=1, progress=progress
    )
    if not outcomes.stopped:
        agree(model, outcomes, scenario, changes, seconds - (time.monotonic() - began))
    ranking = ranking_of(model, outcomes)
    varied = tuple(f"{one.name} {one.spread}" for one in model.model.inputs if one.spread)
    left = seconds - (time.monotonic() - began)
    if not trials or not varied or not ranking.options:
        return ranking
    few = contenders(outcomes, model.model.first.goal)
    shaken = model.trials(few, trials, first_seed=seed, scenario=scenario, changes=changes, seconds=left,
                          progress=progress)  # fmt: skip
    return replace(with_trials(model, ranking, shaken, varied), covered=covered(outcomes, len(few)))


def covered(outcomes: Outcomes, few: int) -> str:
    """What the trials computed; '' where that is every candidate."""
    allowed, known = int(outcomes.allowed.sum()), int(outcomes.known.sum())
    if few == known:
        return ""
    out = few - min(allowed, CONTENDERS)
    near = f" and the {out:,} nearest of those ruled out" if out else ""
    return f"Trials: the {min(allowed, CONTENDERS):,} best allowed{near}, of {known:,} candidates"


def ranking_of(model: OpenModel, outcomes: Outcomes) -> Ranking:
    """Without trials."""
    names, first = model.candidates.name, model.model.first
    order = outcomes.order(first.goal)
    values = outcomes.values[:, 0]
    options = tuple(Option(names(outcomes.candidates[at]), float(values[at])) for at in order[:OPTIONS])
    best = float(values[order[0]]) if len(order) else None
    tied = order[: int(is_tied(values[order], values[order[0]]).sum())] if len(order) else order
    outside = None if len(tied) == len(order) else float(values[order[len(tied)]])
    shut = np.asarray(np.flatnonzero(outcomes.known & ~outcomes.allowed), dtype=np.int64)
    return Ranking(
        measure=first.name,
        goal=first.goal,
        options=options,
        ties=tuple(names(outcomes.candidates[at]) for at in tied),
        margin=None if best is None or outside is None else distance(best, outside),
        unit=first.unit,
        lead=None if best is None or outside is None else abs(best - outside),
        compared=int(outcomes.known.sum()),
        candidates=len(model.candidates),
        excluded_count=len(shut),
        excluded=tuple(nearest(model, outcomes, shut, best)),
        excluded_by=by_rule(outcomes, shut),
        stopped=outcomes.stopped,
        left_out=tuple(f"{part}: {words}" for part, words in cells_left_out(model)),
    )


def by_rule(outcomes: Outcomes, shut: NDArray[np.int64]) -> Mapping[str, int]:
    counts = {rule: int(outcomes.broken[shut, at].sum()) for at, rule in enumerate(outcomes.rules)}
    without = int((~outcomes.broken[shut].any(axis=1)).sum()) if len(shut) else 0
    return {name: count for name, count in {**counts, "no outcome": without}.items() if count}


def nearest(model: OpenModel, outcomes: Outcomes, shut: NDArray[np.int64], best: float | None) -> Iterator[Excluded]:
    """Those ruled out, the best outcome first, with what they would gain."""
    sign = 1 if model.model.first.goal == "min" else -1
    values = outcomes.values[:, 0]
    order = sorted(shut, key=lambda at: (not np.isfinite(values[at]), sign * values[at]))
    for at in order[:NEAREST]:
        candidate, value = int(outcomes.candidates[at]), float(values[at])
        rules = tuple(rule for place, rule in enumerate(outcomes.rules) if outcomes.broken[at, place])
        why = "; ".join(say(model.model, rule, outcomes.reasons.get((candidate, rule))) for rule in rules)
        outcome = value if np.isfinite(value) else None
        gain = None if outcome is None or best is None else sign * (best - value)
        yield Excluded(
            model.candidates.name(candidate), outcome, rules, why or no_outcome(model, candidate, value), gain
        )


def with_trials(model: OpenModel, ranking: Ranking, shaken: Outcomes, varied: tuple[str, ...]) -> Ranking:
    """Trials that a limit cut off do not count."""
    whole = shaken.known.all(axis=0)
    places = shaken.winners(model.model.first.goal)[whole]
    trials = int(whole.sum())
    if not trials:
        return replace(ranking, stopped=ranking.stopped or cut(shaken, 0))
    counts = Counter(model.candidates.name(int(shaken.candidates[at])) if at >= 0 else "none allowed" for at in places)
    winners = tuple(Winner(name, count / trials) for name, count in counts.most_common())
    varied = (*varied, shaken.note) if shaken.note else varied
    stayed = sum(one.share for one in winners if one.name in ranking.ties)
    middle = ranges(np.where(shaken.allowed, shaken.values[:, 0], np.nan)[:, whole])
    ends = {int(number): pair for number, pair in zip(shaken.candidates, middle.tolist(), strict=True)}
    spans = {model.candidates.name(number): pair for number, pair in ends.items() if pair[0] == pair[0]}
    options = tuple(
        replace(one, low=spans[one.name][0], high=spans[one.name][1]) if one.name in spans else one
        for one in ranking.options
    )
    return replace(ranking, options=options, robustness=stayed, trials=trials, varied=varied, winners=winners,
                   stopped=ranking.stopped or cut(shaken, trials))  # fmt: skip


def cut(shaken: Outcomes, trials: int) -> str:
    """Why there are no more trials; '' where all were computed."""
    if not shaken.stopped:
        return ""
    why = "" if shaken.how == "together" else f", and candidates are computed {shaken.how}"
    return f"{shaken.stopped} after {trials} of {shaken.known.shape[-1]} trials{why}"


def agree(
    model: OpenModel, outcomes: Outcomes, scenario: str = "", changes: str = "", seconds: float = float("inf")
) -> None:
    """A sample, one by one, has the same outcomes and breaks the same rules: as many as the seconds allow. Raises
    ToolError where it does not."""
    if outcomes.how != "together" or not len(outcomes.candidates):
        return
    order = outcomes.order(model.model.first.goal)
    places = sorted({0, len(outcomes.candidates) - 1, *(int(at) for at in order[:1])})[:SAMPLE]
    sample = [int(outcomes.candidates[at]) for at in places]
    alone = model.outcomes(sample, scenario=scenario, changes=changes, most=0, alone=True, seconds=seconds)
    for at, place in enumerate(places):
        if not alone.known[at]:
            return
        same = np.allclose(alone.values[at], outcomes.values[place], rtol=ALIKE, atol=1e-9, equal_nan=True)
        if not same or (alone.broken[at] != outcomes.broken[place]).any():
            name = model.candidates.name(sample[at])
            raise ToolError(
                f"{name} is {alone.values[at].tolist()} alone and {outcomes.values[place].tolist()} among all "
                "candidates: a statement depends on the order of rows (LIMIT, first, ties); add ORDER BY."
            )


def distance(best: float, other: float) -> float:
    scale = max(abs(best), abs(other))
    return abs(best - other) / scale if scale else 0.0
