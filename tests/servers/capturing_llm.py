"""An endpoint that gives replies one after the other, and keeps all that it was sent."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from servers.openai_server import completion, serve_app


@asynccontextmanager
async def endpoint(replies: list[str]) -> AsyncIterator[tuple[str, list[str]]]:
    """Where an LLM gives these replies, and all that it is sent."""
    bodies: list[str] = []

    async def chat(request: web.Request) -> web.Response:
        bodies.append(await request.text())
        text = replies.pop(0) if replies else "Final answer: none\nBecause: nothing"
        return web.json_response(completion(json.loads(bodies[-1]), text, "m"))

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", chat)
    async with serve_app(app) as origin:
        yield f"m@{origin}/v1", bodies
