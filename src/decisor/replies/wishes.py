"""What the input of the tool ``whatif`` asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from decisor.errors import ToolError
from decisor.replies.changes import Change, changes_of, is_change

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
)  # fmt: skip


@dataclass(frozen=True)
class Wish:
    """No candidates means all of them. ``text``: the candidates as they stand, where a comma may be within a name."""

    candidates: tuple[str, ...] = ()
    semantics: str = ""
    percent: float = 5.0
    trials: int = 200
    seconds: float = float("inf")
    kind: Kind = "rank"
    changes: tuple[Change, ...] = ()
    scenario: str = ""
    text: str = field(default="", compare=False, repr=False)


def parse_wish(text: str) -> Wish:
    """
    >>> parse_wish("rank").kind, parse_wish("rank semantics=released trials=0").trials
    ('rank', 0)
    >>> parse_wish('["genua", "12"]').candidates, parse_wish("genua, 12").candidates
    (('genua', '12'), ('genua', '12'))
    >>> parse_wish('"Rank all candidates"') == parse_wish('{"action": "RANK"}') == parse_wish("`rank`")
    True
    >>> wish = parse_wish("What would it take for Lyon + Ulm to win?")
    >>> wish.kind, wish.candidates
    ('reach', ('Lyon + Ulm',))
    >>> parse_wish('{"set": "lane.cost = 3", "where": "site = 1"}').changes
    (Change(table='lane', column='cost', value='3', where='site = 1'),)

    Raises:
        ToolError: a setting cannot be read, or a list or change is not whole.
    """
    text = inside_of(text)
    head, *rest = text.split() or [""]
    settings = [word for word in rest if re.fullmatch(r"\w+=\S*", word)]
    others = [word.casefold().strip(".") for word in rest if word not in settings]
    if head.casefold().strip(".") in ("", "rank", "all") and set(others) <= ALL:
        return settings_of([word.partition("=") for word in settings])
    if is_change(text):
        return Wish(kind="change", changes=changes_of(text))
    plain = " ".join(text.split()).rstrip("?.! ")
    for kind, pattern in ASKS:
        if match := re.fullmatch(pattern, plain, re.I):
            return named(kind, match.groupdict().get("name") or "")
    return Wish(names_in(text), text=text)


def named(kind: Kind, name: str) -> Wish:
    """
    >>> named("scenario", "'dear_fuel'").scenario
    'dear_fuel'
    """
    name = name.strip().strip("`\"' ")
    if kind == "scenario":
        return Wish(kind=kind, scenario=name)
    return Wish((name,) if name else (), kind=kind, text=name)


def names_in(text: str) -> tuple[str, ...]:
    """From a JSON list, or separated by commas."""
    if text.startswith("["):
        try:
            names: Sequence[object] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ToolError(f"The list of candidates is not JSON: {error}.") from error
    else:
        names = text.split(",")
    return tuple(str(name).strip().strip("\"'") for name in names if str(name).strip())


def inside_of(text: str) -> str:
    """What was asked for, without quotes; where it came as an object, what stands in that.

    >>> inside_of('{"action": "why", "name": "Basel"}'), inside_of("`why 'Basel'`")
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
    return " ".join(word for key, value in values.items() if (word := worded(key, value))) or text


def worded(key: str, value: object) -> str:
    """A member of an object as it would stand in a line."""
    word = value.strip() if isinstance(value, str) else json.dumps(value)
    key = key.strip().casefold()
    if key in SETTINGS and key != "scenario":
        return f"{key}={word}"
    return f"{key} {word}" if key in (*ACTIONS, "where") and word.split()[:1] != [key] else word


def settings_of(pairs: Sequence[tuple[str, str, str]]) -> Wish:
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
    if not (0 <= percent <= 100 and 0 <= trials <= 100_000 and seconds > 0):
        raise ToolError("percent is from 0 to 100, trials from 0 to 100,000, and seconds above 0.")
    return Wish((), semantics, percent, trials, seconds, scenario=texts.get("scenario", ""))
