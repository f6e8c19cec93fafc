"""The tool on a real graph: kglite behind the worker process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from data import read_security_rows
from decisor.errors import SetupError, ToolError
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges
from decisor.sandbox.engine import Caps
from decisor.techniques.shared.observations import show_observation

PEOPLE = [
    GraphNode("Person", {"name": "Ann", "age": 30, "score": 1.5}),
    GraphNode("Person", {"name": "Bob", "age": 40, "nick": "B"}),
    GraphNode(("City", "Place"), {"id": 17, "name": "Oslo", "pop": 700000}),
]
LINKS = [GraphEdge("KNOWS", 0, 1, {"since": 2010}), GraphEdge("LIVES_IN", 0, 2), GraphEdge("LIVES_IN", 1, 2)]


@pytest_asyncio.fixture
async def graph(tmp_path: Path) -> AsyncIterator[CypherTool]:
    load_nodes_and_edges(f"kglite:///{tmp_path}/people.kgl", PEOPLE, LINKS)
    tool = await CypherTool.open(f"kglite:///{tmp_path}/people.kgl", caps=Caps(seconds=2.0, memory_mb=1024))
    yield tool
    await tool.close()


async def test_rows_come_back_as_records_with_typed_fields(graph: CypherTool) -> None:
    seen = await graph.call("```cypher\nMATCH (p:Person) RETURN p.name AS name, p.age AS age ORDER BY age;\n```")
    assert [record.fields for record in seen.records] == [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 40}]
    assert [record.id for record in seen.records] == ["r1", "r2"] and seen.total == 2


async def test_nodes_and_relationships_hold_only_the_properties_of_the_data(graph: CypherTool) -> None:
    seen = await graph.call("MATCH (p:Person {name: 'Ann'})-[r:KNOWS]->(q), (p)-[:LIVES_IN]->(c) RETURN p, r, c")
    assert seen.records[0].fields == {
        "p": {"_labels": ["Person"], "name": "Ann", "age": 30, "score": 1.5},
        "r": {"_type": "KNOWS", "since": 2010},
        "c": {"_labels": ["City", "Place"], "id": 17, "name": "Oslo", "pop": 700000},
    }


async def test_the_description_names_labels_types_directions_and_properties(graph: CypherTool) -> None:
    text = graph.describe()
    assert "(:Person) 2 nodes" in text and "age: int (samples: 30, 40)" in text
    assert "(:Person)-[:KNOWS]->(:Person) 1" in text and "(:Person)-[:LIVES_IN]->(:City) 2" in text
    assert "since: int" in text and "title" not in text


async def test_a_write_is_refused_and_changes_nothing(graph: CypherTool) -> None:
    with pytest.raises(ToolError) as refusal:
        await graph.call("MATCH (n) DETACH DELETE n")
    assert refusal.value.refused
    with pytest.raises(ToolError, match="read-only"):
        await graph.fetch("CREATE (:Person {name: 'Eve'})", trusted=True)
    assert (await graph.fetch("MATCH (n) RETURN count(n) AS n")).rows == ((3,),)


async def test_denied_labels_and_types_are_neither_read_nor_seen(graph: CypherTool, tmp_path: Path) -> None:
    tool = await CypherTool.open(f"kglite:///{tmp_path}/people.kgl", deny=["City", "Place", "KNOWS"])
    try:
        for statement in (
            "MATCH (c:City) RETURN c",
            "MATCH (n) RETURN n",
            "MATCH (:Person)-[r:KNOWS]->(:Person) RETURN r",
        ):
            with pytest.raises(ToolError) as refusal:
                await tool.call(statement)
            assert refusal.value.refused
        assert "City" not in tool.describe() and "KNOWS" not in tool.describe() and "pop" not in tool.describe()
        seen = await tool.call("MATCH (p:Person) RETURN p.name AS name ORDER BY name")
        assert [record.fields["name"] for record in seen.records] == ["Ann", "Bob"]
    finally:
        await tool.close()


async def test_a_misspelt_name_is_answered_with_a_close_one(graph: CypherTool) -> None:
    assert "Did you mean Person?" in (await graph.call("MATCH (p:Persn) RETURN p.name")).note
    assert "Did you mean KNOWS?" in (await graph.call("MATCH (p)-[:KNOW]->(q) RETURN q.name")).note
    assert "Did you mean name?" in (await graph.call("MATCH (p:Person) RETURN p.nam")).note


async def test_names_of_variables_and_keys_of_maps_are_not_taken_for_misspelt_labels(graph: CypherTool) -> None:
    for statement in ("RETURN [x IN [1, 2] | x * x] AS y", "WITH {create: 1} AS m RETURN m.create AS a"):
        assert (await graph.call(statement)).note == ""


async def test_an_error_carries_the_message_of_the_engine(graph: CypherTool) -> None:
    with pytest.raises(ToolError, match="Undefined variable") as error:
        await graph.call("MATCH (p:Person) RETURN q.name")
    assert not error.value.refused


async def test_a_sum_over_no_rows_is_zero(graph: CypherTool) -> None:
    seen = await graph.call("MATCH (p:Person {name: 'Nobody'}) RETURN sum(p.age) AS s")
    assert seen.records[0].fields == {"s": 0}


async def test_a_query_without_end_is_killed_and_the_next_one_works(graph: CypherTool) -> None:
    with pytest.raises(ToolError):
        await graph.call("UNWIND range(1, 1000000000) AS x UNWIND range(1, 1000000000) AS y RETURN count(*)")
    assert (await graph.call("RETURN 1 AS x")).records[0].fields == {"x": 1}


async def test_many_rows_are_cut_and_it_says_so(graph: CypherTool) -> None:
    seen = await graph.call("UNWIND range(1, 1000) AS x RETURN x")
    assert len(seen.records) == 200 and seen.truncated and show_observation(seen).count("first 200 rows") == 1


async def test_a_graph_that_is_not_there_is_a_setup_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no graph"):
        await CypherTool.open(f"kglite:///{tmp_path}/none.kgl")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
async def test_statements_that_want_everything_end_at_the_caps(graph: CypherTool) -> None:
    for row in read_security_rows("hostile_cypher"):
        if row["expected"] == "bound":
            try:
                seen = await graph.call(row["statement"])
            except ToolError:
                continue
            assert len(seen.records) <= 200
    assert (await graph.call("MATCH (n) RETURN count(n) AS n")).records[0].fields == {"n": 3}


async def test_only_the_labels_and_types_that_are_named_are_read_and_seen(tmp_path: Path) -> None:
    load_nodes_and_edges(f"kglite:///{tmp_path}/people.kgl", PEOPLE, LINKS)
    tool = await CypherTool.open(f"kglite:///{tmp_path}/people.kgl", only=["Person", "KNOWS"])
    assert "Oslo" not in tool.describe() and "LIVES_IN" not in tool.describe()
    assert (await tool.call("MATCH (p:Person)-[:KNOWS]->(q:Person) RETURN q.name AS name")).total == 1
    for query in ("MATCH (c:City) RETURN c", "MATCH (n) RETURN n", "MATCH (p:Person)-[:LIVES_IN]->(q:Person) RETURN q"):
        with pytest.raises(ToolError):
            await tool.call(query)
    await tool.close()
    with pytest.raises(SetupError, match="no label or relationship type persn"):
        await CypherTool.open(f"kglite:///{tmp_path}/people.kgl", only=["Persn"])
