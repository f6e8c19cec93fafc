"""ARC-Challenge: choices in science. Right is the choice, named by letter or by text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from decisor.benchmarks.case import Case
from decisor.benchmarks.protocol import Score
from decisor.benchmarks.qa import arc
from decisor.benchmarks.qa.score import same, score
from decisor.benchmarks.qa.shelf import Mode, Shelf
from decisor.judging.auxiliary_lms import OwnLM
from decisor.judging.text_match import choice
from decisor.trace.events import Entry
from decisor.types import Decision, Environment


def read_choice(answer: str, case: Case) -> str:
    """The letter, or ''."""
    choices = case.facts["choices"]
    assert isinstance(choices, Mapping)
    return choice(answer, {letter: str(text) for letter, text in choices.items()})


@dataclass(frozen=True)
class ArcBench:
    """Techniques that read passages need a ``corpus``."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    judge: str = ""
    name: str = "arc"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self)

    @property
    def own_lms(self) -> tuple[OwnLM, ...]:
        return self.shelf.own_lms

    def cases(self) -> Sequence[Case]:
        return arc.cases(self.data)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        return score(case, decision, events, same, read_choice(decision.answer, case))

    async def judged(self, score: Score, case: Case, decision: Decision) -> Score:
        return await self.shelf.judged(score, case, decision)

    async def close(self) -> None:
        await self.shelf.close()
