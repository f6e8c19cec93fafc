"""The form of a reply: how it is asked for and read as labelled text, as a JSON object and as a function call.

All three ways give the same value. Text and object are read into one dataclass, the schema is derived from it, and a
function call is an object that names its function. ``ReplyShape`` describes one object that a reply may be.
``fill_in_form`` shows the form filled in with the tools at hand, for a complaint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, make_dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from decisor.errors import ParseError
from decisor.parsing.cleaning import (
    EXAMPLE_ANSWER,
    EXAMPLE_INPUTS,
    EXAMPLE_PLAN,
    clean_reply,
    replace_surrogates,
    strip_fence,
)
from decisor.parsing.lenient_json import read_json_value
from decisor.parsing.prompting import Way, apply_wording_to_parts
from decisor.system.settings import drop_none_type
from decisor.types import Decision, Function, Objection, Pitfall, Value

YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
NAMES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number"}
NONE: Mapping[str, Sequence[str]] = MappingProxyType({})
Size: TypeAlias = tuple[int, int]
TEXT, LIST = (0, 300), (0, 8)
"""Letters and items, least and most: a model that repeats itself is brought to an end within the cap on its reply."""
ANY_LENGTH = ("action_input", "query")
"""Keys without a most: the cap on the reply alone ends them. One query that computes every candidate has had 2,362
letters, and some versions of llama.cpp refuse a schema with a most above 2,000."""
SIZES: Mapping[str, Size] = {
    "thought": (0, 600),
    "because": (0, 600),
    "action": (1, 80),
    "final_answer": (1, 1_500),
    "answer": (1, 400),
    "ask": (1, 300),
    "lesson": (1, 1_000),
    "question": (1, 600),
    "follow_up": (1, 300),
    "sentence": (1, 500),
    "search": (1, 200),
    "quote": (0, 500),
    "rating": (0, 10),
    "current_step": (0, 150),
    "why": (0, 200),
    "item": (0, 150),
}


@dataclass(frozen=True)
class ReplyShape:
    """One JSON object that a reply may be."""

    says: Mapping[str, str]
    """Description of each key, in the order of writing."""
    name: str = "reply"
    """Name of the function that gives the object."""
    when: str = ""
    """In which case it is written."""
    enums: Mapping[str, Sequence[str]] = field(default_factory=lambda: NONE)
    """All allowed values of a key."""
    sizes: Mapping[str, Size] = field(default_factory=dict)
    """Minimum and maximum letters or items of a key, where they differ from the usual ones."""


@cache
def list_dataclass_keys(kind: type) -> Mapping[str, tuple[Field[object], type | None, Any]]:
    """Map each key to its field, the nested dataclass that holds it or None, and its type.

    A nested dataclass is no key itself, but its fields are. Metadata ``key`` overrides the field's name.
    """
    slots: dict[str, tuple[Field[object], type | None, Any]] = {}
    hints = get_type_hints(kind)
    for one in fields(kind):
        type_ = drop_none_type(hints[one.name])
        if is_dataclass(type_) and isinstance(type_, type):
            slots |= {key: (one, type_, inner) for key, (_, _, inner) in list_dataclass_keys(type_).items()}
        else:
            slots[one.metadata.get("key", one.name)] = (one, None, type_)
    return slots


def build_object_schema(kind: type, shape: ReplyShape) -> dict[str, Any]:
    """Build the JSON schema of one object: closed, every key required, in the order of ``shape``.

    >>> from decisor.parsing.labelled import LabelledReply
    >>> build_object_schema(LabelledReply,
    ...     ReplyShape({"thought": "what you know", "final_answer": "the name"}))["required"]
    ['thought', 'final_answer']
    """
    types = list_dataclass_keys(kind)
    # Without descriptions: the prompt has the words, and a schema is not shown to the LLM by every endpoint.
    return build_closed_schema({key: build_key_schema(types[key][2], key, shape) for key in shape.says})


def build_closed_schema(properties: Mapping[str, object]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def build_key_schema(type_: Any, key: str, shape: ReplyShape) -> dict[str, Any]:
    """Build the JSON schema of one key. The items of a list have the usual sizes."""
    if key in shape.enums:
        return {"type": "string", "enum": list(shape.enums[key])}
    if get_origin(type_) is Literal:
        return {"type": "string", "enum": list(get_args(type_))}
    least, most = shape.sizes.get(key) or SIZES.get(key) or (LIST if get_origin(type_) is tuple else TEXT)
    if get_origin(type_) is tuple:
        (item, *_) = get_args(type_)
        if is_dataclass(item) and isinstance(item, type):
            says = {name: one.metadata.get("says", name) for name, (one, _, _) in list_dataclass_keys(item).items()}
            items = build_object_schema(item, replace(shape, says=says))
        else:
            items = build_key_schema(item, "item", shape)
        return {"type": "array", "items": items, **({"minItems": least} if least else {}), "maxItems": most}
    if type_ is str:
        if key in ANY_LENGTH:
            return {"type": "string", "minLength": 1}
        return {"type": "string", **({"minLength": least} if least else {}), "maxLength": most}
    return {"type": NAMES[type_], **({"minimum": least, "maximum": most} if key in SIZES else {})}


def read_dataclass(kind: type, value: Mapping[str, Value]) -> Any:
    """Read a JSON object as a dataclass. Keys may have any case, spaces or hyphens; unknown keys are ignored.

    Raises:
        ParseError: a key without a default is missing, or its value does not fit.
    """
    by_key = {re.sub(r"[\s-]+", "_", key.strip()).casefold(): one for key, one in value.items()}
    whole: dict[str, object] = {}
    parts: dict[str, dict[str, object]] = {}
    for key, (one, inner, type_) in list_dataclass_keys(kind).items():
        if by_key.get(key) is not None:
            read = read_value_as(type_, by_key[key], key)
            if inner is None:
                whole[one.name] = read
            else:
                parts.setdefault(one.name, {})[next(f.name for f in fields(inner) if read_key_name(f) == key)] = read
        elif inner is None and one.default is MISSING and one.default_factory is MISSING:
            raise ParseError(f"{key} is missing.", "missing_field")
    hints = get_type_hints(kind)
    # A nested dataclass is built only if one of its keys was written.
    for name, values in parts.items():
        part = drop_none_type(hints[name])
        if missing := [read_key_name(f) for f in fields(part) if f.name not in values and f.default is MISSING]:
            raise ParseError(f"{missing[0]} is missing.", "missing_field")
        whole[name] = part(**values)
    return kind(**whole)


def read_key_name(one: Field[object]) -> str:
    return str(one.metadata.get("key", one.name))


def read_value_as(type_: Any, value: Value, key: str) -> Any:
    """Read a JSON value as a type; raise ParseError if it does not fit.

    >>> (read_value_as(str, {"city": "Lyon"}, "action_input"),
    ...     read_value_as(bool, "Yes", "replan"), read_value_as(float, "7", "rating"))
    ('{"city": "Lyon"}', True, 7.0)
    """
    if type_ is str:
        return replace_surrogates(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).strip()
    if type_ is bool and isinstance(value, bool | str):
        if isinstance(value, bool):
            return value
        if (word := value.strip().casefold()) in YES:
            return YES[word]
    if type_ in (int, float) and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return type_(value)
        except (ValueError, OverflowError):
            pass
    if get_origin(type_) is tuple:
        (item, *_) = get_args(type_)
        values = value if isinstance(value, list | tuple) else [value]
        if is_dataclass(item) and isinstance(item, type):
            return tuple(read_dataclass(item, one) for one in values if isinstance(one, Mapping))
        return tuple(one for one in (read_value_as(item, one, key) for one in values) if one != "")
    if get_origin(type_) is Literal and isinstance(value, str):
        match = [word for word in get_args(type_) if word.casefold() == value.strip().casefold()]
        if match:
            return match[0]
    raise ParseError(f"{key} does not fit: {json.dumps(value, ensure_ascii=False)[:80]}", "shape")


T = TypeVar("T", covariant=True)
V = TypeVar("V")


def list_decision_objections(value: object) -> Sequence[Objection | Pitfall]:
    """Return the objections to a decision; empty for any other value."""
    return value.evidence.objections if isinstance(value, Decision) else ()


UNION = "reply"
"""The key under which one of several objects stands: a schema is an object at its root."""
TAGS = re.compile(r"^\s*<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>\s*)?$", re.S)


@dataclass(frozen=True)
class Form(Generic[T]):
    """One kind of reply: how to ask for it and how to read it."""

    name: str
    text: str
    """How labelled text is asked for."""
    read_text: Callable[[str], T]
    """Reads labelled text, or raises ParseError."""
    kind: type = str
    """The dataclass that ``shapes`` are of."""
    shapes: tuple[ReplyShape, ...] = ()
    read_object: Callable[[Mapping[str, Value]], T] | None = None
    """Reads an object, or raises ParseError; None means that objects are read as text."""
    now: tuple[ReplyShape, ...] = ()
    """Those of ``shapes`` that fit at this step; all of them if empty. Text tells of all at any step, in its order."""
    objections: Callable[[Any], Sequence[Objection | Pitfall]] = list_decision_objections
    """Statements of a value that its rows do not support; they go back to the LLM once."""

    def read(self, reply: str) -> T:
        """Read a reply written in any way, whichever was asked for.

        Raises:
            ParseError: it cannot be read.
        """
        # In whichever way it was asked: an LLM that was asked for text may write JSON, and the other way round.
        if self.read_object is not None and (value := read_json_reply(reply)) is not None:
            return self.read_object(self.plain(value))
        return self.read_text(reply)

    def plain(self, value: Mapping[str, Value]) -> Mapping[str, Value]:
        """Unwrap an object: the key of a union, a function call."""
        if len(value) == 1 and isinstance(inner := value.get(UNION), Mapping):
            value = inner
        return convert_function_call(value, self.shapes)

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema with an object at its root, as every endpoint accepts it."""
        schemas = [build_object_schema(self.kind, shape) for shape in self.now or self.shapes]
        one = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        # OpenAI refuses a strict schema with anyOf at its root, so a union is wrapped in an object.
        return build_closed_schema({UNION: one}) if len(self.shapes) > 1 else one

    def functions(self) -> tuple[Function, ...]:
        return tuple(one for shape in self.now or self.shapes for one in build_shape_functions(self.kind, shape))

    def wording(self, way: Way) -> str:
        """Return the text of the prompt about this form."""
        if way == "text" or not self.shapes:
            return apply_wording_to_parts(self.text)
        shapes = self.now or self.shapes
        if way == "tools":
            return "Call one function, and write nothing else.\n" + "\n".join(
                describe_functions(shape) for shape in shapes
            )
        if len(self.shapes) == 1:
            return f"One JSON object and nothing else, with the keys\n{describe_keys(self.kind, shapes[0])}"
        keys = "\n".join(f"{shape.when}\n{describe_keys(self.kind, shape)}" for shape in shapes)
        return f'One JSON object and nothing else: {{"{UNION}": {{...}}}}, where {{...}} has these keys.\n{keys}'


