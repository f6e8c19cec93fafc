"""Best by what, in which state, at whose place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from decisor.definitions.readings.open import OpenReading, Subject, pieces
from decisor.definitions.readings.times import is_day, names_day
from decisor.definitions.relations import Column, Relation
from decisor.definitions.relevant import bare

PRAISE = (
    r"\b(best|worst|strongest|weakest|biggest|largest|smallest|greatest|leading|top|(most|least) \w+(ful|able|ive|ant"
    r"|ar|al|ing)|overloaded|favou?rites?|star|performers?|doing (well|badly)|do(es|ing)? (best|worst))\b"
)
ADVICE = r"\bwhich\b.*\bshould (we|i|they|be)\b|\bshould (we|i) \w+ (the|a|our)\b"
CRITERION = (
    r"\bby (the )?(number|sum|count|total|amount|mean|average|units?|revenue|money|value|length|size|bytes|pieces"
    r"|quantity|net|gross|profit|margin|cost|price)|in terms of|based on|ranked|measured|according to"
    r"|with the (most|highest|lowest|fewest|largest|least|longest)"
    r"|\b(cheapest|so that|in order to|because|that (has|have|is|are))\b"
)
STATE = re.compile(r"^(status|state|stage|condition)$")
STATES = re.compile(r'"(open|opened|closed|active|inactive|pending|waiting|ended|done|new|cancelled|canceled|paused|'
                    r'lost|won|paid|unpaid|resolved|shipped)"', re.I)  # fmt: skip
VAGUE = (
    r"\b(active|inactive|current|regular|loyal|existing|pending|late|overdue|delayed|lost|churned|dormant|outstanding"
    r"|lapsed|frequent|new (?:customers?|clients?|users?|orders?|accounts?))\b"
)
WHOLE = r"\b(all|every|any|ever|or not|still|never|in total|altogether)\b"
PLACE = r"\b(countr(?:y|ies)|cit(?:y|ies)|regions?|markets?)\b"
OWNER = r"\b(billing|shipping|shipped|ship|customers?'s?|clients?'s?|suppliers?'?s?|employees?'?s?|live|lives|based)\b"


def best_by_what(subject: Subject) -> Iterator[OpenReading]:
    praise = subject.has(PRAISE)
    advice = subject.has(ADVICE) if subject.decides else None
    match = praise or advice
    if not match or subject.has(CRITERION):
        return
    after = subject.text[match.end() :].split()[:3] if praise else []
    numbers = [column for table in subject.tables for column in table.columns
               if not (column.key or column.references or "id" in pieces(column.name))]  # fmt: skip
    if len(subject.tables) == 1 and sum(is_number(one.type) for one in numbers) < 2:
        return  # there is one thing to go by
    if any(
        set(pieces(one.name)) & {bare(word.strip("?.,")) for word in after} and is_number(one.type) for one in numbers
    ):
        return
    wish = re.search(r"should \w+ (\w+)", subject.text)
    words = praise[0] if praise else wish[1] if wish else match[0]
    yield OpenReading(words, ("by money", "by number"), ["most", "least", "by", "highest", "lowest"])


def is_number(type_: str) -> bool:
    return bool(re.search(r"int|num|dec|real|double|float|money", type_, re.I))


def in_which_state(subject: Subject) -> Iterator[OpenReading]:
    tables = subject.named()
    words = " ".join(one for table in subject.tables for column in table.columns for one in column.examples).lower()
    if (vague := subject.has(VAGUE)) and f'"{vague[0]}"' not in words and not column_named(vague[0], tables):
        yield OpenReading(vague[0], (f"{vague[0]} by the last year of the data", f"{vague[0]} in any other sense"),
                          [vague[0]])  # fmt: skip
        return
    counts = subject.has(r"\b(how many|most|fewest|number of|does (each|every)|overloaded)\b")
    if not counts or subject.has(WHOLE) or subject.has(r"\bdid (we|they|you|he|she)\b"):
        return
    for table in [*tables, *children_of(tables, subject)]:
        days = [one for one in table.columns if is_day(one)]
        state = state_of(table)
        if state is None:
            continue
        stored = [value.strip('"').lower() for value in state.examples]
        own = next((word for word in subject.tokens if bare(word) in {bare(piece) for piece in pieces(table.name)}), "")
        if any(re.search(rf"\b{re.escape(value)}\b", subject.text) for value in [*stored, "active", "open", "closed"]):
            return
        if any(names_day(subject, one) for one in days):
            return
        if own or subject.has(r"\bwe have\b"):
            about = own or next(iter(subject.tokens[2:3]), table.name)
            yield OpenReading(about, (f"all, whatever their {state.name}", f"only those with {state.name} "
                                      f"{stored[0]}"), [state.name, *stored])  # fmt: skip
            return


def state_of(table: Relation) -> Column | None:
    """The column that says in which state a row is."""
    return next((one for one in table.columns
                 if STATE.match(one.name.lower()) and STATES.search(" ".join(one.examples))), None)  # fmt: skip


def column_named(word: str, tables: list[Relation]) -> bool:
    return any(word in pieces(column.name) for table in tables for column in table.columns)


def children_of(tables: list[Relation], subject: Subject) -> list[Relation]:
    """What belongs to them, where the question is about those that we have."""
    if not subject.has(r"\bwe have\b"):
        return []
    return [
        other for other in subject.tables if not other.view and any(one in tables for one in subject.parents(other))
    ]


def whose_place(subject: Subject) -> Iterator[OpenReading]:
    match = subject.has(PLACE)
    if not match or subject.has(OWNER):
        return
    word = bare(match[0])
    places = [f"{table.name}.{column.name}" for table in subject.tables if not table.view for column in table.columns
              if pieces(column.name)[-1] == word]  # fmt: skip
    if len(places) > 1:
        yield OpenReading(match[0], tuple(f"{place}" for place in places[:2]),
                          [*(place.rpartition(".")[2] for place in places), "billing", "customer's"])  # fmt: skip
