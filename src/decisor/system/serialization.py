"""Dataclasses to and from JSON, the one reader of everything that comes as JSON or TOML.

A ``DocumentFormat`` decodes a document by the types of a dataclass's fields: it is read back as it was written, or
refused with the path of each fault, the value found and the expected one. pydantic does the work. It is imported
when the first document is read: that takes .06 s, and most commands read none.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

FIELDS: dict[type, tuple[str, ...]] = {}


def dataclass_field_names(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields; () for any other type."""
    if kind not in FIELDS:
        names = tuple(one.name for one in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
        FIELDS[kind] = names
    return FIELDS[kind]


def dataclass_values(value: object) -> dict[str, object]:
    """Return the fields of a dataclass by name."""
    return {name: getattr(value, name) for name in dataclass_field_names(type(value))}


def json_value(value: object) -> Any:
    """Convert dataclasses, tuples and mappings to values that JSON can hold.

    >>> from decisor.types import Replan
    >>> json_value({1: Replan(2, "no rows", ("look",))})
    {'1': {'after_step': 2, 'why': 'no rows', 'plan': ['look']}}
    """
    if names := dataclass_field_names(type(value)):
        return {name: json_value(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return value


def finite_json_value(value: object) -> Any:
    """Convert to a JSON value as ``json_value`` does, with None for infinite numbers and nan.

    >>> finite_json_value({"outcomes": (1.5, float("inf"))})
    {'outcomes': [1.5, None]}
    """
    return _finite(json_value(value))


def _finite(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encode_one_level(value: object) -> object:
    """Convert one level of a value for the JSON encoder, which is fast at the rest.

    A dataclass becomes its fields; a value that JSON cannot hold becomes text.
    """
    if dataclass_field_names(type(value)):
        return dataclass_values(value)
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else str(value)


ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=encode_one_level)


def json_text(value: object) -> str:
    """Convert to JSON as ``json_value`` does, on one line.

    Text that is no valid Unicode is replaced: it could not be stored.
    """
    try:
        text = ENCODER.encode(value)
    except TypeError:  # a key that is no text
        text = ENCODER.encode(json_value(value))
    # A lone surrogate of a model's reply would make the file unreadable.
    return text.encode("utf-8", "replace").decode()


T = TypeVar("T")
DocumentPath = tuple[str | int, ...]
"""Keys from the root of a document to a value; items of a list count from 0."""
KIND_WORDS = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple": "a list",
    "list": "a list",
    "dict": "a table",
    "dataclass": "a table",
    "model": "a table",
    "none": "null",
}
LIMIT_WORDS = {
    "greater_than": "above {gt:,g}",
    "greater_than_equal": "at least {ge:,g}",
    "less_than_equal": "at most {le:,g}",
    "finite_number": "a finite number",
}
SHOWN_CHARS = 60
SECTION_NAME = "[name]"
"""The key under which a section holds its name; no person writes it."""


class DecodeError(ValueError):
    """The faults of a document, each with its path."""

    def __init__(self, faults: Sequence[tuple[DocumentPath, str]]) -> None:
        super().__init__("; ".join(f"{format_json_path(path) or 'it'} {words}" for path, words in faults))
        self.faults = tuple(faults)


@dataclasses.dataclass(frozen=True)
class TextRule:
    """A rule for a text, as in ``Annotated[str, TextRule()]``: it is not blank, and fits a pattern."""

    pattern: str = ""
    """A regular expression to search for; '' allows any text."""
    form: str = ""
    """The pattern in words, such as YYYY-MM-DD."""
    is_list: bool = False
    """Whether the value is a tuple of such texts, for which a document may hold a single text."""
    joint: str = ""
    """The text that joins the items of a list to one text, such as SQL of statements, which may be blank; '' keeps the
    tuple."""

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> Any:
        from pydantic_core import PydanticCustomError, core_schema

        def check(text: str) -> str:
            if not text.strip():
                raise PydanticCustomError("rule", "is empty")
            if not re.search(self.pattern, text):
                facts = {"found": show_found_value(text), "form": self.form or self.pattern}
                raise PydanticCustomError("rule", "{found} is not in the form {form}", facts)
            return text

        text = core_schema.no_info_after_validator_function(check, core_schema.str_schema())
        if not self.is_list:
            return text
        several = core_schema.tuple_variable_schema(text)
        if self.joint:
            joined = core_schema.no_info_after_validator_function(self.joint.join, several)
            return core_schema.union_schema([core_schema.str_schema(), joined])
        single = core_schema.no_info_after_validator_function(lambda text: (text,), text)
        return core_schema.union_schema([single, several])

    def __get_pydantic_json_schema__(self, schema: object, handler: object) -> dict[str, Any]:
        text = {"type": "string", "pattern": self.pattern or r"\S"}
        found: dict[str, Any] = {"anyOf": [text, {"type": "array", "items": text}]} if self.is_list else text
        return found | ({"description": self.form} if self.form else {})


@dataclasses.dataclass(frozen=True)
class SectionName:
    """The mark of a field ``name`` for the name of a section, as in ``Annotated[str, SectionName()]``.

    ``TomlFile.name_sections`` sets it; a key ``name`` in the section is refused.
    """

    def __get_pydantic_json_schema__(self, schema: object, handler: object) -> dict[str, Any]:
        from pydantic_core import PydanticOmit

        raise PydanticOmit


BUILDING = threading.RLock()


@dataclasses.dataclass(frozen=True)
class DocumentFormat(Generic[T]):
    """The format of a JSON or TOML document, given by a dataclass.

    >>> from decisor.types import Replan
    >>> replans = DocumentFormat(Replan)
    >>> replans.decode('{"after_step": 2, "why": "", "plan": ["look"]}')
    Replan(after_step=2, why='', plan=('look',))
    >>> replans.decode('{"after_step": "2", "why": ""}')
    Traceback (most recent call last):
    decisor.system.serialization.DecodeError: after_step is to be a whole number, not "2"; it needs plan
    """

    kind: type[T]
    """A dataclass; a field with a default may be missing."""
    is_closed: bool = False
    """Whether unknown keys are refused, and infinite numbers; otherwise unknown keys are ignored."""
    keys: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The key of a field in the document, for fields of another name than their key; SECTION_NAME for ``name``."""

    def decode(self, text: str | bytes) -> T:
        """Decode a JSON text; raise DecodeError if it does not fit."""
        from pydantic import ValidationError

        try:
            return self.adapter.validate_json(text)
        except ValidationError as error:
            faults = list(self.explain(error, text))
        raise DecodeError(faults)

    def decode_value(self, content: object) -> T:
        """Decode a value as ``json.loads`` or ``tomllib`` returns it; a date counts as its text."""
        return self.decode(json.dumps(content, default=str))

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        # pydantic's classes are unfinished while a thread builds an adapter of them.
        with BUILDING:
            return self.build_adapter()

    def build_adapter(self, has_descriptions: bool = False) -> TypeAdapter[T]:
        from pydantic import ConfigDict, TypeAdapter
        from typing_extensions import TypeAliasType

        settings = ConfigDict(
            # A text "2" is no number: a document is read back as written, or refused.
            strict=True,
            extra="forbid" if self.is_closed else "ignore",
            # TOML can write inf and nan; a person's file is to hold neither.
            allow_inf_nan=not self.is_closed,
            alias_generator=(lambda name: self.keys.get(name, name)) if self.keys else None,
            use_attribute_docstrings=has_descriptions,
        )
        # pydantic takes no settings for a dataclass, but does for an alias of it, and hands them down to its fields.
        return TypeAdapter(TypeAliasType("Document", self.kind), config=settings)  # type: ignore[arg-type]

    def json_schema(self, title: str) -> dict[str, Any]:
        """Return the JSON Schema of the format, described by the lines under the fields of its classes."""
        schema = self.build_adapter(has_descriptions=True).json_schema()
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **_without_noise(schema)}

    def explain(self, error: ValidationError, text: str | bytes) -> Iterator[tuple[DocumentPath, str]]:
        """Yield the path and the text of each fault."""
        missing: dict[DocumentPath, list[str]] = {}
        expected: dict[DocumentPath, list[str]] = {}
        found: dict[DocumentPath, str] = {}
        told: list[DocumentPath] = []
        document = None
        for fault in error.errors(include_url=False):
            kind, loc, facts = fault["type"], fault["loc"], fault.get("ctx", {})
            if kind == "json_invalid":
                deep = facts["error"].startswith("recursion limit")
                yield (), "is nested too deeply" if deep else f"is not JSON: {facts['error']}"
                return
            document = json.loads(text) if document is None else document
            path = _path_in_document(loc, document)
            if kind == "missing":
                missing.setdefault(path, []).append(str(loc[-1]))
            elif kind in ("unexpected_keyword_argument", "extra_forbidden"):
                known = self.known_keys(path[:-1])
                near = get_close_matches(str(path[-1]), known, 1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                yield path, f"is not known here; there is {', '.join(known)}{hint}"
            elif kind == "rule":
                told.append(path)
                yield path, "is not a name that can stand here" if loc[-1] == "[key]" else fault["msg"]
            elif kind in LIMIT_WORDS:
                # The kind of the value is right: other kinds that may stand there are no news.
                if path not in told:
                    yield path, f"is to be {LIMIT_WORDS[kind].format(**facts)}, not {show_found_value(fault['input'])}"
                told.append(path)
            else:
                words = KIND_WORDS.get(kind.removesuffix("_type").removesuffix("_from_float"))
                if kind == "literal_error":
                    words = facts["expected"].replace("'", '"')
                expected.setdefault(path, []).append(words or fault["msg"].removeprefix("Input should be "))
                found[path] = show_found_value(fault["input"])
        for path, alternatives in expected.items():
            # A list with a wrong text is no text either: of the two, only what is wrong inside is told.
            if not any(inner[: len(path)] == path for inner in (*told, *(set(expected) - {path}))):
                kinds = dict.fromkeys(alternatives)
                if "a number" in kinds:
                    kinds.pop("a whole number", None)
                yield path, f"is to be {' or '.join(kinds)}, not {found[path]}"
        for path, names in missing.items():
            yield path, f"needs {', '.join(names)}"

    def known_keys(self, path: DocumentPath) -> list[str]:
        """Return the keys that may stand in a table of the document."""
        schema = self.adapter.json_schema()
        parts = _alternatives(schema, schema)
        for step in path:
            parts = [
                option
                for part in parts
                for inside in (
                    part.get("properties", {}).get(step),
                    part.get("items"),
                    part.get("additionalProperties"),
                    *part.get("patternProperties", {}).values(),
                )
                if isinstance(inside, dict)
                for option in _alternatives(inside, schema)
            ]
        return [name for part in parts for name in part.get("properties", {})]


def _alternatives(part: dict[str, Any], schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of which a value has to fit one, without references."""
    if "$ref" in part:
        return _alternatives(schema["$defs"][part["$ref"].rpartition("/")[2]], schema)
    options = part.get("anyOf") or part.get("oneOf")
    return [inner for option in options for inner in _alternatives(option, schema)] if options else [part]


def _without_noise(part: Any) -> Any:
    """Remove titles, which only repeat names, and defaults from a JSON Schema."""
    if isinstance(part, list):
        return [_without_noise(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        name: {key: _without_noise(item) for key, item in inside.items()}
        if name in ("properties", "$defs")
        else _without_noise(inside)
        for name, inside in part.items()
        if name not in ("title", "default")
    }


def _path_in_document(loc: DocumentPath, document: Any) -> DocumentPath:
    """Return the steps of pydantic's location that lead into a document: not names of union members or fields."""
    path: list[str | int] = []
    for step in loc:
        try:
            # pydantic puts names of union members and fields between the steps: what does not lead on is left out.
            document = document[step]
        except (LookupError, TypeError):
            continue
        path.append(step)
    return tuple(path)


def show_found_value(value: object) -> str:
    """Format a value of a document for a complaint.

    >>> show_found_value("low"), show_found_value([1, 2]), show_found_value(None)
    ('"low"', 'a list', 'null')
    """
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    # default=str: TOML has dates, which JSON has not.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def format_json_path(path: DocumentPath) -> str:
    """Format the path of a value in a JSON document.

    >>> format_json_path(("content", "evidence", "queries", 0, "tool"))
    'content.evidence.queries[0].tool'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
