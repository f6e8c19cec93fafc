"""Each LLM of ours holds what ``decisor.testing`` asks, against a real server of its API; a broken one does not."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from decisor.llms import choose
from decisor.llms.scripted import ScriptedLLM
from decisor.testing import check_llm
from decisor.types import Completion, Message, Sampling, Usage
from servers.openai_server import completion, serve_app

TEXT = "one two three four five"


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """Chat completions, Messages and Ollama's chat; each ignores stop words and gives one text of many."""

    async def chat(request: web.Request) -> web.Response:
        return web.json_response(completion({}, TEXT, "m"))

    async def messages(request: web.Request) -> web.Response:
        usage = {"input_tokens": 5, "output_tokens": 2}
        content = [{"type": "text", "text": TEXT}]
        return web.json_response(
            {"type": "message", "model": "m", "content": content, "stop_reason": "end_turn", "usage": usage}
        )

    async def ollama(request: web.Request) -> web.Response:
        return web.json_response({"model": "m", "message": {"role": "assistant", "content": TEXT}, "done": True})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_post("/v1/messages", messages)
    app.router.add_post("/api/chat", ollama)
    async with serve_app(app) as origin:
        yield origin


@pytest.mark.parametrize("spec", ["m@HERE/v1", "vllm/m@HERE/v1", "ollama/m@HERE", "claude-x"])
async def test_each_llm_of_ours_holds_what_an_llm_has_to(spec: str) -> None:
    async with server() as origin:
        environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": origin} if spec == "claude-x" else {}
        llm = choose.choose_llm(spec.replace("HERE", origin), environ)
        assert llm is not None
        try:
            await check_llm(llm)
        finally:
            await llm.close()


async def test_a_scripted_llm_holds_it_too() -> None:
    await check_llm(ScriptedLLM(lambda messages: TEXT))


class Broken(ScriptedLLM):
    """Replies as the script does, changed by ``change``."""

    change: Callable[[Completion, Sampling], Completion]

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        return self.change(await super().complete(messages, sampling), sampling)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda reply, sampling: replace(reply, texts=(TEXT,) * sampling.n), "ends before the stop word 'two'"),
        (lambda reply, sampling: replace(reply, texts=(TEXT,) * 3), "one to 1 texts, not 3"),
        (lambda reply, sampling: replace(reply, texts=()), "one to 1 texts, not 0"),
        (lambda reply, sampling: replace(reply, finish="end_turn"), "not 'end_turn'"),
        (lambda reply, sampling: replace(reply, usage=Usage(0)), "usage counts calls"),
        (lambda reply, sampling: replace(reply, texts=(reply.text[::-1],)), "stop word|last text of a stream"),
    ],
)
async def test_a_broken_promise_is_named(change: Any, complaint: str) -> None:
    llm = Broken(lambda messages: TEXT)
    llm.change = change
    with pytest.raises(AssertionError, match=complaint):
        await check_llm(llm)
