"""Which definitions a question is about: by the words that it shares with their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from decisor.definitions.format import (
    Calendar,
    Definition,
    Definitions,
    Entity,
    Example,
    Join,
    Metric,
    Reading,
    ValueWords,
)

WORD = re.compile(r"[^\W_]+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
PERIODS = frozenset({"year", "yearly", "annual", "quarter", "quarterly", "fiscal", "month", "ytd"})
DULL_WORDS = """
a an and are as at be by do does for from had has have how if in into is it its many most much no not of on or our
should the their them they this to was we were what when where which who why will with would you
"""
DULL = frozenset(DULL_WORDS.split())
MOST, MOST_JOINS = 10, 6
WHOLE = 3.0
SIMILAR = 0.45


def words_of(text: str) -> tuple[str, ...]:
    """
    >>> words_of("Which OrderDates of net_sales?")
    ('order', 'date', 'net', 'sale')
    """
    return tuple(bare(word) for word in WORD.findall(CAMEL.sub(" ", text).lower()) if word not in DULL)


def bare(word: str) -> str:
    """Without the ending of a plural."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def relevant(question: str, definitions: Definitions, most: int = MOST) -> list[Definition]:
    """The best first; joins of their tables last."""
    text = words_of(question)
    pairs = [(score(one, text), one) for one in definitions if not isinstance(one, Join)]
    best = [one for points, one in sorted(pairs, key=lambda pair: -pair[0])[:most] if points >= 1]
    for reading in [one for one in best if isinstance(one, Reading) and one.metric]:
        best += [one for one in definitions.metrics if one.name == reading.metric and one not in best]
    tables = " ".join(used_text(one) for one in best).lower()
    joins = [one for one in definitions.joins
             if all(re.search(rf"(?<!\w){re.escape(table_of(side[0]))}(?!\w)", tables)
                    for side in (one.left, one.right))]  # fmt: skip
    return [*best, *joins[:MOST_JOINS]]


def score(one: Definition, text: Sequence[str]) -> float:
    """3 and more where the question says one of its names; less where it says a part of one."""
    here = set(text)
    match one:
        case Example():
            own = set(words_of(one.question))
            share = len(own & here) / len(own | here) if own else 0.0
            return WHOLE * share if share >= SIMILAR else 0.0
        case ValueWords():
            names: Iterable[str] = (name for stored, others in one.words.items() for name in (stored, *others))
            return max((WHOLE * (says(name, text) == 1) for name in names), default=0.0)
        case Reading():
            return max((WHOLE + 1 if says(name, text) == 1 else 0.0 for name in one.words), default=0.0)
        case Calendar():
            if here & PERIODS and one.default:
                return WHOLE
    names = (one.name, *getattr(one, "synonyms", ()))
    points = max(
        WHOLE + len(words_of(name)) / 10 if (share := says(name, text)) == 1 else share * 1.5 for name in names
    )
    if isinstance(one, Metric | Entity) and here & set(words_of(one.about)):
        points += 0.3 * len(here & set(words_of(one.about)))
    return points


def says(name: str, text: Sequence[str]) -> float:
    """The share of a name's words that stand in the question."""
    own = words_of(name)
    return sum(word in text for word in own) / len(own) if own else 0.0


def used_text(one: Definition) -> str:
    match one:
        case Metric():
            return f"{one.sql} {one.source} {one.query}"
        case Entity():
            return one.table
        case _:
            return f"{getattr(one, 'sql', '')} {getattr(one, 'source', '')}"


def table_of(place: str) -> str:
    return place.rpartition(".")[0].strip('"`').lower()
