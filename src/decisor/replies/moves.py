"""The next move of a search: an action, a final answer, or giving up. Labelled, or as one JSON object.

Whether a tool exists is not asked here: an action that names none is a step too, and its observation says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decisor.errors import ParseError
from decisor.replies.cleaning import check_query, clean, replace_surrogates
from decisor.replies.copies import refuse_copies
from decisor.replies.labelled import LabelledReply, fields_of, parse_answer, read_input, refuse_answer_first
from decisor.replies.other_forms import CALL, flat, inside_of
from decisor.replies.shape import read_object
from decisor.replies.tool_names import match_tool
from decisor.types import Action, Value

GIVE_UP = "give_up"


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
    fields = fields_of(clean(reply), tools, [])
    answer, because = parse_answer(fields)
    thought = replace_surrogates(fields.get("thought", ""))
    if "action" in fields and answer is not None:
        refuse_answer_first(fields)
        answer, because = None, ""
    if answer is not None:
        if not answer:
            raise ParseError("Your final answer is empty.", "missing_field")
        return Move(answer=answer, thought=thought, because=because)
    if not fields.get("action"):
        raise ParseError("Write an Action with its Action input, or a Final answer.", "missing_field")
    name, raw_input = fields["action"], fields.get("input", "")
    if not raw_input and (call := CALL.fullmatch(name)):
        name, raw_input = call["tool"], inside_of(call)
    return move_of(name, raw_input, thought, tools)


def read_move(value: Mapping[str, Value], tools: Sequence[str]) -> Move:
    """The same from a JSON object with the keys action and action_input, or final_answer and because.

    >>> read_move({"thought": "done", "final_answer": "24", "because": "6 * 4"}, ["combine"]).answer
    '24'
    """
    written: LabelledReply = read_object(LabelledReply, flat(value))
    if written.call is None and written.answer is not None:
        answer, because = parse_answer({"answer": written.answer, "because": written.because})
        if not answer:
            raise ParseError("Your final answer is empty.", "missing_field")
        return Move(answer=answer, thought=written.thought, because=because)
    if written.call is None or not written.call.tool:
        raise ParseError("action is the name of one tool.", "missing_field")
    return move_of(written.call.tool, written.call.input, written.thought, tools)


def move_of(name: str, raw_input: str, thought: str, tools: Sequence[str]) -> Move:
    plain = name.strip().strip("`*'\"[]").strip()
    if plain.casefold().replace(" ", "_").replace("-", "_") == GIVE_UP and GIVE_UP not in tools:
        return Move(None, "", replace_surrogates(thought), replace_surrogates(raw_input))
    try:
        plain = match_tool(name, tools, [])
    except ParseError as error:
        if error.reason != "unknown_tool":
            raise
    refuse_copies("Action", name)
    refuse_copies("Action input", raw_input)
    return Move(Action(check_query(plain), check_query(read_input(raw_input, []))), None, replace_surrogates(thought))
