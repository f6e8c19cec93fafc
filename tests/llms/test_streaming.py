"""A reply as it is written: what is shown of it, and that no fault is taken for a reply."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from decisor.errors import LLMError
from decisor.llms.anthropic import Anthropic
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.retry import Retries
from decisor.system.tasks import map_concurrently
from decisor.types import Completion, Sampling, Usage
from servers.event_server import HEAD, body_of, chat, ending, event, message_events, open_ended, piece, streamed
from servers.fault_plays import status
from servers.fault_server import ASK, KEY, Play, faulty
from servers.openai_server import serve_app
from servers.wire_server import Wire, wire, wire_server

TEXTS = ("Ly", "ön", " 里昂 🏛")
WHOLE = "".join(TEXTS)
BODY = body_of(chat(*TEXTS))


async def reply_to(
    *script: Wire, attempts: int = 1, seconds: float = 10.0, sampling: Sampling = Sampling()
) -> tuple[Completion | LLMError, list[str]]:
    """The reply or the failure, and every text that was shown."""
    texts: list[str] = []
    async with wire_server(*script) as server:
        llm = server.llm(seconds, attempts)
        try:
            return await llm.stream(ASK, sampling, texts.append), texts
        except LLMError as error:
            return error, texts
        finally:
            await llm.close()


async def test_the_text_is_shown_while_it_grows_and_the_reply_is_the_whole() -> None:
    reply, texts = await reply_to(wire(streamed(BODY)))
    assert isinstance(reply, Completion)
    assert (reply.text, reply.finish, reply.model) == (WHOLE, "stop", "m-1")
    assert reply.usage == Usage(1, 7, 3, None, cache_reads=4)
    assert texts[-1] == WHOLE and all(WHOLE.startswith(text) for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_every_cut_of_the_bytes_gives_the_same_reply(end: bytes) -> None:
    body = b": hello" + end + end + body_of(chat("é", "x"), end)
    data = open_ended(body)

    async def text_of(at: int) -> str:
        reply, _ = await reply_to(wire(data[:at], data[at:], end="close"))
        return reply.text if isinstance(reply, Completion) else str(reply)

    assert set(await map_concurrently(text_of, range(len(HEAD), len(data)), at_once=40)) == {"éx"}


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([b": keep-alive\n\n", *chat("Lyon"), b""], "Lyon"),
        (chat("Lyon", done=False), "Lyon"),
        (chat("Lyon", done=False)[:-1], "Lyon"),
        ([piece("Lyon"), "[DONE]"], "Lyon"),
        ([b"event: x\nid: 1\nretry: 5\n" + event(piece("Lyon")), ending()], "Lyon"),
        ([b"\xef\xbb\xbf" + event(piece("Lyon")), body_of([ending()])[:-1]], "Lyon"),
        ([{"choices": [{"index": 0, "message": {"content": "Lyon"}, "finish_reason": "stop"}]}], "Lyon"),
        ([piece("", delta={"content": None, "reasoning_content": "hm"}), *chat("Lyon")], "Lyon"),
        ([piece("", delta={"role": "assistant", "content": ""}), *chat("Lyon")], "Lyon"),
    ],
)
async def test_the_forms_that_servers_send(events: list[Any], text: str) -> None:
    reply, _ = await reply_to(wire(open_ended(body_of(events)), end="close"))
    assert isinstance(reply, Completion) and reply.text == text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (body_of([piece("Ly")]), "connection"),
        (b"", "protocol"),
        (b"<html>hello</html>", "protocol"),
        (body_of(["[DONE]"]), "protocol"),
        (body_of([piece("Ly"), "{no json"]), "protocol"),
        (body_of([piece("Ly"), {"error": {"code": 503, "message": "overloaded"}}]), "server"),
        (body_of([piece("Ly"), b'error: {"code": 500, "message": "slot"}\n\n']), "server"),
        (body_of([piece("Ly"), b'event: error\ndata: {"message": "no", "code": 502}\n\n']), "server"),
        (body_of([piece("Ly"), ending("error")]), "protocol"),
    ],
)
async def test_a_stream_that_breaks_is_no_reply_and_is_asked_for_again(body: bytes, kind: str) -> None:
    failure, _ = await reply_to(wire(open_ended(body), end="close"))
    assert isinstance(failure, LLMError) and failure.kind == kind
    reply, texts = await reply_to(wire(open_ended(body), end="close"), wire(streamed(BODY)), attempts=2)
    assert isinstance(reply, Completion) and reply.text == WHOLE == texts[-1]
    if b'"Ly"' in body:
        assert reply.usage.prompt_tokens > 7 and reply.usage.completion_tokens == 3 + 1, "what broke was paid for"
    assert reply.usage.calls == 1


async def test_an_error_that_will_not_pass_ends_at_once() -> None:
    body = body_of([piece("Ly"), {"error": {"code": "invalid_api_key", "message": f"bad key {KEY}"}}])
    failure, _ = await reply_to(wire(open_ended(body)), attempts=5)
    assert isinstance(failure, LLMError) and failure.kind == "auth"
    assert KEY not in str(failure)


async def test_a_connection_that_is_reset_is_a_broken_reply() -> None:
    failure, _ = await reply_to(wire(streamed(BODY)[:-40], end="reset"))
    assert isinstance(failure, LLMError) and failure.kind == "connection"


async def test_reading_stops_at_the_limit() -> None:
    async with wire_server(wire(open_ended(BODY))) as server:
        llm = server.llm(max_bytes=100)
        with pytest.raises(LLMError) as caught:
            await llm.stream(ASK, Sampling(), lambda _: None)
        await llm.close()
    assert caught.value.kind == "size"


async def test_the_connection_is_used_again_after_the_last_event() -> None:
    async with wire_server(wire(streamed(BODY)), wire(streamed(BODY)[:-5], streamed(BODY)[-5:])) as server:
        llm = server.llm()
        for _ in range(2):
            await llm.stream(ASK, Sampling(), lambda _: None)
        assert (await llm.complete(ASK)).text == "Lyon"
        await llm.close()
    assert len(server.ports) == 3 and len(set(server.ports)) == 1


async def test_a_server_that_closes_after_each_stream_is_not_asked_in_vain() -> None:
    # llama.cpp's does, without saying so in a header.
    async with wire_server(*[wire(streamed(BODY), end="close")] * 4) as server:
        llm = server.llm(attempts=2)
        used = [(await llm.stream(ASK, Sampling(), lambda _: None)).usage.prompt_tokens for _ in range(4)]
        await llm.close()
    assert used == [7] * 4 and len(set(server.ports)) == 4


async def test_usage_that_is_not_sent_is_estimated_and_marked() -> None:
    reply, _ = await reply_to(wire(streamed(body_of(chat("eight ch", usage=None)))))
    assert isinstance(reply, Completion)
    assert (reply.usage.completion_tokens, reply.usage.estimates) == (2, 1)


LOOPS = "Thought: " + "I must look again. " * 40


async def test_a_reply_that_repeats_itself_is_stopped_and_paid_for() -> None:
    pieces = [piece(LOOPS[at : at + 50]) for at in range(0, len(LOOPS), 50)]
    more = body_of([piece("I must look again. ")] * 2_000)
    reply, texts = await reply_to(wire(open_ended(body_of(pieces)), more, end="close"))
    assert isinstance(reply, Completion)
    assert (reply.finish, reply.text) == ("loop", "Thought: I must look again.")
    assert reply.usage.estimates == 1 and reply.usage.completion_tokens > 100
    assert len(texts[-1]) < 2_000, "it was stopped long before its end"


async def test_what_is_shown_ends_at_a_stop_word_and_hides_the_key() -> None:
    body = body_of(chat(f"a {KEY} b", "\nObservation: made up"))
    reply, texts = await reply_to(wire(streamed(body)), sampling=Sampling(("\nObservation",)))
    assert isinstance(reply, Completion) and reply.text == texts[-1] == "a [hidden] b"


@pytest.mark.slow
async def test_silence_ends_it_and_slow_writing_does_not() -> None:
    reply, _ = await reply_to(wire(HEAD + b"\r\n", *(event(one) for one in chat(*"abcdefghij"))), seconds=5.0)
    assert isinstance(reply, Completion)
    slow = [event(piece(str(n))) for n in range(5)]

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for part in slow:
            await asyncio.sleep(0.4)
            await response.write(part)
        if (await request.json())["messages"][0]["content"] == "Where?":
            await response.write(body_of([ending()]))
            return response
        while True:
            await asyncio.sleep(0.1)
            await response.write(b": still here\n\n")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    async with serve_app(app) as origin:
        llm = OpenAICompatible("m", origin, seconds=1.9, retries=Retries(attempts=1))
        assert (await llm.stream(ASK, Sampling(), lambda _: None)).text == "01234", "two seconds, but never silent"
        with pytest.raises(LLMError, match=r"wrote nothing for 1\.9 s") as caught:
            await llm.stream((ASK[0].__class__("user", "Who?"),), Sampling(), lambda _: None)
        await llm.close()
    assert caught.value.used.completion_tokens == 2, "what it wrote before that was paid for"


@pytest.mark.parametrize(
    ("refusal", "sent"),
    [
        ("Unrecognized request argument supplied: stream_options", {"stream": True}),
        ("'stream' is not supported by this model", {}),
    ],
)
async def test_an_endpoint_that_refuses_a_part_of_it_is_asked_without(refusal: str, sent: dict[str, Any]) -> None:
    async with faulty(status(400, refusal)) as server:
        llm = server.llm()
        assert [(await llm.stream(ASK, Sampling(), lambda _: None)).text for _ in range(2)] == ["Lyon"] * 2
        await llm.close()
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    for body in server.bodies[1:]:
        assert body.get("stream") == sent.get("stream")


async def test_an_endpoint_that_does_not_stream_is_understood() -> None:
    texts: list[str] = []
    async with faulty() as server:
        llm = server.llm()
        assert (await llm.stream(ASK, Sampling(), texts.append)).text == "Lyon"
        assert len((await llm.stream(ASK, Sampling(n=2), texts.append)).texts) == 2
        await llm.close()
    assert "stream" not in server.bodies[1]


async def test_a_continuation_streams_with_its_logprobs() -> None:
    rows = [
        {
            "text": text,
            "index": 0,
            "finish_reason": None,
            "logprobs": {"tokens": [text], "token_logprobs": [-0.5], "top_logprobs": [{text: -0.5}]},
        }
        for text in ("Ly", "on")
    ]
    rows[-1]["finish_reason"] = "stop"
    body = body_of([*({"choices": [row]} for row in rows), "[DONE]"])
    reply, texts = await reply_to(wire(streamed(body)), sampling=Sampling(continuation=True, logprobs=1))
    assert isinstance(reply, Completion)
    assert (reply.text, [token.text for token in reply.logprobs[0]], texts[-1]) == ("Lyon", ["Ly", "on"], "Lyon")


def plays(data: bytes) -> Play:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for byte in data:
            await response.write(bytes([byte]))
        return response

    return answer


async def message_to(*scripts: Play, sampling: Sampling = Sampling()) -> tuple[Completion, list[str]]:
    texts: list[str] = []
    async with faulty(*scripts) as server:
        llm = Anthropic("claude-x", KEY, server.origin, retries=Retries(attempts=3, first_seconds=0.01))
        try:
            reply = await llm.stream(ASK, sampling, texts.append)
        finally:
            await llm.close()
    assert all(body["stream"] is True for body in server.bodies)
    return reply, texts


def named(events: list[dict[str, Any]]) -> bytes:
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


async def test_a_message_of_anthropic_streams() -> None:
    reply, texts = await message_to(plays(named(message_events("Ly", "on", reason="max_tokens"))))
    assert (reply.text, reply.finish, reply.model) == ("Lyon", "length", "claude-x")
    assert reply.usage == Usage(1, 8, 9, None, cache_reads=3)
    assert texts == ["Ly", "Lyon"]


@pytest.mark.parametrize(
    "broken",
    [
        named(message_events("Ly", "on"))[:-200],
        named(message_events("Ly", "on")[:5]),
        named([*message_events("Ly")[:4], {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}]),
    ],
)
async def test_a_message_that_breaks_is_asked_for_again(broken: bytes) -> None:
    reply, texts = await message_to(plays(broken), plays(named(message_events("Lyon"))))
    assert reply.text == texts[-1] == "Lyon"
    assert reply.usage.prompt_tokens > 8


async def test_the_input_of_a_tool_streams_as_json() -> None:
    tool = {"type": "tool_use", "name": "reply", "input": {}}
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": tool},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": part}}
            for part in ("", '{"city": ', '"Lyon"}')
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    ]
    reply, texts = await message_to(plays(named(events)), sampling=Sampling(schema={"type": "object"}))
    assert reply.text == '{"city": "Lyon"}' == texts[-1]


async def test_a_message_that_repeats_itself_is_stopped() -> None:
    reply, _ = await message_to(plays(named(message_events(*["look again. "] * 120))))
    assert (reply.finish, reply.text) == ("loop", "look again. ")
