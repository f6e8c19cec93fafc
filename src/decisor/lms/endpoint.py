"""One HTTP endpoint: pooled connections, one retry layer, a deadline, a size cap, no redirects, no leaked keys."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from decisor.errors import LMError, SetupError
from decisor.lms.faults import fault, shortened
from decisor.lms.prices import Price, priced
from decisor.lms.retry import Again, Retries
from decisor.secrets import Secret, redact
from decisor.types import Completion, Usage

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")
CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers by names in any case, and the decoded body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Endpoint:
    """Where JSON is posted to. ``secrets`` are what must never be seen; ``max_bytes`` is of decoded bytes."""

    url: str
    headers: Mapping[str, Secret | str] = field(default_factory=dict)
    max_bytes: int = 8 * 2**20
    retries: Retries = field(default_factory=Retries)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SetupError(f"{redact(self.url)!r} is no address of an endpoint; write http://HOST:PORT/v1")
        if parts.username is not None or parts.password is not None:
            raise SetupError(f"The address of {parts.hostname} holds a user or key. Put the key into the environment.")
        if not all(shown(value).isascii() and shown(value).isprintable() for value in self.headers.values()):
            raise SetupError(f"The key for {parts.hostname} holds characters that no key has. Was it copied whole?")
        self.where = parts.hostname + (f":{parts.port}" if parts.port else "")
        self.secrets = [value for value in self.headers.values() if isinstance(value, Secret)]
        self.proxy = None if is_loopback(parts.hostname) else proxy_for(parts.scheme, parts.hostname)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, body: Mapping[str, Any], read: Callable[[Any], T], ends: float, bill: list[Usage]) -> T:
        """Post until ``read`` accepts the reply; ``read`` raises LMError or Again where the reply is not usable.

        ``bill`` collects what was used in vain: the count of an unusable reply, and an estimate of the prompt where
        the reply was lost on the way.

        Raises:
            LMError: as sorted out by ``faults``; its text holds no key.
        """
        payload = json.dumps(body).encode()
        headers = {"Idempotency-Key": uuid4().hex}

        async def once() -> T:
            try:
                return await self._once(payload, headers, read)
            except LMError as error:
                if error.used.tokens:
                    bill.append(error.used)
                raise
            except asyncio.CancelledError:
                bill.append(sent(payload))
                raise

        return await self.retries.call(once, ends)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def clean(self, error: LMError) -> LMError:
        """The same error with keys redacted, on one line of bounded length."""
        error.args = (shortened(redact(str(error), self.secrets)),)
        return error

    async def _once(self, payload: bytes, headers: Mapping[str, str], read: Callable[[Any], T]) -> T:
        answer = await self._exchange(payload, headers)
        if not 200 <= answer.status < 300:
            raise self.clean(fault(answer.status, answer.headers, answer.body, self.where))
        try:
            reply = json.loads(answer.body)
        except (ValueError, RecursionError):
            page = answer.body[:200].lstrip()[:1] == b"<"
            problem = Again(f"{self.where} sent {'a web page' if page else 'no valid JSON'} instead of a completion.",
                            used=Usage() if page else sent(payload))  # fmt: skip
        else:
            try:
                return read(reply)
            except LMError as error:
                raise self.clean(error) from None
        raise problem

    async def _exchange(self, payload: bytes, headers: Mapping[str, str]) -> Answer:
        """One request. aiohttp's errors hold the request with its key, so none is chained to ours."""
        import aiohttp

        problem: LMError
        try:
            async with self._opened().post(
                self.url, data=payload, headers=headers, allow_redirects=False, proxy=self.proxy
            ) as response:
                return Answer(response.status, response.headers, await self._body(response))
        except LMError as error:  # of its body
            error.used = sent(payload)
            problem = error
        except aiohttp.ClientSSLError as error:
            problem = LMError(f"{self.where}: no safe connection ({type(error).__name__}).", "connection", True)
        except aiohttp.InvalidURL:
            problem = LMError(f"{self.where} is no valid address.", "connection", True)
        except aiohttp.ClientConnectorError as error:
            problem = Again(
                f"{self.where} cannot be reached ({error.os_error.strerror or 'no connection'}).", "connection"
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            lost = f"{self.where} broke off ({type(error).__name__})."
            problem = Again(lost, "connection", used=sent(payload))
        raise self.clean(problem)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            import aiohttp

            plain = {name: shown(value) for name, value in self.headers.items()}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=256, ttl_dns_cache=300),
                headers={**plain, "Content-Type": "application/json", "Accept-Encoding": "identity"},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """Decoded while reading, so that neither a huge reply nor a gzip bomb is ever held in memory."""
        encoding = response.headers.get("Content-Encoding", "identity").lower()
        if encoding not in ("identity", "gzip", "deflate", ""):
            raise Again(f"{self.where} sent its reply in an encoding that was not asked for.")
        unpack = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate") else None
        parts, size, wire = [], 0, 0
        async for chunk in response.content.iter_any():
            try:
                part = unpack.decompress(chunk, self.max_bytes + 1 - size) if unpack else chunk
            except zlib.error:
                raise Again(f"{self.where} sent a reply that does not unpack.") from None
            size += len(part)
            wire += len(chunk)
            if max(size, wire) > self.max_bytes:
                raise LMError(f"{self.where} sent more than {self.max_bytes} bytes; reading stopped.", "size")
            parts.append(part)
        if unpack and not unpack.eof:
            raise Again(f"{self.where} broke off in the middle of its reply.")
        return b"".join(parts)


async def within(
    seconds: float, act: Callable[[float, list[Usage]], Awaitable[Completion]], where: str, price: Price | None
) -> Completion:
    """``act(ends, bill)`` under a wall clock that covers everything: retries, pauses, a body that only drips.

    What went onto the bill is part of the usage of the reply, or of the error.
    """
    ends = time.monotonic() + seconds
    bill: list[Usage] = []
    failure: LMError
    try:
        async with asyncio.timeout(seconds):
            reply = await act(ends, bill)
    except TimeoutError:
        failure = LMError(f"{where} gave no reply within {seconds:g} s.", "timeout")
    except LMError as error:
        failure = error
    else:
        return replace(reply, usage=sum((priced(used, price) for used in bill), reply.usage)) if bill else reply
    failure.used = sum((priced(used, price) for used in bill), Usage())
    raise failure


def sent(payload: bytes) -> Usage:
    """What a request may have cost whose reply was lost: its prompt, at a token per four bytes."""
    return Usage(prompt_tokens=(len(payload) + 3) // 4)


def shown(value: Secret | str) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("localhost.example.com")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_for(scheme: str, host: str) -> str | None:
    """The proxy of the environment (HTTPS_PROXY, NO_PROXY, ...) for this host."""
    from urllib.request import getproxies, proxy_bypass

    return None if proxy_bypass(host) else getproxies().get(scheme)
