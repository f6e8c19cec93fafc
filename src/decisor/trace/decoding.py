"""Dataclasses from JSON, by the types of their fields: what is read back is what was written, or refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Decode = Callable[[object], Any]


def decoder(kind: type[T]) -> Callable[[object], T]:
    """Reads a dataclass from an object of its fields. Fields with a default may be missing; names that it does not
    know are left out.

    >>> from decisor.types import Replan
    >>> decoder(Replan)({"after_step": 2, "why": "", "plan": ["look"]})
    Replan(after_step=2, why='', plan=('look',))
    >>> decoder(Replan)({"after_step": "2", "why": "", "plan": []})
    Traceback (most recent call last):
    TypeError: Replan.after_step: '2' is no int

    Raises (the function that is returned): KeyError, TypeError or ValueError where it does not fit.
    """
    return _dataclass(kind)  # type: ignore[arg-type]  # cache wants what it can hash; a type is


@cache
def _dataclass(kind: type) -> Decode:
    hints = get_type_hints(kind, localns={"Value": object})
    fields = [
        (one.name, _of(hints[one.name], f"{kind.__name__}.{one.name}"), _is_required(one))
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


def _of(hint: Any, where: str) -> Decode:
    """A function from a JSON value to one of the type ``hint``."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is object:
        return lambda value: value
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint)
    if origin in (Union, UnionType):
        (other,) = [one for one in inside if one is not NoneType]
        read = _of(other, where)
        return lambda value: None if value is None else read(value)
    if origin is Literal:
        return _word(inside, where)
    if origin is tuple and inside[-1] is not Ellipsis:
        return _row([_of(one, where) for one in inside], where)
    if origin in (tuple, Sequence):
        return _list(_of(inside[0], where), where)
    if origin is Mapping:
        return _object(_of(inside[1], where), where)
    return _plain(hint, where)


def _word(words: Sequence[str], where: str) -> Decode:
    def decode(value: object) -> str:
        if value not in words:
            raise ValueError(f"{where}: {value!r} is none of {', '.join(map(repr, words))}")
        return str(value)

    return decode


def _row(reads: Sequence[Decode], where: str) -> Decode:
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


def _plain(kind: type, where: str) -> Decode:
    """Whole numbers are numbers too; true and false are not."""
    kinds = (int, float) if kind is float else (kind,)

    def decode(value: object) -> object:
        if type(value) not in kinds:
            raise TypeError(f"{where}: {value!r} is no {kind.__name__}")
        return value

    return decode
