"""Rankings of passages by words and by meaning, and their fusion.

Words: BM25 by tantivy, where a term of the title counts three times (BM25F of Robertson, Zaragoza and Taylor, CIKM
2004). A query is a set of analysed terms, never tantivy's query language, which fails on IN, AND and OR. The weight of
the title was chosen by cross-validation on three multi-hop sets (docs/measurements/documents.md). Meaning: exact
search over vectors up to 50,000, a graph of neighbours (HNSW, by usearch) beyond.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from decisor.documents.passage import UNSPACED, Embedder, Passage
from decisor.errors import SetupError
from decisor.system.extras import missing_extra_error
from decisor.system.storage import stamp_of

if TYPE_CHECKING:
    import numpy as np
    import tantivy
    from numpy.typing import NDArray
    from usearch.index import Index as NeighbourIndex


Ranked: TypeAlias = list[tuple[int, float]]
"""Number and score of passages, best first, equal ones by number."""
TITLE_TIMES = 3
K1, B = 1.2, 0.75
"""Tantivy's own constants, which cannot be set."""
LONGEST_TERM, MOST_TERMS = 40, 200
MORE, MOST_PLACES = 6, 10_000
LANGUAGES = re.findall(
    r"\w+",
    "arabic danish dutch english finnish french german greek hungarian italian norwegian portuguese romanian russian "
    "spanish swedish tamil turkish",
)
NO_STOP_WORDS = ("arabic", "greek", "romanian", "tamil", "turkish")
ENGLISH_STOP_WORDS = re.findall(
    r"\w+",
    "a about also an and are as at be between but by did do does done for from had has have how if in into is it no "
    "not of on or same such that the their then there these they this to was were what when where which who whom whose "
    "why will with",
)


def import_tantivy() -> ModuleType:
    """Return the tantivy module. Raise SetupError if it is not installed."""
    try:
        import tantivy
    except ImportError as error:
        raise missing_extra_error("Documents need tantivy", "documents") from error
    return tantivy


def build_analyzer(language: str = "english") -> tantivy.TextAnalyzer:
    """Build the analyzer of a language: lower case, no accents, no stop words, stemmed.

    ``none`` neither drops stop words nor stems.

    >>> build_analyzer().analyze("Which Cafés are IN Kraków?")
    ['cafe', 'krakow']
    """
    t = import_tantivy()
    if language not in (*LANGUAGES, "none"):
        raise SetupError(f"There is no language {language!r}; there is none, {', '.join(LANGUAGES)}.")
    builder = t.TextAnalyzerBuilder(t.Tokenizer.simple()).filter(t.Filter.remove_long(LONGEST_TERM))
    # The order matters: stop words are in lower case, stems come before accents go, which stemmers look at.
    builder = builder.filter(t.Filter.lowercase())
    if language == "english":
        builder = builder.filter(t.Filter.custom_stopword(ENGLISH_STOP_WORDS))
    elif language in LANGUAGES and language not in NO_STOP_WORDS:
        builder = builder.filter(t.Filter.stopword(language))
    if language in LANGUAGES:
        builder = builder.filter(t.Filter.stemmer(language))
    analyzer: tantivy.TextAnalyzer = builder.filter(t.Filter.ascii_fold()).build()
    return analyzer


def space_characters(text: str) -> str:
    """Put blanks around the characters of scripts without spaces, which are indexed one by one.

    >>> space_characters("Tokyo 東京")
    'Tokyo  東  京 '
    """
    return text if text.isascii() else UNSPACED.sub(r" \1 ", text)


def list_query_terms(words: tantivy.TextAnalyzer, text: str) -> list[str]:
    """Return the terms of a query without duplicates, at most 200.

    >>> list_query_terms(build_analyzer(), "Which port exports marble to which ports?")
    ['port', 'export', 'marbl']
    """
    return list(dict.fromkeys(words.analyze(space_characters(text))))[:MOST_TERMS]


def build_indexed_text(passage: Passage, title_times: int = TITLE_TIMES) -> str:
    """Return the text that the terms of a passage are taken from. ``title_times``: weight of a term of the title."""
    return space_characters(f"{passage.title}\n" * (title_times - 1) + passage.whole)


