"""What helps after a query that brought nothing or took too long: the stored values near its literals, and advice."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from decisor.errors import ToolError
from decisor.outside import json_line, one_line
from decisor.tools.databases.sandbox.engine import Caps
from decisor.types import Table, Value

SECONDS = 2.0
MOST_LITERALS = 4
MOST_VALUES = 5_000
SHOWN_VALUES = 3
SHOWN_CHARS = 60
TIMED_OUT = re.compile(
    r"ran for more than|tim(?:e|ed) ?out|time limit|max_(?:statement|execution)_time|interrupted", re.I
)
SLOW = (
    "Let it touch less: filter before joining, join on keys, aggregate each table by itself before joining them, and "
    "leave out cross products and paths of any length."
)
Read = Callable[[str, Caps], Awaitable[Table]]


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that a query compares with stored ones. ``place`` is how a person calls those; ``query`` reads them,
    nearest first where it is a number. ``part``: a part of a stored value is enough, as with LIKE. ``any_case``: upper
    and lower case are one."""

    value: str | float
    place: str
    query: str
    part: bool = False
    any_case: bool = False


def advice(complaint: str) -> str:
    """What to do after a failure, with a blank before it; '' where nothing is known.

    >>> advice("Stopped: the query ran for more than 20 s.")[:20], advice("no such column: x")
    (' Let it touch less: ', '')
    """
    return f" {SLOW}" if TIMED_OUT.search(complaint) else ""


def brought_nothing(table: Table) -> bool:
    """No row, or the one row of a sum or a count over none."""
    if len(table.rows) == 1:
        return all(value is None or value == 0 for value in table.rows[0])
    return not table.rows


async def about_nothing(table: Table, literals: Sequence[Literal], read: Read, caps: Caps) -> str:
    """What is said of a result without rows: which of its literals is not stored, and what is.

    Looking takes at most ``SECONDS``, through the same checks as a query of the model's.
    """
    until = time.monotonic() + SECONDS
    complaints: list[str] = []
    stored = 0
    for one in literals[:MOST_LITERALS]:
        left = until - time.monotonic()
        if left <= 0:
            break
        narrow = replace(caps, rows=MOST_VALUES, cell_chars=200, seconds=min(left, caps.seconds))
        try:
            values = [row[0] for row in (await read(one.query, narrow)).rows]
        except ToolError:
            continue
        complaint = unlike(one, values)
        complaints += [complaint] if complaint else []
        stored += not complaint
    if stored > 1 and not complaints and not table.rows:
        complaints.append("Each value in the query is stored, but no row meets all of its conditions together.")
    return " ".join([*([] if table.rows else ["No rows."]), *dict.fromkeys(complaints)])


def unlike(literal: Literal, values: Sequence[Value]) -> str:
    """The nearest of the stored values, where the literal is none of them.

    >>> unlike(Literal("man-o-war", "unit.name", ""), ["galleys", "manowars", "frigates"])
    'unit.name has no "man-o-war"; nearest: "manowars".'
    >>> unlike(Literal("frig", "unit.name", "", part=True), ["frigates"]), unlike(Literal("x", "unit.name", ""), [])
    ('', 'unit.name holds nothing.')
    """
    if not values:
        return f"{literal.place} holds nothing."
    if not isinstance(literal.value, str):
        numbers = [value for value in values if isinstance(value, int | float)]
        if literal.value in numbers or not numbers:
            return ""
        return f"{literal.place} has no {literal.value:.17g}; nearest: {', '.join(map(repr, numbers[:SHOWN_VALUES]))}."
    texts = [value for value in values if isinstance(value, str)]
    wish = literal.value.casefold() if literal.any_case else literal.value
    there = [text.casefold() for text in texts] if literal.any_case else texts
    if not texts or wish in there or (literal.part and any(wish in text for text in there)):
        return ""
    near = nearest(literal.value, texts)
    others = ", ".join(json_line(one_line(text, SHOWN_CHARS)) for text in near or texts[:SHOWN_VALUES])
    more = "" if near or len(texts) <= SHOWN_VALUES else ", ..."
    what = f"{'nothing with' if literal.part else 'no'} {json_line(one_line(literal.value, SHOWN_CHARS))}"
    return f"{literal.place} has {what}; {'nearest' if near else 'it has'}: {others}{more}."


def nearest(text: str, texts: Iterable[str]) -> list[str]:
    """By letters alone, then by words in common.

    >>> nearest("Café Oslo", ["cafe_oslo", "bar"]), nearest("cloth", ["fine cloth", "iron"])
    (['cafe_oslo'], ['fine cloth'])
    """
    by_letters: dict[str, str] = {}
    for one in texts:
        by_letters.setdefault(letters(one), one)
    wish = letters(text)
    close = difflib.get_close_matches(wish, by_letters, SHOWN_VALUES, 0.7)
    if not close and len(wish) > 2:
        close = [one for one in by_letters if wish in one or (len(one) > 2 and one in wish)][:SHOWN_VALUES]
    return [by_letters[one] for one in close]


def letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()
