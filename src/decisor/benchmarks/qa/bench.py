"""A set of questions over documents as a benchmark. A set is one value, ``QaSet``, in a file of its own: how its files
are read, and what is right in it. What all sets have in common is here.

Settings of every set: ``data``, the folder of its files or the file; ``corpus``, an index or JSON lines with id, title
and text, instead of the set's own passages; ``mode``, how it is searched (dense and hybrid embed every passage the
first time); ``limit``, how many passages a search returns; ``judge``, MODEL@URL of an LM that says, as the metric
``llm_eval``, whether an answer means the same as an accepted one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, make_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from decisor.benchmarks.protocol import Case, Score
from decisor.benchmarks.qa.corpus import Mode, SharedTool, corpus_index, own_index
from decisor.benchmarks.qa.rows import find
from decisor.benchmarks.qa.score import Right, exact, score
from decisor.judging.auxiliary_lms import OwnLM
from decisor.judging.llm_eval import llm_eval
from decisor.judging.lm_judge import judging
from decisor.tools.documents.passage import Passage
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import Entry
from decisor.types import Decision, Environment


def as_written(answer: str, case: Case) -> str:
    return answer


@dataclass(frozen=True)
class QaSet:
    """What tells one set of questions from another.

    ``files``: names of its files, the first that is there counts, in ``folder`` of the data. ``read_cases`` and
    ``read_passages`` get that file; a set without ``read_passages`` has no corpus of its own. ``read_answer``: the
    answer as it is scored (a letter, yes or no, '' where there is none). ``right``: whether that is right.
    ``option``: a setting of its own, yes or no, which leaves only the cases of ``part``.
    """

    name: str
    title: str
    folder: str
    files: tuple[str, ...]
    read_cases: Callable[[Path], list[Case]]
    read_passages: Callable[[Path], Iterator[Passage]] | None = None
    read_answer: Callable[[str, Case], str] = as_written
    right: Right = exact
    option: str = ""
    part: Callable[[list[Case]], list[Case]] = list

    def file(self, data: Path) -> Path:
        """Raises SetupError where ``data`` holds none of ``files``."""
        return find(data, self.folder, self.files, self.title)

    def cases(self, data: Path, only_part: bool = False) -> list[Case]:
        """Raises SetupError where there is no such file, or a row is no question of the set."""
        cases = self.read_cases(self.file(data))
        return self.part(cases) if only_part else cases

    def passages(self, data: Path) -> Iterator[Passage]:
        """The set's own corpus, nothing where it has none. Raises SetupError where it cannot be read."""
        return self.read_passages(self.file(data)) if self.read_passages else iter(())


class QaBench:
    """Satisfies ``Bench``. ``qa_bench`` makes the class of a set, a frozen dataclass with these fields."""

    questions: ClassVar[QaSet]
    name: str
    data: Path
    corpus: str
    mode: Mode
    limit: int
    judge: str

    @cached_property
    def own_lms(self) -> tuple[OwnLM, ...]:
        """The judge, where one is named."""
        return (OwnLM(self.judge),) if self.judge else ()

    @cached_property
    def tool(self) -> SharedTool:
        """The one tool that all cases share, opened when the first needs it."""
        return SharedTool(self.index, self.mode, self.limit)

    def index(self) -> Path | None:
        if self.corpus:
            return corpus_index(Path(self.corpus), self.mode)
        if self.questions.read_passages is None:
            return None
        file = self.questions.file(self.data)
        return own_index(self.name, file, lambda: self.questions.passages(self.data), self.mode)

    def cases(self) -> Sequence[Case]:
        option = self.questions.option
        return self.questions.cases(self.data, bool(option) and getattr(self, option))

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        """Ids of records start anew in each; without passages there is no tool in it.

        Raises:
            SetupError: the corpus cannot be read or indexed.
        """
        yield Toolbox(self.tool.open())

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        answer = self.questions.read_answer(decision.answer, case)
        return score(case, decision, events, self.questions.right, answer)

    async def judged(self, score: Score, case: Case, decision: Decision) -> Score:
        """With the metric ``llm_eval`` where a judge is named and could be read.

        Raises:
            SetupError: the judge that is named cannot be used.
        """
        for judge in self.own_lms:
            lm = judge.for_case()
            verdict = await llm_eval(case.question.text, case.gold, decision.answer, judging(lm))
            metrics = {} if verdict is None else {"llm_eval": float(verdict)}
            score = replace(score, metrics={**score.metrics, **metrics}, judging=lm.usage)
        return score

    async def close(self) -> None:
        await self.tool.close()
        for judge in self.own_lms:
            await judge.close()


def qa_bench(questions: QaSet, module: str) -> Callable[..., QaBench]:
    """The class of a set's benchmark. Its fields are its settings, so it is built from text as every benchmark is; the
    set's own option stands before ``judge``. ``module``: where the set stands; its docstring tells what the set is."""
    option = [(questions.option, bool, False)] if questions.option else []
    settings: list[tuple[str, object] | tuple[str, object, object]] = [
        ("data", Path), ("corpus", str, ""), ("mode", Mode, "bm25"), ("limit", int, 10), *option, ("judge", str, ""),
        ("name", str, questions.name),
    ]  # fmt: skip
    own = {"questions": questions, "__module__": module}
    return make_dataclass("QaBench", settings, bases=(QaBench,), frozen=True, namespace=own)
