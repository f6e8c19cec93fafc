"""What the runner and its store cost beside the technique itself: CPU and disk a call, and memory over many cases.

    python performance/eval_cost.py [--cases 10000] [--calls 8]

`--cases 200` takes 15 s; all of them some minutes.

A model that answers at once, a technique of 8 calls with a query each. The same cases are run once without journal and
store, once with both, and once more, replayed from the journal.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.lab.evaluation.case_run import CaseAttempt, run_case
from decisor.lab.evaluation.runner import CaseSample, Suite, Tally, evaluate_suite
from decisor.lab.evaluation.store import open_store
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.types import Action, Decision, Message, Question
from evaluation.small import SmallBench

PADDING = "Some rows of a table, as a prompt would show them. " * 20


def memory() -> float:
    """Resident now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def steps(question: Question, run: Run, calls: int) -> Decision:
    """Each prompt holds all that came before, as those of a loop do."""
    prompt = question.text
    for number in range(calls):
        said = await run.ask(f"{prompt}\nStep {number}", str)
        await run.act(Action("sql", "select name from river"))
        prompt += f"\n{PADDING}{said}"
    return Decision("bel")


def answer(messages: Sequence[Message]) -> str:
    return "Thought: go on\nAction: sql\nAction input: select name, km from river order by km desc"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=8)
    asked = parser.parse_args()
    bench, technique = SmallBench(asked.cases), partial(steps, calls=asked.calls)
    calls = asked.cases * asked.calls
    some = bench.cases()[: min(asked.cases, 1000)]

    began = time.process_time()
    attempt = CaseAttempt("small", bench, "steps", technique, "m", ScriptedLLM(answer, name="m"))
    await map_concurrently(partial(run_case, attempt=attempt), some, 32)
    bare = (time.process_time() - began) / (len(some) * asked.calls) * 1e6
    print(f"without journal and store: {bare:.0f} us CPU a call ({len(some)} cases)")

    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "run.db")
        marks: list[tuple[int, float]] = []

        def hear(tally: Tally) -> None:
            if tally.done % max(1, asked.cases // 10) == 0:
                marks.append((tally.done, memory()))

        llm = ScriptedLLM(answer, name="m")
        llm.seen = Forgetful()
        cpu, wall = time.process_time(), time.monotonic()
        await evaluate_suite(
            Suite({"small": bench}, {"steps": technique}, {"m": llm}, cases_at_once=32), store, hear=hear
        )
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
        print(
            f"with both: {cpu / calls * 1e6:.0f} us CPU a call, {wall:.1f} s wall, {calls / wall:.0f} calls/s, "
            f"{size:.0f} MB on disk"
        )
        print("memory, MB by cases: " + ", ".join(f"{done}: {held:.0f}" for done, held in marks))
        cpu = time.process_time()
        suite = Suite(
            {"small": bench}, {"again": technique}, {"m": llm}, cases_at_once=32, sample=CaseSample(len(some))
        )
        await evaluate_suite(suite, store)
        cpu = time.process_time() - cpu
        print(f"replayed: {cpu / (len(some) * asked.calls) * 1e6:.0f} us CPU a call ({len(some)} cases)")
        store.close()


class Forgetful(list[str]):
    """Only counts: the script is not to be what grows."""

    def append(self, item: str) -> None:
        """Nothing."""


if __name__ == "__main__":
    asyncio.run(main())
