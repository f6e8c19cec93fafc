"""The query scorer on questions it never saw: mean reciprocal rank of the query it chooses, beside the first candidate,
a random one, the untrained rule, the built-in scorer, and the best choice there is.

    python performance/query_scorer.py [--data DIR] [--sets musique hotpotqa] [--keep FOLDER]

`--sets musique --questions 6` is the smallest, half a minute on a busy machine; all of it is long. Needs
decisor[lab].

Five folds by question. Differences are paired over questions, with 95 % bootstrap intervals. Pools: ``llm`` the
question and parts that GPT-3 wrote (ProbTree's, answers filled in), ``plain`` all candidates but gold decompositions,
``all``. Then each set's scorer on the other sets, and the time for scoring five candidates.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decisor.documents.index import build_memory_index
from decisor.documents.passage import read_passages
from decisor.lab.benchmark import read_question_rows
from decisor.lab.statistics import bootstrap
from decisor.lab.training import (
    HopExample,
    MeasuredQueries,
    ScorerChoices,
    evaluate_choices,
    fit_query_scorer,
    measure_queries,
    read_hop_examples,
)
from decisor.techniques.shared.query_scorer import (
    QueryContext,
    QueryScorer,
    Rarity,
    compute_rule_scores,
    load_query_scorer,
)
from decisor.types import Record

SETS = {"musique": "musique", "2wiki": "2wikimultihopqa", "hotpotqa": "hotpotqa"}
GOLD = ("root", "resolved", "unresolved", "wrong_bridge")
REFERENCE = re.compile(r"#(\d)|<(\d)>")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--data", type=Path, default=Path(os.environ.get("DECISOR_DATA", "../shared/data")))
    words.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    words.add_argument("--flat", action="store_true", help="every word weighs 1, as for the built-in scorer; no folds")
    words.add_argument("--questions", type=int, help="only so many of each set")
    words.add_argument("--keep", type=Path, help="keep measured candidates here, and use what is there")
    asked = words.parse_args()
    measured = {name: measured_set(asked.data / "multihop" / SETS[name], name, asked) for name in asked.sets}
    for name, data in measured.items():
        began = time.perf_counter()
        show(name, data, folds(data) if not asked.flat else np.zeros(len(data.ranks)))
        print(f"  (five folds in {time.perf_counter() - began:.0f} s)")
    whole = {name: fit_query_scorer(data) for name, data in measured.items() if not asked.flat}
    for name, scorer in whole.items():
        for other, data in measured.items():
            if other != name:
                show_pool(f"trained on {name}, asked on {other}", evaluate_choices(data, scorer.predict(data.rows)))
    speed(next(iter(whole.values()), load_query_scorer()))


def measured_set(folder: Path, name: str, asked: argparse.Namespace) -> MeasuredQueries:
    path = asked.keep / f"{name}{'-flat' * asked.flat}.npz" if asked.keep else None
    if path and path.is_file():
        with np.load(path, allow_pickle=False) as held:
            kinds = tuple(map(str, held["kinds"]))
            rarity = Rarity() if asked.flat else Rarity(held["counts"], int(held["passages"]))
            return MeasuredQueries(held["rows"], held["ranks"], held["groups"], held["scenes"], kinds, rarity)
    began = time.perf_counter()
    corpus = list(read_passages(folder / "corpus.jsonl.gz"))
    passages = {one.id: Record(one.id, {"title": one.title}, one.text) for one in corpus}
    asks = {
        row["question"].strip().lower(): row["value"]
        for row in read_question_rows(folder / "probtree_question_decompositions.jsonl.gz")
    }
    known = [with_asks(one, asks) for one in read_hop_examples(folder / "questions.jsonl.gz", passages)]
    weights = Rarity() if asked.flat else None
    found = asyncio.run(measure_queries(known[: asked.questions], passages, build_memory_index(corpus), rarity=weights))
    took = time.perf_counter() - began
    print(f"{name}: {len(known[: asked.questions])} questions, {len(found.ranks)} candidates in {took:.0f} s")
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(
            path,
            rows=found.rows,
            ranks=found.ranks,
            groups=found.groups,
            scenes=found.scenes,
            kinds=np.array(found.kinds),
            passages=found.rarity.passages,
            counts=np.asarray(() if asked.flat else found.rarity.counts),
        )
    return found


def with_asks(example: HopExample, trees: Mapping[str, Mapping[str, Sequence[Sequence[str]]]]) -> HopExample:
    """The sub-questions of ProbTree's tree, gold answers of the hops put in leaf by leaf."""
    tree = trees.get(example.question.strip().lower())
    if not tree:
        return example
    answers = iter([hop.answer for hop in example.hops])
    made: list[str] = []

    def ask(node: str, before: Sequence[str], top: bool = False) -> str:
        def put(match: re.Match[str]) -> str:
            number = int(match.group(1) or match.group(2))
            return before[number - 1] if 0 < number <= len(before) else match.group()

        if not top:
            made.append(REFERENCE.sub(put, node))
        children = (tree.get(node) or [[]])[0]
        if not children or node in children:
            return next(answers, "it")
        known: list[str] = []
        for child in children:
            known.append(ask(child, known))
        return known[-1]

    ask(next(iter(tree)), (), top=True)
    return replace(example, asks=tuple(made))


