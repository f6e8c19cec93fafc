"""FuRePA beside its ablations, IRCoT and ReAct, on real questions with a simulated reasoner behind a real endpoint.

    python performance/furepa_simulation.py [--questions 100] [--calls 6] [--sets musique 2wiki hotpotqa] [--seeds 2]

Long: all of it takes hours. `--sets musique --questions 2 --training 6 --seeds 1 --anchored 0.5` only shows that it
runs; with 5 and 15 in their places it says something. Needs decisor[lab].

Each technique has the same number of calls, the last of them for the answer. The reasoner proposes queries of mixed
quality and answers when it has read every gold passage (tests/policies/furepa.py says what it assumes), so a right
answer means: the evidence was found. The scorer is trained on the even questions, and the odd ones are asked.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from decisor.documents.index import DocumentIndex, build_memory_index
from decisor.documents.passage import read_passages
from decisor.documents.tool import PassagesTool
from decisor.lab.benchmark import read_question_rows
from decisor.lab.statistics import bootstrap, wilson
from decisor.lab.training import HopExample, drop_hit_features, fit_query_scorer, measure_queries, read_hop_examples
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run, Technique
from decisor.system.tasks import map_concurrently
from decisor.techniques.furepa import FuRePA
from decisor.techniques.ircot import IRCoT
from decisor.techniques.react import ReAct
from decisor.techniques.shared.query_scorer import QueryScorer, save_query_scorer
from decisor.tools.toolbox import Toolbox
from decisor.types import Question, Record
from policies.furepa import Reasoner
from servers.openai_server import serve

SETS = {"musique": "musique", "2wiki": "2wikimultihopqa", "hotpotqa": "hotpotqa"}


@dataclass(frozen=True)
class Loaded:
    """``asked`` are kept from training."""

    index: DocumentIndex
    passages: Mapping[str, Record]
    training: Sequence[HopExample]
    asked: Sequence[HopExample]
    answers: Mapping[str, str]


class Found(NamedTuple):
    """Of one question: the share of seeds it was right in, and the calls and searches of one."""

    right: float = 0.0
    calls: float = 0.0
    searches: float = 0.0

    def plus(self, other: Found, seeds: int) -> Found:
        return Found(*(mine + more / seeds for mine, more in zip(self, other, strict=True)))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--data", type=Path, default=Path(os.environ.get("DECISOR_DATA", "../shared/data")))
    words.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    words.add_argument("--questions", type=int, default=100)
    words.add_argument("--training", type=int, default=150, help="questions to train the scorer on")
    words.add_argument("--calls", type=int, default=6)
    words.add_argument("--seeds", type=int, default=2)
    words.add_argument("--anchored", type=float, nargs="+", default=[0.5, 0.0])
    asked = words.parse_args()
    for name in asked.sets:
        loaded = load(asked.data / "multihop" / SETS[name], asked.training, asked.questions)
        with TemporaryDirectory() as folder:
            data = asyncio.run(measure_queries(loaded.training, loaded.passages, loaded.index))
            save_query_scorer(fit_query_scorer(data), Path(folder) / "after")
            early = fit_query_scorer(drop_hit_features(data))
            save_query_scorer(QueryScorer(early.trees, early.rarity, {"assess": "before"}), Path(folder) / "before")
            for anchored in asked.anchored:
                print(f"\n{name}: {len(loaded.asked)} questions, {asked.calls} calls, anchored {anchored}")
                show(asyncio.run(compare(loaded, folder, asked.calls, anchored, range(asked.seeds))))


def load(folder: Path, training: int, questions: int) -> Loaded:
    corpus = list(read_passages(folder / "corpus.jsonl.gz"))
    passages = {one.id: Record(one.id, {"title": one.title}, one.text) for one in corpus}
    found = read_hop_examples(folder / "questions.jsonl.gz", passages)
    answers = {row["question"].strip(): row["answer"] for row in read_question_rows(folder / "questions.jsonl.gz")}
    plain = [replace(one, question=one.question.strip()) for one in found if len({hop.gold for hop in one.hops}) > 1]
    return Loaded(build_memory_index(corpus), passages, plain[::2][:training], plain[1::2][:questions], answers)


def techniques(scorer: str, calls: int) -> dict[str, Technique]:
    """All with the same number of calls: rounds or steps, and one for the answer."""
    whole = FuRePA(max_rounds=calls - 1, scorer=f"{scorer}/after")
    return {
        "furepa": whole,
        "  built-in scorer": replace(whole, scorer=""),
        "  assess=before": replace(whole, scorer=f"{scorer}/before", assess="before"),
        "  built-in, before": replace(whole, scorer="", assess="before"),
        "  untrained rule": replace(whole, scorer="rule"),
        "  choose=first": replace(whole, choose="first"),
        "  choose=random": replace(whole, choose="random"),
        "  mask=no": replace(whole, mask=False),
        "  raises=no": replace(whole, raises=False),
        "ircot": IRCoT(max_steps=calls - 1),
        "react": ReAct(max_steps=calls - 1),
    }


async def compare(
    loaded: Loaded, scorer: str, calls: int, anchored: float, seeds: Sequence[int]
) -> dict[str, list[Found]]:
    """For each technique and question: the share of seeds it is right in, its mean calls and searches."""
    box = Toolbox([PassagesTool(loaded.index)])
    wrong = [hop.answer for one in loaded.training for hop in one.hops if hop.answer]
    by_question = {one.question: one for one in loaded.asked}
    found: dict[str, list[Found]] = {}
    for name, technique in techniques(scorer, calls).items():
        sums = [Found()] * len(loaded.asked)
        for seed in seeds:
            reasoner = Reasoner(by_question, loaded.answers, loaded.passages, wrong, anchored=anchored, seed=seed)
            async with serve(reasoner) as url:
                llm = OpenAICompatible("simulated", url, "none")

                rows_ = await map_concurrently(partial(ask, technique, llm, box, calls, loaded), loaded.asked, 8)
                await llm.close()
            sums = [one.plus(more, len(seeds)) for one, more in zip(sums, rows_, strict=True)]
        found[name] = sums
    return found


async def ask(
    technique: Technique, llm: OpenAICompatible, box: Toolbox, calls: int, loaded: Loaded, example: HopExample
) -> Found:
    """Right or not, and the calls and searches it took."""
    run = Run(
        llm, Toolbox(box.members), Budget(Limits(calls=calls))
    )  # ids from o1 on: the reasoner draws by the prompt
    decision = await technique(Question(example.question), run)
    spent = run.budget.spent
    return Found(float(decision.answer == loaded.answers[example.question]), spent.calls, spent.actions)


def show(found: Mapping[str, Sequence[Found]]) -> None:
    """Right, its interval, calls, searches, and the paired difference of furepa to each."""
    ours = [one.right for one in found["furepa"]]
    for name, rows_ in found.items():
        right = [one.right for one in rows_]
        share = sum(right) / len(right)
        interval = wilson(round(sum(right)), len(right))
        calls, searches = (
            sum(number) / len(rows_) for number in zip(*((r.calls, r.searches) for r in rows_), strict=True)
        )
        gain = bootstrap([a - b for a, b in zip(ours, right, strict=True)])
        told = (
            ""
            if name == "furepa"
            else (
                f"  furepa is better by {100 * (sum(ours) - sum(right)) / len(right):+5.1f} "
                f"({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
            )
        )
        print(
            f"  {name:18} {100 * share:5.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f}), "
            f"{calls:.1f} calls, {searches:.1f} searches{told}"
        )


if __name__ == "__main__":
    main()
