"""Agreement of three plans under a policy that errs in a share of its queries, each time by itself.

    python performance/agreement.py [--questions 200] [--share 0.2] [--delay 0.3] [--attempts 3]

Each question asks for the cheapest of some sites in a database of its own. The policy plans, makes one query and
decides by its first row. A query that errs takes another column, leaves out a condition, orders the other way or counts
in another unit, by dice of the attempt. Bars: 97 % right or the disagreement told, and at most 1.3 times the time of
one attempt; ``--delay`` is the time of an LLM's reply. It measures the comparison of results, not a model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decisor.databases.sql import SqlTool
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.techniques.agent import Agent
from decisor.tools.toolbox import Toolbox
from decisor.types import Completion, Decision, Message, Question, Sampling, ToolCall, Usage

RIGHT = "SELECT name, rent + wages AS cost FROM site WHERE open = 1 ORDER BY cost"
WRONG = {
    "column": "SELECT name, rent AS cost FROM site WHERE open = 1 ORDER BY cost",
    "condition": "SELECT name, rent + wages AS cost FROM site ORDER BY cost",
    "order": "SELECT name, rent + wages AS cost FROM site WHERE open = 1 ORDER BY cost DESC",
    "unit": "SELECT name, rent / 1000.0 + wages AS cost FROM site WHERE open = 1 ORDER BY cost",
}


@dataclass
class ErringPolicy:
    """A model that plans, queries and decides by the first row; some of its queries err."""

    share: float
    delay: float
    dice: random.Random
    name: str = "erring policy"
    price: None = None
    calls: int = 0
    sent: int = 0
    """Characters of all prompts, without the tools."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        await asyncio.sleep(self.delay)
        self.calls += 1
        self.sent += sum(len(turn.content) + sum(len(call.arguments) for call in turn.calls) for turn in messages)
        # A look at what differs is planned and queried anew, with the same chance to err.
        asked = max(at for at, message in enumerate(messages) if message.role == "user")
        results = [message.content for message in messages[asked:] if "\n[o" in message.content]
        if not results:
            query = self.dice.choice(list(WRONG.values())) if self.dice.random() < self.share else RIGHT
            turn = self.turn(("plan", {"steps": ["cost of every open site"]}), ("sql", {"query": query}))
        else:
            id, name, cost = results[-1].splitlines()[1].split(" | ")[:3]
            turn = self.turn(("decide", {"answer": name, "because": f"{name} costs {cost} {id}."}))
        return Completion(("",), Usage(1, 100, 10), turn=turn)

    def turn(self, *calls: tuple[str, dict[str, object]]) -> Message:
        written = (ToolCall(f"c{at}", name, json.dumps(value)) for at, (name, value) in enumerate(calls))
        return Message("assistant", "", tuple(written))


def make_sites(path: Path, dice: random.Random) -> str:
    """Write sites of which the cheapest open one differs from what each kind of wrong query finds; return its name."""
    while True:
        rows = [
            (f"site {at}", dice.randint(100, 900), dice.randint(100, 900), dice.randint(0, 3) > 0) for at in range(8)
        ]
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE IF EXISTS site")
            connection.execute("CREATE TABLE site (name TEXT PRIMARY KEY, rent REAL, wages REAL, open INTEGER)")
            connection.executemany("INSERT INTO site VALUES (?, ?, ?, ?)", rows)
            best, *others = (connection.execute(query).fetchone()[0] for query in (RIGHT, *WRONG.values()))
        if best not in others:
            return str(best)


async def ask(place: Path, policy: ErringPolicy, attempts: int) -> tuple[Decision, float]:
    tool = await SqlTool.open(f"sqlite:///{place}")
    began = time.monotonic()
    try:
        question = Question("Which open site is cheapest?", "The cost of a site is its rent plus its wages.")
        decision = await Agent(agree=attempts)(question, Run(policy, Toolbox([tool]), Budget()))
        return decision, time.monotonic() - began
    finally:
        await tool.close()


async def measure(questions: int, share: float, delay: float, attempts: int) -> None:
    dice, counts, seconds = random.Random(1), Counter[str](), Counter[int]()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "sites.db"
        for _ in range(questions):
            best = make_sites(place, dice)
            for several in (1, attempts):
                policy = ErringPolicy(share, delay, dice)
                decision, took = await ask(place, policy, several)
                seconds[several] += took  # type: ignore[assignment]
                is_told = any("attempts agree on this" in text or "did not agree" in text for text in decision.reasons)
                state = "right" if decision.answer == best else "told" if is_told else "wrong"
                counts[f"{several}: {state}"] += 1
                counts[f"{several}: calls"] += policy.calls
                counts[f"{several}: prompt characters"] += policy.sent
    for name in sorted(counts):
        print(f"{name:21} {counts[name]} in {questions}")
    fine = counts[f"{attempts}: right"] + counts[f"{attempts}: told"]
    print(
        f"right or told: {fine / questions:.1%} (bar 97 %), time {seconds[attempts] / seconds[1]:.2f} of one (bar 1.3)"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--delay", type=float, default=0.3)
    parser.add_argument("--attempts", type=int, default=3)
    options = parser.parse_args()
    asyncio.run(measure(options.questions, options.share, options.delay, options.attempts))
