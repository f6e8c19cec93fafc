"""The server, until it is interrupted."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable

import uvicorn

from decisor.cycles import seldom_collected
from decisor.errors import SetupError
from decisor.server.app import guarded
from decisor.server.connections import BACKLOG, connection_class
from decisor.server.here import Here
from decisor.server.serving import Serving

GRACE_SECONDS = 1
KEEP_SECONDS = 75
MOST_HEAD = 32_768
"""Bytes of a request's line and headers."""


class Server(uvicorn.Server):
    """``ready`` is called when it answers. At the first sign it ends its runs and streams: nothing is waited for."""

    def __init__(self, config: uvicorn.Config, here: Here, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.here, self.ready = here, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.here.runs.close()
        await super().shutdown(sockets)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any that is free.

    Raises:
        SetupError: it cannot, as where another server listens.
    """
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with contextlib.ExitStack() as stack:
            listening = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            stack.pop_all()
    except OSError as error:
        why = error.strerror or str(error)
        raise SetupError(f"Cannot listen on {host}, port {port}: {why}. Take another with --port.") from error
    return listening


def server_of(serving: Serving, ready: Callable[[], None]) -> Server:
    app, here = guarded(serving)
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, date_header=False, ws="none", lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS, h11_max_incomplete_event_size=MOST_HEAD, proxy_headers=False,
        backlog=BACKLOG, timeout_keep_alive=KEEP_SECONDS, http=connection_class(),
    )  # fmt: skip
    return Server(config, here, ready)


def serve(serving: Serving, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Until Ctrl-C or SIGTERM. ``serving`` has the port of the socket."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.suppress(KeyboardInterrupt), seldom_collected():
        server_of(serving, ready).run(sockets=[listening])
