"""A local server that tells of itself what llama.cpp's does: its context, its slots; and keeps to both.

A token is four bytes of a prompt. ``most``: the calls that were under way at once; ``bodies``: what was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import Price
from servers.openai_server import completion, serve_app


@dataclass
class Llama:
    """``tells``: whether it says how long its context is, other than by refusing."""

    context: int = 8192
    slots: int = 1
    seconds: float = 0.0
    answer: Callable[[dict[str, Any]], str] = lambda body: "4"
    tells: bool = True
    origin: str = ""
    now: int = 0
    most: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    refusals: int = 0
    busy: bool = False

    def llm(self, **settings: Any) -> OpenAICompatible:
        return OpenAICompatible("m", f"{self.origin}/v1", price=Price(0.0, 0.0), **settings)

    async def models(self, request: web.Request) -> web.Response:
        meta = {"meta": {"n_ctx": self.context * self.slots}} if self.tells else {}
        return web.json_response({"data": [{"id": "m", "owned_by": "llamacpp", **meta}]})

    async def props(self, request: web.Request) -> web.Response:
        if not self.tells:
            return web.Response(status=404)
        return web.json_response({"default_generation_settings": {"n_ctx": self.context}, "total_slots": self.slots})

    async def listed_slots(self, request: web.Request) -> web.Response:
        return web.json_response([{"id": n, "is_processing": self.busy} for n in range(self.slots)])

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        tokens = sum(len(message["content"].encode()) for message in body["messages"]) // 4
        if tokens >= self.context:
            self.refusals += 1
            words = f"request ({tokens} tokens) exceeds the available context size ({self.context} tokens)"
            error = {
                "code": 400,
                "message": words,
                "type": "exceed_context_size_error",
                "n_prompt_tokens": tokens,
                "n_ctx": self.context,
            }
            return web.json_response({"error": error}, status=400)
        return web.json_response(completion(body, self.answer(body), "m"))


@asynccontextmanager
async def llama(**settings: Any) -> AsyncIterator[Llama]:
    """Until the block ends."""
    server = Llama(**settings)
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", server.chat)
    app.router.add_get("/v1/models", server.models)
    app.router.add_get("/props", server.props)
    app.router.add_get("/slots", server.listed_slots)
    async with serve_app(app) as server.origin:
        yield server
