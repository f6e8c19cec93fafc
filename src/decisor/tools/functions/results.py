"""What a user's function or API returned, as records: one for each row of a list, values cut where they are long."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from decisor.trace.events import plain
from decisor.types import Observation, Record, Value


@dataclass(frozen=True)
class Cut:
    """At most ``rows`` records of an observation, and ``chars`` of a value."""

    rows: int = 200
    chars: int = 4000


def observed(value: Any, source: str, cut: Cut = Cut()) -> Observation:
    """
    >>> [dict(record.fields) for record in observed({"total": 2, "plants": [{"id": 1}, {"id": 2}]}, "api").records]
    [{'total': 2}, {'id': 1}, {'id': 2}]
    """
    if isinstance(value, Observation):
        return value
    value = plain(value)
    if value is None:
        return Observation(note="(it returned nothing)")
    rows, total = rows_of(value)
    kept = rows[: cut.rows]
    records = tuple(
        Record(f"r{number}", {str(name): short(one, cut.chars) for name, one in row.items()}, source=source)
        for number, row in enumerate(kept, 1)
    )
    note = "" if records else "(it returned an empty list)"
    return Observation(records, note, truncated=len(kept) < len(rows), total=total)


def rows_of(value: Any) -> tuple[list[Mapping[str, Any]], int | None]:
    """The rows of a value, and how many it has in all. An object with one list of objects is that list, after what
    else the object says."""
    if isinstance(value, list):
        return [row if isinstance(row, Mapping) else {"value": row} for row in value], len(value)
    if not isinstance(value, Mapping):
        return [{"value": value}], None
    lists = [name for name, one in value.items() if isinstance(one, list) and one and isinstance(one[0], Mapping)]
    if len(lists) != 1:
        return [value], None
    rest = {name: one for name, one in value.items() if name != lists[0]}
    rows = [row if isinstance(row, Mapping) else {"value": row} for row in value[lists[0]]]
    return [rest, *rows] if rest else rows, len(rows) + bool(rest)


def short(value: Any, most: int) -> Value:
    """
    >>> short(float("nan"), 9), short("abcdefghijkl", 5), short({"a": [1, 2, 3]}, 5)
    ('nan', 'abcde... (7 more characters)', '{"a":... (11 more characters)')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | list):
        text = json.dumps(value, ensure_ascii=False, default=str)
        held: Value = json.loads(text) if len(text) <= most else clipped(text, most)
        return held
    return clipped(str(value), most)


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most:,} more characters)"
