"""Labelled replies: ``Thought: ... Action: ... Action input: ...``, with or without a plan.

Forgiven: case, markdown around labels, order, a label repeated with the same value, names for one thing. Asked again:
anything with two readings. What a model writes after an ``Observation:`` of its own is cut off before anything is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from decisor.errors import ParseError
from decisor.replies.cleaning import (
    INVISIBLE,
    MAX_CHARS,
    NO_HELP,
    check_query,
    clean,
    replace_surrogates,
    strip_fence,
    strip_quotes,
)
from decisor.replies.copies import BLANK, refuse_copies
from decisor.replies.figures import citations, without_citations
from decisor.replies.other_forms import CALL, ON_ONE_LINE, fields_without_labels, flat, input_text, inside_of
from decisor.replies.queries import START, lone_query
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
    "answer": "answer",
    "because": "because",
    "runner-up": "runner_up",
    "runner up": "runner_up",
    "assumptions": "assumptions",
    "assumption": "assumptions",
    "observation": "observation",
}
WORDS = "|".join(sorted((re.escape(name).replace(r"\ ", "[ _]?") for name in NAMES), key=len, reverse=True))
PLAIN_NAMES = {re.sub(r"[ _]", "", name): field for name, field in NAMES.items()}
LABEL = re.compile(
    r"^[ \t]*(?:\d{1,2}[.)][ \t]+)?(?:(?P<heading>\#{1,6})[ \t]*)?(?P<mark>[*_>-]{0,3})[ \t]*"
    rf"(?P<name>{WORDS})[ \t]*(?:\d{{1,3}}[ \t]*)?[*_]{{0,3}}[ \t]*"
    r"(?:[:\uff1a][*_]{0,3}|(?=\r?$))",
    re.M | re.I,
)
OBSERVATION = re.compile(r"^[ \t*_#>-]*observation[ \t]*\d*[ \t*_]*[:\uff1a]", re.M | re.I)
ONE_VALUED = ("action", "input", "answer", "replan")

NO_ARGUMENTS = re.compile(r"\{\s*\}")


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
    fields = fields_of(clean(reply, repairs), tools, repairs)
    if not fields and NO_HELP.search(reply):
        raise ParseError("That is a refusal. Write an action or a final answer.", "model_refusal")
    if {"action", "answer"} <= fields.keys():
        refuse_answer_first(fields)
    answer, because = parse_answer(fields, repairs)
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
    >>> read_labelled({"plan": ["Step 1: look"], "action": "sql", "action_input": "SELECT 1"}, ["sql"], 0).plan
    ('look',)
    """
    written: LabelledReply = read_object(LabelledReply, flat(value))
    written = replace(written, plan=tuple(text for step in written.plan for text in parse_plan(step)))
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
    if reply.plan:
        refuse_copies("Plan", reply.plan[0])
    if call and reply.answer is not None:
        repairs.append("action_first")
        reply = replace(reply, answer=None, because="")
    if reply.answer is not None and not reply.answer:
        raise ParseError("Your final answer is empty.", "missing_field")
    if reply.answer is not None and not observations:
        raise ParseError("There is no observation yet: query the data before you answer.", "no_evidence")
    if not call and reply.answer is None:
        raise ParseError("Write an Action with its Action input, or a Final answer.", "missing_field")
    if reply.replan and not reply.plan:
        repairs.append("plan_kept")
        reply = replace(reply, replan=False)
    if not repairs and call == reply.call:
        return reply
    return replace(reply, call=call, repairs=tuple(dict.fromkeys(repairs)))


def fields_of(text: str, tools: Sequence[str], repairs: list[str]) -> dict[str, str]:
    """Label to value; where no label tells an action or an answer, what another form of reply tells."""
    fields = read_fields(text, repairs)
    if "action" in fields and not fields.get("input") and (call := CALL.fullmatch(fields["action"])):
        head = call["tool"].casefold()
        if head in (tool.casefold() for tool in tools):
            repairs.append("call_form")
            return {**fields, "action": call["tool"], "input": inside_of(call)}
    if is_answer(fields, tools):
        repairs.append("answer_as_action")
        return {**{name: value for name, value in fields.items() if name != "action"}, "answer": fields["input"]}
    if query := lone_query(fields.get("action") or "-", tools):
        return {**fields, "action": query[0], "input": fields.get("input") or query[1]}
    if "action" in fields or "answer" in fields:
        return fields
    before = text[: start.start()] if (start := OBSERVATION.search(text)) else text
    if (lines := ON_ONE_LINE.sub("\n", before)) != before and "input" not in fields:
        spread = read_fields(lines, [])
        if "action" in spread or "answer" in spread:
            repairs.append("one_line")
            return spread
    return {**fields, **fields_without_labels(before, tools, repairs)}


