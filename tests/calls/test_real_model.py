"""Limits and a short context, held against the counts of a real server with a real small model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import decisor
from decisor.runtime.budget import Limits
from decisor.trace.events import FailedCall, LLMCall, ShortenedPrompt, events_of
from servers.small_lm import SmallLLM, missing, serve

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[2] / "docs"
QUESTION = "Which price has an LLM that runs on this machine?"


@pytest.fixture(scope="module")
def short() -> Iterator[SmallLLM]:
    """With a context of 1,024 tokens."""
    if why := missing():
        if os.environ.get("DECISOR_REQUIRE_SERVERS"):
            pytest.fail(why)
        pytest.skip(why)
    with serve(context=1024) as llm:
        yield llm


def test_no_prompt_is_longer_than_the_model_takes(short: SmallLLM) -> None:
    result = decisor.ask(QUESTION, docs=DOCS, technique="rag", llm=f"@{short.url} max_tokens=40")
    calls = list(events_of(result.trace, LLMCall))
    assert calls and not list(events_of(result.trace, FailedCall))
    assert all(call.usage.prompt_tokens + call.usage.completion_tokens <= 1024 for call in calls)
    assert list(events_of(result.trace, ShortenedPrompt))


@pytest.mark.parametrize("tokens", [100, 1_500])
def test_no_more_tokens_are_spent_than_are_allowed_by_the_server_s_own_count(short: SmallLLM, tokens: int) -> None:
    before = short.counters()
    result = decisor.ask(QUESTION, docs=DOCS, technique="ircot", llm=f"@{short.url}", limits=Limits(tokens=tokens))
    after = short.counters()
    served = sum(after.values()) - sum(before.values())
    assert served <= result.usage.tokens <= tokens
    assert (result.usage.calls > 0) == (tokens > 100)
