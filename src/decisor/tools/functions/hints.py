"""Type hints of a function as a JSON schema, and fitting JSON values as the Python values that the hints name."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import pathlib
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from decisor.errors import SetupError, ToolError
from decisor.tools.functions.json_schema import Misfit, Schema, fitted

SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    None: {"type": "null"}, type(None): {"type": "null"}, Any: {}, object: {}, inspect.Parameter.empty: {},
    dict: {"type": "object"}, list: {"type": "array"}, decimal.Decimal: {"type": "number"},
    datetime.date: {"type": "string", "format": "date"}, datetime.datetime: {"type": "string", "format": "date-time"},
    pathlib.Path: {"type": "string", "format": "path"},
}  # fmt: skip
LISTS = (list, tuple, set, frozenset, Sequence)
ABOUT = re.compile(r"^\s*(?::param\s+)?\*{0,2}(?P<name>\w+)\*{0,2}\s*(?:\([^)]*\))?\s*:\s*(?P<told>\S.*)$")


@dataclass(frozen=True)
class Signature:
    """``schema`` of the arguments, and their hints by name."""

    schema: Schema
    hints: Mapping[str, Any]

    def built(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ToolError where a value names no such thing (a date that does not exist)."""
        try:
            return {name: build(value, self.hints[name]) for name, value in arguments.items()}
        except (ValueError, TypeError, KeyError, ArithmeticError) as error:
            raise ToolError(f"An argument cannot be used: {error}") from error


def signature(function: Callable[..., Any]) -> Signature:
    """Raises SetupError where a hint cannot be read from JSON, or an argument can only be given by position."""
    name = getattr(function, "__name__", str(function))
    try:
        taken = inspect.signature(function).parameters
        hints = get_type_hints(hinted(function), include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise SetupError(f"The hints of {name} cannot be read: {error}.") from error
    told = told_of(inspect.getdoc(function) or "", set(taken))
    properties: dict[str, Schema] = {}
    required = []
    for one in taken.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.kind is one.POSITIONAL_ONLY:
            raise SetupError(f"{name} takes {one.name} by position only; a tool's arguments are named.")
        schema = dict(schema_of(hints.get(one.name, Any), f"{name}({one.name})"))
        if one.name in told:
            schema["description"] = told[one.name]
        if one.default is one.empty:
            required.append(one.name)
        elif one.default is None or isinstance(one.default, bool | int | float | str):
            schema["default"] = one.default
        properties[one.name] = schema
    whole = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Signature(whole, {one: hints.get(one, Any) for one in properties})


def hinted(function: Callable[..., Any]) -> Any:
    """What holds the hints: of a partial what it wraps, of a class its constructor, of an object its call."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return function.__init__  # type: ignore[misc]
    return function if inspect.isroutine(function) else type(function).__call__


def told_of(docstring: str, names: set[str]) -> dict[str, str]:
    """What a docstring says of arguments, in Google's or Sphinx's form.

    >>> told_of("Args:\\n    city: where\\n    n (int): how many", {"city", "n"})
    {'city': 'where', 'n': 'how many'}
    """
    found = (ABOUT.match(line) for line in docstring.splitlines())
    return {line["name"]: line["told"].strip() for line in found if line and line["name"] in names}


def schema_of(hint: Any, where: str) -> Schema:
    """Raises SetupError where JSON cannot hold such a value."""
    if get_origin(hint) is Annotated:
        base, *more = get_args(hint)
        told = [one for one in more if isinstance(one, str)]
        return {**schema_of(base, where), **({"description": told[0]} if told else {})}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one, where) for one in inner]}
    if origin in LISTS or (origin is not None and issubclass(origin, Sequence)):
        kept = [one for one in inner if one is not Ellipsis]
        fixed = {"minItems": len(kept), "maxItems": len(kept)} if origin is tuple and Ellipsis not in inner else {}
        items = schema_of(kept[0], where) if len(set(kept)) == 1 else {"anyOf": [schema_of(one, where) for one in kept]}
        return {"type": "array", "items": items, **fixed}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1], where) if inner else {}}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint) or is_typeddict(hint):
        return fields_schema(hint, where)
    if hint in SIMPLE:
        return SIMPLE[hint]
    if hint in LISTS:
        return {"type": "array"}
    name = getattr(hint, "__name__", hint)
    raise SetupError(f"{where} wants {name}, which JSON cannot hold; a tool takes texts, numbers, truth values, dates, "
                     "lists, dicts, dataclasses, enums and Literal.")  # fmt: skip


def fields_schema(kind: Any, where: str) -> Schema:
    hints = get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        none = dataclasses.MISSING
        wanted = [one.name for one in dataclasses.fields(kind) if one.default is none and one.default_factory is none]
        names = [one.name for one in dataclasses.fields(kind) if one.init]
    else:
        wanted, names = sorted(kind.__required_keys__), list(hints)
    properties = {name: schema_of(hints[name], f"{where}.{name}") for name in names}
    return {"type": "object", "properties": properties, "required": wanted, "additionalProperties": False}


def build(value: Any, hint: Any) -> Any:
    """A value that fits ``schema_of(hint)`` as what the hint names. Raises ValueError for a date that is none."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return built_first(value, inner)
    if origin in (list, tuple, set, frozenset) and isinstance(value, list):
        hints = inner if origin is tuple and Ellipsis not in inner else (inner or (Any,))[:1] * len(value)
        return origin(build(one, kind) for one, kind in zip(value, hints, strict=True))
    if origin is not None and isinstance(value, dict) and len(inner) == 2:
        return {name: build(one, inner[1]) for name, one in value.items()}
    if hint in (tuple, set, frozenset):
        return hint(value)
    if hint in (datetime.date, datetime.datetime):
        return hint.fromisoformat(value)
    if hint in (decimal.Decimal, pathlib.Path):
        return hint(str(value))
    if hint is float:
        return float(value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        hints_of = get_type_hints(hint)
        return hint(**{name: build(one, hints_of[name]) for name, one in value.items()})
    return value


def built_first(value: Any, hints: Sequence[Any]) -> Any:
    """By the first hint that takes it. Raises ValueError where the only ones that could do not."""
    failure: Exception | None = None
    for hint in hints:
        try:
            if fitted(value, schema_of(hint, ""), {}) == value:
                return build(value, hint)
        except Misfit:
            continue
        except (ValueError, TypeError) as error:
            failure = error
    if failure is not None:
        raise failure
    return value
