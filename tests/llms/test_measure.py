"""What decisor doctor finds out of an LLM, and which techniques that is enough for."""

from __future__ import annotations

import json
from typing import Any

from decisor.cli.doctor import format_measurement
from decisor.llms.choose import measure_llm
from decisor.session.run_setup import rate_technique
from servers.llama_server import llama

STORY = "A ship left the harbour, and the sea was grey. " * 40


def honest(body: dict[str, Any]) -> str:
    """Keeps to the cap and to the schema."""
    if "response_format" in body:
        return json.dumps({"city": "Lyon"})
    return STORY[: 4 * (body.get("max_tokens") or 400)]


def careless(body: dict[str, Any]) -> str:
    """Heeds nothing."""
    return STORY


async def test_what_an_endpoint_heeds_is_told_apart_from_what_it_ignores() -> None:
    async with llama(answer=honest, context=8192, slots=4) as server:
        llm = server.llm()
        good = await measure_llm(llm)
        server.answer = careless
        bad = await measure_llm(llm)
        await llm.close()
    assert (good.context, good.slots, good.busy, good.probe.ok) == (8192, 4, False, True) and good.speed > 0
    assert {name for name, heed in good.heeds.items() if heed == "yes"} >= {
        "max_tokens",
        "seed",
        "n",
        "response_format",
    }
    assert good.heeds["logprobs"] == good.heeds["tools"] == "ignored"
    assert bad.heeds["max_tokens"] == bad.heeds["response_format"] == "ignored"


async def test_a_busy_server_is_called_busy_and_not_broken() -> None:
    async with llama(answer=honest, busy=True, slots=2) as server:
        llm = server.llm()
        measurement = await measure_llm(llm)
        await llm.close()
    assert measurement.busy
    assert "It is busy, not broken: all of its 2 slots are in use" in "\n".join(format_measurement(measurement))


async def test_an_endpoint_that_is_not_there_is_broken() -> None:
    async with llama() as server:
        llm = server.llm()
    llm.endpoint.retries.attempts = 1
    measurement = await measure_llm(llm)
    await llm.close()
    assert not measurement.busy and not measurement.probe.ok
    assert next(iter(format_measurement(measurement))).startswith("It does not work: ")


async def test_a_short_context_is_tight_for_techniques_with_long_prompts_and_none_for_others() -> None:
    async with llama(answer=honest, context=2048) as server:
        llm = server.llm()
        measurement = await measure_llm(llm)
        await llm.close()
    assert [rate_technique(name, measurement).fit for name in ("plan_rag", "rag", "self_rag")] == [
        "tight",
        "enough",
        "not",
    ]
    lines = "\n".join(format_measurement(measurement))
    assert "Tight for agent, plan_rag" in lines and "its context is 2,048 tokens, it has 1 slot" in lines
