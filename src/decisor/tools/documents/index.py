"""An index that is open: finds the passages of a query. Satisfies ``types.Retriever``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from decisor.errors import SetupError
from decisor.tools.documents.bm25 import TITLE_TIMES, WordIndex, analyzer, document, engine, schema
from decisor.tools.documents.embedder import Embedder, Reranker
from decisor.tools.documents.fusion import blend_scores, fuse_ranks
from decisor.tools.documents.index_build import VECTORS
from decisor.tools.documents.index_files import About, current, is_index, read_about
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.vectors import Vectors
from decisor.types import Record, Value

if TYPE_CHECKING:
    import tantivy

Mode = Literal["bm25", "dense", "hybrid"]
Fusion = Literal["scores", "ranks"]
LOOKED_AT = 400
"""Passages that are read for the titles of an index."""
MODES = ("bm25", "dense", "hybrid")


@dataclass(frozen=True, eq=False)
class Index:
    """Open with ``open_index`` or ``index_of``. ``depth``: how many of each ranking are joined or ranked again.

    ``fusion``: how hybrid joins its rankings, by their ranks (reciprocal rank fusion) or by their scores, which puts a
    right passage first a little more often and finds a little less among ten (docs/measurements/documents.md).
    """

    words: WordIndex
    about: About
    mode: Mode = "bm25"
    vectors: Vectors | None = None
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    depth: int = 100
    fusion: Fusion = "ranks"

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        """The best passages, best first. By words alone, none where no word of the query occurs.

        A record's id is its passage's, its source the document's; fields: title, section, position. The score is
        BM25's, the cosine, what they come to (hybrid), or the reranker's.
        """
        wide = max(limit, self.depth) if self.reranker or self.mode == "hybrid" else limit
        if self.mode == "bm25":
            hits = self.words.search(query, wide)
        else:
            hits = await asyncio.to_thread(self._by_meaning, query, wide)
        if self.reranker is None:
            return tuple(record_of(self.words.read(address), score) for address, score in hits[:limit])
        records = [record_of(self.words.read(address), score) for address, score in hits[:wide]]
        return (await reranked(self.reranker, query, records))[:limit]

    def _by_meaning(self, query: str, wide: int) -> list[tuple[tantivy.DocAddress, float]]:
        """Dense, or both rankings fused."""
        assert self.embedder is not None and self.vectors is not None
        vector = self.embedder.embed([query])[0]
        near = self.vectors.search(vector, wide)
        if self.mode == "hybrid":
            hits = self.words.search(query, wide)
            by_words = dict(zip(self.words.numbers([at for at, _ in hits]), (score for _, score in hits), strict=True))
            if self.fusion == "ranks":
                near = fuse_ranks(list(by_words), [number for number, _ in near])
            else:
                there = dict(near)
                more = self.vectors.cosines(vector, [number for number in by_words if number not in there])
                near = blend_scores(by_words, there | dict(more))
        places = self.words.addresses([number for number, _ in near[:wide]])
        return [(places[number], score) for number, score in near if number in places]

    def titles(self, most: int = 12) -> tuple[tuple[str, ...], bool]:
        """Titles of documents, each once, and whether these are all. Of a large index those of a few passages that are
        spread evenly over it."""
        last = max(self.about.next_number, len(self))
        step = max(1, last // LOOKED_AT)
        places = self.words.addresses(list(range(0, last + 1, step)))
        return few_titles((self.words.read(places[number]).title for number in sorted(places)), step == 1, most)

    def __len__(self) -> int:
        """How many passages there are."""
        return len(self.words)


def few_titles(titles: Iterable[str], whole: bool, most: int) -> tuple[tuple[str, ...], bool]:
    """At most so many of them, each once, and whether these are all; ``whole``: no passage was left out.

    >>> few_titles(["Genua", "", "Genua", "Oslo", "Rome"], True, 2)
    (('Genua', 'Rome'), False)
    """
    names = dict.fromkeys(title.strip() for title in titles)
    names.pop("", None)
    few = list(names)[:: max(1, -(-len(names) // most))] if names else []
    return tuple(few), whole and len(few) == len(names)


async def reranked(reranker: Reranker, query: str, records: Sequence[Record]) -> tuple[Record, ...]:
    """By the reranker's scores, the best first."""
    scores = await reranker.score(query, records)
    scored = sorted(zip(records, scores, strict=True), key=lambda pair: -pair[1])
    return tuple(replace(one, score=float(score)) for one, score in scored)


def record_of(passage: Passage, score: float) -> Record:
    fields: dict[str, Value] = {"title": passage.title} if passage.title else {}
    if passage.section:
        fields["section"] = passage.section
    if passage.position:
        fields["position"] = passage.position
    source = passage.id.rpartition("#")[0] if passage.position else passage.id
    return Record(passage.id, fields, passage.text, source, float(f"{score:.6g}"))


def open_index(
    path: Path | str, mode: Mode = "bm25", embedder: Embedder | None = None, reranker: Reranker | None = None
) -> Index:
    """Memory-mapped: opening costs milliseconds whatever the size.

    ``embedder``: the one that built the index; MiniLM where that was the one and none is given.

    Raises:
        SetupError: there is no index, it is damaged, or it holds no vectors of ``embedder`` for ``mode``.
    """
    path = Path(path)
    if mode not in MODES:
        raise SetupError(f"There is no mode {mode!r}; there is {', '.join(MODES)}.")
    if not is_index(path):
        raise SetupError(f"There is no index in {path}: make one with decisor index SOURCE --out {path}.")
    number = current(path)
    while True:
        try:
            index = _open_generation(path / str(number), mode)
            break
        except SetupError:
            if (newer := current(path)) == number:
                raise
            number = newer
    if mode != "bm25":
        embedder = embedder_for(path, index.about, embedder)
    return replace(index, embedder=embedder, reranker=reranker)


def _open_generation(folder: Path, mode: Mode) -> Index:
    about = read_about(folder)
    words = WordIndex.open(folder / "words", about.language)
    if mode == "bm25":
        return Index(words, about)
    return Index(words, about, mode, Vectors.open(folder / VECTORS) if about.embedder else None)


def embedder_for(place: object, about: About, embedder: Embedder | None) -> Embedder:
    """Return it, or the one on this machine. Raises SetupError where that did not make the vectors."""
    from decisor.tools.documents.minilm import NAME, MiniLM

    if not about.embedder:
        raise SetupError(f"The index {place} holds no vectors: build it again with --dense.")
    if embedder is None and about.embedder == NAME:
        return MiniLM.open()
    if embedder is None:
        raise SetupError(f"The index was made by the embedder {about.embedder}: give it, with --embed "
                         f"{about.embedder}@URL.")  # fmt: skip
    if embedder.name != about.embedder:
        raise SetupError(f"The index {place} was made by the embedder {about.embedder}, not {embedder.name}.")
    return embedder


def index_of(passages: Iterable[Passage], language: str = "english", title_times: int = TITLE_TIMES) -> Index:
    """The same, in memory, for a few thousand passages. ``title_times``: how often a term of the title counts."""
    index = engine().Index(schema())
    index.register_tokenizer("words", analyzer(language))
    writer = index.writer(50_000_000, 1)
    count = 0
    for number, passage in enumerate(passages):
        writer.add_document(document(number, passage, title_times))
        count += 1
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return Index(WordIndex.over(index, language), About(count, count, count, language))
