"""What holds an LM to a form of reply in OpenAI's API and those like it: a JSON schema, or functions that it may call.

OpenAI, vLLM, llama.cpp, Ollama and LM Studio take ``response_format`` with a schema; some others only the kind without
one. Where an endpoint takes none of it, the prompt says what would have held the reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from decisor.calling import Way, Ways
from decisor.errors import LMError
from decisor.lms.postprocess import tidy
from decisor.types import Sampling

FITTING = "Answer with one JSON object that fits this JSON schema, and nothing else:"
CALLING = 'Answer with one JSON object {"name": ..., "arguments": {...}} that calls one of these, and nothing else:'

NO_SIZES, NO_SCHEMA = "response_format.sizes", "response_format.schema"
"""What is dropped first where ``response_format`` is refused: how long things may be, then the schema."""
SIZES = {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}
STRICT = ("api.openai.com", ".openai.azure.com")
"""Hosts whose strict mode takes no sizes."""
REFUSABLE = {
    "structured_outputs": r"structured_outputs",
    "guided_json": r"guided_json",
    "response_format": r"response_format|json_schema|json_object|structured output|grammar",
    "tool_choice": r"tool[_ ]choice",
    "parallel_tool_calls": r"parallel_tool_calls",
    "tools": r"\btools?\b|function",
}
"""What an endpoint may refuse and we can do without, and how its complaint names it."""
WAYS: Mapping[str, tuple[Way, str]] = {
    "response_format": ("json", "it refused response_format"),
    "tools": ("tools", "it refused tools"),
}
"""What is lost with which field."""


def form_fields(sampling: Sampling, without: AbstractSet[str]) -> dict[str, object]:
    """The fields of a chat completion request, without those that the endpoint refused."""
    if sampling.functions:
        if "tools" in without:
            return {}
        functions = [
            {"type": "function", "function": {"name": one.name, "description": one.description,
                                              "parameters": one.parameters}}
            for one in sampling.functions
        ]  # fmt: skip
        fields = {"tools": functions, "tool_choice": "required", "parallel_tool_calls": False}
        return {name: value for name, value in fields.items() if name not in without}
    if sampling.schema is None or "response_format" in without:
        return {}
    if NO_SCHEMA in without:
        return {"response_format": {"type": "json_object"}}
    schema = without_sizes(sampling.schema) if NO_SIZES in without else sampling.schema
    return {"response_format": schema_format(schema)}


def without_sizes(schema: object) -> Any:
    """
    >>> without_sizes({"type": "string", "maxLength": 9})
    {'type': 'string'}
    """
    if isinstance(schema, Mapping):
        return {key: without_sizes(part) for key, part in schema.items() if key not in SIZES}
    return [without_sizes(part) for part in schema] if isinstance(schema, list) else schema


def takes_no_sizes(host: str) -> bool:
    return host.partition(":")[0].endswith(STRICT)


def instruction(sampling: Sampling, without: AbstractSet[str]) -> str:
    """What the prompt must say where the endpoint does not hold the reply to its form; '' where it does."""
    if sampling.functions and "tools" in without:
        functions = [{"name": one.name, "parameters": one.parameters} for one in sampling.functions]
        return f"{CALLING}\n{json.dumps(functions)}"
    if sampling.schema is not None and not sampling.functions and without & {"response_format", NO_SCHEMA}:
        return f"{FITTING}\n{json.dumps(sampling.schema)}"
    return ""


def schema_format(schema: Mapping[str, object]) -> dict[str, object]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": is_strict(schema)}}


def is_strict(schema: object) -> bool:
    """Whether the strict mode of OpenAI takes it: every object closed, every property required.

    >>> is_strict({"type": "object", "properties": {"a": {"type": "string"}}})
    False
    """
    if isinstance(schema, list | tuple):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if SIZES & schema.keys():
        return False
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties or ())
    ):
        return False
    return all(is_strict(part) for part in schema.values())


def refused_field(name: str, body: Mapping[str, object]) -> str:
    """What is gone without next: of a response format first the sizes in its schema, then the schema."""
    form = body.get(name)
    if name != "response_format" or not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return name
    return NO_SIZES if form != {**form, "json_schema": without_sizes(form["json_schema"])} else NO_SCHEMA


def likely_part(error: LMError, body: Mapping[str, object]) -> str:
    """What may be refused where the refusal names nothing: what holds the reply to its form."""
    passes = error.kind == "request" and not error.permanent
    return next((name for name in WAYS if name in body), "") if passes else ""


def remember(ways: Ways, dropped: AbstractSet[str]) -> None:
    """What was refused is not asked for again by ``auto``."""
    for name, (way, why) in WAYS.items():
        if name in dropped:
            ways.against.setdefault(way, why)


def call_text(thought: object, calls: Sequence[object]) -> str:
    """Calls of functions as JSON text, with what was written before them; '' where there is none.

    >>> call_text(None, [{"id": "1", "function": {"name": "sql", "arguments": '{"input": "SELECT 1"}'}}])
    '{"name": "sql", "arguments": {"input": "SELECT 1"}}'
    """
    rows = [row for call in calls if isinstance(call, Mapping) and (row := call_of(call))]
    if not rows:
        return ""
    before = {"thought": thought} if isinstance(thought, str) and thought.strip() else {}
    whole = {**before, **rows[0]} if len(rows) == 1 else {**before, "tool_calls": rows}
    return tidy(json.dumps(whole, ensure_ascii=False))


def call_of(call: Mapping[str, object]) -> dict[str, object]:
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):  # then it is read forgivingly later, or complained of
            arguments = json.loads(arguments or "{}")
    return {"name": function["name"], "arguments": arguments}
