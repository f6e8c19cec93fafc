"""Ollama by its own fields, and vLLM in the common way: what each is sent, and how its reply is read."""

from __future__ import annotations

from typing import Any

import pytest

from decisor.errors import LLMError
from decisor.llms import choose
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.types import Completion, Function, Message, Sampling
from servers.fault_plays import body, status
from servers.fault_server import KEY, Faulty, Play, faulty
from servers.openai_server import completion

TALK = [Message("user", "Where?")]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
HELD = Sampling(schema=SCHEMA)
CHAT = body(completion({}, '{"city": "Lyon"}', "m"))
OLLAMA: dict[str, Any] = {
    "model": "m",
    "message": {"role": "assistant", "content": '{"city": "Lyon"}'},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 11,
    "eval_count": 7,
}


async def replies(spec: str, *plays: Play, sampling: Sampling = HELD, calls: int = 1) -> tuple[Completion, Faulty]:
    """``spec`` with the server's address for HERE."""
    async with faulty(*plays) as server:
        llm = choose.choose_llm(spec.replace("HERE", server.origin), {"DECISOR_LLM_KEY": KEY})
        assert isinstance(llm, OpenAICompatible)
        try:
            for _ in range(calls):
                reply = await llm.complete(TALK, sampling)
            return reply, server
        finally:
            await llm.close()


async def test_vllm_is_asked_in_the_common_way_by_the_name_behind_its_prefix() -> None:
    reply, server = await replies("vllm/org/m@HERE", CHAT)
    (sent,) = server.bodies
    assert sent["model"] == "org/m" and reply.text == '{"city": "Lyon"}'
    assert "response_format" in sent and server.headers["Authorization"] == f"Bearer {KEY}"


async def test_ollama_gets_a_schema_as_format_and_the_context_that_was_set() -> None:
    sampling = Sampling(stop=("Observation:",), temperature=0.5, max_tokens=99, seed=3, schema=SCHEMA)
    reply, server = await replies("ollama/m:8b@HERE context=8192", body(OLLAMA), sampling=sampling)
    assert server.bodies == [
        {
            "model": "m:8b",
            "messages": [{"role": "user", "content": "Where?"}],
            "stream": False,
            "format": SCHEMA,
            "options": {"temperature": 0.5, "num_predict": 99, "stop": ["Observation:"], "seed": 3, "num_ctx": 8192},
        }
    ]
    assert server.paths == ["/api/chat"]
    assert (reply.text, reply.usage.prompt_tokens, reply.usage.completion_tokens) == ('{"city": "Lyon"}', 11, 7)


async def test_a_call_of_a_function_is_read_from_ollama() -> None:
    called = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "sql", "arguments": {"input": "1"}}}],
    }
    functions = (Function("sql", "Asks.", {"type": "object", "properties": {"input": {"type": "string"}}}),)
    reply, server = await replies(
        "ollama/m@HERE", body(OLLAMA | {"message": called}), sampling=Sampling(functions=functions)
    )
    assert reply.text == '{"name": "sql", "arguments": {"input": "1"}}'
    assert server.bodies[0]["tools"][0]["function"]["name"] == "sql" and "format" not in server.bodies[0]


async def test_a_reply_of_ollama_that_was_cut_says_so_and_its_error_is_told() -> None:
    reply, _ = await replies("ollama/m@HERE", body(OLLAMA | {"done_reason": "length"}))
    assert reply.finish == "length"
    with pytest.raises(LLMError, match="not found"):
        await replies("ollama/m@HERE", status(404, "model 'm' not found"))


@pytest.mark.parametrize(("spec", "where"), [("vllm/m", "localhost:8000"), ("ollama/m", "localhost:11434")])
def test_without_an_address_it_is_the_usual_one_on_this_machine(spec: str, where: str) -> None:
    llm = choose.choose_llm(spec, {})
    assert isinstance(llm, OpenAICompatible) and (llm.endpoint.where, llm.name) == (where, "m")
    assert llm.price is not None and not llm.price.dollars(10, 10)
