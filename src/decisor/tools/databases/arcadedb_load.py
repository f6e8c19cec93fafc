"""Loads a graph into a new ArcadeDB folder, in a process of its own: nothing may fork after a JVM has started."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from decisor.child_process import run
from decisor.errors import SetupError
from decisor.tools.databases.graph_write import Edge, Node, labels_of, write
from decisor.types import Value

HEAP_MB = 1024


def load_arcadedb(path: Path, nodes: Sequence[Node], edges: Sequence[Edge]) -> None:
    """The folder appears whole or not at all. Raises SetupError where there is one already, or ArcadeDB fails."""
    if path.exists():
        raise SetupError(f"{path} is there already; ArcadeDB needs a new folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.resolve().with_name(f".{path.name}.{os.getpid()}.new")
    body = {
        "path": str(fresh),
        "nodes": [(labels_of(node), dict(node.properties)) for node in nodes],
        "edges": [(edge.type, edge.source, edge.target, dict(edge.properties)) for edge in edges],
    }
    try:
        done = run(__name__, json.dumps(body).encode(), ("HOME", "JAVA_HOME"))
        if done.returncode:
            why = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise SetupError(f"ArcadeDB could not load the graph: {why}")
        fresh.rename(path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def main() -> None:
    import arcadedb_embedded

    from decisor.tools.databases.sandbox.engines.arcadedb import start_jvm

    body = json.loads(sys.stdin.read())
    start_jvm(HEAP_MB)
    with arcadedb_embedded.create_database(body["path"]) as database:

        def send(statement: str, rows: list[dict[str, Value]]) -> list[Value]:
            result = database.command("opencypher", statement, {"rows": rows})
            return [row.get(row.property_names[0]) for row in result]

        nodes = [Node(tuple(labels), properties) for labels, properties in body["nodes"]]
        edges = [Edge(*edge) for edge in body["edges"]]
        with database.transaction():
            write(send, nodes, edges, returned="elementId(n)", start="(a:{})", end="(b:{})", by="elementId")
