"""An action as one JSON object, and as a provider's tool calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decisor.errors import ParseError
from decisor.replies.cleaning import INVISIBLE, SURROGATE, check_query, clean, replace_surrogates
from decisor.replies.json_reader import Reader
from decisor.replies.lenient_json import read_one
from decisor.replies.queries import lone_query
from decisor.replies.tool_names import match_tool
from decisor.types import Value

MAX_CALLS = 16
TOOL_KEYS = ("action", "tool", "tool_name", "name", "function")
INPUT_KEYS = ("action_input", "input", "tool_input", "arguments", "args", "parameters", "query")
THOUGHT_KEYS = ("thought", "thoughts", "reasoning")
QUERY_KEYS = ("sql", "cypher", "statement", "sql_query", "cypher_query")
ARGUMENTS: Mapping[str, type] = {"query": str, "k": int}
FINISH = "finish"


@dataclass(frozen=True, slots=True)
class JsonCall:
    """A tool, its input (a text, or named arguments), the thought before it, and what was forgiven."""

    tool: str
    input: str | Mapping[str, Value]
    thought: str = ""
    repairs: tuple[str, ...] = ()


def parse_action(reply: str, tools: Sequence[str], observations: int | None = None) -> JsonCall:
    """``{"thought": ..., "action": ..., "action_input": ...}``, forgiving. ``observations``: how many there were, so
    that finishing before the first is not accepted; None where that is not known.

    >>> parse_action('{"action": "SQL", "action_input": "SELECT 1",}', ["sql"]).input
    'SELECT 1'
    """
    repairs: list[str] = []
    text = clean(reply, repairs)
    if query := lone_query(text, tools):
        return JsonCall(*query, repairs=(*repairs, "bare_query"))
    if text.startswith('"{') and isinstance(inside := Reader(text, 0).value(), str):
        repairs.append("json_string")
        text = inside
    value = read_one(text, repairs)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        repairs.append("single_list")
        value = value[0]
    elif isinstance(value, list) and len(value) > 1 and all(isinstance(item, dict) for item in value):
        raise ParseError("You wrote several actions. Write one.", "multiple_actions")
    if not isinstance(value, dict):
        raise ParseError("Write one JSON object with action and action_input.", "shape")
    call = read_call(value, tools, repairs)
    if call.tool == FINISH and observations == 0:
        raise ParseError("There is no observation yet: query the data before you answer.", "no_evidence")
    return call


def parse_tool_calls(reply: str, tools: Sequence[str]) -> tuple[JsonCall, ...]:
    """``{"tool_calls": [{"id": ..., "function": {"name": ..., "arguments": "..."}}]}``: at most 16, each id once.

    Raises:
        ParseError: also where an argument is not one of the tool's (unknown_argument): it could change what is queried.
    """
    repairs: list[str] = []
    value = read_one(clean(reply, repairs), repairs)
    calls = value.get("tool_calls") if isinstance(value, dict) else None
    if calls is None:
        raise ParseError("There is no tool call.", "missing_field" if isinstance(value, dict) else "shape")
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise ParseError("tool_calls is a list of calls.", "shape")
    if not calls:
        raise ParseError("There is no tool call.", "missing_field")
    if len(calls) > MAX_CALLS:
        raise ParseError(f"More than {MAX_CALLS} calls at once.", "limits")
    ids = [str(call.get("id", number)) for number, call in enumerate(calls)]
    if len(set(ids)) < len(ids):
        raise ParseError("Two calls have the same id.", "multiple_actions")
    return tuple(read_tool_call(call, tools, list(repairs)) for call in calls)


def read_tool_call(call: Mapping[str, Value], tools: Sequence[str], repairs: list[str]) -> JsonCall:
    function = call.get("function", call)
    if not isinstance(function, Mapping):
        raise ParseError("function is an object with name and arguments.", "shape")
    json_call = read_call(function, tools, repairs)
    if isinstance(json_call.input, str):
        raise ParseError("arguments is an object.", "shape")
    return json_call


def read_call(value: Mapping[str, Value], tools: Sequence[str], repairs: list[str]) -> JsonCall:
    value = plain_keys(value, repairs)
    for outer in ("function", "action", "tool_call"):
        if isinstance(inner := value.get(outer), Mapping) and any(key in inner for key in TOOL_KEYS):
            repairs.append("key_synonym")
            value = {**{key: value[key] for key in THOUGHT_KEYS if key in value}, **inner}
    name, key = one_of(value, TOOL_KEYS)
    if name is None or (isinstance(name, str) and not name.strip(" \t\r\n")):
        raise ParseError("action is missing.", "missing_field")
    if not isinstance(name, str):
        raise ParseError("action is the name of one tool.", "shape")
    raw_input, input_key = one_of(value, INPUT_KEYS)
    if key != "action" or input_key not in ("action_input", ""):
        repairs.append("key_synonym")
    tool = match_tool(name, tools, repairs)
    thought, _ = one_of(value, THOUGHT_KEYS)
    thought = thought if isinstance(thought, str) else ""
    if SURROGATE.search(thought):
        repairs.append("lone_surrogate_in_text")
    input = read_input(raw_input, input_key, repairs)
    return JsonCall(tool, input, replace_surrogates(thought), repairs=tuple(dict.fromkeys(repairs)))


def plain_keys(value: Mapping[str, Value], repairs: list[str]) -> Mapping[str, Value]:
    """Keys in small letters with underscores.

    >>> plain_keys({"Action Input": 1, "toolName": 2}, [])
    {'action_input': 1, 'tool_name': 2}
    """
    plain: dict[str, Value] = {}
    for key, item in value.items():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", key.strip()).casefold()
        if name in plain and plain[name] != item:
            raise ParseError(f"{name[:60]} comes twice, with different values.", "duplicate_key")
        if name != key:
            repairs.append("case")
        plain[name] = item
    return plain


def one_of(value: Mapping[str, Value], keys: Sequence[str]) -> tuple[Value, str]:
    """The value under whichever of the keys is there, and that key."""
    there = [key for key in keys if key in value]
    if not there:
        return None, ""
    if any(value[key] != value[there[0]] for key in there):
        raise ParseError(f"{' and '.join(there)} mean the same and differ.", "duplicate_key")
    return value[there[0]], there[0]


def read_input(raw: Value, key: str, repairs: list[str]) -> str | Mapping[str, Value]:
    if key == "arguments" and isinstance(raw, str) and raw.strip().startswith("{"):
        repairs.append("arguments_string")
        raw = read_one(raw, repairs)
    if raw is None or (isinstance(raw, str) and not raw.translate(INVISIBLE).strip()) or raw == {}:
        raise ParseError("action_input is missing.", "missing_field")
    if isinstance(raw, str):
        return check_query(raw)
    if not isinstance(raw, Mapping):
        raise ParseError("action_input is one text, or an object of arguments.", "shape")
    if len(raw) == 1 and (only := next(iter(raw))) in QUERY_KEYS:
        repairs.append("key_synonym")
        raw = {"query": raw[only]}
    arguments = {name: whole_number(name, argument, repairs) for name, argument in raw.items()}
    for name, argument in arguments.items():
        check_argument(name, argument)
    return arguments


def whole_number(name: str, argument: Value, repairs: list[str]) -> Value:
    """A whole number also where it was written as a text or as 5.0."""
    if ARGUMENTS.get(name) is not int:
        return argument
    if isinstance(argument, str) and re.fullmatch(r"\s*\d{1,9}\s*", argument):
        repairs.append("number_string")
        return int(argument)
    if isinstance(argument, float) and argument.is_integer():
        repairs.append("number_string")
        return int(argument)
    return argument


def check_argument(name: str, argument: Value) -> None:
    if name not in ARGUMENTS:
        raise ParseError(f"There is no argument {name[:60]!r}; there is {', '.join(ARGUMENTS)}.", "unknown_argument")
    kind = ARGUMENTS[name]
    if kind is int and (isinstance(argument, bool) or not isinstance(argument, int)):
        raise ParseError(f"{name} is a whole number.", "number")
    if isinstance(argument, int) and argument < 1:
        raise ParseError(f"{name} is 1 or more.", "number")
    if kind is str and not isinstance(argument, str):
        raise ParseError(f"{name} is a text.", "shape")
    if isinstance(argument, str) and not argument.strip():
        raise ParseError(f"{name} is missing.", "missing_field")
    if isinstance(argument, str):
        check_query(argument)
