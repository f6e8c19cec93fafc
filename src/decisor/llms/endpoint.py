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
from urllib.parse import SplitResult, urlsplit, urlunsplit

from decisor.errors import LLMError, SetupError
from decisor.llms.prices import Price, add_dollars, estimate_prompt_usage
from decisor.llms.proxies import drop_user, find_proxy
from decisor.llms.retry import Retries, RetryableError, build_fault, shorten_complaint
from decisor.system.secrets import Secret, redact
from decisor.types import Completion, Usage

if TYPE_CHECKING:
    from decisor.llms.http import HttpClient

T = TypeVar("T")


@dataclass
class Endpoint:
    """An address that JSON is posted to. ``secrets`` must never be seen."""

    url: str
    headers: Mapping[str, Secret | str] = field(default_factory=dict)
    max_bytes: int = 8 * 2**20
    """Of a reply, as it is sent and as it is unpacked."""
    retries: Retries = field(default_factory=Retries)
    connect_seconds: float = 10.0
    """For each new connection."""
    connections: int = 0
    """At once; 0 means half of the files that this process may have open."""

    def __post_init__(self) -> None:
        parts = parse_address(self.url)
        # A line end within a key would end its header, so such a key is refused before it is sent.
        if not all(text.isascii() and text.isprintable() for text in map(reveal_text, self.headers.values())):
            raise SetupError(f"The key for {parts.hostname} holds characters that no key has. Was it copied whole?")
        self.where = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
        self.secrets = [value for value in self.headers.values() if isinstance(value, Secret)]
        self.proxy = find_proxy(parts)
        self._client: HttpClient | None = None

    async def post(
        self, body: Mapping[str, object], read: Callable[[object], T], ends: float, bill: list[Usage], url: str = ""
    ) -> T:
        """Post until ``read`` accepts the reply. ``read`` raises LLMError or RetryableError for an unusable reply.

        ``bill`` collects wasted usage: the count of an unusable reply, and an estimate of the prompt where
        the reply was lost on the way. ``url``: another one of the same host.

        Raises:
            LLMError: as sorted out by ``build_fault``; its text holds no key.
        """
        payload = json.dumps(body).encode()
        # The same key for all attempts: a provider that knows it does not bill a request twice.
        headers = {"Idempotency-Key": urandom(16).hex()}
        return await self.retries.call(partial(self._once, url or self.url, payload, headers, read, bill), ends)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def clean(self, error: LLMError) -> LLMError:
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
        except LLMError as error:
            if error.used.tokens:
                bill.append(error.used)
            # from None: the cause may hold the request with its key.
            raise self.clean(error) from None

    def read(self, body: bytes, payload: bytes, read: Callable[[object], T]) -> T:
        """Parse a whole reply and apply ``read``; raise RetryableError if it is no JSON.

        Raises the errors of ``read`` too.
        """
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            # A web page comes from a proxy or a wrong address, so no tokens were used for it.
            page = body[:200].lstrip()[:1] == b"<"
            problem = RetryableError(
                f"{self.where} sent {'a web page' if page else 'no valid JSON'} instead of a completion.",
                used=Usage() if page else estimate_prompt_usage(payload),
            )
        else:
            return read(content)
        raise problem  # within the handler its context would hold the body

    def opened(self) -> HttpClient:
        """Return the connections of this event loop. Connections of another loop are of no use in it."""
        if self._client is None or self._client.loop is not asyncio.get_running_loop():
            from decisor.llms.http import HttpClient

            self._client = HttpClient(self, {name: reveal_text(value) for name, value in self.headers.items()})
        return self._client


def open_endpoint(
    url: str,
    key: str | None,
    *,
    max_bytes: int,
    retries: Retries | None = None,
    key_header: str = "Authorization",
    headers: Mapping[str, str] | None = None,
) -> Endpoint:
    """Open the endpoint of an API. ``key``: sent as a bearer token, in another ``key_header`` as it is."""
    key = (key or "").strip()
    sent: dict[str, Secret | str] = {"User-Agent": "decisor", **(headers or {})}
    if key:
        sent[key_header] = Secret(f"Bearer {key}" if key_header == "Authorization" else key)
    endpoint = Endpoint(url, sent, max_bytes, retries or Retries())
    if key:
        endpoint.secrets.append(Secret(key))
    return endpoint


def build_api_url(base_url: str, path: str) -> str:
    """Return the address of one path of an OpenAI-compatible API, of a base URL with or without it or /responses.

    >>> build_api_url("http://localhost:11434", "/embeddings")
    'http://localhost:11434/v1/embeddings'
    >>> build_api_url("https://api.example.com/v1/", "/chat/completions")
    'https://api.example.com/v1/chat/completions'
    """
    scheme, host, root, query, _ = parse_address(base_url.strip())
    root = root.rstrip("/").removesuffix(path).removesuffix("/responses") or "/v1"
    return urlunsplit((scheme, host, f"{root}{path}", query, ""))


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
    failure: LLMError
    try:
        async with clock or asyncio.timeout(seconds):
            reply = await act(ends, bill)
    except TimeoutError:
        failure = LLMError(
            f"{where} {'wrote nothing for' if clock else 'gave no reply within'} {seconds:g} s.", "timeout"
        )
    except LLMError as error:
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
