"""How many calls are under way at one provider, and the facts that an endpoint tells about itself.

The limit is halved when a provider is overloaded, and one more for each round of successes. llama.cpp's server, vLLM,
LM Studio, Ollama, OpenRouter and others tell their models, context length and calls at once at addresses of their own;
each is read once, quickly, and what does not answer tells nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from urllib.parse import urlsplit, urlunsplit

from decisor.llms.endpoint import Endpoint, reveal_text
from decisor.llms.prices import price_of_lm
from decisor.llms.providers import get_json
from decisor.llms.retry import Retries
from decisor.parsing.prompting import Ways, ways_of
from decisor.runtime.budget import pause_clocks
from decisor.runtime.call import ContextLength
from decisor.system.tasks import map_concurrently
from decisor.types import LM, Completion, Message, Pricing, Sampling

CONTEXTS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")
SECONDS = 3.0
SILENT = ("api.openai.com", "api.anthropic.com")
"""Hosts that do not tell."""


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """Facts that an endpoint tells about itself; 0 and '' for unknown ones. models: by name. context: tokens. slots:
    calls at once, of which ``at_work`` are taken. server: software that runs there.
    """

    models: tuple[str, ...] = ()
    context: int = 0
    slots: int = 0
    at_work: int = 0
    server: str = ""


def read_facts_at_url(url: str, model: str, headers: Mapping[str, str]) -> EndpointFacts:
    """Read the facts of the endpoint whose chat completions are at ``url``.

    Never raises for any state of the endpoint.
    """
    parts = urlsplit(url)
    if parts.hostname in SILENT:
        return EndpointFacts()
    path = parts.path.removesuffix("/chat/completions").removesuffix("/messages")
    base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    root = base.removesuffix("/v1")
    listed = get_json(f"{base}/models", headers, SECONDS)
    if listed is None:
        return EndpointFacts()
    rows = list(iterate_listed_rows(listed, "data"))
    names = tuple(str(row["id"]) for row in rows if isinstance(row.get("id"), str))
    mine = next((row for row in rows if row.get("id") == model), rows[0] if len(rows) == 1 else {})
    facts = EndpointFacts(names, first_number_field(mine, *CONTEXTS), server=str(mine.get("owned_by") or ""))
    if facts.server == "llamacpp":
        return add_llamacpp_facts(replace(facts, context=first_number_field(mine.get("meta"), "n_ctx")), root, headers)
    if facts.server == "library" or (not facts.context and parts.scheme != "https"):
        return add_local_server_facts(facts, root, model, headers)
    return facts


def add_llamacpp_facts(facts: EndpointFacts, root: str, headers: Mapping[str, str]) -> EndpointFacts:
    """Add the context of a slot and the number of slots of a llama.cpp server."""
    props = get_json(f"{root}/props", headers, SECONDS)
    if not isinstance(props, Mapping):
        return facts
    context = first_number_field(props.get("default_generation_settings"), "n_ctx") or first_number_field(
        props, "n_ctx"
    )
    listed = get_json(f"{root}/slots", headers, SECONDS)
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    at_work = sum(row.get("is_processing") is True for row in rows)
    return replace(
        facts,
        context=context or facts.context,
        slots=first_number_field(props, "total_slots") or len(rows),
        at_work=at_work,
    )


def add_local_server_facts(facts: EndpointFacts, root: str, model: str, headers: Mapping[str, str]) -> EndpointFacts:
    """Add the context of a model that Ollama has loaded, or that LM Studio lists."""
    for path, key, server in (("/api/ps", "models", "Ollama"), ("/api/v0/models", "data", "LM Studio")):
        for row in iterate_listed_rows(get_json(f"{root}{path}", headers, SECONDS), key):
            if model in (row.get("name"), row.get("model"), row.get("id")):
                return replace(facts, context=first_number_field(row, *CONTEXTS), server=server)
    return facts


def iterate_listed_rows(reply: object, key: str) -> Iterator[Mapping[str, object]]:
    listed = reply.get(key) if isinstance(reply, Mapping) else None
    for row in listed if isinstance(listed, list) else ():
        if isinstance(row, Mapping):
            yield row


def first_number_field(row: object, *names: str) -> int:
    """Return the first of these fields that is a positive count; 0 without one."""
    values = [row.get(name) for name in names] if isinstance(row, Mapping) else []
    return next((value for value in values if type(value) is int and 0 < value < 2**31), 0)


KNOWN: dict[tuple[str, str], ContextLength] = {}
"""By address and model, for the process."""


def context_length_at(endpoint: Endpoint, model: str) -> ContextLength:
    """Return the context length of this model there, which is looked for when first needed."""
    return KNOWN.setdefault((endpoint.url, model), ContextLength(lambda: read_endpoint_facts(endpoint, model).context))


def read_endpoint_facts(endpoint: Endpoint, model: str) -> EndpointFacts:
    """Read the facts of an endpoint; none if it is only reached through a proxy."""
    if endpoint.proxy is not None:
        return EndpointFacts()
    return read_facts_at_url(
        endpoint.url, model, {name: reveal_text(value) for name, value in endpoint.headers.items()}
    )


async def close_lm(lm: LM | None) -> None:
    """Close the connections of an LLM, if it has any."""
    close: Callable[[], Awaitable[None]] | None = getattr(lm, "close", None)
    if close is not None:
        await close()


NO_SLOTS: Mapping[str, int] = MappingProxyType({})
SLOWED_SECONDS = 1.0
"""Refusals within this time of a slow-down are about the same crowd."""


@dataclass
class ConcurrencyLimit:
    """A limit of ``most`` calls at once, lowered while the provider is overloaded. limit: calls at once just now (1 to
    ``most``). running: calls under way.
    """

    most: int
    limit: float = 0.0
    running: int = 0
    slowed: float = float("-inf")
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.limit = float(self.most)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place among the running calls, first come, first served."""
        with pause_clocks():
            await self._enter()
        try:
            yield
        finally:
            self.running -= 1
            self._admit()

    def slower(self) -> None:
        """Halve the limit, because the provider is overloaded."""
        now = time.monotonic()
        if now - self.slowed >= SLOWED_SECONDS:
            self.slowed = now
            self.limit = max(1.0, self.limit / 2)

    def faster(self) -> None:
        """Raise the limit after a reply, by one for each round of replies."""
        self.limit = min(float(self.most), self.limit + 1 / self.limit)
        self._admit()

    async def _enter(self) -> None:
        if not self.waiting and self.running < int(self.limit):
            self.running += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    self.waiting.remove(turn)
            else:  # it was let in at the same moment
                self.running -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self.waiting and self.running < int(self.limit):
            turn = self.waiting.popleft()
            if turn.cancelled():
                continue
            self.running += 1
            turn.set_result(None)


