"""Connections to an LLM: kept and dropped, over TLS, under another event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import uvloop

from decisor.errors import LLMError
from decisor.llms import http as http_client
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.system.tasks import map_concurrently
from decisor.types import Completion
from servers.chat_server import certificate, llm_at, served
from servers.fault_server import ASK
from servers.openai_server import serve_threaded
from servers.wire_server import GOOD, wire, wire_server


async def ask(llm: OpenAICompatible, times: int = 1, at_once: int = 1) -> list[Completion]:
    try:
        return await map_concurrently(lambda _: llm.complete(ASK), range(times), at_once)
    finally:
        await llm.close()


async def test_a_connection_is_used_again() -> None:
    async with served() as server:
        await ask(llm_at(server.origin), 5)
    assert len(server.ports) == 5 and len(set(server.ports)) == 1


async def test_there_are_no_more_connections_than_calls_at_once() -> None:
    async with served(0.01) as server:
        await ask(llm_at(server.origin), 60, at_once=6)
    assert len(server.ports) == 60 and len(set(server.ports)) == 6


async def test_more_calls_than_connections_wait_their_turn_and_pay_nothing_while_they_do() -> None:
    async with served(0.01) as server:
        llm = llm_at(server.origin)
        llm.endpoint.connections = 3
        await ask(llm, 20, at_once=20)
        assert len(server.ports) == 20 and len(set(server.ports)) == 3
    async with served(5.0) as server:
        llm = llm_at(server.origin)
        llm.endpoint.connections, llm.seconds = 1, 0.5
        results = await asyncio.gather(*(llm.complete(ASK) for _ in range(5)), return_exceptions=True)
        await llm.close()
        paid = [error.used.prompt_tokens > 0 for error in results if isinstance(error, LLMError)]
        assert len(paid) == 5 and sum(paid) == len(server.ports) <= 2


async def test_a_connection_that_was_idle_for_long_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "IDLE_SECONDS", 0.0)
    async with served() as server:
        await ask(llm_at(server.origin), 3)
    assert len(set(server.ports)) == 3


async def test_after_a_call_that_was_cancelled_its_connection_is_not_used_again() -> None:
    async with served(0.2) as server:
        llm = llm_at(server.origin)
        call = asyncio.create_task(llm.complete(ASK))
        await server.asked_once.wait()
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        assert [reply.text for reply in await ask(llm)] == ["Lyon"]
    assert len(set(server.ports)) == 2


async def test_a_connection_that_the_server_ended_is_replaced_without_a_fault() -> None:
    async with wire_server(wire(GOOD, end="close"), wire(GOOD, end="reset")) as server:
        llm = server.llm()
        for ends in (1, 2, 0):
            assert (await llm.complete(ASK)).text == "Lyon"
            while server.ended < ends:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)  # in which the client reads of it
        await llm.close()
        assert llm.endpoint.retries.allowance == llm.endpoint.retries.capacity
    assert len(set(server.ports)) == 3


def test_one_llm_serves_one_event_loop_after_another() -> None:
    with serve_threaded(lambda _: "Lyon") as base_url:
        llm = OpenAICompatible("m", base_url)

        async def once(is_closed: bool) -> str:
            try:
                return (await llm.complete(ASK)).text
            finally:
                if is_closed:
                    await llm.close()

        assert [asyncio.run(once(is_closed=True)), asyncio.run(once(is_closed=True))] == ["Lyon", "Lyon"]


def test_it_works_under_uvloop() -> None:
    async def once() -> str:
        async with served() as server:
            return (await ask(llm_at(server.origin), 3))[0].text

    assert uvloop.run(once()) == "Lyon"


async def test_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secure, authority = certificate(tmp_path)
    async with served(secure=secure) as server:
        with pytest.raises(LLMError, match=r"no safe connection.*certificate") as caught:
            await ask(llm_at(server.origin))
        assert caught.value.permanent and not server.ports
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert len(await ask(llm_at(server.origin), 3)) == 3
        with pytest.raises(LLMError, match=r"no safe connection.*[Hh]ostname"):
            await ask(llm_at(server.origin.replace("127.0.0.1", "localhost")))
    assert len(set(server.ports)) == 1


async def test_a_server_that_ends_the_handshake_is_tried_again() -> None:
    links = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        links.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    with pytest.raises(LLMError, match="cannot be reached") as caught:
        await ask(llm_at(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    server.close()
    assert len(links) == 2 and not caught.value.permanent


async def test_what_speaks_no_tls_is_not_tried_again() -> None:
    async with served() as server:
        with pytest.raises(LLMError, match="no safe connection") as caught:
            await ask(llm_at(server.origin.replace("http:", "https:")))
    assert caught.value.permanent
