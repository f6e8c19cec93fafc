"""Labelled replies, ``Thought: ... Action: ... Action input: ...``, with or without a plan, and the moves of a search.

Accepted are any case, markdown around labels, any order, a label repeated with the same value, and several names for
one thing. A reply with two readings is asked for again. Text after an ``Observation:`` that the LLM wrote itself is
cut off before anything is read. A move may name a tool that does not exist: it is a step too, and its observation says
so. ``refuse_form_text`` refuses values that are the text of the form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from decisor.errors import ParseError
from decisor.parsing.cleaning import (
    BLANK,
    INVISIBLE,
    MAX_CHARS,
    NO_HELP,
    check_query_characters,
    clean_reply,
    refuse_copies,
    replace_surrogates,
    strip_fence,
    strip_quotes,
)
from decisor.parsing.figures import find_citations, without_citations
from decisor.parsing.plan import PlanGraph
from decisor.parsing.reply_form import Form, read_dataclass, read_json_reply
from decisor.parsing.unlabelled import (
    CALL,
    ON_ONE_LINE,
    START,
    extract_call_input,
    extract_input_text,
    find_lone_query,
    flatten_action,
    match_tool,
    read_unlabelled_fields,
)
from decisor.types import Decision, Value

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
# A number before the label (a list), marks around it and a full-width colon are seen in replies of small models.
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
class WrittenCall:
    """A tool and its input as the LLM wrote them."""

    tool: str = field(metadata={"key": "action"})
    input: str = field(metadata={"key": "action_input"})


@dataclass(frozen=True, slots=True)
class LabelledReply:
    """One labelled reply with either a call or an answer."""

    call: WrittenCall | None = None
    answer: str | None = field(default=None, metadata={"key": "final_answer"})
    because: str = ""
    runner_up: str = ""
    assumptions: str = ""
    plan: tuple[str, ...] = ()
    current: str = field(default="", metadata={"key": "current_step"})
    thought: str = ""
    replan: bool | None = None
    """None if the reply does not say."""
    why: str = ""


def parse_labelled(reply: str, tools: Sequence[str], observations: int) -> LabelledReply:
    """Parse a labelled reply into a call or an answer, with plan and thought.

    >>> parse_labelled("Thought: look\\nAction: SQL\\nAction input: SELECT 1", ["sql"], 0).call
    WrittenCall(tool='sql', input='SELECT 1')

    Raises:
        ParseError: no or two readings (missing_field, duplicate_key, multiple_actions, both, unknown_tool, control), or
            an answer before any observation (no_evidence).
    """
    return check_labelled(read_labelled_text(reply, tools), tools, observations)


def read_labelled_text(reply: str, tools: Sequence[str]) -> LabelledReply:
    """Read a labelled reply without checking what it says."""
    fields = read_fields_of_any_form(clean_reply(reply), tools)
    if not fields and NO_HELP.search(reply):
        raise ParseError("That is a refusal. Write an action or a final answer.", "model_refusal")
    # An answer after an action does not count, because the observation does not exist yet.
    if {"action", "answer"} <= fields.keys() and (order := list(fields)).index("answer") < order.index("action"):
        raise ParseError("You wrote a final answer and an action. Write one of them.", "both")
    call = None
    if "action" in fields or ("input" in fields and "answer" not in fields):
        call = WrittenCall(fields.get("action", ""), fields.get("input", ""))
    answer, because = parse_answer(fields)
    yes, why = parse_replan(fields.get("replan", ""))
    return LabelledReply(
        call=call,
        answer=answer,
        because=because,
        runner_up=replace_surrogates(fields.get("runner_up", "")),
        assumptions=replace_surrogates(fields.get("assumptions", "")),
        plan=parse_plan_steps(fields.get("plan", "")),
        current=replace_surrogates(fields.get("current", "")),
        thought=replace_surrogates(fields.get("thought", "")),
        replan=yes,
        why=replace_surrogates(why),
    )


def read_labelled(value: Mapping[str, Value], tools: Sequence[str], observations: int) -> LabelledReply:
    """Read a labelled reply from a JSON object. Its keys are action and action_input, or final_answer and because.

    >>> read_labelled({"thought": "look", "action": "sql", "action_input": "SELECT 1"}, ["sql"], 0).call
    WrittenCall(tool='sql', input='SELECT 1')
    >>> read_labelled({"plan": ["Step 1: look"], "action": "sql", "action_input": "SELECT 1"}, ["sql"], 0).plan
    ('look',)
    """
    return check_labelled(read_labelled_object(value), tools, observations)


def read_labelled_object(value: Mapping[str, Value]) -> LabelledReply:
    """Read a JSON object as a labelled reply without checking what it says."""
    written: LabelledReply = read_dataclass(LabelledReply, flatten_action(value))
    written = replace(written, plan=tuple(text for step in written.plan for text in parse_plan_steps(step)))
    if written.answer is None:
        return written
    answer, because = parse_answer({"answer": written.answer, "because": written.because})
    return replace(written, answer=answer, because=because)


def check_labelled(
    reply: LabelledReply, tools: Sequence[str], observations: int, any_tool: bool = False
) -> LabelledReply:
    """Check a labelled reply and return it with the tool's exact name and a cleaned input.

    ``any_tool``: take the name of a tool that does not exist as it is.

    Raises:
        ParseError: as ``parse_labelled``.
    """
    call = reply.call
    if call:
        for value, label in ((call.tool, "Action"), (call.input, "Action input")):
            if not value:
                raise ParseError(f"{label} is missing.", "missing_field")
            refuse_copies(label, value)
        query = check_query_characters(read_labelled_input(call.input))
        try:
            tool = match_tool(call.tool, tools)
        except ParseError as error:
            if not any_tool or error.reason != "unknown_tool":
                raise
            tool = call.tool.strip(MARKS)
        call = WrittenCall(tool, query)
    if reply.plan:
        refuse_copies("Plan", reply.plan[0])
    # The action comes first: the answer was written before its observation, so it cannot rest on it.
    if call and reply.answer is not None:
        reply = replace(reply, answer=None, because="")
    if reply.answer is not None and not reply.answer:
        raise ParseError("Your final answer is empty.", "missing_field")
    if reply.answer is not None and not observations:
        raise ParseError("There is no observation yet: query the data before you answer.", "no_evidence")
    if not call and reply.answer is None:
        raise ParseError("Write an Action with its Action input, or a Final answer.", "missing_field")
    # "Yes" without a new plan: the old plan stays, which is cheaper than another call.
    if reply.replan and not reply.plan:
        reply = replace(reply, replan=False)
    return replace(reply, call=call)


def read_fields_of_any_form(text: str, tools: Sequence[str]) -> dict[str, str]:
    """Map labels to their values. Without an action or answer label, read the other forms of a reply."""
    fields = read_fields(text)
    # ``Action: sql[SELECT 1]``, as in the prompts of the ReAct paper.
    if "action" in fields and not fields.get("input") and (call := CALL.fullmatch(fields["action"])):
        head = call["tool"].casefold()
        if head in (tool.casefold() for tool in tools):
            return {**fields, "action": call["tool"], "input": extract_call_input(call)}
    name = re.sub(r"\W+", "_", fields.get("action", "")).strip("_").casefold()
    is_tool = name in {tool.casefold() for tool in tools}
    if name in ("final_answer", "answer", "finish") and not is_tool and fields.get("input"):
        return {**{name: value for name, value in fields.items() if name != "action"}, "answer": fields["input"]}
    if query := find_lone_query(fields.get("action") or "-", tools):
        return {**fields, "action": query[0], "input": fields.get("input") or query[1]}
    if "action" in fields or "answer" in fields:
        return fields
    # What follows an observation that the LLM made up rests on nothing, so no form is looked for there.
    before = text[: start.start()] if (start := OBSERVATION.search(text)) else text
    if (lines := ON_ONE_LINE.sub("\n", before)) != before and "input" not in fields:
        spread = read_fields(lines)
        if "action" in spread or "answer" in spread:
            return spread
    return {**fields, **read_unlabelled_fields(before, tools)}


def read_fields(text: str) -> dict[str, str]:
    """Read the values by label, up to the first ``Observation:``.

    Action, input, answer and replan may be repeated with the same value only.
    """
    values_by_name: dict[str, list[str]] = {}
    order: list[str] = []
    labels = list(LABEL.finditer(text))
    for number, label in enumerate(labels):
        name = PLAIN_NAMES[re.sub(r"[ _]", "", label["name"].casefold())]
        if name == "observation":
            break
        end = labels[number + 1].start() if number + 1 < len(labels) else len(text)
        value = text[label.end() : end].strip()
        # Bold that began before the label ends with the value.
        if label["mark"].strip("->_ ") and value.endswith("**"):
            value = value.strip("* ")
        values_by_name.setdefault(name, []).append(value)
        order.append(name)
    return {name: merge_label_values(name, values, values_by_name) for name, values in values_by_name.items()}


def merge_label_values(name: str, values: list[str], all_values: dict[str, list[str]]) -> str:
    if len(values) == 1:
        return values[0]
    if name not in ONE_VALUED:
        # The last plan counts, as a correction of those before it.
        return "\n".join(values) if name != "plan" else values[-1]
    if len(set(values)) == 1 and not (len(all_values.get("action", ())) > 1 and len(all_values.get("input", ())) > 1):
        return values[0]
    if len(all_values.get("input", ())) > 1 and len(all_values.get("action", ())) > 1:
        raise ParseError("You wrote several actions. Write one, then wait for its observation.", "multiple_actions")
    raise ParseError(f"You wrote {name} twice, with different values.", "duplicate_key")


def read_labelled_input(text: str) -> str:
    """Return a query without its fence or quotes; ``{"query": "..."}`` is unwrapped.

    >>> (read_labelled_input('{"sql": "SELECT 1"}'), read_labelled_input('{"city": "Rome"}'),
    ...     read_labelled_input('"SELECT 1"'))
    ('SELECT 1', '{"city": "Rome"}', 'SELECT 1')
    >>> read_labelled_input("{}")
    '{}'

    Raises:
        ParseError: it is blank, or a place to fill in.
    """
    bare = strip_fence(text)
    if BLANK.fullmatch(bare) and not NO_ARGUMENTS.fullmatch(bare):
        raise ParseError("Action input is missing.", "missing_field")
    # Only a query loses its quotes: of another input they may be a part.
    if START.match(inside := strip_quotes(bare)):
        return inside
    if bare.startswith("{") and bare.endswith("}") and len(bare) < MAX_CHARS:
        return extract_input_text(bare)
    return bare


def parse_answer(fields: dict[str, str]) -> tuple[str | None, str]:
    """Parse an answer into the name on its first line and the text that supports it.

    A name of only marks and record citations becomes empty; a cited observation alone means its table.

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
    if not re.search(r"[^\W_]", without_citations(bare)):
        tables = [name for name in find_citations(bare) if "." not in name]
        bare = f"Table {', '.join(tables)} [{', '.join(tables)}]" if tables else ""
    return replace_surrogates(bare), replace_surrogates(because)


