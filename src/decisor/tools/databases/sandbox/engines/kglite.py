"""kglite: a graph in one file, loaded into memory; the Cypher layer is set read-only. The file is never written.

kglite gives every node ``id``, ``title`` and ``type``. In whole nodes they are taken out again where the data do not
have them. What ``properties(n)`` and ``keys(n)`` return still holds ``id`` and ``title``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox import cypher_guard, graph_values
from decisor.tools.databases.sandbox.cypher_tokens import clean, quoted, tokens
from decisor.tools.databases.sandbox.engine import Caps, Engine
from decisor.tools.databases.sandbox.graph_policy import GraphRules, check_statement, condition_of, rules_of, wrong
from decisor.tools.databases.sandbox.policy import TOKEN, Policy
from decisor.tools.databases.sandbox.urls import path_of
from decisor.tools.databases.sandbox.values import table
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
    """kglite's, as far as it is used."""

    def cypher(self, query: str, **options: object) -> Any: ...

    def schema(self) -> dict[str, Any]: ...

    def read_only(self, enabled: bool | None = None) -> bool: ...


@dataclass(eq=False)
class Kglite:
    """``own``: the properties of those three names that the data themselves have, by label. ``rules``: what of the
    graph is not for its reader, and so is not in it."""

    graph: Graph
    own: Mapping[str, frozenset[str]]
    deny: frozenset[str] = frozenset()
    rules: GraphRules = field(default_factory=GraphRules)

    def check(self, statement: str) -> str:
        if self.rules:
            check_statement(tokens(statement))
        return respelled(cypher_guard.check(statement, self.deny))

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import kglite

        try:
            result = self.graph.cypher(
                statement,
                params=dict(parameters),
                timeout_ms=max(1, int(caps.seconds * 1000)),
                row_limit=caps.rows + 1,
                hide_structural_keys=True,
            )
            columns = list(result.columns)
            return table(columns, ([self.plain(row[column]) for column in columns] for row in result), caps)
        except kglite.ReadOnlyError as error:
            raise ToolError(f"Refused: {error}", refused=True) from error
        except kglite.KgError as error:
            raise ToolError(str(error)) from error

    def plain(self, value: object) -> object:
        match value:
            case {"id": number, "labels": list(labels), "properties": dict(properties), **rest} if not rest:
                return graph_values.node(labels, self.without_added(number, labels, properties))
            case {"start": _, "end": _, "type": str(kind), "properties": dict(properties)}:
                return graph_values.relationship(kind, properties)
            case {"nodes": list(nodes), "relationships": list(links), **rest} if not rest:
                return graph_values.path(map(self.plain, nodes), map(self.plain, links))
            case dict():
                return {key: self.plain(item) for key, item in value.items()}
            case list():
                return [self.plain(item) for item in value]
            case _:
                return value

    def without_added(self, number: int, labels: list[str], properties: Mapping[str, object]) -> dict[str, object]:
        own = self.own.get(labels[0], frozenset()) if labels else frozenset()
        return {key: value for key, value in properties.items() if key not in ADDED or key in own}

    def close(self) -> None:
        """The graph goes with the process."""


def respelled(statement: str) -> str:
    """
    >>> respelled("MATCH (n) RETURN percentileCont(n.upper, 0.5)")
    'MATCH (n) RETURN percentile_cont(n.upper, 0.5)'
    """
    words = tokens(statement)
    names = [
        SPELT.get(token.key, token.text) if token.kind == "word" and after.text == "(" else token.text
        for token, after in zip(words, [*words[1:], *words[-1:]], strict=True)
    ]
    return clean(tuple(replace(token, text=name) for token, name in zip(words, names, strict=True)))


