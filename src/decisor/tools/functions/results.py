"""What a user's function or API returned, as records: one for each row of a list, values cut where they are long.

It is data: it stands in records, and its texts hide nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from decisor.encoding import json_value
from decisor.errors import ToolError
from decisor.outside import clean_text, clean_value, framed_observation
from decisor.types import Observation, Record, Value


@dataclass(frozen=True)
class Cut:
    """At most ``rows`` records of an observation, ``fields`` of a record, ``name`` characters of a field's name and
    ``chars`` of a value."""

    rows: int = 200
    fields: int = 200
    name: int = 200
    chars: int = 4000


def observe(value: object, source: str, cut: Cut = Cut()) -> Observation:
    """
    >>> [dict(record.fields) for record in observe({"total": 2, "plants": [{"id": 1}, {"id": 2}]}, "api").records]
    [{'total': 2}, {'id': 1}, {'id': 2}]

    Raises:
        ToolError: it is nested too deeply, or in itself.
    """
    try:
        if isinstance(value, Observation):
            return framed_observation(value)
        return observe_plain(json_value(value), source, cut)
    except RecursionError as error:
        raise ToolError(f"What {source} returned is nested too deeply.") from error


def observe_plain(value: Value, source: str, cut: Cut) -> Observation:
    if value is None:
        return Observation(note="(it returned nothing)")
    rows, total = rows_of(value)
    first = rows[: cut.rows]
    records = tuple(
        Record(f"r{number}", {clip(clean_text(str(name)), cut.name): short(one, cut.chars)
                              for name, one in islice(row.items(), cut.fields)}, source=source)
        for number, row in enumerate(first, 1)
    )  # fmt: skip
    note = "" if records else "(it returned an empty list)"
    if more := max((len(row) for row in first), default=0) - cut.fields:
        note = note or (f"(a record has {more:,} more fields, which are left out)" if more > 0 else "")
    return Observation(records, note, truncated=len(first) < len(rows), total=total)


def rows_of(value: Value) -> tuple[list[Mapping[str, Value]], int | None]:
    """The rows of a value, and how many it has in all. An object with one list of objects is that list, after what
    else the object says."""
    if isinstance(value, list):
        return [row if isinstance(row, Mapping) else {"value": row} for row in value], len(value)
    if not isinstance(value, Mapping):
        return [{"value": value}], None
    lists = {name: one for name, one in value.items() if isinstance(one, list) and one and isinstance(one[0], Mapping)}
    if len(lists) != 1:
        return [value], None
    rows = [row if isinstance(row, Mapping) else {"value": row} for items in lists.values() for row in items]
    rest = {name: one for name, one in value.items() if name not in lists}
    return [rest, *rows] if rest else rows, len(rows) + bool(rest)


def short(value: Value, most: int) -> Value:
    """
    >>> short(float("nan"), 9), short("abcdefghijkl", 5), short({"a": [1, 2, 3]}, 5)
    ('nan', 'abcde... (7 more characters)', '{"a":... (11 more characters)')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | list):
        text = json.dumps(clean_value(value), ensure_ascii=False, default=str)
        whole: Value = json.loads(text) if len(text) <= most else clip(text, most)
        return whole
    return clip(clean_text(str(value)), most)


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most:,} more characters)"