def parse_plan_steps(text: str) -> tuple[str, ...]:
    """Parse the steps of a written plan.

    >>> parse_plan_steps("[Step 1: find the suppliers, Step 2: compare them]")
    ('find the suppliers', 'compare them')
    >>> parse_plan_steps("1. find\\n2. compare")
    ('find', 'compare')
    """
    bare = replace_surrogates(text).strip().strip("[]").strip()
    if not bare:
        return ()
    # Commas do not separate steps, because steps hold commas: the labels do.
    parts = re.split(r"(?:^|[\s,;\[])(?:\*\*)?Step\s+\d+\s*[:.)](?:\*\*)?", bare, flags=re.I)
    if len(parts) == 1:
        parts = re.split(r"(?:^|\n)\s*(?:\d{1,3}[.)]|[-*])\s+", bare)
    steps = [re.sub(r"\s+", " ", part).strip().rstrip(",;]").strip() for part in parts]
    return tuple(step for step in steps if step)


def parse_replan(text: str) -> tuple[bool | None, str]:
    """Parse whether to replan, and the reason. None if the text does not begin with yes or no.

    >>> parse_replan("Y, the goods have no suppliers")
    (True, 'the goods have no suppliers')
    """
    if not text:
        return None, ""
    yes_or_no = re.match(r"\W*(yes|no|y|n)\b[\s,.:;\u2013\u2014-]*", text, re.I)
    if not yes_or_no:
        return None, text.strip()
    return yes_or_no[1].casefold().startswith("y"), text[yes_or_no.end() :].strip().strip("[]")


