"""What a reply cost, as each provider says it: tokens of the prompt, those of a cache among them, of the completion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

from decisor.types import Message, Usage


def tokens_of(count: object, texts: Iterable[str]) -> int:
    """The endpoint's count where it is one; else an estimate of a token per four characters, so that a limit holds.

    >>> tokens_of(7, []), tokens_of(None, ["eight ch"]), tokens_of(-1, ["eight ch"])
    (7, 2, 2)
    """
    return count if is_count(count) else sum((len(text) + 3) // 4 for text in texts)


def is_count(count: object) -> TypeGuard[int]:
    return type(count) is int and 0 <= count < 2**53


def chat_usage(reply: Mapping[str, object], messages: Sequence[Message], texts: Sequence[str], calls: int = 1) -> Usage:
    """Of a completion of OpenAI's form, chat or not. ``dollars``: only where the endpoint names the cost (OpenRouter).

    Cached tokens stand in ``prompt_tokens_details`` (OpenAI, Azure, vLLM, OpenRouter, Gemini), in
    ``prompt_cache_hit_tokens`` (DeepSeek), in ``cached_tokens`` (Moonshot), in the Anthropic names (proxies), or in the
    ``timings`` of llama.cpp, which holds counts of its own beside.

    >>> timings = {"cache_n": 30, "prompt_n": 10, "predicted_n": 5}
    >>> chat_usage({"usage": {"prompt_tokens": 40, "completion_tokens": 5}, "timings": timings}, (), ()).cache_reads
    30
    """
    counts = mapping(reply.get("usage"))
    timings, details = mapping(reply.get("timings")), mapping(counts.get("prompt_tokens_details"))
    reads = first_count(
        details.get("cached_tokens"), counts.get("prompt_cache_hit_tokens"), counts.get("cached_tokens"),
        counts.get("cache_read_input_tokens"), timings.get("cache_n"),
    )  # fmt: skip
    writes = first_count(details.get("cache_write_tokens"), counts.get("cache_creation_input_tokens"))
    prompt = counts.get("prompt_tokens")
    if not is_count(prompt) and is_count(timings.get("prompt_n")):
        prompt = first_count(timings["prompt_n"]) + first_count(timings.get("cache_n"))
    completion = counts.get("completion_tokens", timings.get("predicted_n"))
    return usage_with(prompt, completion, reads, writes, messages, texts, calls, cost_of(counts.get("cost")))


def anthropic_usage(counts: object, messages: Sequence[Message], texts: Sequence[str], calls: int = 1) -> Usage:
    """Of the Messages API, whose ``input_tokens`` are those that are in no cache."""
    counts = mapping(counts)
    reads = first_count(counts.get("cache_read_input_tokens"))
    writes = first_count(counts.get("cache_creation_input_tokens"))
    fresh = counts.get("input_tokens")
    prompt = first_count(fresh) + reads + writes if is_count(fresh) else None
    return usage_with(prompt, counts.get("output_tokens"), reads, writes, messages, texts, calls)


def usage_with(
    prompt: object, completion: object, reads: int, writes: int, messages: Sequence[Message], texts: Sequence[str],
    calls: int = 1, dollars: float | None = None,
) -> Usage:  # fmt: skip
    """Estimated where a count is none, and marked as such."""
    prompt_tokens = tokens_of(prompt, (message.content for message in messages))
    reads = min(reads, prompt_tokens)
    return Usage(
        calls, prompt_tokens, tokens_of(completion, texts), dollars,
        estimates=0 if is_count(prompt) and is_count(completion) else calls,
        cache_reads=reads, cache_writes=min(writes, prompt_tokens - reads),
    )  # fmt: skip


def mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def first_count(*values: object) -> int:
    """The first that is a count and not 0; 0 without one."""
    for value in values:
        if value and is_count(value):
            return value
    return 0


def cost_of(value: object) -> float | None:
    is_cost = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if is_cost else None  # type: ignore[arg-type]
