"""One HTTP endpoint: pooled connections, one retry layer, a deadline, a size cap, no redirects, no leaked keys."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult, urlsplit

from decisor.errors import LMError, SetupError
from decisor.lms.faults import fault, shortened
from decisor.lms.prices import Price, prompt_usage, with_dollars
from decisor.lms.proxies import proxy_for, without_user
from decisor.lms.retry import Again, Retries
from decisor.secrets import Secret, redact
from decisor.types import Completion, Usage

if TYPE_CHECKING:
    from decisor.lms.http_client import HttpClient
    from decisor.lms.http_faults import Target

T = TypeVar("T")


@dataclass
class Endpoint:
    """Where JSON is posted to. ``secrets`` are what must never be seen.

    ``max_bytes``: of a reply, as it is sent and as it is unpacked. ``connect_seconds``: for each new connection.
    ``connections``: at once; 0: half of the files that this process may have open.
    """

    url: str
    headers: Mapping[str, Secret | str] = field(default_factory=dict)
    max_bytes: int = 8 * 2**20
    retries: Retries = field(default_factory=Retries)
    connect_seconds: float = 10.0
    connections: int = 0

    def __post_init__(self) -> None:
        parts = parse_address(self.url)
        if not all(plain(value).isascii() and plain(value).isprintable() for value in self.headers.values()):
            raise SetupError(f"The key for {parts.hostname} holds characters that no key has. Was it copied whole?")
        self.where = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
        self.secrets = [value for value in self.headers.values() if isinstance(value, Secret)]
        self.proxy = proxy_for(parts)
        self._client: HttpClient | None = None

    async def post(
        self, body: Mapping[str, object], read: Callable[[object], T], ends: float, bill: list[Usage], url: str = ""
    ) -> T:
        """Post until ``read`` accepts the reply; ``read`` raises LMError or Again where the reply is not usable.

        ``bill`` collects what was used in vain: the count of an unusable reply, and an estimate of the prompt where
        the reply was lost on the way. ``url``: another one of the same host.

        Raises:
            LMError: as sorted out by ``faults``; its text holds no key.
        """
        payload = json.dumps(body).encode()
        headers = {"Idempotency-Key": urandom(16).hex()}
        return await self.retries.call(partial(self._once, url or self.url, payload, headers, read, bill), ends)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def clean(self, error: LMError) -> LMError:
        """The same error with keys redacted, on one line of bounded length."""
        error.args = (shortened(redact(str(error), self.secrets)),)
        return error

    async def _once(
        self, url: str, payload: bytes, headers: Mapping[str, str], read: Callable[[object], T], bill: list[Usage]
    ) -> T:
        try:
            reply = await self.opened().post(url, payload, headers, bill)
            if not 200 <= reply.status < 300:
                raise fault(reply.status, reply.headers, reply.body, self.where)
            return self.read(reply.body, payload, read)
        except LMError as error:
            if error.used.tokens:
                bill.append(error.used)
            raise self.clean(error) from None

    def read(self, body: bytes, payload: bytes, read: Callable[[object], T]) -> T:
        """What ``read`` makes of a whole reply; raises what it raises, and Again where that is no JSON."""
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            page = body[:200].lstrip()[:1] == b"<"
            problem = Again(f"{self.where} sent {'a web page' if page else 'no valid JSON'} instead of a completion.",
                            used=Usage() if page else prompt_usage(payload))  # fmt: skip
        else:
            return read(content)
        raise problem

    def opened(self) -> HttpClient:
        """The connections of this event loop: what belongs to another one is of no use in it."""
        if self._client is None or self._client.loop is not asyncio.get_running_loop():
            from decisor.lms.http_client import HttpClient

            self._client = HttpClient(self._target())
        return self._client

    def _target(self) -> Target:
        from decisor.lms.http_faults import Target

        return Target(
            url=self.url,
            where=self.where,
            headers={name: plain(value) for name, value in self.headers.items()},
            proxy=self.proxy,
            max_bytes=self.max_bytes,
            connect_seconds=self.connect_seconds,
            connections=self.connections,
        )


async def within(
    seconds: float, act: Callable[[float, list[Usage]], Awaitable[Completion]], where: str, price: Price | None,
    clock: asyncio.Timeout | None = None,
) -> Completion:  # fmt: skip
    """``act(ends, bill)`` under a wall clock that covers everything: retries, pauses, a body that only drips.
    ``clock``: one that is set anew while something comes.

    What went onto the bill is part of the usage of the reply, or of the error.
    """
    ends = time.monotonic() + seconds
    bill: list[Usage] = []
    failure: LMError
    try:
        async with clock or asyncio.timeout(seconds):
            reply = await act(ends, bill)
    except TimeoutError:
        failure = LMError(
            f"{where} {'wrote nothing for' if clock else 'gave no reply within'} {seconds:g} s.", "timeout"
        )
    except LMError as error:
        failure = error
    else:
        return replace(reply, usage=sum((with_dollars(used, price) for used in bill), reply.usage)) if bill else reply
    failure.used = sum((with_dollars(used, price) for used in bill), Usage())
    raise failure


def plain(value: Secret | str) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def parse_address(url: str) -> SplitResult:
    """
    >>> parse_address("http://[::1]:8000/v1").port
    8000

    Raises:
        SetupError: it is no address that can be posted to, or holds a user or key.
    """
    try:
        parts = urlsplit(url)
        possible = parts.port != 0 and re.fullmatch(r"(?:.*@)?[A-Za-z0-9._\[\]:-]+", parts.netloc) is not None
    except ValueError:
        parts, possible = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not possible:
        raise SetupError(f"{redact(without_user(url))!r} is no address of an endpoint; write http://HOST:PORT/v1")
    if parts.username is not None or parts.password is not None:
        raise SetupError(f"The address of {parts.hostname} holds a user or key. Put the key into the environment.")
    return parts
