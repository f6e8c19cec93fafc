"""Asking once more after a reply that could not be used: what is added to the prompt, and how the next one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decisor.errors import ParseError
from decisor.types import Message, Sampling

HEADING = "\n\n# Your last reply could not be used"
SHOWN = 160
WARMER, WARMEST = 0.4, 1.0


def ask_again(prompt: Sequence[Message], reply: str, complaint: ParseError, example: str) -> list[Message]:
    """The prompt with what was wrong with the last reply, how that began, and a form that is filled in. Replies before
    the last are left out, and the prompt stays as it was at its beginning."""
    parts = [HEADING, str(complaint)]
    if beginning := shorten(reply):
        parts.append(f"It began: {beginning}")
    if example:
        parts.append(f"Reply again in this form, with values of your own:\n{example}")
    else:
        parts.append("Reply again, in the form asked for.")
    last = prompt[-1]
    return [*prompt[:-1], Message(last.role, last.content + "\n".join(parts) + "\n")]


def shorten(reply: str) -> str:
    """Enough of a reply to know it by, too little to write it again.

    >>> shorten("I would\\nlook."), len(shorten("a " * 500)) < 200
    ('"I would look."', True)
    """
    plain = " ".join(reply.split())
    if not plain:
        return ""
    return f'"{plain}"' if len(plain) <= SHOWN else f'"{plain[:SHOWN].rstrip()}" [...]'


def drawn_anew(sampling: Sampling, attempt: int) -> Sampling:
    """Another draw at the same place, warmer each time: the likeliest reply would be the same again.

    >>> drawn_anew(Sampling(), 1).temperature, drawn_anew(Sampling(temperature=1.0, seed=7), 2).seed
    (0.4, 9)
    """
    if not attempt:
        return sampling
    temperature = max(sampling.temperature, min(WARMER * attempt, WARMEST))
    return replace(sampling, temperature=temperature, seed=(sampling.seed or 0) + attempt)
