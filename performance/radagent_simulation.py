"""Searches of Game of 24 with a simulated model: what each finds and what it selects at equal, counted calls.

python performance/radagent_simulation.py [--data FOLDER] [--seeds 3] [--calls 100] [--curve] [--fit] [--late 3.9]

`--seeds 1 --calls 10` takes two minutes; all of it hours.

The model is ``tests/policies/game24.py``: a proposer fitted to GPT-4's released chains, a judge as good as GPT-4's
released valuations (``--late 1.1``: one that errs in every fourth comparison). The code is the real one: prompts,
parsers, budget, tree. So the figures compare searches, never models.
``found``: a finished sequence is right. ``selected``: the technique's answer is. ``random``: the chance that a random
one of its answers is. Wilson intervals over puzzles x seeds; differences by bootstrap over puzzles, paired.
Bars at 100 calls: radagent finds more than CoT@3, BFS, DFS and DFSDT, and selects better than random choice and
best_of_n; with --curve it finds more than DFSDT at 30, 60, ... 300 calls.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from decisor.lab.game24 import Puzzle, makes_24, read_puzzle_cases
from decisor.lab.statistics import bootstrap, wilson
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run, Technique
from decisor.techniques.best_of_n import BestOfN
from decisor.techniques.bfs import BFS
from decisor.techniques.cot import CoT
from decisor.techniques.dfs import DFS
from decisor.techniques.dfsdt import DFSDT
from decisor.techniques.lats import LATS
from decisor.techniques.radagent import RadAgent
from decisor.techniques.reflexion import Reflexion
from decisor.techniques.tot import ToT
from decisor.trace.events import ActionResult, AnswerSnapshot, LLMCall, SearchTree
from decisor.types import Observation
from policies.game24 import Game24LLM, state_of

GPT4 = {1: 0.040, 3: 0.100, 5: 0.143, 10: 0.215, 20: 0.295, 100: 0.49}
"""pass@k of the released chains of thought (Tree of Thoughts), rows 900-999."""
PAPER = {"cot": 6, "cot@3": 7, "reflexion@3": 7, "bfs w2 e2": 11, "dfs w2": 14, "dfsdt w2": 29, "radagent paper": 43}
"""Table 1 of arXiv 2308.12519, gpt-3.5-turbo; its environment tells the search when it won."""
BARS = (
    "cot@3",
    "bfs w2 e2",
    "dfs w2",
    "dfsdt w2",
    "dfsdt w3",
    "dfsdt w5",
    "best_of_n",
    "cot to the budget",
    "radagent",
)
STEP = 30

Make = Callable[[int, int], Technique]
METHODS: dict[str, Make] = {
    "cot": lambda n, s: CoT(calls=n, seed=s),
    "cot@3": lambda n, s: CoT(3, calls=n, seed=s),
    "cot to the budget": lambda n, s: CoT(10_000, calls=n, seed=s),
    "reflexion@3": lambda n, s: Reflexion(calls=n, seed=s),
    "bfs w2 e2": lambda n, s: BFS(answers=0, calls=n, seed=s),
    "dfs w2": lambda n, s: DFS(answers=0, calls=n, seed=s),
    "dfsdt w2": lambda n, s: DFSDT(answers=0, calls=n, seed=s),
    "dfsdt w3": lambda n, s: DFSDT(3, answers=0, calls=n, seed=s),
    "dfsdt w5": lambda n, s: DFSDT(5, answers=0, calls=n, seed=s),
    "tot b5": lambda n, s: ToT(calls=n, seed=s),
    "tot b2, 1 sample": lambda n, s: ToT(2, samples=1, calls=n, seed=s),
    "lats": lambda n, s: LATS(calls=n, seed=s),
    "best_of_n": lambda n, s: BestOfN(calls=n, seed=s),
    "radagent paper": lambda n, s: RadAgent("paper", sequences=20 if n == 100 else 0, calls=n, seed=s),
    "radagent release": lambda n, s: RadAgent("release", calls=n, seed=s),
    "radagent settled=4": lambda n, s: RadAgent(calls=n, seed=s, settled=4, equal=0),
    "radagent": lambda n, s: RadAgent(calls=n, seed=s, equal=0),
    "radagent, no judge": lambda n, s: RadAgent("paper", sequences=0, matches=0, calls=n, seed=s),
}
CURVE = (
    "cot to the budget",
    "dfsdt w2",
    "dfsdt w3",
    "dfsdt w5",
    "best_of_n",
    "radagent paper",
    "radagent",
    "radagent, no judge",
)


@dataclass(frozen=True)
class Played:
    """One puzzle. ``found_at``: calls made when the first right sequence ended, 0 where none did."""

    numbers: str
    found_at: int
    selected: bool
    random: float
    calls: int
    judged: int
    sequences: int
    elo: float
    shots: dict[int, bool] = field(default_factory=dict)


async def play(numbers: str, question: Any, technique: Technique, llm: Any, calls: int) -> Played:
    run = Run(llm, Puzzle.of(numbers), Budget(Limits(calls=calls)))
    decision = await technique(question, run)
    made, judged, found_at, right = 0, 0, 0, []
    shots: dict[int, bool] = {}
    elo = 0.0
    for entry in run.trace.entries:
        match entry.event:
            case LLMCall(messages=messages):
                made += 1
                judged += "Write the next step." not in messages[-1].content
            case ActionResult(observation=Observation(answer=answer)) if answer:
                right.append(makes_24(answer, numbers))
                found_at = found_at or made * right[-1]
            case AnswerSnapshot(calls=at, answer=answer):
                shots[at] = makes_24(answer, numbers)
            case SearchTree(nodes=nodes, chosen=int(chosen)):
                elo = nodes[chosen].elo
    share = sum(right) / len(right) if right else 0.0
    selected = makes_24(decision.answer, numbers)
    return Played(numbers, found_at, selected, share, made, judged, len(right), elo, shots)


def work(job: tuple[str, int, int, str, float]) -> list[Played]:
    """All puzzles of one method and seed. ``late`` is how well the judge tells finished ones apart."""
    name, seed, calls, data, late = job
    llm = Game24LLM(seed, late=late)

    async def all_() -> list[Played]:
        return [
            await play(str(case.facts["numbers"]), case.question, METHODS[name](calls, seed), llm, calls)
            for case in read_puzzle_cases(Path(data))
        ]

    return asyncio.run(all_())


def gather(
    names: Sequence[str], seeds: int, calls: int, data: str, late: float = 3.9, first: int = 0
) -> dict[str, list[Played]]:
    jobs = [(name, seed, calls, data, late) for name in names for seed in range(first, first + seeds)]
    found: dict[str, list[Played]] = {name: [] for name in names}
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for job, rows in zip(jobs, pool.map(work, jobs), strict=True):
            found[job[0]] += rows
            print(f"  {job[0]}, seed {job[1]}", file=sys.stderr, flush=True)
    return found


def share(rows: Sequence[Played], right: Callable[[Played], bool]) -> str:
    count = sum(map(right, rows))
    interval = wilson(count, len(rows))
    return f"{100 * count / len(rows):5.1f} [{100 * interval.low:4.1f}, {100 * interval.high:4.1f}]"


def table(played: dict[str, list[Played]]) -> None:
    print(
        f"{'':<20}{'found %':>20}{'selected %':>20}{'random %':>9}{'calls':>7}{'judge':>6}{'seq':>6}{'published':>10}"
    )
    for name, rows in played.items():
        mean = {
            what: sum(getattr(row, what) for row in rows) / len(rows)
            for what in ("random", "calls", "judged", "sequences")
        }
        print(
            f"{name:<20}{share(rows, lambda r: r.found_at > 0):>20}{share(rows, lambda r: r.selected):>20}"
            f"{100 * mean['random']:>9.1f}{mean['calls']:>7.1f}{mean['judged']:>6.1f}{mean['sequences']:>6.1f}"
            f"{PAPER.get(name, ''):>10}"
        )


def paired(
    one: Sequence[Played],
    other: Sequence[Played],
    of: Callable[[Played], float],
    than: Callable[[Played], float] | None = None,
) -> tuple[float, float, float]:
    """Mean difference in percentage points with its interval: bootstrap over puzzles, seeds averaged first."""
    by: dict[str, list[float]] = {}
    for x, y in zip(one, other, strict=True):
        by.setdefault(x.numbers, []).append(of(x) - (than or of)(y))
    values = [sum(differences) / len(differences) for differences in by.values()]
    interval = bootstrap(values)
    return 100 * sum(values) / len(values), 100 * interval.low, 100 * interval.high


def bars(played: dict[str, list[Played]], ours: str = "radagent") -> bool:
    """Print each bar of ``ours`` and whether its interval is clear of zero."""
    kept = True
    found, chosen = (lambda row: float(row.found_at > 0)), (lambda row: float(row.selected))
    for rival in BARS[:6]:
        kept &= bar(f"{ours} - {rival}, found", paired(played[ours], played[rival], found), "w5" in rival)
    kept &= bar(f"{ours} - random choice, selected", paired(played[ours], played[ours], chosen, lambda row: row.random))
    for rival in BARS[6:8]:
        kept &= bar(f"{ours} - {rival}, selected", paired(played[ours], played[rival], chosen))
    return kept


def bar(what: str, difference: tuple[float, float, float], beside: bool = False) -> bool:
    mean, low, high = difference
    print(
        f"  {what:<46}{mean:>+6.1f} [{low:+5.1f}, {high:+5.1f}]  {'kept' if low > 0 else 'NOT CLEAR'}"
        f"{'  (not a bar)' if beside else ''}"
    )
    return low > 0 or beside


def deciles(rows: Sequence[Played], parts: int = 10) -> list[float]:
    """Share selected right in each tenth of the runs, by the Elo of what was chosen."""
    ordered = sorted(rows, key=lambda row: row.elo)
    cuts = [round(at * len(ordered) / parts) for at in range(parts + 1)]
    return [sum(row.selected for row in ordered[a:b]) / max(b - a, 1) for a, b in pairwise(cuts)]


def curve(played: dict[str, list[Played]], calls: int) -> bool:
    at = range(STEP, calls + 1, STEP)
    for what in ("found", "selected"):
        print(f"\n{what + ' % at calls':<20}" + "".join(f"{n:>6}" for n in at))
        for name, rows in played.items():
            counts = [sum((0 < row.found_at <= n) if what == "found" else row.shots[n] for row in rows) for n in at]
            print(f"{name:<20}" + "".join(f"{100 * count / len(rows):>6.1f}" for count in counts))
    kept = True
    for rival in (name for name in ("dfsdt w2", "dfsdt w3", "dfsdt w5") if name in played):
        for n in at:
            difference = paired(played["radagent"], played[rival], lambda row, n=n: float(0 < row.found_at <= n))  # type: ignore[misc]
            kept &= bar(f"radagent - {rival}, found at {n}", difference, rival != "dfsdt w2")
    return kept


def fit(data: str, seeds: int) -> None:
    """pass@k of the simulated proposer's chains, computed exactly, beside GPT-4's."""
    states = [state_of(str(case.facts["numbers"])) for case in read_puzzle_cases(Path(data))]
    chains = [Game24LLM(seed).chain(state) for seed in range(seeds) for state in states]
    for k, published in GPT4.items():
        print(
            f"pass@{k:<4} simulated {sum(1 - (1 - p) ** k for p in chains) / len(chains):.3f}   GPT-4 {published:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    home = Path(os.environ.get("DECISOR_DATA", Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--data", default=str(home / "game24"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--late", type=float, default=3.9)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--fit", action="store_true")
    told = parser.parse_args()
    if told.fit:
        fit(told.data, told.seeds)
        return
    calls = 300 if told.curve else told.calls
    names = told.only or (CURVE if told.curve else list(METHODS))
    played = gather(names, told.seeds, calls, told.data, told.late, told.first)
    if told.curve:
        sys.exit(not curve(played, calls))
    table(played)
    print("\nselected % by Elo of the chosen sequence, in tenths of the runs:")
    for name in (name for name in played if name in ("radagent", "radagent paper")):
        print(f"  {name:<18}" + " ".join(f"{100 * part:5.0f}" for part in deciles(played[name])))
    if not told.only or set(told.only) >= set(BARS):
        print("\ndifferences in percentage points:")
        sys.exit(not bars(played))


if __name__ == "__main__":
    main()