@dataclass(frozen=True)
class LimitedLM:
    """An LLM whose calls wait for a place before their deadline begins. ``seconds`` of usage leaves the wait out."""

    lm: LM
    at_once: ConcurrencyLimit

    @property
    def name(self) -> str:
        return self.lm.name

    @property
    def price(self) -> Pricing | None:
        return price_of_lm(self.lm)

    @property
    def ways(self) -> Ways | None:
        return ways_of(self.lm)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        async with self.at_once.place():
            began = time.monotonic()
            reply = await self.lm.complete(messages, sampling)
        self.at_once.faster()
        return replace(reply, usage=replace(reply.usage, seconds=round(time.monotonic() - began, 6)))

    async def close(self) -> None:
        await close_lm(self.lm)


async def find_slots(lms: Sequence[LM]) -> dict[str, int]:
    """Ask each endpoint how many calls it takes at once; return place -> slots, 0 if unknown."""
    endpoints = {endpoint.where: (endpoint, lm.name) for lm in lms if (endpoint := endpoint_of(lm)) is not None}

    async def look(place: str) -> int:
        return (await asyncio.to_thread(read_endpoint_facts, *endpoints[place])).slots

    return dict(zip(endpoints, await map_concurrently(look, endpoints), strict=True))


def endpoint_of(lm: LM) -> Endpoint | None:
    endpoint = getattr(lm, "endpoint", None)
    return endpoint if isinstance(endpoint, Endpoint) else None


def limit_concurrency(lms: Sequence[LM], most: int, slots: Mapping[str, int] = NO_SLOTS) -> list[LimitedLM]:
    """Put LLMs of one provider under one limit of calls and one retry layer. slots: of a place, since more calls than
    that would only wait there.
    """
    limits: dict[str, ConcurrencyLimit] = {}
    layers: dict[str, Retries] = {}
    limited = []
    for lm in lms:
        endpoint = endpoint_of(lm)
        place = lm.name if endpoint is None else endpoint.where
        at_once = limits.setdefault(place, ConcurrencyLimit(min(most, slots.get(place) or most)))
        if endpoint is not None:
            endpoint.retries = layers.setdefault(place, endpoint.retries)
            endpoint.retries.overloaded = at_once.slower
        limited.append(LimitedLM(lm, at_once))
    return limited
