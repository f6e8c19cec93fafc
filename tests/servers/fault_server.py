"""An OpenAI-compatible server that commits faults, one a request as scripted, and answers well after that.

It notes when each request came, its body and the hash of it. The faults themselves are in ``fault_plays`` (how each is
committed) and ``faults`` (all of them by name, with what a client must make of each).

    async with faulty(FAULTS["429_after"].play, FAULTS["reset"].play) as server:
        llm = server.llm()
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.retry import Retries
from decisor.types import Message
from servers.openai_server import completion, serve_app

KEY = "sk-canary-0123456789abcdefghij"
ASK = (Message("user", "Where?"),)
Play = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Faulty:
    """``at``: when each request came; ``bodies``: what it held; ``paths``: where it went; ``sent``: bodies as bytes;
    ``headers``: the last."""

    origin: str = ""
    at: list[float] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    @property
    def asked(self) -> int:
        return len(self.at)

    @property
    def hashes(self) -> list[str]:
        return [hashlib.sha256(body).hexdigest() for body in self.sent]

    @property
    def gaps(self) -> list[float]:
        """Seconds between a request and the next."""
        return [later - at for at, later in zip(self.at, self.at[1:], strict=False)]

    def llm(self, seconds: float = 10.0, **settings: Any) -> OpenAICompatible:
        settings.setdefault("retries", Retries(first_seconds=0.02))
        return OpenAICompatible("m", f"{self.origin}/v1", KEY, seconds, **settings)


@asynccontextmanager
async def faulty(
    *plays: Play | None, answer: Callable[[dict[str, Any]], str] = lambda _: "Lyon"
) -> AsyncIterator[Faulty]:
    """``plays`` in order, one a request (None: answer well); ``answer`` for each request after them."""
    seen = Faulty()

    async def chat(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.Response(status=404)  # it tells nothing of itself
        seen.at.append(time.monotonic())
        seen.sent.append(await request.read())
        seen.bodies.append(json.loads(seen.sent[-1]))
        seen.paths.append(request.path)
        seen.headers = dict(request.headers)
        seen.keys.append(request.headers.get("Idempotency-Key", ""))
        play = plays[seen.asked - 1] if seen.asked <= len(plays) else None
        if play is not None:
            return await play(request)
        return web.json_response(completion(seen.bodies[-1], answer(seen.bodies[-1]), "m"))

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", chat)
    async with serve_app(app) as seen.origin:
        yield seen
