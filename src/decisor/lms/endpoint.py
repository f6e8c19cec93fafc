"""One HTTP endpoint: pooled connections, one retry layer, a deadline, a size cap, no redirects, no leaked keys."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from os import urandom
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

from decisor.errors import LMError, SetupError
from decisor.lms.connection import Connections, Unreachable, Unsafe, authorization
from decisor.lms.faults import fault, shortened
from decisor.lms.prices import Price, with_dollars
from decisor.lms.response import Broken, TooLarge, Unreadable, unpacked
from decisor.lms.retry import Again, Retries
from decisor.secrets import Secret, redact
from decisor.types import Completion, Usage

T = TypeVar("T")


@dataclass
class Endpoint:
    """Where JSON is posted to. ``secrets`` are what must never be seen; ``max_bytes`` is of decoded bytes."""

    url: str
    headers: Mapping[str, Secret | str] = field(default_factory=dict)
    max_bytes: int = 8 * 2**20
    retries: Retries = field(default_factory=Retries)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_place(parts):
            raise SetupError(f"{redact(self.url)!r} is no address of an endpoint; write http://HOST:PORT/v1")
        if parts.username is not None or parts.password is not None:
            raise SetupError(f"The address of {parts.hostname} holds a user or key. Put the key into the environment.")
        if not all(shown(value).isascii() and shown(value).isprintable() for value in self.headers.values()):
            raise SetupError(f"The key for {parts.hostname} holds characters that no key has. Was it copied whole?")
        self.where = parts.hostname + (f":{parts.port}" if parts.port else "")
        self.secrets = [value for value in self.headers.values() if isinstance(value, Secret)]
        proxy = None if is_loopback(parts.hostname) else proxy_for(parts.scheme, parts.hostname)
        self.connections = Connections(parts, proxy)
        self.head = Secret(head_of(parts, proxy, {name: shown(value) for name, value in self.headers.items()}))

    async def post(self, body: Mapping[str, Any], read: Callable[[Any], T], ends: float, bill: list[Usage]) -> T:
        """Post until ``read`` accepts the reply; ``read`` raises LMError or Again where the reply is not usable.

        ``bill`` collects what was used in vain: the count of an unusable reply, and an estimate of the prompt where
        the reply was lost on the way.

        Raises:
            LMError: as sorted out by ``faults``; its text holds no key.
        """
        payload = json.dumps(body).encode()
        headers = f"Idempotency-Key: {urandom(16).hex()}\r\n"

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
        await self.connections.close()

    def clean(self, error: LMError) -> LMError:
        """The same error with keys redacted, on one line of bounded length."""
        error.args = (shortened(redact(str(error), self.secrets)),)
        return error

    async def _once(self, payload: bytes, headers: str, read: Callable[[Any], T]) -> T:
        status, told, body = await self._exchange(payload, headers)
        if not 200 <= status < 300:
            raise self.clean(fault(status, told, body, self.where))
        try:
            reply = json.loads(body)
        except (ValueError, RecursionError):
            page = body[:200].lstrip()[:1] == b"<"
            problem = Again(f"{self.where} sent {'a web page' if page else 'no valid JSON'} instead of a completion.",
                            used=Usage() if page else sent(payload))  # fmt: skip
        else:
            try:
                return read(reply)
            except LMError as error:
                raise self.clean(error) from None
        raise problem

    async def _exchange(self, payload: bytes, headers: str) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers by names in lower case, and the decoded body."""
        problem: LMError
        request = f"{self.head.reveal()}{headers}Content-Length: {len(payload)}\r\n\r\n".encode() + payload
        try:
            reply = await self.connections.exchange(request, self.max_bytes)
            return reply.status, reply.headers, unpacked(reply.body, reply.headers, self.max_bytes)
        except TooLarge:
            problem = LMError(f"{self.where} sent more than {self.max_bytes} bytes; reading stopped.", "size",
                              used=sent(payload))  # fmt: skip
        except Unsafe as error:
            problem = LMError(f"{self.where}: no safe connection ({error}).", "connection", True)
        except Unreachable as error:
            problem = Again(f"{self.where} cannot be reached ({error}).", "connection")
        except Unreadable as error:
            problem = Again(f"{self.where} sent {error}.", used=sent(payload))
        except Broken as error:
            problem = Again(f"{self.where} broke off: {error}.", "connection", used=sent(payload))
        except OSError as error:
            lost = f"{self.where} broke off ({type(error).__name__})."
            problem = Again(lost, "connection", used=sent(payload))
        raise self.clean(problem)


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
        return replace(reply, usage=sum((with_dollars(used, price) for used in bill), reply.usage)) if bill else reply
    failure.used = sum((with_dollars(used, price) for used in bill), Usage())
    raise failure


def sent(payload: bytes) -> Usage:
    """What a request may have cost whose reply was lost: its prompt, at a token per four bytes."""
    return Usage(prompt_tokens=(len(payload) + 3) // 4)


def shown(value: Secret | str) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def is_place(parts: SplitResult) -> bool:
    """Whether the host and the port can stand in a request.

    >>> is_place(urlsplit("http://[::1]:80/v1")), is_place(urlsplit("http://a b/v1")), is_place(urlsplit("http://a:x/"))
    (True, False, False)
    """
    try:
        return parts.port != 0 and re.fullmatch(r"(?:.*@)?[A-Za-z0-9._\[\]:-]+", parts.netloc) is not None
    except ValueError:
        return False


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


def proxy_for(scheme: str, host: str) -> SplitResult | None:
    """The proxy of the environment (HTTPS_PROXY, NO_PROXY, ...) for this host.

    Raises:
        SetupError: it is of a kind that cannot be used.
    """
    from urllib.request import getproxies, proxy_bypass

    named = None if proxy_bypass(host) else getproxies().get(scheme)
    if not named:
        return None
    parts = urlsplit(named if "://" in named else f"http://{named}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(f"The proxy {redact(named)!r} of the environment is no http:// or https:// proxy. Correct it, "
                         f"or name {host} in NO_PROXY.")  # fmt: skip
    return parts


def head_of(url: SplitResult, proxy: SplitResult | None, headers: Mapping[str, str]) -> str:
    """The head of every request but for what differs. Without TLS a proxy wants the whole address.

    >>> head_of(urlsplit("http://h:8000/v1/a b?c=d"), None, {"X": "y"}).split("\\r\\n")[:3]
    ['POST /v1/a%20b?c=d HTTP/1.1', 'Host: h:8000', 'X: y']
    """
    safe = "/%:@!$&'()*+,;=~-._?"
    target = quote(url.path or "/", safe) + (f"?{quote(url.query, safe)}" if url.query else "")
    plain = proxy if url.scheme == "http" else None
    lines = [f"POST {f'http://{url.netloc}' if plain else ''}{target} HTTP/1.1", f"Host: {url.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [*(authorization(plain) if plain else []), "Content-Type: application/json", "Accept: */*"]
    return "\r\n".join([*lines, "Accept-Encoding: identity", ""])
