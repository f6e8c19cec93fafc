"""Fit a value to a JSON schema, forgivingly, and describe the schema in a few words with an example.

A text of a number is taken for a number where one is needed.

The part of JSON schema that is looked at: type (also a list of them), enum, const, properties, required,
additionalProperties, items, prefixItems, minItems, maxItems, minimum, maximum, anyOf, oneOf, allOf, nullable, and
``$ref`` within the same document (``root``). A schema may come from a stranger: a keyword of a wrong type counts as
absent, nothing is fetched, and a schema that turns in circles is given up after so many steps; of one
that is described so many parts are looked at, however often they name each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from decisor.outside import one_line
from decisor.types import Value

Schema: TypeAlias = Mapping[str, Value]
DEEPEST, MOST_STEPS, LISTED = 30, 20_000, 20
DEEPEST_WORDS, MOST_PARTS = 3, 300
EXAMPLES: dict[str, Value] = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
KINDS = {"integer": "whole number", "string": "text", "boolean": "true or false", "null": "null"}
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
BESIDE_REF = ("description", "example", "default")


class Misfit(Exception):
    """A value does not fit its schema, or the schema cannot be used; the text is for the model."""


def fit(value: Value, schema: Value, root: Schema) -> Value:
    """The value as the schema describes it; texts of numbers and of truth values become such.

    >>> fit({"a": "2", "b": "yes"}, {"properties": {"a": {"type": "number"}, "b": {"type": "boolean"}}}, {})
    {'a': 2.0, 'b': True}
    >>> fit({"a": [1, "x"]}, {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}, {})
    Traceback (most recent call last):
    decisor.tools.functions.json_schema.Misfit: a[1] must be a whole number, not "x".

    Raises:
        Misfit: it does not fit.
    """
    return Fitting(root).fit(value, schema)


@dataclass
class Fitting:
    """One value on its way through its schema; ``where`` in it we are is said in complaints."""

    root: Schema
    steps: int = 0

    def fit(self, value: Value, schema: Value, where: str = "", depth: int = 0) -> Value:
        self.steps += 1
        if depth > DEEPEST or self.steps > MOST_STEPS:
            raise Misfit(f"{where or 'The input'} is nested too deeply, or the tool's own description is circular.")
        schema = deref(schema, self.root)
        for one in sequence(schema.get("allOf")):
            value = self.fit(value, {**deref(one, self.root), "additionalProperties": True}, where, depth + 1)
        if choices := sequence(schema.get("anyOf")) or sequence(schema.get("oneOf")):
            value = self.first_fit(value, choices, where, depth)
        kinds = kinds_of(schema)
        if value is None and ("null" in kinds or schema.get("nullable") or not kinds):
            return None
        if kinds:
            value = of_kind(value, kinds, where)
        if (options := sequence(schema.get("enum"))) and value not in options:
            raise Misfit(f"{where or 'The input'} must be one of {listing(options)}, not {literal(value)}.")
        if "const" in schema and value != schema["const"]:
            raise Misfit(f"{where or 'The input'} must be {literal(schema['const'])}, not {literal(value)}.")
        if isinstance(value, dict):
            return self.fit_object(value, schema, where, depth)
        if isinstance(value, list):
            return self.fit_list(value, schema, where, depth)
        if isinstance(value, int | float) and not isinstance(value, bool):
            check_range(value, schema, where)
        return value

    def first_fit(self, value: Value, choices: Sequence[Value], where: str, depth: int) -> Value:
        """By the first choice that takes it as it is, else by the first that takes it at all."""
        fits, complaints = [], []
        for choice in choices:
            try:
                fits.append(self.fit(value, choice, where, depth + 1))
            except Misfit as misfit:
                complaints.append(str(misfit))
        if not fits:
            raise Misfit(" Or: ".join(list(dict.fromkeys(complaints))[:LISTED]))
        return next((one for one in fits if one == value and type(one) is type(value)), fits[0])

    def fit_object(self, value: Schema, schema: Schema, where: str, depth: int) -> Value:
        properties = mapping(schema.get("properties"))
        more = schema.get("additionalProperties", not properties)
        if missing := [name for name in texts(schema.get("required")) if name not in value]:
            raise Misfit(f"{', '.join(f'{where}.{name}' if where else name for name in missing)} is missing.")
        unknown = [name for name in value if name not in properties]
        if unknown and (more is False or (properties and "additionalProperties" not in schema)):
            place = f" in {where}" if where else ""
            raise Misfit(f"There is no {', '.join(unknown)}{place}; there is {', '.join(properties)}.")
        rest = mapping(more)
        return {
            name: self.fit(one, properties.get(name, rest), f"{where}.{name}" if where else name, depth + 1)
            for name, one in value.items()
        }

    def fit_list(self, value: Sequence[Value], schema: Schema, where: str, depth: int) -> Value:
        least, most = number(schema.get("minItems")) or 0, number(schema.get("maxItems"))
        if len(value) < least or (most is not None and len(value) > most):
            bounds = f"at least {least}" if most is None else f"{least} to {most}"
            raise Misfit(f"{where or 'The input'} must have {bounds} items, not {len(value)}.")
        first, rest = sequence(schema.get("prefixItems")), schema.get("items")
        return [
            self.fit(one, first[at] if at < len(first) else rest, f"{where}[{at}]", depth + 1)
            for at, one in enumerate(value)
        ]


def of_kind(value: Value, kinds: Sequence[str], where: str) -> Value:
    fits = [one for kind in kinds for one in as_kind(value, kind)]
    if fits:
        return next((one for one in fits if type(one) is type(value)), fits[0])
    name = " or ".join(dict.fromkeys(KINDS.get(kind, kind) for kind in kinds))
    article = "" if name.startswith(("true", "null", "text")) else "an " if name[0] in "aio" else "a "
    raise Misfit(f"{where or 'The input'} must be {article}{name}, not {literal(value)}.")


def as_kind(value: Value, kind: str) -> tuple[Value, ...]:
    """The value as that JSON type; () where it is none. Only texts are converted, and whole numbers written as 7.0."""
    if kind == "boolean":
        truth = value if isinstance(value, bool) else TRUTHS.get(str(value).strip().lower())
        return () if truth is None else (truth,)
    if kind == "string":
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        return (str(value),) if plain else ()
    if kind in ("integer", "number"):
        return as_number(value, kind == "integer")
    fits = {"object": isinstance(value, dict), "array": isinstance(value, list), "null": value is None}
    return (value,) if fits.get(kind, True) else ()


def as_number(value: Value, whole: bool) -> tuple[Value, ...]:
    try:
        amount = float(value) if isinstance(value, str) else value
    except ValueError:
        return ()
    if isinstance(amount, bool) or not isinstance(amount, int | float) or amount != amount:
        return ()
    if not whole:
        return (amount,)
    if isinstance(amount, float) and (not amount.is_integer() or abs(amount) > 2**53):
        return ()
    digits = isinstance(value, str) and len(value) < 20 and value.strip().lstrip("+-").isdecimal()
    return (int(value) if isinstance(value, str) and digits else int(amount),)


def check_range(value: float, schema: Schema, where: str) -> None:
    low, high = number(schema.get("minimum")), number(schema.get("maximum"))
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"at most {high}" if low is None else f"from {low} to {high}"
        raise Misfit(f"{where or 'The input'} must be {bounds}, not {value}.")


def kinds_of(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type")
    if kind is None:
        listed = "items" in schema or "prefixItems" in schema
        return ("object",) if "properties" in schema else ("array",) if listed else ()
    return (kind,) if isinstance(kind, str) else texts(kind)


def deref(schema: Value, root: Schema) -> Schema:
    """The schema that a chain of ``$ref`` leads to, within the same document, with the words that stand beside the
    reference. Raises Misfit where it leads nowhere."""
    beside: dict[str, Value] = {}
    for _ in range(DEEPEST):
        if not isinstance(schema, Mapping):
            return beside  # true and false are schemas too
        if "$ref" not in schema:
            return {**schema, **beside} if beside else schema
        beside = {key: schema[key] for key in BESIDE_REF if key in schema} | beside
        schema = lookup(str(schema["$ref"]), root)
    raise Misfit("The tool's own description is circular.")


def lookup(reference: str, root: Schema) -> Value:
    """What ``#/a/b`` points at. Raises Misfit where nothing is there, or it points outside."""
    name = one_line(reference, 200)
    if not reference.startswith("#"):
        raise Misfit(f"The tool's own description points outside of itself, to {name}.")
    at: Value = root
    for part in reference.removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~").replace("%7B", "{").replace("%7D", "}")
        if isinstance(at, list) and part.isdecimal() and len(part) < 10:
            at = at[int(part)] if int(part) < len(at) else None
        else:
            at = mapping(at).get(part)
        if at is None:
            raise Misfit(f"The tool's own description points at {name}, and nothing is there.")
    return at


