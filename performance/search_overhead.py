"""What a search costs beside its model calls: milliseconds per call as the tree grows, and Game of 24 in full.

python performance/search_overhead.py [--data FOLDER] [--http]

Two minutes.

1. RadAgent in an environment and with a model that answer at once, 2,400 calls. CPU time per call where the tree has
   about 100, 500 and 1,000 nodes, the model's and the environment's own time taken off; beside it, in the same run, the
   bare verbs (ask, act) with the same prompts' length and no tree. Bar: under 1 ms at 1,000 nodes.
2. 100 puzzles x 100 calls with the policy of the tests as model, in this process, or with --http behind an
   OpenAI-compatible server in a process of its own. Bar: under 60 s.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from decisor.lab.game24 import Puzzle, read_puzzle_cases
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques.radagent import RadAgent
from decisor.trace.events import SearchNode, TraceEntry
from decisor.types import LLM, Action, Completion, Message, Observation, Question, Sampling, Usage
from policies.game24 import Game24LLM

BAR_MS, BAR_SECONDS = 1.0, 60.0
STEPS = 6


@dataclass
class Instant:
    """Answers at once, and notes how many calls were made when."""

    name: str = "instant"
    at: list[float] = field(default_factory=list)
    own: float = 0.0

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        began = time.process_time()
        self.at.append(began)
        number = sampling.seed or 0
        if "# Attempt B" in messages[-1].content:
            text = f"They differ. Better: {'AB'[number * 7 % 11 % 2]}"
        else:
            text = f"Thought: go on from here.\nAction: walk\nAction input: to {number}"
        made = Completion((text,), Usage(1))
        self.own += time.process_time() - began
        return made


@dataclass
class Walk:
    """Ends after ``STEPS`` steps."""

    gone: int = 0

    def tools(self) -> tuple[str, ...]:
        return ("walk",)

    def describe(self) -> str:
        return "### Tool: walk\nGoes somewhere. Input: where to."

    async def step(self, action: Action) -> Observation:
        self.gone += 1
        return Observation(
            note=f"You are at place {action.input}.", answer=action.input if self.gone == STEPS else None
        )

    def fork(self) -> Walk:
        return Walk(self.gone)


async def overhead() -> float:
    """Milliseconds per call at about 1,000 nodes."""
    llm = Instant()
    run = Run(llm, Walk(), Budget(Limits(calls=2_400)))
    growth: list[tuple[float, int]] = []
    nodes = 0

    def hear(entry: TraceEntry) -> None:
        nonlocal nodes
        if isinstance(entry.event, SearchNode):
            nodes = entry.event.node
        growth.append((time.process_time(), nodes))

    run.trace.listeners.append(hear)
    await RadAgent(calls=2_400, equal=0)(Question("Where to?"), run)
    bare = await plain(600)
    print(f"the bare verbs, without a tree: {bare:.3f} ms CPU per call")
    at_1000 = 0.0
    for low, high in ((50, 150), (450, 550), (900, 1_100)):
        inside = [when for when, count in growth if low <= count <= high]
        calls = sum(inside[0] <= when <= inside[-1] for when in llm.at)
        cost = 1000 * ((inside[-1] - inside[0]) / calls - llm.own / len(llm.at))
        at_1000 = cost
        print(f"tree of {(low + high) // 2:>5} nodes: {cost:.3f} ms CPU per call ({cost / bare:.2f} x the bare verbs)")
    return at_1000


async def plain(calls: int) -> float:
    run, llm = Run(Instant(), Walk()), Instant()
    run = run.using(llm=llm)
    text = "x" * 3_000
    ticks = [time.process_time()]
    for number in range(calls):
        await run.ask(f"{text}{number}", str)
        if number % 2:
            await run.using(env=Walk()).act(Action("walk", f"to {number}"))
        ticks.append(time.process_time())
    return 1000 * sorted(b - a for a, b in pairwise(ticks))[calls // 2]


async def puzzles(data: str, llm: LLM) -> float:
    """Seconds for 100 puzzles x 100 calls."""
    asked = read_puzzle_cases(Path(data))
    began, cpu = time.perf_counter(), time.process_time()

    async def one(at: int) -> int:
        run = Run(llm, Puzzle.of(str(asked[at].facts["numbers"])))
        await RadAgent(equal=0)(asked[at].question, run)
        return run.budget.spent.calls

    made = sum(await map_concurrently(one, range(len(asked)), 8))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    load = os.getloadavg()[0]
    print(f"{len(asked)} puzzles, {made:,} calls: {took:.1f} s wall, {cpu:.1f} s CPU here (load average {load:.1f})")
    return took


def serve(port: multiprocessing.Queue[int]) -> None:
    """The policy behind HTTP."""
    from servers.openai_server import serve as served

    llm = Game24LLM()

    async def until_killed() -> None:
        async with served(lambda body: llm.reply(body["messages"][-1]["content"], body.get("seed") or 0)) as url:
            port.put(int(url.rpartition(":")[2].partition("/")[0]))
            await asyncio.Event().wait()

    asyncio.run(until_killed())


async def over_http(data: str) -> float:
    from decisor.llms.openai_compatible import OpenAICompatible

    port: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(port,), daemon=True)
    server.start()
    llm = OpenAICompatible("policy", f"http://127.0.0.1:{port.get(timeout=30)}/v1")
    try:
        return await puzzles(data, llm)
    finally:
        await llm.close()
        server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    home = Path(os.environ.get("DECISOR_DATA", Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--data", default=str(home / "game24"))
    parser.add_argument("--http", action="store_true")
    told = parser.parse_args()
    cost = asyncio.run(overhead())
    took = asyncio.run(over_http(told.data) if told.http else puzzles(told.data, Game24LLM()))
    kept = cost < BAR_MS and took < BAR_SECONDS
    print(f"bars: under {BAR_MS:g} ms at 1,000 nodes, under {BAR_SECONDS:g} s: {'kept' if kept else 'MISSED'}")
    sys.exit(not kept)


if __name__ == "__main__":
    main()
