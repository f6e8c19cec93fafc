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


def normalize_answer(text: str) -> str:
    """Normalize an answer as SQuAD and HotpotQA do. Lower case, no ASCII punctuation, no articles, single blanks.

    >>> normalize_answer("The  Beatles, a Band!")
    'beatles band'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def says_word_for_word(text: str, words: str) -> bool:
    """Return whether a text holds these words as they stand, but for white space.

    >>> says_word_for_word("It holds 120\\n pallets.", "holds 120 pallets"), says_word_for_word("120.", "121")
    (True, False)
    """
    return " ".join(words.split()) in " ".join(text.split())


def contains_phrase(text: str, answer: str) -> bool:
    """Return whether a text contains an answer as whole words, both normalized ("no" is not in "know").

    >>> contains_phrase("He was born in New York City.", "the New York city"), contains_phrase("They know.", "no")
    (True, False)
    >>> contains_phrase("masts—standing rigging—and which adjust", "standing rigging")
    True
    """
    # The form of SQuAD first; the second also separates words at dashes and quotes beyond ASCII.
    for form in (normalize_answer, keep_words):
        phrase = form(answer)
        if phrase and f" {phrase} " in f" {form(text)} ":
            return True
    return False


def keep_words(text: str) -> str:
    """Return the words of a text without articles. Dashes and quotes beyond ASCII separate words too."""
    return " ".join(word for word in re.findall(r"\w+", text.lower()) if not ARTICLES.fullmatch(word))


def is_answer_in_row(row: Record, answer: str) -> bool:
    """Return whether a row supports an answer of several values, such as "shelf B4, 7 copies".

    Each word must be a column name or a value of the row, and at least one must be a value.
    """
    answer_words = set(keep_words(answer).split())
    values = set(keep_words(join_record_words(row)).split())
    columns = set(keep_words(" ".join(iterate_keys(row.fields))).split())
    return not row.text and bool(answer_words & values) and answer_words <= values | columns


def attribute_answer(
    answer: str, quote: str, documents: Sequence[Record], looked: bool
) -> tuple[Attribution, str, str]:
    """Return the kind of attribution of an answer, the id of its document and the words that support it.

    >>> attribute_answer("Lyon", "", [Record("o1.r2", text="She left. She was born in Lyon. She sang.")], looked=True)
    ('attributed', 'o1.r2', 'She was born in Lyon.')

    ``looked``: whether a document was looked for at all.
    """
    # "no" stands in many a document by chance, so yes and no are attributed by their quotation alone.
    if normalize_answer(answer) not in NO_NAME:
        for document in documents:
            if contains_phrase(join_record_words(document), answer) or is_answer_in_row(document, answer):
                return "attributed", document.id, select_supporting_words(document, answer, quote)
    for document in documents:
        if holds_quote(document, quote):
            return "quoted", document.id, quote
    if parts := find_documents_of_parts(answer, documents):
        first = next(document for document in documents if document.id == parts[0])
        return "attributed", first.id, select_supporting_words(first, PARTS.split(answer)[0], quote)
    return ("unattributed" if looked else "model_knowledge"), "", ""


def find_supporting_documents(answer: str, quote: str, documents: Sequence[Record]) -> tuple[str, ...]:
    """Return the ids of all documents that an answer rests on.

    That is the first that contains it, the first that contains its quotation, and, if no document contains the answer,
    the first for each of its parts.

    >>> one, other = Record("r1", text="Ann sang in Lyon."), Record("r2", text="Ben drew in Ghent.")
    >>> (find_supporting_documents("Lyon and Ghent", "", [one, other]),
    ...     find_supporting_documents("Lyon", "Ben drew in Ghent.", [one, other]))
    (('r1', 'r2'), ('r1', 'r2'))
    """
    _, id, _ = attribute_answer(answer, "", documents, looked=True)
    first = next((document for document in documents if document.id == id), None)
    quoting = [document.id for document in documents if holds_quote(document, quote)]
    quoted = [] if first and first.id in quoting else quoting[:1]
    is_whole = first and (contains_phrase(join_record_words(first), answer) or is_answer_in_row(first, answer))
    parts = () if is_whole else find_documents_of_parts(answer, documents)
    return tuple(dict.fromkeys([*([id] if id else []), *quoted, *parts]))


def holds_quote(document: Record, quote: str) -> bool:
    """Return whether a document contains a quotation that is long enough to tell anything."""
    return len(keep_words(quote).split()) >= MIN_QUOTED and contains_phrase(join_record_words(document), quote)


def find_documents_of_parts(answer: str, documents: Sequence[Record]) -> tuple[str, ...]:
    """Return the ids of the documents of an answer that lists several things.

    Empty if a thing is in no document or the answer lists only one.
    """
    parts = [part for part in PARTS.split(answer) if normalize_answer(part)]
    if len(parts) < 2:
        return ()
    ids = [next((one.id for one in documents if contains_phrase(join_record_words(one), part)), "") for part in parts]
    return tuple(dict.fromkeys(ids)) if all(ids) else ()


def select_supporting_words(document: Record, answer: str, quote: str) -> str:
    """Return the words of a document that contain the answer, and the quotation if it adds anything.

    The sentence with the answer alone may not show why it answers the question ("Where does a berth cost 41 crowns?").
    """
    stands = holds_quote(document, quote)
    if stands and contains_phrase(quote, answer):
        return quote
    pieces = [*split_answer_sentences(document.text), *map(str, iterate_scalars(document.fields.values()))]
    sentence = next((piece for piece in pieces if contains_phrase(piece, answer)), "")
    return BETWEEN.join(part for part in (sentence, quote if stands and quote not in sentence else "") if part)


def join_record_words(record: Record) -> str:
    """Return all words of a passage or a row as one text."""
    return "\n".join([*(str(value) for value in iterate_scalars(record.fields.values())), record.text])


def iterate_scalars(values: Iterable[Value]) -> Iterator[Value]:
    """Iterate over the texts and numbers in values, nested ones included. A graph node is a map and a path is a list.

    >>> list(iterate_scalars([{"name": "Ghent", "also": ["Gent", None]}, 3]))
    ['Ghent', 'Gent', 3]
    """
    for value in values:
        if isinstance(value, str | int | float):
            yield value
        elif value is not None:
            yield from iterate_scalars(value.values() if isinstance(value, Mapping) else value)


def iterate_keys(fields: Mapping[str, Value]) -> Iterator[str]:
    """Iterate over the column names of a row and the property names nested in its values."""
    for name, value in fields.items():
        yield name
        for inside in [value] if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
            yield from iterate_keys(inside) if isinstance(inside, Mapping) else ()


def split_answer_sentences(text: str) -> list[str]:
    """Split a text into sentences; an abbreviation does not end one.

    >>> split_answer_sentences("He moved to St. Louis, U.S. in 1950. She did not.")
    ['He moved to St. Louis, U.S. in 1950.', 'She did not.']
    >>> split_answer_sentences("*Close one plant. (optional)*\\nKeep two.")
    ['*Close one plant. (optional)*', 'Keep two.']
    """
    pieces: list[str] = []
    for piece in END.split(text):
        # "(optional)*" after a sentence is a part of it.
        if pieces and (SHORT_FORM.search(pieces[-1]) or IN_BRACKETS.fullmatch(piece)):
            pieces[-1] += f" {piece}"
        else:
            pieces.append(piece)
    return [piece.strip() for piece in pieces if piece.strip()]


IN_BRACKETS = re.compile(r"[\W_]*\([^\W\d_]+(?: [^\W\d_]+)?\)[\W_]*")
"""A word or two in brackets, with marks."""
MIN_QUOTED = 3
BETWEEN = " \u2026 "
