"""BM25 by tantivy, where a term of the title counts three times (BM25F of Robertson, Zaragoza and Taylor, CIKM 2004).

A query is a set of analysed terms, never tantivy's query language, which fails on IN, AND and OR. How often the title
counts was chosen by cross-validation on three multi-hop sets (docs/measurements/documents.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.extras import lacks
from decisor.tools.documents.passage import Passage

if TYPE_CHECKING:
    import tantivy

TITLE_TIMES = 3
K1, B = 1.2, 0.75
"""Tantivy's own constants, which it does not let go of."""
LONGEST_TERM, MOST_TERMS = 40, 200
MORE = 6
LANGUAGES = [
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian", "norwegian",
    "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish",
]  # fmt: skip
NO_STOP_WORDS = ("arabic", "greek", "romanian", "tamil", "turkish")
ENGLISH_STOP_WORDS = re.findall(
    r"\w+",
    "a about also an and are as at be between but by did do does done for from had has have how if in into is it no "
    "not of on or same such that the their then there these they this to was were what when where which who whom whose "
    "why will with",
)
UNSPACED = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")


def engine() -> ModuleType:
    """The tantivy module. Raises SetupError where it is not installed."""
    try:
        import tantivy
    except ImportError as error:
        raise lacks("Documents need tantivy", "documents") from error
    return tantivy


def analyzer(language: str = "english") -> tantivy.TextAnalyzer:
    """Lower case, no accents, no stop words, stemmed; ``none`` neither stops nor stems.

    >>> analyzer().analyze("Which Cafés are IN Kraków?")
    ['cafe', 'krakow']
    """
    t = engine()
    if language not in (*LANGUAGES, "none"):
        raise SetupError(f"There is no language {language!r}; there is none, {', '.join(LANGUAGES)}.")
    builder = t.TextAnalyzerBuilder(t.Tokenizer.simple()).filter(t.Filter.remove_long(LONGEST_TERM))
    builder = builder.filter(t.Filter.lowercase())
    if language == "english":
        builder = builder.filter(t.Filter.custom_stopword(ENGLISH_STOP_WORDS))
    elif language in LANGUAGES and language not in NO_STOP_WORDS:
        builder = builder.filter(t.Filter.stopword(language))
    if language in LANGUAGES:
        builder = builder.filter(t.Filter.stemmer(language))
    whole: tantivy.TextAnalyzer = builder.filter(t.Filter.ascii_fold()).build()
    return whole


def spaced(text: str) -> str:
    """Scripts without spaces are indexed character by character.

    >>> spaced("Tokyo 東京")
    'Tokyo  東  京 '
    """
    return text if text.isascii() else UNSPACED.sub(r" \1 ", text)


def query_terms(words: tantivy.TextAnalyzer, text: str) -> list[str]:
    """Each once.

    >>> query_terms(analyzer(), "Which port exports marble to which ports?")
    ['port', 'export', 'marbl']
    """
    return list(dict.fromkeys(words.analyze(spaced(text))))[:MOST_TERMS]


def indexed_text(passage: Passage, title_times: int = TITLE_TIMES) -> str:
    """What its terms are taken of. ``title_times``: how often a term of the title counts."""
    return spaced(f"{passage.title}\n" * (title_times - 1) + passage.whole)


@dataclass(frozen=True, eq=False)
class WordIndex:
    """An index of terms, on disk (memory-mapped) or in memory."""

    index: tantivy.Index
    analyzer: tantivy.TextAnalyzer
    searcher: tantivy.Searcher

    @classmethod
    def open(cls, path: Path, language: str) -> WordIndex:
        """Raises SetupError where there is no such index or it is damaged."""
        try:
            index = engine().Index.open(str(path))
        except (ValueError, OSError) as error:
            raise SetupError(f"The index in {path} cannot be opened: {error}. Build it again.") from error
        return cls.over(index, language)

    @classmethod
    def over(cls, index: tantivy.Index, language: str) -> WordIndex:
        words = analyzer(language)
        index.register_tokenizer("words", words)
        return cls(index, words, index.searcher())

    def search(self, text: str, limit: int) -> list[tuple[tantivy.DocAddress, float]]:
        """(address, score) of the best, best first; equal ones by number (a few more are looked at, so that which come
        is the same in every build)."""
        t = engine()
        terms = query_terms(self.analyzer, text)
        if not terms or limit < 1:
            return []
        schema, should, query = self.index.schema, t.Occur.Should, t.Query
        parts = [(should, query.term_query(schema, "words", term, "freq")) for term in terms]
        hits = self.searcher.search(query.boolean_query(parts), limit + MORE, count=False).hits
        if len(hits) > 1 and len({score for score, _ in hits}) < len(hits):
            numbers = self.numbers([address for _, address in hits])
            hits = [hit for _, hit in sorted(zip(numbers, hits, strict=True), key=lambda one: (-one[1][0], one[0]))]
        return [(address, score) for score, address in hits[:limit]]

    def numbers(self, addresses: Sequence[tantivy.DocAddress]) -> list[int]:
        values = self.searcher.fast_field_values("number", list(addresses)) if addresses else []
        return [int(number or 0) for number in values]

    def addresses(self, numbers: Sequence[int]) -> dict[int, tantivy.DocAddress]:
        """Where passages lie, by their numbers; deleted ones are left out."""
        if not numbers:
            return {}
        query = engine().Query.term_set_query(self.index.schema, "number", list(numbers))
        places = [address for _, address in self.searcher.search(query, len(numbers), count=False).hits]
        return dict(zip(self.numbers(places), places, strict=True))

    def read(self, address: tantivy.DocAddress) -> Passage:
        return Passage.load(bytes(self.searcher.doc(address)["passage"][0]))

    def __len__(self) -> int:
        return self.searcher.num_docs


def schema() -> tantivy.Schema:
    """Fields: words (terms), number (of the passage), passage (as stored)."""
    builder = engine().SchemaBuilder()
    builder.add_text_field("words", tokenizer_name="words", index_option="freq")
    builder.add_integer_field("number", indexed=True, fast=True)
    builder.add_bytes_field("passage", stored=True)
    whole: tantivy.Schema = builder.build()
    return whole


def document(number: int, passage: Passage, title_times: int = TITLE_TIMES) -> tantivy.Document:
    """``title_times``: how often a term of the title counts."""
    entry: tantivy.Document = engine().Document()
    entry.add_text("words", indexed_text(passage, title_times))
    entry.add_integer("number", number)
    entry.add_bytes("passage", passage.dump())
    return entry
