"""Turns of a conversation, the form that a reply is held to, and the steps that all replies go through, for all APIs.

An assistant's turn goes back as its provider wrote it: ``Message.raw`` holds what ``content`` and ``calls`` lack
(thoughts, signatures, items of reasoning), under the name of the API, with the model that wrote it. Arguments stand in
``calls`` alone, and are put back in their place. Another model gets the turn without ``raw``, since it would refuse
thoughts that are not its own.

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
from typing import Any, Literal, TypeGuard

from decisor.errors import LLMError
from decisor.llms.prices import Price, add_dollars
from decisor.runtime.prompt import list_sent_texts
from decisor.system.secrets import Secret, redact_known
from decisor.trace.prompts import THOUGHTS
from decisor.types import Completion, Message, Sampling, ToolCall, Usage

RawForm = Literal["chat", "messages"]
THOUGHT_FIELDS = (*THOUGHTS, "reasoning_details", "thinking_blocks", "thought_signature", "extra_content", "output")
"""What servers call the thoughts of a message, and their signatures: beside the texts, OpenRouter the first, LiteLLM
the second, Gemini the next two. The last is the whole output of the Responses API."""


def to_mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 file takes, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def list_named_calls(rows: object, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """List the calls of a chat completion that name a function, each with an id; [] if there are none.

    Some servers send no ids. Those made here have nine letters and digits, which every provider takes.

    >>> rows = [{"function": {"name": "sql", "arguments": {"query": "SELECT 1"}}}, {"function": {}}]
    >>> [row["id"] for row in list_named_calls(rows, [])]
    ['call00001']
    """
    calls = [dict(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    number = sum(len(message.calls) for message in messages)
    named = [call for call in calls if (name := to_mapping(call.get("function")).get("name")) and isinstance(name, str)]
    return [{**call, "id": str(call.get("id") or f"call{number + at:05}")} for at, call in enumerate(named, 1)]


def build_call(id: object, name: object, arguments: object) -> ToolCall:
    """Build a call. Arguments that a server sends as an object become text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ToolCall(str(id), *map(replace_lone_surrogates, (str(name), text)))


def load_arguments(call: ToolCall) -> Mapping[str, object]:
    """Return the arguments of a call as an object that a request may hold.

    Servers refuse a conversation in which they are no JSON object, so a malformed text stands in one.

    >>> load_arguments(ToolCall("1", "sql", '{"query": "SEL'))
    {'INVALID_JSON': '{"query": "SEL'}
    """
    with suppress(ValueError, RecursionError):
        if isinstance(value := json.loads(call.arguments or "{}"), dict):
            return value
    return {"INVALID_JSON": call.arguments}


def dump_arguments(call: ToolCall) -> str:
    """Return the arguments of a call as JSON: as the LLM wrote them, unless they are malformed."""
    value = load_arguments(call)
    return json.dumps(value, ensure_ascii=False) if "INVALID_JSON" in value else call.arguments or "{}"


def list_request_texts(messages: Sequence[Message], sampling: Sampling) -> list[str]:
    """List all texts of a request, from which its tokens can be estimated."""
    return list(list_sent_texts(messages, (*sampling.functions, *sampling.tools)))


def replace_call_ids(messages: Sequence[Message]) -> list[Message]:
    """Replace the ids of calls that are not nine letters and digits, which every provider takes.

    Ids that another provider made are refused by some (Mistral: by their length; Anthropic: by their characters).

    >>> call = Message("assistant", "", (ToolCall("toolu_01", "sql", "{}"),))
    >>> turn, result = replace_call_ids([call, Message("tool", "ok", call_id="toolu_01")])
    >>> turn.calls[0].id, result.call_id
    ('id0000001', 'id0000001')
    """
    id_of: dict[str, str] = {}

    def shorten(id: str) -> str:
        is_fit = not id or re.fullmatch(r"[A-Za-z0-9]{9}", id)
        return id if is_fit else id_of.setdefault(id, f"id{len(id_of) + 1:07}")

    return [
        replace(
            message,
            calls=tuple(replace(call, id=shorten(call.id)) for call in message.calls),
            call_id=shorten(message.call_id),
        )
        for message in messages
    ]


def separate_users_from_results(messages: Sequence[Message]) -> list[Message]:
    """Put a short turn of the assistant between a result and a user's turn, where an endpoint wants it (Mistral)."""
    bridge = [Message("assistant", "Ok.")]
    pairs = zip([None, *messages], messages, strict=False)
    return [
        turn
        for last, message in pairs
        for turn in (*(bridge if last and (last.role, message.role) == ("tool", "user") else ()), message)
    ]


def drop_field(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a row without a field."""
    return {key: value for key, value in row.items() if key != name}


def read_raw(message: Message, model: str, form: RawForm) -> Any:
    """Return what this model itself wrote in this API; None of a turn of another model or without more than words."""
    return message.raw.get(form) if message.raw and message.raw.get("model") == model else None


def clean_turn(turn: Message, content: str, model: str, secrets: Iterable[Secret]) -> Message:
    """Return a turn with its cleaned content, without keys elsewhere, and with its model where it is sent back raw."""
    secrets = list(secrets)
    calls = tuple(replace(call, arguments=redact_known(call.arguments, secrets)) for call in turn.calls)
    raw = turn.raw
    if raw is not None:
        text = replace_lone_surrogates(json.dumps({"model": model, **raw}, ensure_ascii=False))
        raw = json.loads(redact_known(text, secrets))
    return replace(turn, content=content, calls=calls, raw=raw)


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
    prompt: object, completion: object, reads: int, writes: int, sent: Sequence[str], texts: Sequence[str], calls: int
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
