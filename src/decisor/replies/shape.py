"""JSON objects from and to the dataclasses that replies are read into: the schema that an LM is held to, and the object
that it wrote as a value of the dataclass."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from decisor.errors import ParseError
from decisor.replies.cleaning import replace_surrogates
from decisor.settings import without_none
from decisor.types import Value

YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
NAMES: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
NONE: Mapping[str, Sequence[str]] = MappingProxyType({})
MOST_ITEMS = 12


@dataclass(frozen=True)
class Shape:
    """One of the JSON objects that a reply may be: some keys of a dataclass in the order in which they are written,
    each with what it says. ``name``: of the function that gives it. ``when`` it is written. ``enums``: all that a key
    may say."""

    says: Mapping[str, str]
    name: str = "reply"
    when: str = ""
    enums: Mapping[str, Sequence[str]] = field(default_factory=lambda: NONE)


@cache
def slots_of(kind: type) -> Mapping[str, tuple[Field[Any], type | None, Any]]:
    """Key -> its field, the dataclass of the field where the key is one of that, and its type. A field that is a
    dataclass itself is no key: its own fields are. Metadata ``key`` is another name than the field's."""
    slots: dict[str, tuple[Field[Any], type | None, Any]] = {}
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
        key: {**type_schema(types[key][2], shape.enums.get(key), shape.enums), "description": words}
        for key, words in shape.says.items()
    }
    return closed(properties)


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def type_schema(type_: Any, enum: Sequence[str] | None, enums: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    if enum is not None:
        return {"type": "string", "enum": list(enum)}
    if get_origin(type_) is Literal:
        return {"type": "string", "enum": list(get_args(type_))}
    if get_origin(type_) is tuple:
        (item, *_) = get_args(type_)
        if is_dataclass(item) and isinstance(item, type):
            says = {key: one.metadata.get("says", key) for key, (one, _, _) in slots_of(item).items()}
            return {"type": "array", "items": schema_of(item, Shape(says, enums=enums))}
        return {"type": "array", "items": type_schema(item, None, enums)}
    return {"type": NAMES[type_]}


def read_object(kind: type, value: Mapping[str, Value]) -> Any:
    """``value`` as a ``kind``, keys in any case and with spaces or hyphens; what ``kind`` does not know is left out.

    Raises:
        ParseError: a key without a default is missing, or its value does not fit.
    """
    by_key = {re.sub(r"[\s-]+", "_", key.strip()).casefold(): one for key, one in value.items()}
    whole: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
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


def key_of(one: Field[Any]) -> str:
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
