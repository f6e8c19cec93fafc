"""The turns of a conversation with tool calls, as all APIs share them.

An assistant's turn goes back as its provider wrote it: ``Message.raw`` holds what ``content`` and ``calls`` lack
(thoughts, signatures, items of reasoning), under the name of the API, with the model that wrote it. Arguments stand in
``calls`` alone, and are put back in their place. Another model gets the turn without ``raw``, since it would refuse
thoughts that are not its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from decisor.runtime.prompt import list_sent_texts
from decisor.system.secrets import Secret, redact_known
from decisor.trace.prompts import THOUGHTS
from decisor.types import Message, Sampling, ToolCall

RawForm = Literal["chat", "messages"]
THOUGHT_FIELDS = (
    *THOUGHTS,
    "reasoning_details",
    "thinking_blocks",
    "thought_signature",
    "extra_content",
    "output",
)
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
