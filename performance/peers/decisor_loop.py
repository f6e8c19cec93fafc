"""Ours: the technique iter_rag, Run, Budget, Trace, the HTTP client, and the sandbox. Through ``aio.each``."""

from __future__ import annotations

import asyncio
import time

from decisor.databases.sql import SqlTool
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques.iter_rag import IterRAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import Trace
from decisor.types import Question
from peers.measuring import Arguments, parse_arguments, report

QUESTION = Question("Which good is the cheapest?", "Prices are in pounds.")


async def main(args: Arguments) -> None:
    llm = OpenAICompatible("m", args.base_url)
    tools = [await SqlTool.open(args.database)] if args.database else []

    async def one(number: int) -> int:
        run = Run(llm, Toolbox(tools), Budget(Limits(calls=500, seconds=600)), Trace())
        await IterRAG(max_steps=400)(QUESTION, run)
        return run.budget.spent.calls

    await map_concurrently(one, range(2))
    began, cpu = time.perf_counter(), time.process_time()
    calls = await map_concurrently(one, range(args.cases), args.at_once)
    report(sum(calls), began, cpu)
    for tool in tools:
        await tool.close()
    await llm.close()


if __name__ == "__main__":
    asyncio.run(main(parse_arguments()))
