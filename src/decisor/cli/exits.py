"""What every subcommand shares: exit codes, and the line an error gets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import IntEnum

from decisor.cli.console import print_json
from decisor.encoding import json_value
from decisor.errors import BudgetExceeded, Error, LMError, SetupError
from decisor.render.text import clean
from decisor.secrets import redact, secrets_in
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


def error_line(error: Exception, words: Sequence[str] = ()) -> str:
    """One line, with what to do where that is known, without keys and without the passwords in ``words``, those of the
    command line."""
    passwords = [secret for word in words for secret in secrets_in(word)]
    line = redact(clean(str(error)).replace("\n", " ").strip(), passwords)
    if isinstance(error, LMError):
        line = f"The LM failed: {line}{'' if 'decisor doctor' in line else ' Test it: decisor doctor --lm MODEL@URL'}"
    return line


def say_error(error: Exception, words: Sequence[str] = ()) -> None:
    """One line on standard error, or one object on standard output where ``words`` ask for JSON."""
    if "--json" in words:
        usage = {"usage": json_value(error.spent)} if isinstance(error, Error) and error.spent.calls else {}
        print_json({"error": error_line(error, words), "exit": int(exit_of_error(error)), **usage})
    else:
        print(f"decisor: {error_line(error, words)}{cost_of(error)}", file=sys.stderr)


def cost_of(error: Exception) -> str:
    """What the run that it ended had cost, as a sentence."""
    if not isinstance(error, Error) or not error.spent.tokens:
        return ""
    from decisor.session.decide import cost_line

    return f" Before that: {cost_line(error.spent)}."
