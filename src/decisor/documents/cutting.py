"""From blocks of text under headings to passages of about so many words, at the ends of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from decisor.documents.passage import Passage
from decisor.documents.search import UNSPACED
from decisor.system.text import clean_text

WORDS = 100
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


@dataclass
class _OpenPassage:
    """The sentences of a passage that is being filled. ``size``: in words."""

    parts: list[str] = field(default_factory=list)
    size: int = 0

    def put(self, part: str, size: int) -> None:
        self.parts.append(part)
        self.size += size


def cut_passages(key: str, content: DocumentContent, words: int = WORDS) -> tuple[Passage, ...]:
    """Cut a document into passages with ids KEY#1, KEY#2, ... No passage crosses a heading.

    >>> text = "One two three. Four five six. Seven eight. Nine."
    >>> [p.text for p in cut_passages("k", DocumentContent("T", (TextBlock(text),)), words=5)]
    ['One two three. Four five six.', 'Seven eight. Nine.']
    """
    cut: list[Passage] = []
    for trail, texts in _group_by_heading(content.blocks):
        for text in _cut_blocks(texts, words):
            cut.append(Passage(f"{key}#{len(cut) + 1}", text, content.title, " > ".join(trail), len(cut) + 1))
    return tuple(cut)


def _group_by_heading(blocks: Iterable[TextBlock]) -> Iterator[tuple[tuple[str, ...], list[TextBlock]]]:
    trail: tuple[str, ...] = ()
    texts: list[TextBlock] = []
    for block in blocks:
        if block.trail != trail and texts:
            yield trail, texts
            texts = []
        trail = block.trail
        texts.append(block)
    if texts:
        yield trail, texts


def _cut_blocks(blocks: Sequence[TextBlock], words: int) -> list[str]:
    """Cut blocks into texts of about ``words`` words.

    A passage ends when it has that many, or when the next sentence would exceed 1.2 times that. A rest of less than a
    quarter joins the passage before it. A passage that begins within a table begins with the column names.
    """
    heaps = [_OpenPassage()]
    for block in blocks:
        for number, (joint, sentence) in enumerate(_split_long_sentences(block.text, words)):
            size = count_word_units(sentence)
            if heaps[-1].size >= words or (heaps[-1].size and heaps[-1].size + size > 1.2 * words):
                heaps.append(_OpenPassage())
                if block.head:
                    heaps[-1].parts.append(f"\n{block.head}")
            heaps[-1].put(f"{joint if number else chr(10)}{sentence}", size)
    if len(heaps) > 1 and heaps[-1].size < words / 4:
        rest = heaps.pop()
        headed = blocks[-1].head and rest.parts[0] == f"\n{blocks[-1].head}"
        heaps[-1].put("".join(rest.parts[1 if headed else 0 :]), rest.size)
    return [text for heap in heaps if (text := "".join(heap.parts).strip())]


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
        joint = " " if start == 0 or any(map(str.isspace, text[start - 1 : start + 1])) else ""
        start = following
        if count_word_units(sentence) <= words:
            pieces = [[" ".join(parts)]] if parts else []
        else:
            pieces = [
                list(_cut_by_length(" ".join(parts[at : at + words]), words)) for at in range(0, len(parts), words)
            ]
        for number, piece in enumerate(pieces):
            yield from ((joint if at == number == 0 else "" if at else " ", one) for at, one in enumerate(piece))


def _cut_by_length(text: str, words: int) -> Iterator[str]:
    """Cut a text without spaces by its length."""
    most = 12 * words
    yield from (text[at : at + most] for at in range(0, len(text), most))


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
