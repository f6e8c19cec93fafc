"""The Messages API: what is sent, and what is made of the replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from decisor.errors import LLMError
from decisor.llms.anthropic import Anthropic
from decisor.llms.retry import Retries
from decisor.types import Completion, Function, Message, Sampling
from servers.fault_plays import body, status
from servers.fault_server import ASK, KEY, Faulty, Play, faulty

USAGE = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 3}
SAID = {
    "type": "message",
    "model": "claude-x",
    "content": [{"type": "text", "text": "Lyon"}],
    "stop_reason": "end_turn",
    "usage": USAGE,
}
ANSWER = body(SAID)
SEARCH = Function("search", "Finds.", {"type": "object", "properties": {"city": {"type": "string"}}})


async def asked(
    *faults: Play, messages: Sequence[Message] = ASK, sampling: Sampling = Sampling()
) -> tuple[Completion, Faulty]:
    async with faulty(*faults) as server:
        llm = Anthropic("claude-x", KEY, server.origin, retries=Retries(attempts=3, first_seconds=0.01))
        try:
            return await llm.complete(messages, sampling), server
        finally:
            await llm.close()


async def test_system_text_goes_apart_and_turns_alternate() -> None:
    messages = [Message("system", "Be brief."), Message("user", "a"), Message("user", "b"), Message("assistant", "c")]
    reply, server = await asked(ANSWER, messages=messages, sampling=Sampling(("\n", "Observation:"), max_tokens=7))
    assert reply.text == "Lyon"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.dollars) == (8, 2, None)
    assert server.bodies == [
        {
            "model": "claude-x",
            "system": "Be brief.",
            "max_tokens": 7,
            "temperature": 0.0,
            "stop_sequences": ["Observation:"],
            "messages": [{"role": "user", "content": "a\n\nb"}, {"role": "assistant", "content": "c"}],
        }
    ]
    assert server.headers["x-api-key"] == KEY
    assert server.headers["anthropic-version"] == "2023-06-01"


async def test_a_schema_is_a_tool_that_must_be_used() -> None:
    used = SAID | {"content": [{"type": "tool_use", "name": "reply", "input": {"city": "Lyon"}}]}
    reply, server = await asked(body(used | {"stop_reason": "tool_use"}), sampling=Sampling(schema={"type": "object"}))
    assert reply.text == '{"city": "Lyon"}'
    assert server.bodies[0]["tool_choice"] == {"type": "tool", "name": "reply"}


FORCED = "Thinking may not be enabled when tool_choice forces tool use."


@pytest.mark.parametrize("sampling", [Sampling(schema={"type": "object"}), Sampling(functions=(SEARCH,))])
async def test_a_model_that_refuses_to_be_forced_is_told_to_use_the_tool_from_then_on(sampling: Sampling) -> None:
    name = "reply" if sampling.schema else "search"
    used = body(SAID | {"content": [{"type": "tool_use", "name": name, "input": {"city": "Lyon"}}]})
    async with faulty(status(400, FORCED), used, used) as server:
        llm = Anthropic("claude-x", KEY, server.origin, retries=Retries(attempts=1))
        replies = [await llm.complete(ASK, sampling) for _ in range(2)]
        await llm.close()
    assert ["Lyon" in reply.text for reply in replies] == [True, True]
    forced, *free = server.bodies
    assert forced["tool_choice"]["type"] in ("any", "tool") and len(free) == 2, "one refusal, which is remembered"
    for sent in free:
        assert sent["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True} and sent["tools"]
        assert "using" in str(sent["messages"][-1]["content"]) and "using" not in str(forced["messages"])
    assert not llm.ways.against, "it takes tools"


async def test_a_second_refusal_of_the_tool_choice_is_an_error() -> None:
    async with faulty(status(400, FORCED), status(400, FORCED)) as server:
        llm = Anthropic("claude-x", KEY, server.origin, retries=Retries(attempts=1))
        with pytest.raises(LLMError, match="tool_choice"):
            await llm.complete(ASK, Sampling(schema={"type": "object"}))
        await llm.close()


async def test_a_refused_temperature_is_left_out() -> None:
    _, server = await asked(status(400, "`temperature` may not be set for this model"), ANSWER)
    assert "temperature" not in server.bodies[1]


@pytest.mark.parametrize(("reason", "finish"), [("max_tokens", "length"), ("refusal", "refusal")])
async def test_why_it_stopped_is_told(reason: str, finish: str) -> None:
    reply, _ = await asked(body(SAID | {"stop_reason": reason, "content": []}))
    assert reply.finish == finish


PASSING: list[Any] = [
    status(529, "Overloaded", type="overloaded_error"),
    status(429, "slow", headers={"Retry-After": "0"}),
    body(SAID | {"content": []}),
    body({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    body([]),
    body(b"<html>"),
]


@pytest.mark.parametrize("fault", PASSING)
async def test_a_passing_fault_is_tried_again(fault: Play) -> None:
    reply, server = await asked(fault, ANSWER)
    assert reply.text == "Lyon"
    assert server.asked == 2


@pytest.mark.parametrize(
    "fault", [status(401, f"invalid x-api-key {KEY}", type="authentication_error"), status(400, "no such thing")]
)
async def test_a_final_fault_ends_at_once_without_the_key(fault: Play) -> None:
    with pytest.raises(LLMError) as caught:
        await asked(fault, ANSWER)
    assert caught.value.permanent == (caught.value.kind == "auth"), (
        "what was wrong with one request says nothing of others"
    )
    assert KEY not in str(caught.value)
