"""What each measured process has in common: its arguments, its clock, and the line that it prints.

python LOOP.py BASE_URL CASES AT_ONCE DATABASE      DATABASE is '-' for none
"""

from __future__ import annotations

import gc
import json
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Arguments:
    """``database`` is '' where no queries are made."""

    base_url: str
    cases: int
    at_once: int
    database: str


def parse_arguments() -> Arguments:
    """And all alike look seldom for cycles: with hundreds of conversations under way nearly all objects are in use."""
    gc.set_threshold(50_000, 20, 50)
    url, cases, at_once, database = sys.argv[1:5]
    return Arguments(url, int(cases), int(at_once), "" if database == "-" else database)


def read_only(path: str) -> Callable[[str], str]:
    """How a peer's tool usually queries: a connection of its own, read-only, rows as text."""

    def sql(text: str) -> str:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return str(db.execute(text).fetchall())
        finally:
            db.close()

    return sql


def rss_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


async def in_waves(one: Callable[[int], Coroutine[Any, Any, int]], cases: int, at_once: int) -> list[int]:
    """Calls made by each case, ``at_once`` at a time."""
    import asyncio

    room = asyncio.Semaphore(at_once)

    async def when_there_is_room(number: int) -> int:
        async with room:
            return await one(number)

    return await asyncio.gather(*map(when_there_is_room, range(cases)))


async def run_cases(one: Callable[[int], Coroutine[Any, Any, int]], args: Arguments) -> None:
    """All cases after two that warm up; printed."""
    await in_waves(one, 2, 2)
    began, cpu = time.perf_counter(), time.process_time()
    calls = await in_waves(one, args.cases, args.at_once)
    report(sum(calls), began, cpu)


def report(calls: int, began: float, cpu: float, **more: Any) -> None:
    """``began`` and ``cpu``: of the clocks, before."""
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    print(json.dumps({"calls": calls, "seconds": seconds, "cpu": used, "rss_mb": rss_mb(), **more}), flush=True)
