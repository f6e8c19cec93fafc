"""A passage: the piece of text that is found, shown and cited."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from pathlib import Path
from typing import TextIO

from decisor.errors import SetupError
from decisor.types import Value


@dataclass(frozen=True, slots=True)
class Passage:
    """``id`` is stable: the corpus's own, or DOCUMENT#POSITION. ``section``: the headings above it, "Install > Linux".
    ``position``: which passage of its document it is, from 1; 0 where it is a document by itself."""

    id: str
    text: str
    title: str = ""
    section: str = ""
    position: int = 0

    @property
    def whole(self) -> str:
        """What is indexed: title, section and text."""
        return "\n".join(part for part in (self.title, self.section, self.text) if part)

    def dump(self) -> bytes:
        """As JSON."""
        texts = ", ".join(map(encode_basestring, (self.id, self.text, self.title, self.section)))
        return f"[{texts}, {self.position}]".encode()

    @classmethod
    def load(cls, data: bytes) -> Passage:
        return cls(*json.loads(data))


def read_passages(path: Path | str) -> Iterator[Passage]:
    """The passages of a JSON lines file (.gz too) whose lines have id, text and perhaps title.

    Raises:
        SetupError: it cannot be read, or a line has no id or text; with the number of the line.
    """
    path = Path(path)
    number = 0
    try:
        with open_text(path) as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007
                if line.strip():
                    yield passage_of(json.loads(line))
    except FileNotFoundError as error:
        raise SetupError(f"There is no file {path}: name JSON lines with id, text and title.") from error
    except (OSError, EOFError, ValueError) as error:
        raise SetupError(f"{path}, line {number}: {error}. A line is an object with id, text and title.") from error


def open_text(path: Path) -> TextIO:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def passage_of(row: Value) -> Passage:
    """
    >>> passage_of({"id": 7, "title": "Genua", "text": "A port."})
    Passage(id='7', text='A port.', title='Genua', section='', position=0)
    """
    if not isinstance(row, Mapping) or row.get("id") in (None, "") or not isinstance(text := row.get("text"), str):
        raise ValueError("it has no id, or no text")
    return Passage(str(row["id"]), text, str(row.get("title") or ""), str(row.get("section") or ""))
