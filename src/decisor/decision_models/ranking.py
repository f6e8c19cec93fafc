"""From a decision model to a ranking: best first, with the tie set, the margin, and how robust the best is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from decisor.types import Excluded, Option, Ranking, WhatIf, Winner

TIE = 1e-9  # relative; every float64 order of summation agrees within it
EXCLUDED = 10
CONTENDERS = 50
FIRST = 16  # how many of the best are recomputed in each trial


def rank(
    model: WhatIf, percent: float = 5.0, trials: int = 200, seed: int = 0, *, seconds: float = float("inf")
) -> Ranking:
    """Every allowed candidate by outcome, equal ones in data order; no options where none is allowed.

    Robustness varies each input by up to ``percent`` in ``trials`` trials and recomputes the best 50 candidates; it
    is the share of trials in which the best candidate, or one tied with it, stays in front. ``trials=0`` leaves it
    out, and so does a model of which nothing varies. After ``seconds`` it ends with what is known.
    """
    until = time.monotonic() + seconds
    every = model.candidates()
    outcomes = computed(model, every, until)
    names = every[: len(outcomes)]
    stopped = "the limit of seconds is reached" if len(names) < len(every) else ""
    shut = np.flatnonzero(~np.isfinite(outcomes))
    sign = 1 if model.goal == "min" else -1
    order = sorted(np.flatnonzero(np.isfinite(outcomes)).tolist(), key=lambda at: sign * outcomes[at])
    options = tuple(Option(names[at], float(outcomes[at])) for at in order)
    ruled_out = tuple(
        Excluded(names[at], None, (), "it has no outcome" if np.isnan(outcomes[at]) else "its outcome is infinite")
        for at in shut[:EXCLUDED].tolist()
    )
    ranking = Ranking(model.measure, model.goal, options, compared=len(names), candidates=len(every), stopped=stopped,
                      excluded_count=len(shut), excluded=ruled_out)  # fmt: skip
    if not options:
        return ranking
    ties = tuple(option.name for option in options if _distance(options[0], option) <= TIE)
    outside = next((option for option in options if option.name not in ties), None)
    if outside is not None:
        ranking = replace(
            ranking, margin=_distance(options[0], outside), lead=abs(options[0].outcome - outside.outcome)
        )
    return _with_trials(model, replace(ranking, ties=ties), percent, trials, seed, until)


def computed(model: WhatIf, names: Sequence[str], until: float) -> NDArray[np.float64]:
    """The outcomes of the first, of all where the time allows."""
    if until == float("inf"):
        return model.outcomes(names)
    parts: list[NDArray[np.float64]] = []
    at, size = 0, FIRST
    while at < len(names) and time.monotonic() < until:
        parts.append(model.outcomes(names[at : at + size]))
        at, size = at + size, size * 2
    return np.concatenate(parts) if parts else np.zeros(0)


def _with_trials(model: WhatIf, ranking: Ranking, percent: float, trials: int, seed: int, until: float) -> Ranking:
    """Who comes first while the inputs vary."""
    rng = np.random.default_rng(seed)
    contenders = [option.name for option in ranking.options[:CONTENDERS]]
    as_they_are = np.array([option.outcome for option in ranking.options[:CONTENDERS]])
    sign = 1 if model.goal == "min" else -1
    counts: Counter[str] = Counter()
    moved = False
    for _ in range(trials):
        if time.monotonic() >= until:
            break
        outcomes = sign * model.varied(percent, rng).outcomes(contenders)
        moved = moved or not np.array_equal(sign * outcomes, as_they_are)
        outcomes[~np.isfinite(outcomes)] = np.inf
        none = bool(np.isinf(outcomes).all())
        counts["none allowed" if none else contenders[int(outcomes.argmin())]] += 1
    count = counts.total()
    if not moved:
        return ranking
    winners = tuple(Winner(name, times / count) for name, times in counts.most_common())
    stayed = sum(counts[name] for name in ranking.ties) / count
    return replace(ranking, robustness=stayed, varied_percent=percent, trials=count, winners=winners)


def _distance(best: Option, other: Option) -> float:
    scale = max(abs(best.outcome), abs(other.outcome))
    return abs(best.outcome - other.outcome) / scale if scale else 0.0
