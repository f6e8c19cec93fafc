"""Where people's models are: what each provider is sent, checked by a server of its form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from decisor.errors import SetupError
from decisor.llms import choose
from decisor.llms.endpoint_llm import EndpointLLM
from decisor.types import Message, Sampling
from servers.fault_server import KEY
from servers.openai_server import completion, serve_app

ALONE = {"DECISOR_OLLAMA_PORT": "0", "DECISOR_LLAMACPP_PORT": "0"}
TALK = [Message("system", "Be brief."), Message("user", "Where?")]


class Heard:
    """What a server was sent, last."""

    origin = ""
    path = ""
    headers: Mapping[str, str] = {}
    body: Any = None


@asynccontextmanager
async def hearing(reply: dict[str, Any] | None = None, status: int = 200) -> AsyncIterator[Heard]:
    """Answers any POST with ``reply``, else as an OpenAI-compatible endpoint does."""
    seen = Heard()

    async def answer(request: web.Request) -> web.Response:
        seen.path, seen.headers = request.raw_path, request.headers
        seen.body = await request.json()
        return web.json_response(reply or completion(seen.body, "Lyon", "m"), status=status)

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    async with serve_app(app) as seen.origin:
        yield seen


def chosen(spec: str, **environ: str) -> EndpointLLM:
    llm = choose.choose_llm(spec, ALONE | environ)
    assert llm is not None
    return llm


async def said_by(llm: EndpointLLM, sampling: Sampling = Sampling()) -> str:
    try:
        return (await llm.complete(TALK, sampling)).text
    finally:
        await llm.endpoint.close()


async def test_openrouter_gets_its_key_and_tells_the_cost() -> None:
    reply = completion({}, "Lyon", "m")
    reply["usage"]["cost"] = 0.25
    async with hearing(reply) as seen:
        llm = chosen("openrouter/org/model:free", OPENROUTER_BASE_URL=f"{seen.origin}/api/v1", OPENROUTER_API_KEY=KEY)
        llm.price = None
        assert (await llm.complete(TALK)).usage.dollars == 0.25
        await llm.endpoint.close()
    assert (seen.path, seen.body["model"]) == ("/api/v1/chat/completions", "org/model:free")
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert chosen("openrouter/a/b", OPENROUTER_API_KEY=KEY).endpoint.url == (
        "https://openrouter.ai/api/v1/chat/completions"
    )


@pytest.mark.parametrize("server", ["vLLM", "LM Studio", "Ollama", "llama.cpp"])
async def test_servers_of_ones_own_are_named_by_their_address_and_get_no_key(server: str) -> None:
    async with hearing() as seen:
        llm = chosen(f"org/model:8b@{seen.origin.removeprefix('http://')}", OPENAI_API_KEY=KEY)
        assert await said_by(llm, Sampling(("\n",), max_tokens=9)) == "Lyon"
    assert (seen.path, seen.body["model"]) == ("/v1/chat/completions", "org/model:8b")
    assert "Authorization" not in seen.headers
    assert (seen.body["stop"], seen.body["max_tokens"]) == (["\n"], 9)


def test_a_key_of_openrouter_alone_chooses_no_llm() -> None:
    """Where nothing is named, nobody is billed for it."""
    assert choose.choose_llm(None, ALONE | {"OPENROUTER_API_KEY": KEY}) is None
    assert not any(row.chosen for row in choose.list_llm_places(ALONE | {"OPENROUTER_API_KEY": KEY}))


def test_a_provider_without_a_key_says_which_is_missing() -> None:
    with pytest.raises(SetupError, match="Set OPENROUTER_API_KEY"):
        choose.choose_llm("openrouter/x/y", ALONE)
