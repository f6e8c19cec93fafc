"""What a WITH or RETURN of Cypher makes of a row: its items, their aggregates, and what is left of the elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from decisor.tools.databases.cypher_names import name_of_token
from decisor.tools.databases.pitfalls.cypher_rows import Gathered, MatchRow, inside, names_in, split
from decisor.tools.databases.sandbox.cypher_tokens import Token, clean

AGGREGATES = ("SUM", "AVG", "COUNT", "MIN", "MAX", "COLLECT", "STDEV", "STDEVP", "PERCENTILECONT", "PERCENTILEDISC")


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    words: tuple[Token, ...]
    text: str


def items_of(words: Sequence[Token]) -> Iterator[tuple[tuple[Token, ...], str]]:
    """What a WITH or RETURN brings, each with its name."""
    words = words[1:] if words and words[0].key == "DISTINCT" else words
    for item in split(words):
        named = len(item) > 2 and item[-2].key == "AS" and item[-2].kind == "word"
        yield (item[:-2], name_of_token(item[-1])) if named else (item, name_of_token(item[0]) if item else "")


def calls(words: Sequence[Token], names: Sequence[str]) -> Iterator[Call]:
    """Aggregates in an expression, without those that are DISTINCT."""
    for at, token in enumerate(words):
        if token.kind == "word" and token.key in names and at + 1 < len(words) and words[at + 1].text == "(":
            inner, end = inside(words, at + 1)
            if names is AGGREGATES or not inner or inner[0].key != "DISTINCT":
                yield Call(token.key, inner, clean(tuple(words[at:end])))


def values(words: Sequence[Token]) -> list[Token]:
    """Of a CASE what follows THEN and ELSE."""
    if not any(token.key == "CASE" and token.kind == "word" for token in words):
        return list(words)
    results: list[Token] = []
    taking = False
    for token in words:
        if token.kind == "word" and token.key in ("THEN", "ELSE", "WHEN", "END", "CASE"):
            taking = token.key in ("THEN", "ELSE")
        elif taking:
            results.append(token)
    return results


def projected(row: MatchRow, words: Sequence[Token]) -> MatchRow:
    """The row behind a WITH. Where it aggregates or is DISTINCT, what it does not name is gone."""
    items = list(items_of(words))
    row = replace(row, lists={**row.lists, **dict(lists_of(row, items))})
    groups = bool(words) and words[0].key == "DISTINCT"
    groups = groups or any(list(calls(item, AGGREGATES)) for item, _ in items)
    stands_on = {name: names_in(item, row) for item, name in items if not list(calls(item, AGGREGATES))}
    if not groups:
        return replace(row, stands_on={**row.stands_on, **stands_on})
    own = frozenset(name for item, _ in items if len(item) == 1 for name in names_in(item, row))
    stands_on = {name: stands_on.get(name, own) & own or own for _, name in items}
    return replace(row, stands_on=stands_on, gone=frozenset(row.elements) - own)


def lists_of(row: MatchRow, items: Sequence[tuple[tuple[Token, ...], str]]) -> Iterator[tuple[str, Gathered]]:
    """The items that are a collect(...), or a list handed on."""
    for item, name in items:
        if len(item) == 1 and (handed := row.lists.get(name_of_token(item[0]))):
            yield name, handed
        if len(item) > 3 and item[0].key == "COLLECT" and inside(item, 1)[1] == len(item):
            inner = item[2:-1]
            elements = names_in(inner, row)
            if inner[0].key != "DISTINCT":
                yield name, Gathered(elements, row.present)
            elif len(inner) == 2:
                yield name, Gathered(elements, elements)
