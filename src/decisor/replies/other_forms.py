"""Actions and answers without labels, as the fields that labels would have given: one JSON object, a tool call in tags,
``tool[input]``, a lone query, labels on one line, "the answer is". Only what has one reading is taken."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from decisor.errors import ParseError
from decisor.replies.json_actions import INPUT_KEYS, THOUGHT_KEYS, TOOL_KEYS, one_of, plain_keys
from decisor.replies.lenient_json import read_one
from decisor.replies.queries import lone_query
from decisor.types import Value

TAGS = re.compile(
    r"</?(?:tool_call|tool_calls|function_call|tool_use|function)>|<\|?/?(?:tool_call|python_tag|action_start|action_end"
    r"|plugin|tool_calls_section_begin|tool_call_begin)\|>|\[/?TOOL_CALLS?\]",
    re.I,
)
CALL = re.compile(r"`?(?P<tool>\w+)[ \t]*(?:\[(?P<square>.+)\]|\((?P<round>.+)\)|:[ \t]*(?P<rest>.+))[ \t`]*", re.S)
ON_ONE_LINE = re.compile(r"(?<=[\s.!?,;])(?=(?:Action(?: input)?|Final answer|Because)\s*:)", re.I)
ANSWER_IS = re.compile(
    r"^(?:so|thus|therefore|hence|now)?[\s,]*the (?:final |best |correct )?answer is\s*:?\s*(\S.*)$", re.I | re.M
)
ANSWER_KEYS = ("final_answer", "answer", "decision")
PLAN_KEYS = ("plan", "new_plan")
NAMES = {"action": "action", "input": "action_input"}
OTHERS = {"current_step": "current", "re_plan": "replan", "replan": "replan", "because": "because", "why": "because"}


def fields_without_labels(text: str, tools: Sequence[str], repairs: list[str]) -> dict[str, str]:
    """
    >>> fields_without_labels('<tool_call>{"name": "sql", "arguments": {"query": "SELECT 1"}}</tool_call>', ["sql"], [])
    {'action': 'sql', 'input': 'SELECT 1'}
    >>> fields_without_labels("I look it up.\\nsql[SELECT 1]", ["sql"], [])
    {'action': 'sql', 'input': 'SELECT 1'}
    >>> fields_without_labels("So the answer is elm [o1.r2].", ["sql"], [])
    {'answer': 'elm [o1.r2].'}
    """
    if query := lone_query(text, tools):
        repairs.append("bare_query")
        return {"action": query[0], "input": query[1]}
    bare = TAGS.sub("", text)
    if bare != text:
        repairs.append("tags")
    if "{" in bare and (fields := json_fields(bare, repairs)):
        return fields
    calls = [call for line in bare.splitlines() if (call := CALL.fullmatch(line.strip())) and call["tool"] in tools]
    if len(calls) == 1 and not calls[0]["rest"]:
        repairs.append("call_form")
        return {"action": calls[0]["tool"], "input": inside_of(calls[0])}
    answers = ANSWER_IS.findall(text)
    return {"answer": answers[0].strip()} if len(answers) == 1 else {}


def inside_of(call: re.Match[str]) -> str:
    return str(call["square"] or call["round"] or call["rest"]).strip()


def json_fields(text: str, repairs: list[str]) -> dict[str, str]:
    """The fields of one JSON object; none where there is no object that holds an action or an answer.

    Raises:
        ParseError: there are several objects, or the text is nothing but an object that cannot be read.
    """
    before: list[str] = []
    try:
        value = read_one(text, before)
    except ParseError as error:
        if error.reason == "multiple_actions" or text.lstrip("`~json \n").startswith("{"):
            raise
        return {}
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(value, Mapping):
        return {}
    value = plain_keys(value, before)
    if not any(key in value for key in (*TOOL_KEYS, *ANSWER_KEYS)):
        return {}
    repairs += ["json", *before]
    return {**head_fields(value), **call_fields(value)}


def flat(value: Mapping[str, Value]) -> Mapping[str, Value]:
    """An object with its action and what it is given as texts of its own, under the keys that are asked for.

    >>> flat({"Action": {"tool": "sql", "input": "SELECT 1"}, "thought": "look"})
    {'thought': 'look', 'action': 'sql', 'action_input': 'SELECT 1'}
    """
    value = plain_keys(value, [])
    call = call_fields(value)
    others = {key: item for key, item in value.items() if key not in (*TOOL_KEYS, *INPUT_KEYS)}
    if "final_answer" not in others and "decision" in others:
        others["final_answer"] = others["decision"]
    return {**others, **{NAMES[name]: text for name, text in call.items()}}


def head_fields(value: Mapping[str, Value]) -> dict[str, str]:
    """Everything but the action."""
    fields: dict[str, str] = {}
    for keys, name in ((THOUGHT_KEYS, "thought"), (ANSWER_KEYS, "answer"), (PLAN_KEYS, "plan")):
        item, _ = one_of(value, keys)
        if item not in (None, "", []):
            fields[name] = steps_text(item) if name == "plan" else as_text(item)
    for key, name in OTHERS.items():
        if value.get(key) not in (None, ""):
            item = value[key]
            fields[name] = ("Y" if item else "N") if isinstance(item, bool) else as_text(item)
    return fields


def call_fields(value: Mapping[str, Value]) -> dict[str, str]:
    for outer in ("function", "action", "tool_call"):
        if isinstance(inner := value.get(outer), Mapping):
            value = plain_keys(inner, [])
    name, _ = one_of({key: item for key, item in value.items() if isinstance(item, str)}, TOOL_KEYS)
    input, _ = one_of(value, INPUT_KEYS)
    fields = {"action": as_text(name)} if name else {}
    if input is not None and name and input != name:
        fields["input"] = input_text(input)
    return fields


def steps_text(plan: Value) -> str:
    if isinstance(plan, str) or not isinstance(plan, Sequence):
        return as_text(plan)
    return ", ".join(f"Step {number}: {as_text(step)}" for number, step in enumerate(plan, 1))


def input_text(value: Value) -> str:
    """A query alone where it came as the only argument.

    >>> input_text({"query": "SELECT 1"}), input_text({"city": "Rome"}), input_text('{"sql": "SELECT 1"}')
    ('SELECT 1', '{"city": "Rome"}', 'SELECT 1')
    """
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            value = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return as_text(value)
    if isinstance(value, Mapping) and len(value) == 1:
        name, inside = next(iter(value.items()))
        if name.casefold() in QUERY_NAMES and isinstance(inside, str):
            return inside.strip()
    return as_text(value)


def as_text(value: Value) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


QUERY_NAMES = ("query", "sql", "cypher", "statement", "input", "action_input", "expression", "text")
