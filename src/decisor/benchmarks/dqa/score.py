"""Scores of Decision QA: which candidate an answer names, and whether it is the right one.

An answer is read in four tiers, and the first that names exactly one candidate counts: the whole text; what follows
the last "Final answer:"; what is marked (bold, quoted, code, "building id N"); any mention. A tier that names several
is passed over, so two names in one sentence are wrong unless one of them is marked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LABEL = re.compile(r"(?:final answer|answer|decision)\s*\**\s*[:=]\s*", re.I)
MARKED = re.compile(r"\*\*(.+?)\*\*|__(.+?)__|`(.+?)`|\"(.+?)\"|“(.+?)”|‘(.+?)’|(?<!\w)'(.+?)'(?!\w)", re.S)
CITATION = re.compile(r"\[[^\]]*\bo\d+\.r\d+[^\]]*\]")
ID = re.compile(r"\b(?:building(?:\s+(?:with\s+)?(?:the\s+)?id)?|id)\s*(?:is|of|number|no\.?|[:=#])*\s*(\d+)\b", re.I)
NUMBER = re.compile(r"(?<![\d.,\w-])#?(\d+)(?!\w|[.,]\d|\s*(?:%|percent|levels?\b))", re.I)
NOT_AN_ID = re.compile(r"(?:\bby|\blevels?(?:\s+(?:of|to|from|is))?|[-+*/=<>])\s*$", re.I)


@dataclass(frozen=True, slots=True)
class Score:
    """``answer``: the candidate that was read, '' where none or several were named. ``tie_right``: it is in the tie
    set of the released semantics, so it is worth as much as the released answer."""

    answer: str
    right: bool
    tie_right: bool


def score(text: str, gold: str, candidates: Sequence[str], ties: Iterable[str] = ()) -> Score:
    """
    >>> score("I would choose **Krakow**, not rheinland.", "krakow", ["krakow", "rheinland"])
    Score(answer='krakow', right=True, tie_right=True)
    >>> score("Genua", "valencia", ["genua", "valencia"], ties=["valencia", "genua"])
    Score(answer='genua', right=False, tie_right=True)
    """
    answer = extract(text, candidates)
    right = bool(answer) and plain_name(answer) == plain_name(gold)
    return Score(answer, right, right or (bool(answer) and plain_name(answer) in {plain_name(tie) for tie in ties}))


def plain_name(text: str) -> str:
    """Case, accents, quotes, underscores and punctuation taken away.

    >>> plain_name("'St. Lawrence' "), plain_name("st_lawrence")
    ('st lawrence', 'st lawrence')
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    spaced = "".join(
        " " if letter in "_-/ \t\n\r" else letter for letter in letters if not unicodedata.combining(letter)
    )
    return " ".join(re.sub(r"[^\w\s]", "", spaced).split())


def extract(text: str, candidates: Sequence[str]) -> str:
    """The one candidate that ``text`` names, as the data spell it; '' where it names none or several.

    >>> extract("Baltic Sea or Lübeck?", ["baltic_sea", "lubeck"])
    ''
    >>> extract("Raise building id 1485 by 5 levels.", ["5", "1485"])
    '1485'
    """
    text = CITATION.sub("", unicodedata.normalize("NFKC", text)).strip()
    whole = {plain_name(name): name for name in candidates}
    numbers = bool(candidates) and all(name.isdigit() for name in candidates)
    if plain_name(text) in whole:
        return whole[plain_name(text)]
    labels = list(LABEL.finditer(text))
    tail = text[labels[-1].end() :] if labels else ""
    for part in (tail, text):
        if not part:
            continue
        if plain_name(part) in whole:
            return whole[plain_name(part)]
        for region in (marked(part, numbers), [part]):
            candidates_here = mentions(region, whole, numbers)
            if len(candidates_here) == 1:
                return whole[candidates_here.pop()]
            if candidates_here and region == [part] and part is tail:
                return ""
    return ""


def marked(text: str, numbers: bool) -> list[str]:
    """The stretches that the writer set apart."""
    stretches = [next(group for group in match.groups() if group) for match in MARKED.finditer(text)]
    return stretches + (ID.findall(text) if numbers else [])


def mentions(texts: Sequence[str], names: Iterable[str], numbers: bool) -> set[str]:
    """Which of the plain ``names`` occur, the longer one where two overlap."""
    plain_names = set(names)
    if numbers:
        return {
            match[1]
            for text in texts
            for match in NUMBER.finditer(text)
            if match[1] in plain_names and not NOT_AN_ID.search(text[: match.start()])
        }
    longest = sorted(plain_names, key=len, reverse=True)
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, longest)) + r")\b") if longest else re.compile(r"(?!)")
    return {match[0] for text in texts for match in pattern.finditer(plain_name(text))}


def any_mention(text: str, candidates: Sequence[str]) -> bool:
    """Whether ``text`` names one or more candidates."""
    numbers = bool(candidates) and all(name.isdigit() for name in candidates)
    return bool(mentions([text], {plain_name(name) for name in candidates}, numbers))
