"""Text made safe for a terminal, on one line, and numbers as people read them."""

from __future__ import annotations

import math
import re
import unicodedata

LOOSE_JOINER = re.compile(r"(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])")


def clean(text: str) -> str:
    r"""Text from a model or a database without what could steer a terminal; newlines and tabs stay.

    Drops control characters (escape sequences lose their ESC), and marks that reorder or hide text. Joiners stay
    between the letters and emoji that need them.

    >>> clean("a\x1b[31mb\x9bc\u202ed\te")
    'a[31mbcd\te'
    """
    if text.isprintable():
        return text
    return "".join(
        c
        for c in LOOSE_JOINER.sub("", text)
        if c in "\n\t\u200c\u200d" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    )


def one_line(text: str, width: int = 100) -> str:
    """Clean, on one line, cut to ``width`` characters.

    >>> one_line("select a\\n  from b", 12)
    'select a fr…'
    """
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def number(value: float) -> str:
    """Eight digits, with commas between thousands.

    >>> number(1261290.678), number(0.001234), number(3.0), number(126129000.456), number(math.inf)
    ('1,261,290.7', '0.001234', '3', '126,129,000', 'inf')
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if not 1 <= abs(value) < 1e15:
        return f"{value:.8g}"
    before = len(str(int(abs(value))))
    text = f"{value:,.{max(0, 8 - before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
