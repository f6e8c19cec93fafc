"""What engines return, as plain values within caps."""

from __future__ import annotations

import datetime
import math
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.types import Table, Value

MAX_EXACT = 2**53
SHOWN_BYTES = 16
MAX_DEPTH = 20


def plain(value: object, cell_chars: int, depth: int = 0) -> Value:
    """One cell. A decimal is a float where that is exact, else its digits; bytes are a note in hex.

    >>> plain(Decimal("2.50"), 100), plain(Decimal("0.1"), 100), plain(Decimal(1) / 3, 6)
    (2.5, 0.1, '0.333…')
    >>> plain(float("nan"), 100), plain(b"abc", 100), plain(datetime.date(2024, 1, 3), 100)
    ('NaN', "x'616263' (3 bytes)", '2024-01-03')
    """
    if value is None or type(value) is bool or (type(value) is int and -MAX_EXACT < value < MAX_EXACT):
        return value  # the common cells, before the slower match
    if type(value) is str and len(value) <= cell_chars:
        return value
    match value:
        case bool():
            return value
        case int():
            return value if abs(value) < 10**300 else clip(f"about 10^{int(value.bit_length() * 0.30103)}", cell_chars)
        case float():
            return float_of(value)
        case str():
            return clip(value, cell_chars)
        case Decimal():
            return decimal_of(value, cell_chars)
        case bytes() | bytearray() | memoryview():
            data = bytes(value[: SHOWN_BYTES + 1])
            more = "…" if len(value) > SHOWN_BYTES else ""
            return f"x'{data[:SHOWN_BYTES].hex()}{more}' ({len(value)} bytes)"
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return clock(value)
        case uuid.UUID():
            return str(value)
        case Mapping() | set() | frozenset() | Sequence() if depth < MAX_DEPTH:
            return nested(value, cell_chars, depth)
        case _:
            return clip(str(value), cell_chars)


def clock(span: datetime.timedelta) -> str:
    """
    >>> clock(datetime.timedelta(hours=-1)), clock(datetime.timedelta(days=2, seconds=5, microseconds=7))
    ('-01:00:00', '2 days 00:00:05.000007')
    """
    sign, whole = ("-", -span) if span < datetime.timedelta(0) else ("", span)
    minutes, seconds = divmod(whole.seconds, 60)
    days = f"{whole.days} day{'s' * (whole.days != 1)} " if whole.days else ""
    fraction = f".{whole.microseconds:06d}" if whole.microseconds else ""
    return f"{sign}{days}{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}"


def nested(value: Mapping[object, object] | Collection[object], cell_chars: int, depth: int) -> Value:
    """A list or mapping, cut where its text would pass ``cell_chars``."""
    left = cell_chars
    if isinstance(value, Mapping):
        cells: dict[str, Value] = {}
        for key, item in value.items():
            cells[clip(str(key), left)] = inner = plain(item, left, depth + 1)
            left -= len(str(key)) + size(inner)
            if left <= 0:
                cells["…"] = f"{len(value)} in all"
                break
        return cells
    items: list[Value] = []
    for item in value:
        items.append(plain(item, left, depth + 1))
        left -= size(items[-1])
        if left <= 0:
            items.append(f"… ({len(value)} in all)")
            break
    return items


def clip(text: str, chars: int) -> str:
    """
    >>> clip("abcdef", 4)
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
    if value == value.to_integral_value() and abs(value) < MAX_EXACT:
        return float(value)
    near = float(value)
    return near if math.isfinite(near) and Decimal(repr(near)) == value else clip(str(value), cell_chars)


def size(value: Value) -> int:
    """About how many bytes a cell takes when it is sent."""
    return len(value) if isinstance(value, str) else 8 if not isinstance(value, list | dict) else len(str(value))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], caps: Caps) -> Table:
    """Rows as plain values until a cap is reached; what lies beyond is not fetched.

    >>> cut = table(["a"], [(1,), (2,), (3,)], Caps(rows=2))
    >>> cut.columns, cut.rows, cut.truncated
    (('a',), ((1,), (2,)), True)
    """
    plain_rows: list[tuple[Value, ...]] = []
    bytes_so_far, names = 0, -1
    for row in rows:
        if names < 0:  # only now are the columns known
            names = bytes_so_far = within_bytes(columns, caps)
        if len(plain_rows) >= caps.rows:
            return Table(distinct(columns), tuple(plain_rows), truncated=True)
        cells = tuple(plain(cell, caps.cell_chars) for cell in row)
        bytes_so_far += sum(map(size, cells))
        if bytes_so_far > caps.bytes and plain_rows:
            return Table(distinct(columns), tuple(plain_rows), truncated=True)
        plain_rows.append(cells)
    within_bytes(columns, caps)
    return Table(distinct(columns), tuple(plain_rows))


def within_bytes(columns: Sequence[str], caps: Caps) -> int:
    """The size of the names. Raises ToolError where they alone pass the cap, as those of a PIVOT may."""
    names = sum(map(len, columns))
    if names > caps.bytes:
        raise ToolError(f"The result has {len(columns):,} columns, whose names alone are {names:,} characters long. "
                        "Name the columns, or put what they hold into rows.")  # fmt: skip
    return names


def distinct(columns: Iterable[str], key: Callable[[str], str] = str) -> tuple[str, ...]:
    """
    >>> distinct(["id", "n", "id", "id"])
    ('id', 'n', 'id_2', 'id_3')
    >>> distinct(["a_2", "a", "A"], str.lower)
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


def bind(statement: str, parameters: Mapping[str, Value], style: str) -> str:
    """``:name`` of each parameter as the driver writes it.

    >>> bind("SELECT ':a', x::int FROM t WHERE b = :a", {"a": 1}, "%({})s")
    "SELECT ':a', x::int FROM t WHERE b = %(a)s"
    """
    if not parameters:
        return statement
    names = "|".join(map(re.escape, parameters))
    pattern = re.compile(rf"('(?:[^']|'')*')|(?<![:\w]):({names})\b")
    return pattern.sub(lambda match: match[1] or style.format(match[2]), statement)
