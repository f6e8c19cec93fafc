"""What the passages that a question brings up make suspect: a term that two documents define otherwise, and a date that
may be of what happened or of what was written about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from decisor.definitions.readings.open import WORD, OpenReading
from decisor.definitions.relevant import bare
from decisor.outside import one_line
from decisor.types import Question, Record

VERBS = (
    r"means|shall mean|(?:is|are) (?:defined as|understood as|taken to (?:mean|be)|any|all|those|one (?:who|that))"
    r"|refers? to|denotes?|stands? for|counts? as"
)
TERM = r"[\"“*_']{0,2}(?P<term>[A-Za-z][\w-]*(?: [\w-]+){0,3}?)[\"”*_']{0,2}"
ARTICLE = r"(?:(?:an?|the|our|every|by) )?"
SENTENCE = re.compile(rf"(?:^|[.!?:;]\s+|\n)\W*{ARTICLE}{TERM},? (?:{VERBS}) (?P<text>[^.\n]{{8,300}})", re.I)
ENTRY = re.compile(rf"^\W*{TERM}\W{{0,2}}(?::| [–—-]) +(?P<text>[^.\n]{{12,300}})", re.M | re.I)
SAME = 0.8
"""Of the words of two definitions: as many in common say the same."""
ACCORDING = r"\b(according to|as (in|defined|set out)|in the sense of|by the (definition|standard))\b"
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
WRITTEN = re.compile(
    r"\b(published|issued|released|posted|printed|dated|written|last updated)\b[^.\n]{0,30}?\b((?:19|20)\d\d)\b", re.I
)
SAID = (
    r"\b(publish|publication|issued?|releas|posted|printed|written|wrote|dated|report(ed|s)? (in|from)|happen"
    r"|took place|take place|held|occur|effective|in force|as of)"
)


def of_passages(question: Question, records: Sequence[Record]) -> list[OpenReading]:
    """``records``: passages, as a search for the question brings them."""
    documents: dict[str, list[Record]] = {}
    for one in records:
        documents.setdefault(one.source.partition("#")[0], []).append(one)
    text = question.text.lower()
    return [*two_definitions(text, documents), *which_year_is_meant(text, documents)]


def two_definitions(text: str, documents: Mapping[str, Sequence[Record]]) -> Iterator[OpenReading]:
    if re.search(ACCORDING, text):
        return
    words = [bare(word) for word in WORD.findall(text)]
    known: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for records in documents.values():
        own: dict[tuple[str, ...], tuple[str, str]] = {}
        for one in records:
            title = str(one.fields.get("title") or one.source.partition("#")[0])
            for term, says in definitions_in(one.text):
                if is_within(term, words):
                    own.setdefault(term, (title, says))
        for term, pair in own.items():
            known.setdefault(term, []).append(pair)
    for term, pairs in known.items():
        (title, says), others = pairs[0], pairs[1:]
        other = next(((there, more) for there, more in others if differ(says, more)), None)
        if other and not any(one.lower() in text for one in (title, other[0])):
            yield OpenReading(" ".join(term), tuple(f"as {one_line(name, 60)} says, {one_line(what, 120)}"
                                                    for name, what in ((title, says), other)), term)  # fmt: skip


def definitions_in(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """
    >>> list(definitions_in("A regular customer means one who bought twice within a year."))
    [(('regular', 'customer'), 'one who bought twice within a year')]
    """
    for pattern in (SENTENCE, ENTRY):
        for match in pattern.finditer(text):
            yield tuple(bare(word.lower()) for word in WORD.findall(match["term"])), " ".join(match["text"].split())


def is_within(term: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words of a term stand together in the question."""
    size = len(term)
    return bool(size) and any(tuple(words[at : at + size]) == tuple(term) for at in range(len(words) - size + 1))


def differ(one: str, other: str) -> bool:
    here, there = ({bare(word.lower()) for word in WORD.findall(text)} for text in (one, other))
    return len(here & there) < SAME * min(len(here), len(there))


def which_year_is_meant(text: str, documents: Mapping[str, Sequence[Record]]) -> Iterator[OpenReading]:
    """Where some documents were written in the year that is asked of, about others, and others elsewhen about it."""
    year = YEAR.search(text)
    if year is None or re.search(SAID, text):
        return
    of_it = about_it = False
    for records in documents.values():
        whole = "\n".join(str(one.fields.get("title") or "") + "\n" + one.text for one in records)
        days = {match[2] for match in WRITTEN.finditer(whole)}
        events = set(YEAR.findall(WRITTEN.sub(" ", whole)))
        if days:
            of_it |= year[0] in days and bool(events) and year[0] not in events
            about_it |= year[0] not in days and year[0] in events
    if of_it and about_it:
        yield OpenReading(year[0], (f"what happened in {year[0]}", f"what was published in {year[0]}"), ["published"])
