"""The input of the tool ``whatif``: rankings, questions about candidates, and changes of the data.

A change is ``set TABLE.COLUMN = EXPRESSION where CONDITION``, ``TABLE.COLUMN x 1.1`` or ``TABLE.COLUMN + 5 %``. It is
only read here. The check of a change, on the tree of its parse, decides whether it may run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

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
class DataChange:
    """A change of one column of a table. ``value`` and ``where`` are DuckDB SQL that has not been checked yet."""

    table: str
    column: str
    value: str
    where: str = ""

    def __str__(self) -> str:
        rest = self.value.removeprefix(f'"{self.column}" ')
        times = rest.replace("*", "×", 1) if rest != self.value else f"= {rest}"
        return f"{self.table}.{self.column} {times}{f' where {self.where}' if self.where else ''}"


def is_change(text: str) -> bool:
    """Return whether a text looks like a change of the data.

    >>> [is_change(text) for text in ("set lane.cost = 3", "lane.cost × 1.1", "lane.cost -5 %", "St. Gallen", "a, b.c")]
    [True, True, True, False, False]
    """
    if re.match(r"(set|update)\s", text, re.I):
        return True
    match = PARTS.match(text)
    return bool(match and match["mark"] and match["rest"].strip())


def parse_changes(text: str) -> tuple[DataChange, ...]:
    """Parse the changes that a text lists, separated by semicolons or line ends.

    >>> parse_changes("set lane.cost = 3 WHERE site = 'a; b'; customer.units × 1.1")[1]
    DataChange(table='customer', column='units', value='"units" * 1.1', where='')
    >>> parse_changes("UPDATE lane SET cost = cost + 1")
    (DataChange(table='lane', column='cost', value='cost + 1', where=''),)

    Raises:
        ToolError: it is no change, with the form of one.
    """
    if len(text) > MOST_CHARS:
        raise ToolError(f"A change has at most {MOST_CHARS:,} characters.")
    parts = [part for part in split_outside_quotes(text, r";|\n") if part.strip()]
    if len(parts) > MOST_CHANGES:
        raise ToolError(f"There are {len(parts)} changes; at most {MOST_CHANGES} at once.")
    return tuple(parse_change(part.strip()) for part in parts)


def parse_change(text: str) -> DataChange:
    body, *more = split_outside_quotes(text, r"\bwhere\b")
    body = re.sub(r"^set\s+", "", body.strip(), flags=re.I)
    body = re.sub(rf"^update\s+({WORD})\s+set\s+(?:\1\s*\.\s*)?({WORD})\s*=", r"\1.\2 =", body, flags=re.I)
    match = PARTS.fullmatch(body)
    if match is None or not match["mark"] or not match["rest"].strip() or len(more) > 1:
        raise ToolError(f"{text!r} is no change that can be read. {FORM}")
    table, column = (match[name].strip('"`') for name in ("table", "column"))
    return DataChange(
        table,
        column,
        build_changed_value(column, match["mark"].lower(), match["rest"].strip()),
        more[0].strip() if more else "",
    )


def build_changed_value(column: str, mark: str, rest: str) -> str:
    """Return the SQL expression of a column's new value.

    >>> (build_changed_value("cost", "+", "5 %"), build_changed_value("cost", "×", "1,5"),
    ...     build_changed_value("cost", "to", "3"))
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
    # "by 5 %" is clear, "by 5" is not: a guess would change the data in one of two ways.
    if sign == "by":
        raise ToolError(f"By {rest}: times that much, or that much more? {FORM}")
    return f"{place} {'*' if sign in ('×', 'x', 'times') else sign} {number:.12g}"


def split_outside_quotes(text: str, pattern: str) -> list[str]:
    r"""Split a text at the matches of a pattern that are not inside quotes.

    >>> split_outside_quotes("a = 'x where y' WHERE b", r"\bwhere\b")
    ["a = 'x where y' ", ' b']
    """
    parts, start = [], 0
    for match in re.finditer(rf"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?P<mark>{pattern})", text, re.I):
        if match["mark"] is not None:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


SETTINGS = ("semantics", "percent", "trials", "seconds", "scenario")
SEMANTICS = ("", "paper", "released")
Kind = Literal["rank", "why", "change", "scenario", "reach", "turning points", "scenarios", "pareto", "sensitivity"]
ALL = {"all", "the", "candidates", "of", "them", "every", "candidate", "options"}
ACTIONS = ("why", "set", "scenario", "rank", "reach")
ASKS: tuple[tuple[Kind, str], ...] = (
    ("turning points", r"(?:show |find |give |list |the )*turning[ _-]?points?(?: of (?:the best|it))?"),
    ("pareto", r"(?:show |the )*pareto(?:[ _-]?(?:front|frontier|optimal|set))?"),
    ("sensitivity", r"(?:show |the )*(?:sensitivity|tornado)(?:[ _-](?:analysis|chart))?"),
    ("sensitivity", r"which input (?:matters|moves).*"),
    ("scenarios", r"(?:show |compare |all |the |in )*(?:scenarios|worst[ _-]?case)(?: side by side)?"),
    ("scenario", r"(?:in |under )?(?:the )?scenario (?P<name>.+)"),
    ("reach", r"what (?:would|does|will) it take(?: for)? (?P<name>.+?)(?: to (?:win|be (?:the )?best|come first))?"),
    ("reach", r"what would have to change for (?P<name>.+?)(?: to (?:win|be (?:the )?best|come first))?"),
    ("reach", r"(?:how|when) (?:could|can|would|does) (?P<name>.+?) (?:win|be (?:the )?best|come first)"),
    ("reach", r"reach (?P<name>.+)"),
    ("why", r"why (?:not )?(?:(?:is|was) )?(?P<name>.+?)(?: (?:not (?:the )?best|not allowed|ruled out|excluded))?"),
)


