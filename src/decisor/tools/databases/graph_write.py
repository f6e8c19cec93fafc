"""Nodes and relationships, and the statements that write them: rows as parameters, never as text."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from decisor.errors import SetupError
from decisor.tools.databases.sandbox.cypher_tokens import quoted
from decisor.types import Value

T = TypeVar("T")
BATCH = 2000
Run = Callable[[str, list[dict[str, Value]]], list[Value]]
"""A statement with its ``$rows``, to the first column of what it returns."""
Progress = Callable[[str, int, int], None]
"""Hears what is under way, how much of it is done, and of how much."""


def silent(what: str, done: int, total: int) -> None:
    """Where nobody listens."""


@dataclass(frozen=True, slots=True)
class Node:
    """``labels``: one name, or several with the main one first."""

    labels: str | tuple[str, ...]
    properties: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Edge:
    """``source`` and ``target``: positions in the sequence of nodes, from 0."""

    type: str
    source: int
    target: int
    properties: Mapping[str, Value] = field(default_factory=dict)


def write(
    run: Run, nodes: Sequence[Node], edges: Sequence[Edge], returned: str, start: str, end: str, by: str = "",
    progress: Progress = silent,
) -> None:  # fmt: skip
    """In as few statements as there are kinds of nodes and edges."""
    keys: dict[int, Value] = {}
    kinds: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        kinds[labels_of(node)].append(number)
    for labels, numbers in kinds.items():
        names = ":".join(map(quoted, labels))
        for batch in batches(numbers):
            rows = [dict(nodes[number].properties) for number in batch]
            ids = run(f"UNWIND $rows AS row CREATE (n:{names}) SET n = row RETURN {returned}", rows)
            keys.update(zip(batch, ids, strict=True))
            progress("nodes", len(keys), len(nodes))
        if len({keys[number] for number in numbers}) < len(numbers):
            raise SetupError(f"The property id of {labels[0]} is not unique: kglite needs it to be.")
    links: dict[tuple[str, str, str], list[Edge]] = defaultdict(list)
    written = 0
    for edge in edges:
        links[edge.type, labels_of(nodes[edge.source])[0], labels_of(nodes[edge.target])[0]].append(edge)
    where = f" WHERE {by}(a) = row.a AND {by}(b) = row.b" if by else ""
    for (kind, source, target), group in links.items():
        ends = f"{start.format(quoted(source))}, {end.format(quoted(target))}{where}"
        for some in batches(group):
            rows = [{"a": keys[e.source], "b": keys[e.target], "p": dict(e.properties)} for e in some]
            run(f"UNWIND $rows AS row MATCH {ends} CREATE (a)-[r:{quoted(kind)}]->(b) SET r = row.p", rows)
            written += len(some)
            progress("relationships", written, len(edges))


def labels_of(node: Node) -> tuple[str, ...]:
    return (node.labels,) if isinstance(node.labels, str) else node.labels


def batches(items: Sequence[T]) -> Iterable[list[T]]:
    left = iter(items)
    while batch := list(itertools.islice(left, BATCH)):
        yield batch
