"""Connections to an LM: kept and dropped, over TLS, through a proxy, under another event loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
import uvloop
from aiohttp import web

from decisor.aio import each
from decisor.errors import LMError, SetupError
from decisor.lms import connection
from decisor.lms.openai_compatible import OpenAICompatible
from decisor.lms.retry import Retries
from decisor.types import Completion
from servers.fault_server import ASK
from servers.http_proxy import http_proxy
from servers.openai_server import completion, serve_app

HOST = "lm.test"


class Served:
    """``ports``: of the client's side, one each time a request came; ``origin``: where it is served."""

    def __init__(self) -> None:
        self.ports: list[int] = []
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
        await asyncio.sleep(seconds)
        return web.json_response(completion(await request.json(), "Lyon", "m"))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with serve_app(app, secure) as seen.origin:
        yield seen


def lm_at(origin: str, key: str = "sk-canary-0123456789abcdefghij") -> OpenAICompatible:
    return OpenAICompatible("m", f"{origin}/v1", key, 10.0, retries=Retries(attempts=2, first_seconds=0.01))


async def ask(lm: OpenAICompatible, times: int = 1, at_once: int = 1) -> list[Completion]:
    try:
        return await each(lambda _: lm.complete(ASK), range(times), at_once)
    finally:
        await lm.close()


async def test_a_connection_is_used_again() -> None:
    async with served() as server:
        await ask(lm_at(server.origin), 5)
    assert len(server.ports) == 5 and len(set(server.ports)) == 1


async def test_there_are_no_more_connections_than_calls_at_once() -> None:
    async with served(0.01) as server:
        await ask(lm_at(server.origin), 60, at_once=6)
    assert len(server.ports) == 60 and len(set(server.ports)) == 6


async def test_more_calls_than_connections_wait_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST", 3)
    async with served(0.01) as server:
        await ask(lm_at(server.origin), 20, at_once=20)
    assert len(server.ports) == 20 and len(set(server.ports)) == 3


async def test_a_connection_that_was_idle_for_long_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.0)
    async with served() as server:
        await ask(lm_at(server.origin), 3)
    assert len(set(server.ports)) == 3


async def test_after_a_call_that_was_cancelled_its_connection_is_not_used_again() -> None:
    async with served(0.2) as server:
        lm = lm_at(server.origin)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await lm.complete(ASK)
        assert [reply.text for reply in await ask(lm)] == ["Lyon"]
    assert len(set(server.ports)) == 2


async def test_a_connection_that_the_server_ended_is_replaced_without_a_fault() -> None:
    async with served() as server:
        lm = lm_at(server.origin)
        await lm.complete(ASK)
        lm.endpoint.connections.idle[0].transport.get_extra_info("socket").shutdown(2)
        await asyncio.sleep(0.05)
        await ask(lm)
        assert lm.endpoint.retries.allowance == lm.endpoint.retries.capacity
    assert len(set(server.ports)) == 2


def test_one_lm_serves_one_event_loop_after_another() -> None:
    lm = OpenAICompatible("m", "http://127.0.0.1:9/v1")

    async def once() -> str:
        async with served() as server:
            lm.endpoint.connections.url = lm_at(server.origin).endpoint.connections.url
            return (await ask(lm))[0].text

    assert [asyncio.run(once()), asyncio.run(once())] == ["Lyon", "Lyon"]


def test_it_works_under_uvloop() -> None:
    async def once() -> str:
        async with served() as server:
            return (await ask(lm_at(server.origin), 3))[0].text

    assert uvloop.run(once()) == "Lyon"


@pytest.fixture
def certified(tmp_path: Path) -> tuple[ssl.SSLContext, Path]:
    """What a server of HOST needs, and the file of the authority that vouches for it."""
    authority = trustme.CA()
    secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST, "127.0.0.1").configure_cert(secure)
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    return secure, path


async def test_over_tls(certified: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    secure, authority = certified
    async with served(secure=secure) as server:
        with pytest.raises(LMError, match=r"no safe connection.*certificate") as caught:
            await ask(lm_at(server.origin))
        assert caught.value.permanent and not server.ports
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert len(await ask(lm_at(server.origin), 3)) == 3
        with pytest.raises(LMError, match=r"no safe connection.*[Hh]ostname"):
            await ask(lm_at(server.origin.replace("127.0.0.1", "localhost")))
    assert len(set(server.ports)) == 1


async def test_a_server_that_ends_the_handshake_is_tried_again() -> None:
    links = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        links.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    with pytest.raises(LMError, match="cannot be reached") as caught:
        await ask(lm_at(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    server.close()
    assert len(links) == 2 and not caught.value.permanent


async def test_what_speaks_no_tls_is_not_tried_again() -> None:
    async with served() as server:
        with pytest.raises(LMError, match="no safe connection") as caught:
            await ask(lm_at(server.origin.replace("http:", "https:")))
    assert caught.value.permanent


async def test_a_reply_without_a_length_that_is_reset_is_not_whole() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n{}")
        await asyncio.sleep(0.05)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    with pytest.raises(LMError, match="broke off"):
        await ask(lm_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    server.close()


async def test_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as server, http_proxy(("127.0.0.1", server.port), "user:word") as seen:
        monkeypatch.setenv("http_proxy", f"http://user:wrong@127.0.0.1:{seen.port}")
        with pytest.raises(LMError, match="407"):
            await ask(lm_at(f"http://{HOST}:81"))
    async with served() as server, http_proxy(("127.0.0.1", server.port), "user:w rd") as seen:
        monkeypatch.setenv("http_proxy", f"http://user:w%20rd@127.0.0.1:{seen.port}")
        assert len(await ask(lm_at(f"http://{HOST}:81"), 2)) == 2
    assert seen.lines == [f"POST http://{HOST}:81/v1/chat/completions HTTP/1.1"]


async def test_through_a_tunnel(certified: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    secure, authority = certified
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with served(secure=secure) as server, http_proxy(("127.0.0.1", server.port), "user:word") as seen:
        monkeypatch.setenv("https_proxy", f"user:word@127.0.0.1:{seen.port}")
        assert len(await ask(lm_at(f"https://{HOST}"), 3)) == 3
        monkeypatch.setenv("no_proxy", HOST)
        with pytest.raises(LMError, match="cannot be reached"):
            await ask(lm_at(f"https://{HOST}"))
    assert seen.lines == [f"CONNECT {HOST}:443 HTTP/1.1"]


async def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_proxy(("127.0.0.1", 9), refuses=403) as seen:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{seen.port}")
        with pytest.raises(LMError, match=r"the proxy 127\.0\.0\.1 answered 403"):
            await ask(lm_at(f"https://{HOST}"))


def test_a_proxy_of_another_kind_is_the_persons_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1080")
    with pytest.raises(SetupError, match="NO_PROXY"):
        lm_at(f"https://{HOST}")
