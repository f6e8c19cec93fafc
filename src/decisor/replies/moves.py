"""The next move of a search: an action, a final answer, or giving up. Labelled, or as one JSON object.

Whether a tool exists is not asked here: an action that names none is a step too, and its observation says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decisor.errors import ParseError
from decisor.replies.cleaning import check_query, clean, replace_surrogates, strip_fence
from decisor.replies.json_actions import INPUT_KEYS, THOUGHT_KEYS, TOOL_KEYS, one_of
from decisor.replies.labelled import LabelledReply, parse_answer, read_fields
from decisor.replies.lenient_json import read_one
from decisor.replies.shape import read_object
from decisor.replies.tool_names import match_tool
from decisor.types import Action, Value

GIVE_UP = "give_up"
CALL = re.compile(r"`?(\w+)\[(.+)\]`?", re.S)


@dataclass(frozen=True, slots=True)
class Move:
    """Exactly one of ``action`` and ``answer`` is there; giving up is the answer ''."""

    action: Action | None = None
    answer: str | None = None
    thought: str = ""
    because: str = ""


def parse_move(reply: str, tools: Sequence[str]) -> Move:
    """
    >>> parse_move("Thought: six is good\\nAction: combine\\nAction input: 10 - 4", ["combine"]).action
    Action(tool='combine', input='10 - 4')
    >>> parse_move("Action: click[Buy Now]", ["click"]).action
    Action(tool='click', input='Buy Now')
    >>> parse_move('{"action": "weather", "action_input": {"city": "Lyon"}}', ["weather"]).action
    Action(tool='weather', input='{"city": "Lyon"}')
    >>> parse_move("Action: give up\\nAction input: 24 is out of reach", ["combine"]).answer
    ''

    Raises:
        ParseError: there is no move, or more than one.
    """
    text = clean(reply)
    fields = read_fields(text, [])
    if not fields and text.lstrip("`json \n").startswith("{"):
        value = read_one(text, [])
        if not isinstance(value, Mapping):
            raise ParseError("Write one action.", "shape")
        return read_move(value, tools)
    answer, because = parse_answer(fields)
    thought = replace_surrogates(fields.get("thought", ""))
    if "action" in fields and answer is not None:
        raise ParseError("You wrote an action and a final answer. Write one of them.", "both")
    if answer is not None:
        if not answer:
            raise ParseError("Your final answer is empty.", "missing_field")
        return Move(answer=answer, thought=thought, because=because)
    if not fields.get("action"):
        raise ParseError("Write an Action with its Action input, or a Final answer.", "missing_field")
    name, raw_input = fields["action"], strip_fence(fields.get("input", ""))
    if not raw_input and (call := CALL.fullmatch(name)):
        name, raw_input = call[1], call[2]
    return move_of(name, raw_input, thought, tools)


def read_move(value: Mapping[str, Value], tools: Sequence[str]) -> Move:
    """The same from a JSON object with the keys action and action_input, or final_answer and because.

    >>> read_move({"thought": "done", "final_answer": "24", "because": "6 * 4"}, ["combine"]).answer
    '24'
    """
    inner = value.get("function")
    if isinstance(inner, Mapping) and "name" in inner:
        value = {**value, **inner}
    name, _ = one_of({key: item for key, item in value.items() if not isinstance(item, Mapping)}, TOOL_KEYS)
    raw_input, _ = one_of(value, INPUT_KEYS)
    thought, _ = one_of(value, THOUGHT_KEYS)
    if name is None and value.get("final_answer") is not None:
        written: LabelledReply = read_object(LabelledReply, value)
        answer, because = parse_answer({"answer": written.answer or "", "because": written.because})
        if not answer:
            raise ParseError("Your final answer is empty.", "missing_field")
        return Move(answer=answer, thought=written.thought, because=because)
    if not isinstance(name, str) or not name.strip():
        raise ParseError("action is the name of one tool.", "missing_field")
    return move_of(name, input_text(raw_input), thought if isinstance(thought, str) else "", tools)


def input_text(raw_input: Value) -> str:
    if raw_input is None:
        return ""
    return raw_input if isinstance(raw_input, str) else json.dumps(raw_input, ensure_ascii=False)


def move_of(name: str, raw_input: str, thought: str, tools: Sequence[str]) -> Move:
    plain = name.strip().strip("`*'\"[]").strip()
    if plain.casefold().replace(" ", "_").replace("-", "_") == GIVE_UP and GIVE_UP not in tools:
        return Move(None, "", replace_surrogates(thought), replace_surrogates(raw_input))
    try:
        plain = match_tool(name, tools, [])
    except ParseError as error:
        if error.reason != "unknown_tool":
            raise
    if not raw_input.strip():
        raise ParseError("Action input is missing.", "missing_field")
    return Move(Action(check_query(plain), check_query(raw_input)), None, replace_surrogates(thought))
