"""Requests that hold an LLM to a form of reply, and the steps that all replies go through.

A form is a JSON schema, or functions that the LLM may call. OpenAI, vLLM, llama.cpp, Ollama and LM Studio take
``response_format`` with a schema; some others only the kind without one. Where an endpoint takes none of it, the
prompt says what would have held the reply.

The usage of a reply is read as each provider tells it: tokens of the prompt, those of a cache among them, and of the
completion. Texts are cut at stop words, cleared of keys, and priced for all providers alike.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, TypeGuard

from decisor.errors import LLMError
from decisor.llms.prices import Price, add_dollars
from decisor.llms.turns import clean_turn, to_mapping
from decisor.system.secrets import Secret, redact_known
from decisor.types import Completion, Sampling, ToolCall, Usage


def count_or_estimate_tokens(count: object, texts: Iterable[str]) -> int:
    """Return the endpoint's count, or an estimate of a token per four characters. So a limit holds in any case.

    >>> (count_or_estimate_tokens(7, []), count_or_estimate_tokens(None, ["eight ch"]),
    ...     count_or_estimate_tokens(-1, ["eight ch"]))
    (7, 2, 2)
    """
    return count if is_count(count) else sum((len(text) + 3) // 4 for text in texts)


def is_count(count: object) -> TypeGuard[int]:
    return type(count) is int and 0 <= count < 2**53


def chat_usage(reply: Mapping[str, object], sent: Sequence[str], texts: Sequence[str], calls: int = 1) -> Usage:
    """Read the usage of a reply of OpenAI's form, chat or not. dollars: only if the endpoint names the cost
    (OpenRouter). sent: the texts of the request.

    Cached tokens stand in ``prompt_tokens_details`` (OpenAI, Azure, vLLM, OpenRouter, Gemini), in
    ``prompt_cache_hit_tokens`` (DeepSeek), in ``cached_tokens`` (Moonshot), in the Anthropic names (proxies), or in the
    ``timings`` of llama.cpp, which holds counts of its own beside.

    >>> timings = {"cache_n": 30, "prompt_n": 10, "predicted_n": 5}
    >>> chat_usage({"usage": {"prompt_tokens": 40, "completion_tokens": 5}, "timings": timings}, (), ()).cache_reads
    30
    """
    counts = to_mapping(reply.get("usage"))
    timings, details = to_mapping(reply.get("timings")), to_mapping(counts.get("prompt_tokens_details"))
    reads = first_count(
        details.get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cached_tokens"),
        counts.get("cache_read_input_tokens"),
        timings.get("cache_n"),
    )
    writes = first_count(details.get("cache_write_tokens"), counts.get("cache_creation_input_tokens"))
    prompt = counts.get("prompt_tokens")
    # llama.cpp's prompt_n leaves out what was in its cache.
    if not is_count(prompt) and is_count(timings.get("prompt_n")):
        prompt = first_count(timings["prompt_n"]) + first_count(timings.get("cache_n"))
    completion, cost = counts.get("completion_tokens", timings.get("predicted_n")), counts.get("cost")
    is_cost = isinstance(cost, int | float) and not isinstance(cost, bool) and math.isfinite(cost) and cost >= 0
    usage = build_usage(prompt, completion, reads, writes, sent, texts, calls)
    return replace(usage, dollars=float(cost) if is_cost else None)  # type: ignore[arg-type]


def anthropic_usage(counts: object, sent: Sequence[str], texts: Sequence[str], calls: int = 1) -> Usage:
    """Read the usage of a Messages reply, whose ``input_tokens`` are those in no cache."""
    counts = to_mapping(counts)
    reads = first_count(counts.get("cache_read_input_tokens"))
    writes = first_count(counts.get("cache_creation_input_tokens"))
    fresh = counts.get("input_tokens")
    prompt = first_count(fresh) + reads + writes if is_count(fresh) else None
    return build_usage(prompt, counts.get("output_tokens"), reads, writes, sent, texts, calls)


def build_usage(
    prompt: object,
    completion: object,
    reads: int,
    writes: int,
    sent: Sequence[str],
    texts: Sequence[str],
    calls: int,
) -> Usage:
    """Build a usage without a price from counts; a missing count is estimated, and marked as an estimate."""
    prompt_tokens = count_or_estimate_tokens(prompt, sent)
    # No endpoint may make the price negative by a count of its cache above its prompt.
    reads = min(reads, prompt_tokens)
    return Usage(
        calls,
        prompt_tokens,
        count_or_estimate_tokens(completion, texts),
        None,
        estimates=0 if is_count(prompt) and is_count(completion) else calls,
        cache_reads=reads,
        cache_writes=min(writes, prompt_tokens - reads),
    )


def first_count(*values: object) -> int:
    """Return the first value that is a count and not 0; 0 without one."""
    for value in values:
        if value and is_count(value):
            return value
    return 0


def cut_at_stop_words(text: str, stops: Iterable[str]) -> str:
    """Cut a text before the first of these words: some endpoints ignore them, all take only a few.

    >>> cut_at_stop_words("Action: query\\nObservation: made up", ["\\nObservation"])
    'Action: query'
    """
    for stop in stops:
        if stop:
            text = text.partition(stop)[0]
    return text


def postprocess_reply(
    reply: Completion, sampling: Sampling, secrets: Iterable[Secret], price: Price | None, name: str
) -> Completion:
    """Cut a reply at its stop words, remove keys, and add its price and model.

    A reply that ran on after a stop word until its length ended is whole before that word.
    """
    kept = [cut_at_stop_words(text, sampling.stop) for text in reply.texts]
    # Some endpoints ignore stop words, and stop for length long after the part that counts.
    ran_on = reply.finish == "length" and all(cut != text for cut, text in zip(kept, reply.texts, strict=True))
    texts = tuple(redact_known(text, secrets) for text in kept)
    return replace(
        reply,
        texts=texts,
        turn=reply.turn and clean_turn(reply.turn, texts[0], name, secrets),
        usage=add_dollars(reply.usage, price) if price else reply.usage,
        finish="stop" if ran_on else reply.finish,
        model=reply.model or name,
    )


FITTING = "Answer with one JSON object that fits this JSON schema, and nothing else:"
CALLING = 'Answer with one JSON object {"name": ..., "arguments": {...}} that calls one of these, and nothing else:'

NO_SIZES, NO_SCHEMA = "response_format.sizes", "response_format.schema"
"""What is dropped first where ``response_format`` is refused: how long things may be, then the schema."""
SIZES = {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}
STRICT = ("api.openai.com", ".openai.azure.com")
"""Hosts whose strict mode takes no sizes."""
OPTIONAL = {
    "response_format": r"response_format|text\.format|json_schema|json_object|structured output|grammar",
    "tool_choice": r"tool[_ ]choice",
    "parallel_tool_calls": r"parallel[_ ]tool[_ ]calls?",
    "tools": r"\btools?\b|function",
    "stream_options": r"stream_options|include_usage",
    "stream": r"['\"`]stream['\"`]|streaming|param(?:eter)?s? stream\b",
    "include": r"\binclude\b|encrypted",
    "max_tokens": r"max_tokens",
    "temperature": r"temperature",
    "top_p": r"top_p",
    "stop_sequences": r"stop_sequences",
    "stop": r"['\"`]stop['\"`]|stop (?:word|sequence)|param(?:eter)?s? stop\b",
    "seed": r"\bseed\b",
    "n": r"['\"`]n['\"`]|param(?:eter)?s? n\b",
    "skip_special_tokens": r"skip_special_tokens",
    "spaces_between_special_tokens": r"spaces_between_special_tokens",
}
"""What an endpoint may refuse and we can do without, and how its complaint names it."""


def build_form_fields(sampling: Sampling, without: AbstractSet[str]) -> dict[str, object]:
    """Build the fields of a request that hold a reply to its form, without the refused ones.

    Functions are tools of which one must be called. Tools of a conversation are never forced: models that think refuse
    it. Several may be called at once, which llama.cpp must be told.
    """
    if offered := sampling.functions or sampling.tools:
        if "tools" in without:
            return {}
        fields: dict[str, object] = {
            "tools": [{"type": "function", "function": asdict(function)} for function in offered],
            **({"tool_choice": "required"} if sampling.functions else {}),
            "parallel_tool_calls": not sampling.functions,
        }
        return {name: value for name, value in fields.items() if name not in without}
    if sampling.schema is None or "response_format" in without:
        return {}
    if NO_SCHEMA in without:
        return {"response_format": {"type": "json_object"}}
    schema = drop_sizes(sampling.schema) if NO_SIZES in without else sampling.schema
    form = {"name": "reply", "schema": schema, "strict": is_strict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def drop_sizes(schema: object) -> Any:
    """Drop the limits of size from a JSON schema.

    >>> drop_sizes({"type": "string", "maxLength": 9})
    {'type': 'string'}
    """
    if isinstance(schema, Mapping):
        return {key: drop_sizes(part) for key, part in schema.items() if key not in SIZES}
    return [drop_sizes(part) for part in schema] if isinstance(schema, list) else schema


def form_instruction(sampling: Sampling, without: AbstractSet[str]) -> str:
    """Return the sentence that holds the reply to its form if the endpoint does not; else ''."""
    if sampling.functions and "tools" in without:
        functions = [{"name": call.name, "parameters": call.parameters} for call in sampling.functions]
        return f"{CALLING}\n{json.dumps(functions)}"
    if sampling.schema is not None and not sampling.functions and without & {"response_format", NO_SCHEMA}:
        return f"{FITTING}\n{json.dumps(sampling.schema)}"
    return ""


def is_strict(schema: object) -> bool:
    """Return whether OpenAI's strict mode takes a schema: every object closed, every property required.

    >>> is_strict({"type": "object", "properties": {"a": {"type": "string"}}})
    False
    """
    if isinstance(schema, list | tuple):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    # OpenAI's strict mode refuses a schema that it does not take: without strict it is a hint, which is better.
    properties = schema.get("properties")
    if SIZES & schema.keys():
        return False
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties or ())
    ):
        return False
    return all(is_strict(part) for part in schema.values())


def find_refused_part(error: LLMError, body: Mapping[str, object]) -> str:
    """Return the part to leave out after a refusal: the first optional one that it names; '' if it names none.

    Of a response format it is first the sizes in its schema, then the schema, then the format.
    """
    text = str(error) if error.kind == "request" else ""
    name = next((name for name, words in OPTIONAL.items() if name in body and re.search(words, text, re.I)), "")
    form = body.get(name)
    if name != "response_format" or not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return name
    return NO_SIZES if form != {**form, "json_schema": drop_sizes(form["json_schema"])} else NO_SCHEMA


def guess_refused_part(error: LLMError, body: Mapping[str, object]) -> str:
    """Guess the refused part if the refusal names nothing: the part that holds the reply to its form.

    Before the tools of a conversation it is the field that few servers know.
    """
    if error.kind != "request" or error.permanent:
        return ""
    if body.get("parallel_tool_calls"):
        return "parallel_tool_calls"
    return next((name for name in ("response_format", "tools") if name in body), "")


def format_calls(thought: str, calls: Sequence[ToolCall]) -> str:
    """Format calls of functions as JSON text, with the text before them.

    >>> format_calls("", [ToolCall("1", "sql", '{"input": "SELECT 1"}')])
    '{"name": "sql", "arguments": {"input": "SELECT 1"}}'
    """
    rows = []
    for call in calls:
        arguments: object = call.arguments
        with suppress(ValueError, RecursionError):  # then it is read forgivingly later, or complained of
            arguments = json.loads(call.arguments or "{}")
        rows.append({"name": call.name, "arguments": arguments})
    reply: dict[str, object] = {"thought": thought} if thought.strip() else {}
    return json.dumps(reply | (rows[0] if len(rows) == 1 else {"tool_calls": rows}), ensure_ascii=False)
