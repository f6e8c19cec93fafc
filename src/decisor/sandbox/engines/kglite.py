"""kglite: a graph in one file, loaded into memory; the Cypher layer is set read-only. The file is never written.

kglite gives every node ``id``, ``title`` and ``type``. In whole nodes they are taken out again where the data do not
have them. What ``properties(n)`` and ``keys(n)`` return still holds ``id`` and ``title``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

from decisor.errors import SetupError, ToolError
from decisor.sandbox.cypher_guard import check_cypher, join_cypher_tokens, tokenize_cypher
from decisor.sandbox.engine import Caps, Engine
from decisor.sandbox.engines import path_in_url
from decisor.sandbox.wire import build_capped_table, node_value, path_value, relationship
from decisor.types import Table, Value

ADDED = ("id", "title", "type")
LOOKED_AT = 200
SPELT = {
    "PERCENTILECONT": "percentile_cont",
    "PERCENTILEDISC": "percentile_disc",
    "UPPER": "toUpper",
    "LOWER": "toLower",
    "CHAR_LENGTH": "size",
    "CHARACTER_LENGTH": "size",
}
"""Functions that kglite has under another name."""


class Graph(Protocol):
    """The part of kglite's graph class that is used here."""

    def cypher(self, query: str, **options: object) -> Any: ...

    def schema(self) -> dict[str, Any]: ...

    def read_only(self, enabled: bool | None = None) -> bool: ...


@dataclass(eq=False)
class Kglite:
    """A graph that kglite has loaded from a file."""

    graph: Graph
    own: Mapping[str, frozenset[str]]
    """By label, which of id, title and type the data themselves have."""
    deny: frozenset[str] = frozenset()

    def check(self, statement: str) -> str:
        return respell_functions(check_cypher(statement, self.deny))

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import kglite

        try:
            result = self.graph.cypher(
                statement,
                params=dict(parameters),
                timeout_ms=max(1, int(caps.seconds * 1000)),
                # One more than may be shown tells that there are more.
                row_limit=caps.rows + 1,
                hide_structural_keys=True,
            )
            columns = list(result.columns)
            return build_capped_table(
                columns, ([self.plain(row[column]) for column in columns] for row in result), caps
            )
        except kglite.ReadOnlyError as error:
            raise ToolError(f"Refused: {error}", refused=True) from error
        except kglite.KgError as error:
            raise ToolError(str(error)) from error

    def plain(self, value: object) -> object:
        match value:
            case {"id": _, "labels": list(labels), "properties": dict(properties), **rest} if not rest:
                own = self.own.get(labels[0], frozenset()) if labels else frozenset()
                given = {key: item for key, item in properties.items() if key not in ADDED or key in own}
                return node_value(labels, given)
            case {"start": _, "end": _, "type": str(kind), "properties": dict(properties)}:
                return relationship(kind, properties)
            case {"nodes": list(nodes), "relationships": list(links), **rest} if not rest:
                return path_value(map(self.plain, nodes), map(self.plain, links))
            case dict():
                return {key: self.plain(item) for key, item in value.items()}
            case list():
                return [self.plain(item) for item in value]
            case _:
                return value

    def close(self) -> None:
        """Do nothing: the graph goes with the process."""


def respell_functions(statement: str) -> str:
    """Replace the names of functions that kglite spells differently.

    >>> respell_functions("MATCH (n) RETURN percentileCont(n.upper, 0.5)")
    'MATCH (n) RETURN percentile_cont(n.upper, 0.5)'
    """
    words = tokenize_cypher(statement)
    names = [
        SPELT.get(token.key, token.text) if token.kind == "word" and after.text == "(" else token.text
        for token, after in zip(words, [*words[1:], *words[-1:]], strict=True)
    ]
    return join_cypher_tokens(tuple(replace(token, text=name) for token, name in zip(words, names, strict=True)))


def connect_kglite(url: str, caps: Caps) -> Kglite:
    """Open a file or folder that kglite has saved (``kglite:///path``).

    Raises:
        SetupError: it is not there, or is none.
    """
    import kglite

    path = Path(path_in_url(url))
    if not path.exists():
        raise SetupError(f"There is no graph at {path}. Check the path of --graph (kglite:///PATH).")
    try:
        graph = cast(Graph, kglite.load(str(path)))
    except Exception as error:
        raise SetupError(f"{path} cannot be opened as a kglite graph: {error}") from error
    # A second defence behind the guard: kglite then refuses every writing clause itself.
    graph.read_only(True)
    own = {
        label: _properties_of_data(graph, label, set(kind["properties"]))
        for label, kind in graph.schema()["node_types"].items()
    }
    return Kglite(graph, own, frozenset(caps.deny))


def _properties_of_data(graph: Graph, label: str, names: set[str]) -> frozenset[str]:
    """Return which of id, title and type the data themselves have.

    An ``id`` is their own if it differs from the number of the node.
    """
    quoted = label.replace("`", "``")
    nodes = [row["n"] for row in graph.cypher(f"MATCH (n:`{quoted}`) RETURN n LIMIT {LOOKED_AT}")]
    # kglite gives a node without an id its number as one, so an equal id is not the data's.
    differs = any(node["properties"].get("id") != node["id"] for node in nodes)
    return frozenset((names & set(ADDED)) | ({"id"} if differs else set()))


ENGINE = Engine(
    name="kglite",
    title="kglite",
    schemes=("kglite",),
    form="cypher",
    connect=connect_kglite,
    file=True,
    endings=(".kgl",),
    extra="graph",
)
