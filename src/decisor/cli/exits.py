"""What every subcommand shares: exit codes, and the line an error gets."""

from __future__ import annotations

import json
import sys
from enum import IntEnum

from decisor.encoding import json_value
from decisor.errors import BudgetExceeded, Error, LMError, SetupError
from decisor.render.text import clean
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
        line = f"The LM failed: {line} (decisor doctor tests it)"
    if isinstance(error, Error) and error.spent.calls:
        from decisor.session.decide import cost_line

        line = f"{line} Before that: {cost_line(error.spent)}."
    return line


def say_error(error: Exception, as_json: bool = False) -> None:
    """One line on standard error, or one object on standard output."""
    if as_json:
        usage = {"usage": json_value(error.spent)} if isinstance(error, Error) and error.spent.calls else {}
        print(json.dumps({"error": error_line(error), "exit": int(exit_of_error(error)), **usage}))
    else:
        print(f"decisor: {error_line(error)}", file=sys.stderr)
