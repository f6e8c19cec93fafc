"""The arguments of a tool: a JSON object that a JSON schema describes. A schema is shown to the model in words, and
what the model writes is read forgivingly and fitted to it; what does not fit goes back with a complaint.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from decisor.errors import ParseError, ToolError
from decisor.outside import json_line, one_line
from decisor.replies.lenient_json import read_one
from decisor.tools.functions.json_schema import Misfit, Schema, SchemaWords, fit, mapping, texts
from decisor.types import Value

MOST_LINES, LONGEST_EXAMPLE, LONGEST_COMPLAINT = 100, 2000, 1000
MOST_NAMES, LONGEST_NAME = 40, 80


@dataclass(frozen=True)
class Arguments:
    """What a tool takes: a schema of type object. ``root``: the document that its references point into."""

    schema: Schema
    root: Schema = field(default_factory=dict)

    @property
    def properties(self) -> Schema:
        return mapping(self.schema.get("properties"))

    @property
    def required(self) -> tuple[str, ...]:
        return texts(self.schema.get("required"))

    def describe(self) -> str:
        """One line each, and an example."""
        if not self.properties:
            return "Input: {}"
        lines = [f"Input: one JSON object, such as {self._example_text()}"]
        for name in list(self.properties)[:MOST_LINES]:
            words = SchemaWords(self.root)
            about = one_line(str(words.look(self.properties[name]).get("description", "")), 256)
            must = ", required" if name in self.required else ""
            kind = words.describe(self.properties[name])
            lines.append(f"- {one_line(name, LONGEST_NAME)} ({kind}{must}){': ' if about else ''}{about}")
        if len(self.properties) > MOST_LINES:
            lines.append(f"- and {len(self.properties) - MOST_LINES} more")
        return "\n".join(lines)

    def example(self) -> Mapping[str, Value]:
        """One that has what is required."""
        names = [name for name in self.properties if name in self.required]
        return {name: SchemaWords(self.root).example(self.properties[name]) for name in names}

    def _example_text(self) -> str:
        """Nothing in it hides, and it is never long, whoever wrote the schema."""
        example = self.example()
        with suppress(ValueError):  # an integer of thousands of digits
            if len(text := json_line(example)) <= LONGEST_EXAMPLE:
                return text
        names = [name for name in example if len(name) <= LONGEST_NAME]
        return json_line(dict.fromkeys(names[:MOST_NAMES], "..."))

    def read(self, text: str) -> Mapping[str, Value]:
        """What the model wrote, as fitting arguments. A bare value is taken for the only (required) argument.

        >>> Arguments({"properties": {"n": {"type": "integer"}}, "required": ["n"]}).read('{"n": "7",}')
        {'n': 7}

        Raises:
            ToolError: it is no JSON object, or does not fit.
        """
        value = self._parse(text)
        try:
            return mapping(fit(value, {"type": "object", **self.schema}, self.root))
        except Misfit as misfit:
            raise ToolError(f"{one_line(str(misfit), LONGEST_COMPLAINT)} {self.describe()}") from misfit

    def _parse(self, text: str) -> Value:
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
        candidates = self.required or tuple(self.properties)
        return candidates[0] if len(candidates) == 1 else ""
