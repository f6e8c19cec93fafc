"""How far a long computation is, for whoever watches the run that it is part of; nobody, unless they say so."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

COUNTER: ContextVar[Callable[[str, int, int], None] | None] = ContextVar("COUNTER", default=None)
"""Called with what is counted, how many are done, and how many there are; from the thread that computes."""


def counter_of(what: str) -> Callable[[int, int], None] | None:
    """To be called with how many are done and how many there are; None where nobody watches."""
    counter = COUNTER.get()
    return None if counter is None else partial(counter, what)
