"""What the runner needs of a benchmark, and the benchmarks there are.

A benchmark is a frozen dataclass; its fields are its settings, on the command line too, and the first is ``data``:
where the released files are. It joins loaders and environments (from ``decisor.benchmarks``) to a scorer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol

from decisor.errors import SetupError
from decisor.settings import build, import_class, settings_of
from decisor.trace.events import Entry
from decisor.types import Decision, Environment, Question, Usage, Value

BENCHES: dict[str, str] = {
    "dqa": "decisor.benchmarks.dqa.bench:DqaBench",
    "game24": "decisor.benchmarks.game24.bench:Game24Bench",
    "webshop": "decisor.benchmarks.webshop.bench:WebShopBench",
    "toolbench": "decisor.benchmarks.toolbench.bench:ToolBenchBench",
    "hotpotqa": "decisor.benchmarks.qa.hotpotqa:HotpotQABench",
    "twowiki": "decisor.benchmarks.qa.twowiki:TwoWikiBench",
    "musique": "decisor.benchmarks.qa.musique:MuSiQueBench",
    "strategyqa": "decisor.benchmarks.qa.strategyqa:StrategyQABench",
    "arc": "decisor.benchmarks.qa.arc:ArcBench",
    "popqa": "decisor.benchmarks.qa.popqa:PopQABench",
    "parallelqa": "decisor.benchmarks.qa.parallelqa:ParallelQABench",
    "own": "decisor.benchmarks.own.bench:OwnBench",
}
"""Name on the command line -> "module:Class". Modules are imported when they are named."""

VERBS = ("cases", "environment", "score", "close")
"""What a benchmark can be asked for: see ``Bench``."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question with what is needed to score it. ``id`` is unique in its benchmark; ``group`` is what reports split
    by (scenario, number of hops, category).

    ``gold``: every accepted answer, the first the main one. ``facts``: what else scoring needs, as plain values.
    Neither reaches a technique: it gets ``question`` and an environment.
    """

    id: str
    question: Question
    gold: tuple[str, ...] = ()
    group: str = ""
    facts: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """``right`` is None where no judge could read the answer (unscored, never wrong).

    ``answer``: the answer as it was read. ``metrics``: every number of this case (em, f1, reward, recall@5), higher is
    better unless the name says otherwise. ``failure``: its class where it is not right. ``tags``: kinds to count by
    (SR, MR, hallucinated_tool). ``counts``: whole numbers to add up or plot (replans, retrievals, depth). ``judging``:
    what an LM that judged has cost.
    """

    right: bool | None
    answer: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""
    tags: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    judging: Usage = field(default_factory=Usage)


class Bench(Protocol):
    """A benchmark that can be run. One that asks LMs of its own has them in ``own_lms``; what only the final answer is
    to be judged by may stand in a method of its own, ``judged(score, case, decision) -> Score``.
    """

    @property
    def name(self) -> str: ...

    def cases(self) -> Sequence[Case]:
        """Raises SetupError where the files are missing, with what to do."""
        ...

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        """An environment of its own for one run of one case. Many are open at once."""
        ...

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        """Of the decision, and of each other answer that was held on the way."""
        ...

    async def close(self) -> None:
        """Close what cases shared."""
        ...


def kind_of(name: str) -> type:
    """The class of a benchmark of ours, by its name, or of somebody else's, by its import path ``module:Class``.

    Raises:
        SetupError: there is no such benchmark, or what the path names is none.
    """
    if ":" in name:
        kind = import_class(name)
        if lacks := [verb for verb in VERBS if not callable(getattr(kind, verb, None))]:
            raise SetupError(f"{name} is no benchmark: it has no {', '.join(lacks)}.")
        return kind
    if name not in BENCHES:
        names = f"{', '.join(BENCHES)}, or one of your own as module:Class"
        raise SetupError(f"There is no benchmark {name!r}; there is {names}.")
    module, _, class_name = BENCHES[name].partition(":")
    ours: type = getattr(import_module(module), class_name)
    return ours


def bench(name: str, **settings: str) -> Bench:
    """From the command line: ``-b "dqa data=DIR form=graph"``. ``data`` is ``$DECISOR_DATA/NAME`` where not given, or
    ``$DECISOR_DATA`` itself where that has no such folder.

    Raises:
        SetupError: there is no such benchmark or setting, or the value does not fit it.
    """
    kind = kind_of(name)
    if "data" in settings_of(kind) and set(settings) <= set(settings_of(kind)) - {"data"}:
        shared = os.environ.get("DECISOR_DATA")
        if not shared:
            raise SetupError(f'{name} needs its files: write -b "{name} data=FOLDER", or set DECISOR_DATA.')
        own = Path(shared) / name
        settings["data"] = str(own if own.exists() else shared)
    instance: Bench = build(kind, name, settings)
    return instance