def is_answer(fields: dict[str, str], tools: Sequence[str]) -> bool:
    """Whether the action is to answer, where that is no tool."""
    name = re.sub(r"\W+", "_", fields.get("action", "")).strip("_").casefold()
    is_tool = name in {tool.casefold() for tool in tools}
    return name in ("final_answer", "answer", "finish") and not is_tool and bool(fields.get("input"))


def refuse_answer_first(fields: dict[str, str]) -> None:
    """An action and then an answer is an action: its observation is not there yet. The other way round is neither."""
    order = list(fields)
    if order.index("answer") < order.index("action"):
        raise ParseError("You wrote a final answer and an action. Write one of them.", "both")


def read_fields(text: str, repairs: list[str]) -> dict[str, str]:
    """Label to value, up to the first ``Observation:``. Labels that come again must say the same, or be thoughts."""
    values_by_name: dict[str, list[str]] = {}
    order: list[str] = []
    labels = list(LABEL.finditer(text))
    for number, label in enumerate(labels):
        spelling = label["name"]
        name = PLAIN_NAMES[re.sub(r"[ _]", "", spelling.casefold())]
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
    if "action" not in fields and ("input" not in fields or "answer" in fields):
        return None
    if {"action", "input"} <= fields.keys() and list(fields).index("input") < list(fields).index("action"):
        repairs.append("order")
    return Call(fields.get("action", ""), fields.get("input", ""))


def check_call(call: Call, tools: Sequence[str], repairs: list[str]) -> Call:
    for value, label in ((call.tool, "Action"), (call.input, "Action input")):
        if not value:
            raise ParseError(f"{label} is missing.", "missing_field")
        refuse_copies(label, value)
    return Call(match_tool(call.tool, tools, repairs), check_query(read_input(call.input, repairs)))


def read_input(text: str, repairs: list[str]) -> str:
    """A query without its fence or quotes, also where it came as ``{"query": "..."}``.

    >>> read_input('{"sql": "SELECT 1"}', []), read_input('{"city": "Rome"}', []), read_input('"SELECT 1"', [])
    ('SELECT 1', '{"city": "Rome"}', 'SELECT 1')
    >>> read_input("{}", [])
    '{}'

    Raises:
        ParseError: it is blank, or a place to fill in.
    """
    bare = strip_fence(text)
    if BLANK.fullmatch(bare) and not NO_ARGUMENTS.fullmatch(bare):
        raise ParseError("Action input is missing.", "missing_field")
    if START.match(inside := strip_quotes(bare)):
        return inside
    if bare.startswith("{") and bare.endswith("}") and len(bare) < MAX_CHARS and (inside := input_text(bare)) != bare:
        repairs.append("json_input")
        return inside
    return bare


def parse_answer(fields: dict[str, str], repairs: list[str] | None = None) -> tuple[str | None, str]:
    """The name alone, which is the first line, and what supports it. Marks and citations of records alone are no name:
    ''; a whole observation alone is a table.

    >>> parse_answer({"answer": "krakow [o1.r2]\\nIt has the largest outflow."})
    ('krakow [o1.r2]', 'It has the largest outflow.')
    >>> parse_answer({"answer": "**[o1.r4]**"})[0], parse_answer({"answer": '"krakow"'})[0]
    ('', 'krakow')
    >>> parse_answer({"answer": "[o2]"})[0]
    'Table o2 [o2]'

    Raises:
        ParseError: the name is the form's own text (copied).
    """
    if "answer" not in fields:
        return None, replace_surrogates(fields.get("because", ""))
    name, _, rest = fields["answer"].translate(INVISIBLE).partition("\n")
    because = "\n".join(part for part in (rest.strip(), fields.get("because", "")) if part)
    refuse_copies("final answer", name)
    bare = strip_quotes(name.strip())
    if bare != name.strip() and repairs is not None:
        repairs.append("quotes")
    if not re.search(r"[^\W_]", without_citations(bare)):
        tables = [name for name in citations(bare) if "." not in name]
        bare = f"Table {', '.join(tables)} [{', '.join(tables)}]" if tables else ""
    return replace_surrogates(bare), replace_surrogates(because)


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