def mapping(value: Value) -> Schema:
    return value if isinstance(value, Mapping) else {}


def sequence(value: Value) -> Sequence[Value]:
    return value if isinstance(value, list | tuple) else ()


def texts(value: Value) -> tuple[str, ...]:
    return tuple(one for one in sequence(value) if isinstance(one, str))


def number(value: Value) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def listing(values: Sequence[Value]) -> str:
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return ", ".join(literal(value) for value in values[:LISTED]) + more


def literal(value: Value) -> str:
    return one_line(json.dumps(value, ensure_ascii=False, default=str), 80)


@dataclass
class SchemaWords:
    """``root``: what references point into. ``parts``: how many more are looked at."""

    root: Schema
    parts: int = MOST_PARTS

    def look(self, schema: Value) -> Schema:
        """What it is; anything where its reference leads nowhere."""
        self.parts -= 1
        try:
            return deref(schema, self.root) if self.parts >= 0 else {}
        except Misfit:
            return {}

    def describe(self, value: Value, depth: int = 0) -> str:
        """
        >>> SchemaWords({}).describe({"type": "array", "items": {"enum": ["a", "b"]}})
        'list of one of "a", "b"'
        """
        schema = self.look(value)
        if options := sequence(schema.get("enum")):
            return f"one of {listing(options)}"
        choices = [one for key in ("anyOf", "oneOf", "allOf") for one in sequence(schema.get(key))][:LISTED]
        if choices and depth < DEEPEST_WORDS:
            return " or ".join(dict.fromkeys(self.describe(one, depth + 1) for one in choices))
        kinds = kinds_of(schema)
        if "array" in kinds:
            return self.describe_list(schema, depth)
        if "object" in kinds and mapping(schema.get("properties")) and depth < DEEPEST_WORDS:
            return self.describe_object(schema, depth)
        low, high = schema.get("minimum"), schema.get("maximum")
        bounds = f" from {one_line(str(low), 30)}" if low is not None else ""
        bounds += f" to {one_line(str(high), 30)}" if high is not None else ""
        form = f", {one_line(str(schema['format']), 30)}" if kinds == ("string",) and schema.get("format") else ""
        return " or ".join(one_line(KINDS.get(kind, kind), 30) for kind in kinds[:LISTED]) + bounds + form or "anything"

    def describe_list(self, schema: Schema, depth: int) -> str:
        if depth >= DEEPEST_WORDS:
            return "list"
        items = [*sequence(schema.get("prefixItems"))[:LISTED]] or [schema.get("items")]
        return "list of " + " or ".join(dict.fromkeys(self.describe(one, depth + 1) for one in items))

    def describe_object(self, schema: Schema, depth: int) -> str:
        required, properties = texts(schema.get("required")), mapping(schema.get("properties"))
        inner = [
            f"{one_line(name, 80)}{'' if name in required else '?'}: {self.describe(properties[name], depth + 1)}"
            for name in list(properties)[:LISTED]
        ]
        return "{" + ", ".join(inner) + (", ..." if len(properties) > LISTED else "") + "}"

    def example(self, value: Value, depth: int = 0) -> Value:
        schema = self.look(value)
        for key in ("example", "default", "const"):
            if key in schema:
                return schema[key]
        if options := sequence(schema.get("enum")):
            return options[0]
        for key in ("anyOf", "oneOf", "allOf"):
            if (choices := sequence(schema.get(key))) and depth < DEEPEST_WORDS:
                return self.example(choices[0], depth + 1)
        kind = (*kinds_of(schema), "")[0]
        if kind == "array":
            items = [*sequence(schema.get("prefixItems"))[:LISTED]] or [schema.get("items")]
            return [self.example(one, depth + 1) for one in items] if depth < DEEPEST_WORDS else []
        if kind == "object":
            properties = mapping(schema.get("properties")) if depth < DEEPEST_WORDS else {}
            required = [name for name in texts(schema.get("required")) if name in properties]
            return {name: self.example(properties[name], depth + 1) for name in required[:LISTED]}
        return EXAMPLES.get(kind, "...")
