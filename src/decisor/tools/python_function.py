"""Any Python function as a tool: type hints are the schema of its arguments, its docstring is the description.

The function is trusted code, named by a person; the LLM writes only its arguments, which pydantic converts to Python
values. It runs in a thread (or, if it is async, in the event loop) up to a deadline. Python cannot stop a thread: one
that exceeds its deadline runs on by itself, and after a few of those the tool refuses further calls. A returned value
becomes records, one for each row of a list, with long values cut. It is data: it stands in records, and hidden
characters are removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import json
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, NotRequired, Required, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

from decisor.errors import SetupError, ToolError
from decisor.system.serialization import json_value
from decisor.system.settings import import_named_module
from decisor.system.text import clean_text, clean_value, frame_observation, quote_on_one_line
from decisor.tools.arguments import Schema, ToolArguments, format_short_json
from decisor.types import Observation, Record, Value


@dataclass(frozen=True)
class ResultLimits:
    """Upper bounds for a result."""

    rows: int = 200
    """Records of an observation."""
    fields: int = 200
    """Fields of a record."""
    name: int = 200
    """Characters of a field's name."""
    chars: int = 4000
    """Characters of a value."""


def observe_result(value: object, source: str, cut: ResultLimits = ResultLimits()) -> Observation:
    """Convert a returned value to an observation.

    >>> [dict(record.fields)
    ...     for record in observe_result({"total": 2, "plants": [{"id": 1}, {"id": 2}]}, "api").records]
    [{'total': 2}, {'id': 1}, {'id': 2}]

    Raises:
        ToolError: it is nested too deeply, or in itself.
    """
    try:
        if isinstance(value, Observation):
            return frame_observation(value)
        return observe_json(json_value(value), source, cut)
    except RecursionError as error:
        raise ToolError(f"What {source} returned is nested too deeply.") from error


def observe_json(value: Value, source: str, cut: ResultLimits) -> Observation:
    if value is None:
        return Observation(note="(it returned nothing)")
    rows, total = split_result_rows(value)
    first = rows[: cut.rows]
    records = tuple(
        Record(
            f"r{number}",
            {
                clip_with_count(clean_text(str(name)), cut.name): shorten_value(one, cut.chars)
                for name, one in islice(row.items(), cut.fields)
            },
            source=source,
        )
        for number, row in enumerate(first, 1)
    )
    note = "" if records else "(it returned an empty list)"
    if more := max((len(row) for row in first), default=0) - cut.fields:
        note = note or (f"(a record has {more:,} more fields, which are left out)" if more > 0 else "")
    return Observation(records, note, truncated=len(first) < len(rows), total=total)


def split_result_rows(value: Value) -> tuple[list[Mapping[str, Value]], int | None]:
    """Return the rows of a value and their number, None if it is no list.

    An object with one list of objects counts as that list, after a row of its other fields.
    """
    if isinstance(value, list):
        return [row if isinstance(row, Mapping) else {"value": row} for row in value], len(value)
    if not isinstance(value, Mapping):
        return [{"value": value}], None
    lists = {name: one for name, one in value.items() if isinstance(one, list) and one and isinstance(one[0], Mapping)}
    # With several lists it is not certain which of them holds the rows.
    if len(lists) != 1:
        return [value], None
    rows = [row if isinstance(row, Mapping) else {"value": row} for items in lists.values() for row in items]
    rest = {name: one for name, one in value.items() if name not in lists}
    return [rest, *rows] if rest else rows, len(rows) + bool(rest)


