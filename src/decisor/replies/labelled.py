"""Labelled replies: ``Thought: ... Action: ... Action input: ...``, with or without a plan.

Forgiven: case, markdown around labels, order, a label repeated with the same value, names for one thing. Asked again:
anything with two readings. What a model writes after an ``Observation:`` of its own is cut off before anything is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from decisor.errors import ParseError
from decisor.replies.cleaning import INVISIBLE, MAX_CHARS, NO_HELP, check_query, clean, replace_surrogates, strip_fence
from decisor.replies.shape import read_object
from decisor.replies.tool_names import match_tool
from decisor.types import Value

NAMES = {
    "plan": "plan",
    "new plan": "plan",
    "revised plan": "plan",
    "current step": "current",
    "thought": "thought",
    "thoughts": "thought",
    "action": "action",
    "tool": "action",
    "action input": "input",
    "input": "input",
    "re-plan": "replan",
    "replan": "replan",
    "final answer": "answer",
    "because": "because",
    "runner-up": "runner_up",
    "runner up": "runner_up",
    "assumptions": "assumptions",
    "assumption": "assumptions",
    "observation": "observation",
}
WORDS = "|".join(sorted((re.escape(name).replace(r"\ ", "[ _]") for name in NAMES), key=len, reverse=True))
LABEL = re.compile(
    r"^[ \t]*(?:(?P<heading>\#{1,6})[ \t]*)?(?P<mark>[*_>-]{0,3})[ \t]*"
    rf"(?P<name>{WORDS})[ \t]*(?:\d{{1,3}}[ \t]*)?[*_]{{0,3}}[ \t]*"
    r"(?:[:\uff1a][*_]{0,3}|(?=\r?$))",
    re.M | re.I,
)
ONE_VALUED = ("action", "input", "answer", "replan")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool and its input as the model wrote them."""

    tool: str = field(metadata={"key": "action"})
    input: str = field(metadata={"key": "action_input"})


@dataclass(frozen=True, slots=True)
class LabelledReply:
    """One labelled reply. Exactly one of ``call`` and ``answer`` is there. ``replan`` is None where it is not said."""

    call: Call | None = None
    answer: str | None = field(default=None, metadata={"key": "final_answer"})
    because: str = ""
    runner_up: str = ""
    assumptions: str = ""
    plan: tuple[str, ...] = ()
    current: str = field(default="", metadata={"key": "current_step"})
    thought: str = ""
    replan: bool | None = None
    why: str = ""
    repairs: tuple[str, ...] = ()


def parse_labelled(reply: str, tools: Sequence[str], observations: int) -> LabelledReply:
    """
    >>> parse_labelled("Thought: look\\nAction: SQL\\nAction input: SELECT 1", ["sql"], 0).call
    Call(tool='sql', input='SELECT 1')

    Raises:
        ParseError: no or two readings (missing_field, duplicate_key, multiple_actions, both, unknown_tool, control), or
            an answer before any observation (no_evidence).
    """
    repairs: list[str] = []
    fields = read_fields(clean(reply, repairs), repairs)
    if not fields and NO_HELP.search(reply):
        raise ParseError("That is a refusal. Write an action or a final answer.", "model_refusal")
    answer, because = parse_answer(fields)
    yes, why = parse_replan(fields.get("replan", ""))
    written = LabelledReply(
        call=read_call(fields, repairs),
        answer=answer,
        because=because,
        runner_up=replace_surrogates(fields.get("runner_up", "")),
        assumptions=replace_surrogates(fields.get("assumptions", "")),
        plan=parse_plan(fields.get("plan", "")),
        current=replace_surrogates(fields.get("current", "")),
        thought=replace_surrogates(fields.get("thought", "")),
        replan=yes,
        why=replace_surrogates(why),
    )
    return check_labelled(written, tools, observations, repairs)


def read_labelled(value: Mapping[str, Value], tools: Sequence[str], observations: int) -> LabelledReply:
    """The same from a JSON object with the keys action and action_input, or final_answer and because.

    >>> read_labelled({"thought": "look", "action": "sql", "action_input": "SELECT 1"}, ["sql"], 0).call
    Call(tool='sql', input='SELECT 1')
    """
    written: LabelledReply = read_object(LabelledReply, value)
    if written.answer is not None:
        answer, because = parse_answer({"answer": written.answer, "because": written.because})
        written = replace(written, answer=answer, because=because)
    return check_labelled(written, tools, observations, [])


def check_labelled(reply: LabelledReply, tools: Sequence[str], observations: int, repairs: list[str]) -> LabelledReply:
    """The reply with its tool and input as they are called here.

    Raises:
        ParseError: as ``parse_labelled``.
    """
    call = check_call(reply.call, tools, repairs) if reply.call else None
    if call and reply.answer is not None:
        raise ParseError("You wrote an action and a final answer. Write one of them.", "both")
    if reply.answer is not None and not reply.answer:
        raise ParseError("Your final answer is empty.", "missing_field")
    if reply.answer is not None and not observations:
        raise ParseError("There is no observation yet: query the data before you answer.", "no_evidence")
    if not call and reply.answer is None:
        raise ParseError("Write an Action with its Action input, or a Final answer.", "missing_field")
    if reply.replan and not reply.plan:
        raise ParseError(
            "You say Re-plan: Y but give no new plan. Write it as Plan: [Step 1: ..., ...]", "missing_field"
        )
    return replace(reply, call=call, repairs=tuple(dict.fromkeys(repairs)))


