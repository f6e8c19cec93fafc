"""The MCP server, over standard input and output or over streamable HTTP, until its client leaves or somebody stops
it.

Over HTTP the tools are behind the same guard as the page: Host, Origin, size of the body, and token are checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from decisor.history.store import History
from decisor.mcp.runs import McpService
from decisor.mcp.tools import Server, open_tool_server
from decisor.server.app import GRACE_SECONDS, MOST_HEAD
from decisor.server.connections import BACKLOG, make_connection_class
from decisor.server.security import Hosts, RequestGuard
from decisor.server.settings import Places
from decisor.server.users import Users
from decisor.session.pool import open_pool
from decisor.session.request import AskRequest
from decisor.session.sources import Sources

if TYPE_CHECKING:
    from anyio import AsyncFile


async def serve_mcp(
    sources: Sources, request: AskRequest, history: History, listening: HttpListener | None, at_once: int
) -> None:
    """Serve over HTTP if there is a place to listen, else over standard input and output."""
    async with open_pool(sources) as pool:
        serving = McpService(pool, request, history, Places(at_once))
        async with open_tool_server(serving) as server:
            if listening is None:
                with cancel_on_sigterm():
                    await serve_stdio(server)
                return
            await serve_http(server, listening)


async def serve_stdio(server: Server) -> None:
    """Serve over standard input and output until input ends.

    Input is read in a thread that nothing waits for, so that a signal ends us at once.
    """
    async with stdio_server(stdin=cast("AsyncFile[str]", lines_of_stdin())) as (reading, writing):
        inside = server._lowlevel_server
        await inside.run(reading, writing, inside.create_initialization_options())


async def lines_of_stdin() -> AsyncIterator[str]:
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            for line in sys.stdin.buffer:
                # A byte that is no UTF-8 spoils its line, not the server.
                loop.call_soon_threadsafe(lines.put_nowait, line.decode("utf-8", "replace"))
            loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, name="decisor-stdin", daemon=True).start()
    while line := await lines.get():
        yield line


@contextlib.contextmanager
def cancel_on_sigterm() -> Iterator[None]:
    """Cancel this task at SIGTERM, so that everything open is closed."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    except asyncio.CancelledError:
        pass
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


PATH = "/mcp"
ENTER = "send the one that was printed for you"


@dataclass(frozen=True)
class HttpListener:
    """A socket to listen on, the names that it answers to, and its users."""

    socket: socket.socket
    hosts: Hosts
    users: Users


async def serve_http(server: Server, place: HttpListener) -> None:
    """Serve the tools over HTTP until it is interrupted. The guard has checked Host and Origin."""
    # RequestGuard checks names with those that a person allowed, which the SDK does not know.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
    config = uvicorn.Config(
        RequestGuard(app, place.hosts, place.users, ENTER),
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
        # X-Forwarded-For and the like are anybody's to send.
        proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEAD,
        http=make_connection_class(),
        backlog=BACKLOG,
    )
    await uvicorn.Server(config).serve(sockets=[place.socket])
