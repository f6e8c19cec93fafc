"""From blocks of text under headings to passages of about so many words, at the ends of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from decisor.outside import clean_text
from decisor.tools.documents.bm25 import UNSPACED
from decisor.tools.documents.passage import Passage

WORDS = 100
END = re.compile(r"(?<=[.!?…])(?P<close>[\"'”’»)\]]*)\s+|(?<=[。！？])(?P<closed>[」』”’）]*)|\n+")
"""The marks that close a quotation or a bracket belong to the sentence before them."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list item or table row, and the headings above it from the outermost."""

    text: str
    trail: tuple[str, ...] = ()
    head: str = ""
    """The row of a table that names the columns of this one; '' where there is none."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a reader makes of one document."""

    title: str = ""
    blocks: tuple[Block, ...] = ()


@dataclass
class _Heap:
    """Sentences that make up one passage so far."""

    parts: list[str] = field(default_factory=list)
    size: int = 0

    def put(self, part: str, size: int) -> None:
        self.parts.append(part)
        self.size += size


def passages(key: str, content: Content, words: int = WORDS) -> tuple[Passage, ...]:
    """The passages of a document: ids KEY#1, KEY#2, ... None crosses a heading.

    >>> text = "One two three. Four five six. Seven eight. Nine."
    >>> [p.text for p in passages("k", Content("T", (Block(text),)), words=5)]
    ['One two three. Four five six.', 'Seven eight. Nine.']
    """
    cut: list[Passage] = []
    for trail, texts in _sections(content.blocks):
        for text in _cut(texts, words):
            cut.append(Passage(f"{key}#{len(cut) + 1}", text, content.title, " > ".join(trail), len(cut) + 1))
    return tuple(cut)


def _sections(blocks: Iterable[Block]) -> Iterator[tuple[tuple[str, ...], list[Block]]]:
    trail: tuple[str, ...] = ()
    texts: list[Block] = []
    for block in blocks:
        if block.trail != trail and texts:
            yield trail, texts
            texts = []
        trail = block.trail
        texts.append(block)
    if texts:
        yield trail, texts


def _cut(blocks: Sequence[Block], words: int) -> list[str]:
    """A passage is closed when it has ``words``, or when the next sentence would bring it over 1.2 times that.
    A rest of less than a quarter joins the passage before it. One that begins within a table begins with the names of
    its columns."""
    heaps = [_Heap()]
    for block in blocks:
        for number, (joint, sentence) in enumerate(_sentences(block.text, words)):
            size = size_of(sentence)
            if heaps[-1].size >= words or (heaps[-1].size and heaps[-1].size + size > 1.2 * words):
                heaps.append(_Heap())
                if block.head:
                    heaps[-1].parts.append(f"\n{block.head}")
            heaps[-1].put(f"{joint if number else chr(10)}{sentence}", size)
    if len(heaps) > 1 and heaps[-1].size < words / 4:
        rest = heaps.pop()
        headed = blocks[-1].head and rest.parts[0] == f"\n{blocks[-1].head}"
        heaps[-1].put("".join(rest.parts[1 if headed else 0 :]), rest.size)
    return [text for heap in heaps if (text := "".join(heap.parts).strip())]


def _sentences(text: str, words: int) -> Iterator[tuple[str, str]]:
    """Sentences, and pieces of those that are longer than a passage, each with the blank before it or ''."""
    start = 0
    ends = [
        (match.end(match.lastgroup) if match.lastgroup else match.start(), match.end()) for match in END.finditer(text)
    ]
    for end, following in [*ends, (len(text), len(text))]:
        sentence = text[start:end]
        parts = sentence.split()
        joint = " " if start == 0 or any(map(str.isspace, text[start - 1 : start + 1])) else ""
        start = following
        if size_of(sentence) <= words:
            pieces = [[" ".join(parts)]] if parts else []
        else:
            pieces = [list(_unbroken(" ".join(parts[at : at + words]), words)) for at in range(0, len(parts), words)]
        for number, piece in enumerate(pieces):
            yield from ((joint if at == number == 0 else "" if at else " ", one) for at, one in enumerate(piece))


def _unbroken(text: str, words: int) -> Iterator[str]:
    """Text without spaces is cut by its length."""
    most = 12 * words
    yield from (text[at : at + most] for at in range(0, len(text), most))


def size_of(text: str) -> int:
    """In words; two characters of a script without spaces count as one, and so do twenty of anything.

    >>> size_of("two words"), size_of("日本の首都"), size_of("x" * 100)
    (2, 3, 5)
    """
    unspaced = 0 if text.isascii() else len(UNSPACED.findall(text)) // 2
    return max(len(text.split()) + unspaced, len(text) // 20)


def fits(text: str, most: int) -> bool:
    """Whether ``size_of(text)``, of a tidy text, is at most so much; counting blanks is faster and often enough.

    >>> fits("one two three", 3), fits("one two three", 2), fits("one  two", 2)
    (True, False, True)
    """
    blanks = text.count(" ") + text.count("\n") + text.count("\t")
    return (text.isascii() and max(blanks + 1, len(text) // 20) <= most) or size_of(text) <= most


def tidy(text: str) -> str:
    """Without control characters and marks that reorder or hide text; newlines and tabs stay.

    >>> tidy("a\\r\\nb\\x00\\u202ec"), tidy("plain")
    ('a\\nbc', 'plain')
    """
    return clean_text(text.replace("\r\n", "\n").replace("\r", "\n"))
