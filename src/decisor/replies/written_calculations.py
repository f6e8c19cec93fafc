"""Calculations that an answer writes out: ``31,000 + 2,100 + 14 * 150 = 35,200``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from decisor.replies.numbers import readings

NUMBER = r"\d(?:[\d.,']*\d)?"
ALIKE = str.maketrans("\u2212\u2013\u00d7\u00b7x:", "--***/")
MARK = r"[-+*/\u2212\u2013\u00d7\u00b7x:]"
WRITTEN = re.compile(rf"(?<![\d.,])({NUMBER}(?:\s*{MARK}\s*{NUMBER})+)\s*=\s*({NUMBER})")


@dataclass(frozen=True, slots=True)
class Calculation:
    """``parts``: numbers as written, and the marks between them. ``result``: the number after the equals sign."""

    parts: tuple[str, ...]
    result: str
    value: float

    @property
    def operands(self) -> tuple[str, ...]:
        return self.parts[::2]


def written_calculations(text: str) -> Iterator[Calculation]:
    """Those that have a value.

    >>> [(one.parts, one.result, one.value) for one in written_calculations("So 31,000 + 14 * 150 = 33,100 in all.")]
    [(('31,000', '+', '14', '*', '150'), '33,100', 33100.0)]
    """
    for left, result in WRITTEN.findall(text):
        parts = tuple(part.translate(ALIKE) for part in re.findall(rf"{NUMBER}|{MARK}", left))
        try:
            yield Calculation(parts, result, value_of(parts))
        except (ZeroDivisionError, IndexError):  # The second: of a part that is no number, as 1.2,3.4.
            continue


def value_of(parts: tuple[str, ...]) -> float:
    """Products before sums, from left to right."""
    total, term = 0.0, readings(parts[0])[0].value
    for mark, text in zip(parts[1::2], parts[2::2], strict=True):
        number = readings(text)[0].value
        if mark == "*":
            term *= number
        elif mark == "/":
            term /= number
        else:
            total, term = total + term, number if mark == "+" else -number
    return total + term
