"""The one function that starts tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


async def each(act: Callable[[T], Awaitable[U]], items: Iterable[T], at_once: int = 8) -> list[U]:
    """``act`` of every item, at most ``at_once`` at a time; results in order.

    The first failure cancels the rest and is raised as itself, so ``except BudgetExceeded`` means the same in
    parallel as in series.

    >>> async def double(x: int) -> int:
    ...     return 2 * x
    >>> asyncio.run(each(double, [1, 2, 3]))
    [2, 4, 6]
    """
    gate = asyncio.Semaphore(at_once)

    async def one(item: T) -> U:
        async with gate:
            return await act(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as failures:
        first: BaseException = failures
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in tasks]


async def in_order(
    act: Callable[[str, Mapping[str, U]], Awaitable[U]],
    needs: Mapping[str, Collection[str]],
    at_once: int = 8,
    levels: bool = False,
) -> dict[str, U]:
    """``act`` of every key once all that it needs is done, with the results so far; at most ``at_once`` at a time.

    ``needs``: keys in an order in which each comes after what it needs. A key starts when its own needs are done; with
    ``levels`` only when every key that is less deep is. Failures are as for ``each``.

    >>> async def put(key: str, done: Mapping[str, str]) -> str:
    ...     return key + "".join(done[need] for need in {"c": "ab"}.get(key, ""))
    >>> asyncio.run(in_order(put, {"a": "", "b": "", "c": "ab"}))
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

    await each(one, needs, max(1, len(needs)))
    return {key: done[key] for key in needs}
