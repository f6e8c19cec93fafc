"""A reply that goes round in circles, noticed while it is written."""

from __future__ import annotations

PERIODS = ((600, 60), (2_400, 480))
"""The last so many characters, if all of them are one piece of at most so many again and again, are a loop."""


def loop_start(text: str) -> int | None:
    """Where the loop that ``text`` ends in begins, its first time round left out; None where it ends in none.

    Ten times the same short piece, or five times the same long one, is no table and no list: those differ somewhere.

    >>> text = "Thought: " + "look again. " * 80
    >>> text[: loop_start(text)]
    'Thought: look again.'
    >>> loop_start("".join(f"{i} look again. " for i in range(200))) is None
    True
    """
    for length, longest in PERIODS:
        tail = text[-length:]
        if len(tail) == length and (period := period_of(tail, longest)):
            start = len(text) - length
            while start and text[start - 1] == text[start - 1 + period]:
                start -= 1
            return start + period
    return None


def period_of(text: str, longest: int) -> int:
    """The least p, at most ``longest``, such that each character is the one p before it; 0 where there is none.

    >>> period_of("abcabcab", 3), period_of("abcabcab", 2)
    (3, 0)
    """
    at = 0
    while 0 < (at := text.find(text[:longest], at + 1)) <= longest:
        if text[at:] == text[: len(text) - at]:
            return at
    return 0
