"""Loads a graph into kglite or a Bolt server: nodes and relationships from rows as parameters, never from text.

>>> import tempfile
>>> from pathlib import Path
>>> oslo, norway = GraphNode("City", {"name": "Oslo"}), GraphNode("Country", {"name": "Norway"})
>>> with tempfile.TemporaryDirectory() as folder:
...     load_nodes_and_edges(f"kglite:///{folder}/small.kgl", [oslo, norway], [GraphEdge("LIES_IN", 0, 1)])
...     [path.name for path in Path(folder).iterdir()]
['small.kgl']
"""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from decisor.errors import SetupError
from decisor.sandbox.cypher_guard import quote_cypher_name
from decisor.sandbox.engines import parse_url_options, path_in_url
from decisor.system.extras import require_package
from decisor.system.secrets import hide_password
from decisor.system.wording import format_count
from decisor.types import Value

if TYPE_CHECKING:
    import neo4j


T = TypeVar("T")
BATCH = 2000
Run = Callable[[str, list[dict[str, Value]]], list[Value]]
"""A statement with its ``$rows``, to the first column of what it returns."""
Progress = Callable[[str, int, int], None]
"""Hears what is under way, how much of it is done, and of how much."""


def ignore_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress; the default if nobody listens."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node to write."""

    labels: str | tuple[str, ...]
    """One name, or several with the main one first."""
    properties: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A relationship to write."""

    type: str
    source: int
    """Position in the sequence of nodes, from 0."""
    target: int
    properties: Mapping[str, Value] = field(default_factory=dict)


def write_nodes_and_edges(
    run: Run,
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    returned: str,
    start: str,
    end: str,
    by: str = "",
    progress: Progress = ignore_progress,
) -> None:
    """Write nodes and edges in batches, with one form of statement for each kind of node and edge.

    Raises SetupError if the property ``id`` of a label is not unique.
    """
    keys: dict[int, Value] = {}
    kinds: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        kinds[labels_of(node)].append(number)
    for labels, numbers in kinds.items():
        # Labels cannot be parameters in Cypher, so they are quoted.
        names = ":".join(map(quote_cypher_name, labels))
        for batch in batches(numbers):
            rows = [dict(nodes[number].properties) for number in batch]
            ids = run(f"UNWIND $rows AS row CREATE (n:{names}) SET n = row RETURN {returned}", rows)
            keys.update(zip(batch, ids, strict=True))
            progress("nodes", len(keys), len(nodes))
        if len({keys[number] for number in numbers}) < len(numbers):
            raise SetupError(f"The property id of {labels[0]} is not unique: kglite needs it to be.")
    links: dict[tuple[str, str, str], list[GraphEdge]] = defaultdict(list)
    written = 0
    for edge in edges:
        links[edge.type, labels_of(nodes[edge.source])[0], labels_of(nodes[edge.target])[0]].append(edge)
    # A Bolt server finds nodes by elementId, kglite by the id in the pattern.
    where = f" WHERE {by}(a) = row.a AND {by}(b) = row.b" if by else ""
    for (kind, source, target), group in links.items():
        ends = f"{start.format(quote_cypher_name(source))}, {end.format(quote_cypher_name(target))}{where}"
        for some in batches(group):
            rows = [{"a": keys[e.source], "b": keys[e.target], "p": dict(e.properties)} for e in some]
            run(f"UNWIND $rows AS row MATCH {ends} CREATE (a)-[r:{quote_cypher_name(kind)}]->(b) SET r = row.p", rows)
            written += len(some)
            progress("relationships", written, len(edges))


def labels_of(node: GraphNode) -> tuple[str, ...]:
    return (node.labels,) if isinstance(node.labels, str) else node.labels


def batches(items: Sequence[T]) -> Iterable[list[T]]:
    left = iter(items)
    while batch := list(itertools.islice(left, BATCH)):
        yield batch


PLACES = "kglite:///PATH or bolt://HOST/DATABASE"


def load_nodes_and_edges(
    url: str, nodes: Iterable[GraphNode], edges: Iterable[GraphEdge], progress: Progress = ignore_progress
) -> None:
    """Write a graph to a new file, or add it to a server's database. The file appears whole or not at all.

    Raises:
        SetupError: the URL names no graph engine, or the place is taken or cannot be written.
    """
    match url.partition("://")[0].partition("+")[0]:
        case "kglite":
            write_kglite_file(Path(path_in_url(url)), list(nodes), list(edges), progress)
        case "bolt" | "neo4j":
            load_over_bolt(url, list(nodes), list(edges), progress)
        case _:
            raise SetupError(f"{hide_password(url)} names no graph. Give {PLACES}.")


def check_graph_target(url: str) -> None:
    """Raise SetupError if the URL names no graph, or an existing one: nothing is loaded over a graph."""
    match url.partition("://")[0].partition("+")[0]:
        case "kglite":
            if Path(path_in_url(url)).exists():
                raise SetupError(f"{path_in_url(url)} already exists. Name another place, or remove it.")
        case "bolt" | "neo4j":
            check_graph_server(url)
        case _:
            raise SetupError(f"{hide_password(url)} names no graph. Give {PLACES}.")


def check_graph_server(url: str) -> None:
    """Raise SetupError if the server cannot take the graph.

    A graph with a label of its own may join others; any other needs an empty database.
    """
    with require_package("neo4j", "neo4j"):
        from neo4j.exceptions import DriverError, Neo4jError

    try:
        with open_graph_session(url) as (session, label):
            query = "MATCH (g:decisor_graph {label: $label}) RETURN count(g)" if label else "MATCH (n) RETURN count(n)"
            [[count]] = session.run(query, label=label).values()
    except (DriverError, Neo4jError) as error:
        raise SetupError(f"The graph server at {url.split('@')[-1]} cannot be used: {error}") from error
    if count and label:
        raise SetupError(f"The graph {label} already exists.")
    if count:
        raise SetupError(
            f"The database holds {format_count(count, 'node')} already: give the graph a label of its own, ?label=NAME."
        )


@contextlib.contextmanager
def open_graph_session(url: str) -> Iterator[tuple[neo4j.Session, str]]:
    """Open a session on a graph server; yield it with the ``label`` of the URL, '' for none."""
    from decisor.sandbox.engines.bolt import OPTIONS, open_bolt_driver

    label = parse_url_options(url, OPTIONS).get("label", "")
    with require_package("neo4j", "neo4j"):
        driver, database = open_bolt_driver(url)
    with driver, driver.session(database=database) as session:
        yield session, label


def write_kglite_file(
    path: Path, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], progress: Progress = ignore_progress
) -> None:
    """Write a graph to a kglite file.

    Numbers keep their types; an ``id`` of the data must be unique within its label.
    """
    with require_package("kglite", "graph"):
        import kglite

    graph = kglite.KnowledgeGraph()

    def run(statement: str, rows: list[dict[str, Value]]) -> list[Value]:
        result: Any = graph.cypher(statement, params={"rows": rows})
        return [next(iter(row.values())) for row in result]

    write_nodes_and_edges(run, nodes, edges, "id(n)", "(a:{} {{id: row.a}})", "(b:{} {{id: row.b}})", progress=progress)
    # Written beside the target and renamed, so that no part of a graph is ever read.
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():  # that a large graph is read into memory, as all are
            warnings.simplefilter("ignore")
            graph.save(str(fresh))
        fresh.replace(path)
    except OSError as error:
        raise SetupError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        fresh.unlink(missing_ok=True)


def load_over_bolt(
    url: str, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], progress: Progress = ignore_progress
) -> None:
    """Add a graph to a server's database.

    If the URL has a ``label``, it becomes the graph of that label, all or nothing, and only once. A node
    ``:decisor_graph`` stands for the graph, so that of two loaders at once one waits, and fails.
    """

    def write(target: neo4j.Session | neo4j.Transaction, nodes: Sequence[GraphNode]) -> None:
        def run(statement: str, rows: list[dict[str, Value]]) -> list[Value]:
            return [record[0] for record in target.run(statement, rows=rows)]

        write_nodes_and_edges(run, nodes, edges, "elementId(n)", "(a:{})", "(b:{})", "elementId", progress)

    with open_graph_session(url) as (session, label):
        if not label:
            write(session, nodes)
            return
        from neo4j.exceptions import Neo4jError

        with contextlib.suppress(Neo4jError):  # an account that may not, or a server that has it by another name
            session.run("CREATE CONSTRAINT decisor_graph IF NOT EXISTS FOR (g:decisor_graph) REQUIRE g.label IS UNIQUE")
        try:
            with session.begin_transaction() as transaction:
                if list(transaction.run("MATCH (g:decisor_graph {label: $label}) RETURN g", label=label)):
                    raise SetupError(f"The graph {label} already exists.")
                transaction.run("CREATE (g:decisor_graph {label: $label})", label=label)
                write(transaction, [GraphNode((*labels_of(node), label), node.properties) for node in nodes])
                transaction.commit()
        except Neo4jError as error:
            raise SetupError(f"The graph {label} cannot be loaded: {error.message}") from error


def drop_labelled_graph(url: str) -> None:
    """Remove the graph of the URL's ``label``. Raises SetupError if the server fails to remove it."""
    with require_package("neo4j", "neo4j"):
        from neo4j.exceptions import DriverError, Neo4jError

    try:
        with open_graph_session(url) as (session, label):
            session.run(f"MATCH (n:{quote_cypher_name(label)}) DETACH DELETE n").consume()
            # The node that stands for the graph goes last: until then no other loader takes its label.
            session.run("MATCH (g:decisor_graph {label: $label}) DELETE g", label=label).consume()
    except (DriverError, Neo4jError) as error:
        raise SetupError(f"The graph at {url.split('@')[-1]} cannot be dropped: {error}") from error
