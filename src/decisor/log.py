"""The one logger of this package, ``logging.getLogger("decisor")``: silent until a program gives it a handler.

INFO: data that were opened, how a run ended. WARNING: a call to an LM that is tried again.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("decisor")
logger.addHandler(logging.NullHandler())
