"""Runs mutants of hostile statements through the real sandbox and looks for effects; harmless ones must still run.

PYTHONPATH=src:tests python -m databases.mutation_check --seconds 600 sqlite duckdb postgres mariadb mysql kglite neo4j
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from databases.mutation_shops import ENGINES, Shop, harmless, hostile, shop
from databases.mutations import Mutant, harmless_mutant, mutants
from decisor.errors import ToolError
from decisor.sandbox.limits import memory_of

CANARY = ("canary", "yranac", b"CANARY".hex(), b"canary".hex(), "q0foqvjz")
SLACK_SECONDS = 3.0
EACH = 200
FEW = 60
"""Variations that are tried, however long it takes."""
"""Statements that were refused, between two looks at what must stay."""


@dataclass
class Report:
    counts: Counter[str] = field(default_factory=Counter)
    effects: list[dict[str, object]] = field(default_factory=list)
    ran: list[dict[str, object]] = field(default_factory=list)
    longest: float = 0.0
    most_mb: float = 0.0
    start: float = field(default_factory=time.monotonic)

    def note(self, kind: str, mutant: Mutant, detail: object) -> None:
        line: dict[str, object] = {"kind": kind, "id": mutant.seed.id, "steps": mutant.steps}
        line |= {"text": mutant.text, "detail": str(detail)[:600]}
        (self.ran if kind == "ran" else self.effects).append(line)


@asynccontextmanager
async def memory_watch(target: Shop, report: Report) -> AsyncIterator[None]:
    async def watch() -> None:
        while True:
            child = target.worker.child
            if child is not None and not child.ended:
                report.most_mb = max(report.most_mb, memory_of(child.pid) / 2**20)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(watch())
    yield
    task.cancel()


async def check_hostile(target: Shop, random: Random, seconds: float) -> Report:
    report = Report()
    before, settings = target.state(), await session(target)
    async with memory_watch(target, report):
        for mutant in mutants(hostile(target.engine), harmless(target.dialect), target.dialect == "cypher", random):
            # The first may be one that runs until it is stopped.
            if time.monotonic() - report.start > seconds and report.counts["mutants"] >= FEW:
                break
            mutant = replace(mutant, text=target.place(mutant.text))
            kind, detail = await outcome(target, mutant, report)
            report.counts[kind] += 1
            report.counts["mutants"] += 1
            if kind in ("ran", "complaint") and await session(target) != settings:
                report.note("settings", mutant, detail)
            if kind != "refused" or report.counts["mutants"] % EACH == 0:
                after = target.state()
                if after != before:
                    report.note("state", mutant, detail)
                    before = after
    if target.state() != before:
        report.note("state", mutant, "at the end")
    return report


async def outcome(target: Shop, mutant: Mutant, report: Report) -> tuple[str, object]:
    """What became of it: refused, ran, complaint (of the engine), stopped, crashed or effect; and what was seen."""
    began = time.monotonic()
    try:
        table = await target.worker.run(mutant.text)
        kind, detail = "ran", repr((table.columns, table.rows, table.note))
        report.note("ran", mutant, detail)
    except ToolError as error:
        detail = str(error)
        kind = "complaint"
        if error.refused:
            kind = "refused"
        elif detail.startswith("Stopped"):
            kind = "stopped"
        elif "crashed" in detail:
            kind = "crashed"
            report.ran.append({"kind": "crashed", "text": mutant.text, "steps": mutant.steps})
    except Exception as error:
        kind, detail = "effect", f"{type(error).__name__}: {error}"
        report.note("exception", mutant, detail)
    took = time.monotonic() - began
    report.longest = max(report.longest, took)
    if took > target.worker.caps.seconds + SLACK_SECONDS:
        report.note("time", mutant, took)
    if leaks(mutant.text, detail):
        report.note("leak", mutant, detail)
    return kind, detail


def leaks(statement: str, detail: str) -> bool:
    """Whether a denied value was seen, or the name of a denied table that the statement itself does not hold."""
    folded = detail.lower()
    own = unicodedata.normalize("NFKC", statement).lower()
    return any(mark in folded for mark in CANARY) or (
        "api_tokens" in folded and "api" not in own and "tokens" not in own
    )


async def session(target: Shop) -> list[str]:
    if not target.session:
        return []
    for _ in range(3):
        try:
            caps = replace(target.worker.caps, rows=5000, seconds=20.0)
            return sorted(map(repr, (await target.worker.run(target.session, caps=caps, trusted=True)).rows))
        except ToolError:
            await asyncio.sleep(0.5)
    return ["no answer"]


async def check_harmless(target: Shop, random: Random, seconds: float, comments: bool) -> Report:
    """``legal``: mutants of what the sandbox runs that mean the same to the engine itself. ``same``: how many of these
    the sandbox ran, to the same rows."""
    report = Report()
    meant = {text: await plain(target, text) for text in harmless(target.dialect)}
    texts = [text for text, rows in meant.items() if rows is not None and await plain(target, text, False) == rows]
    texts = [text for text in texts if "random" not in text.lower()]
    if not texts:
        raise RuntimeError(f"{target.dialect} runs none of the harmless statements")
    report.start = time.monotonic()
    while time.monotonic() - report.start < seconds:
        text = random.choice(texts)
        mutant = harmless_mutant(random, text, target.dialect == "cypher", comments)
        report.counts["mutants"] += 1
        if await plain(target, mutant) != meant[text]:
            continue
        report.counts["legal"] += 1
        try:
            rows = sorted(map(repr, (await target.worker.run(mutant)).rows))
            report.counts["same" if rows == meant[text] else "other"] += 1
            why = "" if rows == meant[text] else "other rows"
        except ToolError as error:
            report.counts["refused"] += 1
            why = str(error)
        if why:
            report.effects.append({"text": mutant, "why": why})
    return report


async def plain(target: Shop, text: str, trusted: bool = True) -> list[str] | None:
    try:
        return sorted(map(repr, (await target.worker.run(text, trusted=trusted)).rows))
    except ToolError:
        return None


async def check(dialect: str, seconds: float, seed: int) -> dict[str, Any]:
    with shop(dialect) as target:
        bad = await check_hostile(target, Random(seed), seconds)
        good = await check_harmless(target, Random(seed), seconds / 20, comments=False)
        commented = await check_harmless(target, Random(seed), seconds / 20, comments=True)
        await target.worker.close()
    return {
        "engine": dialect,
        "seed": seed,
        "seconds": round(time.monotonic() - bad.start),
        "hostile": dict(bad.counts),
        "effects": bad.effects,
        "longest_s": round(bad.longest, 2),
        "most_mb": round(bad.most_mb),
        "harmless": dict(good.counts),
        "not_run": good.effects[:20],
        "with_comments": dict(commented.counts),
        "not_run_with_comments": commented.effects[:20],
        "ran": bad.ran,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engines", nargs="*", default=ENGINES)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for dialect in options.engines:
        print(json.dumps(asyncio.run(check(dialect, options.seconds, options.seed))), flush=True)


if __name__ == "__main__":
    main()
