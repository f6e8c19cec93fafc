"""What is asked of an OpenAI-compatible endpoint, and what is made of its replies."""

from __future__ import annotations

from typing import Any

import pytest

from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import Price
from decisor.runtime.run import Run
from decisor.types import Completion, Message, Sampling
from servers.fault_plays import body, status
from servers.fault_server import ASK, KEY, faulty
from servers.openai_server import serve

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


async def asked(sampling: Sampling, *faults: Any, **settings: Any) -> tuple[Completion, list[dict[str, Any]]]:
    async with faulty(*faults) as server:
        llm = server.llm(**settings)
        reply = await llm.complete(ASK, sampling)
        await llm.close()
    assert server.headers["Authorization"] == f"Bearer {KEY}"
    return reply, server.bodies


async def test_every_setting_is_sent() -> None:
    sampling = Sampling(("\nObservation",), 0.7, 100, 2, 5, SCHEMA)
    reply, (sent,) = await asked(sampling)
    assert reply.texts == ("Lyon", "Lyon")
    assert sent["response_format"]["json_schema"] == {"name": "reply", "schema": SCHEMA, "strict": True}
    assert {name: sent[name] for name in ("stop", "temperature", "max_tokens", "n", "seed")} == {
        "stop": ["\nObservation"],
        "temperature": 0.7,
        "max_tokens": 100,
        "n": 2,
        "seed": 5,
    }


async def test_an_endpoint_without_schemas_gets_the_schema_in_words() -> None:
    no = status(400, "response_format json_schema is not supported by this model")
    _, (first, second, third) = await asked(Sampling(schema=SCHEMA), no, no)
    assert first["response_format"]["type"] == "json_schema"
    assert second["response_format"] == {"type": "json_object"}
    assert "response_format" not in third
    assert '"city"' not in first["messages"][-1]["content"]
    assert '"city"' in second["messages"][-1]["content"] == third["messages"][-1]["content"]


async def test_what_an_endpoint_refused_once_is_not_sent_again() -> None:
    faults = [
        status(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        status(400, "Unsupported value", param="temperature"),
        status(422, "Unrecognized request argument supplied: 'stop'"),
    ]
    async with faulty(*faults) as server:
        llm = server.llm()
        await llm.complete(ASK, Sampling(("x",), max_tokens=9))
        await llm.complete(ASK, Sampling(("x",), max_tokens=9))
        await llm.close()
    assert server.asked == 5
    assert server.bodies[-1] == {
        "model": "m",
        "messages": [{"role": "user", "content": "Where?"}],
        "max_completion_tokens": 9,
    }


async def test_stop_words_hold_where_the_endpoint_ignores_them() -> None:
    said = {"choices": [{"message": {"content": "Action: a\nObservation: made up"}, "finish_reason": "stop"}]}
    reply, (sent,) = await asked(Sampling(("1", "2", "3", "4", "\nObservation")), body(said))
    assert reply.text == "Action: a"
    assert len(sent["stop"]) == 4


async def test_a_refusal_and_a_cut_reply_say_so() -> None:
    refused = {"choices": [{"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}]}
    cut = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    assert (await asked(Sampling(), body(refused)))[0].finish == "refusal"
    assert (await asked(Sampling(), body(cut)))[0].finish == "length"


async def test_an_unknown_price_is_unknown_and_a_known_one_is_counted() -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}
    said = {"choices": [{"message": {"content": "Lyon"}, "finish_reason": "stop"}], "usage": usage}
    assert (await asked(Sampling(), body(said)))[0].usage.dollars is None
    priced, _ = await asked(Sampling(), body(said), price=Price(2.0, 8.0))
    assert priced.usage.dollars == 6.0
    assert priced.usage.tokens == 1_500_000


@pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": -5, "completion_tokens": "many"}])
async def test_tokens_are_estimated_where_the_endpoint_does_not_count(usage: Any) -> None:
    said = {"choices": [{"message": {"content": "12345678"}, "finish_reason": "stop"}], "usage": usage}
    reply, _ = await asked(Sampling(), body(said))
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (2, 2)


async def test_a_lone_surrogate_can_be_written_to_a_file() -> None:
    said = b'{"choices": [{"message": {"content": "a\\ud800b"}, "finish_reason": "stop"}]}'
    reply, _ = await asked(Sampling(), body(said))
    reply.text.encode()


async def test_a_run_asks_through_it_and_no_key_is_needed() -> None:
    async with serve(lambda request: request["messages"][-1]["content"].upper()) as base_url:
        llm = OpenAICompatible("m", base_url)
        assert await Run(llm, env=None).ask("lyon", str) == "LYON"  # type: ignore[arg-type]
        await llm.close()
        reply = await llm.complete([Message("user", "open again")])
        await llm.close()
    assert reply.text == "OPEN AGAIN"
