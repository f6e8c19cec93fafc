"""BM25 by tantivy, where a term of the title counts three times (BM25F of Robertson, Zaragoza and Taylor, CIKM 2004).

A query is a set of analysed terms, never tantivy's query language, which fails on IN, AND and OR. How often the title
counts was chosen by cross-validation on three multi-hop sets (performance/retrieval.py choose; LOG.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError
from decisor.tools.documents.passage import Passage

if TYPE_CHECKING:
    import tantivy

INSTALL = "pip install 'decisor[documents]'"
TITLE_TIMES = 3
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


def engine() -> Any:
    """The tantivy module. Raises SetupError where it is not installed."""
    try:
        import tantivy
    except ImportError as error:
        raise SetupError(f"Documents need tantivy: {INSTALL}.") from error
    return tantivy


def analyzer(language: str = "english") -> tantivy.TextAnalyzer:
    """Lower case, no accents, no stop words, stemmed; ``none`` neither stops nor stems.

    >>> analyzer().analyze("Which Cafés are IN Kraków?")
    ['cafe', 'krakow']
    """
    t = engine()
    if language not in (*LANGUAGES, "none"):
        raise SetupError(f"There is no language {language!r}; there is none, {', '.join(LANGUAGES)}.")
    built = t.TextAnalyzerBuilder(t.Tokenizer.simple()).filter(t.Filter.remove_long(LONGEST_TERM))
    built = built.filter(t.Filter.lowercase())
    if language == "english":
        built = built.filter(t.Filter.custom_stopword(ENGLISH_STOP_WORDS))
    elif language in LANGUAGES and language not in NO_STOP_WORDS:
        built = built.filter(t.Filter.stopword(language))
    if language in LANGUAGES:
        built = built.filter(t.Filter.stemmer(language))
    words: tantivy.TextAnalyzer = built.filter(t.Filter.ascii_fold()).build()
    return words


def spaced(text: str) -> str:
    """Scripts without spaces are indexed character by character.

    >>> spaced("Tokyo 東京")
    'Tokyo  東  京 '
    """
    return text if text.isascii() else UNSPACED.sub(r" \1 ", text)


@dataclass(frozen=True, eq=False)
class Words:
    """An index of terms, on disk (memory-mapped) or in memory."""

    index: tantivy.Index
    analyzer: tantivy.TextAnalyzer
    searcher: tantivy.Searcher

    @classmethod
    def open(cls, path: Path, language: str) -> Words:
        """Raises SetupError where there is no such index or it is damaged."""
        try:
            index = engine().Index.open(str(path))
        except (ValueError, OSError) as error:
            raise SetupError(f"The index in {path} cannot be opened: {error}. Build it again.") from error
        return cls.over(index, language)

    @classmethod
    def over(cls, index: tantivy.Index, language: str) -> Words:
        words = analyzer(language)
        index.register_tokenizer("words", words)
        return cls(index, words, index.searcher())

    def search(self, text: str, limit: int) -> list[tuple[tantivy.DocAddress, float]]:
        """(address, score) of the best, best first; equal ones by number (a few more are looked at, so that which come
        is the same in every build)."""
        t = engine()
        terms = list(dict.fromkeys(self.analyzer.analyze(spaced(text))))[:MOST_TERMS]
        if not terms or limit < 1:
            return []
        schema, should, query = self.index.schema, t.Occur.Should, t.Query
        wanted = [(should, query.term_query(schema, "words", term, "freq")) for term in terms]
        hits = self.searcher.search(query.boolean_query(wanted), limit + MORE, count=False).hits
        if len(hits) > 1 and len({score for score, _ in hits}) < len(hits):
            numbers = self.numbers([address for _, address in hits])
            hits = [hit for _, hit in sorted(zip(numbers, hits, strict=True), key=lambda one: (-one[1][0], one[0]))]
        return [(address, score) for score, address in hits[:limit]]

    def numbers(self, addresses: Sequence[tantivy.DocAddress]) -> list[int]:
        found = self.searcher.fast_field_values("number", list(addresses)) if addresses else []
        return [int(number or 0) for number in found]

    def addresses(self, numbers: Sequence[int]) -> dict[int, tantivy.DocAddress]:
        """Where passages lie, by their numbers; deleted ones are left out."""
        if not numbers:
            return {}
        query = engine().Query.term_set_query(self.index.schema, "number", list(numbers))
        found = [address for _, address in self.searcher.search(query, len(numbers), count=False).hits]
        return dict(zip(self.numbers(found), found, strict=True))

    def read(self, address: tantivy.DocAddress) -> Passage:
        return Passage.load(bytes(self.searcher.doc(address)["passage"][0]))

    def __len__(self) -> int:
        return self.searcher.num_docs


def schema() -> tantivy.Schema:
    """Fields: words (terms), number (of the passage), passage (as stored)."""
    built = engine().SchemaBuilder()
    built.add_text_field("words", tokenizer_name="words", index_option="freq")
    built.add_integer_field("number", indexed=True, fast=True)
    built.add_bytes_field("passage", stored=True)
    made: tantivy.Schema = built.build()
    return made


def document(number: int, passage: Passage, title_times: int = TITLE_TIMES) -> tantivy.Document:
    """``title_times``: how often a term of the title counts."""
    made: tantivy.Document = engine().Document()
    again = f"{passage.title}\n" * (title_times - 1)
    made.add_text("words", spaced(again + passage.whole))
    made.add_integer("number", number)
    made.add_bytes("passage", passage.dump())
    return made
