"""A server that plays a list of faults, one a request, and then answers well. It notes when and what it was asked."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from aiohttp import web

from decisor.lms.http import OpenAICompatible
from decisor.lms.retry import Retries
from decisor.types import Message
from servers.openai_server import completion, serve_app

KEY = "sk-canary-0123456789abcdefghij"
ASK = (Message("user", "Where?"),)
Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Faulty:
    """``at``: when each request came; ``bodies``: what it held, as sent; ``headers``: of the last one."""

    origin: str = ""
    at: list[float] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> int:
        return len(self.at)

    def lm(self, seconds: float = 10.0, **settings: Any) -> OpenAICompatible:
        settings.setdefault("retries", Retries(first_seconds=0.02))
        return OpenAICompatible("m", f"{self.origin}/v1", KEY, seconds, **settings)


@asynccontextmanager
async def faulty(*faults: Fault) -> AsyncIterator[Faulty]:
    seen = Faulty()

    async def chat(request: web.Request) -> web.StreamResponse:
        seen.at.append(time.monotonic())
        seen.sent.append(await request.read())
        seen.bodies.append(await request.json())
        seen.headers = dict(request.headers)
        if seen.asked <= len(faults):
            return await faults[seen.asked - 1](request)
        return web.json_response(completion(seen.bodies[-1], "Lyon", "m"))

    app = web.Application()
    app.router.add_post("/{path:.*}", chat)
    async with serve_app(app) as seen.origin:
        yield seen


def status(number: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Fault:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"message": message, **error}}, status=number, headers=headers)

    return answer


def body(data: Any, code: int = 200) -> Fault:
    async def answer(request: web.Request) -> web.StreamResponse:
        if isinstance(data, bytes):
            return web.Response(body=data, status=code, content_type="application/json")
        return web.json_response(data, status=code)

    return answer


def wait_until(seconds: float, ahead: float) -> Fault:
    """429 with Retry-After as a date, from a server whose clock runs ``ahead``."""

    async def answer(request: web.Request) -> web.StreamResponse:
        now = time.time() + ahead
        return web.Response(status=429, headers={
            "Date": formatdate(now, usegmt=True), "Retry-After": formatdate(now + seconds, usegmt=True)})  # fmt: skip

    return answer


async def truncated(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [{"message"')
    assert request.transport is not None
    request.transport.close()
    return response


async def drips(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(200):
        await response.write(b" ")
        await asyncio.sleep(0.05)
    return response


async def hangs(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(10)
    return web.Response()


async def resets(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def bombs(request: web.Request) -> web.StreamResponse:
    """400 MB of blanks in 400 KB."""
    data = gzip.compress(b" " * 20_000_000) * 20
    return web.Response(body=data, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})


async def zips(request: web.Request) -> web.StreamResponse:
    import json

    data = gzip.compress(json.dumps(completion(await request.json(), "Lyon", "m")).encode())
    return web.Response(body=data, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})


async def echoes_key(request: web.Request) -> web.StreamResponse:
    """As some providers do: the key is in the error."""
    said = f"Incorrect API key provided: {request.headers['Authorization']}"
    return web.json_response({"error": {"message": said, "code": "invalid_api_key"}}, status=401)


def redirects(to: str) -> Fault:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=307, headers={"Location": to})

    return answer
