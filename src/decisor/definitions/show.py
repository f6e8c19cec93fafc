"""A definition in one line: as an LM and a person read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from decisor.definitions.format import (
    Calendar,
    Definition,
    Dimension,
    Entity,
    Example,
    Join,
    Metric,
    Reading,
    ValueWords,
    title,
)
from decisor.outside import clean_text, one_line

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
MOST_CHARS = 900


def line(one: Definition) -> str:
    """
    >>> line(Calendar("fiscal", "07-01", default=True))
    'calendar.fiscal: a year starts on 1 July and has the number of the year in which it ends; this is meant by "year"'
    """
    return one_line(f"{title(one)}{also(one)}: {'; '.join(parts(one))}", MOST_CHARS)


def also(one: Definition) -> str:
    """What people call it too."""
    synonyms: Sequence[str] = getattr(one, "synonyms", ())
    return f" ({', '.join(synonyms)})" if synonyms else ""


def parts(one: Definition) -> Iterator[str]:
    """What it says, in pieces."""
    if about := getattr(one, "about", ""):
        yield clean_text(about).strip().rstrip(".")
    match one:
        case Metric():
            yield f"the query {flat(one.query)}" if one.query else f"{flat(one.sql)} over {flat(one.source)}"
            if one.where:
                yield f"only rows where {' and '.join(map(flat, one.where))}"
            if one.grain:
                yield f"a row of these is one {', '.join(one.grain)}"
            if one.date:
                yield f"a period is about {one.date}"
            if one.unit:
                yield f"in {one.unit}"
        case Dimension():
            yield flat(one.sql) + (f" over {flat(one.source)}" if one.source else "")
        case Calendar():
            month, day = one.starts.split("-")
            yield (f"a year starts on {int(day)} {MONTHS[int(month) - 1]} and has the number of the year in which it "
                   f"{one.named_by}s")  # fmt: skip
            if one.default:
                yield 'this is meant by "year"'
        case Entity():
            yield f"a row of {one.table}, told apart by {', '.join(one.key)}"
        case Join():
            yield f"{' and '.join(f'{a} = {b}' for a, b in zip(one.left, one.right, strict=True))}, {one.cardinality}"
        case ValueWords():
            yield from (f"{stored!r} is also called {', '.join(words)}" for stored, words in one.words.items())
        case Reading():
            yield f"{' or '.join(repr(text) for text in one.words)} means {one.means}"
            if one.metric:
                yield f"measured by metric.{one.metric}"
        case Example():
            yield f"{flat(one.question)!r} is answered by {flat(one.sql) if one.sql else repr(flat(one.answer))}"
            if one.origin.why:
                yield flat(one.origin.why)
        case _:
            assert_never(one)


def flat(text: str) -> str:
    return " ".join(text.split())
