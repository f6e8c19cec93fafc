"""Judges without an LM. Each takes the answer and every accepted answer. Exact match after normalising, F1 and what
benchmarks build on them are in ``text_match``; these are the four rules that any benchmark can name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from decisor.judging.text_match import acc_word, em

Rule = Literal["exact", "normalised", "numeric", "contained"]
NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?:[eE][-+]?\d+)?(?![\w]|\.\d)")
SCALES = {"%": 0.01, "percent": 0.01, "thousand": 1e3, "million": 1e6, "billion": 1e9}
SCALE = re.compile(r"\s*(%|percent\b|thousand\b|million\b|billion\b)", re.I)


def exact(answer: str, gold: Sequence[str]) -> bool:
    """The same characters, but for white space around them."""
    return answer.strip() in {accepted.strip() for accepted in gold}


def normalised(answer: str, gold: Sequence[str]) -> bool:
    """The same after HotpotQA's normalisation: case, ASCII punctuation, articles, white space.

    >>> normalised("The  Eiffel-Tower.", ["eiffeltower"])
    True
    """
    return em(answer, gold) == 1.0


def contained(answer: str, gold: Sequence[str]) -> bool:
    """An accepted answer occurs in it, in whole words.

    >>> contained("I know", ["no"]), contained("It was Ada Lovelace.", ["Ada Lovelace"])
    (False, True)
    """
    return acc_word(answer, gold) == 1.0


def numbers(text: str) -> tuple[float, ...]:
    """The numbers that a text names; thousands may be set apart by commas, and a scale may follow.

    >>> numbers("Between 1,234.5 and -2 million (12 %), in version 1.2.3 or A4")
    (1234.5, -2000000.0, 0.12)
    """
    values = []
    for match in NUMBER.finditer(text):
        scale = SCALE.match(text, match.end())
        factor = SCALES[scale[1].lower()] if scale else 1.0
        values.append(float(match[0].replace(",", "").replace("\u2212", "-")) * factor)
    return tuple(values)


def numeric(answer: str, gold: Sequence[str], relative: float = 1e-6, absolute: float = 1e-9) -> bool | None:
    """The one number of the answer is an accepted one, within a tolerance. An answer with several different numbers is
    not right; None where no accepted answer is a number, so that the rule cannot judge.

    >>> numeric("about 5,900 m", ["5931.80"], relative=0.1), numeric("3 or 4", ["4"]), numeric("four", ["4"])
    (True, False, False)
    """
    accepted_values = [value for accepted in gold for value in numbers(accepted)[:1]]
    if not accepted_values:
        return None
    values = set(numbers(answer))
    if len(values) != 1:
        return False
    value = values.pop()
    return any(abs(value - right) <= max(absolute, relative * abs(right)) for right in accepted_values)


RULES: Mapping[Rule, Callable[[str, Sequence[str]], bool | None]] = {
    "exact": exact, "normalised": normalised, "numeric": numeric, "contained": contained,
}  # fmt: skip
