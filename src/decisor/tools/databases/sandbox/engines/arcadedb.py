"""ArcadeDB in this process (a JVM): the folder is opened READ_ONLY, and only idempotent queries are taken.

The JVM is started without log files, crash dumps or file handlers, with two thirds of the memory cap as its heap.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox import cypher_guard, graph_values
from decisor.tools.databases.sandbox.engine import Caps, Engine
from decisor.tools.databases.sandbox.urls import path_of
from decisor.tools.databases.sandbox.values import table
from decisor.types import Table, Value

JVM = f"-Djava.util.logging.config.file={os.devnull} -XX:-CreateCoredumpOnCrash -XX:+UseSerialGC -Xrs"
WORDS_OF_JAVA = "com.arcadedb.exception."


@dataclass(eq=False)
class Arcade:
    """``database`` is arcadedb_embedded's."""

    database: Any
    deny: frozenset[str] = frozenset()

    def check(self, statement: str) -> str:
        return cypher_guard.check(statement, self.deny)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import arcadedb_embedded

        arguments = (dict(parameters),) if parameters else ()
        try:
            result = self.database.query("opencypher", statement, *arguments)
            columns: list[str] = []
            return table(columns, _rows(result, columns), caps)
        except arcadedb_embedded.ArcadeDBError as error:
            raise ToolError(message(error)) from error

    def close(self) -> None:
        self.database.close()


def _rows(result: Any, columns: list[str]) -> Iterator[list[object]]:
    """``columns`` is filled from the first row: a result without rows has none."""
    for row in result:
        if not columns:
            columns.extend(row.property_names)
        yield [plain(row.get(column)) for column in columns]


def plain(value: Any) -> object:
    """Vertices, edges, paths and dates of Java as plain values."""
    from arcadedb_embedded.graph import Edge, Vertex

    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple() | set():
            return [plain(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case Vertex() | Edge():
            return plain(value.get_java_document() if hasattr(value, "get_java_document") else str(value))
    kind = type(value).__name__
    if kind.endswith("Vertex"):
        labels = [str(label) for label in value.getTypeName().split("~")]
        return graph_values.node(labels, _properties(value))
    if kind.endswith("Edge"):
        return graph_values.relationship(str(value.getTypeName()), _properties(value))
    if kind.endswith("Path"):
        return graph_values.path(map(plain, value.getVertices()), map(plain, value.getEdges()))
    return str(value)


def _properties(element: Any) -> dict[str, object]:
    from arcadedb_embedded.type_conversion import convert_java_to_python

    return {str(name): plain(convert_java_to_python(element.get(name))) for name in element.getPropertyNames()}


def message(error: Exception) -> str:
    """What went wrong, without the wrappers and Java's class names."""
    text = str(error).removeprefix("Query failed: ").removeprefix("Command failed: ")
    head, mark, rest = text.partition(": ")
    return rest if mark and head.startswith(("com.arcadedb.", "java.")) else text


def start_jvm(heap_mb: int) -> None:
    import arcadedb_embedded.jvm

    os.environ["ARCADEDB_JVM_ERROR_FILE"] = os.devnull
    arcadedb_embedded.jvm.start_jvm(heap_size=f"{heap_mb}m", jvm_args=JVM)


def connect(url: str, caps: Caps) -> Arcade:
    """``arcadedb:///path``: the folder of a database that no other process has open for writing."""
    path = Path(path_of(url)).resolve()
    if not path.is_dir():
        raise SetupError(f"There is no graph at {path}. Check the path of --graph (arcadedb:///PATH).")
    if caps.policy:
        raise SetupError(
            "Rows and masks are kept to in graphs of kglite and Neo4j, and not in ArcadeDB: it is not opened."
        )
    import arcadedb_embedded
    import jpype

    start_jvm(max(256, caps.memory_mb * 2 // 3))
    factory = jpype.JClass("com.arcadedb.database.DatabaseFactory")(str(path))
    try:
        database = factory.open(jpype.JClass("com.arcadedb.engine.ComponentFile$MODE").READ_ONLY)
    except Exception as error:
        raise SetupError(f"{path} cannot be opened as an ArcadeDB database: {error}") from error
    return Arcade(arcadedb_embedded.Database(database), frozenset(caps.deny))


ENGINE = Engine(
    name="arcadedb",
    title="ArcadeDB",
    schemes=("arcadedb",),
    form="cypher",
    connect=connect,
    file=True,
    heap=True,
    extra="arcadedb",
)
