"""The one logger of this package, ``logging.getLogger("decisor")``: silent until a program gives it a handler.

INFO: data that were opened, how a run ended. WARNING: a call to an LM that is tried again, a check that failed.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from decisor.secrets import redact


class Redaction(logging.Filter):
    """No record holds a key or a password, whichever handler it goes to."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), None
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip())
        return True


logger = logging.getLogger("decisor")
logger.addFilter(Redaction())
logger.addHandler(logging.NullHandler())

heard_by: ContextVar[Callable[[str], object] | None] = ContextVar("heard_by", default=None)


@contextmanager
def note_faults(hear: Callable[[str], object]) -> Iterator[None]:
    """Have the faults of checks within the block told to ``hear`` too, such as to the trace of a run."""
    before = heard_by.set(hear)
    try:
        yield
    finally:
        heard_by.reset(before)


@contextmanager
def pass_over_faults(check: str) -> Iterator[None]:
    """Log and note what goes wrong inside a check, and go on after the block: a check never ends a run.

    >>> with note_faults(print), pass_over_faults("figures"):
    ...     1 / 0
    The check of figures failed (ZeroDivisionError) and was passed over.
    """
    try:
        yield
    except Exception as error:
        logger.warning("The check of %s failed.", check, exc_info=True)
        if hear := heard_by.get():  # without its text, which may hold values that a reader must not see
            hear(f"The check of {check} failed ({type(error).__name__}) and was passed over.")
