"""Where an answer departs from what was computed: said in one line, with the record that says otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence

from decisor.rankings import amount
from decisor.types import Observation, Ranking


def fullest(observations: Sequence[Observation]) -> Observation | None:
    """The one whose ranking compared most candidates; of equal ones the last. An empty ranking replaces none."""
    ranked = [(one.ranking.count, at) for at, one in enumerate(observations) if one.ranking and one.ranking.options]
    if ranked:
        return observations[max(ranked)[1]]
    return next((one for one in reversed(observations) if one.ranking), None)


def departure(answer: str, observation: Observation | None) -> str:
    """'' where the answer names the best candidate, one as good, or nothing was computed.

    >>> from decisor.types import Option, Record
    >>> ranking = Ranking("cost", "min", (Option("Basel", 2.0), Option("Lyon", 3.0)), ties=("Basel",), unit="EUR")
    >>> departure("Lyon", Observation((Record("o1.r1"),), ranking=ranking))
    'This departs from the computed ranking: Basel has the smallest cost (2 EUR) [o1.r1]; Lyon is number 2 (3 EUR).'
    """
    ranking = observation.ranking if observation else None
    if observation is None or ranking is None or not ranking.options or not answer.strip():
        return ""
    best = ranking.options[0]
    if any(names(answer, name) for name in (best.name, *ranking.ties)):
        return ""
    record = f" [{observation.records[0].id}]" if observation.records else ""
    extreme = "largest" if ranking.goal == "max" else "smallest"
    head = f"{best.name} has the {extreme} {ranking.measure} ({amount(best.outcome, ranking.unit)}){record}"
    return f"This departs from the computed ranking: {head}; {standing(answer, ranking)}."


def standing(answer: str, ranking: Ranking) -> str:
    """What the ranking says of the answer."""
    for place, option in enumerate(ranking.options, 1):
        if names(answer, option.name):
            return f"{option.name} is number {place} ({amount(option.outcome, ranking.unit)})"
    for one in ranking.excluded:
        if names(answer, one.name):
            return f"{one.name} is ruled out by {' and '.join(one.rules) or 'its outcome'}: {one.why}"
    return f"{answer.strip()} was not compared"


def names(answer: str, candidate: str) -> bool:
    """Whether the answer is this candidate, whatever the case and the order of its parts.

    >>> names("lyon + Basel", "Basel + Lyon"), names("Baselland", "Basel"), names('"Basel".', "Basel")
    (True, False, True)
    """
    return parts(answer) == parts(candidate)


def parts(name: str) -> frozenset[str]:
    words = re.split(r"\s*[,+]\s*|\s+and\s+", name.strip().strip("\"'`*. ").lower())
    return frozenset(word.strip("\"'`*. ") for word in words if word.strip("\"'`*. "))