def folds(data: MeasuredQueries, count: int = 5) -> NDArray[np.float64]:
    """A score for every candidate from a scorer that never saw its question."""
    scores = np.zeros(len(data.ranks))
    for fold in range(count):
        out = data.groups % count == fold
        scores[out] = fit_query_scorer(data.where(~out)).trees.predict(data.rows[out])
    return scores


def show(name: str, data: MeasuredQueries, scores: NDArray[np.float64]) -> None:
    kinds = np.array(data.kinds)
    with_llm = np.isin(data.scenes, np.unique(data.scenes[kinds == "llm"]))
    pools = {"llm": np.isin(kinds, ("llm", "question")) & with_llm, "plain": ~np.isin(kinds, GOLD), "all": kinds != ""}
    for pool, held in pools.items():
        part = data.where(held)
        show_pool(f"{name}, {pool}", evaluate_choices(part, scores[held]))
        rule = evaluate_choices(part, compute_rule_scores(part.rows))
        print(f"    rule without training {rule.choice.mean():.3f}", end="")
        if data.rarity.counts is None:
            print(
                f", built-in scorer {evaluate_choices(part, load_query_scorer().predict(part.rows)).choice.mean():.3f}",
                end="",
            )
        print()


def show_pool(label: str, found: ScorerChoices) -> None:
    over_first, over_random = (paired(found, other) for other in (found.first, found.random))
    closed = (found.choice.mean() - found.random.mean()) / (found.oracle.mean() - found.random.mean())
    print(
        f"{label}: {len(found.choice)} states, chosen {found.choice.mean():.3f}, first {found.first.mean():.3f}, "
        f"random {found.random.mean():.3f}, best {found.oracle.mean():.3f}; over first {over_first}, "
        f"over random {over_random}; closes {100 * closed:.0f} % of random to best"
    )


def paired(found: ScorerChoices, other: NDArray[np.float64]) -> str:
    """Mean over questions of the mean difference in their states, with its interval: questions are drawn."""
    gain = found.choice - other
    numbers, at = np.unique(found.groups, return_inverse=True)
    means = np.bincount(at, gain) / np.bincount(at)
    interval = bootstrap(list(means))
    return f"{means.mean():+.3f} ({interval.low:+.3f} to {interval.high:+.3f} over {len(numbers)} questions)"


def speed(scorer: QueryScorer) -> None:
    text = "The river Aune rises near Bel and joins the sea at Corin, a port of the old kingdom. " * 7
    hits = [
        [Record(str(n), {"title": f"Aune {n}"}, f"{n} {q} {text}", score=9.0 / n) for n in range(1, 11)]
        for q in range(5)
    ]
    scene = QueryContext("Where does the river that rises near Bel join the sea?", tuple(hits[0][:5]), tuple(hits[0]))
    wall, cpu = [], []
    for number in range(50):
        queries = [f"river {number} that rises near Bel {q}" for q in range(5)]
        fresh = [[replace(hit, text=f"{number} {hit.text}") for hit in found] for found in hits]
        began, spent = time.perf_counter(), time.process_time()
        scorer.score(scene, queries, fresh)
        wall.append(1000 * (time.perf_counter() - began))
        cpu.append(1000 * (time.process_time() - spent))
    print(
        f"scoring 5 candidates with 10 passages each: median {sorted(wall)[25]:.1f} ms wall, "
        f"{sorted(cpu)[25]:.1f} ms of CPU; longest {max(wall):.1f} ms"
    )


if __name__ == "__main__":
    main()
