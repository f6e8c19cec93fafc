"""What a plan is worth to retrieval, and whether a perfect policy reaches it.

python performance/dag_recall.py [DATA] [QUESTIONS]

A minute for 5 questions. DATA is the folder of the test data.

1. Recall at 5 and 10 of BM25 with as many documents in all: the question alone; the sub-questions with references left
   in; with the gold answers of their parents put in; and with the first answer wrong. Rankings are read in turns.
2. The whole technique over HTTP on QUESTIONS MuSiQue questions, with a policy that reads the gold plan, picks the gold
   passage where it was retrieved, and answers only from it: at best it reaches every question whose passages are all in
   the first ten of their gold sub-questions. That ceiling is computed beside it.
"""

from __future__ import annotations

import asyncio
import math
import re
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.documents.index import DocumentIndex, build_memory_index
from decisor.documents.passage import read_passages
from decisor.documents.tool import PassagesTool
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.parsing.attribution import normalize_answer
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques.reasoning_dag import ReasoningDAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import GraphResult
from decisor.types import Question
from gold_plans import GoldPlan, musique, twowiki
from head import words
from servers.openai_server import serve
from techniques.documents import numbered, part_of, role_of

HOME = Path(__file__).parent.parent.parent / "shared" / "data"


async def in_turns(index: DocumentIndex, queries: Sequence[str], limit: int) -> list[str]:
    """Ids of the first ``limit`` different passages, one of each ranking after the other."""
    rankings = [await index.find(query, limit) for query in queries]
    found = dict.fromkeys(one.id for row in zip_longest(*rankings) for one in row if one is not None)
    return list(found)[:limit]


async def recall(index: DocumentIndex, plans: Sequence[GoldPlan], ways: dict[str, list[list[str]]]) -> None:
    for name, queries in ways.items():
        hits: dict[int, list[float]] = {5: [], 10: []}
        for plan, asked in zip(plans, queries, strict=True):
            gold = {id for id in plan.passages if id}
            found = await in_turns(index, asked, 10)
            for k, scores in hits.items():
                scores.append(len(gold & set(found[:k])) / len(gold))
        print(
            f"  {name:34}"
            + "".join(
                f"  R@{k} {100 * statistics.fmean(s):5.1f} +- {interval(s):3.1f}  all@{k} "
                f"{100 * statistics.fmean([x == 1 for x in s]):5.1f}"
                for k, s in hits.items()
            )
        )


def interval(scores: Sequence[float]) -> float:
    return 196 * statistics.pstdev(scores) / math.sqrt(len(scores))


def ways_of(plans: Sequence[GoldPlan]) -> dict[str, list[list[str]]]:
    """Lookups only: a node without a passage (a comparison) searches nothing."""

    def asked(plan: GoldPlan, answers: tuple[str, ...] | None) -> list[str]:
        nodes = [n for n in range(1, len(plan.asks) + 1) if plan.passages[n - 1]]
        return [plan.filled(n, answers) if answers is not None else plan.asks[n - 1] for n in nodes]

    wrong = [plans[place - 1].answers[0] for place in range(len(plans))]
    return {
        "the question": [[plan.question] for plan in plans],
        "sub-questions, references left in": [asked(plan, None) for plan in plans],
        "plan, gold answers": [asked(plan, plan.answers) for plan in plans],
        "plan, first answer wrong": [
            asked(plan, (bad, *plan.answers[1:])) for plan, bad in zip(plans, wrong, strict=True)
        ],
    }


@dataclass
class Perfect:
    """Plays every expert from the gold plan; what it has not been shown it does not say."""

    plans: dict[str, GoldPlan]
    texts: dict[str, str]
    asked: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for plan in self.plans.values():
            for number in range(1, len(plan.asks) + 1):
                self.asked[plan.filled(number)] = plan.answers[number - 1], self.texts[plan.passages[number - 1]]

    def __call__(self, body: dict[str, Any]) -> str:
        prompt = body["messages"][0]["content"]
        role = role_of(prompt)
        if role == "planner":
            return self.plans[" ".join(part_of(prompt, "Question").split())].reply
        if role == "aggregator":
            last = part_of(prompt, "Parts and their answers").splitlines()[-1].rpartition("-> ")[2]
            return f"Final answer: {'none' if last.startswith('(') else last}"
        answer, text = self.asked.get(part_of(prompt, "Question"), ("", ""))
        shown = [n for n, words in numbered(part_of(prompt, "Documents")) if text and flat(text)[:300] in flat(words)]
        if role == "relevance":
            return f"[{shown[0]}]" if shown else "[No]"
        if role == "critic":
            return "no" if shown else "yes"
        if role == "rewrite":
            return f"Search: {part_of(prompt, 'Question')}"
        return f"Answer: {answer}" if shown and answer else "Answer: unknown"


def flat(text: str) -> str:
    return re.sub(r"\W+", " ", text)


async def reached(index: DocumentIndex, plans: Sequence[GoldPlan], texts: dict[str, str]) -> None:
    ceiling = []
    for plan in plans:
        found = [await index.find(plan.filled(n), 10) for n in range(1, len(plan.asks) + 1)]
        ceiling.append(all(id in {one.id for one in hits} for id, hits in zip(plan.passages, found, strict=True)))
    policy = Perfect({" ".join(plan.question.split()): plan for plan in plans}, texts)
    async with serve(policy) as url:
        llm = OpenAICompatible("perfect", url)

        kinds: Counter[str] = Counter()

        async def ask(plan: GoldPlan) -> bool:
            run = Run(llm, Toolbox([PassagesTool(index)]))
            decision = await ReasoningDAG()(Question(plan.question), run)
            counts = run.trace.of(GraphResult)[0].counts
            kinds.update({name: counts[name] for name in counts if name.startswith("nodes_")})
            return normalize_answer(decision.answer) == normalize_answer(plan.answer)

        right = await map_concurrently(ask, plans, 8)
        await llm.close()
    beyond = [plan.id for plan, able, got in zip(plans, ceiling, right, strict=True) if got and not able]
    short = [plan.id for plan, able, got in zip(plans, ceiling, right, strict=True) if able and not got]
    print(
        f"\nMuSiQue, {len(plans)} questions over HTTP: ceiling {sum(ceiling)}, reached {sum(right)}; "
        f"short of it {short}, beyond it {beyond}. Answered nodes: {dict(kinds)}"
    )


async def main(data: Path, count: int) -> None:
    for name, plans in (("musique", musique(data)), ("2wikimultihopqa", twowiki(data))):
        passages = list(read_passages(data / "multihop" / name / "corpus.jsonl.gz"))
        index = build_memory_index(passages)
        usable = [plan for plan in plans if any(plan.passages)]
        print(f"{name}: {len(usable)} questions, {len(passages)} passages")
        await recall(index, usable, ways_of(usable))
        if name == "musique":
            await reached(index, plans[:: max(1, len(plans) // count)][:count], {one.id: one.text for one in passages})


if __name__ == "__main__":
    given = words(__doc__)
    asyncio.run(main(Path(given[0]) if given else HOME, int(given[1]) if len(given) > 1 else 100))
