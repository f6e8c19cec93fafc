"""An answer in clauses: names, figures, periods and citations; what the words around a figure say of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from decisor.replies.quantities import ORDINALS, Period, Quantity, unit_of_column, words_of_name
from decisor.replies.written_calculations import Calculation, written_calculations
from decisor.techniques.shared.objections.ground import Mention, is_key
from decisor.types import Record

MOST = 8
LEAST = 4
"""Letters of an answer that is looked for in rows: yes and no stand anywhere."""
BREAK = re.compile(
    r"(?<=[.!?])(?<!\bvs\.)(?<!\bca\.)(?<!\b[Nn]o\.)(?<!\bapprox\.)(?<!e\.g\.)(?<!i\.e\.)[\"'*)\]]*\s+(?=[A-Z\[\d*|(\"'$€£-])"
    r"|\n+|;\s+(?![^()]*\))"
)
RANGE = re.compile(r"\b(?:between|zwischen|entre)\b(?:[^.;]{0,30}\b(?:and|und|et|y)\b)?\s*[$€£]?$|\d\s*[–-]\s*$", re.I)
"""What stands before an end of a range."""
LOOSE = re.compile(r"\s*(?:[A-Za-z%€$]+\s+)?(?:or so|give or take|and change)\b|[ -]?ish\b|\+", re.I)
OF_THE_REST = re.compile(r"\b(?:remaining|others?|rest|further|übrigen|anderen|autres|otros|restantes)\b", re.I)
"""Words after which a figure may be of those that are not named."""
ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|nearly|almost|approximately|approx\.?|ca\.?|circa|some|close to)|[~≈])\s*$", re.I
)
BOUND = re.compile(
    r"\b(?:over|under|above|below|more than|less than|fewer than|at least|at most|up to|exceed\w*)\s*$", re.I
)
LABELLED = re.compile(
    r"(?:(?:\b|_)(?:top|first|last|next|option|step|rule|no\.?|number|ranks?|ranked|place|position|part|page|table|figure|level"
    r"|tier|phase|version|id|code|key)|#)\s*$", re.I,
)  # fmt: skip
MAX = r"highest|most|largest|biggest|greatest|maximum|longest"
MIN = r"lowest|least|fewest|smallest|cheapest|shortest|minimum"
SUPERLATIVE = re.compile(
    rf"\b(?:(?P<max>{MAX}|(?:valor )?más alto|höchste\w*)|(?P<min>{MIN}|(?:valor )?más bajo|niedrigste\w*))\b", re.I
)
FOREIGN = (
    "erste[nrs]? zweite[nrs]? dritte[nrs]? vierte[nrs]? fünfte[nrs]? sechste[nrs]? siebte[nrs]? achte[nrs]? neunte[nrs]?",
    "premi[eè]re? deuxième troisième quatrième cinquième sixième septième huitième neuvième",
    "primera? segund[ao] tercera? cuart[ao] quint[ao] sext[ao] séptim[ao] octav[ao] noven[ao]",
)
NTH = {"best": 1} | {word: at for words in (" ".join(ORDINALS), *FOREIGN) for at, word in enumerate(words.split(), 1)}
ORDINAL = rf"(?:{'|'.join(NTH)}|\d{{1,3}}(?:st|nd|rd|th))"
RULED = re.compile(
    r"\b(?:at least|at most|no more|less than|more than|under|over|above|below|only|without|excluding|except|must"
    r"|should|where|whose|while|unless|if|with|that|who|drop|not)\b", re.I,
)  # fmt: skip
UP = r"higher|more|greater|larger|bigger|above|longer|rose|risen|grew|grown|increased?|climbed|gained|up"
DOWN = r"lower|less|fewer|smaller|below|shorter|cheaper|fell|fallen|dropped|decreased?|declined|shrank|down|sank"
MEAN = re.compile(r"\b(?:averaged?|mean|typical)\b", re.I)
TOTAL = re.compile(r"\b(?:total|sum|together|combined|altogether|overall|in all|all|adding|adds?|share|make)\b", re.I)
GAP = re.compile(
    rf"\b(?:{UP}|{DOWN}|differ\w*|gap|lead\w*|ahead|behind|margin|than|by|saves?|saving|beats?|off|abstand|mehr|weniger|left|net"
    r"|change\w*|growth|rise|drop|fall|increase|decrease|from)\b", re.I,
)  # fmt: skip
RATIO = re.compile(
    r"\b(?:times|factor|twice|half|double|ratio|fold|per|each|every|an?|as (?:much|many))\b|×|\d\s?x\b", re.I
)
SEPARATOR = re.compile(r"[|\t]")
"""What stands between the columns of a table."""
OTHERS = re.compile(
    r"\b(?:next|others?|rest|follow\w*|second|runner|compared|against|than|versus|vs|while|whereas|remaining|any)\b",
    re.I,
)


@dataclass(frozen=True)
class Clause:
    """A sentence, or what a semicolon or line ends. ``masked`` has letters for its names and blanks for citations."""

    text: str
    masked: str
    names: tuple[Mention, ...]
    figures: tuple[Quantity, ...]
    periods: tuple[Period, ...]
    cited: tuple[tuple[int, int, tuple[str, ...]], ...]
    heads: tuple[str, ...] = ()
    """Of the columns of the table that it is a line of."""

    @property
    def is_line(self) -> bool:
        """Whether it is a line of a table."""
        return bool(self.heads)

    @property
    def cited_ids(self) -> frozenset[str]:
        return frozenset(id for _, _, ids in self.cited for id in ids)

    @cached_property
    def calculations(self) -> list[Calculation]:
        """Calculations that it writes out, such as 66 + 56 = 122."""
        return list(written_calculations(re.sub(r"[$€£*](?=\s*\d)", "", self.text)))

    @property
    def name_ids(self) -> frozenset[str]:
        return frozenset(id for one in self.names for id in one.ids)


@dataclass(frozen=True)
class Claims:
    """A final answer in parts, with the ids that it cites."""

    answer: str
    because: str
    runner_up: str = ""
    cited: tuple[str, ...] = ()


NOT_A_NAME = re.compile(r"(?:yes|no|true|false|none|both|neither|all|table\b.*|the (?:first|second|last)\b.*)", re.I)


def widen(figure: Quantity, text: str) -> Quantity:
    """The figure with more room where it is said to be about right."""
    if figure.is_word or not (ABOUT.search(text[: figure.start]) or LOOSE.match(text[figure.end :])):
        return figure
    meanings = []
    for one in figure.meanings:
        value = abs(one.value)
        room = min(rounded_to(value) if value == int(value) else 2 * one.room, value / 20)
        meanings.append(replace(one, room=max(one.room, room)))
    return replace(figure, meanings=tuple(meanings))


def fits_any(figure: Quantity, values: Iterable[float]) -> bool:
    return any(fits(figure, value) for value in values)


def is_claim(figure: Quantity, text: str) -> bool:
    """Whether a figure is more than the number of a list item, a rank or a label."""
    before, after = text[: figure.start], text[figure.end :]
    if figure.digits < 3 and (LABELLED.search(before) or (not before.strip(" -*(|") and re.match(r"[.)]\s", after))):
        return False
    value = figure.meanings[0].value
    if figure.text.lower() in ("zero", "one", "half") or value == 0 or (value == 100 and figure.unit == "%"):
        return False
    return not (figure.is_word and not re.match(r"\s+[a-z]", after))


def rows_before(names: Sequence[Mention], at: int) -> frozenset[str]:
    """The rows of the name before a place, narrowed by the names before that."""
    rows: frozenset[str] = frozenset()
    for one in reversed([one for one in names if one.end <= at]):
        if rows and not rows & one.ids:
            break
        rows = rows & one.ids if rows else one.ids
    return rows


def rows_after(names: Sequence[Mention], at: int) -> frozenset[str]:
    return next((one.ids for one in names if one.start >= at), frozenset())


def cited_for(figure: Quantity, clause: Clause) -> str:
    """The one row that is cited right after a figure; '' where there is none."""
    starts = [*(one.start for one in clause.figures), *(one.start for one in clause.names)]
    is_first = clause.cited and not any(start < clause.cited[0][0] for start in starts)
    for start, end, ids in clause.cited if not is_first else ():
        if start >= figure.end:
            between = clause.masked[figure.end : start]
            is_near = bool(re.fullmatch(r"[^A-Za-z]*(?:(?!and\b)[A-Za-z]+[^A-Za-z]*){0,2}", between))
            is_near = is_near and not any(figure.end <= one < start for one in starts)
            # Of several in a row each belongs to another figure, and nothing says which.
            is_run = any(0 <= other - end < 3 for other, _, _ in clause.cited)
            return ids[0] if len(ids) == 1 and is_near and not is_run else ""
    return ""


def noun_columns(figure: Quantity, clause: Clause, rows: Sequence[Record]) -> set[str]:
    """The columns that the word after a figure names, or the head above it: "34 orders"."""
    match = re.match(r"[*]*\s+(?:of the |of )?([A-Za-z]{3,})", clause.masked[figure.end :])
    match = match or re.search(r"([A-Za-z]{3,})[*\"`]*\s*[:=][\s*\"`]*$", clause.masked[: figure.start])
    if clause.is_line:
        at = len(SEPARATOR.findall(clause.masked[: figure.start]))
        match = re.fullmatch(r"\W*([A-Za-z]{3,})\W*", clause.heads[at]) if at < len(clause.heads) else None
    if not match or figure.unit:
        return set()
    noun = stem(match[1].lower())
    if noun in ("time", "than", "more", "less"):
        return set()
    return {
        name for row in rows for name, value in row.fields.items()
        if not is_key(name) and isinstance(value, int | float) and words_of_name(name)
        and noun == stem(words_of_name(name)[0]) and (len(words_of_name(name)) == 1 or not unit_of_column(name))
    }  # fmt: skip


def content_words(text: str, start: int, end: int) -> set[str]:
    around = (
        re.findall(r"[A-Za-z]{3,}", text[max(0, start - 25) : start])[-3:]
        + re.findall(r"[A-Za-z]{3,}", text[end : end + 25])[:2]
    )
    return {stem(word.lower()) for word in around} - SMALL_WORDS


SMALL_WORDS = frozenset(
    ["the", "and", "with", "has", "have", "for", "are", "was", "which", "that", "than", "from", "all", "most", "least"]
)


def stem(word: str) -> str:
    """
    >>> stem("countries"), stem("orders"), stem("boxes"), stem("cost")
    ('countr', 'order', 'box', 'cost')
    """
    return (
        re.sub(r"(?:ies|y)$", "", word) if re.search(r"(?:ies|y)$", word) else re.sub(r"(?:(?<=[sx])es|s)$", "", word)
    )


def rounded_to(value: float) -> float:
    """The place of the last digit that is not zero.

    >>> rounded_to(1300.0), rounded_to(2.0)
    (100.0, 1.0)
    """
    size = 1.0
    while value and value % (size * 10) == 0:
        size *= 10
    return size


def fits(figure: Quantity, value: float) -> bool:
    """Whether the figure rounds the value, whatever the sign."""
    return any(
        abs(abs(value) - abs(one.value)) <= one.room * (1 + 1e-6) + 1e-9 * abs(one.value) for one in figure.meanings
    )


def is_scaled(figure: Quantity, value: float) -> bool:
    """Whether only the place of the decimal point differs."""
    return any(fits(figure, value * size) for size in (1e-9, 1e-6, 1e-3, 0.01, 0.1, 10, 100, 1e3, 1e6, 1e9))
