"""Which document an answer rests on. Plan-RAG, section 4: an answer is attributed where it is a part of the document of
its sub-query, declared where no document was looked for, and neither otherwise."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from decisor.types import Record, Value

Attribution = Literal["attributed", "quoted", "model_knowledge", "manual", "unattributed"]
"""attributed: the answer stands in the document. quoted: it does not (yes, no, a count), but the words that it quotes
do. model_knowledge: no document was looked for, so it is the model's own knowledge or follows from other answers.
manual: a person set it. unattributed: the rest."""

PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(?:a|an|the)\b")
END = re.compile(r"(?<=[.!?])\s+|\n+")
SHORT_FORM = re.compile(r"(?:\b[A-Z]|\b[A-Z][a-z]{1,2}|\.[A-Za-z])\.$")
PARTS = re.compile(r"\s*[,;]\s*(?:and\s+)?|\s+(?:and|&)\s+")
NO_NAME = ("yes", "no", "true", "false")


def normal(text: str) -> str:
    """As SQuAD and HotpotQA compare answers: lower case, no ASCII punctuation, no articles, single blanks.

    >>> normal("The  Beatles, a Band!")
    'beatles band'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def holds(text: str, answer: str) -> bool:
    """Whether the answer stands in the text, both normalised, as whole words ("no" is not in "know").

    >>> holds("He was born in New York City.", "the New York city"), holds("They know.", "no")
    (True, False)
    >>> holds("masts—standing rigging—and which adjust", "standing rigging")
    True
    """
    for form in (normal, words):
        phrase = form(answer)
        if phrase and f" {phrase} " in f" {form(text)} ":
            return True
    return False


def words(text: str) -> str:
    """Words alone, whatever stands between them: dashes and quotes beyond ASCII part words too."""
    return " ".join(word for word in re.findall(r"\w+", text.lower()) if not ARTICLES.fullmatch(word))


def row_holds(row: Record, answer: str) -> bool:
    """Whether a row tells an answer of several values ("shelf B4, 7 copies"): each word is a name or a value of it, and
    one at least a value."""
    answer_words = set(words(answer).split())
    values = set(words(words_of(row)).split())
    columns = set(words(" ".join(names(row.fields))).split())
    return not row.text and bool(answer_words & values) and answer_words <= values | columns


def attribute(answer: str, quote: str, documents: Sequence[Record], looked: bool) -> tuple[Attribution, str, str]:
    """Of an answer: how it is attributed, the id of its document, and the words of it that support the answer.

    >>> attribute("Lyon", "", [Record("o1.r2", text="She left. She was born in Lyon. She sang.")], looked=True)
    ('attributed', 'o1.r2', 'She was born in Lyon.')

    ``looked``: whether a document was looked for at all.
    """
    if normal(answer) not in NO_NAME:
        for document in documents:
            if holds(words_of(document), answer) or row_holds(document, answer):
                return "attributed", document.id, support(document, answer, quote)
    for document in documents:
        if len(words(quote).split()) >= MIN_QUOTED and holds(words_of(document), quote):
            return "quoted", document.id, quote
    if parts := documents_of_parts(answer, documents):
        first = next(document for document in documents if document.id == parts[0])
        return "attributed", first.id, support(first, PARTS.split(answer)[0], quote)
    return ("unattributed" if looked else "model_knowledge"), "", ""


def rests_on(answer: str, quote: str, documents: Sequence[Record]) -> tuple[str, ...]:
    """The ids of all documents that an answer rests on: the first that holds it, the first that holds the words it
    quotes, and where no single one holds it, the first for each of its parts.

    >>> one, other = Record("r1", text="Ann sang in Lyon."), Record("r2", text="Ben drew in Ghent.")
    >>> rests_on("Lyon and Ghent", "", [one, other]), rests_on("Lyon", "Ben drew in Ghent.", [one, other])
    (('r1', 'r2'), ('r1', 'r2'))
    """
    kind, document, _ = attribute(answer, "", documents, looked=True)
    quoted = ""
    if len(words(quote).split()) >= MIN_QUOTED:
        quoted = next((one.id for one in documents if holds(words_of(one), quote)), "")
    first = next((one for one in documents if one.id == document), None)
    if first is not None and quoted and holds(words_of(first), quote):
        quoted = ""
    whole = kind == "attributed" and first is not None and (holds(words_of(first), answer) or row_holds(first, answer))
    parts = () if whole else documents_of_parts(answer, documents)
    return tuple(dict.fromkeys(id for id in (document, quoted, *parts) if id))


def documents_of_parts(answer: str, documents: Sequence[Record]) -> tuple[str, ...]:
    """Of an answer that lists several things, each in some document: the ids of those; else nothing."""
    parts = [part for part in PARTS.split(answer) if normal(part)]
    if len(parts) < 2:
        return ()
    ids = [next((one.id for one in documents if holds(words_of(one), part)), "") for part in parts]
    return tuple(dict.fromkeys(ids)) if all(ids) else ()


def support(document: Record, answer: str, quote: str) -> str:
    """The words of a document that hold the answer, and what was quoted from it where that is something else: of "Where
    does a berth cost 41 crowns?" the sentence that names the town would show nothing."""
    stands = len(words(quote).split()) >= MIN_QUOTED and holds(words_of(document), quote)
    if stands and holds(quote, answer):
        return quote
    sentence = sentence_with(document, answer)
    return BETWEEN.join(part for part in (sentence, quote if stands and quote not in sentence else "") if part)


def words_of(record: Record) -> str:
    """All words of a passage or a row."""
    return "\n".join([*(str(value) for value in plain_values(record.fields.values())), record.text])


def plain_values(values: Iterable[Value]) -> Iterator[Value]:
    """Texts and numbers, also those inside: a node of a graph is a map, a path a list.

    >>> list(plain_values([{"name": "Ghent", "also": ["Gent", None]}, 3]))
    ['Ghent', 'Gent', 3]
    """
    for value in values:
        if isinstance(value, str | int | float):
            yield value
        elif value is not None:
            yield from plain_values(value.values() if isinstance(value, Mapping) else value)


def names(fields: Mapping[str, Value]) -> Iterator[str]:
    """Of columns, and of the properties inside."""
    for name, value in fields.items():
        yield name
        for inside in [value] if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
            yield from names(inside) if isinstance(inside, Mapping) else ()


def sentence_with(record: Record, answer: str) -> str:
    """The first sentence of the document that holds the answer; a row's value; '' where only the whole holds it."""
    pieces = [*sentences(record.text), *(str(value) for value in plain_values(record.fields.values()))]
    return next((piece for piece in pieces if holds(piece, answer)), "")


def sentences(text: str) -> list[str]:
    """
    >>> sentences("He moved to St. Louis, U.S. in 1950. She did not.")
    ['He moved to St. Louis, U.S. in 1950.', 'She did not.']
    """
    pieces: list[str] = []
    for piece in END.split(text):
        if pieces and SHORT_FORM.search(pieces[-1]):
            pieces[-1] += f" {piece}"
        else:
            pieces.append(piece)
    return [piece.strip() for piece in pieces if piece.strip()]


MIN_QUOTED = 3
BETWEEN = " \u2026 "
