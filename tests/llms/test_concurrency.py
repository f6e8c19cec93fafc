"""Calls at once: never more than allowed, fewer after a refusal, more again after successes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.shared import SLOWED_SECONDS, ConcurrencyLimit, limit_concurrency
from decisor.types import Completion, Message, Sampling
from servers.openai_server import completion, serve_app

HI = [Message("user", "Hi")]


@dataclass
class Crowd:
    """Counts how many calls are under way."""

    name: str = "m"
    now: int = 0
    most: int = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return Completion(("ok",))


async def test_no_more_calls_are_under_way_than_allowed_and_all_are_made() -> None:
    crowd = Crowd()
    (llm,) = limit_concurrency([crowd], 5)
    replies = await asyncio.gather(*(llm.complete(HI) for _ in range(100)))
    assert len(replies) == 100 and crowd.most == 5
    assert all(reply.usage.seconds > 0 for reply in replies)


async def test_calls_that_are_cancelled_while_they_wait_leave_no_place_taken() -> None:
    crowd = Crowd()
    (llm,) = limit_concurrency([crowd], 2)
    limit = llm.concurrency
    assert limit is not None
    tasks = [asyncio.create_task(llm.complete(HI)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (limit.running, len(limit.waiting)) == (0, 0)
    assert (await llm.complete(HI)).text == "ok"


def test_one_crowd_of_refusals_halves_the_limit_once_and_successes_raise_it_to_the_most() -> None:
    limit = ConcurrencyLimit(64)
    for _ in range(10):
        limit.slower()
    assert limit.limit == 32
    limit.slowed -= 2 * SLOWED_SECONDS
    limit.slower()
    assert limit.limit == 16
    for _ in range(16):
        limit.faster()
    assert 16.9 < limit.limit < 17.1
    for _ in range(10_000):
        limit.faster()
    assert limit.limit == 64


@dataclass
class Refusing:
    """A server that refuses what goes beyond ``most`` calls at once."""

    most: int
    now: int = 0
    refused: int = 0
    seen: list[int] = field(default_factory=list)

    async def chat(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        self.now += 1
        self.seen.append(self.now)
        try:
            await asyncio.sleep(0.005)
            if self.now > self.most:
                self.refused += 1
                return web.json_response({"error": {"message": "slow down"}}, status=429)
            return web.json_response(completion(body, "ok", "m"))
        finally:
            self.now -= 1


async def test_a_provider_that_refuses_a_crowd_gets_smaller_ones_and_every_call_is_answered() -> None:
    server = Refusing(8)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.chat)
    async with serve_app(app) as origin:
        one, two = (OpenAICompatible(name, f"{origin}/v1") for name in ("a", "b"))
        one.endpoint.retries.first_seconds = 0.01
        llms = limit_concurrency([one, two], 16)
        assert (shared := llms[0].concurrency) is llms[1].concurrency
        replies = await asyncio.gather(*(llms[at % 2].complete(HI) for at in range(150)))
        for llm in llms:
            await llm.close()
    assert [reply.text for reply in replies] == ["ok"] * 150
    assert max(server.seen) <= 16 and server.refused
    assert shared is not None and shared.slowed > 0
