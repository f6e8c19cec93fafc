"""Numbers in texts, in the forms that people write: 1,234.5 and 1.234,5 and 1 234,5, full-width digits, 3.2万."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from decisor.types import Value

WIDE = {ord(wide): plain for wide, plain in zip("０１２３４５６７８９．，％－＋", "0123456789.,%-+", strict=True)}
SPACES = "\u00a0\u202f\u2009"
LETTER = "0-9A-Za-z_\u00c0-\u024f"
NUMBER = re.compile(
    rf"(?<![{LETTER}.])[-+\u2212]?"
    rf"(?:\d{{1,3}}(?:(?P<gap>[,.'\u2019 {SPACES}])\d{{3}})(?:(?P=gap)\d{{3}})*(?![\d])(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
    rf"(?:[eE][-+]?\d{{1,3}})?(?:[ {SPACES}]?%|[万亿萬億])?(?![{LETTER}])"
)
TIMES = {"万": 1e4, "萬": 1e4, "亿": 1e8, "億": 1e8}
MOST = 200


@dataclass(frozen=True, slots=True)
class NumberMeaning:
    """What a number as written may mean: its value, and half a unit of its last digit."""

    value: float
    room: float


def written_numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text, as written.

    >>> written_numbers("At level 12 the price falls by 3.5 % to 1,204.5 or 1.204,5 (building b7).")
    ('12', '3.5 %', '1,204.5', '1.204,5')
    >>> written_numbers("价格下降３.５元，约1.2万"), written_numbers("on 2024-01-03")
    (('3.5', '1.2万'), ('2024', '01', '03'))
    >>> written_numbers("key 4E801, 1e400, 12e3")
    ('12e3',)
    """
    matches = (match.group().strip() for match in NUMBER.finditer(text.translate(WIDE)))
    return tuple(match for match in dict.fromkeys(matches) if "e" not in match.lower() or readings(match))[:MOST]


def readings(text: str) -> tuple[NumberMeaning, ...]:
    """Of one number: two where its only mark may part thousands or decimals, none where it is not finite.

    >>> readings("1,204.5"), readings("1.204,5") == readings("1 204,5") == readings("1,204.5")
    ((NumberMeaning(value=1204.5, room=0.05),), True)
    >>> [one.value for one in readings("1.204")], readings("3,5 %")[0].value, readings("2万")[0].value
    ([1.204, 1204.0], 3.5, 20000.0)
    """
    times = TIMES.get(text[-1:], 1.0)
    bare = (
        text.rstrip("% 万亿萬億" + SPACES)
        .replace("\u2212", "-")
        .translate({ord(space): None for space in SPACES + " '\u2019"})
    )
    mantissa, _, power = bare.lower().partition("e")
    scale = float(f"1e{power or 0}") * times
    meanings = (
        NumberMeaning(float(digits) * scale, 0.5 * 10.0 ** -len(digits.partition(".")[2]) * scale)
        for digits in plain(mantissa)
    )
    return tuple(one for one in meanings if math.isfinite(one.value) and math.isfinite(one.room))


def plain(digits: str) -> tuple[str, ...]:
    """With a point for decimals and no mark for thousands, the likelier reading first.

    >>> plain("1.234,5"), plain("1,234"), plain("1.234"), plain("12,50"), plain("1,234,567"), plain("1.2,3.4")
    (('1234.5',), ('1234', '1.234'), ('1.234', '1234'), ('12.50',), ('1234567',), ())
    """
    marks = [char for char in digits if char in ".,"]
    if not marks:
        return (digits,)
    last = marks[-1]
    head, _, tail = digits.rpartition(last)
    if len(set(marks)) == 2:
        if last in marks[:-1]:
            return ()
        return (head.replace(marks[0], "") + "." + tail,)
    if len(marks) > 1:
        return (digits.replace(last, ""),)
    decimal, whole = f"{head}.{tail}", head + tail
    if len(tail) != 3 or len(head.lstrip("+-")) > 3 or head.lstrip("+-") in ("", "0"):
        return (decimal,)
    return (decimal, whole) if last == "." else (whole, decimal)


def numbers_in(value: Value) -> Iterator[float]:
    """Of a value and all within it, those inside its texts too."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value) if abs(value) < 1e300 else math.inf
    elif isinstance(value, str):
        yield from (one.value for text in written_numbers(value) for one in readings(text))
    else:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from numbers_in(item)
