"""The arguments of a tool: a JSON object that a JSON schema describes.

A schema is shown to the LLM in words with an example. The LLM's input is read leniently and fitted to the schema (a
text of a number counts as a number if one is needed); a misfit goes back with a complaint. The supported keywords are
type (also a list), enum, const, properties, required, additionalProperties, items, prefixItems, minItems, maxItems,
minimum, maximum, anyOf, oneOf, allOf, nullable, and ``$ref`` within the same document (``root``).

A schema may come from a stranger. A keyword of a wrong type counts as absent, nothing is fetched, and a circular
schema is given up after a number of steps. A description reads a limited number of parts, however often they refer to
each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from decisor.errors import ParseError, ToolError
from decisor.parsing.lenient_json import read_json_value
from decisor.system.text import fit_on_one_line, json_line
from decisor.types import Value

Schema: TypeAlias = Mapping[str, Value]
DEEPEST, MOST_STEPS, LISTED = 30, 20_000, 20
DEEPEST_WORDS, MOST_PARTS = 3, 300
EXAMPLES: dict[str, Value] = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
KINDS = {"integer": "whole number", "string": "text", "boolean": "true or false", "null": "null"}
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
BESIDE_REF = ("description", "example", "default")


class SchemaMisfit(Exception):
    """A value that does not fit its schema, or a schema that cannot be used. The text is for the LLM."""


def fit_to_schema(value: Value, schema: Value, root: Schema) -> Value:
    """Fit a value to a schema; texts of numbers and of truth values are converted.

    >>> fit_to_schema({"a": "2", "b": "yes"}, {"properties": {"a": {"type": "number"}, "b": {"type": "boolean"}}}, {})
    {'a': 2.0, 'b': True}
    >>> fit_to_schema({"a": [1, "x"]}, {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}, {})
    Traceback (most recent call last):
    decisor.tools.arguments.SchemaMisfit: a[1] must be a whole number, not "x".

    Raises:
        SchemaMisfit: it does not fit.
    """
    return SchemaFitting(root).fit(value, schema)


@dataclass
class SchemaFitting:
    """The progress of one value through its schema."""

    root: Schema
    """Document that references point into."""
    steps: int = 0
    """Parts of the schema that were looked at."""

    def fit(self, value: Value, schema: Value, where: str = "", depth: int = 0) -> Value:
        self.steps += 1
        # A circular or exponential schema of a stranger must not hold up the run.
        if depth > DEEPEST or self.steps > MOST_STEPS:
            raise SchemaMisfit(
                f"{where or 'The input'} is nested too deeply, or the tool's own description is circular."
            )
        schema = follow_reference(schema, self.root)
        for part in get_sequence(schema.get("allOf")):
            # Each part names some properties: those of the others are no surplus.
            loose = {**follow_reference(part, self.root), "additionalProperties": True}
            value = self.fit(value, loose, where, depth + 1)
        if choices := get_sequence(schema.get("anyOf")) or get_sequence(schema.get("oneOf")):
            value = self.first_fit(value, choices, where, depth)
        kinds = list_schema_types(schema)
        # nullable is OpenAPI 3.0's way; 3.1 and JSON Schema list the type null.
        if value is None and ("null" in kinds or schema.get("nullable") or not kinds):
            return None
        if kinds:
            value = convert_to_kinds(value, kinds, where)
        options = get_sequence(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
        if options and value not in options:
            which = "one of " if "const" not in schema else ""
            raise SchemaMisfit(
                f"{where or 'The input'} must be {which}{list_literals(options)}, not {format_short_json(value)}."
            )
        if isinstance(value, dict):
            return self.fit_object(value, schema, where, depth)
        if isinstance(value, list):
            return self.fit_list(value, schema, where, depth)
        if isinstance(value, int | float) and not isinstance(value, bool):
            check_range(value, schema, where)
        return value

    def first_fit(self, value: Value, choices: Sequence[Value], where: str, depth: int) -> Value:
        """Fit a value by the first choice that accepts it unchanged, else by the first that accepts it."""
        fits, complaints = [], []
        for choice in choices:
            try:
                fits.append(self.fit(value, choice, where, depth + 1))
            except SchemaMisfit as misfit:
                complaints.append(str(misfit))
        if not fits:
            raise SchemaMisfit(" Or: ".join(list(dict.fromkeys(complaints))[:LISTED]))
        return next((fit for fit in fits if fit == value and type(fit) is type(value)), fits[0])

    def fit_object(self, value: Schema, schema: Schema, where: str, depth: int) -> Value:
        properties = get_mapping(schema.get("properties"))
        # JSON Schema takes any further name; here a name that is not described is more likely a slip of the LLM.
        more = schema.get("additionalProperties", not properties)
        if missing := [name for name in list_strings(schema.get("required")) if name not in value]:
            raise SchemaMisfit(f"{', '.join(f'{where}.{name}' if where else name for name in missing)} is missing.")
        unknown = [name for name in value if name not in properties]
        if unknown and (more is False or (properties and "additionalProperties" not in schema)):
            place = f" in {where}" if where else ""
            raise SchemaMisfit(f"There is no {', '.join(unknown)}{place}; there is {', '.join(properties)}.")
        rest = get_mapping(more)
        return {
            name: self.fit(item, properties.get(name, rest), f"{where}.{name}" if where else name, depth + 1)
            for name, item in value.items()
        }

    def fit_list(self, value: Sequence[Value], schema: Schema, where: str, depth: int) -> Value:
        least, most = get_number(schema.get("minItems")) or 0, get_number(schema.get("maxItems"))
        if len(value) < least or (most is not None and len(value) > most):
            bounds = f"at least {least}" if most is None else f"{least} to {most}"
            raise SchemaMisfit(f"{where or 'The input'} must have {bounds} items, not {len(value)}.")
        first, rest = get_sequence(schema.get("prefixItems")), schema.get("items")
        return [
            self.fit(item, first[at] if at < len(first) else rest, f"{where}[{at}]", depth + 1)
            for at, item in enumerate(value)
        ]


def convert_to_kinds(value: Value, kinds: Sequence[str], where: str) -> Value:
    fits = [fit for kind in kinds for fit in convert_to_kind(value, kind)]
    if fits:
        return next((fit for fit in fits if type(fit) is type(value)), fits[0])
    name = " or ".join(dict.fromkeys(KINDS.get(kind, kind) for kind in kinds))
    article = "" if name.startswith(("true", "null", "text")) else "an " if name[0] in "aio" else "a "
    raise SchemaMisfit(f"{where or 'The input'} must be {article}{name}, not {format_short_json(value)}.")


def convert_to_kind(value: Value, kind: str) -> tuple[Value, ...]:
    """Convert a value to a JSON type; empty if it cannot be converted.

    Only texts are converted, and whole numbers written as 7.0.
    """
    if kind == "boolean":
        truth = value if isinstance(value, bool) else TRUTHS.get(str(value).strip().lower())
        return () if truth is None else (truth,)
    if kind == "string":
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        return (str(value),) if plain else ()
    if kind not in ("integer", "number"):
        fits = {"object": isinstance(value, dict), "array": isinstance(value, list), "null": value is None}
        return (value,) if fits.get(kind, True) else ()
    try:
        amount = float(value) if isinstance(value, str) else value
    except ValueError:
        return ()
    if isinstance(amount, bool) or not isinstance(amount, int | float) or amount != amount:
        return ()
    if kind == "number":
        return (amount,)
    if isinstance(amount, float) and (not amount.is_integer() or abs(amount) > 2**53):
        return ()
    # By way of a float a long number would lose its last digits.
    digits = isinstance(value, str) and len(value) < 20 and value.strip().lstrip("+-").isdecimal()
    return (int(value) if isinstance(value, str) and digits else int(amount),)


def check_range(value: float, schema: Schema, where: str) -> None:
    low, high = get_number(schema.get("minimum")), get_number(schema.get("maximum"))
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"at most {high}" if low is None else f"from {low} to {high}"
        raise SchemaMisfit(f"{where or 'The input'} must be {bounds}, not {value}.")


def list_schema_types(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type")
    if kind is None:
        listed = "items" in schema or "prefixItems" in schema
        return ("object",) if "properties" in schema else ("array",) if listed else ()
    return (kind,) if isinstance(kind, str) else list_strings(kind)


def follow_reference(schema: Value, root: Schema) -> Schema:
    """Return the schema that a chain of ``$ref`` leads to within the document.

    Descriptions beside the reference are kept. Raise SchemaMisfit if it leads nowhere.
    """
    beside: dict[str, Value] = {}
    for _ in range(DEEPEST):
        if not isinstance(schema, Mapping):
            return beside  # true and false are schemas too
        if "$ref" not in schema:
            return {**schema, **beside} if beside else schema
        # The outermost description is about this argument; that of the referenced type is general.
        beside = {key: schema[key] for key in BESIDE_REF if key in schema} | beside
        schema = resolve_pointer(str(schema["$ref"]), root)
    raise SchemaMisfit("The tool's own description is circular.")


def resolve_pointer(reference: str, root: Schema) -> Value:
    """Return the part that ``#/a/b`` points at. Raise SchemaMisfit if nothing is there or it points outside."""
    name = fit_on_one_line(reference, 200)
    if not reference.startswith("#"):
        raise SchemaMisfit(f"The tool's own description points outside of itself, to {name}.")
    at: Value = root
    for part in reference.removeprefix("#").split("/")[1:]:
        # RFC 6901: ~1 before ~0, or "~01" would become a slash.
        part = part.replace("~1", "/").replace("~0", "~").replace("%7B", "{").replace("%7D", "}")
        if isinstance(at, list) and part.isdecimal() and len(part) < 10:
            at = at[int(part)] if int(part) < len(at) else None
        else:
            at = get_mapping(at).get(part)
        if at is None:
            raise SchemaMisfit(f"The tool's own description points at {name}, and nothing is there.")
    return at


