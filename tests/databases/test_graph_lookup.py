"""A graph is described and searched as a database is: describe LABEL, find WORDS, within a budget of tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from decisor.errors import SetupError, ToolError
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges
from decisor.graphs.schema import render_graph_schema
from decisor.runtime.budget import parse_max_scan
from decisor.runtime.prompt import estimate_tokens
from servers.neo4j_server import neo4j_database

QUESTION = "Which ships carry the most cannons?"
NAMES = [
    f"{a}{b}{c}{d}".title() for a in "bdfgk" for b in "aeo" for c in "rstn" for d in ("va", "lo", "mi", "ku", "pe")
]
NODES = [
    GraphNode("Ship", {"name": "Sant'Ana", "cannons": 12}),
    GraphNode("Ship", {"name": "Manowar II", "cannons": 74}),
    GraphNode("Harbour", {"name": "Ghent", "code": 17}),
    GraphNode("Secret", {"name": "Manowar plans"}),
    *(GraphNode(name, {"id": at, "title": f"a {name.lower()} of number {at}"}) for at, name in enumerate(NAMES)),
]
EDGES = [GraphEdge("LIES_IN", 0, 2, {"since": "the MANOWAR years"}), GraphEdge("LIES_IN", 1, 2)]


@pytest_asyncio.fixture(params=["kglite", pytest.param("neo4j", marks=pytest.mark.slow)])
async def graph(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CypherTool]:
    """302 labels that may be seen; on engines that are slow to be asked of each, four."""
    if request.param == "neo4j":
        with neo4j_database() as url:
            load_nodes_and_edges(url, NODES[:6], EDGES)
            tool = await CypherTool.open(url, deny=["Secret"])
            yield tool
            await tool.close()
        return
    url = f"kglite:///{tmp_path}/ships.kgl"
    load_nodes_and_edges(url, NODES, EDGES)
    tool = await CypherTool.open(url, deny=["Secret"])
    yield tool
    await tool.close()


async def test_300_labels_are_shown_for_the_question_within_the_budget(graph: CypherTool) -> None:
    if len(graph.schema.labels) < 100:
        pytest.skip("its graph is small enough to be shown whole")
    assert len(graph.schema.labels) == 302 and estimate_tokens(render_graph_schema(graph.schema)) > 6_000
    text = (await graph.about(QUESTION)).describe()
    assert estimate_tokens(text) <= 2_000
    assert "(:Ship) 2 nodes" in text and "(:Ship)-[:LIES_IN]->(:Harbour) 2" in text
    assert "`describe LABEL`" in text and "It has 302 labels" in text


async def test_a_label_and_a_type_are_described_with_what_ties_them(graph: CypherTool) -> None:
    for name in ("Ship", "(:ship)", "`Ship`"):
        note = (await graph.call(f"describe {name}")).note
        assert note.startswith("(:Ship) 2 nodes") and "cannons: int (samples: 12, 74)" in note
        assert "(:Ship)-[:LIES_IN]->(:Harbour) 2" in note
    note = (await graph.call("describe LIES_IN, Harbour")).note
    assert note.startswith("[:LIES_IN]") and "since: string" in note and "(:Harbour) 1 nodes" in note


async def test_a_label_that_is_not_there_is_told_with_near_ones(graph: CypherTool) -> None:
    with pytest.raises(ToolError, match=r"There is no label Shipp\. Did you mean: Ship"):
        await graph.call("describe Shipp")


async def test_a_value_is_found_with_its_label_and_property_and_nothing_that_is_denied(graph: CypherTool) -> None:
    seen = await graph.call("find 'manowar'")
    places = {tuple(record.fields.values()) for record in seen.records}
    assert places == {("Ship", "name", "Manowar II"), ("[LIES_IN]", "since", "the MANOWAR years")}
    assert list(seen.records[0].fields) == ["label", "property", "value"] and seen.total == 2
    for text, value in (('find "sant\'ana"', "Sant'Ana"), ("find 'ghent'", "Ghent")):
        assert [record.fields["value"] for record in (await graph.call(text)).records] == [value]
    nothing = await graph.call("find 'no such thing at all'")
    assert not nothing.records and nothing.note.endswith("none.")
    with pytest.raises(ToolError, match="no label Secret"):
        await graph.call("describe Secret")


async def test_words_find_labels_and_their_properties(graph: CypherTool) -> None:
    note = (await graph.call("find cannons of ships")).note
    assert note.startswith("(:Ship): cannons")


async def test_a_text_that_tries_to_leave_its_quotes_finds_nothing(graph: CypherTool) -> None:
    seen = await graph.call("find x\\' OR true RETURN 1 //")
    assert not seen.records


@pytest.mark.slow
async def test_a_query_that_would_read_too_much_of_a_graph_is_not_run() -> None:
    with neo4j_database() as url:
        load_nodes_and_edges(
            url, [GraphNode("Ship", {"name": f"ship {at}"}) for at in range(300)], [GraphEdge("NEXT", 0, 1)]
        )
        tool = await CypherTool.open(url)
        narrow = tool.limited(parse_max_scan("1000"))
        assert (await narrow.call("MATCH (s:Ship) RETURN count(s) AS ships")).records[0].fields == {"ships": 300}
        with pytest.raises(ToolError, match=r"Not run: it would read about 9[0-9],[0-9]+ rows") as error:
            await narrow.call("MATCH (s:Ship), (t:Ship) WHERE s.name < t.name RETURN s.name, t.name")
        assert error.value.refused
        assert (await narrow.call("find 'ship 299'")).records
        with pytest.raises(SetupError, match="Neo4j tells ahead how many rows a query reads, not bytes"):
            tool.limited(parse_max_scan("1GB"))
        await tool.close()
