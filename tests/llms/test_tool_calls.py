"""Conversations with tool calls: of each provider a reply as its documents show it, a result, and the next request.

A request is compared whole: what a provider wants back (ids, thoughts, signatures) is lost silently otherwise.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from decisor.errors import LLMError
from decisor.llms import choose
from decisor.llms.anthropic import Anthropic
from decisor.llms.endpoint_llm import EndpointLLM
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.retry import Retries
from decisor.llms.scripted import ScriptedLLM
from decisor.llms.shared import Journal, request_digest
from decisor.types import Completion, Function, Message, Sampling, ToolCall, Usage
from llms.test_journal import Counting, Pages
from servers.event_server import body_of
from servers.fault_plays import body, breaks_off, status
from servers.fault_server import KEY, Faulty, Play, faulty

PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SQL = Function("sql", "Run one SELECT.", PARAMETERS)
TOOLS = Sampling(max_tokens=99, tools=(SQL,))
START = [Message("system", "Decide by tools."), Message("user", "Which site?")]
QUERIES = ('{"query": "SELECT 1"}', '{"query": "SELECT 2"}')
SENT_START = [{"role": "system", "content": "Decide by tools."}, {"role": "user", "content": "Which site?"}]
SENT_TOOL = {"name": "sql", "description": "Run one SELECT.", "parameters": PARAMETERS}
STREAM = "text/event-stream"


def call(id: str | None, arguments: Any = QUERIES[0], **more: Any) -> dict[str, Any]:
    row = {"type": "function", "function": {"name": "sql", "arguments": arguments}, **more}
    return row if id is None else {"id": id, **row}


def chat(message: dict[str, Any], finish: str = "tool_calls") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"model": "m-1", "choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def chat_events(*deltas: dict[str, Any], finish: str = "tool_calls") -> Play:
    chunks = [{"model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    ending = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    return body(body_of([*chunks, ending, usage, "[DONE]"]), kind=STREAM)


def piece(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    name = {"name": "sql"} if more else {}
    return {"tool_calls": [{"index": index, **more, "function": {**name, "arguments": arguments}}]}


def open_llm(server: Faulty, kind: str, model: str = "m") -> EndpointLLM:
    if kind == "anthropic":
        return Anthropic(model, KEY, server.origin, retries=Retries(attempts=2, first_seconds=0.01))
    path = "/v1/responses" if kind == "responses" else "/v1"
    name = f"{kind}/{model}" if kind in ("vllm", "ollama") else model
    llm = choose.choose_llm(f"{name}@{server.origin}{path}", {"DECISOR_LLM_KEY": KEY})
    assert isinstance(llm, OpenAICompatible)
    llm.endpoint.retries = Retries(attempts=2, first_seconds=0.01)
    return llm


async def converse(
    first: Play, last: Play, kind: str = "chat", *, model: str = "m", streams: bool = False
) -> tuple[Completion, list[dict[str, Any]], EndpointLLM]:
    """A question, a reply with calls, a result for each, a second reply. ``model``: the one that is asked secondly."""
    async with faulty(first, last) as server:
        texts: list[str] = []
        llm = open_llm(server, kind)
        reply = await (llm.stream(START, TOOLS, texts.append) if streams else llm.complete(START, TOOLS))
        assert reply.turn is not None and reply.texts == (reply.turn.content,)
        results = [Message("tool", f"row {at}", call_id=one.id) for at, one in enumerate(reply.turn.calls, 1)]
        again = llm if model == llm.name else open_llm(server, kind, model)
        await again.complete([*START, reply.turn, *results], TOOLS)
        await llm.close()
        await again.close()
    return reply, server.bodies, llm


DONE = body(chat({"content": "Oak."}, "stop"))
THOUGHT = {"content": "I look.", "tool_calls": [call("call_a"), call("call_b", QUERIES[1])]}


async def test_calls_and_their_results_go_back_as_openai_wrote_them() -> None:
    reply, bodies, _ = await converse(body(chat({**THOUGHT, "refusal": None, "annotations": []})), DONE)
    assert (reply.text, reply.finish, reply.usage.tokens) == ("I look.", "stop", 10)
    calls = (ToolCall("call_a", "sql", QUERIES[0]), ToolCall("call_b", "sql", QUERIES[1]))
    assert reply.turn == Message("assistant", "I look.", calls)
    fields = {
        "model": "m",
        "temperature": 0.0,
        "max_tokens": 99,
        "tools": [{"type": "function", "function": SENT_TOOL}],
        "parallel_tool_calls": True,
    }
    assert bodies[0] == {**fields, "messages": SENT_START}
    turns = [
        {"role": "assistant", **THOUGHT},
        {"role": "tool", "tool_call_id": "call_a", "content": "row 1"},
        {"role": "tool", "tool_call_id": "call_b", "content": "row 2"},
    ]
    assert bodies[1] == {**fields, "messages": [*SENT_START, *turns]}


SIGNED = {"google": {"thought_signature": "c2ln"}}
DETAILS: list[dict[str, Any]] = [
    {
        "type": "reasoning.text",
        "text": "Rents first.",
        "signature": "c2ln",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.encrypted", "data": "ZW5j", "id": "rs_1", "index": 1},
]
THINKING = [{"type": "thinking", "thinking": [{"type": "text", "text": "Rents."}]}, {"type": "text", "text": "I look."}]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "", "reasoning_content": "Rents first.", "tool_calls": [call("call_a")]},
        {"content": None, "reasoning": "Rents first.", "tool_calls": [call("chatcmpl-tool-1")]},
        {"content": None, "reasoning": "Rents.", "reasoning_details": DETAILS, "tool_calls": [call("toolu_1")]},
        {"content": None, "tool_calls": [call("function-call-1", extra_content=SIGNED), call("function-call-2")]},
        {"content": "I look.", "extra_content": SIGNED, "tool_calls": [call("function-call-1")]},
        {"content": THINKING, "tool_calls": [call("D681PevKs")]},
    ],
    ids=["deepseek", "vllm", "openrouter", "gemini", "gemini-text", "mistral"],
)
async def test_thoughts_go_back_to_the_model_that_wrote_them_and_to_no_other(message: dict[str, Any]) -> None:
    reply, bodies, _ = await converse(body(chat(message)), DONE)
    assert reply.turn is not None and reply.turn.raw is not None and reply.turn.raw["model"] == "m"
    sent = bodies[1]["messages"][2]
    assert {**sent, "content": sent["content"] or None} == {
        "role": "assistant",
        **message,
        "content": message["content"] or None,
    }
    _, bodies, _ = await converse(body(chat(message)), DONE, model="m2")
    sent = bodies[1]["messages"][2]
    assert sent.keys() == {"role", "content", "tool_calls"}
    assert [one.keys() for one in sent["tool_calls"]] == [{"id", "type", "function"}] * len(message["tool_calls"])
    assert sent["content"] in (None, "I look.")


SPLIT: list[dict[str, Any]] = [
    {"role": "assistant", "content": None},
    {"content": "I "},
    {"content": "look."},
    piece(0, "", id="call_a", type="function"),
    piece(0, QUERIES[0][:7]),
    piece(0, QUERIES[0][7:]),
    piece(1, QUERIES[1], id="call_b", type="function"),
]
PARTS: list[dict[str, Any]] = [
    {"reasoning": "Rents", "reasoning_details": [{**DETAILS[0], "text": "Rents", "signature": None}]},
    {"reasoning": " first.", "reasoning_details": [{**DETAILS[0], "text": " first.", "signature": None}]},
    {"reasoning_details": [{**DETAILS[0], "text": ""}]},
    {"reasoning_details": [DETAILS[1]]},
    *SPLIT[3:6],
]


@pytest.mark.parametrize(
    ("deltas", "whole"),
    [
        (SPLIT, THOUGHT),
        (
            [{"reasoning_content": "Rents"}, {"reasoning_content": " first."}, *SPLIT[3:6]],
            {"content": "", "reasoning_content": "Rents first.", "tool_calls": [call("call_a")]},
        ),
        (
            PARTS,
            {"content": "", "reasoning": "Rents first.", "reasoning_details": DETAILS, "tool_calls": [call("call_a")]},
        ),
        (
            [
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": part}]}]}
                for part in ("Ren", "ts.")
            ]
            + [
                {"content": [{"type": "text", "text": "I "}]},
                {"content": "look."},
                piece(0, QUERIES[0], id="D681PevKs"),
            ],
            {"content": THINKING, "tool_calls": [call("D681PevKs")]},
        ),
        (  # older versions of Ollama: each call at index 0, here in pieces
            [
                piece(0, QUERIES[0][:5], id="call_a", type="function"),
                piece(0, QUERIES[0][5:]),
                piece(0, QUERIES[1][:5], id="call_b", type="function"),
                piece(0, QUERIES[1][5:]),
            ],
            {**THOUGHT, "content": None},
        ),
        (  # no index, no ids, arguments as objects
            [{"tool_calls": [{"function": {"name": "sql", "arguments": {"query": f"SELECT {at}"}}}]} for at in (1, 2)],
            {"content": None, "tool_calls": [call(None), call(None, QUERIES[1])]},
        ),
        (  # Gemini: calls come whole, each at index 0
            [
                piece(0, QUERIES[0], id="f-1", type="function", extra_content=SIGNED),
                piece(0, QUERIES[1], id="f-2", type="function"),
            ],
            {"content": None, "tool_calls": [call("f-1", extra_content=SIGNED), call("f-2", QUERIES[1])]},
        ),
    ],
    ids=["openai", "deepseek", "openrouter", "mistral", "ollama", "bare", "gemini"],
)
async def test_a_streamed_reply_ends_with_the_turn_of_one_that_comes_at_once(deltas: Any, whole: Any) -> None:
    at_once, once, _ = await converse(body(chat(whole)), DONE)
    streamed, again, _ = await converse(chat_events(*deltas), DONE, streams=True)
    assert (streamed.turn, streamed.finish, streamed.usage) == (at_once.turn, at_once.finish, at_once.usage)
    assert again[1] == once[1]


async def test_a_stream_that_is_cut_within_a_call_is_asked_for_again() -> None:
    cut = body_of([{"choices": [{"index": 0, "delta": delta}]} for delta in SPLIT[:5]])
    async with faulty(breaks_off(cut, {"Content-Type": STREAM}), chat_events(*SPLIT)) as server:
        llm = open_llm(server, "chat")
        reply = await llm.stream(START, TOOLS, lambda _: None)
        await llm.close()
    assert reply.turn is not None and [one.arguments for one in reply.turn.calls] == list(QUERIES)
    assert reply.usage.prompt_tokens > 7, "what broke was paid for"


async def test_a_call_that_is_cut_at_its_length_limit_stays_a_call() -> None:
    reply, bodies, _ = await converse(chat_events(*SPLIT[3:5], finish="length"), DONE, streams=True)
    assert reply.finish == "length" and reply.turn is not None
    assert reply.turn.calls == (ToolCall("call_a", "sql", QUERIES[0][:7]),)
    # Servers read the arguments of earlier calls, and refuse what is no JSON.
    function = bodies[1]["messages"][2]["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"INVALID_JSON": QUERIES[0][:7]}


async def test_a_call_that_repeats_itself_is_stopped() -> None:
    rounds = [piece(0, "1 OR id = " * 5) for _ in range(200)]
    async with faulty(chat_events(piece(0, '{"query": "', id="call_a"), *rounds)) as server:
        llm = open_llm(server, "chat")
        reply = await llm.stream(START, TOOLS, lambda _: None)
        await llm.close()
    assert (reply.finish, reply.text) == ("loop", "") and reply.turn is not None
    assert len(reply.turn.calls[0].arguments) < 2000, "it was stopped long before its end"


async def test_calls_without_ids_as_objects_and_with_another_finish_reason_are_calls() -> None:
    rows = [
        call(None, {"query": "SELECT 1"}),
        call("", QUERIES[1]),
        {"function": {"arguments": "{}"}},
        "sql",
        call(None, None),
    ]
    reply, bodies, _ = await converse(body(chat({"content": None, "tool_calls": rows}, "stop")), DONE)
    assert reply.turn is not None and reply.turn.raw is None
    assert reply.turn.calls == (
        ToolCall("call00001", "sql", QUERIES[0]),
        ToolCall("call00002", "sql", QUERIES[1]),
        ToolCall("call00003", "sql", "{}"),
    )
    assert [turn["tool_call_id"] for turn in bodies[1]["messages"][3:]] == ["call00001", "call00002", "call00003"]
    async with faulty(body(chat({"content": None, "tool_calls": [call(None)]}))) as server:
        llm = open_llm(server, "chat")
        later = await llm.complete([*START, reply.turn, Message("tool", "x", call_id="call00001")], TOOLS)
        await llm.close()
    assert later.turn is not None and later.turn.calls[0].id == "call00004", "no id twice in a conversation"


async def test_a_text_without_a_call_is_a_turn_and_so_is_an_empty_reply() -> None:
    for content, text in (("Oak.", "Oak."), (None, ""), ("", "")):
        async with faulty(body(chat({"content": content}, "stop"))) as server:
            llm = open_llm(server, "chat")
            reply = await llm.complete(START, TOOLS)
            await llm.close()
        assert (reply.text, reply.turn, server.asked) == (text, Message("assistant", text), 1)


async def test_without_tools_there_is_no_turn() -> None:
    async with faulty(body(chat(THOUGHT)), DONE) as server:
        llm = open_llm(server, "chat")
        held = await llm.complete(START, Sampling(functions=(SQL,)))
        plain = await llm.complete(START)
        await llm.close()
    assert (held.turn, plain.turn) == (None, None)
    assert json.loads(held.text)["thought"] == "I look." and len(json.loads(held.text)["tool_calls"]) == 2


async def test_keys_are_hidden_in_all_of_a_turn_and_stop_words_cut_its_text() -> None:
    message = {
        "content": f"{KEY} END more",
        "reasoning_content": f"The key {KEY}.",
        "tool_calls": [call("call_a", json.dumps({"query": KEY}))],
    }
    async with faulty(body(chat(message))) as server:
        llm = open_llm(server, "chat")
        reply = await llm.complete(START, replace(TOOLS, stop=(" END",)))
        await llm.close()
    assert reply.turn is not None and reply.texts == (reply.turn.content,) == ("[hidden]",)
    assert KEY not in repr(reply) and json.loads(reply.turn.calls[0].arguments) == {"query": "[hidden]"}


REFUSALS = {
    "llama.cpp": status(500, "tools param requires --jinja flag"),
    "vllm": status(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "ollama": body({"error": "registry.ollama.ai/library/gemma:2b does not support tools"}, 400),
    "openrouter": status(404, 'No endpoints found that support tool use. Try disabling "sql".'),
    "anthropic": status(400, "tools: Extra inputs are not permitted", type="invalid_request_error"),
}


@pytest.mark.parametrize("kind", REFUSALS)
async def test_refused_tools_are_an_error_of_their_own_and_are_not_sent_again(kind: str) -> None:
    async with faulty(REFUSALS[kind]) as server:
        llm = open_llm(server, kind)
        for _ in range(2):
            with pytest.raises(LLMError) as caught:
                await llm.complete(START, TOOLS)
            assert (caught.value.kind, caught.value.permanent) == ("tools", False)
        await llm.close()
    assert server.asked == 1 and llm.ways.against["tools"] == "it refused tools"


IDS = {
    "chat": status(400, "Tool call id was toolu_01 but must be a-z, A-Z, 0-9, with a length of 9."),
    "anthropic": status(400, "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    "responses": status(400, "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64."),
}


@pytest.mark.parametrize("kind", IDS)
async def test_ids_of_another_provider_are_rewritten_where_they_are_refused(kind: str) -> None:
    said = {"chat": body(chat({"content": "Oak."})), "anthropic": message({"type": "text", "text": "Oak."})}
    spoken = said.get(kind, SPOKEN)
    turn = Message("assistant", "", (ToolCall("functions.sql:0", "sql", "{}"), ToolCall("abc456789", "sql", "{}")))
    results = [Message("tool", "row", call_id=call.id) for call in turn.calls]
    async with faulty(IDS[kind], spoken, spoken) as server:
        llm = open_llm(server, kind)
        replies = [await llm.complete([*START, turn, *results], TOOLS) for _ in range(2)]
        await llm.close()
    assert [reply.text for reply in replies] == ["Oak.", "Oak."] and not llm.ways.against
    sent = [json.dumps(body) for body in server.bodies]
    assert [text.count("functions.sql:0") for text in sent] == [2, 0, 0]
    assert [text.count("id0000001") for text in sent] == [0, 2, 2] and [text.count("abc456789") for text in sent] == [
        2
    ] * 3


@pytest.mark.parametrize(
    "complaint",
    [
        '{"message": "Unexpected role \'user\' after role \'tool\'", "type": "invalid_request_message_order"}',
        "After the optional system message, conversation roles must alternate user and assistant roles.",
    ],
)
async def test_a_question_behind_a_result_is_sent_behind_a_word_where_that_is_refused(complaint: str) -> None:
    turn = Message("assistant", "", (ToolCall("abc456789", "sql", "{}"),))
    asked = [*START, turn, Message("tool", "row", call_id="abc456789"), Message("user", "Decide now.")]
    async with faulty(status(400, complaint), *[body(chat({"content": "Oak."}))] * 2) as server:
        llm = open_llm(server, "chat")
        replies = [await llm.complete(asked, TOOLS) for _ in range(2)]
        await llm.close()
    assert [reply.text for reply in replies] == ["Oak.", "Oak."] and not llm.ways.against
    roles = [[row["role"] for row in sent["messages"][-3:]] for sent in server.bodies]
    assert roles == [["assistant", "tool", "user"], *[["tool", "assistant", "user"]] * 2]


@pytest.mark.parametrize("complaint", ["Unsupported parameter: 'parallel_tool_calls'", "Unprocessable Entity"])
async def test_parallel_calls_are_refused_alone(complaint: str) -> None:
    async with faulty(status(422, complaint), *[body(chat(THOUGHT))] * 2) as server:
        llm = open_llm(server, "chat")
        replies = [await llm.complete(START, TOOLS) for _ in range(2)]
        await llm.close()
    assert all(reply.turn is not None and len(reply.turn.calls) == 2 for reply in replies)
    assert ["parallel_tool_calls" in sent for sent in server.bodies] == [True, False, False]
    assert all(sent["tools"] for sent in server.bodies) and not llm.ways.against


async def test_a_refusal_that_names_nothing_is_put_down_to_the_tools_for_this_once() -> None:
    async with faulty(*[status(400, "Bad Request")] * 2, body(chat(THOUGHT))) as server:
        llm = open_llm(server, "chat")
        with pytest.raises(LLMError) as caught:
            await llm.complete(START, TOOLS)
        assert caught.value.kind == "tools"
        reply = await llm.complete(START, TOOLS)
        await llm.close()
    assert reply.turn is not None and len(reply.turn.calls) == 2
    assert [sent.get("parallel_tool_calls") for sent in server.bodies] == [True, None, True]


async def test_a_refusal_within_a_conversation_is_not_put_down_to_its_tools() -> None:
    complaint = "An assistant message with 'tool_calls' must be followed by tool messages"
    async with faulty(body(chat(THOUGHT)), status(400, complaint), DONE) as server:
        llm = open_llm(server, "chat")
        reply = await llm.complete(START, TOOLS)
        assert reply.turn is not None
        with pytest.raises(LLMError, match="must be followed") as caught:
            await llm.complete([*START, reply.turn, Message("user", "Go on.")], TOOLS)
        assert caught.value.kind == "request"
        assert (await llm.complete(START, TOOLS)).text == "Oak."
        await llm.close()


async def test_a_call_that_its_server_could_not_read_is_asked_for_again() -> None:
    groq = status(400, "Failed to call a function. Please adjust your prompt.", code="tool_use_failed")
    async with faulty(groq, body(chat(THOUGHT))) as server:
        llm = open_llm(server, "chat")
        reply = await llm.complete(START, TOOLS)
        await llm.close()
    assert reply.turn is not None and len(reply.turn.calls) == 2


async def test_ollama_gets_arguments_as_objects_and_results_with_the_name_of_their_tool() -> None:
    function = {"name": "sql", "arguments": {"query": "SELECT 1"}}
    message = {"role": "assistant", "content": "", "thinking": "Rents.", "tool_calls": [{"function": function}]}
    said = {
        "model": "m",
        "message": message,
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 7,
        "eval_count": 3,
    }
    reply, bodies, _ = await converse(
        body(said), body({**said, "message": {"role": "assistant", "content": "Oak."}}), "ollama"
    )
    assert reply.turn is not None and reply.turn.calls == (ToolCall("call00001", "sql", QUERIES[0]),)
    assert bodies[1] == {
        "model": "m",
        "stream": False,
        "options": {"temperature": 0.0, "num_predict": 99},
        "tools": [{"type": "function", "function": SENT_TOOL}],
        "messages": [
            *SENT_START,
            {
                "role": "assistant",
                "content": "",
                "thinking": "Rents.",
                "tool_calls": [{"id": "call00001", "type": "function", "function": function}],
            },
            {"role": "tool", "content": "row 1", "tool_call_id": "call00001", "tool_name": "sql"},
        ],
    }


# The Messages API of Anthropic.

BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Rents first.", "signature": "EqQBCgIYAhIM"},
    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3"},
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "toolu_1", "name": "sql", "input": {"query": "SELECT 1"}},
    {"type": "tool_use", "id": "toolu_2", "name": "sql", "input": {"query": "SELECT 2"}},
]
COUNTS = {"input_tokens": 5, "output_tokens": 3}


def without(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The arguments of calls are kept once, in ``calls``."""
    return [{key: value for key, value in row.items() if key != name} for row in rows]


