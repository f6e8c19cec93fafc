"""The log of a server on standard error: lines for people, or a JSON object a line for programs.

Objects have no values: of a message its fixed words alone, of an error its kind and the places in the code, of a person
the hash that their folder of uploads has.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from decisor.system.extras import logger

LogForm = Literal["text", "json"]


class JsonFormatter(logging.Formatter):
    """A formatter of records as JSON. Facts of a record are its ``extra={"facts": ...}``."""

    def format(self, record: logging.LogRecord) -> str:
        own = vars(record)
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            # Redaction has put the values into the message; the words without them stand beside it.
            "event": own.get("words", record.msg),
            "process": record.process,
            **own.get("facts", {}),
        }
        if record.exc_info and (error := record.exc_info[1]) is not None:
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__name__
            line["at"] = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
        return json.dumps(line)


def show_log(form: LogForm = "text") -> None:
    """Write what the server logs to standard error: as text problems alone, as JSON the end of each run too."""
    handler = logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonFormatter())
        logger.setLevel(logging.INFO)
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logger.addHandler(handler)
