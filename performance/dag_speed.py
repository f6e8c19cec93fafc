"""What the schedule of a reasoning DAG is worth: wall time beside its critical path and beside one node at a time.

python performance/dag_speed.py [DATA] [QUESTIONS] [SET...]

Two questions of each set take 40 s. DATA is the folder of the test data.

A local endpoint answers each call after 100 ms. The critical path is the time of the calls and queries that must wait
for each other: plan, the longest chain of nodes, answer; as measured, and at 100 ms a call and nothing for a query.
Bar: wall time of a plan at most 1.1 x the measured one. Sequential is the same technique with one node at a time. The
plans of "mixed" ask an index, a property graph and a database for real; the others search in memory. The ceiling of
any schedule is nodes / levels. LLMCompiler publishes 2.15 x on ParallelQA with gpt-4 (Kim et al., ICML 2024, table
2), against ReAct, not against its own plan run in sequence.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from aiohttp import web

from decisor.llms.openai_compatible import OpenAICompatible
from decisor.parsing.plan import PlanGraph
from decisor.runtime.run import Run
from decisor.techniques.reasoning_dag import ReasoningDAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import ActionResult, LLMCall, NodeSpan, Span
from decisor.types import Question, Tool
from gold_plans import GoldPlan, musique, parallelqa, strategyqa, twowiki
from head import words
from mixed_plans import QUERIES, mixed, sources
from servers.openai_server import completion, serve_app
from techniques.documents import Passages, role_of

LATENCY = 0.1
BAR = 1.1
ANY = [("x", "x of in the is was did who what which where when how many are and thing compare has have for")]
HOME = Path(__file__).parent.parent.parent / "shared" / "data"


@dataclass(frozen=True)
class Timed:
    """Seconds of one question under each schedule, and the seconds that no schedule can save."""

    ready: float
    levels: float
    alone: float
    critical: float
    ideal: float


def application(plans: dict[str, str]) -> web.Application:
    """Writes the plan of the question it is asked, and canned answers to all else."""
    said = {
        "generator": "Answer: x\nQuote: none",
        "relevance": "[1]",
        "rewrite": "Search: the",
        "aggregator": "Final answer: x",
    }

    async def chat(request: web.Request) -> web.Response:
        began = asyncio.get_running_loop().time()
        body = await request.json()
        prompt = body["messages"][0]["content"]
        role = role_of(prompt)
        if role == "planner":
            text = plans[prompt.rpartition("# Question\n")[2].strip()]
        elif role == "critic":
            text = "yes" if "\n(none)\n" in prompt else "no"
        elif role == "query writer":
            text = f"Query: {QUERIES['cypher' if '### Tool: cypher' in prompt else 'sql']}"
        else:
            text = said[role]
        await asyncio.sleep(max(0.0, began + LATENCY - asyncio.get_running_loop().time()))
        return web.json_response(completion(body, text, "m"))

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", chat)
    return app


async def ask(gold: GoldPlan, url: str, schedule: ReasoningDAG, tools: Sequence[Tool]) -> tuple[float, Run]:
    llm = OpenAICompatible("m", f"{url}/v1")
    run = Run(llm, Toolbox(tools))
    began = time.monotonic()
    await schedule(Question(gold.question), run)
    seconds = time.monotonic() - began
    await llm.close()
    return seconds, run


def chain(run: Run) -> tuple[float, float]:
    """The longest path, in seconds as measured and at the server's latency: a node's calls and queries follow each
    other, and come after those of the nodes it needs."""
    calls, needs = calls_of(run)
    best = []
    for way in (0, 1):
        longest: dict[str, float] = {}
        for name in sorted(needs, key=lambda id: int(id[1:].partition(".")[0] or 0)):
            before = max((longest[parent] for parent in needs[name]), default=0.0)
            longest[name] = calls.get(name, (0.0, 0.0))[way] + before
        best.append(calls[""][way] + max(longest.values(), default=0.0))
    return best[0], best[1]


def calls_of(run: Run) -> tuple[dict[str, tuple[float, float]], dict[str, Sequence[str]]]:
    """Seconds of each node's calls and queries ('' for those of none), and what each node needs."""
    node: dict[int, str] = {}
    needs: dict[str, Sequence[str]] = {}
    calls: dict[str, tuple[float, float]] = {}
    for entry in run.trace.entries:
        name = node.get(entry.span, "")
        measured, ideal = calls.get(name, (0.0, 0.0))
        match entry.event:
            case Span():
                node[entry.id] = name
            case NodeSpan(node=id, parents=parents):
                node[entry.id], needs[id] = id, parents
            case LLMCall(usage=usage):
                calls[name] = measured + usage.seconds, ideal + LATENCY
            case ActionResult(seconds=seconds):
                calls[name] = measured + seconds, ideal
    return calls, needs


async def timed(gold: GoldPlan, url: str, tools: Sequence[Tool]) -> Timed:
    most = ReasoningDAG(max_nodes=30)
    ready, run = await ask(gold, url, most, tools)
    levels, _ = await ask(gold, url, ReasoningDAG(max_nodes=30, schedule="levels"), tools)
    alone, _ = await ask(gold, url, ReasoningDAG(max_nodes=30, at_once=1), tools)
    return Timed(ready, levels, alone, *chain(run))


def shape(graphs: Sequence[PlanGraph]) -> tuple[float, float]:
    return statistics.fmean(len(g.parts) for g in graphs), statistics.fmean(len(g.levels) for g in graphs)


async def main(data: Path, count: int, names: Sequence[str]) -> int:
    sets = {"ParallelQA": parallelqa, "MuSiQue": musique, "StrategyQA": strategyqa, "2Wiki": twowiki, "mixed": mixed}
    print(
        f"{'':12}{'plans':>6}{'nodes':>7}{'levels':>7}{'ceiling':>8} | {'timed':>6}{'wall/critical':>16}"
        f"{'at 100 ms':>10}{'levels/ready':>13}{'alone/ready':>12}"
    )
    worst = 0.0
    for name, load in [(name, load) for name, load in sets.items() if not names or name in names]:
        every = load(data)
        nodes, levels = shape([gold.graph() for gold in every])
        some = every[:: max(1, len(every) // count)][:count]
        async with (
            serve_app(application({gold.question: gold.reply for gold in every})) as url,
            AsyncExitStack() as stack,
        ):
            tools = await stack.enter_async_context(sources()) if load is mixed else [Passages(ANY)]
            await ask(some[0], url, ReasoningDAG(max_nodes=30), tools)
            times = [await timed(gold, url, tools) for gold in some]
        ratios = sorted(t.ready / t.critical for t in times)
        median = statistics.median(ratios)
        worst = max(worst, median)
        ideal = statistics.median(t.ready / t.ideal for t in times)
        faster = sum(t.levels for t in times) / sum(t.ready for t in times)
        alone = sum(t.alone for t in times) / sum(t.ready for t in times)
        print(
            f"{name:12}{len(every):6}{nodes:7.2f}{levels:7.2f}{nodes / levels:7.2f}x | {len(times):6}"
            f"{median:9.3f} (max {ratios[-1]:.2f}){ideal:10.3f}{faster:8.2f}x{alone:11.2f}x"
        )
    print(f"bar {BAR}: {'met' if worst <= BAR else 'MISSED'}. LLMCompiler on ParallelQA, published: 2.15x over ReAct.")
    return int(worst > BAR)


if __name__ == "__main__":
    given = words(__doc__)
    home = Path(given[0]) if given else HOME
    sys.exit(asyncio.run(main(home, int(given[1]) if len(given) > 1 else 20, given[2:])))
