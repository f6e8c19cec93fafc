"""Single and multiple retrieval: questions of Decision QA sorted by what IterRAG did with them, whoever answers.

The paper's figure 5: a question is SR where IterRAG made exactly one retrieval for it, MR where it made several. The
split is of questions, so all techniques are compared on the same two sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from decisor.outcome import Outcome

SPLITTER = "iter_rag"
KINDS = ("SR", "MR", "none")
Kinds = Mapping[tuple[str, str], str]
"""(case, model) -> SR, MR or none. Under the model '' stands the split for techniques that ran with another model, or
with none, where IterRAG ran with just one."""


def kinds(outcomes: Iterable[Outcome]) -> Kinds:
    """By question and model, from the runs of ``iter_rag`` with its usual settings, else of a variant of it; its first
    repeat decides. Empty where it was not run."""
    by_question: dict[tuple[str, str], tuple[tuple[bool, str, int], str]] = {}
    for one in outcomes:
        if one.technique.partition(" ")[0] != SPLITTER:
            continue
        rank = (one.technique != SPLITTER, one.technique, one.repeat)
        key = one.case, one.model
        if key not in by_question or rank < by_question[key][0]:
            by_question[key] = rank, kind(one.counts.get("retrievals", 0))
    named = {key: name for key, (_, name) in by_question.items()}
    if len({model for _, model in named}) == 1:
        named |= {(case, ""): name for (case, _), name in named.items()}
    return named


def kind(retrievals: int) -> str:
    """
    >>> kind(0), kind(1), kind(4)
    ('none', 'SR', 'MR')
    """
    return ("none", "SR")[retrievals] if retrievals < 2 else "MR"


def kind_of(outcome: Outcome, by_question: Kinds) -> str:
    """Of the question that an outcome answers; '' where no run of IterRAG says."""
    return by_question.get((outcome.case, outcome.model), by_question.get((outcome.case, ""), ""))
