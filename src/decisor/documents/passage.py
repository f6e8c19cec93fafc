"""A passage, the piece of text that is found, shown and cited; and how documents are cut into passages.

Blocks of text under headings become passages of about so many words, at the ends of sentences. An embedder converts
texts to vectors, and a reranker ranks the best records again; a person's own code may do either.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from json.encoder import encode_basestring
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from decisor.errors import SetupError
from decisor.system.text import clean_text
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


WORDS = 100
UNSPACED = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")
END = re.compile(r"(?<=[.!?…])(?P<close>[\"'”’»)\]]*)\s+|(?<=[。！？])(?P<closed>[」』”’）]*)|\n+")
"""The marks that close a quotation or a bracket belong to the sentence before them."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph, list item or table row, with the headings above it from the outermost."""

    text: str
    trail: tuple[str, ...] = ()
    head: str = ""
    """The row of a table that names the columns of this one; '' where there is none."""


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """The title and text blocks that a reader extracts from a document."""

    title: str = ""
    blocks: tuple[TextBlock, ...] = ()


def cut_passages(key: str, content: DocumentContent, words: int = WORDS) -> tuple[Passage, ...]:
    """Cut a document into passages with ids KEY#1, KEY#2, ... No passage crosses a heading.

    >>> text = "One two three. Four five six. Seven eight. Nine."
    >>> [p.text for p in cut_passages("k", DocumentContent("T", (TextBlock(text),)), words=5)]
    ['One two three. Four five six.', 'Seven eight. Nine.']
    """
    cut: list[Passage] = []
    for trail, blocks in groupby(content.blocks, key=lambda block: block.trail):
        for text in _cut_blocks(list(blocks), words):
            cut.append(Passage(f"{key}#{len(cut) + 1}", text, content.title, " > ".join(trail), len(cut) + 1))
    return tuple(cut)


def _cut_blocks(blocks: Sequence[TextBlock], words: int) -> list[str]:
    """Cut blocks into texts of about ``words`` words.

    A passage ends when it has that many, or when the next sentence would exceed 1.2 times that. A rest of less than a
    quarter joins the passage before it. A passage that begins within a table begins with the column names.
    """
    passages: list[list[str]] = [[]]
    filled = 0  # words of the last passage
    for block in blocks:
        for number, (joint, sentence) in enumerate(_split_long_sentences(block.text, words)):
            size = count_word_units(sentence)
            # Sentences stay whole, so a passage may be a fifth longer.
            if filled >= words or (filled and filled + size > 1.2 * words):
                passages.append([f"\n{block.head}"] if block.head else [])
                filled = 0
            passages[-1].append(f"{joint if number else chr(10)}{sentence}")
            filled += size
    # A short rest would rank high by its length alone: BM25 favours short passages.
    if len(passages) > 1 and filled < words / 4:
        rest = passages.pop()
        has_head = blocks[-1].head and rest[0] == f"\n{blocks[-1].head}"
        passages[-1] += rest[1 if has_head else 0 :]
    return [text for sentences in passages if (text := "".join(sentences).strip())]


def _split_long_sentences(text: str, words: int) -> Iterator[tuple[str, str]]:
    """Split a text into sentences, each with the blank before it or an empty string.

    Sentences longer than a passage are split further.
    """
    start = 0
    ends = [
        (match.end(match.lastgroup) if match.lastgroup else match.start(), match.end()) for match in END.finditer(text)
    ]
    for end, following in [*ends, (len(text), len(text))]:
        sentence = text[start:end]
        parts = sentence.split()
        # Chinese and Japanese sentences follow each other without a blank.
        joint = " " if start == 0 or any(map(str.isspace, text[start - 1 : start + 1])) else ""
        start = following
        if count_word_units(sentence) <= words:
            pieces = [[" ".join(parts)]] if parts else []
        else:
            # A text without blanks, such as base64 or a script without spaces, is cut by its characters.
            lines, most = (" ".join(parts[at : at + words]) for at in range(0, len(parts), words)), 12 * words
            pieces = [[line[at : at + most] for at in range(0, len(line), most)] for line in lines]
        for number, piece in enumerate(pieces):
            yield from ((joint if at == number == 0 else "" if at else " ", part) for at, part in enumerate(piece))


def count_word_units(text: str) -> int:
    """Return the size of a text in words.

    Two characters of a script without spaces count as one word, and so do twenty of anything.

    >>> count_word_units("two words"), count_word_units("日本の首都"), count_word_units("x" * 100)
    (2, 3, 5)
    """
    unspaced = 0 if text.isascii() else len(UNSPACED.findall(text)) // 2
    return max(len(text.split()) + unspaced, len(text) // 20)


def has_at_most_words(text: str, most: int) -> bool:
    """Return whether the size of a tidy text is at most a number of words. Counting blanks is faster and often decides.

    >>> has_at_most_words("one two three", 3), has_at_most_words("one two three", 2), has_at_most_words("one  two", 2)
    (True, False, True)
    """
    blanks = text.count(" ") + text.count("\n") + text.count("\t")
    return (text.isascii() and max(blanks + 1, len(text) // 20) <= most) or count_word_units(text) <= most


def clean_document_text(text: str) -> str:
    """Normalize line ends and remove control characters and marks that reorder or hide text. Newlines and tabs stay.

    >>> clean_document_text("a\\r\\nb\\x00\\u202ec"), clean_document_text("plain")
    ('a\\nbc', 'plain')
    """
    return clean_text(text.replace("\r\n", "\n").replace("\r", "\n"))
