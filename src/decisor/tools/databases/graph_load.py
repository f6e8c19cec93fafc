"""Loads a graph into kglite or a Bolt server: nodes and relationships from rows, never from text.

>>> import tempfile
>>> from pathlib import Path
>>> oslo, norway = Node("City", {"name": "Oslo"}), Node("Country", {"name": "Norway"})
>>> with tempfile.TemporaryDirectory() as folder:
...     load(f"kglite:///{folder}/small.kgl", [oslo, norway], [Edge("LIES_IN", 0, 1)])
...     [path.name for path in Path(folder).iterdir()]
['small.kgl']
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError
from decisor.extras import needs
from decisor.plurals import counted
from decisor.secrets import without_password
from decisor.tools.databases.graph_write import Edge, Node, Progress, labels_of, silent, write
from decisor.tools.databases.sandbox.cypher_tokens import quoted
from decisor.types import Value

if TYPE_CHECKING:
    import neo4j

PLACES = "kglite:///PATH or bolt://HOST/DATABASE"


def load(url: str, nodes: Iterable[Node], edges: Iterable[Edge], progress: Progress = silent) -> None:
    """A file is made anew and appears whole or not at all; a server's database gets them added.

    Raises:
        SetupError: the URL names no graph engine, or the place is taken or cannot be written.
    """
    scheme = url.partition("://")[0].partition("+")[0]
    match scheme:
        case "kglite":
            load_kglite(path_of(url), list(nodes), list(edges), progress)
        case "bolt" | "neo4j":
            load_bolt(url, list(nodes), list(edges), progress)
        case _:
            raise SetupError(f"{without_password(url)} names no graph. Give {PLACES}.")


def check_place(url: str) -> None:
    """Raises SetupError where the URL names no graph, or one that is there: nothing is loaded over it."""
    scheme = url.partition("://")[0].partition("+")[0]
    if scheme == "kglite":
        if path_of(url).exists():
            raise SetupError(f"{path_of(url)} is there already: name another place, or remove it.")
    elif scheme in ("bolt", "neo4j"):
        check_server(url)
    else:
        raise SetupError(f"{without_password(url)} names no graph. Give {PLACES}.")


def check_server(url: str) -> None:
    """A graph with a label of its own may be put beside others; any other only into an empty database."""
    with needs("neo4j", "neo4j"):
        from neo4j.exceptions import DriverError, Neo4jError

    from decisor.tools.databases.sandbox.engines.bolt import OPTIONS, driver_of
    from decisor.tools.databases.sandbox.urls import options

    label = options(url, OPTIONS).get("label", "")
    driver, database = driver_of(url)
    query = "MATCH (g:decisor_graph {label: $label}) RETURN count(g)" if label else "MATCH (n) RETURN count(n)"
    try:
        with driver, driver.session(database=database) as session:
            [[count]] = session.run(query, label=label).values()
    except (DriverError, Neo4jError) as error:
        raise SetupError(f"The graph server at {url.split('@')[-1]} cannot be used: {error}") from error
    if count and label:
        raise SetupError(f"The graph {label} already exists.")
    if count:
        raise SetupError(
            f"The database holds {counted(count, 'node')} already: give the graph a label of its own, ?label=NAME."
        )


def path_of(url: str) -> Path:
    """``kglite:///graph.kgl`` is relative, ``kglite:////tmp/graph.kgl`` absolute.

    >>> path_of("kglite:///graph.kgl").as_posix(), path_of("kglite:////tmp/graph.kgl").as_posix()
    ('graph.kgl', '/tmp/graph.kgl')
    """
    return Path(url.partition("://")[2].removeprefix("/"))


def load_kglite(path: Path, nodes: Sequence[Node], edges: Sequence[Edge], progress: Progress = silent) -> None:
    """Numbers keep their types; an ``id`` of the data must be unique within its label."""
    with needs("kglite", "graph"):
        import kglite

    graph = kglite.KnowledgeGraph()

    def run(statement: str, rows: list[dict[str, Value]]) -> list[Value]:
        result: Any = graph.cypher(statement, params={"rows": rows})
        return [next(iter(row.values())) for row in result]

    write(run, nodes, edges, "id(n)", "(a:{} {{id: row.a}})", "(b:{} {{id: row.b}})", progress=progress)
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


def load_bolt(url: str, nodes: Sequence[Node], edges: Sequence[Edge], progress: Progress = silent) -> None:
    """Added to a database; where the URL has a ``label``, as the graph of that label: all of it or nothing, once."""
    from decisor.tools.databases.sandbox.engines.bolt import OPTIONS, driver_of
    from decisor.tools.databases.sandbox.urls import options

    label = options(url, OPTIONS).get("label", "")
    with needs("neo4j", "neo4j"):
        driver, database = driver_of(url)
    with driver, driver.session(database=database) as session:
        if label:
            load_labelled(session, label, nodes, edges, progress)
        else:
            write_bolt(session, nodes, edges, progress)


def load_labelled(
    session: neo4j.Session, label: str, nodes: Sequence[Node], edges: Sequence[Edge], progress: Progress = silent
) -> None:
    """A node ``:decisor_graph`` stands for the graph, so that of two who load it at once one waits, and fails."""
    from neo4j.exceptions import Neo4jError

    with contextlib.suppress(Neo4jError):  # an account that may not, or a server that has it by another name
        session.run("CREATE CONSTRAINT decisor_graph IF NOT EXISTS FOR (g:decisor_graph) REQUIRE g.label IS UNIQUE")
    labelled = [Node((*labels_of(node), label), node.properties) for node in nodes]
    try:
        with session.begin_transaction() as transaction:
            if list(transaction.run("MATCH (g:decisor_graph {label: $label}) RETURN g", label=label)):
                raise SetupError(f"The graph {label} already exists.")
            transaction.run("CREATE (g:decisor_graph {label: $label})", label=label)
            write_bolt(transaction, labelled, edges, progress)
            transaction.commit()
    except Neo4jError as error:
        raise SetupError(f"The graph {label} cannot be loaded: {error.message}") from error


def write_bolt(
    session: neo4j.Session | neo4j.Transaction, nodes: Sequence[Node], edges: Sequence[Edge],
    progress: Progress = silent,
) -> None:  # fmt: skip
    """``session``: or a transaction."""

    def run(statement: str, rows: list[dict[str, Value]]) -> list[Value]:
        return [record[0] for record in session.run(statement, rows=rows)]

    write(run, nodes, edges, "elementId(n)", "(a:{})", "(b:{})", "elementId", progress)


def drop_labelled(url: str) -> None:
    """Removes the graph of the URL's ``label``. Raises SetupError where the server does not do it."""
    with needs("neo4j", "neo4j"):
        from neo4j.exceptions import DriverError, Neo4jError

    from decisor.tools.databases.sandbox.engines.bolt import OPTIONS, driver_of
    from decisor.tools.databases.sandbox.urls import options

    label = options(url, OPTIONS)["label"]
    driver, database = driver_of(url)
    try:
        with driver, driver.session(database=database) as session:
            session.run(f"MATCH (n:{quoted(label)}) DETACH DELETE n").consume()
            session.run("MATCH (g:decisor_graph {label: $label}) DELETE g", label=label).consume()
    except (DriverError, Neo4jError) as error:
        raise SetupError(f"The graph {label} cannot be dropped: {error}") from error
