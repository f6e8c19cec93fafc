"""One HTTP endpoint that JSON is posted to.

It has pooled connections, one retry layer, a deadline, a size cap, no redirects and no leaked keys. ``Endpoint`` posts
JSON; ``HttpClient`` makes one POST at a time over aiohttp, for one endpoint and one event loop. The body of a reply is
bounded as it is sent and as it is unpacked. aiohttp's own errors hold the request with its key, so none is chained to
ours. A connection on which something came unasked would give that as the next reply: it is closed instead.

A fault of the connection becomes an LLMError that tells whether another try is worth it, and the remedy. A
reply that aiohttp cannot parse is to it a status 400 of its own making: here it is a broken reply, worth another try.
The proxy is the one that the environment names for a host: HTTPS_PROXY or HTTP_PROXY, else ALL_PROXY; none by
NO_PROXY.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from io import BytesIO
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from decisor.errors import LLMError
from decisor.llms.prices import estimate_prompt_usage
from decisor.llms.proxies import Proxy
from decisor.llms.retry import RetryableError
from decisor.runtime.budget import mark_while_connecting, pause_clocks
from decisor.types import Usage

REFUSAL_BYTES = 2**20
REFUSAL_SECONDS = 2.0
LAST_SECONDS = 0.2
"""Time for the end of a stream, after its last event."""


class TooLarge(Exception):
    """A body that is larger than allowed."""


class UndecodableBody(Exception):
    """A body whose encoding cannot be undone."""


async def read_bounded_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Read a body as it was sent; raise TooLarge before more than ``most`` bytes are held."""
    if (response.content_length or 0) > most:
        raise TooLarge
    parts, size = [], 0
    while part := await response.content.readany():
        parts.append(part)
        size += len(part)
        if size > most:
            raise TooLarge
    return b"".join(parts)


async def pass_body_on(response: aiohttp.ClientResponse, take: Callable[[bytes], bool], most: int) -> None:
    """Pass each piece of a body on until ``take`` says that it was the end.

    Raises TooLarge, and the errors of ``take``.
    """
    size = 0
    while part := await response.content.readany():
        size += len(part)
        if size > most:
            raise TooLarge
        if take(part):
            break
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(LAST_SECONDS):  # read to its end, a connection can be used again
            while await response.content.readany():
                pass


async def read_refusal_body(response: aiohttp.ClientResponse, encoding: str) -> bytes:
    """Read the body of a reply that is not 2xx; empty if it cannot be read. The status counts, whatever came after."""
    try:
        async with asyncio.timeout(REFUSAL_SECONDS):
            return unpack_body(await read_bounded_body(response, REFUSAL_BYTES), encoding, REFUSAL_BYTES)
    except (TooLarge, UndecodableBody, TimeoutError, aiohttp.ClientError, OSError):
        return b""


