"""Loading graphs from rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges


async def test_values_keep_their_types_and_parallel_edges_stay_apart(tmp_path: Path) -> None:
    nodes = [
        GraphNode("a b", {"x": 1, "y": "`) DETACH DELETE n //"}),
        GraphNode("a b", {"x": 2.5, "y": True}),
        GraphNode("C"),
    ]
    load_nodes_and_edges(
        f"kglite:///{tmp_path}/g.kgl", nodes, [GraphEdge("to`it", 0, 2, {"w": 1}), GraphEdge("to`it", 0, 2, {"w": 2})]
    )
    tool = await CypherTool.open(f"kglite:///{tmp_path}/g.kgl")
    rows = (await tool.fetch("MATCH (n:`a b`) RETURN n.x, n.y ORDER BY n.x")).rows
    assert rows == ((1, "`) DETACH DELETE n //"), (2.5, True))
    assert (await tool.fetch("MATCH (:`a b`)-[r:`to``it`]->(:C) RETURN r.w ORDER BY r.w")).rows == ((1,), (2,))
    await tool.close()


def test_two_nodes_of_a_label_with_one_id_are_an_error_and_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="not unique"):
        load_nodes_and_edges(f"kglite:///{tmp_path}/g.kgl", [GraphNode("A", {"id": 1}), GraphNode("A", {"id": 1})], [])
    assert not list(tmp_path.iterdir())


def test_a_url_of_no_graph_engine_is_an_error() -> None:
    with pytest.raises(SetupError, match="names no graph"):
        load_nodes_and_edges("sqlite:///x.db", [], [])