GIVE_UP = "give_up"
MARKS = "`*'\"[] \t"


def parse_move(reply: str, tools: Sequence[str]) -> LabelledReply:
    """Parse the next move of a search: a call or an answer. Giving up is an empty answer.

    >>> parse_move("Action: click[Buy Now]", ["click"]).call
    WrittenCall(tool='click', input='Buy Now')
    >>> parse_move("Action: give up\\nAction input: 24 is out of reach", ["combine"]).answer
    ''

    Raises:
        ParseError: there is no move, or more than one.
    """
    return check_move(read_labelled_text(reply, tools), tools)


def read_move(value: Mapping[str, Value], tools: Sequence[str]) -> LabelledReply:
    """Read a move from a JSON object. Its keys are action and action_input, or final_answer and because."""
    return check_move(read_labelled_object(value), tools)


def check_move(reply: LabelledReply, tools: Sequence[str]) -> LabelledReply:
    if reply.call and GIVE_UP not in tools and re.sub(r"[ -]", "_", reply.call.tool.strip(MARKS)).casefold() == GIVE_UP:
        return LabelledReply(answer="", because=replace_surrogates(reply.call.input), thought=reply.thought)
    return check_labelled(reply, tools, 1, any_tool=True)


NO_LETTERS = re.compile(r"[\W\d_]+")
LEAST = 10
"""Letters that a text of the form must have to count as copied."""


