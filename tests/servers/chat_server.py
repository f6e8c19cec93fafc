"""A chat server that notes its connections, plain or over TLS, with an authority of its own that vouches for it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trustme
from aiohttp import web

from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.retry import Retries
from servers.fault_server import KEY
from servers.openai_server import completion, serve_app

HOST = "llm.test"


class Served:
    """``ports``: of the client's side, one each time a request came, the first of which sets ``asked_once``;
    ``origin``: where it is served."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.asked_once = asyncio.Event()
        self.origin = ""

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])


@asynccontextmanager
async def served(seconds: float = 0.0, secure: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    seen = Served()

    async def chat(request: web.Request) -> web.Response:
        assert request.transport is not None
        seen.ports.append(request.transport.get_extra_info("peername")[1])
        seen.asked_once.set()
        await asyncio.sleep(seconds)
        return web.json_response(completion(await request.json(), "Lyon", "m"))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with serve_app(app, secure) as seen.origin:
        yield seen


def llm_at(origin: str, key: str = KEY) -> OpenAICompatible:
    return OpenAICompatible("m", f"{origin}/v1", key, 10.0, retries=Retries(attempts=2, first_seconds=0.01))


def certificate(folder: Path, *names: str) -> tuple[ssl.SSLContext, Path]:
    """What a server of HOST and ``names`` needs, and the file of the authority that vouches for it."""
    authority = trustme.CA()
    secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST, "127.0.0.1", *names).configure_cert(secure)
    path = folder / "authority.pem"
    authority.cert_pem.write_to_path(path)
    return secure, path
