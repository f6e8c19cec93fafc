"""A worker for code that is not asynchronous: it lives on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from typing import TypeVar

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.process import Worker
from decisor.types import Table, Value

T = TypeVar("T")


@dataclass(eq=False)
class Blocking:
    """``run`` may be called from any thread but the worker's own. ``close`` ends what is under way."""

    worker: Worker
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread

    @classmethod
    async def open(cls, engine: str, url: str, caps: Caps = Caps()) -> Blocking:
        """Raises SetupError, in one line, where it cannot be opened."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name=f"decisor {engine}", daemon=True)
        thread.start()
        blocking = cls(Worker(engine, url, caps), loop, thread)
        try:
            await asyncio.wrap_future(blocking._begin(blocking.worker.start()))
        except BaseException:
            await asyncio.to_thread(blocking.close)
            raise
        return blocking

    def run(self, statement: str, parameters: Mapping[str, Value], seconds: float) -> Table:
        """A trusted statement of our own. Raises ToolError: the engine's error, or killed for time or memory."""
        caps = replace(self.worker.caps, seconds=seconds)
        try:
            return self._begin(self.worker.run(statement, parameters, caps, trusted=True)).result()
        except CancelledError as error:
            raise ToolError("Stopped: it was closed.") from error

    def close(self) -> None:
        if self.loop.is_closed():
            return
        self._begin(self._end()).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _end(self) -> None:
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self.worker.close()

    def _begin(self, work: Coroutine[object, object, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)


async def start_machine(content: str) -> Blocking:
    """The machine of a decision model (``models.machine``), with room in memory for its tables and for work."""
    return await Blocking.open("model", content, Caps(memory_mb=1536 + 8 * len(content) // 2**20))
