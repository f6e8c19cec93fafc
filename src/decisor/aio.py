"""The one function that starts tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
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