def get_mapping(value: Value) -> Schema:
    return value if isinstance(value, Mapping) else {}


def get_sequence(value: Value) -> Sequence[Value]:
    return value if isinstance(value, list | tuple) else ()


def list_strings(value: Value) -> tuple[str, ...]:
    return tuple(item for item in get_sequence(value) if isinstance(item, str))


def get_number(value: Value) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def list_literals(values: Sequence[Value]) -> str:
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return ", ".join(format_short_json(value) for value in values[:LISTED]) + more


def format_short_json(value: Value) -> str:
    return fit_on_one_line(json.dumps(value, ensure_ascii=False, default=str), 80)


@dataclass
class SchemaDescription:
    """A description of a schema in words."""

    root: Schema
    """Document that references point into."""
    parts: int = MOST_PARTS
    """Number of parts that may still be read."""

    def look(self, schema: Value) -> Schema:
        """Return the referenced schema, or an empty one (anything) if the reference leads nowhere."""
        self.parts -= 1
        try:
            return follow_reference(schema, self.root) if self.parts >= 0 else {}
        except SchemaMisfit:
            return {}

    def describe(self, value: Value, depth: int = 0) -> str:
        """Describe a schema in a few words.

        >>> SchemaDescription({}).describe({"type": "array", "items": {"enum": ["a", "b"]}})
        'list of one of "a", "b"'
        """
        schema = self.look(value)
        if options := get_sequence(schema.get("enum")):
            return f"one of {list_literals(options)}"
        # allOf reads as a choice too: in words for an LLM that is near enough, and the check of its input is exact.
        choices = [part for key in ("anyOf", "oneOf", "allOf") for part in get_sequence(schema.get(key))][:LISTED]
        if choices and depth < DEEPEST_WORDS:
            return " or ".join(dict.fromkeys(self.describe(choice, depth + 1) for choice in choices))
        kinds, properties = list_schema_types(schema), get_mapping(schema.get("properties"))
        if "array" in kinds:
            if depth >= DEEPEST_WORDS:
                return "list"
            items = [*get_sequence(schema.get("prefixItems"))[:LISTED]] or [schema.get("items")]
            return "list of " + " or ".join(dict.fromkeys(self.describe(item, depth + 1) for item in items))
        if "object" in kinds and properties and depth < DEEPEST_WORDS:
            required = list_strings(schema.get("required"))
            inner = [
                f"{fit_on_one_line(name, 80)}{'' if name in required else '?'}: {self.describe(part, depth + 1)}"
                for name, part in list(properties.items())[:LISTED]
            ]
            return "{" + ", ".join(inner) + (", ..." if len(properties) > LISTED else "") + "}"
        # A scalar: its type with bounds and format.
        low, high = schema.get("minimum"), schema.get("maximum")
        bounds = f" from {fit_on_one_line(str(low), 30)}" if low is not None else ""
        bounds += f" to {fit_on_one_line(str(high), 30)}" if high is not None else ""
        form = (
            f", {fit_on_one_line(str(schema['format']), 30)}" if kinds == ("string",) and schema.get("format") else ""
        )
        return (
            " or ".join(fit_on_one_line(KINDS.get(kind, kind), 30) for kind in kinds[:LISTED]) + bounds + form
            or "anything"
        )

    def example(self, value: Value, depth: int = 0) -> Value:
        schema = self.look(value)
        for key in ("example", "default", "const"):
            if key in schema:
                return schema[key]
        if options := get_sequence(schema.get("enum")):
            return options[0]
        for key in ("anyOf", "oneOf", "allOf"):
            if (choices := get_sequence(schema.get(key))) and depth < DEEPEST_WORDS:
                return self.example(choices[0], depth + 1)
        kind = (*list_schema_types(schema), "")[0]
        if kind == "array":
            items = [*get_sequence(schema.get("prefixItems"))[:LISTED]] or [schema.get("items")]
            return [self.example(one, depth + 1) for one in items] if depth < DEEPEST_WORDS else []
        if kind == "object":
            properties = get_mapping(schema.get("properties")) if depth < DEEPEST_WORDS else {}
            required = [name for name in list_strings(schema.get("required")) if name in properties]
            return {name: self.example(properties[name], depth + 1) for name in required[:LISTED]}
        return EXAMPLES.get(kind, "...")


