"""Patterns of Cypher, node by node: (a:A {x: 1})-[r:T*1..3]->(b). What is written otherwise is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

from decisor.tools.databases.sandbox.cypher_tokens import refuse
from decisor.tools.databases.sandbox.cypher_walk import Statement, name_of

LABELS = (":", "|", "&", "!", "%", "(", ")")


@dataclass
class Part:
    """A node or relationship. ``start``: the place of its bracket. ``long``: a path of any length. ``properties``:
    where the value of each stands."""

    start: int
    node: bool
    name: str = ""
    long: bool = False
    properties: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pattern:
    """``end``: the place after it."""

    parts: tuple[Part, ...]
    end: int


def begins_pattern(words: Statement, at: int) -> bool:
    """Whether an open bracket is a node that a relationship follows."""
    end = words.closes[at]
    first, second, third = (words.near(end + step).text for step in (1, 2, 3))
    return (first == "-" and second in ("-", "[")) or (first == "<" and second == "-" and third in ("-", "["))


def read_pattern(words: Statement, start: int, end: int) -> Pattern:
    """What begins with the node at ``start``. Raises ToolError (refused) where it is no plain pattern."""
    at, parts = start, list[Part]()
    while True:
        if at >= end or words.near(at).text != "(":
            raise refuse("some of the graph is not for this reader, so a pattern is (a)-[:TYPE]->(b), step by step")
        parts.append(part_of(words, at, node=True))
        at = words.closes[at] + 1
        link = at + (words.near(at).text == "<")
        if link >= end or words.near(link).text != "-":
            return Pattern(tuple(parts), at)
        at = link + 1
        if words.near(at).text == "[":
            parts.append(part_of(words, at, node=False))
            at = words.closes[at] + 1
        if words.near(at).text != "-":
            raise refuse("a relationship is written -[:TYPE]- or --")
        at += 1 + (words.near(at + 1).text == ">")


def part_of(words: Statement, start: int, node: bool) -> Part:
    """What is in a bracket: name, labels or types, length, properties."""
    part, at, end = Part(start, node), start + 1, words.closes[start]
    first = words.near(at)
    if first.kind in ("word", "name") and not words.is_keyword(at):
        part.name, at = first.text, at + 1
    if words.near(at).text == ":" or (words.is_keyword(at) and words.near(at).key == "IS"):
        at += 1
        while at < end and (words.near(at).text in LABELS or words.near(at).kind in ("word", "name")):
            if words.is_keyword(at):
                break
            at += 1
    if not node and words.near(at).text == "*":
        part.long, at = True, at + 1
        while at < end and (words.near(at).kind == "number" or words.near(at).text == ".."):
            at += 1
    if words.near(at).text == "{" and at < end:
        part.properties = properties_of(words, at)
        at = words.closes[at] + 1
    if at != end:
        what = "WHERE stands after the pattern" if words.near(at).key == "WHERE" else f"not {words.near(at).text}"
        raise refuse(f"some of the graph is not for this reader, so a pattern has names, labels and {{...}}: {what}")
    return part


def properties_of(words: Statement, start: int) -> dict[str, tuple[int, int]]:
    """By name, from where to where its value stands."""
    properties: dict[str, tuple[int, int]] = {}
    at, end = start + 1, words.closes[start]
    while at < end:
        name = words.near(at)
        if name.kind not in ("word", "name") or words.near(at + 1).text != ":":
            raise refuse("the properties of a pattern are {name: value}")
        stop = at + 2
        while stop < end and words.near(stop).text != ",":
            stop = words.closes.get(stop, stop) + 1
        if name_of(name) in properties:
            raise refuse(f"{name_of(name)} stands twice in a pattern")
        properties[name_of(name)] = (at + 2, stop)
        at = stop + 1
    return properties
