"""A form filled in, with the tools that are at hand: what a complaint about a reply shows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from decisor.calling import Way
from decisor.replies.copies import EXAMPLE_ANSWER, EXAMPLE_INPUTS, EXAMPLE_PLAN
from decisor.replies.form import UNION, Form
from decisor.replies.shape import Shape
from decisor.types import Value

LABELS = {
    "thought": "Thought",
    "plan": "Plan",
    "current_step": "Current step",
    "action": "Action",
    "action_input": "Action input",
    "final_answer": "Final answer",
    "because": "Because",
    "replan": "Re-plan",
    "follow_up": "Follow up",
    "runner_up": "Runner-up",
    "assumptions": "Assumptions",
}
VALUES: Mapping[str, Value] = {
    "thought": "I need the price of each product.",
    "plan": list(EXAMPLE_PLAN),
    "current_step": f"Step 1: {EXAMPLE_PLAN[0]}",
    "final_answer": EXAMPLE_ANSWER,
    "because": "its price is the lowest",
    "runner_up": "none",
    "assumptions": "none",
    "replan": False,
    "why": "",
    "follow_up": "Who owns Harbour Mill?",
}
OF_ANSWERS = ("no_citation", "unknown_source", "objection")
"""Complaints about an answer, which an example of an action would not help."""
SUCH_AS = re.compile(r"\b(?:such as|like|e\.g\.|for example:?)\s+`?([^`\n;]{2,60}?)`?(?:[.,;](?:\s|$)|\n|$)")


def filled_in(form: Form[object], way: Way, tools: Mapping[str, str], description: str, reason: str) -> str:
    """A form with an example in it; where there is none, what was asked for. '' where a function is to be called.

    ``tools``: each with what it speaks (sql, cypher, passages), ``description``: what a prompt says of them.
    """
    if way == "tools":
        return ""
    answers = reason in OF_ANSWERS
    chosen = next((one for one in (*form.now, *form.shapes) if ("final_answer" in one.says) == answers), None)
    if chosen is None or not set(chosen.says) <= {*VALUES, "action", "action_input"}:
        return "" if way == "json" else form.text
    values = {key: value_of(key, chosen, tools, description) for key in chosen.says}
    if "replan" in values:
        values["plan"] = []  # not to replan is the likelier
    if answers:
        values["thought"] = "Its price is the lowest."
    if reason == "no_citation":
        values["because"] = "its price is the lowest [the id of a record that you were shown]"
    if way == "json":
        return json.dumps({UNION: values} if len(form.shapes) > 1 else values, ensure_ascii=False)
    return "\n".join(
        f"{LABELS[key]}: {as_text(key, value)}" for key, value in values.items() if key in LABELS and value != []
    )


def as_text(key: str, value: Value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(f"Step {number}: {step}" for number, step in enumerate(value, 1)) + "]"
    return "N" if key == "replan" else str(value)


def value_of(key: str, shape: Shape, tools: Mapping[str, str], description: str) -> Value:
    """
    >>> value_of("action_input", Shape({}, enums={"action": ["parts"]}), {"parts": "cypher"}, "")
    'MATCH (p:Product) RETURN p.name, p.price ORDER BY p.price LIMIT 10'
    """
    names = shape.enums.get("action", ())
    tool = names[0] if names else ""
    if key == "action":
        return tool
    if key == "action_input":
        speaks = tools.get(tool, tool)
        return EXAMPLE_INPUTS.get(speaks) or named_example(tool, description)
    return VALUES[key]


def named_example(tool: str, description: str) -> str:
    """An input that the description of a tool names itself.

    >>> named_example("combine", "### Tool: combine\\nTwo numbers and what to do with them, such as 10 - 4.")
    '10 - 4'
    """
    part = description.partition(f"### Tool: {tool}\n")[2].partition("\n### Tool: ")[0]
    example = SUCH_AS.search(part)
    return example[1].strip() if example else "(the input that its description asks for)"