def shorten_value(value: Value, most: int) -> Value:
    """Shorten a value to ``most`` characters; numbers that are not finite become text.

    >>> shorten_value(float("nan"), 9), shorten_value("abcdefghijkl", 5), shorten_value({"a": [1, 2, 3]}, 5)
    ('nan', 'abcde... (7 more characters)', '{"a":... (11 more characters)')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | list):
        text = json.dumps(clean_value(value), ensure_ascii=False, default=str)
        whole: Value = json.loads(text) if len(text) <= most else clip_with_count(text, most)
        return whole
    return clip_with_count(clean_text(str(value)), most)


def clip_with_count(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most:,} more characters)"


SPEC = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
MOST_OVERDUE, OVERDUE = 3, "decisor-overdue"
CUT = ResultLimits()


@dataclass
class FunctionTool:
    """A Python function as a tool. Satisfies ``types.Tool``. ``seconds``: wall-clock limit of one call.

    Raises:
        SetupError: a hint of the function cannot be read from JSON.
    """

    function: Callable[..., object]
    seconds: float = 30.0
    cut: ResultLimits = CUT
    running: set[threading.Thread] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.signature = read_signature(self.function)  # what is wrong with the hints is said now

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "") or type(self.function).__name__

    @cached_property
    def arguments(self) -> ToolArguments:
        return ToolArguments(self.signature.schema, self.signature.schema)

    def describe(self) -> str:
        about = inspect.getdoc(self.function) or "(no description)"
        return f"{about}\n{self.arguments.describe()}"

    async def call(self, text: str) -> Observation:
        """Call the function. Raise ToolError if the arguments do not fit, or it fails or takes too long."""
        arguments = self.signature.convert(self.arguments.read(text))
        try:
            if inspect.iscoroutinefunction(self.function):
                async with asyncio.timeout(self.seconds):
                    value: object = await self.function(**arguments)
            else:
                value = await self._in_thread(arguments)
            return observe_result(value, self.name, self.cut)
        except TimeoutError as error:
            raise ToolError(f"{self.name} took longer than {self.seconds:g} s.") from error
        except ToolError:
            raise
        except Exception as error:
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {quote_on_one_line(str(error))}") from error

    async def close(self) -> None:
        """Close nothing; the tool holds nothing open."""

    async def _in_thread(self, arguments: dict[str, object]) -> object:
        """Run the function in a daemon thread, which does not keep the process alive.

        Raise TimeoutError, or its exception.
        """
        self.running = {thread for thread in self.running if thread.is_alive()}
        # Threads cannot be stopped, so their number is bounded instead.
        if len(self.running) >= MOST_OVERDUE and all(thread.name == OVERDUE for thread in self.running):
            raise ToolError(f"{self.name} is still busy with {len(self.running)} calls that ran over their deadline.")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

        def settle(value: object, error: BaseException | None) -> None:
            if not done.done():
                done.set_result((value, error))

        def work() -> None:
            value: object = None
            failure: BaseException | None = None
            try:
                value = context.run(self.function, **arguments)
            except BaseException as error:  # SystemExit of a user's function ends its call, not us
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, value, failure)

        # The function sees the context variables of the run, as an async one does.
        context = contextvars.copy_context()
        thread = threading.Thread(target=work, name=self.name, daemon=True)
        self.running.add(thread)
        thread.start()
        try:
            async with asyncio.timeout(self.seconds):
                value, failure = await done
        except TimeoutError:
            thread.name = OVERDUE
            raise
        if failure is not None:
            raise failure if isinstance(failure, Exception) else RuntimeError(type(failure).__name__)
        return value


def load_function(spec: str) -> Callable[..., object]:
    """Load the function that ``module:function`` names, from modules of the working directory first.

    Only for names that a person typed.

    Raises:
        SetupError: there is no such module or function, or the module fails.
    """
    module_name, _, path = spec.partition(":")
    target: object = import_named_module(spec)
    for name in path.split("."):
        if not hasattr(target, name):
            functions = [one for one, value in vars(target).items() if inspect.isfunction(value) and one[0] != "_"]
            own = [one for one in functions if getattr(target, one).__module__ == module_name]
            raise SetupError(f"{spec}: there is no {name}. {module_name} has {', '.join(own) or 'no functions'}.")
        target = getattr(target, name)
    if not callable(target):
        raise SetupError(f"{spec} is not a function but {type(target).__name__}.")
    return target


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
