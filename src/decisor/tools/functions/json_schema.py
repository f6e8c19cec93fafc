"""Fitting a value to a JSON schema, forgivingly: a text of a number is taken for a number where one is wanted.

The part of JSON schema that is looked at: type (also a list of them), enum, const, properties, required,
additionalProperties, items, minItems, maxItems, minimum, maximum, anyOf, oneOf, allOf, nullable, and ``$ref`` within
the same document (``root``). Whether that document may be trusted is the caller's business; nothing here is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
DEEPEST, LISTED = 30, 20
KINDS = {"integer": "whole number", "string": "text", "boolean": "true or false", "null": "null"}
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Misfit(Exception):
    """A value does not fit its schema; the text is for the model."""


def fitted(value: Any, schema: Schema, root: Mapping[str, Any], where: str = "", depth: int = 0) -> Any:
    """The value as the schema wants it; texts of numbers and of truth values become such.

    >>> fitted({"a": "2", "b": "yes"}, {"properties": {"a": {"type": "number"}, "b": {"type": "boolean"}}}, {})
    {'a': 2.0, 'b': True}
    >>> fitted({"a": [1, "x"]}, {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}, {})
    Traceback (most recent call last):
    decisor.tools.functions.json_schema.Misfit: a[1] must be a whole number, not "x".

    Raises:
        Misfit: it does not fit.
    """
    if depth > DEEPEST:
        raise Misfit(f"{where or 'The input'} is nested too deeply.")
    schema = deref(schema, root)
    for one in schema.get("allOf", ()):
        value = fitted(value, {**one, "additionalProperties": True}, root, where, depth + 1)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        value = first_fit(value, choices, root, where, depth)
    kinds = kinds_of(schema)
    if value is None and ("null" in kinds or schema.get("nullable") or not kinds):
        return None
    if kinds:
        value = of_kind(value, kinds, where)
    if "enum" in schema and value not in schema["enum"]:
        raise Misfit(f"{where or 'The input'} must be one of {listed(schema['enum'])}, not {told(value)}.")
    if "const" in schema and value != schema["const"]:
        raise Misfit(f"{where or 'The input'} must be {told(schema['const'])}, not {told(value)}.")
    if isinstance(value, dict):
        return fitted_object(value, schema, root, where, depth)
    if isinstance(value, list):
        return fitted_list(value, schema, root, where, depth)
    if isinstance(value, int | float) and not isinstance(value, bool):
        in_range(value, schema, where)
    return value


def first_fit(value: Any, choices: Sequence[Schema], root: Mapping[str, Any], where: str, depth: int) -> Any:
    """By the first choice that takes it as it is, else by the first that takes it at all."""
    fits, complaints = [], []
    for choice in choices:
        try:
            fits.append(fitted(value, choice, root, where, depth + 1))
        except Misfit as misfit:
            complaints.append(str(misfit))
    if not fits:
        raise Misfit(" Or: ".join(dict.fromkeys(complaints)))
    return next((fit for fit in fits if fit == value and type(fit) is type(value)), fits[0])


def fitted_object(value: dict[str, Any], schema: Schema, root: Mapping[str, Any], where: str, depth: int) -> Any:
    properties = schema.get("properties", {})
    more = schema.get("additionalProperties", not properties)
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        raise Misfit(f"{', '.join(f'{where}.{name}' if where else name for name in missing)} is missing.")
    unknown = [name for name in value if name not in properties]
    if (unknown and more is False) or (unknown and properties and "additionalProperties" not in schema):
        raise Misfit(
            f"There is no {', '.join(unknown)}{f' in {where}' if where else ''}; there is {', '.join(properties)}."
        )
    of_more = more if isinstance(more, Mapping) else {}
    return {
        name: fitted(one, properties.get(name, of_more), root, f"{where}.{name}" if where else name, depth + 1)
        for name, one in value.items()
    }


def fitted_list(value: list[Any], schema: Schema, root: Mapping[str, Any], where: str, depth: int) -> Any:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        raise Misfit(f"{where or 'The input'} must have {least} to {most} items, not {len(value)}.")
    items = schema.get("items", {})
    return [fitted(one, items, root, f"{where}[{number}]", depth + 1) for number, one in enumerate(value)]


def of_kind(value: Any, kinds: Sequence[str], where: str) -> Any:
    fits = [got for kind in kinds if (got := as_kind(value, kind)) is not NotImplemented]
    if fits:
        return next((got for got in fits if type(got) is type(value)), fits[0])
    wanted = " or ".join(dict.fromkeys(KINDS.get(kind, kind) for kind in kinds))
    article = "" if wanted.startswith(("true", "null", "text")) else "an " if wanted[0] in "aio" else "a "
    raise Misfit(f"{where or 'The input'} must be {article}{wanted}, not {told(value)}.")


def as_kind(value: Any, kind: str) -> Any:
    """The value as that JSON type, or NotImplemented. Only texts are converted, and whole numbers written as 7.0."""
    if kind == "boolean":
        return value if isinstance(value, bool) else TRUTHS.get(str(value).strip().lower(), NotImplemented)
    if kind == "string":
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        return (value if isinstance(value, str) else str(value)) if plain else NotImplemented
    if kind in ("integer", "number"):
        try:
            number = float(value) if isinstance(value, str) else value
        except ValueError:
            return NotImplemented
        if isinstance(number, bool) or not isinstance(number, int | float) or number != number:
            return NotImplemented
        if kind == "number":
            return number
        if isinstance(number, float) and (not number.is_integer() or abs(number) > 2**53):
            return NotImplemented
        return int(value) if isinstance(value, str) and value.strip().lstrip("+-").isdigit() else int(number)
    fits = {"object": isinstance(value, dict), "array": isinstance(value, list), "null": value is None}
    return value if fits.get(kind, True) else NotImplemented


def in_range(value: float, schema: Schema, where: str) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"at most {high}" if low is None else f"from {low} to {high}"
        raise Misfit(f"{where or 'The input'} must be {bounds}, not {value}.")


def kinds_of(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type")
    if kind is None:
        return ("object",) if "properties" in schema else ("array",) if "items" in schema else ()
    return (kind,) if isinstance(kind, str) else tuple(kind)


def deref(schema: Any, root: Mapping[str, Any]) -> Schema:
    """The schema that a chain of ``$ref`` leads to, within the same document. Raises Misfit where it leads nowhere."""
    for _ in range(DEEPEST):
        if not isinstance(schema, Mapping):
            return {}  # true and false are schemas too
        if "$ref" not in schema:
            return schema
        schema = pointed(str(schema["$ref"]), root)
    raise Misfit("The tool's own description is circular.")


def pointed(reference: str, root: Mapping[str, Any]) -> Any:
    """What ``#/a/b`` points at. Raises Misfit where nothing is there, or it points outside."""
    if not reference.startswith("#"):
        raise Misfit(f"The tool's own description points outside of itself, to {reference}.")
    at: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~").replace("%7B", "{").replace("%7D", "}")
        at = (
            at.get(part)
            if isinstance(at, Mapping)
            else at[int(part)]
            if isinstance(at, list) and part.isdigit()
            else None
        )
        if at is None:
            raise Misfit(f"The tool's own description points at {reference}, and nothing is there.")
    return at


def listed(values: Sequence[Any]) -> str:
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return ", ".join(told(value) for value in values[:LISTED]) + more


def told(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False, default=str), 80)


def one_line(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
