"""Calls of an LLM through a real proxy, tinyproxy: plain and through CONNECT, with a user and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from decisor.errors import LLMError
from servers.chat_server import certificate, llm_at, served
from servers.fault_server import ASK
from servers.tinyproxy import tinyproxy

HERE = "0.0.0.0"
USER = "me:hunter2222"


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def replies(origin: str, times: int = 2) -> list[str]:
    llm = llm_at(origin)
    try:
        return [(await llm.complete(ASK)).text for _ in range(times)]
    finally:
        await llm.close()


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("user", ["", USER])
async def test_a_tunnel_is_opened_once_for_several_calls(
    variable: str, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secure, authority = certificate(tmp_path, HERE)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with served(secure=secure) as server:
        with tinyproxy(tmp_path, user) as proxy:
            monkeypatch.setenv(variable, f"http://{f'{user}@' if user else ''}{proxy.place}")
            assert await replies(f"https://{HERE}:{server.port}") == ["Lyon", "Lyon"]
            assert [line.split(" HTTP/")[0] for line in proxy.requests()] == [f"CONNECT {HERE}:{server.port}"]


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("user", ["", USER])
async def test_a_plain_address_is_passed_on(
    variable: str, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served() as server:
        with tinyproxy(tmp_path, user) as proxy:
            monkeypatch.setenv(variable, f"http://{f'{user}@' if user else ''}{proxy.place}")
            assert await replies(f"http://{HERE}:{server.port}") == ["Lyon", "Lyon"]
            assert all(line.startswith(f"POST http://{HERE}:{server.port}/v1/") for line in proxy.requests())
            assert proxy.requests()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("user", ["", "me:wrong"])
async def test_a_wrong_user_is_told_once_and_shows_no_password(
    scheme: str, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tinyproxy(tmp_path, USER) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://{f'{user}@' if user else ''}{proxy.place}")
        with pytest.raises(LLMError) as caught:
            await replies(f"{scheme}://{HERE}:9", 1)
        assert len(proxy.requests()) == 1
    assert f"proxy {proxy.place} answered 40" in str(caught.value) and "wrong" not in str(caught.value)
    assert caught.value.permanent


async def test_a_place_that_the_proxy_cannot_reach_is_a_passing_fault_of_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tinyproxy(tmp_path) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://{proxy.place}")
        for scheme in ("http", "https"):
            with pytest.raises(LLMError, match="500") as caught:
                await replies(f"{scheme}://{HERE}:9", 1)
            assert not caught.value.permanent
