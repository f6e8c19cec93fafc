"""A line for each query of a database: who, when, what, how many rows."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from decisor.errors import SetupError


@dataclass(frozen=True, slots=True)
class Audit:
    """``path``: a file of JSON lines, which only its owner reads. ``reader``: for whom the queries are."""

    path: Path
    reader: str

    def write(self, source: str, statement: str, own: bool, rows: int | None, complaint: str = "") -> None:
        """``own``: a query of our own making, such as one for the schema. ``rows``: None where it failed.

        Raises:
            SetupError: the file cannot be written: then nothing more is read.
        """
        line = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "reader": self.reader,
            "source": source,
            "by": "decisor" if own else "model",
            "statement": statement,
            "rows": rows,
            "error": complaint or None,
        }
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, (json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
            finally:
                os.close(file)
        except OSError as error:
            raise SetupError(f"The audit cannot be written to {self.path}: {error.strerror}.") from error
