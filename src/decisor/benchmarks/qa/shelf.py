"""What all cases of a set of questions share: its corpus, indexed once and kept in the user's cache folder, and a judge
where one is named."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

from decisor.benchmarks.case import Case
from decisor.benchmarks.protocol import Score
from decisor.cache import cache_folder
from decisor.errors import SetupError
from decisor.judging.auxiliary_lms import OwnLM
from decisor.judging.llm_eval import llm_eval
from decisor.judging.question import judging
from decisor.tools.documents.index import open_index
from decisor.tools.documents.index_build import build_index
from decisor.tools.documents.index_files import FORMAT, is_index
from decisor.tools.documents.minilm import MiniLM
from decisor.tools.documents.passage import Passage, read_passages
from decisor.tools.documents.passages_tool import PassagesTool
from decisor.tools.toolbox import Toolbox
from decisor.types import Decision, Environment, Tool

Mode = Literal["bm25", "dense", "hybrid"]


class Settings(Protocol):
    """What every set of questions has."""

    @property
    def name(self) -> str: ...

    @property
    def data(self) -> Path: ...

    @property
    def corpus(self) -> str: ...

    @property
    def mode(self) -> Mode: ...

    @property
    def limit(self) -> int: ...

    @property
    def judge(self) -> str: ...


class Own(Protocol):
    """A loader that has passages of its own: where they are, and all of them."""

    def file(self, data: Path) -> Path: ...

    def passages(self, data: Path) -> Iterator[Passage]: ...


@dataclass
class Shelf:
    """The one tool that all cases share, opened when the first needs it; without passages there is no tool."""

    settings: Settings
    own: Own | None = None
    tools: list[Tool] | None = None

    @cached_property
    def own_lms(self) -> tuple[OwnLM, ...]:
        """The judge, where one is named."""
        return (OwnLM(self.settings.judge),) if self.settings.judge else ()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Environment]:
        """An environment of its own: ids of records start anew.

        Raises:
            SetupError: the corpus cannot be read or indexed.
        """
        if self.tools is None:
            self.tools = list(opened(self.settings, self.own))
        yield Toolbox(self.tools)

    async def judged(self, score: Score, case: Case, decision: Decision) -> Score:
        """With the metric ``llm_eval`` where a judge is named and could be read.

        Raises:
            SetupError: the judge that is named cannot be used.
        """
        for judge in self.own_lms:
            lm = judge.lent()
            said = await llm_eval(case.question.text, case.gold, decision.answer, judging(lm))
            metrics = {} if said is None else {"llm_eval": float(said)}
            score = replace(score, metrics={**score.metrics, **metrics}, judging=lm.spent)
        return score

    async def close(self) -> None:
        for tool in self.tools or ():
            await tool.close()
        self.tools = None
        for judge in self.own_lms:
            await judge.close()


def opened(settings: Settings, own: Own | None) -> Iterator[Tool]:
    """The tool over the corpus that is named, or over the set's own."""
    if settings.corpus:
        named = Path(settings.corpus)
        if not named.exists():
            raise SetupError(f"There is no corpus {named}. Make one: decisor index SOURCE --out {named}")
        index = indexed(named.stem, named, lambda: read_passages(named), settings.mode) if named.is_file() else named
    elif own is not None:
        data = settings.data
        index = indexed(settings.name, own.file(data), lambda: own.passages(data), settings.mode)
    else:
        return
    yield PassagesTool(open_index(index, settings.mode), settings.limit)


def indexed(name: str, source: Path, passages: Callable[[], Iterable[Passage]], mode: Mode) -> Path:
    """The index in the cache. It is built where there is none, and updated where a file beside ``source`` changed. It
    holds vectors where ``mode`` needs them."""
    kind = "words" if mode == "bm25" else "vectors"
    place = cache_folder() / "corpora" / f"{name}-{kind}-{digest(str(source.resolve()))}"
    files = sorted(path for path in source.parent.iterdir() if path.is_file())
    state = digest("\n".join(f"{FORMAT} {path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files))
    noted = place.with_name(f"{place.name}.state")
    if not is_index(place) or not noted.is_file() or noted.read_text() != state:
        place.parent.mkdir(parents=True, exist_ok=True)
        build_index(passages(), place, embedder=None if mode == "bm25" else MiniLM.open())
        noted.write_text(state)
    return place


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
