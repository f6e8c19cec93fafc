"""The rules of thumb's accuracy on Decision QA, beside what others published for LLMs.

    python performance/dqa/heuristics.py [DIR] [--form sql|graph]

Half a minute.

DIR is the released layout, by default $DECISOR_DATA/dqa. No model is asked. The published figures come from a larger
set of questions where DIR holds only some of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from functools import partial
from pathlib import Path

from decisor.lab.dqa.bench import DqaBench
from decisor.lab.dqa.failures import CEILING
from decisor.lab.dqa.worlds import Scenario
from decisor.lab.evaluation.case_run import CaseAttempt, run_case
from decisor.lab.papers import figures_of_scenario
from decisor.lab.statistics import wilson
from decisor.system.tasks import map_concurrently
from decisor.techniques import build_technique

SCENARIOS: tuple[Scenario, ...] = ("locating", "building")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "data", type=Path, nargs="?", default=Path(os.environ.get("DECISOR_DATA", "../shared/data")) / "dqa"
    )
    parser.add_argument("--form", choices=("sql", "graph"), default="sql")
    asked = parser.parse_args()
    for scenario in SCENARIOS:
        bench = DqaBench(asked.data, scenario, asked.form)
        attempt = CaseAttempt("dqa", bench, "heuristic", build_technique("heuristic"))
        began = time.monotonic()
        ran = await map_concurrently(partial(run_case, attempt=attempt), bench.cases())
        await bench.close()
        seconds = time.monotonic() - began
        right, count = sum(outcome.state == "right" for outcome, _ in ran), len(ran)
        within = wilson(right, count)
        low, high = 100 * within.low, 100 * within.high
        print(f"{scenario} ({asked.form})")
        print(f"  heuristic, no model   {100 * right / count:5.1f} %  {right}/{count}, 95 %: {low:.1f} to {high:.1f}")
        for row in figures_of_scenario(scenario, asked.form):
            form = row.group.partition(" ")[2] or "mean of sql and graph"
            print(f"  {row.technique:20}  {row.value:5.1f} %  published, {form}")
        print(f"  printed rules followed exactly: {CEILING[scenario]} %; answered in {seconds:.1f} s")
    print(f"Published: {figures_of_scenario('locating', asked.form)[0].source}.")


if __name__ == "__main__":
    asyncio.run(main())
