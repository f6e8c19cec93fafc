"""The policy of the tests through the techniques, over HTTP: all questions x {sql, graph} x techniques.

    python performance/dqa_policy.py [DIR] [--limit N] [--form sql|graph] [--share 0.5] [--half first|second]
                                     [--db mysql://HOST] [--graph bolt://HOST] [--fresh]

`--limit 2` takes half a minute.

It checks the harness, not a model: a perfect policy has to reach 100 %. With a share of planted mistakes, it counts
how often the failure analysis names the one class that the mistake belongs to (tests/policies/dqa.py). With a half, it
asks only that half of each scenario's questions: one to develop the rules on, one to measure them once. The seconds of
the first technique hold those of loading the worlds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.lab.benchmark import Case, Outcome
from decisor.lab.dqa.bench import DqaBench
from decisor.lab.dqa.worlds import Form, Scenario
from decisor.lab.evaluation.case_run import CaseAttempt, run_case
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.system.tasks import map_concurrently
from decisor.techniques import build_technique
from policies.dqa import CLASS, DqaPolicy, Mistake
from servers.openai_server import serve

SCENARIOS: tuple[Scenario, ...] = ("locating", "building")
TECHNIQUES: dict[str, tuple[str, dict[str, str]]] = {
    "single_rag": ("single_rag", {}),
    "iter_rag": ("iter_rag", {}),
    "plan_rag": ("plan_rag", {}),
    "plan_rag w/o replan": ("plan_rag", {"replan": "no"}),
}


async def played(
    bench: DqaBench, cases: Sequence[Case], label: str, share: float
) -> list[tuple[Outcome, Mistake | None]]:
    """Each answer with its planted mistake, None where none was."""
    name, settings = TECHNIQUES[label]
    rows: list[tuple[Outcome, Mistake | None]] = []
    for _, group in groupby(cases, key=lambda case: bench.shared.cases[case.id].world.key):
        some = list(group)  # a text is the question of one world only
        policy = DqaPolicy({str(one.question): one.gold[0] for one in some}.__getitem__, share)
        async with serve(policy) as url:
            llm = OpenAICompatible("policy", url)
            attempt = CaseAttempt("dqa", bench, label, build_technique(name, **settings), "policy", llm)
            ran = await map_concurrently(partial(run_case, attempt=attempt), some)
            await llm.close()
        rows += [(row, policy.planted.get(str(one.question).strip())) for (row, _), one in zip(ran, some, strict=True)]
    return rows


def report(scenario: str, form: str, label: str, rows: list[tuple[Outcome, Mistake | None]], seconds: float) -> None:
    right = sum(row.state == "right" for row, _ in rows)
    print(f"{scenario:9} {form:6} {label:20} {right}/{len(rows)} right  {seconds:.1f} s")
    wrong = [(row, mistake) for row, mistake in rows if mistake and row.failure]
    if wrong:
        named = sum(row.failure == CLASS[mistake] for row, mistake in wrong)
        told = Counter(f"{mistake} -> {row.failure}" for row, mistake in wrong)
        print(f"    class named: {named}/{len(wrong)}  " + ", ".join(f"{k} {v}" for k, v in sorted(told.items())))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "data", type=Path, nargs="?", default=Path(os.environ.get("DECISOR_DATA", "../shared/data")) / "dqa"
    )
    parser.add_argument("--limit", type=int)
    parser.add_argument("--form", choices=("sql", "graph"))
    parser.add_argument("--share", type=float, default=0.0)
    parser.add_argument("--half", choices=("first", "second"))
    parser.add_argument("--db", default="", help="a server for the worlds as SQL")
    parser.add_argument("--graph", default="", help="a server for the worlds as graphs")
    parser.add_argument("--fresh", action="store_true", help="load worlds anew that the server has")
    asked = parser.parse_args()
    forms: tuple[Form, ...] = (asked.form,) if asked.form else ("sql", "graph")
    for form in forms:
        for scenario in SCENARIOS:
            place = asked.db if form == "sql" else asked.graph
            bench = DqaBench(asked.data, scenario, form, asked.limit, place, asked.fresh)
            cases = sorted(bench.cases(), key=lambda case: int(case.id.rpartition("-")[2]))
            half = len(cases) // 2
            cases = cases[:half] if asked.half == "first" else cases[half:] if asked.half == "second" else cases
            cases = [case for case in bench.cases() if case in cases]  # by database
            for label in TECHNIQUES:
                began = time.monotonic()
                rows = await played(bench, cases, label, asked.share)
                report(scenario, form, label, rows, time.monotonic() - began)
            await bench.close()


if __name__ == "__main__":
    asyncio.run(main())
