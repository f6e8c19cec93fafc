"""Connections to one place, kept for the next request: plain, over TLS, or through a proxy.

On asyncio alone: with hundreds of conversations at once a general HTTP client is the largest part of what a call costs
(docs/decisions/lm-client.md).
"""

from __future__ import annotations

import asyncio
import os
import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast
from urllib.parse import SplitResult, unquote

from decisor.lms.response import Broken, Response

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 15.0
"""A connection that was idle for longer may have been forgotten on the way, so it is not used again."""
MOST = 256
PORTS = {"http": 80, "https": 443}


class Unreachable(Exception):
    """There is no connection to be had; another time there may be."""


class Unsafe(Exception):
    """TLS does not vouch for the other side."""


class Connection(asyncio.Protocol):
    """One exchange at a time. ``since``: when it became idle, in the loop's seconds."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self.loop.create_future()
        self.response: Response | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.since = 0.0

    async def exchange(self, request: bytes, response: Response) -> None:
        """Send, and read until the response is whole. What fails or is cancelled closes the connection.

        Raises:
            Broken, TooLarge: as ``Response``.
            OSError: the connection failed.
        """
        self.response = response
        self.waiter = self.loop.create_future()
        try:
            self.transport.write(request)
            await self.waiter
        except BaseException:
            self.transport.abort()
            raise
        finally:
            self.response = self.waiter = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.response is None or self.waiter is None or self.waiter.done():
            self.transport.abort()  # nothing was asked
            return
        try:
            self.response.feed(data)
        except Exception as error:
            self.waiter.set_exception(error)
        else:
            if self.response.whole:
                self.waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.waiter is not None and self.response is not None and not self.waiter.done():
            try:
                self.response.end()
            except Broken as error:
                exc = exc or error
            if exc is not None:
                self.waiter.set_exception(exc)
            else:
                self.waiter.set_result(None)
        if not self.gone.done():
            self.gone.set_result(None)


@dataclass(eq=False)
class Connections:
    """At most ``MOST`` at once to the place that ``url`` names; ``proxy``: through there."""

    url: SplitResult
    proxy: SplitResult | None = None
    idle: list[Connection] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop | None = None

    async def exchange(self, request: bytes, max_bytes: int) -> Response:
        """Over a connection that is idle, or a new one.

        Raises:
            Unreachable, Unsafe: there is no connection.
            Broken, TooLarge, OSError: as ``Connection.exchange``.
        """
        loop = asyncio.get_running_loop()
        if self.loop is not loop:  # what belongs to another loop is of no use in this one
            self.loop, self.idle, self.room = loop, [], asyncio.Semaphore(MOST)
        async with self.room:
            connection = self._kept(loop.time()) or await self._new(loop)
            response = Response(max_bytes)
            await connection.exchange(request, response)
            if response.keeps and not connection.transport.is_closing():
                connection.since = loop.time()
                self.idle.append(connection)
            else:
                connection.transport.close()
        return response

    async def close(self) -> None:
        """Of those that are idle; the others end with their exchange."""
        idle, self.idle = self.idle, []
        if self.loop is asyncio.get_running_loop():
            for connection in idle:
                connection.transport.abort()
                await connection.gone

    def _kept(self, now: float) -> Connection | None:
        while self.idle:
            connection = self.idle.pop()
            if not connection.transport.is_closing():
                if now - connection.since < IDLE_SECONDS:
                    return connection
                connection.transport.abort()
        return None

    async def _new(self, loop: asyncio.AbstractEventLoop) -> Connection:
        near = self.proxy or self.url
        secure = self.trust if near.scheme == "https" else None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                port = near.port or PORTS[near.scheme]
                _, connection = await loop.create_connection(
                    Connection, near.hostname or "", port, ssl=secure, **racing(loop)
                )
                if self.proxy is not None and self.url.scheme == "https":
                    await self._through(self.proxy, connection)
                return connection
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            raise Unreachable("it ended the connection before it was safe") from None
        except ssl.SSLError as error:
            raise Unsafe(getattr(error, "verify_message", "") or error.reason or type(error).__name__) from None
        except TimeoutError:
            raise Unreachable(f"no connection within {CONNECT_SECONDS:g} s") from None
        except OSError as error:
            known = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            raise Unreachable(known or "no connection") from None
        except UnicodeError:
            raise Unreachable("no such name") from None

    async def _through(self, proxy: SplitResult, connection: Connection) -> None:
        """A tunnel, and TLS in it."""
        host = self.url.netloc if self.url.port else f"{self.url.netloc}:{PORTS[self.url.scheme]}"
        lines = [f"CONNECT {host} HTTP/1.1", f"Host: {host}", *authorization(proxy), "\r\n"]
        reply = Response(2**16, tunnel=True)
        try:
            await connection.exchange("\r\n".join(lines).encode(), reply)
        except Broken as error:
            raise Unreachable(f"the proxy {proxy.hostname}: {error}") from None
        if not (200 <= reply.status < 300 and reply.keeps):
            connection.transport.abort()
            raise Unreachable(f"the proxy {proxy.hostname} answered {reply.status}")
        made = await connection.loop.start_tls(
            connection.transport, connection, self.trust, server_hostname=self.url.hostname
        )
        assert made is not None
        connection.transport = made

    @cached_property
    def trust(self) -> ssl.SSLContext:
        """The certificates that this machine trusts (or SSL_CERT_FILE names); read once."""
        return ssl.create_default_context()


def racing(loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    """For a host with several addresses: the next is tried when one is slow. uvloop tries them one by one."""
    return {"happy_eyeballs_delay": 0.25} if isinstance(loop, asyncio.BaseEventLoop) else {}


def authorization(proxy: SplitResult) -> list[str]:
    """The header that a proxy with a user in its address wants."""
    if proxy.username is None:
        return []
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [f"Proxy-Authorization: Basic {b64encode(user.encode()).decode()}"]
