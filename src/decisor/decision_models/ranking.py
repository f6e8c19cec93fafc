"""From a decision model to a ranking: best first, with the tie set, the margin, and how robust the best is."""

from __future__ import annotations

import numpy as np

from decisor.types import Option, Ranking, WhatIf

TIE = 1e-9  # relative; every float64 order of summation agrees within it
CONTENDERS = 50  # how many of the best are recomputed in each trial


def rank(model: WhatIf, percent: float = 5.0, trials: int = 200, seed: int = 0) -> Ranking:
    """Every allowed candidate by outcome, equal ones in data order; no options where none is allowed.

    Robustness varies each input by up to ``percent`` in ``trials`` trials and recomputes the best 50 candidates; it
    is the share of trials in which the best candidate, or one tied with it, stays in front. ``trials=0`` leaves it out.
    """
    names = model.candidates()
    outcomes = model.outcomes(names)
    positions = [at for at in range(len(names)) if not np.isnan(outcomes[at])]
    sign = 1 if model.goal == "min" else -1
    order = sorted(positions, key=lambda at: sign * outcomes[at])
    options = tuple(Option(names[at], float(outcomes[at])) for at in order)
    if not options:
        return Ranking(model.measure, model.goal, ())
    ties = tuple(option.name for option in options if _distance(options[0], option) <= TIE)
    outside = next((option for option in options if option.name not in ties), None)
    margin = None if outside is None else _distance(options[0], outside)
    if not trials:
        return Ranking(model.measure, model.goal, options, ties, margin)
    share = robustness(model, [option.name for option in options[:CONTENDERS]], ties, percent, trials, seed)
    return Ranking(model.measure, model.goal, options, ties, margin, share, percent)


def robustness(
    model: WhatIf, contenders: list[str], ties: tuple[str, ...], percent: float, trials: int, seed: int
) -> float:
    """Share of trials whose best contender is in the tie set; the same seed gives the same share."""
    rng = np.random.default_rng(seed)
    sign = 1 if model.goal == "min" else -1
    stayed = 0
    for _ in range(trials):
        outcomes = sign * model.varied(percent, rng).outcomes(contenders)
        if np.isnan(outcomes).all():
            continue
        stayed += contenders[int(np.nanargmin(outcomes))] in ties
    return stayed / trials


def _distance(best: Option, other: Option) -> float:
    scale = max(abs(best.outcome), abs(other.outcome))
    return abs(best.outcome - other.outcome) / scale if scale else 0.0
