"""An answer in clauses: names, figures, periods and citations; what the words around a figure say of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from decisor.parsing.figures import WrittenCalculation, find_written_calculations
from decisor.parsing.quantities import Period, Quantity, split_name, unit_of_column
from decisor.techniques.shared.objections import words
from decisor.techniques.shared.objections.ground import Mention, is_key
from decisor.types import Record

MOST = 8
LEAST = 4
"""Letters of an answer that is looked for in rows: yes and no stand anywhere."""


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
    def calculations(self) -> list[WrittenCalculation]:
        """Calculations that it writes out, such as 66 + 56 = 122."""
        return list(find_written_calculations(re.sub(r"[$€£*](?=\s*\d)", "", self.text)))

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


def widen(figure: Quantity, text: str) -> Quantity:
    """Return the figure with more room where it is said to be about right."""
    if figure.is_word or not (words.ABOUT.search(text[: figure.start]) or words.LOOSE.match(text[figure.end :])):
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
    if figure.digits < 3 and (
        words.LABELLED.search(before) or (not before.strip(" -*(|") and re.match(r"[.)]\s", after))
    ):
        return False
    value = figure.meanings[0].value
    if figure.text.lower() in ("zero", "one", "half") or value == 0 or (value == 100 and figure.unit == "%"):
        return False
    return not (figure.is_word and not re.match(r"\s+[a-z]", after))


def rows_before(names: Sequence[Mention], at: int) -> frozenset[str]:
    """Return the rows of the name before a place, narrowed by the names before that."""
    rows: frozenset[str] = frozenset()
    for one in reversed([one for one in names if one.end <= at]):
        if rows and not rows & one.ids:
            break
        rows = rows & one.ids if rows else one.ids
    return rows


def rows_after(names: Sequence[Mention], at: int) -> frozenset[str]:
    return next((one.ids for one in names if one.start >= at), frozenset())


def cited_for(figure: Quantity, clause: Clause) -> str:
    """Return the one row that is cited right after a figure; '' where there is none."""
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
    """Return the columns that the word after a figure names, or the head above it: "34 orders"."""
    match = re.match(r"[*]*\s+(?:of the |of )?([A-Za-z]{3,})", clause.masked[figure.end :])
    match = match or re.search(r"([A-Za-z]{3,})[*\"`]*\s*[:=][\s*\"`]*$", clause.masked[: figure.start])
    if clause.is_line:
        at = len(words.SEPARATOR.findall(clause.masked[: figure.start]))
        match = re.fullmatch(r"\W*([A-Za-z]{3,})\W*", clause.heads[at]) if at < len(clause.heads) else None
    if not match or figure.unit:
        return set()
    noun = stem(match[1].lower())
    if noun in ("time", "than", "more", "less"):
        return set()
    return {
        name
        for row in rows
        for name, value in row.fields.items()
        if not is_key(name)
        and isinstance(value, int | float)
        and split_name(name)
        and noun == stem(split_name(name)[0])
        and (len(split_name(name)) == 1 or not unit_of_column(name))
    }


def content_words(text: str, start: int, end: int) -> set[str]:
    before, after = text[max(0, start - 25) : start], text[end : end + 25]
    around = [*re.findall(r"[A-Za-z]{3,}", before)[-3:], *re.findall(r"[A-Za-z]{3,}", after)[:2]]
    return {stem(word.lower()) for word in around} - words.SMALL_WORDS


def stem(word: str) -> str:
    """
    >>> stem("countries"), stem("orders"), stem("boxes"), stem("cost")
    ('countr', 'order', 'box', 'cost')
    """
    return re.sub(r"(?:ies|y|(?<=[sx])es|s)$", "", word)


def rounded_to(value: float) -> float:
    """Return the place of the last digit that is not zero.

    >>> rounded_to(1300.0), rounded_to(2.0)
    (100.0, 1.0)
    """
    size = 1.0
    while value and value % (size * 10) == 0:
        size *= 10
    return size


def fits(figure: Quantity, value: float) -> bool:
    """Whether the figure rounds the value, whatever the sign."""
    size = abs(value)
    return any(abs(size - abs(one.value)) <= one.room * (1 + 1e-6) + 1e-9 * abs(one.value) for one in figure.meanings)


def is_scaled(figure: Quantity, value: float) -> bool:
    """Whether only the place of the decimal point differs."""
    return any(fits(figure, value * size) for size in (1e-9, 1e-6, 1e-3, 0.01, 0.1, 10, 100, 1e3, 1e6, 1e9))
