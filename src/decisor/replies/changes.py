"""Changes of the data that somebody asks about: ``set TABLE.COLUMN = EXPRESSION where CONDITION``, ``... x 1.1``.

Only read here; what may run is decided on the tree of its parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from decisor.errors import ToolError

MOST_CHARS = 2_000
MOST_CHANGES = 20
WORD = r'(?:"[^"]+"|`[^`]+`|\w+)'
PLACE = rf"(?P<table>{WORD})\s*\.\s*(?P<column>{WORD})"
NUMBER = r"(?P<number>\d+(?:[.,]\d+)?(?:e[+-]?\d+)?|\.\d+)"
PARTS = re.compile(
    rf"{PLACE}\s*(?P<mark>:=|\*=|\+=|-=|/=|=|×|\*|/|\+|-|\bx\b|\bto\b|\btimes\b|\bby\b)?\s*(?P<rest>.*)", re.I | re.S
)
AMOUNT = re.compile(rf"(?P<sign>[+-]?)\s*{NUMBER}\s*(?P<percent>%|percent)?\s*", re.I)
FORM = (
    "A change is `set TABLE.COLUMN = EXPRESSION where CONDITION`, `TABLE.COLUMN × 1.1` or `TABLE.COLUMN + 5 %`, each "
    "with a condition or without; several are separated by semicolons."
)


@dataclass(frozen=True)
class Change:
    """``value``, ``where``: DuckDB's SQL, not looked at yet."""

    table: str
    column: str
    value: str
    where: str = ""

    def __str__(self) -> str:
        rest = self.value.removeprefix(f'"{self.column}" ')
        times = rest.replace("*", "×", 1) if rest != self.value else f"= {rest}"
        return f"{self.table}.{self.column} {times}{f' where {self.where}' if self.where else ''}"


def is_change(text: str) -> bool:
    """
    >>> [is_change(text) for text in ("set lane.cost = 3", "lane.cost × 1.1", "lane.cost -5 %", "St. Gallen", "a, b.c")]
    [True, True, True, False, False]
    """
    if re.match(r"(set|update)\s", text, re.I):
        return True
    match = PARTS.match(text)
    return bool(match and match["mark"] and match["rest"].strip())


def changes_of(text: str) -> tuple[Change, ...]:
    """
    >>> changes_of("set lane.cost = 3 WHERE site = 'a; b'; customer.units × 1.1")[1]
    Change(table='customer', column='units', value='"units" * 1.1', where='')
    >>> changes_of("UPDATE lane SET cost = cost + 1")
    (Change(table='lane', column='cost', value='cost + 1', where=''),)

    Raises:
        ToolError: it is no change, with the form of one.
    """
    if len(text) > MOST_CHARS:
        raise ToolError(f"A change has at most {MOST_CHARS:,} characters.")
    parts = [part for part in split(text, r";|\n") if part.strip()]
    if len(parts) > MOST_CHANGES:
        raise ToolError(f"There are {len(parts)} changes; at most {MOST_CHANGES} at once.")
    return tuple(change_of(part.strip()) for part in parts)


def change_of(text: str) -> Change:
    body, *more = split(text, r"\bwhere\b")
    body = re.sub(r"^set\s+", "", body.strip(), flags=re.I)
    body = re.sub(rf"^update\s+({WORD})\s+set\s+(?:\1\s*\.\s*)?({WORD})\s*=", r"\1.\2 =", body, flags=re.I)
    match = PARTS.fullmatch(body)
    if match is None or not match["mark"] or not match["rest"].strip() or len(more) > 1:
        raise ToolError(f"{text!r} is no change that can be read. {FORM}")
    table, column = (match[name].strip('"`') for name in ("table", "column"))
    return Change(table, column, value_of(column, match["mark"].lower(), match["rest"].strip()),
                  more[0].strip() if more else "")  # fmt: skip


def value_of(column: str, mark: str, rest: str) -> str:
    """
    >>> value_of("cost", "+", "5 %"), value_of("cost", "×", "1,5"), value_of("cost", "to", "3")
    ('"cost" * 1.05', '"cost" * 1.5', '3')
    """
    place, sign = '"' + column.replace('"', '""') + '"', mark.rstrip("=")
    if mark in ("=", ":=", "to"):
        return rest
    amount = AMOUNT.fullmatch(rest)
    if amount is None:
        raise ToolError(f"{rest!r} is no number. {FORM}")
    number = float(amount["number"].replace(",", ".")) * (-1 if amount["sign"] == "-" else 1)
    if amount["percent"]:
        factor = number / 100 if sign in ("×", "*", "x", "times") else 1 + (-number if sign == "-" else number) / 100
        return f"{place} * {factor:.12g}"
    if sign == "by":
        raise ToolError(f"By {rest}: times that much, or that much more? {FORM}")
    return f"{place} {'*' if sign in ('×', 'x', 'times') else sign} {number:.12g}"


def split(text: str, pattern: str) -> list[str]:
    r"""Outside quotes.

    >>> split("a = 'x where y' WHERE b", r"\bwhere\b")
    ["a = 'x where y' ", ' b']
    """
    parts, start = [], 0
    for at, end in places(text, pattern):
        parts.append(text[start:at])
        start = end
    return [*parts, text[start:]]


def places(text: str, pattern: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(rf"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?P<here>{pattern})", text, re.I):
        if match["here"] is not None:
            yield match.span()
