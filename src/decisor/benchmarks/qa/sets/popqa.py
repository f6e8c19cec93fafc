"""PopQA: one fact about a thing, often a rare one. Right is an answer that contains an accepted one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from decisor.benchmarks.case import Case
from decisor.benchmarks.protocol import Score
from decisor.benchmarks.qa import popqa
from decisor.benchmarks.qa.score import held, score
from decisor.benchmarks.qa.shelf import Mode, Shelf
from decisor.judging.auxiliary_lms import OwnLM
from decisor.trace.events import Entry
from decisor.types import Decision, Environment


@dataclass(frozen=True)
class PopQABench:
    """``longtail``: only the rarely read subjects, as Self-RAG and Plan-RAG report."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    longtail: bool = False
    judge: str = ""
    name: str = "popqa"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self, popqa)

    @property
    def own_lms(self) -> tuple[OwnLM, ...]:
        return self.shelf.own_lms

    def cases(self) -> Sequence[Case]:
        return popqa.cases(self.data, self.longtail)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        return score(case, decision, events, held)

    async def judged(self, score: Score, case: Case, decision: Decision) -> Score:
        return await self.shelf.judged(score, case, decision)

    async def close(self) -> None:
        await self.shelf.close()
