"""A small benchmark with a real database, a model that always says the same to the same, and a process to run both."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisor.errors import Error
from decisor.lab.benchmark import BENCHES, Case, Score
from decisor.lab.evaluation.runner import Stop, Suite, Tally, evaluate_suite
from decisor.lab.evaluation.store import RunStore, open_store
from decisor.lab.evaluation.suite import format_suite_table
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import Price
from decisor.system.settings import label_with_settings
from decisor.techniques import build_technique
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import TraceEntry
from decisor.types import Decision, Environment, Question
from techniques.table import TableTool

BENCHES["small"] = "evaluation.small:SmallBench"


@dataclass(frozen=True)
class SmallBench:
    """``many`` questions; the model answers every third wrongly."""

    many: int = 4
    name: str = "small"

    def cases(self) -> Sequence[Case]:
        return [
            Case(f"c{n}", Question(f"Which river is longer? ({n})"), ("bel",), "ab"[n % 2]) for n in range(self.many)
        ]

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        tool = TableTool()
        yield Toolbox([tool])
        await tool.close()

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        return Score(decision.answer in case.gold if decision.answer else None, decision.answer, {"em": 1.0})

    async def close(self) -> None:
        """Holds nothing."""


def model(request: dict[str, Any]) -> str:
    """Queries once, then answers."""
    prompt = str(request["messages"][-1]["content"])
    number = int(prompt.partition("longer? (")[2].partition(")")[0])
    if "[o1.r1]" not in prompt:
        plan = "Plan: [Step 1: look]\nCurrent step: 1\n"
        return f"{plan}Thought: look {number}\nAction: sql\nAction input: select name, km from river order by km desc"
    return f"Re-plan: N\nFinal answer: {'aune' if number % 3 == 2 else 'bel'}\nBecause: [o1.r1] [o1.r2]"


def small_suite(url: str, many: int = 4, techniques: Sequence[str] = ("plan_rag", "iter_rag"), **more: Any) -> Suite:
    llm = OpenAICompatible("m", url, price=Price(1.0, 2.0))
    more = {"cases_at_once": 2, **more}
    bench = SmallBench(many)
    return Suite(
        {label_with_settings("small", bench, {"many": str(many)}): bench},
        {name: build_technique(name) for name in techniques},
        {"m": llm},
        **more,
    )


async def run_small(url: str, store: RunStore, stop: Stop | None = None, **more: Any) -> Tally:
    return await evaluate_suite(small_suite(url, **more), store, stop)


def run_here(url: str, path: Path | str, **more: Any) -> str:
    """Run to the end in this process; the final table."""
    store = open_store(path)
    try:
        asyncio.run(run_small(url, store, **more))
        return format_suite_table(store.each_outcome())
    finally:
        store.close()


def run_in_child(url: str, path: Path, kill_at: int = 0, largest: int = 0, more: dict[str, Any] | None = None) -> None:
    """For a process of its own: kill -9 itself before its commit number ``kill_at``, or let no file grow over
    ``largest`` bytes. Ends with 0, or with 7 and the error's text beside the store."""
    if largest:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    try:
        store = open_store(path)
        commits = iter(range(1, 10_000))

        def hook() -> bool:
            if next(commits) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return False

        store.db.connection.set_commit_hook(hook)
        asyncio.run(run_small(url, store, **(more or {})))
        store.close()
    except Error as error:
        path.with_suffix(".error").write_text(str(error))
        os._exit(7)


if __name__ == "__main__":
    from decisor.cli import main

    main()
