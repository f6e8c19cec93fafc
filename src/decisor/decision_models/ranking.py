"""From a decision model to a ranking: best first, with the tie set, the margin, and how robust the best is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from decisor.types import Excluded, Option, Ranking, WhatIf, Winner

TIE = 1e-9  # relative; every float64 order of summation agrees within it
EXCLUDED = 10
CONTENDERS = 50  # how many of the best are recomputed in each trial


def rank(model: WhatIf, percent: float = 5.0, trials: int = 200, seed: int = 0) -> Ranking:
    """Every allowed candidate by outcome, equal ones in data order; no options where none is allowed.

    Robustness varies each input by up to ``percent`` in ``trials`` trials and recomputes the best 50 candidates; it
    is the share of trials in which the best candidate, or one tied with it, stays in front. ``trials=0`` leaves it
    out, and so does a model of which nothing varies.
    """
    names = model.candidates()
    outcomes = model.outcomes(names)
    shut = np.flatnonzero(np.isnan(outcomes))
    sign = 1 if model.goal == "min" else -1
    order = sorted(np.flatnonzero(~np.isnan(outcomes)).tolist(), key=lambda at: sign * outcomes[at])
    options = tuple(Option(names[at], float(outcomes[at])) for at in order)
    ruled_out = tuple(Excluded(names[at], None, (), "it has no outcome") for at in shut[:EXCLUDED].tolist())
    ranking = Ranking(model.measure, model.goal, options, compared=len(names), candidates=len(names),
                      excluded_count=len(shut), excluded=ruled_out)  # fmt: skip
    if not options:
        return ranking
    ties = tuple(option.name for option in options if _distance(options[0], option) <= TIE)
    outside = next((option for option in options if option.name not in ties), None)
    if outside is not None:
        ranking = replace(
            ranking, margin=_distance(options[0], outside), lead=abs(options[0].outcome - outside.outcome)
        )
    return _with_trials(model, replace(ranking, ties=ties), percent, trials, seed)


def _with_trials(model: WhatIf, ranking: Ranking, percent: float, trials: int, seed: int) -> Ranking:
    """Who comes first while the inputs vary."""
    rng = np.random.default_rng(seed)
    contenders = [option.name for option in ranking.options[:CONTENDERS]]
    as_they_are = np.array([option.outcome for option in ranking.options[:CONTENDERS]])
    sign = 1 if model.goal == "min" else -1
    counts: Counter[str] = Counter()
    moved = False
    for _ in range(trials):
        outcomes = sign * model.varied(percent, rng).outcomes(contenders)
        moved = moved or not np.array_equal(sign * outcomes, as_they_are)
        none = bool(np.isnan(outcomes).all())
        counts["none allowed" if none else contenders[int(np.nanargmin(outcomes))]] += 1
    if not moved:
        return ranking
    winners = tuple(Winner(name, count / trials) for name, count in counts.most_common())
    stayed = sum(counts[name] for name in ranking.ties) / trials
    return replace(ranking, robustness=stayed, varied_percent=percent, trials=trials, winners=winners)


def _distance(best: Option, other: Option) -> float:
    scale = max(abs(best.outcome), abs(other.outcome))
    return abs(best.outcome - other.outcome) / scale if scale else 0.0
