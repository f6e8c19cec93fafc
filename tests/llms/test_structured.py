"""What holds an LLM to a form: the fields that each kind of endpoint is sent, what comes back, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from decisor.llms.anthropic import Anthropic
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.shared import request_digest
from decisor.types import Completion, Function, Message, Sampling
from servers.fault_plays import body, status
from servers.fault_server import ASK, KEY, Faulty, Play, faulty
from servers.openai_server import completion

QUERY = {
    "type": "object",
    "properties": {"input": {"type": "string", "maxLength": 9}},
    "required": ["input"],
    "additionalProperties": False,
}
SQL = Function("sql", "The tool sql.", QUERY)
DONE = Function("final_answer", "To answer:", {"type": "object", "properties": {"final_answer": {"type": "string"}}})
CALLS = Sampling(functions=(SQL, DONE))
CALL = {"id": "1", "type": "function", "function": {"name": "sql", "arguments": '{"input": "SELECT 1"}'}}


def called(*calls: dict[str, Any], content: str | None = None) -> Play:
    whole = completion({}, "", "m")
    whole["choices"][0] |= {
        "message": {"role": "assistant", "content": content, "tool_calls": list(calls)},
        "finish_reason": "tool_calls",
    }
    return body(whole)


async def asked(
    *plays: Play, sampling: Sampling = CALLS, calls: int = 1
) -> tuple[Completion, Faulty, OpenAICompatible]:
    async with faulty(*plays) as server:
        llm = server.llm()
        for _ in range(calls):
            reply = await llm.complete(ASK, sampling)
        await llm.close()
    return reply, server, llm


async def test_functions_are_sent_as_tools_of_which_one_must_be_called() -> None:
    reply, server, _ = await asked(called(CALL))
    (sent,) = server.bodies
    assert sent["tools"][0]["function"] == {"name": "sql", "description": "The tool sql.", "parameters": QUERY}
    assert (sent["tool_choice"], sent["parallel_tool_calls"]) == ("required", False)
    assert json.loads(reply.text) == {"name": "sql", "arguments": {"input": "SELECT 1"}}
    assert reply.finish == "stop"


async def test_what_is_written_before_a_call_is_its_thought_and_several_calls_stay_several() -> None:
    reply, _, _ = await asked(called(CALL, content="I look."))
    assert json.loads(reply.text)["thought"] == "I look."
    reply, _, _ = await asked(called(CALL, CALL | {"id": "2"}))
    assert [one["name"] for one in json.loads(reply.text)["tool_calls"]] == ["sql", "sql"]


async def test_arguments_that_are_no_json_come_back_as_they_are() -> None:
    broken = {"function": {"name": "sql", "arguments": "SELECT 1"}}
    reply, _, _ = await asked(called(broken))
    assert json.loads(reply.text) == {"name": "sql", "arguments": "SELECT 1"}


@pytest.mark.parametrize("complaint", ["m does not support tools", "'auto' tool choice requires --tool-call-parser"])
async def test_an_endpoint_without_tools_gets_the_functions_in_words_and_is_remembered(complaint: str) -> None:
    refusals = [status(400, complaint)] * (2 if "choice" in complaint else 1)
    _, server, llm = await asked(*refusals, calls=2)
    assert "tools" not in server.bodies[-1]
    assert server.asked == len(refusals) + 2
    assert '"sql"' in server.bodies[-1]["messages"][-1]["content"]
    assert llm.ways.against == {"tools": "it refused tools"} and llm.ways.best() == "json"


async def test_llama_cpp_refuses_tools_with_a_status_of_its_own() -> None:
    _, server, llm = await asked(status(500, "tools param requires --jinja flag"))
    assert ["tools" in one for one in server.bodies] == [True, False]
    assert llm.ways.best() == "json" and "tools" in llm.ways.against


async def test_a_refusal_that_names_nothing_is_put_down_to_the_form_only_where_that_helps() -> None:
    _, server, llm = await asked(status(422, "Invalid request"))
    assert "tools" in server.bodies[0] and "tools" not in server.bodies[1]
    assert "tools" in llm.ways.against
    async with faulty(status(400, "Invalid request"), status(400, "Invalid request")) as other:
        model = other.llm()
        with pytest.raises(Exception, match="Invalid request"):
            await model.complete(ASK, CALLS)
        await model.complete(ASK, CALLS)
        await model.close()
    assert "tools" in other.bodies[-1] and not model.ways.against


async def test_sizes_are_dropped_before_the_schema_and_the_schema_before_the_format() -> None:
    no = status(400, "response_format: json_schema is not supported")
    _, server, llm = await asked(no, no, no, sampling=Sampling(schema=QUERY))
    schemas: list[Any] = [one.get("response_format") for one in server.bodies]
    assert schemas[0]["json_schema"]["schema"] == QUERY and schemas[0]["json_schema"]["strict"] is False
    assert "maxLength" not in json.dumps(schemas[1]) and schemas[1]["json_schema"]["strict"] is True
    assert schemas[2:] == [{"type": "json_object"}, None]
    assert llm.ways.best() == "tools"


def test_openai_itself_gets_its_strict_kind_at_once() -> None:
    for address, is_strict in (
        ("https://api.openai.com/v1", True),
        ("https://mine.openai.azure.com:443/v1", True),
        ("http://localhost:8080/v1", False),
    ):
        assert ("response_format.sizes" in OpenAICompatible("gpt-4.1", address, KEY).dropped) is is_strict


def test_a_request_with_functions_is_another_than_one_without() -> None:
    plain, with_functions = (request_digest([Message("user", "Hi")], "m", one) for one in (Sampling(), CALLS))
    assert plain != with_functions


async def test_anthropic_gets_functions_as_its_tools() -> None:
    used = {"type": "tool_use", "id": "t", "name": "sql", "input": {"input": "SELECT 1"}}
    said = {
        "type": "message",
        "model": "c",
        "content": [{"type": "text", "text": "I look."}, used],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    async with faulty(body(said)) as server:
        llm = Anthropic("c", KEY, server.origin)
        reply = await llm.complete(ASK, CALLS)
        await llm.close()
    assert server.bodies[0]["tools"][0] == {"name": "sql", "description": "The tool sql.", "input_schema": QUERY}
    assert server.bodies[0]["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert json.loads(reply.text) == {"thought": "I look.", "name": "sql", "arguments": {"input": "SELECT 1"}}


async def test_anthropics_api_without_tools_gets_the_functions_in_words() -> None:
    said = {"type": "message", "model": "c", "content": [{"type": "text", "text": "{}"}], "stop_reason": "end_turn"}
    async with faulty(status(400, "tools: not supported by this model"), body(said)) as server:
        llm = Anthropic("c", KEY, server.origin)
        await llm.complete(ASK, CALLS)
        await llm.close()
    assert "tools" not in server.bodies[1] and "tool_choice" not in server.bodies[1]
    assert '"sql"' in server.bodies[1]["messages"][-1]["content"]
    assert llm.ways.best() == "text"
