"""Seven sets of questions over documents, for the runner. ``right`` follows each set's own scorer:

=========== ====================================================================================
hotpotqa    exact match, normalised, with any accepted answer; so twowiki and musique
strategyqa  the first yes or no of the answer
arc         the choice, named by letter or by text
popqa       the answer contains an accepted answer (as PopQA, Self-RAG and Plan-RAG)
parallelqa  a number within 10 %, else exact match (as LLMCompiler)
=========== ====================================================================================

``corpus``: an index, or JSON lines with id, title and text, instead of the set's own passages (arc and parallelqa have
none). ``mode``: how it is searched. ``limit``: passages a search returns. Indexes are kept in the user's cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from decisor.benchmarks.case import Case
from decisor.benchmarks.qa import arc, hotpotqa, musique, parallelqa, popqa, strategyqa, twowiki
from decisor.evaluation.bench import Score
from decisor.evaluation.qa_metrics import acc, choice, em, near, yes_no
from decisor.evaluation.qa_score import score
from decisor.evaluation.qa_shelf import Mode, Shelf
from decisor.trace import Event
from decisor.types import Decision, Environment


def exact(answer: str, case: Case) -> bool:
    return em(answer, case.gold) == 1


def held(answer: str, case: Case) -> bool:
    return acc(answer, case.gold) == 1


def close_to(answer: str, case: Case) -> bool:
    return near(answer, case.gold[0])


def same(answer: str, case: Case) -> bool:
    """For answers that were read into what gold is spelled like: a letter, yes or no."""
    return answer == case.gold[0]


def read_choice(answer: str, case: Case) -> str:
    """The letter, or ''."""
    choices = case.facts["choices"]
    assert isinstance(choices, Mapping)
    return choice(answer, {letter: str(text) for letter, text in choices.items()})


@dataclass(frozen=True)
class HotpotQABench:
    """``distractor``: only questions of the distractor setting."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    distractor: bool = False
    name: str = "hotpotqa"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self, hotpotqa)

    def cases(self) -> Sequence[Case]:
        return hotpotqa.cases(self.data, self.distractor)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Event]) -> Score:
        return score(case, decision, events, exact)

    async def close(self) -> None:
        await self.shelf.close()


@dataclass(frozen=True)
class TwoWikiBench:
    """2WikiMultiHopQA."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    name: str = "twowiki"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self, twowiki)

    def cases(self) -> Sequence[Case]:
        return twowiki.cases(self.data)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Event]) -> Score:
        return score(case, decision, events, exact)

    async def close(self) -> None:
        await self.shelf.close()


@dataclass(frozen=True)
class MuSiQueBench:
    """The answerable questions of MuSiQue."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    name: str = "musique"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self, musique)

    def cases(self) -> Sequence[Case]:
        return musique.cases(self.data)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Event]) -> Score:
        return score(case, decision, events, exact)

    async def close(self) -> None:
        await self.shelf.close()


@dataclass(frozen=True)
class StrategyQABench:
    """Yes-no questions. ``recall@10`` is the best over annotators, as released."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    name: str = "strategyqa"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self, strategyqa)

    def cases(self) -> Sequence[Case]:
        return strategyqa.cases(self.data)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Event]) -> Score:
        return score(case, decision, events, same, yes_no(decision.answer))

    async def close(self) -> None:
        await self.shelf.close()


@dataclass(frozen=True)
class ArcBench:
    """ARC-Challenge. Techniques that read passages need a ``corpus``."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    name: str = "arc"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self)

    def cases(self) -> Sequence[Case]:
        return arc.cases(self.data)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Event]) -> Score:
        return score(case, decision, events, same, read_choice(decision.answer, case))

    async def close(self) -> None:
        await self.shelf.close()


@dataclass(frozen=True)
class PopQABench:
    """``longtail``: only the rarely read subjects, as Self-RAG and Plan-RAG report."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    longtail: bool = False
    name: str = "popqa"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self, popqa)

    def cases(self) -> Sequence[Case]:
        return popqa.cases(self.data, self.longtail)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Event]) -> Score:
        return score(case, decision, events, held)

    async def close(self) -> None:
        await self.shelf.close()


@dataclass(frozen=True)
class ParallelQABench:
    """Techniques that read passages need a ``corpus``."""

    data: Path
    corpus: str = ""
    mode: Mode = "bm25"
    limit: int = 10
    name: str = "parallelqa"

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf(self)

    def cases(self) -> Sequence[Case]:
        return parallelqa.cases(self.data)

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        return self.shelf.lent()

    async def score(self, case: Case, decision: Decision, events: Sequence[Event]) -> Score:
        return score(case, decision, events, close_to)

    async def close(self) -> None:
        await self.shelf.close()
