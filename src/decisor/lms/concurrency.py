"""How many calls are under way at one provider: halved when it is overloaded, one more for each round of successes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from decisor.aio import each
from decisor.calling import Ways, ways_of
from decisor.calls.clock import in_line
from decisor.lms.closing import close_lm
from decisor.lms.endpoint import Endpoint
from decisor.lms.facts import facts_at
from decisor.lms.prices import price_of_lm
from decisor.lms.retry import Retries
from decisor.types import LM, Completion, Message, Pricing, Sampling

NO_SLOTS: Mapping[str, int] = MappingProxyType({})
SLOWED_SECONDS = 1.0
"""Refusals within this time of a slow-down are about the same crowd."""


@dataclass
class ConcurrencyLimit:
    """At most ``most`` at once. ``limit``: how many just now (1 to ``most``); ``running``: how many are."""

    most: int
    limit: float = 0.0
    running: int = 0
    slowed: float = float("-inf")
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.limit = float(self.most)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place among those that run, first come, first served."""
        with in_line():
            await self._enter()
        try:
            yield
        finally:
            self.running -= 1
            self._admit()

    def slower(self) -> None:
        """The provider said that it is too much."""
        now = time.monotonic()
        if now - self.slowed >= SLOWED_SECONDS:
            self.slowed = now
            self.limit = max(1.0, self.limit / 2)

    def faster(self) -> None:
        """It answered."""
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
    """An LM whose calls wait for a place before their deadline begins. ``seconds`` of usage leaves the wait out."""

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


async def slots_of(lms: Sequence[LM]) -> dict[str, int]:
    """Place -> how many calls it takes at once, for those that say so."""
    endpoints = {endpoint.where: (endpoint, lm.name) for lm in lms if (endpoint := endpoint_of(lm)) is not None}

    async def look(place: str) -> int:
        return (await asyncio.to_thread(facts_at, *endpoints[place])).slots

    return dict(zip(endpoints, await each(look, endpoints), strict=True))


def endpoint_of(lm: LM) -> Endpoint | None:
    endpoint = getattr(lm, "endpoint", None)
    return endpoint if isinstance(endpoint, Endpoint) else None


def limit_concurrency(lms: Sequence[LM], most: int, slots: Mapping[str, int] = NO_SLOTS) -> list[LimitedLM]:
    """The LMs, those of one provider under one limit of calls at once and behind one retry layer. ``slots``: of a
    place, where more calls than that would only wait there."""
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