@dataclass(frozen=True, eq=False)
class LocalPassages:
    """Passages on disk (memory-mapped) or in memory, with their terms and vectors. Satisfies ``PassageSource``."""

    index: tantivy.Index
    analyzer: tantivy.TextAnalyzer
    searcher: tantivy.Searcher
    vectors: NeighbourIndex | None = None
    """Half-precision vectors by number."""
    places: dict[int, tantivy.DocAddress] = field(default_factory=dict)
    """Addresses of passages that were found, so that they are not looked up again; the searcher never changes."""

    @classmethod
    def of_index(cls, index: tantivy.Index, language: str, vectors: NeighbourIndex | None = None) -> LocalPassages:
        analyzer = build_analyzer(language)
        index.register_tokenizer("words", analyzer)
        return cls(index, analyzer, index.searcher(), vectors)

    @classmethod
    def open(cls, words: Path, language: str, vectors: Path | None) -> LocalPassages:
        """Open a folder of terms and a file of vectors. Raise SetupError if one does not exist or is damaged."""
        try:
            index = import_tantivy().Index.open(str(words))
        except (ValueError, OSError) as error:
            raise SetupError(f"The index in {words} cannot be opened: {error}. Build it again.") from error
        return cls.of_index(index, language, open_neighbour_index(vectors) if vectors is not None else None)

    async def by_words(self, text: str, limit: int) -> Ranked:
        t = import_tantivy()
        terms = list_query_terms(self.analyzer, text)
        if not terms or limit < 1:
            return []
        # Built from terms: tantivy's query language would read AND, OR and IN of a question as operators.
        parts = [(t.Occur.Should, t.Query.term_query(self.index.schema, "words", term, "freq")) for term in terms]
        # tantivy breaks ties by segments, which differ from build to build: a few more hits are read and sorted.
        hits = self.searcher.search(t.Query.boolean_query(parts), limit + MORE, count=False).hits
        numbers = self._numbers([address for _, address in hits])
        if len(self.places) > MOST_PLACES:
            self.places.clear()
        self.places.update(zip(numbers, (address for _, address in hits), strict=True))
        scored = zip(numbers, (score for score, _ in hits), strict=True)
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:limit]

    async def by_meaning(self, vector: NDArray[np.float32], limit: int) -> Ranked:
        limit = min(limit, len(self.vectors)) if self.vectors is not None else 0
        if self.vectors is None or limit < 1:
            return []
        # Up to so many an exact search is quick, and HNSW would miss some neighbours.
        exact = len(self.vectors) <= EXACT
        matches = await asyncio.to_thread(self.vectors.search, vector, limit, exact=exact)
        pairs = [(int(key), 1.0 - float(far)) for key, far in zip(matches.keys, matches.distances, strict=True)]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))

    async def read(self, numbers: Sequence[int]) -> dict[int, Passage]:
        places = {number: self.places[number] for number in numbers if number in self.places}
        if lacking := [number for number in numbers if number not in places]:
            query = import_tantivy().Query.term_set_query(self.index.schema, "number", lacking)
            found = [address for _, address in self.searcher.search(query, len(lacking), count=False).hits]
            places.update(zip(self._numbers(found), found, strict=True))
        return {number: self._read(address) for number, address in places.items()}

    def _read(self, address: tantivy.DocAddress) -> Passage:
        return Passage.load(bytes(self.searcher.doc(address)["passage"][0]))

    def _numbers(self, addresses: Sequence[tantivy.DocAddress]) -> list[int]:
        values = self.searcher.fast_field_values("number", list(addresses)) if addresses else []
        return [int(number or 0) for number in values]

    async def close(self) -> None:
        """Close nothing; the files are unmapped with the last reference."""


def build_word_schema() -> tantivy.Schema:
    """Build the schema: words (terms), number (of the passage), passage (as stored)."""
    builder = import_tantivy().SchemaBuilder()
    builder.add_text_field("words", tokenizer_name="words", index_option="freq")
    builder.add_integer_field("number", indexed=True, fast=True)
    builder.add_bytes_field("passage", stored=True)
    schema: tantivy.Schema = builder.build()
    return schema


def build_index_entry(number: int, passage: Passage, title_times: int = TITLE_TIMES) -> tantivy.Document:
    """Build the index entry of a passage. ``title_times``: weight of a term of the title."""
    entry: tantivy.Document = import_tantivy().Document()
    entry.add_text("words", build_indexed_text(passage, title_times))
    entry.add_integer("number", number)
    entry.add_bytes("passage", passage.dump())
    return entry


EXACT = 50_000
BATCH = 256
CONNECTIVITY, ADDING, SEARCHING = 16, 128, 128


