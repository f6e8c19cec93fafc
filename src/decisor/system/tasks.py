"""Concurrent tasks, async code called from other code, progress, and garbage collection.

``map_concurrently`` is the one function that starts tasks. Code that is not async runs one coroutine on an event loop
in a thread of its own. The progress of a computation is told to whoever watches the run that it is part of, and to
nobody unless they say so. ``collect_cycles_rarely`` lets Python look less often for objects that only hold each other.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


async def map_concurrently(act: Callable[[T], Awaitable[U]], items: Iterable[T], at_once: int = 8) -> list[U]:
    """Run ``act`` on every item, at most ``at_once`` at a time; return the results in order.

    The first failure cancels the rest and is raised as itself, so ``except BudgetExceeded`` means the same in
    parallel as in series.

    >>> async def double(x: int) -> int:
    ...     return 2 * x
    >>> asyncio.run(map_concurrently(double, [1, 2, 3]))
    [2, 4, 6]
    """
    # A task for each item and one gate: the results keep the order of the items.
    gate = asyncio.Semaphore(at_once)

    async def one(item: T) -> U:
        async with gate:
            return await act(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as failures:
        first: BaseException = failures
        # Groups nest where tasks start tasks.
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in tasks]


async def run_in_dependency_order(
    act: Callable[[str, Mapping[str, U]], Awaitable[U]],
    needs: Mapping[str, Collection[str]],
    at_once: int = 8,
    levels: bool = False,
) -> dict[str, U]:
    """Run ``act`` on every key after the keys that it needs.

    ``act`` gets the key and the results so far; at most ``at_once`` run at a time.

    ``needs``: keys in an order in which each comes after its needs. A key starts when its own needs are done; with
    ``levels`` only when every key that is less deep is. Failures are as for ``map_concurrently``.

    >>> async def put(key: str, done: Mapping[str, str]) -> str:
    ...     return key + "".join(done[need] for need in {"c": "ab"}.get(key, ""))
    >>> asyncio.run(run_in_dependency_order(put, {"a": "", "b": "", "c": "ab"}))
    {'a': 'a', 'b': 'b', 'c': 'cab'}
    """
    depth: dict[str, int] = {}
    for key, others in needs.items():
        depth[key] = 1 + max((depth[other] for other in others), default=0)
    before = {key: [o for o in needs if depth[o] < depth[key]] if levels else needs[key] for key in needs}
    done: dict[str, U] = {}
    ready = {key: asyncio.Event() for key in needs}
    gate = asyncio.Semaphore(at_once)

    async def one(key: str) -> None:
        for other in before[key]:
            await ready[other].wait()
        async with gate:
            done[key] = await act(key, done)
        ready[key].set()

    # All tasks at once, since most of them only wait; the gate above bounds those that act.
    await map_concurrently(one, needs, max(1, len(needs)))
    return {key: done[key] for key in needs}


COUNTER: ContextVar[Callable[[str, int, int], None] | None] = ContextVar("COUNTER", default=None)
"""Called with what is counted, how many are done, and how many there are; from the thread that computes."""


def counter_of(what: str) -> Callable[[int, int], None] | None:
    """Return a function that reports how many of how many are done; None if nobody watches."""
    counter = COUNTER.get()
    return None if counter is None else partial(counter, what)


RARE_CYCLES = 50_000, 20, 50
"""Thresholds of the garbage collector for a process with many runs."""


@contextmanager
def collect_cycles_rarely() -> Iterator[None]:
    """Let Python look for reference cycles less often within the block.

    Python looks after every 700 new objects; with hundreds of cases or runs under way nearly all objects are in use,
    and each look costs more the more there are. For a process of this package only, never within a library call.
    """
    usual = gc.get_threshold()
    gc.set_threshold(*RARE_CYCLES)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class LoopThread:
    """An event loop in a thread of its own, for code that is not async. Leaving its block ends what runs on it."""

    def __enter__(self) -> LoopThread:
        self.ready, self.ended = threading.Event(), asyncio.Event()

        async def wait_for_end() -> None:
            self.loop = asyncio.get_running_loop()
            self.ready.set()
            await self.ended.wait()
            # asyncio.run would cancel these once more, in the middle of their cleaning up.
            await asyncio.gather(*(task for task in asyncio.all_tasks() if task.cancelling()), return_exceptions=True)

        self.thread = threading.Thread(target=asyncio.run, args=[wait_for_end()], name="decisor", daemon=True)
        self.thread.start()
        return self

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine on the loop, with the context variables of the caller, and return its result.

        An interrupt (Ctrl-C) cancels it.
        """
        self.ready.wait()
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def __exit__(self, *failure: object) -> None:
        # The loop waits for what was cancelled, cancels what else is under way, and waits for its end.
        self.ready.wait()
        self.loop.call_soon_threadsafe(self.ended.set)
        self.thread.join()


def run_in_thread(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine on an event loop in a new thread, and return its result.

    This works where a loop runs already, as in a notebook. An interrupt (Ctrl-C) cancels it, and is raised when what it
    had under way has ended.
    """
    with LoopThread() as thread:
        return thread.run(work)
