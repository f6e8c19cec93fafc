"""What a model may write as its next move, and what goes back."""

import pytest

from decisor.errors import ParseError
from decisor.parsing.labelled import Move, parse_move
from decisor.types import Action

TOOLS = ("search", "click")


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        ("Action: search\nAction input: red shoes", Move(Action("search", "red shoes"))),
        (
            "**Thought:** hm\n**Action:** Click\n**Action input:** `Buy Now`",
            Move(Action("click", "Buy Now"), None, "hm"),
        ),
        ("Action: search[red shoes]", Move(Action("search", "red shoes"))),
        ('{"tool": "search", "arguments": {"q": "red", "k": 3}}', Move(Action("search", '{"q": "red", "k": 3}'))),
        ('```json\n{"action": "click", "action_input": "B07"}\n```', Move(Action("click", "B07"))),
        ("Action: fly\nAction input: up", Move(Action("fly", "up"))),
        ("Action: Give up\nAction input: no way", Move(None, "", "", "no way")),
        ("Action: give_up", Move(None, "")),
        ("Thought: done\nFinal answer: B07\nBecause: it fits [o1.r1]", Move(None, "B07", "done", "it fits [o1.r1]")),
        ("Action: click\nAction input: a\nObservation: bought\nFinal answer: x", Move(Action("click", "a"))),
        ("Action: click\nAction input: a\nFinal answer: x", Move(Action("click", "a"))),
        ("I take it. click[a]\n\nclick[a]", Move(Action("click", "a"))),
        ('<tool_call>{"name": "click", "arguments": {"input": "a"}}</tool_call>', Move(Action("click", "a"))),
    ],
)
def test_a_move_is_read(reply: str, move: Move) -> None:
    assert parse_move(reply, TOOLS) == move


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("I would search.", "missing_field"),
        ("Action: search", "missing_field"),
        ("Final answer: b\nAction: search\nAction input: a", "both"),
        ("Final answer:", "missing_field"),
        ("Final answer: **", "missing_field"),
        ("Action: search\nAction input: ...", "missing_field"),
        ("Action: search\nAction input: a\nAction: click\nAction input: b", "multiple_actions"),
        ("Action: search\nAction input: a\x00b", "control"),
        ('{"thought": "hm"}', "missing_field"),
        ('[{"action": "search"}]', "missing_field"),
    ],
)
def test_what_is_no_move_is_complained_about(reply: str, reason: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_move(reply, TOOLS)
    assert raised.value.reason == reason
