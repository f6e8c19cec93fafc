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
from decisor.llms.prices import Price, add_dollars, estimate_prompt_usage
from decisor.llms.proxies import drop_user, find_proxy
from decisor.llms.retry import Retries, RetryableError, build_fault, shorten_complaint
from decisor.system.secrets import Secret, redact
from decisor.types import Completion, Usage

if TYPE_CHECKING:
    from decisor.llms.http import HttpClient, HttpTarget

T = TypeVar("T")


@dataclass
class Endpoint:
    """An address that JSON is posted to. ``secrets`` must never be seen.

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
        if not all(
            reveal_text(value).isascii() and reveal_text(value).isprintable() for value in self.headers.values()
        ):
            raise SetupError(f"The key for {parts.hostname} holds characters that no key has. Was it copied whole?")
        self.where = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
        self.secrets = [value for value in self.headers.values() if isinstance(value, Secret)]
        self.proxy = find_proxy(parts)
        self._client: HttpClient | None = None

    async def post(
        self, body: Mapping[str, object], read: Callable[[object], T], ends: float, bill: list[Usage], url: str = ""
    ) -> T:
        """Post until ``read`` accepts the reply. ``read`` raises LMError or RetryableError for an unusable reply.

        ``bill`` collects what was used in vain: the count of an unusable reply, and an estimate of the prompt where
        the reply was lost on the way. ``url``: another one of the same host.

        Raises:
            LMError: as sorted out by ``build_fault``; its text holds no key.
        """
        payload = json.dumps(body).encode()
        headers = {"Idempotency-Key": urandom(16).hex()}
        return await self.retries.call(partial(self._once, url or self.url, payload, headers, read, bill), ends)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def clean(self, error: LMError) -> LMError:
        """Redact the keys of an error, and put it on one line of bounded length."""
        error.args = (shorten_complaint(redact(str(error), self.secrets)),)
        return error

    async def _once(
        self, url: str, payload: bytes, headers: Mapping[str, str], read: Callable[[object], T], bill: list[Usage]
    ) -> T:
        try:
            reply = await self.opened().post(url, payload, headers, bill)
            if not 200 <= reply.status < 300:
                raise build_fault(reply.status, reply.headers, reply.body, self.where)
            return self.read(reply.body, payload, read)
        except LMError as error:
            if error.used.tokens:
                bill.append(error.used)
            raise self.clean(error) from None

    def read(self, body: bytes, payload: bytes, read: Callable[[object], T]) -> T:
        """Parse a whole reply and apply ``read``; raise RetryableError if it is no JSON.

        Raises the errors of ``read`` too.
        """
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            page = body[:200].lstrip()[:1] == b"<"
            problem = RetryableError(
                f"{self.where} sent {'a web page' if page else 'no valid JSON'} instead of a completion.",
                used=Usage() if page else estimate_prompt_usage(payload),
            )
        else:
            return read(content)
        raise problem

    def opened(self) -> HttpClient:
        """Return the connections of this event loop. Connections of another loop are of no use in it."""
        if self._client is None or self._client.loop is not asyncio.get_running_loop():
            from decisor.llms.http import HttpClient

            self._client = HttpClient(self._target())
        return self._client

    def _target(self) -> HttpTarget:
        from decisor.llms.http import HttpTarget

        return HttpTarget(
            url=self.url,
            where=self.where,
            headers={name: reveal_text(value) for name, value in self.headers.items()},
            proxy=self.proxy,
            max_bytes=self.max_bytes,
            connect_seconds=self.connect_seconds,
            connections=self.connections,
        )


async def run_within(
    seconds: float,
    act: Callable[[float, list[Usage]], Awaitable[Completion]],
    where: str,
    price: Price | None,
    clock: asyncio.Timeout | None = None,
) -> Completion:
    """Run ``act(ends, bill)`` under a wall clock that covers retries, pauses and a slow body. clock: a timeout that is
    set anew while something comes.

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
        return replace(reply, usage=sum((add_dollars(used, price) for used in bill), reply.usage)) if bill else reply
    failure.used = sum((add_dollars(used, price) for used in bill), Usage())
    raise failure


def reveal_text(value: Secret | str) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def parse_address(url: str) -> SplitResult:
    """Parse the address of an endpoint.

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
        raise SetupError(f"{redact(drop_user(url))!r} is no address of an endpoint; write http://HOST:PORT/v1")
    if parts.username is not None or parts.password is not None:
        raise SetupError(f"The address of {parts.hostname} holds a user or key. Put the key into the environment.")
    return parts