def build_value_form(
    name: str,
    text: str,
    says: Mapping[str, str],
    read_text: Callable[[str], V],
    read_value: Callable[[Any], V],
    kind: object = str,
) -> Form[V]:
    """Build the form of a reply with one value, the last key of ``says``.

    Keys before it let a model think first; nothing reads them. ``kind``: type of the value in an object.
    """
    *before, key = says
    reply = make_dataclass("Reply", [(key, kind), *((earlier, str, "") for earlier in before)])

    def read_object(value: Mapping[str, Value]) -> V:
        return read_value(getattr(read_dataclass(reply, value), key))

    return Form(name, text, read_text, reply, (ReplyShape(says),), read_object)


def describe_keys(kind: type, shape: ReplyShape) -> str:
    return "".join(
        f'"{key}": {words}{describe_allowed_values(kind, shape, key)}\n' for key, words in shape.says.items()
    )


def describe_functions(shape: ReplyShape) -> str:
    """Describe the functions of a shape in words, with their parameters once for all of them."""
    names = [normalize_function_name(name) for name in shape.enums.get("action", [shape.name])]
    says = {"input" if key == "action_input" else key: words for key, words in shape.says.items() if key != "action"}
    parameters = "".join(f'"{key}": {words}\n' for key, words in says.items())
    return f"{shape.when or 'To reply:'} {', '.join(names)}, with\n{parameters}"


