"""Times as people and databases write them, as seconds since 1970 (UTC), and round ones for an axis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MONTH, QUARTER = re.compile(r"(\d{4})-(\d{2})"), re.compile(r"(\d{4})[- ]?Q([1-4])", re.I)
WEEK, DAY = re.compile(r"(\d{4})-?W(\d{2})"), re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?", re.S)
MINUTE, HOUR = 60, 3600
STEPS = (MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR, 168 * HOUR)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12000, 60000)


def moment(text: str) -> float | None:
    """
    >>> moment("1970-01-02"), moment("1970-Q2") == moment("1970-04"), moment("1970-01-01 00:01:00"), moment("May")
    (86400.0, True, 60.0, None)
    """
    text = text.strip()
    try:
        if match := MONTH.fullmatch(text):
            return seconds(datetime(int(match[1]), int(match[2]), 1))
        if match := QUARTER.fullmatch(text):
            return seconds(datetime(int(match[1]), 3 * int(match[2]) - 2, 1))
        if match := WEEK.fullmatch(text):
            return seconds(datetime.fromisocalendar(int(match[1]), int(match[2]), 1))
        return seconds(datetime.fromisoformat(text)) if DAY.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def year(number: float) -> float | None:
    """
    >>> year(1971), year(12)
    (31536000.0, None)
    """
    return seconds(datetime(int(number), 1, 1)) if 1000 <= number <= 2999 and number == int(number) else None


def seconds(time: datetime) -> float:
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH).total_seconds()


def iso(value: float) -> str:
    """
    >>> iso(86400.0)
    '1970-01-02T00:00:00Z'
    """
    return (EPOCH + timedelta(seconds=value)).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """At most about so many round times from ``low`` to ``high``, each with its words.

    >>> [text for _, text in ticks(moment("1997-01"), moment("1997-12"), 5)]
    ['Jan 1997', 'Apr', 'Jul', 'Oct']
    >>> [text for _, text in ticks(moment("1990-01"), moment("1999-12"), 6)]
    ['1990', '1992', '1994', '1996', '1998']
    """
    span = high - low
    step = next((one for one in STEPS if span / one <= most), None)
    if step is not None:
        times = [step * at for at in range(int(-(-low // step)), int(high // step) + 1)]
        return list(labelled([EPOCH + timedelta(seconds=one) for one in times], clock=step < 24 * HOUR))
    months = next(one for one in MONTHS if span / (one * 30.4 * 24 * HOUR) <= most)
    start, end = ((EPOCH + timedelta(seconds=one)) for one in (low, high))
    first = -(-(start.year * 12 + start.month - 1) // months) * months
    every = [datetime(at // 12, at % 12 + 1, 1, tzinfo=UTC) for at in range(first, end.year * 12 + end.month, months)]
    return list(labelled([one for one in every if low <= seconds(one) <= high], years=months % 12 == 0))


def labelled(times: list[datetime], clock: bool = False, years: bool = False) -> Iterator[tuple[float, str]]:
    """The year, or the day of a clock, only where it changes."""
    before = ""
    for one in times:
        head = f"{one.day} {one:%b}" if clock else f"{one.year}"
        part = f"{one:%H:%M}" if clock else f"{one:%b}" if one.day == 1 else f"{one.day} {one:%b}"
        if years:
            text = head
        elif head == before:
            text = part
        else:
            text = f"{head} {part}" if clock else f"{part} {head}"
        before = head
        yield seconds(one), text
