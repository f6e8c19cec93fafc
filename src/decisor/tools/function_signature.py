"""The arguments of a Python function: its type hints and docstring as a JSON schema, read by pydantic."""

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
from decisor.tools.arguments import Schema, format_short_json
from decisor.types import Value

ABOUT = re.compile(r"^\s*(?::param\s+)?\*{0,2}(?P<name>\w+)\*{0,2}\s*(?:\([^)]*\))?\s*:\s*(?P<about>\S.*)$")


MOST_COMPLAINTS = 5


@dataclass(frozen=True)
class FunctionSignature:
    """The arguments of a function."""

    schema: Schema
    """Of all arguments together."""
    adapter: TypeAdapter[dict[str, object]]
    """Converts them to Python values."""

    def convert(self, arguments: Mapping[str, Value]) -> dict[str, object]:
        """Convert arguments to Python values.

        Raise ToolError if a value is impossible, such as a date that does not exist.
        """
        try:
            # By way of JSON, whose texts pydantic reads as dates, decimals and enums.
            return self.adapter.validate_json(json.dumps(arguments))
        except ValidationError as error:
            raise ToolError(f"An argument cannot be used: {format_validation_error(error)}") from error


class DecimalNumberSchema(GenerateJsonSchema):
    """A generator of schemas in which a decimal is a number. Pydantic accepts it as text too."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return {"type": "number"}


def read_signature(function: Callable[..., object]) -> FunctionSignature:
    """Read the arguments of a function.

    Raise SetupError if JSON cannot hold a hint or an argument is positional only.
    """
    name = getattr(function, "__name__", str(function))
    try:
        parameters = inspect.signature(function).parameters
        hints = get_type_hints(find_hint_source(function), include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise SetupError(f"The hints of {name} cannot be read: {error}.") from error
    about = parse_argument_descriptions(inspect.getdoc(function) or "", set(parameters))
    fields: dict[str, object] = {}
    for one in parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.kind is one.POSITIONAL_ONLY:
            raise SetupError(f"{name} takes {one.name} by position only; a tool's arguments are named.")
        hint = describe_hint(hints.get(one.name, Any), about.get(one.name, ""))
        # Each alone first, so that the complaint names the argument.
        build_arguments_adapter({one.name: Required[hint]}, f"{name}({one.name})")
        fields[one.name] = Required[hint] if one.default is one.empty else NotRequired[hint]
    adapter = build_arguments_adapter(fields, name)
    return FunctionSignature(adapter.json_schema(schema_generator=DecimalNumberSchema), adapter)


def build_arguments_adapter(fields: Mapping[str, object], where: str) -> TypeAdapter[dict[str, object]]:
    """Build the adapter of arguments; raise SetupError if JSON cannot hold their values."""
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


def describe_hint(hint: Any, about: str) -> Any:
    """Add a description to a hint: from the docstring, else from ``Annotated``."""
    notes = [one for one in get_args(hint)[1:] if isinstance(one, str)] if get_origin(hint) is Annotated else []
    text = about or "".join(notes[:1])
    return Annotated[hint, Field(description=text)] if text else hint


def find_hint_source(function: Callable[..., object]) -> Callable[..., object]:
    """Find the callable with the hints.

    Of a partial the wrapped function, of a class its constructor, of an object its call.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return cast("Callable[..., object]", function.__init__)  # type: ignore[misc]
    return function if inspect.isroutine(function) else type(function).__call__


def parse_argument_descriptions(docstring: str, names: set[str]) -> dict[str, str]:
    """Parse the descriptions of arguments in a docstring, in Google's or Sphinx's form.

    >>> parse_argument_descriptions("Args:\\n    city: where\\n    n (int): how many", {"city", "n"})
    {'city': 'where', 'n': 'how many'}
    """
    lines = (ABOUT.match(line) for line in docstring.splitlines())
    return {line["name"]: line["about"].strip() for line in lines if line and line["name"] in names}


def format_validation_error(error: ValidationError) -> str:
    """Format pydantic's complaints on one line, each with its place and the value there."""
    parts = []
    for one in error.errors(include_url=False, include_context=False)[:MOST_COMPLAINTS]:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in one["loc"]).lstrip(".")
        parts.append(f"{place}: {one['msg']}; you wrote {format_short_json(one['input'])}.")
    return " ".join(parts)
