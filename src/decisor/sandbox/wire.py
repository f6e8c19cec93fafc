"""Frames between parent and worker: four bytes of length, big-endian, then a JSON object in UTF-8.

The values that engines return become plain values within the caps, in one form for all engines. Nodes, relationships
and paths have one form for all graph engines.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import struct
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from functools import lru_cache
from typing import Any, BinaryIO

from decisor.errors import ToolError
from decisor.sandbox.engine import Caps, Policy
from decisor.types import Table, Value

HEAD = struct.Struct(">I")
Frame = dict[str, Any]
"""A JSON object."""
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def pack_frame(frame: Frame) -> bytes:
    """Build the bytes of a frame. Lone surrogates become question marks: no value of a database may break the pipe."""
    return prefix_length(ENCODER.encode(frame))


def prefix_length(text: str) -> bytes:
    body = text.encode("utf-8", "replace")
    return HEAD.pack(len(body)) + body


def pack_request(op: str, statement: str, parameters: Frame, caps: Caps, trusted: bool) -> bytes:
    """Build the frame of a request to a worker. The text of the caps, which seldom change, is cached.

    >>> json.loads(pack_request("run", "SELECT 1", {}, Caps(), False)[HEAD.size:])["op"]
    'run'
    """
    text = ENCODER.encode({"op": op, "statement": statement, "parameters": parameters, "trusted": trusted})
    return prefix_length(f'{text[:-1]},"caps":{caps_json(caps)}}}')


def receive_frame(pipe: BinaryIO) -> Frame | None:
    """Read the next frame, None at the end of the pipe."""
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    body = pipe.read(HEAD.unpack(head)[0])
    frame: Frame = json.loads(body)
    return frame


def send(pipe: BinaryIO, frame: Frame) -> None:
    pipe.write(pack_frame(frame))
    pipe.flush()


@lru_cache(maxsize=256)
def caps_to(caps: Caps) -> Frame:
    return asdict(caps)


@lru_cache(maxsize=256)
def caps_json(caps: Caps) -> str:
    return ENCODER.encode(caps_to(caps))


def caps_from_frame(data: Frame) -> Caps:
    """Return the caps that a frame describes.

    >>> caps_from_frame(caps_to(Caps(rows=3, deny=("secret",)))) == Caps(rows=3, deny=("secret",))
    True
    """
    policy = data["policy"]
    rows = tuple((table, condition) for table, condition in policy["rows"])
    own = Policy(rows, tuple(policy["mask"]), policy["key"], policy["reveal"])
    return Caps(**{**data, "deny": tuple(data["deny"]), "only": tuple(data["only"]), "policy": own})


def table_to(table: Table) -> Frame:
    return {"columns": table.columns, "rows": table.rows, "truncated": table.truncated, "note": table.note}


def table_from_frame(data: Frame) -> Table:
    return Table(tuple(data["columns"]), tuple(map(tuple, data["rows"])), data["truncated"], data["note"])


MAX_EXACT = 2**53
SHOWN_BYTES = 16
MAX_DEPTH = 20


def cell_as_plain_value(value: object, cell_chars: int, depth: int = 0) -> Value:
    """Convert a cell to a plain value.

    A decimal becomes a float if that is exact, else its digits; bytes become a note in hex.

    >>> (cell_as_plain_value(Decimal("2.50"), 100), cell_as_plain_value(Decimal("0.1"), 100),
    ...     cell_as_plain_value(Decimal(1) / 3, 6))
    (2.5, 0.1, '0.333…')
    >>> (cell_as_plain_value(float("nan"), 100), cell_as_plain_value(b"abc", 100),
    ...     cell_as_plain_value(datetime.date(2024, 1, 3), 100))
    ('NaN', "x'616263' (3 bytes)", '2024-01-03')
    """
    if value is None or type(value) is bool or (type(value) is int and -MAX_EXACT < value < MAX_EXACT):
        return value  # the common cells, before the slower match
    if type(value) is str and len(value) <= cell_chars:
        return value
    match value:
        case bool():
            return value
        # JSON has no limit, but readers of it do: a number of 300 digits or more becomes its order of magnitude.
        case int():
            return (
                value
                if abs(value) < 10**300
                else clip_text(f"about 10^{int(value.bit_length() * 0.30103)}", cell_chars)
            )
        case float():
            return float_of(value)
        case str():
            return clip_text(value, cell_chars)
        case Decimal():
            return decimal_of(value, cell_chars)
        case bytes() | bytearray() | memoryview():
            data = bytes(value[: SHOWN_BYTES + 1])
            more = "…" if len(value) > SHOWN_BYTES else ""
            return f"x'{data[:SHOWN_BYTES].hex()}{more}' ({len(value)} bytes)"
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return format_time_span(value)
        case uuid.UUID():
            return str(value)
        # Beyond the depth a value becomes its text: a nested list of a database must not exhaust the stack.
        case Mapping() | set() | frozenset() | Sequence() if depth < MAX_DEPTH:
            return clip_nested_value(value, cell_chars, depth)
        case _:
            return clip_text(str(value), cell_chars)


def format_time_span(span: datetime.timedelta) -> str:
    """Format a time span as days, hours, minutes and seconds.

    >>> (format_time_span(datetime.timedelta(hours=-1)),
    ...     format_time_span(datetime.timedelta(days=2, seconds=5, microseconds=7)))
    ('-01:00:00', '2 days 00:00:05.000007')
    """
    sign, whole = ("-", -span) if span < datetime.timedelta(0) else ("", span)
    minutes, seconds = divmod(whole.seconds, 60)
    days = f"{whole.days} day{'s' * (whole.days != 1)} " if whole.days else ""
    fraction = f".{whole.microseconds:06d}" if whole.microseconds else ""
    return f"{sign}{days}{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}"


def clip_nested_value(value: Mapping[object, object] | Collection[object], cell_chars: int, depth: int) -> Value:
    """Return a list or mapping, cut before its text is longer than ``cell_chars``."""
    left = cell_chars
    if isinstance(value, Mapping):
        cells: dict[str, Value] = {}
        for key, item in value.items():
            cells[clip_text(str(key), left)] = inner = cell_as_plain_value(item, left, depth + 1)
            left -= len(str(key)) + cell_size(inner)
            if left <= 0:
                cells["…"] = f"{len(value)} in all"
                break
        return cells
    items: list[Value] = []
    for item in value:
        items.append(cell_as_plain_value(item, left, depth + 1))
        left -= cell_size(items[-1])
        if left <= 0:
            items.append(f"… ({len(value)} in all)")
            break
    return items


def clip_text(text: str, chars: int) -> str:
    """Cut a text to this many characters, with … at the end.

    >>> clip_text("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= chars else text[: max(1, chars) - 1] + "…"


def float_of(value: float) -> Value:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"


def decimal_of(value: Decimal, cell_chars: int) -> Value:
    if not value.is_finite():
        return float_of(float(value))
    # Below 2**53 every whole number is a float exactly.
    if value == value.to_integral_value() and abs(value) < MAX_EXACT:
        return float(value)
    # 0.10 is 0.1 to a reader, though no float is exactly a tenth: equal to the shortest digits is good enough.
    near = float(value)
    return near if math.isfinite(near) and Decimal(repr(near)) == value else clip_text(str(value), cell_chars)


def cell_size(value: Value) -> int:
    """Return about how many bytes a cell takes in a frame."""
    return len(value) if isinstance(value, str) else 8 if not isinstance(value, list | dict) else len(str(value))


def build_capped_table(columns: Sequence[str], rows: Iterable[Sequence[object]], caps: Caps) -> Table:
    """Build a table of plain values until a cap is reached; further rows are not fetched.

    >>> cut = build_capped_table(["a"], [(1,), (2,), (3,)], Caps(rows=2))
    >>> cut.columns, cut.rows, cut.truncated
    (('a',), ((1,), (2,)), True)
    """
    plain_rows: list[tuple[Value, ...]] = []
    bytes_so_far, names = 0, -1
    for row in rows:
        if names < 0:  # only now are the columns known
            names = bytes_so_far = check_names_size(columns, caps)
        if len(plain_rows) >= caps.rows:
            return Table(number_repeated_names(columns), tuple(plain_rows), truncated=True)
        cells = tuple(cell_as_plain_value(cell, caps.cell_chars) for cell in row)
        bytes_so_far += sum(map(cell_size, cells))
        # The first row comes whole, so that a result is never empty for its size alone.
        if bytes_so_far > caps.bytes and plain_rows:
            return Table(number_repeated_names(columns), tuple(plain_rows), truncated=True)
        plain_rows.append(cells)
    check_names_size(columns, caps)
    return Table(number_repeated_names(columns), tuple(plain_rows))


def check_names_size(columns: Sequence[str], caps: Caps) -> int:
    """Return the size of the column names. Raises ToolError if the names alone exceed the cap, as with a PIVOT."""
    names = sum(map(len, columns))
    if names > caps.bytes:
        raise ToolError(
            f"The result has {len(columns):,} columns, whose names alone are {names:,} characters long. "
            "Name the columns, or put what they hold into rows."
        )
    return names


def number_repeated_names(columns: Iterable[str], key: Callable[[str], str] = str) -> tuple[str, ...]:
    """
    >>> number_repeated_names(["id", "n", "id", "id"])
    ('id', 'n', 'id_2', 'id_3')
    >>> number_repeated_names(["a_2", "a", "A"], str.lower)
    ('a_2', 'a', 'A_3')
    """
    names: dict[str, str] = {}
    for column in columns:
        name, number = column, 1
        while key(name) in names:
            number += 1
            name = f"{column}_{number}"
        names[key(name)] = name
    return tuple(names.values())


def bind_parameters(statement: str, parameters: Mapping[str, Value], style: str) -> str:
    """Write ``:name`` of each parameter as the driver expects it.

    >>> bind_parameters("SELECT ':a', x::int FROM t WHERE b = :a", {"a": 1}, "%({})s")
    "SELECT ':a', x::int FROM t WHERE b = %(a)s"
    """
    if not parameters:
        return statement
    names = "|".join(map(re.escape, parameters))
    # Texts are matched first and left alone; the look-behind keeps PostgreSQL's x::int.
    pattern = re.compile(rf"('(?:[^']|'')*')|(?<![:\w]):({names})\b")
    return pattern.sub(lambda match: match[1] or style.format(match[2]), statement)


def node_value(labels: Iterable[str], properties: Mapping[str, object]) -> dict[str, object]:
    """Return a node as a plain value: its labels and properties in one mapping.

    >>> node_value(["City"], {"name": "Oslo"})
    {'_labels': ['City'], 'name': 'Oslo'}
    """
    return {"_labels": list(labels), **properties}


def relationship(kind: str, properties: Mapping[str, object]) -> dict[str, object]:
    return {"_type": kind, **properties}


def path_value(nodes: Iterable[object], relationships: Iterable[object]) -> list[object]:
    """Return a path as a list of its nodes and relationships in turn.

    >>> path_value("abc", [1, 2])
    ['a', 1, 'b', 2, 'c']
    """
    links = iter(relationships)
    steps: list[object] = []
    for number, stop in enumerate(nodes):
        if number:
            steps.append(next(links, None))
        steps.append(stop)
    return steps
