"""The next move of a search: an action, a final answer, or giving up. Labelled, or as one JSON object.

Whether a tool exists is not asked here: an action that names none is a step too, and its observation says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decisor.errors import ParseError
from decisor.replies import text as texts
from decisor.replies.actions import INPUT_KEYS, THOUGHT_KEYS, TOOL_KEYS, one_of
from decisor.replies.fields import parse_answer, read_fields
from decisor.replies.jsons import read_one
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
    text = texts.clean(reply)
    fields = read_fields(text, [])
    if not fields and text.lstrip("`json \n").startswith("{"):
        return json_move(text, tools)
    answer, because = parse_answer(fields)
    thought = texts.no_halves(fields.get("thought", ""))
    if "action" in fields and answer is not None:
        raise ParseError("You wrote an action and a final answer. Write one of them.", "both")
    if answer is not None:
        if not answer:
            raise ParseError("Your final answer is empty.", "missing_field")
        return Move(None, answer, thought, because)
    if not fields.get("action"):
        raise ParseError("Write an Action with its Action input, or a Final answer.", "missing_field")
    name, given = fields["action"], texts.unfenced(fields.get("input", ""))
    if not given and (call := CALL.fullmatch(name)):
        name, given = call[1], call[2]
    return move_of(name, given, thought, tools)


def json_move(text: str, tools: Sequence[str]) -> Move:
    value = read_one(text, [])
    if not isinstance(value, Mapping):
        raise ParseError("Write one action.", "shape")
    inner = value.get("function")
    if isinstance(inner, Mapping) and "name" in inner:
        value = {**value, **inner}
    name, _ = one_of({key: item for key, item in value.items() if not isinstance(item, Mapping)}, TOOL_KEYS)
    given, _ = one_of(value, INPUT_KEYS)
    thought, _ = one_of(value, THOUGHT_KEYS)
    if not isinstance(name, str) or not name.strip():
        raise ParseError("action is the name of one tool.", "missing_field")
    return move_of(name, input_text(given), thought if isinstance(thought, str) else "", tools)


def input_text(given: Value) -> str:
    return given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)


def move_of(name: str, given: str, thought: str, tools: Sequence[str]) -> Move:
    plain = name.strip().strip("`*'\"[]").strip()
    if plain.casefold().replace(" ", "_").replace("-", "_") == GIVE_UP and GIVE_UP not in tools:
        return Move(None, "", texts.no_halves(thought), texts.no_halves(given))
    try:
        plain = texts.tool(name, tools, [])
    except ParseError as error:
        if error.reason != "unknown_tool":
            raise
    if not given.strip():
        raise ParseError("Action input is missing.", "missing_field")
    return Move(Action(texts.query(plain), texts.query(given)), None, texts.no_halves(thought))
