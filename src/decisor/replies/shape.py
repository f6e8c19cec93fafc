"""JSON objects from and to the dataclasses that replies are read into: the schema that an LM is held to, and the object
that it wrote as a value of the dataclass."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from decisor.errors import ParseError
from decisor.replies.cleaning import replace_surrogates
from decisor.settings import without_none
from decisor.types import Value

YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
NAMES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number"}
NONE: Mapping[str, Sequence[str]] = MappingProxyType({})
Size: TypeAlias = tuple[int, int]
TEXT, LIST = (0, 300), (0, 8)
"""Letters and items, least and most: a model that repeats itself is brought to an end within the cap on its reply."""
SIZES: Mapping[str, Size] = {
    "thought": (0, 600), "because": (0, 600), "action": (1, 80), "action_input": (1, 1_200), "query": (1, 1_200),
    "final_answer": (1, 1_500), "answer": (1, 400), "ask": (1, 300), "lesson": (1, 1_000), "question": (1, 600),
    "follow_up": (1, 300), "sentence": (1, 500), "search": (1, 200), "quote": (0, 500), "rating": (0, 10),
    "current_step": (0, 150), "why": (0, 200), "item": (0, 150),
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """One of the JSON objects that a reply may be: some keys of a dataclass in the order in which they are written,
    each with what it says. ``name``: of the function that gives it. ``when`` it is written. ``enums``: all that a key
    may say. ``sizes``: of how many letters or items a key has at least and at most, where that is not the usual."""

    says: Mapping[str, str]
    name: str = "reply"
    when: str = ""
    enums: Mapping[str, Sequence[str]] = field(default_factory=lambda: NONE)
    sizes: Mapping[str, Size] = field(default_factory=dict)


@cache
def slots_of(kind: type) -> Mapping[str, tuple[Field[object], type | None, Any]]:
    """Key -> its field, the dataclass of the field where the key is one of that, and its type. A field that is a
    dataclass itself is no key: its own fields are. Metadata ``key`` is another name than the field's."""
    slots: dict[str, tuple[Field[object], type | None, Any]] = {}
    hints = get_type_hints(kind)
    for one in fields(kind):
        type_ = without_none(hints[one.name])
        if is_dataclass(type_) and isinstance(type_, type):
            slots |= {key: (one, type_, inner) for key, (_, _, inner) in slots_of(type_).items()}
        else:
            slots[one.metadata.get("key", one.name)] = (one, None, type_)
    return slots


def schema_of(kind: type, shape: Shape) -> dict[str, Any]:
    """The JSON schema of one object: closed, every key required, in the order of ``shape``.

    >>> from decisor.replies.labelled import LabelledReply
    >>> schema_of(LabelledReply, Shape({"thought": "what you know", "final_answer": "the name"}))["required"]
    ['thought', 'final_answer']
    """
    types = slots_of(kind)
    properties = {
        key: {**type_schema(types[key][2], key, shape), "description": words} for key, words in shape.says.items()
    }
    return closed(properties)


def closed(properties: Mapping[str, object]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def type_schema(type_: Any, key: str, shape: Shape) -> dict[str, Any]:
    """Of one key; the items of a list are of the usual size."""
    if key in shape.enums:
        return {"type": "string", "enum": list(shape.enums[key])}
    if get_origin(type_) is Literal:
        return {"type": "string", "enum": list(get_args(type_))}
    least, most = shape.sizes.get(key) or SIZES.get(key) or (LIST if get_origin(type_) is tuple else TEXT)
    if get_origin(type_) is tuple:
        (item, *_) = get_args(type_)
        if is_dataclass(item) and isinstance(item, type):
            says = {name: one.metadata.get("says", name) for name, (one, _, _) in slots_of(item).items()}
            items = schema_of(item, replace(shape, says=says))
        else:
            items = type_schema(item, "item", shape)
        return {"type": "array", "items": items, "minItems": least, "maxItems": most}
    if type_ is str:
        return {"type": "string", "minLength": least, "maxLength": most}
    return {"type": NAMES[type_], **({"minimum": least, "maximum": most} if key in SIZES else {})}


def read_object(kind: type, value: Mapping[str, Value]) -> Any:
    """``value`` as a ``kind``, keys in any case and with spaces or hyphens; what ``kind`` does not know is left out.

    Raises:
        ParseError: a key without a default is missing, or its value does not fit.
    """
    by_key = {re.sub(r"[\s-]+", "_", key.strip()).casefold(): one for key, one in value.items()}
    whole: dict[str, object] = {}
    parts: dict[str, dict[str, object]] = {}
    for key, (one, inner, type_) in slots_of(kind).items():
        if by_key.get(key) is not None:
            read = read_as(type_, by_key[key], key)
            if inner is None:
                whole[one.name] = read
            else:
                parts.setdefault(one.name, {})[next(f.name for f in fields(inner) if key_of(f) == key)] = read
        elif inner is None and one.default is MISSING and one.default_factory is MISSING:
            raise ParseError(f"{key} is missing.", "missing_field")
    hints = get_type_hints(kind)
    for name, values in parts.items():
        part = without_none(hints[name])
        if missing := [key_of(f) for f in fields(part) if f.name not in values and f.default is MISSING]:
            raise ParseError(f"{missing[0]} is missing.", "missing_field")
        whole[name] = part(**values)
    return kind(**whole)


def key_of(one: Field[object]) -> str:
    return str(one.metadata.get("key", one.name))


def read_as(type_: Any, value: Value, key: str) -> Any:
    """
    >>> read_as(str, {"city": "Lyon"}, "action_input"), read_as(bool, "Yes", "replan"), read_as(float, "7", "rating")
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
            return tuple(read_object(item, one) for one in values if isinstance(one, Mapping))
        return tuple(one for one in (read_as(item, one, key) for one in values) if one != "")
    if get_origin(type_) is Literal and isinstance(value, str):
        match = [word for word in get_args(type_) if word.casefold() == value.strip().casefold()]
        if match:
            return match[0]
    raise ParseError(f"{key} does not fit: {json.dumps(value, ensure_ascii=False)[:80]}", "shape")
