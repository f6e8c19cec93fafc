"""The one logger of this package, ``logging.getLogger("decisor")``: silent until a program gives it a handler.

INFO: data that were opened, how a run ended. WARNING: a call to an LM that is tried again.
"""

from __future__ import annotations

import logging
import traceback

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
