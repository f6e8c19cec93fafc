"""A line for each query of a database: who, when, what, how many rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from decisor.errors import SetupError

Asker = Literal["model", "person", "decisor"]
ASKER: ContextVar[Asker] = ContextVar("asker", default="person")
BY_HAND: ContextVar[str] = ContextVar("by_hand", default="")


@contextmanager
def asked_by(asker: Asker) -> Iterator[None]:
    """Who gives a tool what it is called with, until the block ends. A program that calls one by itself is a person."""
    token = ASKER.set(asker)
    try:
        yield
    finally:
        ASKER.reset(token)


@contextmanager
def written_by_hand(text: str) -> Iterator[None]:
    """Until the block ends this one text is a person's, in place of what a model wrote."""
    token = BY_HAND.set(text.strip())
    try:
        yield
    finally:
        BY_HAND.reset(token)


def asker_of(text: str) -> Asker:
    """Who gave a tool this text."""
    return "person" if BY_HAND.get() and text.strip() == BY_HAND.get() else ASKER.get()


@dataclass(frozen=True, slots=True)
class Audit:
    """``path``: a file of JSON lines, which only its owner reads. ``reader``: for whom the queries are."""

    path: Path
    reader: str

    def write(self, source: str, statement: str, by: Asker, rows: int | None, complaint: str = "") -> None:
        """``by``: who asked; ``decisor`` for what it asks by itself, such as the schema or whether a query means what
        it seems to. ``rows``: None where it failed.

        Raises:
            SetupError: the file cannot be written: then nothing more is read.
        """
        line = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "reader": self.reader,
            "source": source,
            "by": by,
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
