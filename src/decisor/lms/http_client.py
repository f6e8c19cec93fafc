"""One POST at a time over aiohttp, for one endpoint and one event loop: a bounded body, no redirects, clear faults.

aiohttp's own errors hold the request with its key, so none is chained to ours. A connection on which something came
unasked would give that as the next reply: it is closed instead.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from io import BytesIO

import aiohttp
from yarl import URL

from decisor.calls.clock import connecting, in_line
from decisor.errors import LMError
from decisor.lms.http_body import TooLarge, Unreadable, pass_on, read_body, unpack, words_of_refusal
from decisor.lms.http_faults import Target, fault_of_transport, refusal_of_proxy
from decisor.lms.prices import prompt_usage
from decisor.lms.retry import Again
from decisor.types import Usage

IDLE_SECONDS = 15.0
"""A connection that was idle for longer may have been forgotten on the way, so it is not used again."""
MAX_FIELD = 2**16
LARGE_BODY = 2**20
MOST_CONNECTIONS = 2**16
CONNECTED: ContextVar[list[bool]] = ContextVar("CONNECTED")
"""Of the exchange under way: gets an item when it has its connection, on which the request leaves at once."""
Take = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Reply:
    """``headers`` by names in any case; ``body`` decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connector(aiohttp.TCPConnector):
    """Hands out no connection on which something came unasked."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[aiohttp.tracing.Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        with connecting():
            connection = await super().connect(req, traces, timeout)
            while connection.protocol is not None and connection.protocol.should_close:
                connection.close()
                connection = await super().connect(req, traces, timeout)
        CONNECTED.get().append(True)
        return connection


class HttpClient:
    """The connections to one endpoint, in the event loop that runs when it is made."""

    def __init__(self, target: Target) -> None:
        self.target, self.loop = target, asyncio.get_running_loop()
        # Not the session's own headers: those go to a proxy too, with the key among them.
        self.headers = {**target.headers, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        self.proxy_headers = target.proxy.headers() if target.proxy else {}
        if not target.url.startswith("https:"):
            self.headers |= self.proxy_headers
        self.room = asyncio.Semaphore(target.connections or most_connections())
        self.session = aiohttp.ClientSession(
            connector=Connector(limit=0, ssl=trust(target), keepalive_timeout=IDLE_SECONDS, ttl_dns_cache=300),
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
    ) -> Reply:
        """The whole reply, whatever its status. A call that is cut off after it was sent goes onto the bill.

        ``take`` gets a body that is a stream of events piece by piece, instead of the reply, until it says that this
        was the end.

        Raises:
            Again: it was lost, or is none; another try may succeed.
            LMError: it is too large, or nothing there can be trusted or reached as things are set.
        """
        proxy, problem, sent = self.target.proxy, LMError(""), list[bool]()
        CONNECTED.set(sent)
        await self._enter()
        try:
            return await self._exchange(url, payload, headers, take)
        except asyncio.CancelledError:
            if sent:
                bill.append(prompt_usage(payload))
            raise
        except LMError as error:  # of its body
            problem = error
        except aiohttp.ClientHttpProxyError as error:
            assert proxy is not None
            problem = refusal_of_proxy(error.status, error.message, proxy, self.target.where)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            problem = fault_of_transport(error, self.target, prompt_usage(payload))
        finally:
            self.room.release()
        raise problem

    async def _enter(self) -> None:
        """Take a place among the connections; waiting for it is no part of a run's time."""
        if self.room.locked():
            with in_line():
                await self.room.acquire()
        else:
            await self.room.acquire()

    async def _exchange(self, url: str, payload: bytes, headers: Mapping[str, str], take: Take | None) -> Reply:
        """Raises LMError, and what aiohttp raises."""
        proxy = self.target.proxy
        async with self.session.post(
            URL(url, encoded=True) if "%" in url else url,
            data=payload if len(payload) < LARGE_BODY else BytesIO(payload),
            headers={**self.headers, **headers},
            allow_redirects=False,
            proxy=proxy.url if proxy else None,
            proxy_headers=self.proxy_headers or None,
        ) as response:
            return await self._read(response, payload, take)

    def _is_page_of_proxy(self, response: aiohttp.ClientResponse) -> bool:
        """A proxy that knows the user, but not this password, may answer in the endpoint's place (tinyproxy does)."""
        is_passed_on = not self.target.url.startswith("https:")
        return is_passed_on and bool(self.proxy_headers) and response.content_type == "text/html"

    async def close(self) -> None:
        await self.session.close()

    async def _read(self, response: aiohttp.ClientResponse, payload: bytes, take: Take | None) -> Reply:
        """Raises LMError, and what aiohttp raises."""
        where, status, most = self.target.where, response.status, self.target.max_bytes
        headers = response.headers
        encoding = headers.get("Content-Encoding", "")
        if not 200 <= status < 600 or status == 304:
            response.close()
            raise Again(f"{where} answered {status}, which is no answer to what was asked.",
                        used=prompt_usage(payload))  # fmt: skip
        proxy = self.target.proxy
        if proxy is not None and (status == 407 or (status == 401 and self._is_page_of_proxy(response))):
            raise refusal_of_proxy(status, response.reason or "", proxy, where)
        if not 200 <= status < 300:
            return Reply(status, headers, await words_of_refusal(response, encoding))
        try:
            if take is not None and not encoding and "json" not in response.content_type:
                await pass_on(response, take, most)
                return Reply(status, headers, b"")
            return Reply(status, headers, unpack(await read_body(response, most), encoding, most))
        except TooLarge:
            problem = LMError(f"{where} sent more than {most} bytes; reading stopped.", "size",
                              used=prompt_usage(payload))  # fmt: skip
        except Unreadable as error:
            problem = Again(f"{where} sent {error}.", used=prompt_usage(payload))
        raise problem


def trust(target: Target) -> ssl.SSLContext | bool:
    """The certificates that this machine trusts (or SSL_CERT_FILE names), read where TLS is spoken."""
    speaks = target.url.startswith("https:") or (target.proxy is not None and target.proxy.url.startswith("https:"))
    return ssl.create_default_context() if speaks else True


def most_connections() -> int:
    """Half of the files that this process may have open: more than an evaluation asks for at once, where it can be."""
    with suppress(ImportError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(1, soft // 2) if soft > 0 else MOST_CONNECTIONS
    return MOST_CONNECTIONS