def unpack_body(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Undo the content encoding of a body.

    Raises UndecodableBody, or TooLarge before more than ``max_bytes`` are unpacked.

    >>> unpack_body(zlib.compress(b"hello"), "deflate", 5), unpack_body(b"hello", "Identity", 5)
    (b'hello', b'hello')
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity") or not body:
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise UndecodableBody("a reply in an encoding that was not asked for")
    # RFC 9110 says that deflate is the zlib format; its first byte ends in 8.
    bare = encoding == "deflate" and body[0] & 0x0F != 8  # some send deflate without the head of zlib
    stream = zlib.decompressobj(wbits=-15 if bare else 47)
    try:
        # At most one byte too many is unpacked, so a bomb of gigabytes costs nothing.
        data = stream.decompress(body, max_bytes + 1)
    except zlib.error:
        raise UndecodableBody("a reply that does not unpack") from None
    if len(data) > max_bytes:
        raise TooLarge
    if not stream.eof:
        raise UndecodableBody("half of a packed reply")
    return data


PASSING_OF_PROXY = {408, 429, 500, 502, 503, 504}


class HttpTarget(Protocol):
    """An endpoint as a client sees it; the fields are those of ``Endpoint``."""

    url: str
    where: str
    proxy: Proxy | None
    max_bytes: int
    connect_seconds: float
    connections: int


def build_transport_fault(error: Exception, target: HttpTarget, cost: Usage) -> LLMError:
    """Build the error for a fault of the connection. cost: of a request that the endpoint may have worked on."""
    where = target.where
    # From the narrow classes to the wide: several of aiohttp's errors are subclasses of others.
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return RetryableError(
            f"{where} cannot be reached (no connection within {target.connect_seconds:g} s).", "connection"
        )
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return unsafe_connection_error(where, error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        at_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
        return unreachable(where, error.os_error, target.proxy if at_proxy else None)
    if isinstance(error, aiohttp.InvalidURL | UnicodeError):
        return LLMError(f"{where} is no address that can be reached.", "connection", True)
    if isinstance(error, aiohttp.ClientResponseError):
        return RetryableError(f"{where} broke off: what it sent is no HTTP reply.", "connection", used=cost)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return RetryableError(f"{where} broke off: no reply came.", "connection", used=cost)
    if isinstance(error, aiohttp.ClientPayloadError):
        return RetryableError(f"{where} broke off: its reply is not whole.", "connection", used=cost)
    return RetryableError(f"{where} broke off ({type(error).__name__}).", "connection", used=cost)


def refusal_of_proxy(status: int, words: str, proxy: Proxy, where: str) -> LLMError:
    complaint = f"{where} is not reached: the proxy {proxy.place} answered {status}{f' {words}' if words else ''}."
    if status in PASSING_OF_PROXY:
        return RetryableError(complaint, "connection")
    advice = " It wants a user: http://USER:PASSWORD@HOST:PORT." if status in (401, 407) else ""
    return LLMError(
        f"{complaint}{advice} Correct the proxy of the environment, or name the host in NO_PROXY.", "connection", True
    )


def unreachable(where: str, error: Exception, proxy: Proxy | None) -> LLMError:
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return RetryableError(f"{where} cannot be reached (it ended the connection before it was safe).", "connection")
    if isinstance(error, ssl.SSLError):
        return unsafe_connection_error(where, error)
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number) if number and number > 0 else getattr(error, "strerror", None)
    through = f"the proxy {proxy.place}: " if proxy else ""
    return RetryableError(
        f"{where} cannot be reached ({through}{reason or 'no connection'}).",
        "connection",
        nobody=isinstance(error, ConnectionRefusedError | socket.gaierror),
    )


def unsafe_connection_error(where: str, error: Exception) -> LLMError:
    """Build the error for a connection whose other side TLS does not vouch for."""
    reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or type(error).__name__
    return LLMError(f"{where}: no safe connection ({reason}).", "connection", True)


IDLE_SECONDS = 15.0
"""A connection that was idle for longer may have been forgotten on the way, so it is not used again."""
MAX_FIELD = 2**16
LARGE_BODY = 2**20
MOST_CONNECTIONS = 2**16
CONNECTED: ContextVar[list[bool]] = ContextVar("CONNECTED")
"""Of the exchange under way: gets an item when it has its connection, on which the request leaves at once."""
Take = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP reply."""

    status: int
    headers: Mapping[str, str]
    """By names in any case."""
    body: bytes
    """With its content encoding undone."""


class Connector(aiohttp.TCPConnector):
    """A connection pool that closes connections on which something came unasked."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[aiohttp.tracing.Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        with mark_while_connecting():
            connection = await super().connect(req, traces, timeout)
            try:
                # Two turns of the loop: an end that has arrived is only then seen. llama.cpp closes after each stream.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                # should_close: it ended, or a reply came on the idle connection and would be taken for the next one's.
                while connection.protocol is not None and connection.protocol.should_close:
                    connection.close()
                    connection = await super().connect(req, traces, timeout)
            # Cancelled in between, nobody else has the connection to close it.
            except BaseException:
                connection.close()
                raise
        CONNECTED.get().append(True)
        return connection


class HttpClient:
    """The connections to one endpoint, for the event loop that runs at their creation."""

    def __init__(self, target: HttpTarget, headers: Mapping[str, str]) -> None:
        self.target, self.loop = target, asyncio.get_running_loop()
        # Not the session's own headers: those go to a proxy too, with the key among them.
        self.headers = {**headers, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        self.proxy_headers = target.proxy.headers() if target.proxy else {}
        if not target.url.startswith("https:"):
            self.headers |= self.proxy_headers
        proxy_url = target.proxy.url if target.proxy else ""
        # Reading the certificates that this machine trusts, or SSL_CERT_FILE names, takes 20 ms.
        speaks_tls = "https" in (urlsplit(target.url).scheme, urlsplit(proxy_url).scheme)
        self.room = asyncio.Semaphore(target.connections or max_connections())
        self.session = aiohttp.ClientSession(
            connector=Connector(
                limit=0,
                ssl=ssl.create_default_context() if speaks_tls else True,
                keepalive_timeout=IDLE_SECONDS,
                ttl_dns_cache=300,
            ),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=target.connect_seconds, sock_connect=target.connect_seconds
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=MAX_FIELD,
            max_field_size=MAX_FIELD,
        )

    async def post(
        self, url: str, payload: bytes, headers: Mapping[str, str], bill: list[Usage], take: Take | None = None
    ) -> HttpReply:
        """Post a request and return the whole reply, whatever its status.

        A call that is cut off after it was sent goes onto the bill.

        ``take`` gets a body that is a stream of events piece by piece, instead of the reply, until it says that this
        was the end.

        Raises:
            RetryableError: it was lost, or is none; another try may succeed.
            LLMError: it is too large, or nothing there can be trusted or reached as things are set.
        """
        proxy, problem, sent = self.target.proxy, LLMError(""), list[bool]()
        CONNECTED.set(sent)
        await self._enter()
        try:
            async with self.session.post(
                # yarl would rewrite an escape of a base URL, and send another path.
                URL(url, encoded=True) if "%" in url else url,
                # aiohttp warns of large bytes, which block the loop; a file is sent in pieces.
                data=payload if len(payload) < LARGE_BODY else BytesIO(payload),
                headers={**self.headers, **headers},
                allow_redirects=False,
                proxy=proxy.url if proxy else None,
                proxy_headers=self.proxy_headers or None,
            ) as response:
                return await self._read(response, payload, take)
        except asyncio.CancelledError:
            if sent:
                bill.append(estimate_prompt_usage(payload))
            raise
        except LLMError as error:  # of its body
            problem = error
        except aiohttp.ClientHttpProxyError as error:
            assert proxy is not None
            problem = refusal_of_proxy(error.status, error.message, proxy, self.target.where)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            problem = build_transport_fault(error, self.target, estimate_prompt_usage(payload))
        finally:
            self.room.release()
        raise problem

    async def _enter(self) -> None:
        """Take a place among the connections; the wait for it is no part of a run's time."""
        if self.room.locked():
            with pause_clocks():
                await self.room.acquire()
        else:
            await self.room.acquire()

    async def close(self) -> None:
        await self.session.close()

    async def _read(self, response: aiohttp.ClientResponse, payload: bytes, take: Take | None) -> HttpReply:
        """Read the reply of a response; raise LLMError, and the errors of aiohttp."""
        where, status, most = self.target.where, response.status, self.target.max_bytes
        headers = response.headers
        encoding = headers.get("Content-Encoding", "")
        # 304 answers a conditional request, which was never made.
        if not 200 <= status < 600 or status == 304:
            response.close()
            raise RetryableError(
                f"{where} answered {status}, which is no answer to what was asked.", used=estimate_prompt_usage(payload)
            )
        proxy = self.target.proxy
        # A proxy that knows the user, but not this password, may answer with a page of its own (tinyproxy does).
        is_passed_on = not self.target.url.startswith("https:") and bool(self.proxy_headers)
        is_page = is_passed_on and response.content_type == "text/html"
        if proxy is not None and (status == 407 or (status == 401 and is_page)):
            raise refusal_of_proxy(status, response.reason or "", proxy, where)
        if not 200 <= status < 300:
            return HttpReply(status, headers, await read_refusal_body(response, encoding))
        try:
            # One JSON object if the endpoint does not stream; a packed stream cannot be read in pieces.
            if take is not None and not encoding and "json" not in response.content_type:
                await pass_body_on(response, take, most)
                return HttpReply(status, headers, b"")
            return HttpReply(status, headers, unpack_body(await read_bounded_body(response, most), encoding, most))
        except TooLarge:
            problem = LLMError(
                f"{where} sent more than {most} bytes; reading stopped.", "size", used=estimate_prompt_usage(payload)
            )
        except UndecodableBody as error:
            problem = RetryableError(f"{where} sent {error}.", used=estimate_prompt_usage(payload))
        raise problem


def max_connections() -> int:
    """Return half of the files that this process may have open.

    More than an evaluation asks for at once, if possible.
    """
    with suppress(ImportError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(1, soft // 2) if soft > 0 else MOST_CONNECTIONS
    return MOST_CONNECTIONS