@dataclass(frozen=True)
class WhatIfWish:
    """A request to the tool ``whatif``."""

    candidates: tuple[str, ...] = ()
    """Empty means all."""
    semantics: str = ""
    percent: float = 5.0
    trials: int = 200
    seconds: float = float("inf")
    kind: Kind = "rank"
    changes: tuple[DataChange, ...] = ()
    scenario: str = ""
    text: str = field(default="", compare=False, repr=False)
    """The candidates as written, because a name may contain a comma."""


def parse_wish(text: str) -> WhatIfWish:
    """Parse the input of ``whatif`` into a request.

    >>> parse_wish("rank").kind, parse_wish("rank semantics=released trials=0").trials
    ('rank', 0)
    >>> parse_wish("scenario 'dear_fuel'").scenario
    'dear_fuel'
    >>> parse_wish('["genua", "12"]').candidates, parse_wish("genua, 12").candidates
    (('genua', '12'), ('genua', '12'))
    >>> parse_wish('"Rank all candidates"') == parse_wish('{"action": "RANK"}') == parse_wish("`rank`")
    True
    >>> wish = parse_wish("What would it take for Lyon + Ulm to win?")
    >>> wish.kind, wish.candidates
    ('reach', ('Lyon + Ulm',))
    >>> parse_wish('{"set": "lane.cost = 3", "where": "site = 1"}').changes
    (DataChange(table='lane', column='cost', value='3', where='site = 1'),)

    Raises:
        ToolError: a setting cannot be read, or a list or change is not whole.
    """
    text = unwrap_wish(text)
    head, *rest = text.split() or [""]
    settings = [word for word in rest if re.fullmatch(r"\w+=\S*", word)]
    others = [word.casefold().strip(".") for word in rest if word not in settings]
    if head.casefold().strip(".") in ("", "rank", "all") and set(others) <= ALL:
        return parse_rank_settings([word.partition("=") for word in settings])
    # Changes come before the phrases: "set" and "x 1.1" are unmistakable, a phrase takes any name.
    if is_change(text):
        return WhatIfWish(kind="change", changes=parse_changes(text))
    plain = " ".join(text.split()).rstrip("?.! ")
    for kind, pattern in ASKS:
        if match := re.fullmatch(pattern, plain, re.I):
            name = (match.groupdict().get("name") or "").strip().strip("`\"' ")
            if kind == "scenario":
                return WhatIfWish(kind=kind, scenario=name)
            return WhatIfWish((name,) if name else (), kind=kind, text=name)
    return WhatIfWish(parse_candidate_names(text), text=text)


def parse_candidate_names(text: str) -> tuple[str, ...]:
    """Parse candidate names from a JSON list or a text with commas."""
    if text.startswith("["):
        try:
            names: Sequence[object] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ToolError(f"The list of candidates is not JSON: {error}.") from error
    else:
        names = text.split(",")
    return tuple(str(name).strip().strip("\"'") for name in names if str(name).strip())


def unwrap_wish(text: str) -> str:
    """Unwrap a request: without quotes, and an object as a line of its members.

    >>> unwrap_wish('{"action": "why", "name": "Basel"}'), unwrap_wish("`why 'Basel'`")
    ('why Basel', "why 'Basel'")
    """
    text = text.strip().strip("`\n ")
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    if not text.startswith("{"):
        return text
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(values, Mapping) or not values:
        return text
    wish = next(iter(values.values()))
    if len(values) == 1 and isinstance(wish, list):
        return json.dumps(wish)
    return " ".join(word for key, value in values.items() if (word := format_wish_member(key, value))) or text


def format_wish_member(key: str, value: object) -> str:
    """Format a member of an object as it would stand in a line."""
    word = value.strip() if isinstance(value, str) else json.dumps(value)
    key = key.strip().casefold()
    if key in SETTINGS and key != "scenario":
        return f"{key}={word}"
    return f"{key} {word}" if key in (*ACTIONS, "where") and word.split()[:1] != [key] else word


def parse_rank_settings(pairs: Sequence[tuple[str, str, str]]) -> WhatIfWish:
    texts = {key.casefold(): value for key, _, value in pairs}
    if strange := texts.keys() - set(SETTINGS):
        raise ToolError(f"whatif has no setting {', '.join(sorted(strange))}; it has {', '.join(SETTINGS)}.")
    try:
        percent, trials = float(texts.get("percent", 5.0)), int(texts.get("trials", 200))
        seconds = float(texts.get("seconds", "inf"))
    except ValueError as error:
        raise ToolError(f"A setting of whatif is not a number: {error}.") from error
    semantics = texts.get("semantics", "").lower()
    if semantics not in SEMANTICS:
        raise ToolError(f"semantics is paper or released, not {semantics!r}.")
    # float() accepts nan and inf: nan fails each of these comparisons.
    if not (0 <= percent <= 100 and 0 <= trials <= 100_000 and seconds > 0):
        raise ToolError("percent is from 0 to 100, trials from 0 to 100,000, and seconds above 0.")
    return WhatIfWish((), semantics, percent, trials, seconds, scenario=texts.get("scenario", ""))