def read_fields(text: str, repairs: list[str]) -> dict[str, str]:
    """Label to value, up to the first ``Observation:``. Labels that come again must say the same, or be thoughts."""
    values_by_name: dict[str, list[str]] = {}
    order: list[str] = []
    labels = list(LABEL.finditer(text))
    for number, label in enumerate(labels):
        spelling = label["name"]
        name = NAMES[spelling.casefold().replace("_", " ")]
        if name == "observation":
            repairs.append("cut_at_observation")
            break
        end = labels[number + 1].start() if number + 1 < len(labels) else len(text)
        value = text[label.end() : end].strip()
        if not spelling[0].isupper() or spelling.isupper() or label.group().endswith(" :"):
            repairs.append("case")
        if label["heading"] or label["mark"]:
            repairs.append("markdown_labels")
        if label["mark"].strip("->_ ") and value.endswith("**"):
            value = value.strip("* ")
        values_by_name.setdefault(name, []).append(value)
        order.append(name)
    return {name: one_value(name, values, values_by_name, repairs) for name, values in values_by_name.items()}


def one_value(name: str, values: list[str], all_values: dict[str, list[str]], repairs: list[str]) -> str:
    if len(values) == 1:
        return values[0]
    if name not in ONE_VALUED:
        return "\n".join(values) if name != "plan" else values[-1]
    if len(set(values)) == 1 and not (len(all_values.get("action", ())) > 1 and len(all_values.get("input", ())) > 1):
        repairs.append("duplicate_key_same")
        return values[0]
    if len(all_values.get("input", ())) > 1 and len(all_values.get("action", ())) > 1:
        raise ParseError("You wrote several actions. Write one, then wait for its observation.", "multiple_actions")
    raise ParseError(f"You wrote {name} twice, with different values.", "duplicate_key")


def read_call(fields: dict[str, str], repairs: list[str]) -> Call | None:
    if "action" not in fields and "input" not in fields:
        return None
    if {"action", "input"} <= fields.keys() and list(fields).index("input") < list(fields).index("action"):
        repairs.append("order")
    return Call(fields.get("action", ""), fields.get("input", ""))


def check_call(call: Call, tools: Sequence[str], repairs: list[str]) -> Call:
    for value, label in ((call.tool, "Action"), (call.input, "Action input")):
        if not value:
            raise ParseError(f"{label} is missing.", "missing_field")
    return Call(match_tool(call.tool, tools, repairs), check_query(read_input(strip_fence(call.input), repairs)))


QUERY_NAMES = ("query", "sql", "cypher", "statement", "input", "action_input", "expression", "text")


def read_input(text: str, repairs: list[str]) -> str:
    """A query, also where it came as ``{"query": "..."}``; other objects are a tool's own arguments.

    >>> read_input('{"sql": "SELECT 1"}', []), read_input('{"city": "Rome"}', [])
    ('SELECT 1', '{"city": "Rome"}')
    """
    if text.startswith("{") and text.endswith("}") and len(text) < MAX_CHARS:
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return text
        if isinstance(value, dict) and len(value) == 1:
            name, inside = next(iter(value.items()))
            if name.casefold() in QUERY_NAMES and isinstance(inside, str):
                repairs.append("json_input")
                return inside.strip()
    return text


def parse_answer(fields: dict[str, str]) -> tuple[str | None, str]:
    """The name alone, which is the first line, and what supports it.

    >>> parse_answer({"answer": "krakow [o1.r2]\\nIt has the largest outflow."})
    ('krakow [o1.r2]', 'It has the largest outflow.')
    """
    if "answer" not in fields:
        return None, replace_surrogates(fields.get("because", ""))
    name, _, rest = fields["answer"].translate(INVISIBLE).partition("\n")
    because = "\n".join(part for part in (rest.strip(), fields.get("because", "")) if part)
    return replace_surrogates(name.strip()), replace_surrogates(because)


def parse_plan(text: str) -> tuple[str, ...]:
    """
    >>> parse_plan("[Step 1: find the suppliers, Step 2: compare them]")
    ('find the suppliers', 'compare them')
    >>> parse_plan("1. find\\n2. compare")
    ('find', 'compare')
    """
    bare = replace_surrogates(text).strip().strip("[]").strip()
    if not bare:
        return ()
    parts = re.split(r"(?:^|[\s,;\[])(?:\*\*)?Step\s+\d+\s*[:.)](?:\*\*)?", bare, flags=re.I)
    if len(parts) == 1:
        parts = re.split(r"(?:^|\n)\s*(?:\d{1,3}[.)]|[-*])\s+", bare)
    steps = [re.sub(r"\s+", " ", part).strip().rstrip(",;]").strip() for part in parts]
    return tuple(step for step in steps if step)


def parse_replan(text: str) -> tuple[bool | None, str]:
    """Whether to replan, and why.

    >>> parse_replan("Y, the goods have no suppliers")
    (True, 'the goods have no suppliers')
    """
    if not text:
        return None, ""
    yes_or_no = re.match(r"\W*(yes|no|y|n)\b[\s,.:;\u2013\u2014-]*", text, re.I)
    if not yes_or_no:
        return None, text.strip()
    return yes_or_no[1].casefold().startswith("y"), text[yes_or_no.end() :].strip().strip("[]")
