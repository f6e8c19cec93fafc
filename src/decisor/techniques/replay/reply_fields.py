"""A reply in which some fields say something else: of labelled text, of a JSON object and of a function call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decisor.errors import ParseError, SetupError
from decisor.replies.form import UNION, object_in, object_of_call
from decisor.replies.labelled import LABEL, NAMES, LabelledReply
from decisor.replies.shape import Shape, slots_of
from decisor.types import Value

FIRST = ("replan", "plan", "thought")
"""Labels that are written where they are missing, in this order; without the others there is no reply to change."""
NO_FIELDS = (
    "The reply of this step has no labels (Action, Action input), so it cannot be changed by parts. "
    "Set its observation instead."
)


@dataclass(frozen=True, slots=True)
class Fields:
    """What a reply is to say. Empty: as it is. ``why``: of a replan; with it the plan is a new one."""

    thought: str = ""
    action: str = ""
    input: str | None = None
    plan: tuple[str, ...] = ()
    why: str = ""

    def labels(self) -> dict[str, str]:
        plan = ", ".join(f"Step {number}: {' '.join(step.split())}" for number, step in enumerate(self.plan, 1))
        values = {"replan": f"Y, {self.why}" if self.why else "", "plan": f"[{plan}]" if plan else "",
                  "thought": self.thought, "action": self.action}  # fmt: skip
        own = {name: value for name, value in values.items() if value}
        return own if self.input is None else {**own, "input": self.input}

    def keys(self) -> dict[str, Value]:
        values: dict[str, Value] = {"replan": bool(self.why), "why": self.why, "plan": list(self.plan),
                                    "thought": self.thought, "action": self.action}  # fmt: skip
        own: dict[str, Value] = {name: value for name, value in values.items() if value}
        return own if self.input is None else {**own, "action_input": self.input}


def with_fields(reply: str, changes: Fields, tools: Sequence[str] = ()) -> str:
    """``tools``: those that a function call may be of.

    >>> with_fields("Thought: a\\nAction: sql\\nAction input: select 1", Fields(input="select 2"))
    'Thought: a\\nAction: sql\\nAction input: select 2'
    >>> with_fields('{"name": "sql", "arguments": {"input": "select 1"}}', Fields(input="select 2"), ["sql"])
    '{"action": "sql", "action_input": "select 2"}'

    Raises:
        SetupError: it has no such parts.
    """
    try:
        value = object_in(reply)
        if value is not None:
            return json.dumps({**plain(value, tools), **changes.keys()}, ensure_ascii=False)
    except ParseError as error:
        raise SetupError(NO_FIELDS) from error
    for name, text in reversed(changes.labels().items()):
        reply = with_label(reply, name, text)
    return reply


def plain(value: Mapping[str, Value], tools: Sequence[str]) -> Mapping[str, Value]:
    """An object with the keys of a labelled reply, whatever was around them."""
    inner, keys = value.get(UNION), dict.fromkeys(slots_of(LabelledReply), "")
    shapes = Shape(keys, enums={"action": list(tools)}), Shape(keys, "final_answer")
    return object_of_call(inner if isinstance(inner, Mapping) else value, shapes)


def with_label(reply: str, name: str, value: str) -> str:
    labels = list(LABEL.finditer(reply))
    for place, label in enumerate(labels):
        if NAMES[label["name"].casefold().replace("_", " ")] == name:
            end = labels[place + 1].start() if place + 1 < len(labels) else len(reply)
            return f"{reply[: label.end()]} {value}" + ("\n" + reply[end:] if end < len(reply) else "")
    if name in FIRST and labels:
        return f"{'Re-plan' if name == 'replan' else name.capitalize()}: {value}\n{reply}"
    raise SetupError(NO_FIELDS)
