"""Which cell of the evidence a figure of an answer comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from decisor.replies.figures import fits
from decisor.replies.numbers import numbers_in, readings
from decisor.types import Figure, Record

RECORD = re.compile(r"\bo\d+\.\w+")


@dataclass(frozen=True, slots=True)
class Cell:
    """A place in the evidence: a record and the number of its column, -1 for its text."""

    record: str
    column: int


def cells_of(figure: Figure, records: Mapping[str, Record]) -> Iterator[Cell]:
    """The cells that hold a figure; of a calculation those that it starts from."""
    for name in dict.fromkeys(RECORD.findall(figure.support)):
        if name in records:
            column = column_of(figure, records[name])
            if column is not None:
                yield Cell(name, column)


def column_of(figure: Figure, record: Record) -> int | None:
    """Which column of the record supports the figure.

    >>> column_of(Figure("12.3", "o1.r1"), Record("o1.r1", {"name": "elm", "rent": 12.34}))
    1
    """
    wanted = readings(figure.text)
    terms = [
        float(term) for term in re.findall(rf"(-?[\d.]+(?:e[+-]?\d+)?) \[{re.escape(record.id)}\]", figure.support)
    ]
    percent = figure.text.endswith("%")
    for at, value in enumerate(record.fields.values()):
        for one in numbers_in(value):
            near = any(abs(one - term) <= 1e-6 * max(1.0, abs(term)) for term in terms)
            if near or any(fits(one, each) or (percent and fits(100 * one, each)) for each in wanted):
                return at
    return -1 if record.text else None
