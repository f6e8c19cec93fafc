"""Text made safe for a terminal, on one line, and numbers as people read them."""

from __future__ import annotations

import math
import unicodedata


def clean(text: str) -> str:
    r"""Text from a model or a database without what could steer a terminal; newlines and tabs stay.

    Drops control characters (escape sequences lose their ESC), and marks that reorder or hide text.

    >>> clean("a\x1b[31mb\x9bc\u202ed\te")
    'a[31mbcd\te'
    """
    if text.isprintable():
        return text
    return "".join(
        c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    )


def one_line(text: str, width: int = 100) -> str:
    """Clean, on one line, cut to ``width`` characters.

    >>> one_line("select a\\n  from b", 12)
    'select a fr…'
    """
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def number(value: float) -> str:
    """
    >>> number(12345.678), number(0.001234), number(3.0), number(math.inf)
    ('12,345.7', '0.001234', '3', 'inf')
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.6g}" if abs(value) < 1e15 else f"{value:g}"