def describe_allowed_values(kind: type, shape: ReplyShape, key: str) -> str:
    """Describe the values that a key may have. Empty for a text."""
    type_ = list_dataclass_keys(kind)[key][2]
    if words := shape.enums.get(key) or (get_args(type_) if get_origin(type_) is Literal else ()):
        return f" ({', '.join(words)})"
    return {"boolean": " (true or false)", "array": " (a list)"}.get(build_key_schema(type_, key, shape)["type"], "")


def build_shape_functions(kind: type, shape: ReplyShape) -> list[Function]:
    """Return the functions of a shape: one, or for an action one per tool with its input as one text."""
    schema = build_object_schema(kind, shape)
    if "action" not in shape.enums:
        return [Function(normalize_function_name(shape.name), shape.when.rstrip(":") or "Give the reply.", schema)]
    properties = {
        "input" if key == "action_input" else key: one for key, one in schema["properties"].items() if key != "action"
    }
    return [
        Function(
            normalize_function_name(tool),
            f"Give {tool} its input, as the prompt says.",
            build_closed_schema(properties),
        )
        for tool in shape.enums["action"]
    ]


def normalize_function_name(tool: str) -> str:
    """Return a function name that every provider accepts.

    >>> normalize_function_name("plants/list all")
    'plants_list_all'
    """
    # OpenAI's rule for function names: letters, digits, _ and -, at most 64.
    return re.sub(r"[^A-Za-z0-9_-]", "_", tool)[:64] or "_"


def is_json_reply(reply: str) -> bool:
    """Return whether a reply is meant as a JSON object, readable or not."""
    try:
        return read_json_reply(reply) is not None
    except ParseError:
        return True