MARK = {"cache_control": {"type": "ephemeral"}}


def message(*blocks: dict[str, Any], reason: str = "tool_use") -> Play:
    return body({"type": "message", "model": "c", "content": blocks, "stop_reason": reason, "usage": COUNTS})


def message_events(*blocks: dict[str, Any], reason: str = "tool_use", cut: int | None = None) -> bytes:
    """Each block begins empty and comes in two pieces, as the API streams them."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"model": "c", "usage": COUNTS}}]
    for index, block in enumerate(blocks):
        kind, pieces = block["type"], []
        if kind == "tool_use":
            block, text = {**block, "input": {}}, json.dumps(block["input"])
            pieces = [{"type": "input_json_delta", "partial_json": part} for part in ("", text[:6], text[6:cut])]
        elif kind != "redacted_thinking":
            text = block[kind]
            pieces = [{"type": f"{kind}_delta", kind: part} for part in (text[:3], text[3:])]
            if kind == "thinking":
                pieces.append({"type": "signature_delta", "signature": block["signature"]})
            block = {**block, kind: "", **({"signature": ""} if kind == "thinking" else {})}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": one} for one in pieces]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": COUNTS}, {"type": "message_stop"}]
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


SAID = message({"type": "text", "text": "Oak."}, reason="end_turn")


@pytest.mark.parametrize("streams", [False, True])
async def test_blocks_go_back_to_anthropic_as_they_came_and_results_in_one_turn(streams: bool) -> None:
    first = body(message_events(*BLOCKS), kind=STREAM) if streams else message(*BLOCKS)
    reply, bodies, _ = await converse(first, SAID, "anthropic", streams=streams)
    calls = (ToolCall("toolu_1", "sql", QUERIES[0]), ToolCall("toolu_2", "sql", QUERIES[1]))
    assert reply.turn == Message(
        "assistant", "I look.", calls, raw={"model": "m", "messages": without("input", BLOCKS)}
    )
    assert (reply.finish, reply.usage.tokens) == ("stop", 8)
    fields = {
        "model": "m",
        "max_tokens": 99,
        "temperature": 0.0,
        "system": "Decide by tools.",
        "tools": [{"name": "sql", "description": "Run one SELECT.", "input_schema": PARAMETERS}],
    }
    asked = {"role": "user", "content": [{"type": "text", "text": "Which site?", **MARK}]}
    assert bodies[0] == {**fields, "messages": [asked], **({"stream": True} if streams else {})}
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "row 1"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "row 2", **MARK},
    ]
    turns = [asked, {"role": "assistant", "content": BLOCKS}, {"role": "user", "content": results}]
    assert bodies[1] == {**fields, "messages": turns}


async def test_thoughts_do_not_go_to_another_model_of_anthropic() -> None:
    _, bodies, _ = await converse(message(*BLOCKS), SAID, "anthropic", model="m2")
    assert bodies[1]["messages"][1]["content"] == BLOCKS[2:]


async def test_a_message_that_is_cut_within_a_call_stays_a_call() -> None:
    cut = body(message_events(BLOCKS[0], BLOCKS[3], reason="max_tokens", cut=12), kind=STREAM)
    reply, bodies, _ = await converse(cut, SAID, "anthropic", streams=True)
    assert reply.finish == "length" and reply.turn is not None
    assert reply.turn.calls == (ToolCall("toolu_1", "sql", QUERIES[0][:12]),)
    assert bodies[1]["messages"][1]["content"][1]["input"] == {"INVALID_JSON": QUERIES[0][:12]}


async def test_a_message_whose_stream_breaks_is_asked_for_again() -> None:
    data = message_events(*BLOCKS)
    broken = breaks_off(data[: data.index(b"toolu_2")], {"Content-Type": STREAM})
    async with faulty(broken, body(data, kind=STREAM)) as server:
        llm = open_llm(server, "anthropic")
        reply = await llm.stream(START, TOOLS, lambda _: None)
        await llm.close()
    assert reply.turn is not None and len(reply.turn.calls) == 2


async def sent_to_anthropic(messages: list[Message], sampling: Sampling = TOOLS) -> dict[str, Any]:
    async with faulty(SAID) as server:
        llm = open_llm(server, "anthropic")
        await llm.complete(messages, sampling)
        await llm.close()
    return server.bodies[0]


ASKED = Message("assistant", "", (ToolCall("toolu_1", "sql", QUERIES[0]),))
RESULT = Message("tool", "row", call_id="toolu_1")


async def test_results_stand_before_text_and_an_empty_turn_is_left_out() -> None:
    sent = await sent_to_anthropic(
        [*START, ASKED, Message("user", "Go on."), RESULT, Message("assistant", ""), Message("user", "?")]
    )
    (_, asked, results) = sent["messages"]
    assert asked["content"] == [{"type": "tool_use", "id": "toolu_1", "name": "sql", "input": {"query": "SELECT 1"}}]
    assert [block["type"] for block in results["content"]] == ["tool_result", "text", "text"]


async def test_the_cache_marks_are_the_system_text_and_the_last_two_turns_of_the_user() -> None:
    talk = [Message("system", "Rule. " * 1000), START[1]]
    for at in range(4):
        made = ToolCall(f"toolu_{at}", "sql", QUERIES[0])
        talk += [Message("assistant", "", (made,)), Message("tool", f"row {at}", call_id=made.id)]
    sent = await sent_to_anthropic(talk)
    marked = [turn["content"][-1]["content"] for turn in sent["messages"] if "cache_control" in turn["content"][-1]]
    assert marked == ["row 2", "row 3"] and "cache_control" in sent["system"][0]
    assert json.dumps(sent).count("cache_control") == 3


async def test_a_conversation_with_calls_always_declares_tools() -> None:
    sent = await sent_to_anthropic([*START, ASKED, RESULT], Sampling())
    assert sent["tools"] == [{"name": "sql", "input_schema": {"type": "object"}}]
    assert sent["tool_choice"] == {"type": "none"}


async def test_an_empty_message_after_results_is_a_turn() -> None:
    async with faulty(message(reason="end_turn")) as server:
        llm = open_llm(server, "anthropic")
        reply = await llm.complete([*START, ASKED, RESULT], TOOLS)
        await llm.close()
    assert (reply.turn, server.asked) == (Message("assistant", ""), 1)


# The Responses API of OpenAI.

OUTPUT: list[dict[str, Any]] = [
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAAABn"},
    {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
    },
    *(
        {
            "id": f"fc_{at}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{at}",
            "name": "sql",
            "arguments": arguments,
        }
        for at, arguments in enumerate(QUERIES, 1)
    ),
]


def response(output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3}
    return {
        "object": "response",
        "status": "completed",
        "error": None,
        "model": "gpt",
        "output": output,
        "usage": usage,
        **more,
    }


def response_events(output: list[dict[str, Any]], *, whole: bool = True) -> bytes:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"status": "in_progress", "error": None}}]
    for at, item in enumerate(output):
        events.append({"type": "response.output_item.added", "output_index": at, "item": {"type": item["type"]}})
        deltas = {
            "message": ("output_text", "I look."),
            "function_call": ("function_call_arguments", item.get("arguments")),
        }
        if item["type"] in deltas:
            kind, text = deltas[item["type"]]
            assert text is not None
            for part in (text[:4], text[4:]):
                events.append({"type": f"response.{kind}.delta", "output_index": at, "delta": part})
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    if whole:
        events.append({"type": "response.completed", "response": response(output)})
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


SENT_ITEMS = [{"type": "message", **turn} for turn in SENT_START]
SPOKEN = body(response([{**OUTPUT[1], "content": [{"type": "output_text", "text": "Oak."}]}]))


@pytest.mark.parametrize("streams", [False, True])
async def test_output_items_go_back_to_the_responses_api_as_they_came(streams: bool) -> None:
    first = body(response_events(OUTPUT), kind=STREAM) if streams else body(response(OUTPUT))
    reply, bodies, _ = await converse(first, SPOKEN, "responses", streams=streams)
    calls = (ToolCall("call_1", "sql", QUERIES[0]), ToolCall("call_2", "sql", QUERIES[1]))
    kept = {"output": without("arguments", OUTPUT)}
    assert reply.turn == Message("assistant", "I look.", calls, raw={"model": "m", "chat": kept})
    assert reply.usage == Usage(1, 7, 3, 0.0, cache_reads=4)
    fields = {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 99,
        "temperature": 0.0,
        "parallel_tool_calls": True,
        "tools": [{"type": "function", **SENT_TOOL, "strict": False}],
    }
    assert bodies[0] == {**fields, "input": SENT_ITEMS, **({"stream": True} if streams else {})}
    results = [{"type": "function_call_output", "call_id": f"call_{at}", "output": f"row {at}"} for at in (1, 2)]
    assert bodies[1] == {**fields, "input": [*SENT_ITEMS, *OUTPUT, *results]}


@pytest.mark.parametrize("bare", [False, True])
async def test_items_that_cannot_be_found_again_are_sent_as_words_and_calls(bare: bool) -> None:
    output = [{**OUTPUT[0], "encrypted_content": None}, *OUTPUT[1:]] if bare else OUTPUT
    _, bodies, _ = await converse(body(response(output)), SPOKEN, "responses", model="m" if bare else "m2")
    calls = [
        {"type": "function_call", "call_id": f"call_{at}", "name": "sql", "arguments": arguments}
        for at, arguments in enumerate(QUERIES, 1)
    ]
    words = {"type": "message", "role": "assistant", "content": "I look."}
    assert bodies[1]["input"][2:5] == [words, *calls]


async def test_a_response_is_asked_for_without_what_its_model_refuses() -> None:
    refused = status(400, "Encrypted content is not supported with this model.", param="include")
    async with faulty(refused, SPOKEN, SPOKEN) as server:
        llm = open_llm(server, "responses")
        held = await llm.complete(START, Sampling(schema=PARAMETERS))
        await llm.close()
    assert held.text == "Oak." and server.paths == ["/v1/responses"] * 2
    assert ["include" in sent for sent in server.bodies] == [True, False]
    form = server.bodies[1]["text"]["format"]
    assert (form["type"], form["schema"], form["strict"]) == ("json_schema", PARAMETERS, False)


@pytest.mark.parametrize(
    ("reply", "text", "finish"),
    [
        (response([], status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "", "length"),
        (response([], status="incomplete", incomplete_details={"reason": "content_filter"}), "", "content_filter"),
        (
            response([{"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}]),
            "I will not.",
            "refusal",
        ),
    ],
)
async def test_why_a_response_stopped_is_told(reply: dict[str, Any], text: str, finish: str) -> None:
    async with faulty(body(reply)) as server:
        llm = open_llm(server, "responses")
        said = await llm.complete(START)
        await llm.close()
    assert (said.text, said.finish) == (text, finish)


async def test_a_response_that_failed_or_broke_off_is_asked_for_again() -> None:
    failed = response([], status="failed", error={"code": "server_error", "message": "overloaded"})
    async with faulty(body(failed), SPOKEN) as server:
        llm = open_llm(server, "responses")
        assert (await llm.complete(START)).text == "Oak."
        await llm.close()
    error = {"type": "error", "code": "server_error", "message": "no", "param": None}
    for cut in (response_events(OUTPUT, whole=False), response_events(OUTPUT, whole=False) + body_of([error])):
        async with faulty(body(cut, kind=STREAM), body(response_events(OUTPUT), kind=STREAM)) as server:
            llm = open_llm(server, "responses")
            reply = await llm.stream(START, TOOLS, lambda _: None)
            await llm.close()
        assert reply.turn is not None and len(reply.turn.calls) == 2 and server.asked == 2


# The journal, the scripted LLM, and what is estimated.


def test_the_digest_of_a_request_knows_calls_results_and_tools() -> None:
    talk = [*START, ASKED, RESULT]
    others = [
        ([*START, replace(ASKED, calls=()), RESULT], TOOLS),
        ([*START, replace(ASKED, calls=(replace(ASKED.calls[0], arguments="{}"),)), RESULT], TOOLS),
        ([*START, ASKED, replace(RESULT, call_id="toolu_2")], TOOLS),
        (talk, Sampling(max_tokens=99)),
        (talk, Sampling(max_tokens=99, functions=(SQL,))),
        (talk, replace(TOOLS, tools=(replace(SQL, description=""),))),
    ]
    digests = {request_digest(messages, "m", sampling) for messages, sampling in [(talk, TOOLS), *others]}
    assert len(digests) == len(others) + 1
    assert request_digest(START, "m", Sampling()) == "43cffbafbf7bc541de084911a668b89a"


async def test_the_journal_keeps_the_turn() -> None:
    class Calling(Counting):
        async def complete(self, messages: Any, sampling: Sampling = Sampling()) -> Completion:
            return replace(await super().complete(messages, sampling), texts=("",), turn=ASKED)

    pages = Pages()
    for is_replayed in (False, True):
        reply = await Journal(pages).llm(Calling()).complete(START, TOOLS)
        assert (reply.turn, reply.replayed) == (ASKED, is_replayed)


async def test_calls_and_schemas_count_where_tokens_are_estimated() -> None:
    uncounted = {**chat({"content": None, "tool_calls": [call("call_a")]}), "usage": None}
    async with faulty(body(uncounted), body(uncounted)) as server:
        llm = open_llm(server, "chat")
        first = await llm.complete(START, TOOLS)
        assert first.turn is not None
        second = await llm.complete([*START, first.turn, Message("tool", "row", call_id="call_a")], TOOLS)
        await llm.close()
    assert first.usage.completion_tokens == (len("sql" + QUERIES[0]) + 3) // 4
    assert first.usage.prompt_tokens > len(json.dumps(SENT_TOOL)) // 4
    assert second.usage.prompt_tokens - first.usage.prompt_tokens == first.usage.completion_tokens + 1


async def test_a_scripted_llm_plays_turns_and_streams() -> None:
    llm, texts = ScriptedLLM([ASKED, "Oak it is."]), list[str]()
    first = await llm.stream(START, TOOLS, texts.append)
    assert (first.turn, first.texts, texts[-1]) == (ASKED, ("",), QUERIES[0])
    second = await llm.stream([*START, ASKED, RESULT], TOOLS, texts.append)
    assert (second.turn, texts[-3:]) == (Message("assistant", "Oak it is."), ["Oak ", "Oak it ", "Oak it is."])
    assert second.usage.prompt_tokens > first.usage.prompt_tokens + len(QUERIES[0]) // 4
    assert (await ScriptedLLM(["Oak."]).complete(START)).turn is None
