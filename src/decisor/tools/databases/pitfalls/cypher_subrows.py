"""What UNWIND and CALL { ... } add to a row of Cypher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decisor.tools.databases.cypher_names import name_of_token
from decisor.tools.databases.pitfalls.cypher_projection import items_of
from decisor.tools.databases.pitfalls.cypher_rows import Element, MatchRow, clauses, inside, names_in
from decisor.tools.databases.pitfalls.too_much import TooMuch
from decisor.tools.databases.sandbox.cypher_tokens import Token


def add_list(row: MatchRow, words: Sequence[Token]) -> None:
    """UNWIND: the rows that a collect(...) took, or a value of its own."""
    *expression, _, last = words
    name = name_of_token(last)
    gathered = row.lists.get(name_of_token(expression[0])) if len(expression) == 1 else None
    if gathered is not None:
        row.gone -= gathered.rows
        row.stands_on[name] = gathered.stands_on
        row.lists = {}  # a second list of the same rows multiplies them
    else:
        row.elements[name] = Element(name, (), node=False, source=names_in(expression, row))
        row.stands_on[name] = frozenset({name})


def with_sources(elements: frozenset[str], row: MatchRow) -> frozenset[str]:
    """With what the lists of their values stand on: a value is there once for each."""
    return elements.union(*(row.elements[name].source or () for name in elements))


def body_of(words: Sequence[Token]) -> Sequence[Token]:
    """The statement of CALL { ... } or CALL (a) { ... }. A procedure, and a UNION within, are not followed."""
    at = inside(words, 0)[1] if words[0].text == "(" else 0
    if words[at].text != "{":
        raise TooMuch
    body, _ = inside(words, at)
    if any(clause.key == "UNION" for clause in clauses(body)):
        raise TooMuch
    return body


def row_within(row: MatchRow) -> MatchRow:
    """The row that a CALL { ... } begins with: of what is there, one."""
    return replace(
        row,
        elements=dict(row.elements),
        links=list(row.links),
        stands_on=dict(row.stands_on),
        pinned=set(row.pinned),
        implied=list(row.implied),
        equal=set(row.equal),
        once=row.once | row.present,
    )


def behind_call(outer: MatchRow, inner: MatchRow, body: Sequence[Token]) -> MatchRow:
    """The row behind a CALL { ... }: what was there, and what it returns."""
    own = names_in(body, outer)
    returned = [name for clause in clauses(body) if clause.key == "RETURN" for _, name in items_of(clause.words)]
    single = inner.once - outer.once - outer.present
    return replace(
        inner,
        stands_on={**outer.stands_on, **{name: inner.stands_on.get(name) or own for name in returned}},
        gone=outer.gone | (inner.gone - frozenset(outer.elements)),
        once=outer.once,
        implied=[*inner.implied, *((own, name) for name in single)],
    )
