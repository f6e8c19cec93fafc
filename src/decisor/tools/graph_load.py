"""Loads a graph into kglite, ArcadeDB or a Bolt server: nodes and relationships from rows, never from text.

>>> import tempfile
>>> from pathlib import Path
>>> oslo, norway = Node("City", {"name": "Oslo"}), Node("Country", {"name": "Norway"})
>>> with tempfile.TemporaryDirectory() as folder:
...     load(f"kglite:///{folder}/small.kgl", [oslo, norway], [Edge("LIES_IN", 0, 1)])
...     [path.name for path in Path(folder).iterdir()]
['small.kgl']
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decisor.errors import SetupError
from decisor.types import Value

BATCH = 2000
Run = Callable[[str, list[dict[str, Any]]], list[Any]]
"""A statement with its ``$rows``, to the first column of what it returns."""


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


def load(url: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    """A file or folder is made anew and appears whole or not at all; a server's database gets them added.

    Raises:
        SetupError: the URL names no graph engine, or the place is taken or cannot be written.
    """
    scheme = url.partition("://")[0].partition("+")[0]
    match scheme:
        case "kglite":
            load_kglite(path_of(url), list(nodes), list(edges))
        case "arcadedb":
            from decisor.tools.arcadedb_load import load_arcadedb

            load_arcadedb(path_of(url), list(nodes), list(edges))
        case "bolt" | "neo4j":
            load_bolt(url, list(nodes), list(edges))
        case _:
            raise SetupError(f"{url} names no graph. Give kglite:///PATH, arcadedb:///PATH or bolt://HOST/DATABASE.")


def path_of(url: str) -> Path:
    """``kglite:///graph.kgl`` is relative, ``kglite:////tmp/graph.kgl`` absolute.

    >>> path_of("kglite:///graph.kgl").as_posix(), path_of("kglite:////tmp/graph.kgl").as_posix()
    ('graph.kgl', '/tmp/graph.kgl')
    """
    return Path(url.partition("://")[2].removeprefix("/"))


def load_kglite(path: Path, nodes: Sequence[Node], edges: Sequence[Edge]) -> None:
    """Numbers keep their types; an ``id`` of the data must be unique within its label."""
    import kglite

    graph = kglite.KnowledgeGraph()

    def run(statement: str, rows: list[dict[str, Any]]) -> list[Any]:
        result: Any = graph.cypher(statement, params={"rows": rows})
        return [next(iter(row.values())) for row in result]

    write(run, nodes, edges, returned="id(n)", start="(a:{} {{id: row.a}})", end="(b:{} {{id: row.b}})")
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        graph.save(str(fresh))
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def load_bolt(url: str, nodes: Sequence[Node], edges: Sequence[Edge]) -> None:
    from decisor.tools.fence.bolt_engine import driver_of

    driver, database = driver_of(url)
    with driver, driver.session(database=database) as session:

        def run(statement: str, rows: list[dict[str, Any]]) -> list[Any]:
            return [record[0] for record in session.run(statement, rows=rows)]

        write(run, nodes, edges, returned="elementId(n)", start="(a:{})", end="(b:{})", by="elementId")


def write(
    run: Run, nodes: Sequence[Node], edges: Sequence[Edge], returned: str, start: str, end: str, by: str = ""
) -> None:
    """In as few statements as there are kinds of nodes and edges."""
    keys: dict[int, Any] = {}
    kinds: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        kinds[labels_of(node)].append(number)
    for labels, numbers in kinds.items():
        names = ":".join(map(quoted, labels))
        for batch in batches(numbers):
            rows = [dict(nodes[number].properties) for number in batch]
            made = run(f"UNWIND $rows AS row CREATE (n:{names}) SET n = row RETURN {returned}", rows)
            keys.update(zip(batch, made, strict=True))
        if len({keys[number] for number in numbers}) < len(numbers):
            raise SetupError(f"The property id of {labels[0]} is not unique: kglite needs it to be.")
    links: dict[tuple[str, str, str], list[Edge]] = defaultdict(list)
    for edge in edges:
        links[edge.type, labels_of(nodes[edge.source])[0], labels_of(nodes[edge.target])[0]].append(edge)
    where = f" WHERE {by}(a) = row.a AND {by}(b) = row.b" if by else ""
    for (kind, source, target), group in links.items():
        ends = f"{start.format(quoted(source))}, {end.format(quoted(target))}{where}"
        for some in batches(group):
            rows = [{"a": keys[e.source], "b": keys[e.target], "p": dict(e.properties)} for e in some]
            run(f"UNWIND $rows AS row MATCH {ends} CREATE (a)-[r:{quoted(kind)}]->(b) SET r = row.p", rows)


def labels_of(node: Node) -> tuple[str, ...]:
    return (node.labels,) if isinstance(node.labels, str) else node.labels


def batches(items: Sequence[Any]) -> Iterable[list[Any]]:
    left = iter(items)
    while batch := list(itertools.islice(left, BATCH)):
        yield batch


def quoted(name: str) -> str:
    """
    >>> quoted("Trade`node")
    '`Trade``node`'
    """
    return "`" + name.replace("`", "``") + "`"
