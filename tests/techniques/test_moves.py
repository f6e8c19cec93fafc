"""What a model may write as its next move, and what goes back."""

import pytest

from decisor.errors import ParseError
from decisor.parsing.labelled import LabelledReply, WrittenCall, parse_move

TOOLS = ("search", "click")


def call(tool: str, input: str, thought: str = "") -> LabelledReply:
    return LabelledReply(WrittenCall(tool, input), thought=thought)


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        ("Action: search\nAction input: red shoes", call("search", "red shoes")),
        (
            "**Thought:** hm\n**Action:** Click\n**Action input:** `Buy Now`",
            call("click", "Buy Now", "hm"),
        ),
        ("Action: search[red shoes]", call("search", "red shoes")),
        ('{"tool": "search", "arguments": {"q": "red", "k": 3}}', call("search", '{"q": "red", "k": 3}')),
        ('```json\n{"action": "click", "action_input": "B07"}\n```', call("click", "B07")),
        ("Action: fly\nAction input: up", call("fly", "up")),
        ("Action: Give up\nAction input: no way", LabelledReply(answer="", because="no way")),
        ("Action: give_up", LabelledReply(answer="")),
        (
            "Thought: done\nFinal answer: B07\nBecause: it fits [o1.r1]",
            LabelledReply(answer="B07", because="it fits [o1.r1]", thought="done"),
        ),
        ("Action: click\nAction input: a\nObservation: bought\nFinal answer: x", call("click", "a")),
        ("Action: click\nAction input: a\nFinal answer: x", call("click", "a")),
        ("I take it. click[a]\n\nclick[a]", call("click", "a")),
        ('<tool_call>{"name": "click", "arguments": {"input": "a"}}</tool_call>', call("click", "a")),
    ],
)
def test_a_move_is_read(reply: str, move: LabelledReply) -> None:
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
