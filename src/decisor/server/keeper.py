"""The history of a server: written in a thread beside it, many runs in one transaction; no run waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

from decisor.history.lock import lock
from decisor.history.past_run import PastRun
from decisor.history.recording import happens
from decisor.history.store import History
from decisor.log import logger
from decisor.private_file import open_private
from decisor.server.live import LiveRun
from decisor.trace.file import TraceFile

NOTHING_CAME = ("failed", "interrupted")
TICK_SECONDS = 1.0
"""How often the traces of runs that are under way are written."""


@dataclass(eq=False)
class Pen:
    """The trace file of one run, and how many of its entries are in it."""

    file: TextIO
    trace: TraceFile
    written: int = 0

    def write(self, live: LiveRun) -> None:
        if news := live.entries[self.written :]:
            self.trace.write(*news)
            self.written += len(news)

    def close(self) -> None:
        with suppress(OSError):  # told by the last write
            self.file.close()


@dataclass(eq=False)
class Keeper:
    """``beginning``, ``ending``: runs that wait for the next transaction. All that touches a file happens in one thread
    at a time."""

    history: History
    beginning: list[tuple[PastRun, asyncio.Future[int]]] = field(default_factory=list)
    ending: list[tuple[LiveRun, asyncio.Future[None]]] = field(default_factory=list)
    pens: dict[int, Pen] = field(default_factory=dict)
    live: dict[int, LiveRun] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    written_at: float = 0.0
    fault: str = ""

    async def begin(self, run: PastRun) -> int:
        """The number of a new run; 0 where the history cannot be written: ``fault`` says why, and the run goes on."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.beginning.append((run, future))
        self.news.set()
        return await future

    async def end(self, live: LiveRun) -> None:
        """A run is over: all of it is written when this returns."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ending.append((live, future))
        self.news.set()
        await future

    async def work(self) -> None:
        """Until it is cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self.news.wait()
            self.news.clear()
            await self.write()

    async def write(self) -> None:
        begun, ended = self.beginning, self.ending
        self.beginning, self.ending = [], []
        open_runs = self.due()
        over = [live for live, _ in ended]
        numbers = await asyncio.to_thread(self.written, [run for run, _ in begun], open_runs, over)
        for (_, began), number in zip(begun, numbers, strict=True):
            if not began.done():
                began.set_result(number)
        for live, done in ended:
            self.live.pop(live.past.number, None)
            if not done.done():
                done.set_result(None)

    def due(self) -> Sequence[LiveRun]:
        """Those that are under way, where their traces were not written for a while."""
        now = time.monotonic()
        if now - self.written_at < TICK_SECONDS:
            return ()
        self.written_at = now
        return [live for number, live in self.live.items() if number in self.pens]

    def written(self, begun: Sequence[PastRun], live: Sequence[LiveRun], over: Sequence[LiveRun]) -> list[int]:
        """Numbers of the runs that begin. What goes wrong here ends no run."""
        numbers = [0] * len(begun)
        for one in live:
            with self.survives():
                self.pens[one.past.number].write(one)
        with self.survives():
            self.finish([one for one in over if one.past.number])
        if begun:
            with self.survives():
                numbers = self.history.begin_all(begun)
                self.fault = ""
                for number in numbers:
                    self.open(number)
        return numbers

    @contextmanager
    def survives(self) -> Iterator[None]:
        """Note any error: the other runs wait for this thread."""
        try:
            yield
        except Exception as error:
            self.fail(str(error) or type(error).__name__)

    def fail(self, why: str) -> None:
        if not self.fault:
            logger.warning("the history cannot be written: %s", why)
        self.fault = why

    def open(self, number: int) -> None:
        """Without room for it there is no trace, and the run goes on."""
        try:
            file = open_private(self.history.trace_of(number))
        except OSError as error:
            self.fail(error.strerror or str(error))
            return
        lock(file)
        try:
            self.pens[number] = Pen(file, TraceFile(file))
        except OSError as error:
            self.fail(error.strerror or str(error))
            with suppress(OSError):
                file.close()

    def finish(self, over: Sequence[LiveRun]) -> None:
        """A run in which nothing happened is not kept; one whose trace is not whole can be read from memory alone."""
        whole = set[int]()
        worth = [one for one in over if one.past.state not in NOTHING_CAME or any(map(happens, one.entries))]
        for one in over:
            pen = self.pens.pop(one.past.number, None)
            if pen is not None:
                with self.survives(), closing(pen):
                    pen.write(one)
                    whole |= set() if pen.trace.fault else {one.past.number}
        if worth:
            self.history.write_all([one.past for one in worth])
        for one in over:
            one.is_kept = one in worth and one.past.number in whole
            if one not in worth:
                self.history.delete([one.past.number], one.past.owner)

    async def close(self) -> None:
        """The rest is written."""
        await self.write()
        for pen in self.pens.values():
            pen.close()
