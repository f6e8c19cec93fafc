"""Dataclasses as JSON: how events, outcomes and reports are written."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

FIELDS: dict[type, tuple[str, ...]] = {}


def fields_of(kind: type) -> tuple[str, ...]:
    """The names of a dataclass's fields; none of anything else."""
    if kind not in FIELDS:
        names = tuple(one.name for one in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
        FIELDS[kind] = names
    return FIELDS[kind]


def values_of(value: object) -> dict[str, object]:
    """The fields of a dataclass, by name."""
    return {name: getattr(value, name) for name in fields_of(type(value))}


def json_value(value: object) -> Any:
    """Dataclasses, tuples and mappings as what JSON can hold.

    >>> from decisor.types import Replan
    >>> json_value({1: Replan(2, "no rows", ("look",))})
    {'1': {'after_step': 2, 'why': 'no rows', 'plan': ['look']}}
    """
    if names := fields_of(type(value)):
        return {name: json_value(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return value


def finite(value: object) -> Any:
    """As ``json_value``, with None for the numbers that JSON cannot hold.

    >>> finite({"outcomes": (1.5, float("inf"))})
    {'outcomes': [1.5, None]}
    """
    return _finite(json_value(value))


def _finite(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def one_level(value: object) -> object:
    """For the encoder, which is fast at the rest: the fields of a dataclass; what JSON cannot hold, as text."""
    if fields_of(type(value)):
        return values_of(value)
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else str(value)


ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=one_level)


def json_text(value: object) -> str:
    """As ``json_value``, on one line. Text that is no valid Unicode is replaced: it could not be stored."""
    try:
        text = ENCODER.encode(value)
    except TypeError:  # a key that is no text
        text = ENCODER.encode(json_value(value))
    return text.encode("utf-8", "replace").decode()