def refuse_form_text(value: object, form: Form[object]) -> None:
    """Raise ParseError (copied) if an input or answer repeats the form.

    A plan is refused if it has at least two parts and all of them do.
    """
    texts: tuple[str, ...] = ()  # A word alone is none of them: to choose what a form offers is no copy.
    match value:
        case LabelledReply(call=call, answer=answer):
            texts = (call.input if call else "", answer or "")
        case Decision(answer=answer):
            texts = (answer,)
        case PlanGraph(parts=parts):
            texts = tuple(part.query for part in parts)
    form_text = " ".join([form.text, *(words for shape in form.shapes for words in shape.says.values())])
    copies = [
        len(letters := keep_letters(text)) >= LEAST
        and letters in letters_of_form(form_text)
        # A text with a number that the form lacks is the LLM's own.
        and set(re.findall(r"\d+", text)) <= set(re.findall(r"\d+", form_text))
        for text in texts
    ]
    if (all(copies) and len(copies) > 1) if isinstance(value, PlanGraph) else any(copies):
        raise ParseError("You copied the text of the form. Write your own in its place.", "copied")


def read_thought(reply: str) -> str:
    """Read the thought of a reply that acts or answers, in labels, as an object or as a call; '' if it has none.

    >>> read_thought("Thought: look\\nAction: sql\\nAction input: SELECT 1")
    'look'
    >>> read_thought('{"reply": {"thought": "look", "action": "sql", "action_input": "SELECT 1"}}')
    'look'
    >>> read_thought('{"name": "sql", "arguments": {"thought": "look", "input": "SELECT 1"}}')
    'look'
    >>> read_thought('{"thought": "A has more.", "better": "A"}')
    ''
    """
    try:
        value: Value = read_json_reply(reply)
        if value is None:
            return read_fields(clean_reply(reply)).get("thought", "").partition("\n")[0]
    except ParseError:
        return ""
    for key in ("reply", "arguments"):
        if isinstance(value, Mapping) and isinstance(inner := value.get(key), Mapping):
            value = {"action": value.get("name")} | dict(inner)
    is_move = isinstance(value, Mapping) and {"action", "final_answer"} & value.keys()
    return str(value.get("thought") or "") if is_move and isinstance(value, Mapping) else ""


def get_reply_answer(value: object) -> str:
    """Return the final answer that a reply gives, or an empty string."""
    match value:
        case LabelledReply(answer=answer) | Decision(answer=answer):
            return answer or ""
    return ""


def keep_letters(text: str) -> str:
    """Return the letters of a text in lower case, without blanks, digits and marks.

    >>> keep_letters("The name, or id")
    'thenameorid'
    """
    return NO_LETTERS.sub("", text.casefold())


letters_of_form = lru_cache(maxsize=64)(keep_letters)
