"""A JSON schema in a few words for a model, and an example of what fits it.

A schema may come from a stranger: at most so many of its parts are looked at, however often they name each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from decisor.outside import one_line
from decisor.tools.functions.json_schema import (
    KINDS,
    Misfit,
    Schema,
    deref,
    kinds_of,
    listing,
    mapping,
    sequence,
    texts,
)
from decisor.types import Value

DEEPEST, LISTED, MOST_PARTS = 3, 20, 300
EXAMPLES: dict[str, Value] = {"integer": 1, "number": 1.5, "boolean": True, "null": None}


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
        if choices and depth < DEEPEST:
            return " or ".join(dict.fromkeys(self.describe(one, depth + 1) for one in choices))
        kinds = kinds_of(schema)
        if "array" in kinds:
            return self.describe_list(schema, depth)
        if "object" in kinds and mapping(schema.get("properties")) and depth < DEEPEST:
            return self.describe_object(schema, depth)
        low, high = schema.get("minimum"), schema.get("maximum")
        bounds = f" from {one_line(str(low), 30)}" if low is not None else ""
        bounds += f" to {one_line(str(high), 30)}" if high is not None else ""
        form = f", {one_line(str(schema['format']), 30)}" if kinds == ("string",) and schema.get("format") else ""
        return " or ".join(one_line(KINDS.get(kind, kind), 30) for kind in kinds[:LISTED]) + bounds + form or "anything"

    def describe_list(self, schema: Schema, depth: int) -> str:
        if depth >= DEEPEST:
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
            if (choices := sequence(schema.get(key))) and depth < DEEPEST:
                return self.example(choices[0], depth + 1)
        kind = (*kinds_of(schema), "")[0]
        if kind == "array":
            items = [*sequence(schema.get("prefixItems"))[:LISTED]] or [schema.get("items")]
            return [self.example(one, depth + 1) for one in items] if depth < DEEPEST else []
        if kind == "object":
            properties = mapping(schema.get("properties")) if depth < DEEPEST else {}
            required = [name for name in texts(schema.get("required")) if name in properties]
            return {name: self.example(properties[name], depth + 1) for name in required[:LISTED]}
        return EXAMPLES.get(kind, "...")
