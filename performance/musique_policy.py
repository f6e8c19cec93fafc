"""What retrieval makes possible on MuSiQue, and that ``reasoning_dag`` reaches all of it through HTTP.

    python performance/musique_policy.py [DIR] [--count 100] [--limit 10]

`--count 5` takes 20 s.

The ceiling is computed by searches alone; the policy (test equipment that knows the gold decomposition, never a model's
score) then plays the whole technique over a local OpenAI-compatible server. Questions are taken evenly from the file.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.lab.benchmark import Case, Score
from decisor.lab.qa.bench import MUSIQUE, MuSiQueBench, QaBench
from decisor.lab.qa.score import interleave_rankings, recall_at
from decisor.lab.statistics import wilson
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques import build_technique
from decisor.types import Retriever
from policies.musique import MusiquePolicy, fill, reachable
from servers.openai_server import serve


async def main(data: Path, count: int, limit: int) -> None:
    bench = MuSiQueBench(data, limit=limit)
    cases = bench.cases()
    chosen = [cases[at * len(cases) // count] for at in range(count)]
    passages = {passage.id: passage for passage in MUSIQUE.passages(data)}
    policy = MusiquePolicy(cases, passages)
    async with bench.environment(cases[0]):
        (tool,) = bench.tools
    await ceilings("all questions at hand", cases, policy, tool.retriever, limit)
    await recalls(cases, policy, tool.retriever, limit)
    possible = await ceilings(f"the {count} that are played", chosen, policy, tool.retriever, limit)
    began = time.perf_counter()
    async with serve(policy) as base_url:
        scores = await played(bench, chosen, base_url)
    seconds = time.perf_counter() - began
    right = [case.id for case, score in zip(chosen, scores, strict=True) if score.right]
    within = sum(id in possible for id in right)
    print(
        f"reached: {share(len(right), count)} right; {within} of the {len(possible)} that retrieval makes possible, "
        f"{len(right) - within} beyond them"
    )
    at_all, at_5 = mean(scores, "all_recall"), mean(scores, "all_recall@5")
    print(
        f"gold passages retrieved: all of a question's {at_all:.1%}, at 5 taken in turns {at_5:.1%}; share of all "
        f"{mean(scores, 'recall'):.1%}, at 5 {mean(scores, 'recall@5'):.1%}"
    )
    print(f"right answers attributed to a document that holds them: {mean(scores, 'attributed'):.1%}")
    totals = {name: sum(score.counts.get(name, 0) for score in scores) / count for name in scores[0].counts}
    print("per question:", ", ".join(f"{name} {value:.2f}" for name, value in totals.items() if value))
    print(f"calls by expert: {policy.calls}; {seconds:.1f} s wall for all, 8 at a time")
    missed = [case.id for case in chosen if case.id in possible and case.id not in right]
    print("possible and not reached:", missed or "none")
    await bench.close()


async def ceilings(
    what: str, cases: Sequence[Case], policy: MusiquePolicy, retriever: Retriever, limit: int
) -> set[str]:
    """Prints how many questions can be answered, and returns which."""
    alone, planned = 0, set()
    hops = found = 0
    for case in cases:
        gold = {hop.gold.id for hop in policy.plan_of(case)}
        alone += gold <= {record.id for record in await retriever.find(case.question.text, limit)}
        reached = await reachable(policy.plan_of(case), retriever, limit)
        hops, found = hops + len(reached), found + sum(reached)
        if all(reached):
            planned.add(case.id)
    print(
        f"{what}: ceiling at {limit} passages a search: with the question alone {share(alone, len(cases))}, "
        f"with the gold plan {share(len(planned), len(cases))} (hops: {share(found, hops)})"
    )
    return planned


async def recalls(cases: Sequence[Case], policy: MusiquePolicy, retriever: Retriever, limit: int) -> None:
    """Prints what carrying answers along the edges of a plan buys, and what one wrong answer takes back: gold passages
    among the first 5 and 10 of the first searches of all hops, taken in turns."""
    firsts = [policy.plan_of(case)[0].answer for case in cases]
    asked: dict[str, list[list[str]]] = {
        "question alone": [],
        "answers not filled in": [],
        "gold answers": [],
        "first answer wrong": [],
    }
    for number, case in enumerate(cases):
        hops = policy.plan_of(case)
        answers = [hop.answer for hop in hops]
        wrong = [firsts[(number + 1) % len(firsts)], *answers[1:]]
        asked["question alone"].append([case.question.text])
        asked["answers not filled in"].append([hop.asked for hop in hops])
        asked["gold answers"].append([hop.resolved for hop in hops])
        asked["first answer wrong"].append([fill(hop.asked, wrong) for hop in hops])
    for what, queries in asked.items():
        at = {5: [0.0, 0.0], 10: [0.0, 0.0]}
        for case, texts in zip(cases, queries, strict=True):
            order = interleave_rankings([[record.id for record in await retriever.find(text, limit)] for text in texts])
            gold = [hop.gold.id for hop in policy.plan_of(case)]
            for k, sums in at.items():
                sums[0] += recall_at(order, gold, k) / len(cases)
                sums[1] += (recall_at(order, gold, k) == 1) / len(cases)
        print(f"{what}: " + ", ".join(f"recall@{k} {one:.1%}, all@{k} {all_:.1%}" for k, (one, all_) in at.items()))


async def played(bench: QaBench, cases: Sequence[Case], base_url: str) -> list[Score]:
    llm = OpenAICompatible("policy", base_url)

    async def one(case: Case) -> Score:
        async with bench.environment(case) as env:
            run = Run(llm, env, Budget())
            decision = await build_technique("reasoning_dag")(case.question, run)
        return await bench.score(case, decision, run.trace.entries)

    scores = await map_concurrently(one, cases)
    await llm.close()
    return scores


def share(part: int, whole: int) -> str:
    between = wilson(part, whole)
    return f"{part} of {whole} ({part / whole:.1%}, {between.low:.1%} to {between.high:.1%})"


def mean(scores: Sequence[Score], name: str) -> float:
    values = [score.metrics[name] for score in scores if name in score.metrics]
    return sum(values) / len(values) if values else 0.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path(os.environ.get("DECISOR_DATA", "../shared/data")))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--limit", type=int, default=10)
    args = parser.parse_args()
    asyncio.run(main(args.data, args.count, args.limit))
