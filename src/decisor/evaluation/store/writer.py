"""A run store behind an event loop: one thread owns it, and what comes in meanwhile is kept together, so that a
thousand replies a second cost a few syncs and no wait of the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from decisor.evaluation.store.protocol import Claim, Store, StoreError
from decisor.types import Completion

T = TypeVar("T")
TOGETHER = 500
Deliver = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Job(Generic[T]):
    """What is to be done with the store, and who waits for its result. Both methods give what hands it over."""

    act: Callable[[Store], T]
    done: asyncio.Future[T]

    def result(self, store: Store) -> Deliver:
        result = self.act(store)
        return lambda: None if self.done.done() else self.done.set_result(result)

    def failure(self, error: Exception) -> Deliver:
        return lambda: None if self.done.done() else self.done.set_exception(error)


class Writer:
    """What ``do`` has returned from is on disk. A job that was handed in is done even if nobody waits any more."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.hashes = set[int]()  # of the keys: 76 MiB for a million
        self.latest: int | None = None
        self.jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self.loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self._work, name="run store", daemon=True)
        self.thread.start()

    async def do(self, act: Callable[[Store], T]) -> T:
        """The result of ``act``, in a transaction.

        Raises:
            StoreError: it could not be kept.
        """
        done: asyncio.Future[T] = self.loop.create_future()
        self.jobs.put(Job(act, done))
        return await done

    async def look(self) -> None:
        """Learn which replies there are, so that not each must be looked up: those of others too."""
        self._learn(await self.do(lambda store: store.keys_since(self.latest or 0)))

    async def claim(self) -> Claim | None:
        """The next case, with a look at what others bought since the last one."""
        claim, news = await self.do(lambda store: (store.claim(), store.keys_since(self.latest or 0)))
        self._learn(news)
        return claim

    def _learn(self, news: tuple[int, list[str]] | None) -> None:
        if news is not None:
            self.latest = max(news[0], self.latest or 0)
            self.hashes.update(map(hash, news[1]))

    async def reply(self, key: str) -> Completion | None:
        """As of the last look or claim, and what was kept here since."""
        if self.latest is not None and hash(key) not in self.hashes:
            return None
        return await self.do(lambda store: store.reply(key))

    async def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        self.hashes.add(hash(key))
        return await self.do(lambda store: store.keep_reply(key, reply, usable))

    async def close(self) -> None:
        """Waits for what was handed in. The store stays open."""
        self.jobs.put(None)
        await asyncio.to_thread(self.thread.join)

    def _work(self) -> None:
        last = False
        while not last:
            batch = [self.jobs.get()]
            with suppress(Empty):
                while len(batch) < TOGETHER and batch[-1] is not None:
                    batch.append(self.jobs.get_nowait())
            last = batch[-1] is None
            jobs = [job for job in batch if job is not None]
            results = self._keep(jobs)
            with suppress(RuntimeError):  # the loop is gone
                self.loop.call_soon_threadsafe(deliver_all, results)

    def _keep(self, jobs: Sequence[Job[Any]]) -> list[Deliver]:
        """All in one transaction; each in its own where one of them failed by itself."""
        try:
            with self.store.transaction():
                return [job.result(self.store) for job in jobs]
        except StoreError as error:
            return [job.failure(error) for job in jobs]
        except Exception as error:
            if len(jobs) == 1:
                return [jobs[0].failure(error)]
            return [deliver for job in jobs for deliver in self._keep([job])]


def deliver_all(results: Sequence[Deliver]) -> None:
    for deliver in results:
        deliver()
