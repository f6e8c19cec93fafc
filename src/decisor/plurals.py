"""Numbers of things in words."""

from __future__ import annotations


def plural(number: int, what: str) -> str:
    return what if number == 1 else f"{what}s"


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "sequence"), counted(0, "sequence"), counted(1200, "row")
    ('1 sequence', '0 sequences', '1,200 rows')
    """
    return f"{number:,} {plural(number, what)}"
