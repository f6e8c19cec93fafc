"""What every subcommand shares: exit codes, the line an error gets, and text made safe for a terminal."""

from __future__ import annotations

import json
import sys
import unicodedata
from enum import IntEnum

from decisor.errors import BudgetExceeded, LMError, SetupError
from decisor.types import Decision


class Exit(IntEnum):
    """0 answered · 1 failed · 2 bad input · 3 a limit ended the run · 4 no answer."""

    ANSWERED = 0
    FAILED = 1
    INPUT = 2
    LIMIT = 3
    NO_ANSWER = 4


def exit_of(decision: Decision) -> Exit:
    codes = {"answered": Exit.ANSWERED, "budget": Exit.LIMIT, "steps": Exit.LIMIT, "no_answer": Exit.NO_ANSWER}
    return codes.get(decision.stopped, Exit.FAILED)


def exit_of_error(error: Exception) -> Exit:
    """LMError and what a technique could not mend: failed. SetupError: input. BudgetExceeded: limit."""
    if isinstance(error, SetupError):
        return Exit.INPUT
    return Exit.LIMIT if isinstance(error, BudgetExceeded) else Exit.FAILED


def error_line(error: Exception) -> str:
    """One line, with what to do where that is known."""
    line = clean(str(error)).replace("\n", " ").strip()
    if isinstance(error, LMError):
        return f"The LM failed: {line} (decisor doctor tests it)"
    return line


def say_error(error: Exception, as_json: bool = False) -> None:
    """One line on standard error, or one object on standard output."""
    if as_json:
        print(json.dumps({"error": error_line(error), "exit": int(exit_of_error(error))}))
    else:
        print(f"decisor: {error_line(error)}", file=sys.stderr)


def clean(text: str) -> str:
    r"""Text from a model or a database without what could steer a terminal; newlines and tabs stay.

    Drops control characters (escape sequences lose their ESC), and marks that reorder or hide text.

    >>> clean("a\x1b[31mb\x9bc\u202ed\te")
    'a[31mbcd\te'
    """
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
    >>> number(12345.678), number(0.001234), number(3.0)
    ('12,345.7', '0.001234', '3')
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.6g}" if abs(value) < 1e15 else f"{value:g}"