def import_usearch() -> ModuleType:
    """Return the usearch module. Raise SetupError if it is not installed."""
    try:
        with suppress(ImportError):
            import onnxruntime  # noqa: F401 (importing it after usearch 2.26 ends the process)
        import usearch.index
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            raise missing_extra_error("Dense retrieval needs usearch", "documents") from error
        raise SetupError(f"Dense retrieval needs usearch: it cannot be loaded beside what is ({error}).") from error
    return usearch.index


def open_neighbour_index(path: Path) -> NeighbourIndex:
    """Open a file of vectors by memory-mapping. Raise SetupError if it does not exist or is damaged."""
    try:
        index = import_usearch().Index.restore(str(path), view=True)
        if index is None:
            raise ValueError("it holds no index")
    except (RuntimeError, ValueError, OSError) as error:
        raise SetupError(f"The vectors in {path} cannot be opened: {error}. Build the index again.") from error
    index.expansion_search = SEARCHING
    neighbours: NeighbourIndex = index
    return neighbours


def create_neighbour_index(width: int) -> NeighbourIndex:
    index: NeighbourIndex = import_usearch().Index(
        ndim=width,
        metric="cos",
        dtype="f16",
        connectivity=CONNECTIVITY,
        expansion_add=ADDING,
        expansion_search=SEARCHING,
    )
    return index


class VectorMemory:
    """An embedder with a SQLite file of its vectors, by the stamp of their text.

    A killed build leaves the file to the next one, which then does not pay twice.
    """

    def __init__(self, path: Path, embedder: Embedder) -> None:
        self.path, self.embedder = path, embedder
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = sqlite3.connect(path, isolation_level=None)
        # A cache: what a crash spoils is embedded again.
        self.file.execute("PRAGMA synchronous=OFF")
        self.file.execute("CREATE TABLE IF NOT EXISTS vectors (name, stamp, vector, PRIMARY KEY (name, stamp))")

    def embed(self, passages: Sequence[Passage], width: int) -> NDArray[np.float16]:
        """Return vectors of shape (len(passages), width); only unknown texts are embedded.

        ``width``: of the vectors of the index, 0 if it has none yet. Raise SetupError if the embedder gives another.
        """
        import numpy as np

        stamps, name = [stamp_of(passage.whole) for passage in passages], self.embedder.name
        query = "SELECT vector FROM vectors WHERE name = ? AND stamp = ?"
        known = {stamp: row[0] for stamp in stamps if (row := self.file.execute(query, (name, stamp)).fetchone())}
        new = {stamp: one.whole for stamp, one in zip(stamps, passages, strict=True) if stamp not in known}
        if new:
            # Half precision changes no figure of docs/measurements/documents.md and takes half of the room.
            vectors = np.asarray(self.embedder.embed(list(new.values())), np.float16)
            rows = [(name, stamp, vector.tobytes()) for stamp, vector in zip(new, vectors, strict=True)]
            self.file.execute("BEGIN")
            self.file.executemany("INSERT INTO vectors VALUES (?, ?, ?)", rows)
            self.file.execute("COMMIT")
            known |= {stamp: vector for _, stamp, vector in rows}
        stacked = np.stack([np.frombuffer(known[stamp], np.float16) for stamp in stamps])
        if width not in (0, stacked.shape[1]):
            raise SetupError(f"{name} gives {stacked.shape[1]} numbers a text, not {width}.")
        return stacked

    def close(self) -> None:
        self.file.close()


RANK_CONSTANT, WORDS_SHARE = 2, 0.6
"""By cross-validation on three multi-hop sets (performance/retrieval_choice.py); 60 and 0.5 are usual."""

T = TypeVar("T", bound=Hashable)


def fuse_ranks(
    words: Sequence[T], meaning: Sequence[T], constant: float = RANK_CONSTANT, share: float = WORDS_SHARE
) -> list[tuple[T, float]]:
    """Fuse two rankings by reciprocal rank: the sum of 1 / (constant + rank).

    ``share`` of the sum is for the ranking by words, the rest for the ranking by meaning; equal items stay in order of
    first appearance.

    Cormack, Clarke and Buettcher, SIGIR 2009, where both count the same.

    >>> [name for name, score in fuse_ranks(["a", "b", "c"], ["b", "d"])]
    ['b', 'a', 'c', 'd']
    """
    scores: dict[T, float] = {}
    for ranking, weight in ((words, share), (meaning, 1.0 - share)):
        for rank, name in enumerate(ranking, 1):
            # A passage that one ranking lacks gets nothing from it.
            scores[name] = scores.get(name, 0.0) + weight / (constant + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])
