"""A local OpenAI-compatible chat server around a function, for tests.

The function gets the request's JSON body and returns the text to answer with; stop words are honoured, as an endpoint
would. Tools are refused, as a server refuses them whose model has no template for them. ``serve`` runs in the test's
own event loop; ``serve_threaded`` in a thread of its own, for tests that block (a command-line subprocess). Both yield
a base URL that ends in ``/v1``.

    async with serve(lambda request: "Lyon") as base_url: ...
    with serve_threaded(lambda request: "Lyon") as base_url: ...
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiohttp import web

Reply = Callable[[dict[str, Any]], str]


@asynccontextmanager
async def serve(reply: Reply, model: str = "test-model") -> AsyncIterator[str]:
    """Serve until the block ends, on a free port of the loopback interface."""

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        if "tools" in body:
            return web.json_response({"error": {"message": "This model does not support tools."}}, status=400)
        return web.json_response(completion(body, reply(body), model))

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": model, "object": "model"}]})

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    async with serve_app(app) as origin:
        yield f"{origin}/v1"


@asynccontextmanager
async def serve_app(app: web.Application, secure: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Any aiohttp application on a free loopback port; yields its origin, ``http://127.0.0.1:PORT``, or https."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=secure)
    await site.start()
    try:
        yield f"http{'s' if secure else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextmanager
def serve_threaded(reply: Reply, model: str = "test-model") -> Iterator[str]:
    """As ``serve``, for code that blocks. ``reply`` is called in the server's thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    context = serve(reply, model)
    base_url = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(60)
    try:
        yield base_url
    finally:
        asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def completion(body: dict[str, Any], text: str, model: str) -> dict[str, Any]:
    """A chat completion object that says ``text``, cut at the request's stop words, ``n`` times."""
    stop = body.get("stop") or []
    for word in [stop] if isinstance(stop, str) else stop:
        text = text.partition(word)[0]
    prompt = sum(len(str(message.get("content") or "")) for message in body.get("messages", [])) // 4
    message = {"role": "assistant", "content": text}
    count = body.get("n") or 1
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model") or model,
        "choices": [{"index": i, "message": message, "finish_reason": "stop"} for i in range(count)],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": count * (len(text) // 4),
            "total_tokens": prompt + count * (len(text) // 4),
        },
    }
