"""An index that is open: finds the passages of a query. Satisfies ``types.Retriever``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decisor.errors import SetupError
from decisor.tools.corpus.passage import Passage
from decisor.tools.corpus.store import About, current, is_index, read_about
from decisor.tools.corpus.words import Words, analyzer, document, engine, schema
from decisor.types import Record, Value

Mode = Literal["bm25", "dense", "hybrid"]
MODES = ("bm25", "dense", "hybrid")


@dataclass(frozen=True, eq=False)
class Index:
    """Open with ``open_index`` or ``index_of``."""

    words: Words
    about: About
    mode: Mode = "bm25"

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        """The best passages, best first; none where no word of the query occurs.

        A record's id is its passage's, its source the document's; fields: title, section, position.
        """
        found = self.words.search(query, limit)
        return tuple(record_of(self.words.read(address), score) for address, score in found)

    def __len__(self) -> int:
        """How many passages there are."""
        return len(self.words)


def record_of(passage: Passage, score: float) -> Record:
    fields: dict[str, Value] = {"title": passage.title} if passage.title else {}
    if passage.section:
        fields["section"] = passage.section
    if passage.position:
        fields["position"] = passage.position
    source = passage.id.rpartition("#")[0] if passage.position else passage.id
    return Record(passage.id, fields, passage.text, source, round(score, 6))


def open_index(path: Path | str, mode: Mode = "bm25") -> Index:
    """Memory-mapped: opening costs milliseconds whatever the size.

    Raises:
        SetupError: there is no index, it is damaged, or it holds no vectors for ``mode``.
    """
    path = Path(path)
    if mode not in MODES:
        raise SetupError(f"There is no mode {mode!r}; there is {', '.join(MODES)}.")
    if not is_index(path):
        raise SetupError(f"There is no index in {path}: make one with decisor index SOURCE --out {path}.")
    number = current(path)
    while True:
        folder = path / str(number)
        try:
            about = read_about(folder)
            return Index(Words.open(folder / "words", about.language), about, mode)
        except SetupError:
            if (newer := current(path)) == number:
                raise
            number = newer


def index_of(passages: Iterable[Passage], language: str = "english") -> Index:
    """The same, in memory, for a few thousand passages."""
    index = engine().Index(schema())
    index.register_tokenizer("words", analyzer(language))
    writer = index.writer(50_000_000, 1)
    count = 0
    for number, passage in enumerate(passages):
        writer.add_document(document(number, passage))
        count += 1
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return Index(Words.over(index, language), About(count, count, count, language))
