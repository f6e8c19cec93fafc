"""The arguments that a Python function takes, by pydantic: its type hints as a JSON schema, and JSON values as the
Python values that the hints name."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, Required, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

from decisor.errors import SetupError, ToolError
from decisor.tools.functions.json_schema import Schema, literal
from decisor.types import Value

ABOUT = re.compile(r"^\s*(?::param\s+)?\*{0,2}(?P<name>\w+)\*{0,2}\s*(?:\([^)]*\))?\s*:\s*(?P<about>\S.*)$")
MOST_COMPLAINTS = 5


@dataclass(frozen=True)
class Signature:
    """``schema`` of the arguments; ``adapter`` makes Python values of them."""

    schema: Schema
    adapter: TypeAdapter[dict[str, object]]

    def convert(self, arguments: Mapping[str, Value]) -> dict[str, object]:
        """Raises ToolError where a value names no such thing (a date that does not exist)."""
        try:
            return self.adapter.validate_json(json.dumps(arguments))
        except ValidationError as error:
            raise ToolError(f"An argument cannot be used: {complaint(error)}") from error


class NumberSchema(GenerateJsonSchema):
    """A decimal is a number to a model; pydantic takes it from a text too."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return {"type": "number"}


def signature(function: Callable[..., object]) -> Signature:
    """Raises SetupError where a hint cannot be read from JSON, or an argument can only be given by position."""
    name = getattr(function, "__name__", str(function))
    try:
        parameters = inspect.signature(function).parameters
        hints = get_type_hints(hint_source(function), include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise SetupError(f"The hints of {name} cannot be read: {error}.") from error
    about = descriptions(inspect.getdoc(function) or "", set(parameters))
    fields: dict[str, object] = {}
    for one in parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.kind is one.POSITIONAL_ONLY:
            raise SetupError(f"{name} takes {one.name} by position only; a tool's arguments are named.")
        hint = with_description(hints.get(one.name, Any), about.get(one.name, ""))
        adapter_of({one.name: Required[hint]}, f"{name}({one.name})")
        fields[one.name] = Required[hint] if one.default is one.empty else NotRequired[hint]
    adapter = adapter_of(fields, name)
    return Signature(adapter.json_schema(schema_generator=NumberSchema), adapter)


def adapter_of(fields: Mapping[str, object], where: str) -> TypeAdapter[dict[str, object]]:
    """Raises SetupError where JSON cannot hold such values."""
    kind = TypedDict("Arguments", dict(fields))  # type: ignore[misc]  # noqa: UP013
    kind.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
    try:
        adapter: TypeAdapter[dict[str, object]] = TypeAdapter(kind)  # type: ignore[arg-type]
        adapter.json_schema()
    except PydanticUserError as error:
        why = str(error.message).splitlines()[0].partition(". ")[0].rstrip(".")
        raise SetupError(
            f"{where} has a type which JSON cannot hold: {why}. A tool takes texts, numbers, truth values, dates, "
            "lists, dicts, dataclasses, typed dicts, enums, Literal and pydantic models."
        ) from error
    return adapter


def with_description(hint: Any, about: str) -> Any:
    """With what the docstring says of the argument, or the text in ``Annotated``."""
    notes = [one for one in get_args(hint)[1:] if isinstance(one, str)] if get_origin(hint) is Annotated else []
    text = about or "".join(notes[:1])
    return Annotated[hint, Field(description=text)] if text else hint


def hint_source(function: Callable[..., object]) -> Callable[..., object]:
    """What holds the hints: of a partial what it wraps, of a class its constructor, of an object its call."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return cast("Callable[..., object]", function.__init__)  # type: ignore[misc]
    return function if inspect.isroutine(function) else type(function).__call__


def descriptions(docstring: str, names: set[str]) -> dict[str, str]:
    """What a docstring says of arguments, in Google's or Sphinx's form.

    >>> descriptions("Args:\\n    city: where\\n    n (int): how many", {"city", "n"})
    {'city': 'where', 'n': 'how many'}
    """
    lines = (ABOUT.match(line) for line in docstring.splitlines())
    return {line["name"]: line["about"].strip() for line in lines if line and line["name"] in names}


def complaint(error: ValidationError) -> str:
    """Pydantic's complaints in one line, each with the place and what stood there."""
    parts = []
    for one in error.errors(include_url=False, include_context=False)[:MOST_COMPLAINTS]:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in one["loc"]).lstrip(".")
        parts.append(f"{place}: {one['msg']}; you wrote {literal(one['input'])}.")
    return " ".join(parts)
