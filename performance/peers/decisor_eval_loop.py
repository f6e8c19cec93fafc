"""Ours as ``decisor eval`` runs it: the same technique through the runner, its journal and a run store on disk."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from decisor.databases.sql import SqlTool
from decisor.lab.benchmark import Case, Score
from decisor.lab.evaluation.runner import Suite, Tally, evaluate_suite
from decisor.lab.evaluation.store import open_store
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.techniques.iter_rag import IterRAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import TraceEntry
from decisor.types import Decision, Question
from peers.decisor_loop import QUESTION
from peers.measuring import Arguments, parse_arguments, report, rss_mb


@dataclass(frozen=True)
class Goods:
    """Cases that differ in their number, on one database, or none."""

    count: int
    tool: SqlTool | None
    name: str = "goods"

    def cases(self) -> Sequence[Case]:
        return [Case(str(n), Question(f"{QUESTION.text} ({n})", QUESTION.rules)) for n in range(self.count)]

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Toolbox]:
        yield Toolbox([self.tool] if self.tool else [])

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        return Score(True)

    async def close(self) -> None: ...


async def main(args: Arguments) -> None:
    tool = await SqlTool.open(args.database) if args.database else None
    memory: list[float] = []

    def hear(tally: Tally) -> None:
        if tally.done % 1000 == 0 and tally.done // 1000 > len(memory):
            memory.append(round(rss_mb(), 1))

    with tempfile.TemporaryDirectory() as folder:
        for name, cases in (("warm.db", 2), ("run.db", args.cases)):
            store = open_store(Path(folder) / name)
            suite = Suite(
                {"goods": Goods(cases, tool)},
                {"iter_rag": IterRAG(max_steps=400)},
                {"m": OpenAICompatible("m", args.base_url)},
                cases_at_once=args.at_once,
                calls_at_once=args.at_once,
            )
            began, cpu = time.perf_counter(), time.process_time()
            tally = await evaluate_suite(suite, store, hear=hear)
            if name == "run.db":
                report(tally.usage.calls, began, cpu, memory=memory)
            store.close()
    if tool:
        await tool.close()


if __name__ == "__main__":
    asyncio.run(main(parse_arguments()))
