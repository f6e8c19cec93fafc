"""The turns of a conversation with tool calls, as all APIs share them.

An assistant's turn goes back as its provider wrote it: ``Message.raw`` holds what ``content`` and ``calls`` lack
(thoughts, signatures, items of reasoning), under the name of the API, with the model that wrote it. Another model gets
the turn without it, since it would refuse thoughts that are not its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Literal

from decisor.system.secrets import Secret, redact_known
from decisor.types import Message, Sampling, ToolCall

RawForm = Literal["chat", "messages"]
THOUGHTS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
    "thought_signature",
    "extra_content",
    "output",
)
"""What servers call the thoughts of a message, and their signatures: DeepSeek, Moonshot and llama.cpp the first, vLLM
and OpenRouter the next, Ollama the fourth, LiteLLM the fifth, Gemini the next two. The last is the whole output of
the Responses API."""


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


def list_turn_texts(message: Message) -> list[str]:
    return [message.content, *(call.name + call.arguments for call in message.calls)]


def list_prompt_texts(messages: Iterable[Message], sampling: Sampling) -> list[str]:
    """List all texts of a request, those of its calls and functions too, from which its tokens can be estimated."""
    functions = [json.dumps(asdict(function)) for function in (*sampling.functions, *sampling.tools)]
    return [text for message in messages for text in list_turn_texts(message)] + functions


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