def read_json_reply(reply: str) -> Mapping[str, Value] | None:
    """Read the JSON object of a reply, with or without a fence or tags around it. None if the reply is no object."""
    text = strip_fence(clean_reply(reply))
    if tags := TAGS.match(text):
        text = tags[2]
    if not text.startswith("{"):
        return None
    value = read_json_value(text)
    return value if isinstance(value, Mapping) else None


def convert_function_call(value: Mapping[str, Value], shapes: tuple[ReplyShape, ...]) -> Mapping[str, Value]:
    """Convert a function call to the object that it stands for; return any other object unchanged.

    >>> convert_function_call({"name": "sql", "arguments": {"input": "SELECT 1"}},
    ...     (ReplyShape({}, enums={"action": ["sql"]}),))
    {'action': 'sql', 'action_input': 'SELECT 1'}
    """
    calls = value.get("tool_calls")
    if isinstance(calls, list) and calls and isinstance(calls[0], Mapping):
        if len(calls) > 1:
            raise ParseError(
                "You called several functions. Call one, then wait for its observation.", "multiple_actions"
            )
        value = {**{key: one for key, one in value.items() if key != "tool_calls"}, **calls[0]}
    if isinstance(inner := value.get("function"), Mapping):
        value = {**value, **inner}
    name, arguments = value.get("name"), value.get("arguments", value.get("parameters"))
    if not isinstance(name, str) or arguments is None:
        return value
    # OpenAI sends the arguments of a call as a text that holds JSON.
    if isinstance(arguments, str):
        read = read_json_value(arguments) if arguments.strip().startswith("{") else {"input": arguments}
        arguments = read if isinstance(read, Mapping) else {"input": arguments}
    if not isinstance(arguments, Mapping):
        raise ParseError("arguments is an object.", "shape")
    before = {"thought": value["thought"]} if value.get("thought") else {}
    if any(name == normalize_function_name(shape.name) for shape in shapes if "action" not in shape.enums):
        return {**before, **arguments}
    keys = {key for shape in shapes for key in shape.says}
    own = {key: one for key, one in arguments.items() if key in keys}
    rest = {key: one for key, one in arguments.items() if key not in keys}
    # A tool of several parameters gets them as one JSON text, as its input.
    text = rest["input"] if set(rest) == {"input"} else rest
    names = [
        tool for shape in shapes for tool in shape.enums.get("action", ()) if normalize_function_name(tool) == name
    ]
    return {**before, **own, "action": names[0] if names else name, "action_input": text}


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


def fill_in_form(form: Form[object], way: Way, tools: Mapping[str, str], description: str, reason: str) -> str:
    """Fill in a form with an example for the tools at hand.

    Without a fitting example return the text of the form; empty if a function is to be called.

    ``tools``: each with what it speaks (sql, cypher, passages), ``description``: their text in a prompt.
    """
    if way == "tools":
        return ""
    answers = reason in OF_ANSWERS
    chosen = next((one for one in (*form.now, *form.shapes) if ("final_answer" in one.says) == answers), None)
    if chosen is None or not set(chosen.says) <= {*VALUES, "action", "action_input"}:
        return "" if way == "json" else form.text
    tool = next(iter(chosen.enums.get("action", ())), "")
    action_input = EXAMPLE_INPUTS.get(tools.get(tool, tool)) or extract_example(tool, description)
    examples: Mapping[str, Value] = {**VALUES, "action": tool, "action_input": action_input}
    values = {key: examples[key] for key in chosen.says}
    if "replan" in values:
        values["plan"] = []  # not to replan is the likelier
    if answers:
        values["thought"] = "Its price is the lowest."
    if reason == "no_citation":
        values["because"] = "its price is the lowest [the id of a record that you were shown]"
    if way == "json":
        return json.dumps({UNION: values} if len(form.shapes) > 1 else values, ensure_ascii=False)
    if values.get("plan"):
        values["plan"] = f"[{', '.join(f'Step {number}: {step}' for number, step in enumerate(EXAMPLE_PLAN, 1))}]"
    labelled = {LABELS[key]: value for key, value in values.items() if key in LABELS and value != []}
    return "\n".join(f"{label}: {'N' if value is False else value}" for label, value in labelled.items())


def extract_example(tool: str, description: str) -> str:
    """Return an example input that the description of a tool mentions.

    >>> extract_example("combine", "### Tool: combine\\nTwo numbers and what to do with them, such as 10 - 4.")
    '10 - 4'
    """
    part = description.partition(f"### Tool: {tool}\n")[2].partition("\n### Tool: ")[0]
    example = SUCH_AS.search(part)
    return example[1].strip() if example else "(the input that its description asks for)"
