"""The schema of records: made of the classes of ``format``, shipped beside them as ``schema.json``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import TypeAdapter, ValidationError

from decisor.decision_record.format import DecisionRecord
from decisor.errors import SetupError
from decisor.outside import one_line

ID = "urn:decisor:decision-record:1"
LATER = ("refuses", "run_digest")
"""Fields that came after the first records, which may do without them."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def published() -> str:
    """The text of ``schema.json``."""
    return files("decisor.decision_record").joinpath("schema.json").read_text("utf-8")


def derived() -> str:
    """The same, made of the classes."""
    schema = adapter().json_schema(mode="serialization")
    tidy(schema)
    whole = {"$schema": DIALECT, "$id": ID, **schema}
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


@cache
def adapter() -> TypeAdapter[DecisionRecord]:
    return TypeAdapter(DecisionRecord)


def tidy(part: Any) -> None:
    """Every object has all of its fields and no others; titles only repeat names."""
    if isinstance(part, list):
        for one in part:
            tidy(one)
    if not isinstance(part, dict):
        return
    if isinstance(fields := part.get("properties"), dict):
        part |= {"required": [name for name in fields if name not in LATER], "additionalProperties": False}
    for name in ("title", "default"):
        part.pop(name, None)
    if "description" in part:
        part["description"] = " ".join(part["description"].replace("``", "`").split())
    for name, inside in part.items():
        for one in inside.values() if name in ("properties", "$defs") else [inside]:
            tidy(one)


def record_from(plain: Mapping[str, object], where: str) -> DecisionRecord:
    """Raises SetupError where it does not meet the schema."""
    try:
        record = adapter().validate_json(json.dumps(plain), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        what = " is missing" if first["type"] == "missing" else f": {one_line(first['msg'], 200)}"
        raise SetupError(f"{where} does not meet the schema: {place_of(first['loc'])}{what}.") from error
    if wrong := next(strangers(plain, record), ""):
        raise SetupError(f"{where} does not meet the schema: {wrong}.")
    return record


def strangers(plain: Any, value: Any, place: str = "") -> Iterator[str]:
    """Fields that are too many or too few."""
    if dataclasses.is_dataclass(value):
        names = [one.name for one in dataclasses.fields(value)]
        for name in [*plain, *names]:
            inside = f"{place}.{name}".lstrip(".")
            if name not in names or (name not in plain and name not in LATER):
                yield f"{inside} is {'missing' if name in names else 'no field of it'}"
            elif name in plain:
                yield from strangers(plain[name], getattr(value, name), inside)
    elif isinstance(value, tuple | list) and isinstance(plain, list):
        for at, (one, other) in enumerate(zip(plain, value, strict=False)):
            yield from strangers(one, other, f"{place}[{at}]")


def place_of(path: tuple[int | str, ...]) -> str:
    """
    >>> place_of(("content", "evidence", "queries", 0, "tool"))
    'content.evidence.queries[0].tool'
    """
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path).lstrip(".")
