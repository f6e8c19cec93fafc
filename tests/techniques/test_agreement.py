"""Agreement of several attempts: what counts as the same result, who decides, and what is told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.techniques.shared.agreement import decide_by_agreement, group_by_result
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import Conclusion, Span
from decisor.types import Decision, Option, Question, Ranking


def decided(answer: str, outcomes: Mapping[str, float] | None = None, measure: str = "cost") -> Decision:
    options = tuple(Option(name, outcome) for name, outcome in (outcomes or {}).items())
    return Decision(answer, ranking=Ranking(measure, "min", options) if options else None)


OAK = decided("oak", {"oak": 80.0, "elm": 100.0})


@dataclass
class Attempts:
    """A technique that plays decisions in order, and keeps the questions and the settings it was asked with."""

    decisions: list[Decision]
    questions: list[Question] = field(default_factory=list)
    seeds: list[int | None] = field(default_factory=list)

    async def __call__(self, question: Question, run: Run) -> Decision:
        self.questions.append(question)
        self.seeds.append(run.asking.seed)
        return self.decisions[len(self.questions) - 1]


def agree(*decisions: Decision, attempts: int = 3) -> tuple[Decision, Attempts, Run]:
    technique, run = Attempts(list(decisions)), Run(ScriptedLLM([]), Toolbox([]))
    return asyncio.run(decide_by_agreement(technique, attempts, Question("Which?", "By cost."), run)), technique, run


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (decided("Oak ", {"elm": 100.00000001, "oak": 80.0}, "price"), True),
        (decided("oak", {"oak": 80.0, "elm": 100.1}), False),
        (decided("oak", {"oak": 80.0}), True),
        (decided("oak"), True),
        (decided("elm", {"elm": 80.0, "oak": 100.0}), False),
    ],
)
def test_results_are_compared_as_tables(other: Decision, same: bool) -> None:
    assert len(group_by_result([OAK, other])) == (1 if same else 2)


def test_all_agree() -> None:
    decision, technique, run = agree(OAK, OAK, OAK)
    assert (decision.answer, decision.reasons) == ("oak", ("3 of 3 attempts computed the same result.",))
    assert technique.seeds == [None, 2, 3], "a journal tells the attempts apart by their numbers"
    spans = [entry.event.name for entry in run.trace.entries if isinstance(entry.event, Span)]
    assert spans == ["attempt 1 of 3", "attempt 2 of 3", "attempt 3 of 3"]
    assert [entry.span for entry in run.trace.entries if isinstance(entry.event, Conclusion)] == [0]


def test_the_majority_decides_and_the_rows_that_differ_are_told() -> None:
    decision, technique, _ = agree(decided("elm", {"elm": 71.4, "oak": 80.0}), OAK, OAK)
    assert (decision.answer, len(technique.questions)) == ("oak", 3)
    assert decision.reasons == (
        "2 of 3 attempts agree on this. The results:\n"
        "- oak (2 times) by cost: elm 100\n"
        "- elm (1 times) by cost: elm 71.4",
    )


def test_without_a_majority_there_is_one_more_look() -> None:
    ash, elm = decided("ash", {"ash": 1.0, "oak": 80.0}), decided("elm", {"elm": 71.4, "oak": 80.0})
    decision, technique, _ = agree(ash, elm, OAK, OAK)
    assert (decision.answer, len(technique.questions)) == ("oak", 4)
    assert technique.questions[3].rules.startswith("By cost.\n\nThe question was computed in several ways")
    assert "- elm (1 times) by cost: elm 71.4" in technique.questions[3].rules
    assert decision.reasons[0].startswith("3 attempts did not agree; after one more look 2 of 4 say so.")
