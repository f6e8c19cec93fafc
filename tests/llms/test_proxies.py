"""Through the proxy that the environment names, and what it may answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import uvloop

from decisor.errors import LLMError, SetupError
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.system.tasks import map_concurrently
from servers.chat_server import HOST, certificate, llm_at, served
from servers.fault_server import ASK, KEY
from servers.http_proxy import OPENS, http_proxy

PAGE = b"<html>" + b"You shall not pass. " * 500_000


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def ask(llm: OpenAICompatible, times: int = 1) -> list[str]:
    try:
        return [reply.text for reply in await map_concurrently(lambda _: llm.complete(ASK), range(times), 1)]
    finally:
        await llm.close()


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
async def test_a_plain_address(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as server, http_proxy(("127.0.0.1", server.port), "user:w rd") as seen:
        monkeypatch.setenv(variable, f"http://user:w%20rd@127.0.0.1:{seen.port}")
        assert await ask(llm_at(f"http://{HOST}:81"), 2) == ["Lyon", "Lyon"]
    assert seen.lines == [f"POST http://{HOST}:81/v1/chat/completions HTTP/1.1"]


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "ALL_PROXY"])
async def test_a_tunnel_never_shows_the_key_to_the_proxy(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secure, authority = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with served(secure=secure) as server, http_proxy(("127.0.0.1", server.port), "user:word") as seen:
        monkeypatch.setenv(variable, f"user:word@127.0.0.1:{seen.port}")
        assert await ask(llm_at(f"https://{HOST}"), 3) == ["Lyon"] * 3
    assert seen.lines == [f"CONNECT {HOST}:443 HTTP/1.1"]
    assert KEY.encode() not in b"".join(seen.heads)


@pytest.mark.parametrize(
    "opens",
    [
        OPENS,
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.0 200 Connection established\r\nProxy-agent: tinyproxy/1.11.1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_every_way_to_open_a_tunnel(opens: bytes, loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def through() -> list[str]:
        secure, authority = certificate(tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        async with served(secure=secure) as server, http_proxy(("127.0.0.1", server.port), opens=opens) as seen:
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{seen.port}")
            return await ask(llm_at(f"https://{HOST}"), 2)

    assert (uvloop.run if loop == "uvloop" else asyncio.run)(through()) == ["Lyon", "Lyon"]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("status", "attempts"), [(407, 1), (403, 1), (503, 2)])
async def test_a_refusal_is_the_proxys_and_is_told_once_whatever_page_comes_with_it(
    scheme: str, status: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http_proxy(("127.0.0.1", 9), refuses=status, page=PAGE) as seen:
        monkeypatch.setenv("all_proxy", f"http://me:hunter2222@127.0.0.1:{seen.port}")
        with pytest.raises(LLMError, match=str(status)) as caught:
            await ask(llm_at(f"{scheme}://{HOST}"))
    assert len(seen.lines) == attempts
    assert "hunter2222" not in str(caught.value) and "bytes" not in str(caught.value)
    if status == 407 or scheme == "https":
        assert f"the proxy 127.0.0.1:{seen.port} answered {status}" in str(caught.value)
        assert caught.value.permanent is (attempts == 1)


async def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    for scheme in ("http", "https"):
        with pytest.raises(LLMError, match=r"the proxy 127\.0\.0\.1:9: Connection refused"):
            await ask(llm_at(f"{scheme}://{HOST}"))


async def test_a_proxy_that_opens_no_tunnel_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as server, http_proxy(("127.0.0.1", server.port), opens=b"") as seen:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{seen.port}")
        llm = llm_at(f"https://{HOST}")
        llm.endpoint.connect_seconds = 0.2
        with pytest.raises(LLMError, match="cannot be reached"):
            await ask(llm)


@pytest.mark.parametrize(
    ("names", "is_reached_through_it"),
    [
        ("10.0.0.0/8", True),
        ("127.1.0.0/16, 192.0.2.0/24", False),
        ("192.0.2.7", False),
        ("192.0.2.7:81", False),
        ("192.0.2.7:82", True),
        ("*", False),
        ("example.com,.test", True),
    ],
)
async def test_no_proxy_names_hosts_ports_and_networks(
    names: str, is_reached_through_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", names)
    assert (llm_at("http://192.0.2.7:81").endpoint.proxy is not None) is is_reached_through_it
    assert llm_at("http://127.0.0.1:81").endpoint.proxy is None
    assert (llm_at("http://a.test").endpoint.proxy is None) is (names in ("*", "example.com,.test"))


@pytest.mark.parametrize(
    "address",
    ["socks5://me:hunter2222@127.0.0.1:1080", "http://127.0.0.1:99999", "http://[::1", "http://:80", "ftp://h"],
)
def test_a_proxy_that_cannot_be_used_is_one_clear_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", address)
    with pytest.raises(SetupError, match="NO_PROXY") as caught:
        llm_at(f"https://{HOST}")
    assert "hunter2222" not in str(caught.value) and "\n" not in str(caught.value)
