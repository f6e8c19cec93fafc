"""Too many requests: everybody is answered in the end, whatever the server says, or does not say, about when."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from decisor.errors import LLMError
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.retry import Retries
from decisor.llms.shared import limit_concurrency
from servers.fault_plays import status
from servers.fault_server import ASK, faulty
from servers.openai_server import completion, serve_app

CASES = 51


@dataclass
class Limiter:
    """Answers ``many`` requests in each ``seconds``, and refuses the others with ``headers``."""

    many: int
    seconds: float
    headers: dict[str, str]
    answered: deque[float] = field(default_factory=deque)
    refused: int = 0

    async def chat(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        now = time.monotonic()
        while self.answered and now - self.answered[0] > self.seconds:
            self.answered.popleft()
        if len(self.answered) >= self.many:
            self.refused += 1
            return web.json_response({"error": {"message": "slow down"}}, status=429, headers=self.headers)
        self.answered.append(now)
        return web.json_response(completion(body, "Lyon", "m"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Retry-After": "0"},
        {"Retry-After": "-3"},
        {"Retry-After-Ms": "1"},
        {"Retry-After": "Wed, 21 Oct 2015 07:28:05 GMT"},
        {"Retry-After": "soon"},
    ],
)
@pytest.mark.parametrize("at_once", [CASES, 8])
async def test_every_call_of_a_crowd_is_answered_within_its_deadline(headers: dict[str, str], at_once: int) -> None:
    limiter = Limiter(8, 0.4, headers)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", limiter.chat)
    async with serve_app(app) as origin:
        retries = Retries(first_seconds=0.02, most_seconds=1.0)
        (llm,) = limit_concurrency([OpenAICompatible("m", f"{origin}/v1", seconds=60.0, retries=retries)], at_once)
        replies = await asyncio.gather(*(llm.complete(ASK) for _ in range(CASES)))
        await llm.close()
    assert [reply.text for reply in replies] == ["Lyon"] * CASES
    assert limiter.refused > 0
    assert limiter.refused < 20 * CASES, "refusals slow the crowd down"


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{"Retry-After": "0"}, {"Retry-After": "-1"}, {"Retry-After-Ms": "0.01"}, None])
@pytest.mark.parametrize("code", [429, 503])
async def test_a_wait_of_nothing_leaves_our_own_pause_as_it_is(code: int, headers: dict[str, str] | None) -> None:
    """Pauses are random from 0 on: of many, as long in sum as they should be at the least."""
    async with faulty(*[status(code, headers=headers)] * 40) as server:
        retries = Retries(41, 0.02, most_seconds=0.02, breaks_at=99)
        llm = server.llm(retries=retries)
        await llm.complete(ASK)
        await llm.close()
    assert server.asked == 41
    assert server.at[-1] - server.at[0] > 0.2  # 0.4 in the mean, with a deviation of 0.04


async def test_attempts_of_either_kind_can_be_set() -> None:
    async with faulty(*[status(429)] * 3, *[status(500)] * 9) as server:
        llm = server.llm(retries=Retries(attempts=2, first_seconds=0.01, rate_attempts=3))
        with pytest.raises(LLMError, match="3 attempts") as caught:
            await llm.complete(ASK)
        with pytest.raises(LLMError, match="2 attempts") as again:
            await llm.complete(ASK)
        llm.endpoint.retries.attempts = 4
        with pytest.raises(LLMError, match="4 attempts"):
            await llm.complete(ASK)
        await llm.close()
    assert (caught.value.kind, again.value.kind, server.asked) == ("rate", "server", 9)


@pytest.mark.slow
async def test_a_rate_limit_that_lasts_ends_with_the_time_of_the_call_as_what_it_is() -> None:
    async with faulty(*[status(429)] * 200) as server:
        llm = server.llm(seconds=3.0, retries=Retries(first_seconds=0.05))
        with pytest.raises(LLMError) as caught:
            await llm.complete(ASK)
        await llm.close()
    assert caught.value.kind in ("rate", "timeout") and not caught.value.permanent
    assert server.asked > 1
