"""A kind of reply: how it is asked for and how it is read, as labelled text, as a JSON object, and as a function call.

All three ways give the same value: text and object are read into one dataclass, the schema is derived from it, and a
call of a function is an object that says which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from decisor.asking import parts_worded
from decisor.calling import Way
from decisor.errors import ParseError
from decisor.replies.cleaning import clean, strip_fence
from decisor.replies.lenient_json import read_one
from decisor.replies.shape import Shape, closed, schema_of, slots_of, type_schema
from decisor.types import Decision, Function, Objection, Value

T = TypeVar("T", covariant=True)


def objections_of(value: object) -> Sequence[Objection]:
    """What does not stand on its rows, where the value is a decision."""
    return value.evidence.objections if isinstance(value, Decision) else ()


UNION = "reply"
"""The key under which one of several objects stands: a schema is an object at its root."""
TAGS = re.compile(r"^\s*<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>\s*)?$", re.S)


@dataclass(frozen=True)
class Form(Generic[T]):
    """One kind of reply.

    ``text``: how labelled text is asked for. ``read_text`` reads it, or raises ParseError. ``kind``: the dataclass that
    ``shapes`` are of; ``read_object`` reads one of them, or raises ParseError. Without it objects are texts too.
    ``now``: what of ``shapes`` fits at this step; a prompt tells of all, so that prompts of one run begin alike.
    ``objections``: what in the value of a reply does not stand on its rows; it goes back to the model once.
    """

    name: str
    text: str
    read_text: Callable[[str], T]
    kind: type = str
    shapes: tuple[Shape, ...] = ()
    read_object: Callable[[Mapping[str, Value]], T] | None = None
    now: tuple[Shape, ...] = ()
    objections: Callable[[Any], Sequence[Objection]] = objections_of

    def read(self, reply: str) -> T:
        """A reply in any way, whatever was asked for.

        Raises:
            ParseError: it cannot be read.
        """
        if self.read_object is not None and (value := object_in(reply)) is not None:
            return self.read_object(self.plain(value))
        return self.read_text(reply)

    def plain(self, value: Mapping[str, Value]) -> Mapping[str, Value]:
        """An object without what is around it: the key of a union, a call of a function."""
        if len(value) == 1 and isinstance(inner := value.get(UNION), Mapping):
            value = inner
        return object_of_call(value, self.shapes)

    def schema(self) -> dict[str, Any]:
        """An object at its root, as every endpoint takes it."""
        schemas = [schema_of(self.kind, shape) for shape in self.now or self.shapes]
        one = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        return closed({UNION: one}) if len(self.shapes) > 1 else one

    def functions(self) -> tuple[Function, ...]:
        return tuple(one for shape in self.now or self.shapes for one in functions_of(self.kind, shape))

    def wording(self, way: Way) -> str:
        """What a prompt says of the form."""
        if way == "text" or not self.shapes:
            return parts_worded(self.text)
        if way == "tools":
            return "".join(["Call one function, and write nothing else.\n", *map(show_functions, self.shapes)])
        if len(self.shapes) == 1:
            return f"One JSON object and nothing else, with the keys\n{show_keys(self.kind, self.shapes[0])}"
        shapes = "\n".join(f"{shape.when}\n{show_keys(self.kind, shape)}" for shape in self.shapes)
        return f'One JSON object and nothing else: {{"{UNION}": {{...}}}}, where {{...}} has these keys.\n{shapes}'


def show_keys(kind: type, shape: Shape) -> str:
    return "".join(f'"{key}": {words}{values_of(kind, shape, key)}\n' for key, words in shape.says.items())


def values_of(kind: type, shape: Shape, key: str) -> str:
    """What a key may hold, where that is no text."""
    type_ = slots_of(kind)[key][2]
    if words := shape.enums.get(key) or (get_args(type_) if get_origin(type_) is Literal else ()):
        return f" ({', '.join(words)})"
    return {"boolean": " (true or false)", "array": " (a list)"}.get(type_schema(type_, key, shape)["type"], "")


def show_functions(shape: Shape) -> str:
    """What a prompt says of the functions of one shape; what their arguments are stands in the functions."""
    names = ", ".join(shape.enums.get("action", [shape.name]))
    return f"{shape.when or 'To reply:'} {names}\n"


def functions_of(kind: type, shape: Shape) -> list[Function]:
    """One function; for an action one of each tool, with its input as one text."""
    schema = schema_of(kind, shape)
    if "action" not in shape.enums:
        return [Function(function_name(shape.name), shape.when or "Give the reply.", schema)]
    properties = {"input" if key == "action_input" else key: one
                  for key, one in schema["properties"].items() if key != "action"}  # fmt: skip
    return [Function(function_name(tool), f"The tool {tool}.", closed(properties)) for tool in shape.enums["action"]]


def function_name(tool: str) -> str:
    """A name that every provider takes.

    >>> function_name("plants/list all")
    'plants_list_all'
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", tool)[:64] or "_"


def is_object(reply: str) -> bool:
    """Whether a reply is meant as a JSON object, readable or not."""
    try:
        return object_in(reply) is not None
    except ParseError:
        return True


def object_in(reply: str) -> Mapping[str, Value] | None:
    """The JSON object that a reply is, with or without a fence or tags around it; None where it is something else."""
    text = strip_fence(clean(reply))
    if tags := TAGS.match(text):
        text = tags[2]
    if not text.startswith("{"):
        return None
    value = read_one(text, [])
    return value if isinstance(value, Mapping) else None


def object_of_call(value: Mapping[str, Value], shapes: tuple[Shape, ...]) -> Mapping[str, Value]:
    """A function call as the object that the function stands for; what is none stays as it is.

    >>> object_of_call({"name": "sql", "arguments": {"input": "SELECT 1"}}, (Shape({}, enums={"action": ["sql"]}),))
    {'action': 'sql', 'action_input': 'SELECT 1'}
    """
    calls = value.get("tool_calls")
    if isinstance(calls, list) and calls and isinstance(calls[0], Mapping):
        if len(calls) > 1:
            raise ParseError("You called several functions. Call one, then wait for its observation.",
                             "multiple_actions")  # fmt: skip
        value = {**{key: one for key, one in value.items() if key != "tool_calls"}, **calls[0]}
    if isinstance(inner := value.get("function"), Mapping):
        value = {**value, **inner}
    name, arguments = value.get("name"), value.get("arguments", value.get("parameters"))
    if not isinstance(name, str) or arguments is None:
        return value
    if isinstance(arguments, str):
        read = read_one(arguments, []) if arguments.strip().startswith("{") else {"input": arguments}
        arguments = read if isinstance(read, Mapping) else {"input": arguments}
    if not isinstance(arguments, Mapping):
        raise ParseError("arguments is an object.", "shape")
    before = {"thought": value["thought"]} if value.get("thought") else {}
    if any(name == function_name(shape.name) for shape in shapes if "action" not in shape.enums):
        return {**before, **arguments}
    keys = {key for shape in shapes for key in shape.says}
    own = {key: one for key, one in arguments.items() if key in keys}
    rest = {key: one for key, one in arguments.items() if key not in keys}
    text = rest["input"] if set(rest) == {"input"} else rest
    names = [tool for shape in shapes for tool in shape.enums.get("action", ()) if function_name(tool) == name]
    return {**before, **own, "action": names[0] if names else name, "action_input": text}
