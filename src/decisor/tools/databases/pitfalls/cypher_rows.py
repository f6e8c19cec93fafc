"""A statement in Cypher as clauses, and what one row of it holds: nodes and relationships that hang together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from decisor.tools.databases.cypher_names import label_names, name_of_token
from decisor.tools.databases.pitfalls.too_much import TooMuch
from decisor.tools.databases.sandbox.cypher_tokens import Token

BREAKS = ("MATCH", "WHERE", "WITH", "RETURN", "UNWIND", "CALL", "UNION", "ORDER", "SKIP", "LIMIT", "OPTIONAL")
OPEN, CLOSED = ("(", "[", "{"), (")", "]", "}")
NAMES = ("word", "name")


@dataclass(frozen=True, slots=True)
class Clause:
    key: str
    words: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """A node or a relationship of a row, or a value of a list. ``labels``: all that it may have one of. ``name``: as it
    is written, else ?1. ``source``: of a value, the elements that its list stands on."""

    name: str
    labels: tuple[str, ...]
    node: bool = True
    source: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """From one node to another by a relationship. ``way``: out, in or both. ``long``: of several relationships."""

    one: str
    two: str
    relation: str
    types: tuple[str, ...]
    way: str
    long: bool


@dataclass(frozen=True, slots=True)
class Gathered:
    """What collect(...) took. ``stands_on``: the elements of its values. ``rows``: those that UNWIND of it brings back,
    all that made a row of the list."""

    stands_on: frozenset[str]
    rows: frozenset[str]


@dataclass
class MatchRow:
    """``stands_on``: the elements that a name stands on, itself where it is one. ``pinned``: (element, property) that a
    literal fixes. ``gone``: elements of which the row holds nothing any more, and so that multiply nothing. ``once``:
    those of which there is one in all rows. ``implied``: where there is one of each of some, there is one of this.
    ``equal``: (element, property, value of a list) that are the same."""

    elements: dict[str, Element] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    stands_on: dict[str, frozenset[str]] = field(default_factory=dict)
    pinned: set[tuple[str, str]] = field(default_factory=set)
    gone: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()
    implied: list[tuple[frozenset[str], str]] = field(default_factory=list)
    equal: set[tuple[str, str, str]] = field(default_factory=set)
    lists: dict[str, Gathered] = field(default_factory=dict)

    @property
    def present(self) -> frozenset[str]:
        return frozenset(self.elements) - self.gone


def clauses(words: Sequence[Token]) -> Iterator[Clause]:
    """In order; a MATCH and its WHERE are two."""
    depth, start = 0, 0
    for at, token in enumerate(words):
        depth += (token.text in OPEN) - (token.text in CLOSED)
        after = words[at - 1].key if at else ""
        breaks = token.kind == "word" and token.key in BREAKS and depth == 0 and after not in ("STARTS", "ENDS", ".")
        if breaks and at > start:
            yield Clause(words[start].key, tuple(words[start + 1 : at]))
        if breaks:
            start = at
    yield Clause(words[start].key, tuple(words[start + 1 :]))


def split(words: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """At the commas outside brackets."""
    depth, start = 0, 0
    for at, token in enumerate(words):
        depth += (token.text in OPEN) - (token.text in CLOSED)
        if token.text == "," and depth == 0:
            yield tuple(words[start:at])
            start = at + 1
    yield tuple(words[start:])


def inside(words: Sequence[Token], at: int) -> tuple[tuple[Token, ...], int]:
    """What the bracket at a place holds, and the place behind it."""
    depth = 0
    for end in range(at, len(words)):
        depth += (words[end].text in OPEN) - (words[end].text in CLOSED)
        if depth == 0:
            return tuple(words[at + 1 : end]), end + 1
    raise TooMuch


def add_match(row: MatchRow, words: Sequence[Token]) -> None:
    """The patterns of a MATCH."""
    for pattern in split(words):
        if len(pattern) > 2 and pattern[1].text == "=":
            pattern = pattern[2:]
        if pattern and pattern[0].kind == "word":
            raise TooMuch  # shortestPath, ALL SHORTEST
        add_path(row, pattern)


def add_path(row: MatchRow, words: Sequence[Token]) -> None:
    at, last, pending = 0, "", None
    while at < len(words):
        token = words[at]
        if token.text == "(":
            inner, at = inside(words, at)
            name = add_element(row, inner, node=True)
            if pending is not None:
                relation, types, way, long = pending
                row.links.append(Link(last, name, relation, types, way, long))
            last, pending = name, None
        elif token.text in ("-", "<"):
            relation, types, way, long, at = arrow(row, words, at)
            pending = (relation, types, way, long)
        else:
            raise TooMuch


def arrow(row: MatchRow, words: Sequence[Token], at: int) -> tuple[str, tuple[str, ...], str, bool, int]:
    left = words[at].text == "<"
    at += 1 + left
    inner: tuple[Token, ...] = ()
    if at < len(words) and words[at].text == "[":
        inner, at = inside(words, at)
    if at >= len(words) or words[at].text != "-":
        raise TooMuch
    right = at + 1 < len(words) and words[at + 1].text == ">"
    way = "both" if left == right else "in" if left else "out"
    long = any(token.text == "*" for token in inner)
    name = add_element(row, inner, node=False)
    return name, row.elements[name].labels, way, long, at + 1 + right


def add_element(row: MatchRow, inner: Sequence[Token], node: bool) -> str:
    named = bool(inner) and inner[0].kind in NAMES and inner[0].key != "WHERE"
    name = name_of_token(inner[0]) if named else f"?{len(row.elements) + 1}"
    labels = tuple(label_names((Token("symbol", "(", "("), *inner)))
    if name not in row.elements and len(meant := row.stands_on.get(name, frozenset())) == 1:
        (name,) = meant
    if name not in row.elements:
        row.elements[name] = Element(name, labels, node)
        row.stands_on[name] = frozenset({name})
    elif labels and not row.elements[name].labels:
        row.elements[name] = Element(name, labels, node)
    for before, key, colon, value in zip(inner, inner[1:], inner[2:], inner[3:], strict=False):
        if before.text in ("{", ",") and colon.text == ":":
            add_equal(row, name, name_of_token(key), value)
    return name


def add_equal(row: MatchRow, name: str, key: str, value: Token) -> None:
    """A property is a literal, or the value of a list."""
    other = row.elements.get(name_of_token(value)) if value.kind in NAMES else None
    if value.kind in ("string", "number", "parameter"):
        row.pinned.add((name, key))
    elif other is not None and other.source is not None:
        row.equal.add((name, key, other.name))


def add_where(row: MatchRow, words: Sequence[Token]) -> None:
    """The properties that it fixes."""
    if any(token.key in ("OR", "XOR", "NOT") and token.kind == "word" for token in words):
        return
    for name, dot, key, sign, value in zip(words, words[1:], words[2:], words[3:], words[4:], strict=False):
        if dot.text == "." and sign.text == "=" and name_of_token(name) in row.elements:
            add_equal(row, name_of_token(name), name_of_token(key), value)


def names_in(words: Sequence[Token], row: MatchRow) -> frozenset[str]:
    """The elements that an expression stands on."""
    origins: set[str] = set()
    for at, token in enumerate(words):
        before, after = words[at - 1].text if at else "", words[at + 1].text if at + 1 < len(words) else ""
        if token.kind in NAMES and before != "." and after != "(":
            origins |= row.stands_on.get(name_of_token(token), frozenset())
    return frozenset(origins)
