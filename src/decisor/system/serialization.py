"""Dataclasses to and from JSON, for events, outcomes and reports.

A value is decoded by the types of its fields: it is read back as it was written, or refused.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

FIELDS: dict[type, tuple[str, ...]] = {}


def dataclass_field_names(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields; () for any other type."""
    if kind not in FIELDS:
        names = tuple(one.name for one in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
        FIELDS[kind] = names
    return FIELDS[kind]


def dataclass_values(value: object) -> dict[str, object]:
    """Return the fields of a dataclass by name."""
    return {name: getattr(value, name) for name in dataclass_field_names(type(value))}


def json_value(value: object) -> Any:
    """Convert dataclasses, tuples and mappings to values that JSON can hold.

    >>> from decisor.types import Replan
    >>> json_value({1: Replan(2, "no rows", ("look",))})
    {'1': {'after_step': 2, 'why': 'no rows', 'plan': ['look']}}
    """
    if names := dataclass_field_names(type(value)):
        return {name: json_value(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return value


def finite_json_value(value: object) -> Any:
    """Convert to a JSON value as ``json_value`` does, with None for infinite numbers and nan.

    >>> finite_json_value({"outcomes": (1.5, float("inf"))})
    {'outcomes': [1.5, None]}
    """
    return _finite(json_value(value))


def _finite(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encode_one_level(value: object) -> object:
    """Convert one level of a value for the JSON encoder, which is fast at the rest.

    A dataclass becomes its fields; a value that JSON cannot hold becomes text.
    """
    if dataclass_field_names(type(value)):
        return dataclass_values(value)
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else str(value)


ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=encode_one_level)


def json_text(value: object) -> str:
    """Convert to JSON as ``json_value`` does, on one line.

    Text that is no valid Unicode is replaced: it could not be stored.
    """
    try:
        text = ENCODER.encode(value)
    except TypeError:  # a key that is no text
        text = ENCODER.encode(json_value(value))
    return text.encode("utf-8", "replace").decode()


T = TypeVar("T")
Decode = Callable[[object], Any]


def build_decoder(kind: type[T]) -> Callable[[object], T]:
    """Build a function that reads a dataclass from an object of its fields.

    Fields with a default may be missing; names that it does not know are left out.

    >>> from decisor.types import Replan
    >>> build_decoder(Replan)({"after_step": 2, "why": "", "plan": ["look"]})
    Replan(after_step=2, why='', plan=('look',))
    >>> build_decoder(Replan)({"after_step": "2", "why": "", "plan": []})
    Traceback (most recent call last):
    TypeError: Replan.after_step: '2' is no int

    Raises (the function that is returned): KeyError, TypeError or ValueError where it does not fit.
    """
    return _dataclass(kind)  # type: ignore[arg-type]  # cache wants what it can hash; a type is


@cache
def _dataclass(kind: type) -> Decode:
    hints = get_type_hints(kind, localns={"Value": object})
    fields = [
        (one.name, _decoder_of(hints[one.name], f"{kind.__name__}.{one.name}"), _is_required(one))
        for one in dataclasses.fields(kind)
    ]

    def decode(value: object) -> object:
        if not isinstance(value, Mapping):
            raise TypeError(f"{kind.__name__} is no object")
        arguments = {}
        for name, read, required in fields:
            if name in value:
                arguments[name] = read(value[name])
            elif required:
                raise KeyError(f"{kind.__name__}.{name} is missing")
        return kind(**arguments)

    return decode


def _is_required(field: dataclasses.Field[object]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _decoder_of(hint: Any, where: str) -> Decode:
    """Build a function from a JSON value to a value of the type ``hint``."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is object:
        return lambda value: value
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint)
    if origin in (Union, UnionType):
        (other,) = [one for one in inside if one is not NoneType]
        read = _decoder_of(other, where)
        return lambda value: None if value is None else read(value)
    if origin is Literal:
        return _choice_decoder(inside, where)
    if origin is tuple and inside[-1] is not Ellipsis:
        return _fixed_list_decoder([_decoder_of(one, where) for one in inside], where)
    if origin in (tuple, Sequence):
        return _list(_decoder_of(inside[0], where), where)
    if origin is Mapping:
        return _object(_decoder_of(inside[1], where), where)
    return _scalar_decoder(hint, where)


def _choice_decoder(words: Sequence[str], where: str) -> Decode:
    def decode(value: object) -> str:
        if value not in words:
            raise ValueError(f"{where}: {value!r} is none of {', '.join(map(repr, words))}")
        return str(value)

    return decode


def _fixed_list_decoder(reads: Sequence[Decode], where: str) -> Decode:
    def decode(value: object) -> tuple[object, ...]:
        if not isinstance(value, list) or len(value) != len(reads):
            raise TypeError(f"{where}: {value!r} is no list of {len(reads)}")
        return tuple(read(item) for read, item in zip(reads, value, strict=True))

    return decode


def _list(read: Decode, where: str) -> Decode:
    def decode(value: object) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise TypeError(f"{where}: {value!r} is no list")
        return tuple(map(read, value))

    return decode


def _object(read: Decode, where: str) -> Decode:
    def decode(value: object) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise TypeError(f"{where}: {value!r} is no object")
        return {str(name): read(item) for name, item in value.items()}

    return decode


def _scalar_decoder(kind: type, where: str) -> Decode:
    """Build a function that checks a plain value. Whole numbers are numbers too; true and false are not."""
    kinds = (int, float) if kind is float else (kind,)

    def decode(value: object) -> object:
        if type(value) not in kinds:
            raise TypeError(f"{where}: {value!r} is no {kind.__name__}")
        return value

    return decode
