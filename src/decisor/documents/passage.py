"""A passage, the piece of text that is found, shown and cited, and the protocols of embedders and rerankers.

An embedder converts texts to vectors, and a reranker ranks the best records again; a person's own code may do either.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from decisor.errors import SetupError
from decisor.types import Record, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that is found, shown and cited."""

    id: str
    """Stable, from the corpus or DOCUMENT#POSITION."""
    text: str
    title: str = ""
    section: str = ""
    """Headings above it, as in "Install > Linux"."""
    position: int = 0
    """Number within its document, from 1; 0 if it is a document by itself."""

    @property
    def whole(self) -> str:
        """Indexed text: title, section and text."""
        return "\n".join(part for part in (self.title, self.section, self.text) if part)

    def dump(self) -> bytes:
        """Return the passage as JSON."""
        # As json.dumps would write it, without its overhead for each of a million passages.
        texts = ", ".join(map(encode_basestring, (self.id, self.text, self.title, self.section)))
        return f"[{texts}, {self.position}]".encode()

    @classmethod
    def load(cls, data: bytes) -> Passage:
        return cls(*json.loads(data))


def read_passages(path: Path | str) -> Iterator[Passage]:
    """Read passages from a JSON lines file (.gz too) with id, text and optionally title.

    Raises:
        SetupError: it cannot be read, or a line has no id or text; with the number of the line.
    """
    path = Path(path)
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007
                if line.strip():
                    yield build_passage(json.loads(line))
    except FileNotFoundError as error:
        raise SetupError(f"There is no file {path}: name JSON lines with id, text and title.") from error
    except (OSError, EOFError, ValueError) as error:
        raise SetupError(f"{path}, line {number}: {error}. A line is an object with id, text and title.") from error


def build_passage(row: Value) -> Passage:
    """Build a passage from a JSON object; raise ValueError if it has no id or no text.

    >>> build_passage({"id": 7, "title": "Genua", "text": "A port."})
    Passage(id='7', text='A port.', title='Genua', section='', position=0)
    """
    if not isinstance(row, Mapping) or row.get("id") in (None, "") or not isinstance(text := row.get("text"), str):
        raise ValueError("it has no id, or no text")
    return Passage(str(row["id"]), text, str(row.get("title") or ""), str(row.get("section") or ""))


class Embedder(Protocol):
    """A converter of texts to vectors.

    An index stores its ``name`` and can only be searched with the embedder that built it.
    """

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), width), rows of length 1.

        It is called from worker threads, and may raise LLMError or SetupError.
        """
        ...


class Reranker(Protocol):
    """A second look at the best records, each together with the query."""

    async def score(self, query: str, records: Sequence[Record]) -> Sequence[float]:
        """Return a score for each record, higher is better."""
        ...
