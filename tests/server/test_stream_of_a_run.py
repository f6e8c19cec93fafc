"""What the stream of one run sends, and when."""

import asyncio

from decisor.history.store import PastRun
from decisor.server.live import LiveRun
from decisor.server.stream import Streams, stream_run_events
from decisor.trace.events import ActionStart, TraceEntry
from decisor.types import Question

HOURS = 10**6
"""Streams that make each gather its news for more than an hour."""


async def test_the_end_of_a_run_waits_for_no_other_news() -> None:
    live = LiveRun(PastRun(Question("Which?")), "1", state="running")
    streams = Streams(count=HOURS)
    texts: list[str] = []
    came = asyncio.Event()

    async def read() -> None:
        async for text in stream_run_events(live, 0, streams):
            texts.append(text)
            came.set()

    async with asyncio.timeout(60):
        reading = asyncio.create_task(read())
        await came.wait()
        live.hear(TraceEntry(1, 0, 0.0, ActionStart("sql", "SELECT 1")))
        await asyncio.sleep(0.01)
        live.end("stopped")
        await reading
    assert "event: state" in texts[0]
    assert "event: entry" in texts[-1] and "event: end" in texts[-1]
