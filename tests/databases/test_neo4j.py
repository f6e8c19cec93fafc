"""The tool on Neo4j itself: what it enforces, what a statement may use, and a graph that is the nodes of a label."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from decisor.errors import SetupError, ToolError
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import GraphEdge, GraphNode, drop_labelled_graph, load_nodes_and_edges
from decisor.sandbox.engine import Caps
from decisor.sandbox.engines.bolt import remove_label, restrict_to_label
from servers.neo4j_server import ask, neo4j_database

ENDLESS = "UNWIND range(1, 1000000) AS x UNWIND range(1, 10000000) AS y RETURN count(*) AS n"
OF_NEO4J = (
    "localdatetime.statement()",
    "localdatetime.transaction()",
    "localtime.statement()",
    "localtime.transaction()",
    "time.statement()",
    "time.transaction()",
    "vector.similarity.cosine([1.0, 0.0], [1.0, 0.0])",
    "vector.similarity.euclidean([1.0, 0.0], [1.0, 0.0])",
    "date.statement()",
    "datetime.fromEpoch(0, 0)",
    "duration.inDays(date('2024-01-01'), date('2024-01-03'))",
    "char_length('ab')",
    "normalize('a')",
)


def people(*names: str) -> tuple[list[GraphNode], list[GraphEdge]]:
    """They know each other in a ring, and live in one city."""
    nodes = [GraphNode("Person", {"name": name}) for name in names] + [GraphNode("City", {"name": "Oslo"})]
    ring = [GraphEdge("KNOWS", at, (at + 1) % len(names), {"since": 2000 + at}) for at in range(len(names))]
    return nodes, ring + [GraphEdge("LIVES_IN", at, len(names)) for at in range(len(names))]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with neo4j_database() as url:
        load_nodes_and_edges(f"{url}?label=one", *people("Ann", "Bob"))
        load_nodes_and_edges(f"{url}?label=two", *people("Cid", "Dee", "Eve"))
        yield url


@pytest_asyncio.fixture
async def graph(server: str) -> AsyncIterator[CypherTool]:
    tool = await CypherTool.open(server, caps=Caps(seconds=4.0))
    yield tool
    await tool.close()


@pytest_asyncio.fixture
async def two(server: str) -> AsyncIterator[CypherTool]:
    tool = await CypherTool.open(f"{server}?label=two")
    yield tool
    await tool.close()


async def test_neo4j_itself_refuses_a_write_of_our_own(graph: CypherTool) -> None:
    with pytest.raises(ToolError, match=r"(?i)writing in read access mode|access mode"):
        await graph.fetch("CREATE (:Person {name: 'Eve'})", trusted=True)
    assert ask("MATCH (p:Person) RETURN count(p) AS n") == [{"n": 5}]


@pytest.mark.slow
async def test_neo4j_itself_keeps_the_limit_of_time(graph: CypherTool) -> None:
    with pytest.raises(ToolError, match=r"(?i)timeout|terminated|Stopped"):
        await graph.call(ENDLESS)
    async with asyncio.timeout(60):
        while ask("SHOW TRANSACTIONS YIELD currentQuery AS q WHERE q STARTS WITH 'UNWIND' RETURN q"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert (await graph.call("RETURN 1 AS x")).records[0].fields == {"x": 1}


async def test_a_function_that_neo4j_has_may_be_called(graph: CypherTool) -> None:
    for call in OF_NEO4J:
        assert (await graph.call(f"RETURN {call} AS x")).total == 1, call


async def test_rows_cells_and_bytes_are_capped(server: str) -> None:
    tool = await CypherTool.open(server, caps=Caps(rows=3, cell_chars=10, bytes=10_000))
    many = await tool.call("UNWIND range(1, 100000) AS x RETURN x")
    assert len(many.records) == 3 and many.truncated
    long = await tool.call("RETURN reduce(s = 'y', x IN range(1, 12) | s + s) AS y")
    assert len(str(long.records[0].fields["y"])) < 100
    await tool.close()


async def test_a_wrong_password_is_told_without_it(server: str) -> None:
    with pytest.raises(SetupError) as error:
        await CypherTool.open(server.replace("decisor-tests", "other-secret"))
    assert "other-secret" not in str(error.value)


SEEN: list[tuple[str, list[tuple[object, ...]]]] = [
    ("MATCH (n) RETURN count(n) AS n", [(4,)]),
    ("MATCH (p:Person) RETURN p.name ORDER BY p.name", [("Cid",), ("Dee",), ("Eve",)]),
    ("MATCH (p:Person|City) RETURN count(p)", [(4,)]),
    ("MATCH (p:!City) RETURN count(p)", [(3,)]),
    ("MATCH ()-[r]->() RETURN count(r)", [(6,)]),
    ("MATCH (a)-[:KNOWS*1..3]->(a) RETURN count(*)", [(3,)]),
    ("MATCH (c:City) RETURN labels(c)", [(["City"],)]),
    ("MATCH (c:City) RETURN labels(c)[0] AS label", [("City",)]),
    ("MATCH (c:City) RETURN c", [({"_labels": ["City"], "name": "Oslo"},)]),
    ("MATCH (c:City) WHERE c:City AND NOT (c)-->() RETURN COUNT { (c)<--(:Person) } AS n", [(3,)]),
    ("MATCH (c:City) WHERE EXISTS { MATCH (c)<-[:LIVES_IN]-({name: 'Ann'}) } RETURN c", []),
    ("MATCH (p {name: 'Cid'}) RETURN [(p)-[:KNOWS]->(q) | q.name] AS knows", [(["Dee"],)]),
    ("MATCH p = shortestPath((a {name: 'Cid'})-[:KNOWS*]->(b {name: 'Eve'})) RETURN length(p)", [(2,)]),
    ("MATCH (a:Person) WITH count(a) AS x RETURN (x) - (1) AS y, (x) < (2) AS z", [(2, False)]),
    ("MATCH (p:Person WHERE p.name < 'D') RETURN p.name", [("Cid",)]),
]


@pytest.mark.slow
async def test_a_graph_of_a_label_is_all_that_a_statement_sees(two: CypherTool) -> None:
    for query, rows in SEEN:
        seen = await two.call(query)
        assert [tuple(record.fields.values()) for record in seen.records] == rows, query
        assert "two" not in str([record.fields for record in seen.records]), query


async def test_its_description_and_complaints_do_not_tell_of_the_label(two: CypherTool) -> None:
    text = two.describe()
    assert "(:Person) 3 nodes" in text and "two" not in text and "decisor_graph" not in text
    assert list((await two.call("MATCH (c:City) RETURN labels(c)")).records[0].fields) == ["labels(c)"]
    with pytest.raises(ToolError) as complaint:
        await two.call("MATCH (p:Person) RETURN nothing")
    assert "two" not in str(complaint.value)
    for query in ("CALL db.labels()", "SHOW INDEXES"):
        with pytest.raises(ToolError, match="a part of a database"):
            await two.call(query)


async def test_a_graph_of_a_label_is_loaded_once_and_dropped_alone(server: str, two: CypherTool) -> None:
    with pytest.raises(SetupError, match="already exists"):
        load_nodes_and_edges(f"{server}?label=two", *people("Fay", "Guy"))
    load_nodes_and_edges(f"{server}?label=three", *people("Fay", "Guy"))
    drop_labelled_graph(f"{server}?label=three")
    assert ask("MATCH (p:Person) RETURN count(p) AS n") == [{"n": 5}]
    assert (await two.call("MATCH (p:Person) RETURN count(p) AS n")).records[0].fields == {"n": 3}


def test_a_label_with_odd_letters_stays_a_name() -> None:
    statement = restrict_to_label("MATCH (n) RETURN labels(n)", "a`b'c\\")
    assert statement == (
        "MATCH (n:`a``b'c\\`) RETURN [decisor_label IN labels(n) WHERE decisor_label <> 'a`b\\'c\\\\']"
    )
    assert remove_label("Unknown: (n:`w1`)", "w1") == "Unknown: (n)"