def connect(url: str, caps: Caps) -> Kglite:
    """``kglite:///path``: a file or folder that kglite has saved.

    Raises:
        SetupError: it is not there, or is none.
    """
    import kglite

    path = Path(path_of(url))
    if not path.exists():
        raise SetupError(f"There is no graph at {path}. Check the path of --graph (kglite:///PATH).")
    try:
        graph = cast(Graph, kglite.load(str(path)))
    except Exception as error:
        raise SetupError(f"{path} cannot be opened as a kglite graph: {error}") from error
    rules = keep_to(caps.policy, graph) if caps.policy else GraphRules()
    graph.read_only(True)
    own = {label: _own(graph, label, names) for label, names in _properties(graph).items()}
    return Kglite(graph, own, frozenset(caps.deny), rules)


def keep_to(policy: Policy, graph: Graph) -> GraphRules:
    """Takes out of the graph in memory what is not for its reader: nodes, and values, for which tokens stand then.

    Raises:
        SetupError: something of the policy is not in the graph, or cannot be taken out of it.
    """
    there = graph.schema()
    homes = {**there["node_types"], **there["connection_types"]}
    names = {str(name) for row in graph.cypher("MATCH (n) RETURN DISTINCT labels(n) AS l") for name in row["l"]}
    rules = rules_of(policy, names, {name: set(home["properties"]) for name, home in homes.items()})
    for label, conditions in rules.rows.items():
        for one in conditions:
            test = f"NOT coalesce(({condition_of(one, 'n')}), false)"
            try:
                graph.cypher(f"MATCH (n:{quoted(label)}) WHERE {test} DETACH DELETE n")
            except Exception as error:
                raise wrong(one, " ".join(str(error).split())) from error
    for home, properties in rules.masked.items():
        for name in sorted(properties):
            mask(graph, f"(n:{quoted(home)})" if home in names else f"()-[n:{quoted(home)}]->()", name, rules)
    return rules


def mask(graph: Graph, pattern: str, name: str, rules: GraphRules) -> None:
    """A token for each value. kglite shows one property of a node as its title too. Raises SetupError where a value is
    left, as of the property that nodes are numbered by."""
    value = f"n.{quoted(name)}"
    some = f"MATCH {pattern} WHERE {value} IS NOT NULL"
    texts = [row["v"] for row in graph.cypher(f"{some} RETURN DISTINCT toString({value}) AS v")]
    known = {text: rules.token(text) for text in texts if isinstance(text, str) and not TOKEN.fullmatch(text)}
    try:
        graph.cypher(f"{some} SET {value} = coalesce($m[toString({value})], {value})", params={"m": known})
    except Exception as error:
        raise SetupError(f"{name} cannot be masked in this graph: its nodes are numbered by it.") from error
    if pattern.startswith("(n"):
        graph.cypher(f"MATCH {pattern} WHERE $m[toString(n.title)] IS NOT NULL SET n.title = $m[toString(n.title)]",
                     params={"m": known})  # fmt: skip
    left = [row["v"] for row in graph.cypher(f"{some} RETURN DISTINCT {value} AS v")]
    if not all(isinstance(one, str) and TOKEN.fullmatch(one) for one in left):
        raise SetupError(f"{name} cannot be masked in this graph.")


def _properties(graph: Graph) -> dict[str, set[str]]:
    return {label: set(kind["properties"]) for label, kind in graph.schema()["node_types"].items()}


def _own(graph: Graph, label: str, names: set[str]) -> frozenset[str]:
    """An ``id`` is the data's own where it is not the number of the node."""
    quoted = label.replace("`", "``")
    nodes = [row["n"] for row in graph.cypher(f"MATCH (n:`{quoted}`) RETURN n LIMIT {LOOKED_AT}")]
    differs = any(node["properties"].get("id") != node["id"] for node in nodes)
    return frozenset((names & set(ADDED)) | ({"id"} if differs else set()))


ENGINE = Engine(
    name="kglite",
    title="kglite",
    schemes=("kglite",),
    form="cypher",
    connect=connect,
    file=True,
    endings=(".kgl",),
    extra="graph",
)
