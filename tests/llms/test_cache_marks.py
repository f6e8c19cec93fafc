"""Prompts that grow, against a server that keeps prefixes as Anthropic does: at the ends of marked blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from decisor.errors import LLMError
from decisor.llms.anthropic import Anthropic, CacheMarks
from decisor.llms.prices import Price
from decisor.llms.retry import Retries
from decisor.types import Message, Usage
from servers.fault_plays import status
from servers.fault_server import KEY, faulty
from servers.openai_server import serve_app

RULES = "".join(f"Rule {number}: no site is opened twice in the same year.\n" for number in range(100))
PRICE = Price(3.0, 15.0, cached=0.3, cache_write=3.75)


class KeepingServer:
    """Counts a token per character. A prefix is kept where a block with a mark ends, and used where the blocks before
    the end of one are the same."""

    def __init__(self) -> None:
        self.prefixes: set[str] = set()
        self.bodies: list[dict[str, Any]] = []

    def usage(self, body: dict[str, Any]) -> dict[str, int]:
        blocks: list[dict[str, Any]] = []
        for role, content in [
            ("system", body.get("system", [])),
            *((m["role"], m["content"]) for m in body["messages"]),
        ]:
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            blocks += [{**part, "role": role} for part in parts]
        assert sum("cache_control" in block for block in blocks) <= 4, "more are refused"
        assert all(block["text"] for block in blocks), "empty blocks are refused"
        total = sum(len(block["text"]) for block in blocks)
        ends: list[tuple[str, int, bool]] = []
        prefix = ""
        for block in blocks:
            prefix += json.dumps({"role": block["role"], "text": block["text"]})
            length = (ends[-1][1] if ends else 0) + len(block["text"])
            ends.append((prefix, length, "cache_control" in block))
        reads = max((length for prefix, length, _ in ends if prefix in self.prefixes), default=0)
        marked = [(prefix, length) for prefix, length, is_marked in ends if is_marked]
        self.prefixes |= {prefix for prefix, _ in marked}
        writes = max(max((length for _, length in marked), default=0) - reads, 0)
        return {
            "input_tokens": total - reads - writes,
            "cache_read_input_tokens": reads,
            "cache_creation_input_tokens": writes,
            "output_tokens": 1,
        }

    async def answer(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.json())
        usage = self.usage(self.bodies[-1])
        return web.json_response(
            {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "usage": usage}
        )


async def spent_on(prompts: list[list[Message]]) -> tuple[Usage, KeepingServer]:
    server = KeepingServer()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/messages", server.answer)
    spent = Usage()
    async with serve_app(app) as origin:
        llm = Anthropic("claude-x", KEY, origin, price=PRICE, retries=Retries(attempts=1))
        for prompt in prompts:
            spent = spent + (await llm.complete(prompt)).usage
        await llm.close()
    return spent, server


def text_of(content: str | list[dict[str, str]]) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def growing(steps: int) -> list[list[Message]]:
    """Prompts of one message that grow at the end, before a last line that changes."""
    shown = [f"Observation {at}: {'row ' * 100}\n" for at in range(steps)]
    return [[Message("user", f"{RULES}{''.join(shown[:at])}Step {at}: go on.")] for at in range(steps)]


async def test_what_a_prompt_has_in_common_with_one_before_is_read_from_the_cache() -> None:
    prompts = growing(15)
    spent, server = await spent_on(prompts)
    assert [text_of(body["messages"][0]["content"]) for body in server.bodies] == [one[0].content for one in prompts]
    assert spent.cache_reads > 0.8 * spent.prompt_tokens
    assert spent.cache_writes < len(prompts[-1][0].content), "nothing is put there twice"
    assert spent.dollars is not None and spent.dollars < 0.35 * PRICE.dollars(spent.prompt_tokens, 15)


async def test_a_system_text_and_a_conversation_are_read_from_the_cache() -> None:
    turns = [Message("system", RULES)]
    prompts = []
    for at in range(10):
        turns = [*turns, Message("user", f"Question {at}: {'why ' * 300}"), Message("assistant", f"Because {at}.")]
        prompts.append(turns[:-1])
    spent, server = await spent_on(prompts)
    assert all(body["system"][0]["cache_control"] for body in server.bodies)
    assert spent.cache_reads > 0.7 * spent.prompt_tokens


async def test_runs_at_once_do_not_disturb_each_other() -> None:
    runs = [[[Message("user", f"Question {run}.\n{one[0].content}")] for one in growing(10)] for run in range(4)]
    spent, _ = await spent_on([prompt for prompts in zip(*runs, strict=True) for prompt in prompts])
    assert spent.cache_reads > 0.7 * spent.prompt_tokens


async def test_short_prompts_and_prompts_that_have_nothing_in_common_are_sent_as_they_are() -> None:
    short = [[Message("system", "Be brief."), Message("user", f"Hello {at}")] for at in range(3)]
    other = [[Message("user", f"{at} {RULES}")] for at in range(3)]
    spent, server = await spent_on([*short, *other])
    assert "cache_control" not in json.dumps(server.bodies)
    assert spent.cache_writes == spent.cache_reads == 0


async def test_an_endpoint_that_refuses_marks_is_asked_without() -> None:
    async with faulty(
        status(400, "system.0.cache_control: Extra inputs are not permitted"), answer=lambda _: ""
    ) as server:
        llm = Anthropic("claude-x", KEY, server.origin, retries=Retries(attempts=1))
        for _ in range(2):
            with pytest.raises(LLMError, match="without content"):  # the server answers in another form
                await llm.complete([Message("system", RULES), Message("user", "Hello")])
        await llm.close()
    assert ["cache_control" in json.dumps(body) for body in server.bodies] == [True, False, False]


def test_only_so_many_prompts_are_remembered() -> None:
    marks = CacheMarks()
    for at in range(200):
        marks.messages([{"role": "user", "content": f"{at}"}])
    assert len(marks.recent) == 64


def test_a_turn_without_text_has_no_mark() -> None:
    marks = CacheMarks()
    turns = [{"role": "user", "content": RULES}, {"role": "assistant", "content": ""}]
    for at in range(2):
        sent = marks.messages([*turns, {"role": "user", "content": f"{at}"}])
    assert [list(map(len, one["content"])) for one in sent[1:]] == [[], [1]]
    assert sent[0]["content"] == [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
