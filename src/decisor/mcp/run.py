"""The server, until its client leaves or somebody stops it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, cast

from mcp.server.stdio import stdio_server

from decisor.history.past_run import Inputs
from decisor.history.store import History
from decisor.mcp.serving import Serving
from decisor.mcp.tools import Server, server_of
from decisor.server.places import Places
from decisor.session.pool import pool_of
from decisor.session.sources import Sources

if TYPE_CHECKING:
    from anyio import AsyncFile

    from decisor.mcp.http import Listening


async def run(
    sources: Sources, inputs: Inputs, lm: str | None, history: History, listening: Listening | None, at_once: int
) -> None:
    """Over HTTP where there is a place to listen, else over standard input and output."""
    async with pool_of(sources) as pool:
        serving = Serving(pool, lm, inputs.technique, inputs.settings, inputs.limits, history, Places(at_once))
        async with server_of(serving) as server:
            if listening is None:
                with until_terminated():
                    await serve_stdio(server)
                return
            from decisor.mcp.http import serve_http

            await serve_http(server, listening)


async def serve_stdio(server: Server) -> None:
    """Until standard input ends. It is read in a thread that nothing waits for, so that a sign ends us at once."""
    async with stdio_server(stdin=cast("AsyncFile[str]", lines_of_stdin())) as (reading, writing):
        inside = server._lowlevel_server
        await inside.run(reading, writing, inside.create_initialization_options())


async def lines_of_stdin() -> AsyncIterator[str]:
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(lines.put_nowait, line.decode("utf-8", "replace"))
            loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, name="decisor-stdin", daemon=True).start()
    while line := await lines.get():
        yield line


@contextlib.contextmanager
def until_terminated() -> Iterator[None]:
    """SIGTERM cancels this task, so that what is open is closed."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    except asyncio.CancelledError:
        pass
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
