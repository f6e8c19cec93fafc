"""The rules of thumb's accuracy on Decision QA, beside what others published for LMs.

    python benchmarks/dqa/heuristics.py [DIR] [--form sql|graph]

DIR is the released layout, by default $DECISOR_DATA/dqa. No model is asked. The published figures come from a larger
set of questions where DIR holds only some of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from decisor.cli.bench_cases import SCENARIOS, read_cases
from decisor.cli.bench_run import Setup, run
from decisor.evaluation.published import CEILING, PAPER, published
from decisor.evaluation.statistics import wilson


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "data", type=Path, nargs="?", default=Path(os.environ.get("DECISOR_DATA", "../shared/data")) / "dqa"
    )
    parser.add_argument("--form", choices=("sql", "graph"), default="sql")
    asked = parser.parse_args()
    for scenario in SCENARIOS:
        ran = await run(read_cases(asked.data, scenario, asked.form), Setup("heuristic", asked.form))
        right, count = sum(row.right for row in ran.rows), len(ran.rows)
        within = wilson(right, count)
        low, high = 100 * within.low, 100 * within.high
        print(f"{scenario} ({asked.form})")
        print(f"  heuristic, no model   {100 * right / count:5.1f} %  {right}/{count}, 95 %: {low:.1f} to {high:.1f}")
        for row in published(scenario, asked.form):
            form = row.form or "mean of sql and graph"
            print(f"  {row.technique:20}  {row.accuracy:5.1f} %  published, {form}")
        print(f"  printed rules followed exactly: {CEILING[scenario]} %; answered in {ran.seconds:.1f} s")
    print(f"Published: {PAPER}.")


if __name__ == "__main__":
    asyncio.run(main())
