"""The arguments of a tool: a JSON object that a JSON schema describes. A schema is shown to the model in words, and
what the model writes is read forgivingly and fitted to it; what does not fit goes back with a complaint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from decisor.errors import ParseError, ToolError
from decisor.replies.lenient_json import read_one
from decisor.tools.functions.json_schema import KINDS, Misfit, Schema, deref, fitted, kinds_of, listed, one_line

SHOWN_DEPTH, SHOWN_CHOICES = 3, 20


@dataclass(frozen=True)
class Arguments:
    """What a tool takes: a schema of type object. ``root``: the document that its references point into."""

    schema: Schema
    root: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.get("properties", {}))

    def describe(self) -> str:
        """One line each, and an example."""
        if not self.names:
            return "Input: {}"
        required = self.schema.get("required", ())
        example = {name: self.example(self.schema["properties"][name]) for name in self.names if name in required}
        lines = [f"Input: one JSON object, such as {json.dumps(example, ensure_ascii=False)}"]
        for name in self.names:
            about = deref(self.schema["properties"][name], self.root)
            told = one_line(str(about.get("description", "")), 256)
            must = ", required" if name in required else ""
            lines.append(f"- {one_line(name, 80)} ({shown(about, self.root)}{must}){': ' if told else ''}{told}")
        return "\n".join(lines)

    def example(self, schema: Schema, depth: int = 0) -> Any:
        schema = deref(schema, self.root)
        for key in ("example", "default", "const"):
            if key in schema:
                return schema[key]
        if schema.get("enum"):
            return schema["enum"][0]
        for key in ("anyOf", "oneOf", "allOf"):
            if schema.get(key) and depth < SHOWN_DEPTH:
                return self.example(schema[key][0], depth + 1)
        kind = kinds_of(schema)[:1]
        if kind == ("array",):
            return [self.example(schema.get("items", {}), depth + 1)] if depth < SHOWN_DEPTH else []
        if kind == ("object",):
            wanted = schema.get("properties", {}).items() if depth < SHOWN_DEPTH else ()
            required = schema.get("required", ())
            return {name: self.example(one, depth + 1) for name, one in wanted if name in required}
        return {"integer": 1, "number": 1.5, "boolean": True, "null": None}.get(kind[0] if kind else "", "...")

    def read(self, text: str) -> dict[str, Any]:
        """What the model wrote, as fitting arguments. A bare value is taken for the only (required) argument.

        >>> Arguments({"properties": {"n": {"type": "integer"}}, "required": ["n"]}).read('{"n": "7",}')
        {'n': 7}

        Raises:
            ToolError: it is no JSON object, or does not fit.
        """
        value = self._parsed(text)
        try:
            fitting: dict[str, Any] = fitted(value, {"type": "object", **self.schema}, self.root)
        except Misfit as misfit:
            raise ToolError(f"{misfit} {self.describe()}") from misfit
        return fitting

    def _parsed(self, text: str) -> Any:
        only = self._only()
        try:
            value = read_one(text, []) if text.strip() else {}
        except ParseError as error:
            if only and "{" not in text:
                return {only: text.strip()}
            raise ToolError(f"{error} {self.describe()}") from error
        return {only: value} if only and not isinstance(value, dict) else value

    def _only(self) -> str:
        """The one argument that a bare value can stand for, or ''."""
        required = tuple(self.schema.get("required", ()))
        candidates = required or self.names
        return candidates[0] if len(candidates) == 1 else ""


def shown(schema: Schema, root: Mapping[str, Any], depth: int = 0) -> str:
    """A schema in a few words.

    >>> shown({"type": "array", "items": {"enum": ["a", "b"]}}, {})
    'list of one of "a", "b"'
    """
    schema = deref(schema, root)
    if schema.get("enum"):
        return f"one of {listed(schema['enum'])}"
    parts = [one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ())]
    if parts and depth < SHOWN_DEPTH:
        return " or ".join(dict.fromkeys(shown(one, root, depth + 1) for one in parts))
    kinds = kinds_of(schema)
    if "array" in kinds:
        return f"list of {shown(schema.get('items', {}), root, depth + 1)}" if depth < SHOWN_DEPTH else "list"
    if "object" in kinds and schema.get("properties") and depth < SHOWN_DEPTH:
        required = schema.get("required", ())
        inner = [f"{name}{'' if name in required else '?'}: {shown(one, root, depth + 1)}"
                 for name, one in schema["properties"].items()]  # fmt: skip
        return "{" + ", ".join(inner[:SHOWN_CHOICES]) + (", ..." if len(inner) > SHOWN_CHOICES else "") + "}"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" from {low}" if low is not None else ""
    bounds += f" to {high}" if high is not None else ""
    form = f", {schema['format']}" if kinds == ("string",) and schema.get("format") else ""
    return " or ".join(KINDS.get(kind, kind) for kind in kinds) + bounds + form or "anything"
