"""What the runner needs of a benchmark, and the benchmarks there are.

A benchmark is a frozen dataclass; its fields are its settings, on the command line too, and the first is ``data``:
where the released files are. It joins loaders and environments (from ``decisor.benchmarks``) to a scorer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Protocol

from decisor.benchmarks.case import Case
from decisor.errors import SetupError
from decisor.settings import build
from decisor.trace.events import Entry
from decisor.types import Decision, Environment, Usage

BENCHES: dict[str, str] = {
    "dqa": "decisor.benchmarks.dqa.bench:DqaBench",
    "game24": "decisor.benchmarks.game24.bench:Game24Bench",
    "webshop": "decisor.benchmarks.webshop.bench:WebShopBench",
    "toolbench": "decisor.benchmarks.toolbench.bench:ToolBenchBench",
    "hotpotqa": "decisor.benchmarks.qa.sets.hotpotqa:HotpotQABench",
    "twowiki": "decisor.benchmarks.qa.sets.twowiki:TwoWikiBench",
    "musique": "decisor.benchmarks.qa.sets.musique:MuSiQueBench",
    "strategyqa": "decisor.benchmarks.qa.sets.strategyqa:StrategyQABench",
    "arc": "decisor.benchmarks.qa.sets.arc:ArcBench",
    "popqa": "decisor.benchmarks.qa.sets.popqa:PopQABench",
    "parallelqa": "decisor.benchmarks.qa.sets.parallelqa:ParallelQABench",
}
"""Name on the command line -> "module:Class". Modules are imported when they are named."""


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
    """Raises SetupError where there is no such benchmark."""
    if name not in BENCHES:
        raise SetupError(f"There is no benchmark {name!r}; there is {', '.join(BENCHES)}.")
    module, _, kind = BENCHES[name].partition(":")
    found: type = getattr(import_module(module), kind)
    return found


def bench(name: str, **settings: str) -> Bench:
    """From the command line: ``-b "dqa data=DIR form=graph"``. ``data`` is ``$DECISOR_DATA/NAME`` where not given, or
    ``$DECISOR_DATA`` itself where that has no such folder.

    Raises:
        SetupError: there is no such benchmark or setting, or the value does not fit it.
    """
    kind = kind_of(name)
    if "data" not in settings and "data" in {field.name for field in fields(kind)}:
        shared = os.environ.get("DECISOR_DATA")
        if not shared:
            raise SetupError(f'{name} needs its files: write -b "{name} data=FOLDER", or set DECISOR_DATA.')
        own = Path(shared) / name
        settings["data"] = str(own if own.exists() else shared)
    made: Bench = build(kind, name, settings)
    return made
