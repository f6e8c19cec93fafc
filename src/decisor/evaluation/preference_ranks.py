"""Which technique's answers a judge prefers: all techniques of a run ranked on each case, and the mean ranks.

Every two techniques' answers to a case are compared in both orders (``judging.preference``), with the steps that led to
them: of a search, those of the sequence that it chose, and how many. No gold answer is shown. Only first tries, and
cases that every technique of the benchmark finished, are ranked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from decisor.benchmarks.search_metrics import chosen_path
from decisor.errors import SetupError
from decisor.evaluation.failure_judge import StoreBook, spread, steps_of
from decisor.evaluation.store.protocol import Store
from decisor.judging.lm_judge import judging
from decisor.judging.preference import TOOL_CRITERIA, Preference, all_pairs, mean_ranks
from decisor.lms.journal import Journal
from decisor.outcome import Outcome
from decisor.plurals import counted
from decisor.statistics.compare import Side, side
from decisor.trace.events import ActionStart, RunStart, events_of
from decisor.types import LM

MOST_STEPS = 6_000
"""Characters of steps shown with an answer."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Mean ranks (1 is best) over ``cases``; on ``unread`` more the judge could not be read."""

    judge: str
    benchmark: str
    cases: int
    unread: int
    ranks: Mapping[str, float]


async def preference_ranks(store: Store, lm: LM, judge: str, most: int = 50, votes: int = 1) -> list[Ranks]:
    """One for each benchmark that two or more techniques ran on, over at most ``most`` of its cases.

    Raises:
        LMError: the endpoint will not answer anything (key, quota, model).
        SetupError: no case was finished by two techniques.
    """
    journal, all_ranks = Journal(StoreBook(store)), []
    for benchmark, cases in shared_cases(store).items():
        points, unread = [], 0
        for first in spread([outcomes[0] for outcomes in cases.values()], most):
            outcomes = cases[first.case]
            answers = {str(side(one)): answer_text(one, store) for one in outcomes}
            run = judging(journal.lm(lm))
            points_of_case = await all_pairs(
                question_text(first, store), answers, Preference(TOOL_CRITERIA, votes=votes), run
            )
            unread += points_of_case is None
            points += [points_of_case] if points_of_case is not None else []
        all_ranks.append(Ranks(judge, benchmark, len(points), unread, mean_ranks(points)))
    if not all_ranks:
        raise SetupError("Ranks need a case that two techniques finished, and this run has none.")
    return all_ranks


def shared_cases(store: Store) -> dict[str, dict[str, list[Outcome]]]:
    """By benchmark and case, the first tries of all techniques; cases that one of them did not finish are left out."""
    by_benchmark: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    sides: dict[str, set[Side]] = defaultdict(set)
    for one in store.each_outcome():
        if one.repeat == 0 and one.state != "crashed":
            by_benchmark[one.benchmark][one.case].append(one)
            sides[one.benchmark].add(side(one))
    complete = {
        name: {case: outcomes for case, outcomes in cases.items() if len(outcomes) == len(sides[name])}
        for name, cases in by_benchmark.items() if len(sides[name]) > 1
    }  # fmt: skip
    return {name: cases for name, cases in complete.items() if cases}


def question_text(one: Outcome, store: Store) -> str:
    """The question as the technique got it."""
    for start in events_of(store.trace(one.key), RunStart):
        return "\n\n".join(part for part in (start.question.rules, start.question.text) if part)
    return one.case


def answer_text(one: Outcome, store: Store) -> str:
    """The steps of the sequence that was chosen, how many actions they are, and the answer."""
    path = chosen_path(store.trace(one.key))
    steps = steps_of(path)
    cut = steps if len(steps) <= MOST_STEPS else steps[: MOST_STEPS // 2] + "\n[...]\n" + steps[-MOST_STEPS // 2 :]
    actions = counted(sum(isinstance(entry.event, ActionStart) for entry in path), "action")
    return f"{cut}\n({actions})\nFinal answer: {one.text or one.answer or '(none)'}".strip()
