"""Where an answer departs from what was computed: said in one line, with the record that says otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence

from decisor.system.wording import format_amount
from decisor.types import Observation, Ranking


def find_fullest_ranking(observations: Sequence[Observation]) -> Observation | None:
    """Return the observation whose ranking compared the most candidates, the last of equals.

    An empty ranking is used only if there is no other; None without any.
    """
    ranked = [(one.ranking.count, at) for at, one in enumerate(observations) if one.ranking and one.ranking.options]
    if ranked:
        return observations[max(ranked)[1]]
    return next((one for one in reversed(observations) if one.ranking), None)


def describe_departure(answer: str, observation: Observation | None) -> str:
    """Describe how an answer departs from the computed ranking.

    Empty if it names the best or an equally good candidate, or nothing was computed.

    >>> from decisor.types import Option, Record
    >>> ranking = Ranking("cost", "min", (Option("Basel", 2.0), Option("Lyon", 3.0)), ties=("Basel",), unit="EUR")
    >>> describe_departure("Lyon", Observation((Record("o1.r1"),), ranking=ranking))
    'This departs from the computed ranking: Basel has the smallest cost (2 EUR) [o1.r1]; Lyon is number 2 (3 EUR).'
    """
    ranking = observation.ranking if observation else None
    if observation is None or ranking is None or not ranking.options or not answer.strip():
        return ""
    best = ranking.options[0]
    if any(is_candidate_name(answer, name) for name in (best.name, *ranking.ties)):
        return ""
    record = f" [{observation.records[0].id}]" if observation.records else ""
    extreme = "largest" if ranking.goal == "max" else "smallest"
    head = f"{best.name} has the {extreme} {ranking.measure} ({format_amount(best.outcome, ranking.unit)}){record}"
    return f"This departs from the computed ranking: {head}; {describe_answer_place(answer, ranking)}."


def describe_answer_place(answer: str, ranking: Ranking) -> str:
    """Describe the place of an answer in the ranking."""
    for place, option in enumerate(ranking.options, 1):
        if is_candidate_name(answer, option.name):
            return f"{option.name} is number {place} ({format_amount(option.outcome, ranking.unit)})"
    for one in ranking.excluded:
        if is_candidate_name(answer, one.name):
            return f"{one.name} is ruled out by {' and '.join(one.rules) or 'its outcome'}: {one.why}"
    return f"{answer.strip()} was not compared"


def is_candidate_name(answer: str, candidate: str) -> bool:
    """Return whether an answer is a candidate, in any case and any order of its parts.

    >>> (is_candidate_name("lyon + Basel", "Basel + Lyon"), is_candidate_name("Baselland", "Basel"),
    ...     is_candidate_name('"Basel".', "Basel"))
    (True, False, True)
    """
    return split_candidate_name(answer) == split_candidate_name(candidate)


def split_candidate_name(name: str) -> frozenset[str]:
    words = re.split(r"\s*[,+]\s*|\s+and\s+", name.strip().strip("\"'`*. ").lower())
    return frozenset(word.strip("\"'`*. ") for word in words if word.strip("\"'`*. "))
