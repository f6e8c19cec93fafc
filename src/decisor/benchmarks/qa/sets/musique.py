"""MuSiQue: two to four hops that cannot be cut short. Right is an exact match with any alias."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from decisor.benchmarks.case import Case
from decisor.benchmarks.protocol import Score
from decisor.benchmarks.qa import musique
from decisor.benchmarks.qa.score import exact, score
from decisor.benchmarks.qa.shelf import Mode, Shelf
from decisor.judging.auxiliary_lms import OwnLM
from decisor.trace.events import Entry
from decisor.types import Decision, Environment


@dataclass(frozen=True)
class MuSiQueBench:
    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    judge: str = ""
    name: str = "musique"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self, musique)

    @property
    def own_lms(self) -> tuple[OwnLM, ...]:
        return self.shelf.own_lms

    def cases(self) -> Sequence[Case]:
        return musique.cases(self.data)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        return score(case, decision, events, exact)

    async def judged(self, score: Score, case: Case, decision: Decision) -> Score:
        return await self.shelf.judged(score, case, decision)

    async def close(self) -> None:
        await self.shelf.close()
