"""What a call costs: published prices, a person's own, and what endpoints say of their caches."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from decisor.errors import SetupError
from decisor.llms import choose
from decisor.llms.anthropic import Anthropic
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import SHIPPED, Price, published_price, read_prices
from decisor.llms.retry import Retries
from decisor.types import Completion, Usage
from servers.fault_plays import body, said
from servers.fault_server import ASK, KEY, faulty

ALONE = {"DECISOR_OLLAMA_PORT": "0", "DECISOR_LLAMACPP_PORT": "0"}
OWN = """
models = [
  { host = "llm.example.com", model = "m", prompt = 1, cached = 0.1, completion = 2, date = 2026-01-02, source = "u" },
  { host = "api.openai.com", model = "gpt-4.1", prompt = 7, completion = 9, date = 2026-01-02, source = "deal" },
]
"""


def test_every_published_price_is_dated_has_a_source_and_stands_once() -> None:
    rows = read_prices(SHIPPED)
    assert len(rows) > 20
    assert len({(row.host, row.model) for row in rows}) == len(rows)
    for row in rows:
        assert row.source and date(2023, 1, 1) < row.date <= date(2026, 12, 31), row
        assert 0 < row.price.prompt <= row.price.completion, row
        assert row.price.cached is None or row.price.cached < row.price.prompt, row
        assert row.price.cache_write is None or row.price.cache_write > row.price.prompt, row


@pytest.mark.parametrize(
    ("model", "host", "known"),
    [
        ("gpt-4.1-mini", "api.openai.com", True),
        ("gpt-4.1-mini-2025-04-14", "api.openai.com", True),
        ("claude-sonnet-4-5-20250929", "api.anthropic.com", True),
        ("gpt-4.1-mini", "llm.example.com", False),
        ("gpt-4.1-mini-fast", "api.openai.com", False),
        ("", "", False),
    ],
)
def test_a_price_is_of_a_model_at_its_host(model: str, host: str, known: bool) -> None:
    assert (published_price(model, host, {}) is not None) is known


def test_a_persons_own_table_counts_first(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(OWN)
    environ = ALONE | {"DECISOR_PRICES": str(path), "OPENAI_API_KEY": KEY}
    assert published_price("m", "llm.example.com", environ) == Price(1.0, 2.0, cached=0.1)
    prices = [
        choose.choose_llm(spec, environ)
        for spec in ("gpt-4.1", "gpt-4.1-mini", "m@https://llm.example.com/v1", "other")
    ]
    assert [llm and llm.price for llm in prices] == [Price(7.0, 9.0), Price(0.4, 1.6, 0.1), Price(1.0, 2.0, 0.1), None]
    named = choose.choose_llm("gpt-4.1", environ | {"DECISOR_PRICE": "1,2"})
    assert named is not None and named.price == Price(1.0, 2.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("models = [{ host = 'h', model = 'm', prompt = 1 }]", "Each line"),
        ("models = [{ host = 'h', model = 'm', prompt = -1, completion = 1 }]", "-1"),
        (OWN.replace("cached", "cashed"), "cashed"),
        (OWN.replace("2026-01-02", "'today'"), "today"),
        ("models = [", "no table"),
    ],
)
def test_a_table_that_is_none_says_what_is_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(SetupError, match=complaint):
        published_price("m", "h", {"DECISOR_PRICES": str(path)})
    with pytest.raises(SetupError, match="Cannot read"):
        published_price("m", "h", {"DECISOR_PRICES": str(tmp_path / "none.toml")})


PRICE = Price(10.0, 100.0, cached=1.0, cache_write=20.0)
WAYS: dict[str, tuple[dict[str, Any], Usage]] = {
    "OpenAI, Azure, vLLM": (
        {"usage": {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}}},
        Usage(1, 100, 10, 0.00146, cache_reads=60),
    ),
    "DeepSeek": (
        {
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "prompt_cache_hit_tokens": 60,
                "prompt_cache_miss_tokens": 40,
                "prompt_tokens_details": None,
            }
        },
        Usage(1, 100, 10, 0.00146, cache_reads=60),
    ),
    "llama.cpp": (
        {"usage": {"prompt_tokens": 100, "completion_tokens": 10}, "timings": {"cache_n": 60, "prompt_n": 40}},
        Usage(1, 100, 10, 0.00146, cache_reads=60),
    ),
    "llama.cpp without usage": (
        {"timings": {"cache_n": 60, "prompt_n": 40, "predicted_n": 10}},
        Usage(1, 100, 10, 0.00146, cache_reads=60),
    ),
    "OpenRouter": (
        {
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "cost": 0.5,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 40},
            }
        },
        Usage(1, 100, 10, 0.00186, cache_reads=60, cache_writes=40),
    ),
    "more from the cache than there is": (
        {"usage": {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 999}}},
        Usage(1, 100, 10, 0.0011, cache_reads=100),
    ),
    "no counts": ({}, Usage(1, 2, 1, 0.00012, estimates=1)),
}


async def reply_with(rest: dict[str, Any], price: Price | None) -> Completion:
    choice = {"message": {"content": "Lyon"}, "finish_reason": "stop"}
    async with faulty(body({"choices": [choice], **rest})) as server:
        llm = server.llm(price=price)
        try:
            return await llm.complete(ASK)
        finally:
            await llm.close()


@pytest.mark.parametrize("way", WAYS)
async def test_what_came_from_a_cache_is_counted_and_priced_apart(way: str) -> None:
    rest, usage = WAYS[way]
    reply = await reply_with(rest, PRICE)
    assert reply.usage.dollars == pytest.approx(usage.dollars)
    assert reply.usage == Usage(
        **{name: getattr(usage, name) for name in usage.__slots__} | {"dollars": reply.usage.dollars}
    )


async def test_a_cost_that_the_endpoint_names_is_known_without_a_price() -> None:
    assert (await reply_with(WAYS["OpenRouter"][0], None)).usage.dollars == 0.5
    assert (await reply_with(WAYS["DeepSeek"][0], None)).usage.dollars is None


async def test_anthropic_counts_what_it_read_and_wrote_apart_from_the_rest() -> None:
    usage = {"input_tokens": 20, "output_tokens": 10, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 30}
    message = {"type": "message", "content": [{"type": "text", "text": "Lyon"}], "stop_reason": "end_turn"}
    async with faulty(body(message | {"usage": usage})) as server:
        llm = Anthropic("claude-x", KEY, server.origin, price=PRICE, retries=Retries(attempts=1))
        spent = (await llm.complete(ASK)).usage
        await llm.close()
    assert (spent.prompt_tokens, spent.cache_reads, spent.cache_writes, spent.estimates) == (100, 50, 30, 0)
    assert spent.dollars == pytest.approx((20 * 10 + 50 * 1 + 30 * 20 + 10 * 100) / 1e6)


async def test_the_usual_counts_are_no_estimate() -> None:
    async with faulty(said("Lyon", usage={"prompt_tokens": 3, "completion_tokens": 1})) as server:
        llm = OpenAICompatible("m", server.origin, KEY)
        assert (await llm.complete(ASK)).usage == Usage(1, 3, 1, None)
        await llm.close()