MOST_LINES, LONGEST_EXAMPLE, LONGEST_COMPLAINT = 100, 2000, 1000
MOST_NAMES, LONGEST_NAME = 40, 80


@dataclass(frozen=True)
class ToolArguments:
    """The arguments that a tool takes."""

    schema: Schema
    """Of type object."""
    root: Schema = field(default_factory=dict)
    """Document that its references point into."""

    @property
    def properties(self) -> Schema:
        return get_mapping(self.schema.get("properties"))

    @property
    def required(self) -> tuple[str, ...]:
        return list_strings(self.schema.get("required"))

    def describe(self) -> str:
        """Describe each argument on a line, after an example."""
        if not self.properties:
            return "Input: {}"
        lines = [f"Input: one JSON object, such as {self._example_text()}"]
        for name in list(self.properties)[:MOST_LINES]:
            words = SchemaDescription(self.root)
            about = fit_on_one_line(str(words.look(self.properties[name]).get("description", "")), 256)
            must = ", required" if name in self.required else ""
            kind = words.describe(self.properties[name])
            lines.append(f"- {fit_on_one_line(name, LONGEST_NAME)} ({kind}{must}){': ' if about else ''}{about}")
        if len(self.properties) > MOST_LINES:
            lines.append(f"- and {len(self.properties) - MOST_LINES} more")
        return "\n".join(lines)

    def example(self) -> Mapping[str, Value]:
        """Return an example with the required arguments."""
        names = [name for name in self.properties if name in self.required]
        return {name: SchemaDescription(self.root).example(self.properties[name]) for name in names}

    def _example_text(self) -> str:
        """Return the example as text.

        Hidden characters are escaped and the length is limited, whoever wrote the schema.
        """
        example = self.example()
        with suppress(ValueError):  # an integer of thousands of digits
            if len(text := json_line(example)) <= LONGEST_EXAMPLE:
                return text
        # Too long, or a number that JSON cannot write: the names alone still show the form.
        names = [name for name in example if len(name) <= LONGEST_NAME]
        return json_line(dict.fromkeys(names[:MOST_NAMES], "..."))

    def read(self, text: str) -> Mapping[str, Value]:
        """Read the LLM's input as fitting arguments. A bare value is taken for the only (required) argument.

        >>> ToolArguments({"properties": {"n": {"type": "integer"}}, "required": ["n"]}).read('{"n": "7",}')
        {'n': 7}

        Raises:
            ToolError: it is no JSON object, or does not fit.
        """
        value = self._parse(text)
        try:
            return get_mapping(fit_to_schema(value, {"type": "object", **self.schema}, self.root))
        except SchemaMisfit as misfit:
            raise ToolError(f"{fit_on_one_line(str(misfit), LONGEST_COMPLAINT)} {self.describe()}") from misfit

    def _parse(self, text: str) -> Value:
        candidates = self.required or tuple(self.properties)
        only = candidates[0] if len(candidates) == 1 else ""  # a bare value can mean it alone
        try:
            value = read_json_value(text) if text.strip() else {}
        except ParseError as error:
            # A text that was meant as JSON goes back with its fault instead of being taken for the value.
            if only and "{" not in text:
                return {only: text.strip()}
            raise ToolError(f"{error} {self.describe()}") from error
        return {only: value} if only and not isinstance(value, dict) else value
