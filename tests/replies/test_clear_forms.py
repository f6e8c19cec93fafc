"""Replies in other forms than the one asked for: what is clear is taken, what has two readings is asked again."""

from __future__ import annotations

import json

import pytest

from decisor.errors import ParseError
from decisor.parsing.cleaning import clean_reply
from decisor.parsing.labelled import LabelledReply, WrittenCall, parse_labelled, parse_move, refuse_form_text
from decisor.parsing.plan import parse_plan_graph
from decisor.parsing.reply_form import Form
from decisor.techniques.dag.experts import PLANNER_TEXT
from decisor.techniques.shared.judge import CHANCE_FORM

TOOLS = ("sql", "search")
QUERY = "SELECT name FROM river"
ACTION = f"Action: sql\nAction input: {QUERY}"
CLEAR = {
    "a call with brackets": f"Thought: look\nAction: sql[{QUERY}]",
    "a call with round brackets": f"Action: sql({QUERY})",
    "a call alone": f"I look it up.\nsql[{QUERY}]",
    "a database": f"Action: SQL database\nAction input: {QUERY}",
    "an object": json.dumps({"thought": "look", "action": "sql", "action_input": QUERY}),
    "an object with other keys": json.dumps({"Thought": "look", "Action": "sql", "Action Input": QUERY}),
    "an action as an object": json.dumps({"action": {"tool": "sql", "input": QUERY}}),
    "a tool call": "<tool_call>\n" + json.dumps({"name": "sql", "arguments": {"query": QUERY}}) + "\n</tool_call>",
    "a call of another family": "[TOOL_CALLS]" + json.dumps([{"name": "sql", "arguments": {"query": QUERY}}]),
    "a fenced query": f"This should tell:\n```sql\n{QUERY}\n```\nIt lists the rivers.",
    "a bare query": QUERY,
    "a query as the action": f"Action: {QUERY}",
    "an answer after it": f"{ACTION}\nFinal answer: aune",
    "prose before": f"Sure! Here is the next step.\n\n{ACTION}",
    "one line": f"Thought: I look. Action: sql Action input: {QUERY}",
    "numbers": f"1. Thought: look\n2. Action: sql\n3. Action input: {QUERY}",
    "an end token": f"{ACTION}<|im_end|>",
    "another turn after its end": f"{ACTION}<|eot_id|><|start_header_id|>user<|end_header_id|>\nAction: search",
    "a fence around all": f"```\n{ACTION}\n```",
    "quotes": f'Action: "sql"\nAction input: "{QUERY}"',
    "prose after a fence": f"Action: sql\nAction input:\n```sql\n{QUERY}\n```\nThis lists the rivers.",
    "reasoning that opened before": f"I look.</think>{ACTION}",
    "an invented observation": f"sql[{QUERY}]\nObservation: aune\nsql[SELECT 2]",
}


@pytest.mark.parametrize("reply", CLEAR.values(), ids=list(CLEAR))
def test_what_is_clear_is_taken_in_every_technique_alike(reply: str) -> None:
    assert parse_labelled(reply, TOOLS, 0).call == WrittenCall("sql", QUERY)
    assert parse_move(reply, TOOLS).call == WrittenCall("sql", QUERY)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (f"Final answer: aune\n{ACTION}", "both"),
        (f"```sql\n{QUERY}\n```\nor\n```sql\nSELECT 2\n```", "missing_field"),
        (f"sql[{QUERY}]\nsql[SELECT 2]", "missing_field"),
        ("Select the longest one from the list.", "missing_field"),
        ("MATCH (r:River) RETURN r", "missing_field"),
        ("Action: the name of one tool\nAction input: what you give it", "copied"),
        ("Action: sql\nAction input: what you give it (for a database, one query and nothing else)", "copied"),
        ("Action: sql\nAction input: <query>", "missing_field"),
        ("Action: sql\nAction input: ...", "missing_field"),
        ("Final answer: the name or id of the candidate, and nothing else", "copied"),
        ("Final answer: [o1.r4]", "missing_field"),
        ("Final answer: **", "missing_field"),
        ('Final answer: ""', "missing_field"),
        ("<think>I could write\nAction: sql\nAction input: SELECT 1", "truncated"),
        (
            f'{{"action": "sql", "action_input": "{QUERY}"}}\n{{"action": "sql", "action_input": "SELECT 2"}}',
            "multiple_actions",
        ),
    ],
)
def test_what_has_two_readings_or_none_is_asked_again(reply: str, reason: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_labelled(reply, TOOLS, 1)
    assert raised.value.reason == reason
    with pytest.raises(ParseError) as raised:
        parse_move(reply, TOOLS)
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    "reply",
    [
        'Final answer: "aune"',
        "Final answer: **aune**",
        "Final Answer: \u201caune\u201d",
        "Answer: aune",
        "So the answer is aune",
        '{"final_answer": "aune", "because": "it is longer"}',
        "Action: Final answer\nAction input: aune",
    ],
)
def test_an_answer_is_the_name_alone(reply: str) -> None:
    assert parse_labelled(reply, TOOLS, 1).answer == parse_move(reply, TOOLS).answer == "aune"


def test_to_replan_without_a_plan_keeps_the_plan_and_runs_the_query() -> None:
    reply = parse_labelled(f"Re-plan: Y, the rivers have no lengths\n{ACTION}", TOOLS, 1)
    assert reply.call == WrittenCall("sql", QUERY) and not reply.replan and reply.plan == ()


def test_an_object_that_lacks_more_than_its_last_bracket_was_cut() -> None:
    with pytest.raises(ParseError) as raised:
        parse_labelled('{"action": "search", "action_input": {"query": "rivers"', TOOLS, 1)
    assert raised.value.reason == "truncated"


def test_reasoning_is_never_read() -> None:
    assert clean_reply("<think>a</think>\n<think>b</think>Final answer: c") == "Final answer: c"


def test_a_word_that_a_form_offers_is_no_copy_of_it() -> None:
    refuse_form_text(CHANCE_FORM.read("It is impossible"), CHANCE_FORM)
    with pytest.raises(ParseError):
        refuse_form_text(
            LabelledReply(answer="a number from 0 to 10"), Form("rating", "Rating: a number from 0 to 10", str)
        )


def test_a_plan_whose_parts_are_all_the_example_is_a_copy() -> None:
    first = {"id": "1.1", "ask": "Who directed the film Arrival?", "needs": []}
    example = json.dumps({"nodes": [first, {"id": "2.1", "ask": "%s", "needs": ["1.1"]}]})
    form = Form("plan of parts", PLANNER_TEXT, parse_plan_graph)
    refuse_form_text(parse_plan_graph(example % "Where does <A1.1> live?"), form)
    with pytest.raises(ParseError, match="copied"):
        refuse_form_text(parse_plan_graph(example % "In which city was <A1.1> born?"), form)
