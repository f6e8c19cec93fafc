"""From code that is not async: one call, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Coroutine[object, object, T]) -> T:
    """The result of ``work``, also where a loop runs already, as in a notebook.

    An interrupt (Ctrl-C) cancels it, and is raised when what it had under way has ended.
    """
    outcome: Future[T] = Future()
    ready = threading.Event()
    cancel: list[Callable[[], object]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        cancel.append(lambda: loop.call_soon_threadsafe(task.cancel))
        ready.set()
        return await work

    def target() -> None:
        try:
            result = context.run(asyncio.run, main())
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        finally:
            ready.set()

    context = contextvars.copy_context()
    thread = threading.Thread(target=target, name="decisor", daemon=True)
    thread.start()
    try:
        return outcome.result()
    except BaseException:
        if not outcome.done():
            ready.wait()
            with suppress(RuntimeError, IndexError):  # it has just ended, or never began
                cancel[0]()
        raise
    finally:
        thread.join()
