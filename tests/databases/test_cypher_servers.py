"""The same tool on the other engines: ArcadeDB embedded, and a real Bolt server (ArcadeDB's)."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.cypher import CypherTool
from decisor.tools.databases.graph_load import load
from decisor.tools.databases.graph_write import Edge, Node
from decisor.tools.databases.sandbox.engine import Caps
from servers.arcadedb_server import arcadedb_server

pytestmark = [
    pytest.mark.bolt,
    pytest.mark.skipif(not importlib.util.find_spec("arcadedb_embedded"), reason="needs decisor[arcadedb]"),
]

PEOPLE = [
    Node("Person", {"name": "Ann", "age": 30}),
    Node("Person", {"name": "Bob", "age": 40}),
    Node("City", {"id": 17, "name": "Oslo"}),
]
LINKS = [Edge("KNOWS", 0, 1, {"since": 2010}), Edge("LIVES_IN", 0, 2), Edge("LIVES_IN", 1, 2)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with arcadedb_server(tmp_path_factory.mktemp("arcadedb")) as url:
        load(url, PEOPLE, LINKS)
        yield url


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"arcadedb:///{tmp_path_factory.mktemp('embedded')}/people"
    load(url, PEOPLE, LINKS)
    return url


@pytest_asyncio.fixture(params=["server", "folder"])
async def graph(request: pytest.FixtureRequest) -> AsyncIterator[CypherTool]:
    tool = await CypherTool.open(request.getfixturevalue(request.param), caps=Caps(seconds=3.0))
    yield tool
    await tool.close()


@pytest.mark.slow
async def test_nodes_relationships_and_paths_are_plain_values(graph: CypherTool) -> None:
    seen = await graph.call("MATCH p = (a:Person)-[r:KNOWS]->(b) RETURN r, p, date('2024-01-03') AS d, null AS nothing")
    link = {"_type": "KNOWS", "since": 2010}
    ann, bob = ({"_labels": ["Person"], "name": name, "age": age} for name, age in (("Ann", 30), ("Bob", 40)))
    assert seen.records[0].fields == {"r": link, "p": [ann, link, bob], "d": "2024-01-03", "nothing": None}


@pytest.mark.slow
async def test_the_description_has_directions_and_types(graph: CypherTool) -> None:
    text = graph.describe()
    assert "(:Person)-[:LIVES_IN]->(:City) 2" in text and "age: int" in text and "id: int (samples: 17)" in text


@pytest.mark.slow
async def test_a_write_is_refused(graph: CypherTool) -> None:
    with pytest.raises(ToolError) as refusal:
        await graph.call("MATCH (n) DETACH DELETE n")
    assert refusal.value.refused
    assert (await graph.fetch("MATCH (n) RETURN count(n) AS n")).rows == ((3,),)


@pytest.mark.slow
async def test_even_a_trusted_statement_leaves_nothing_behind(graph: CypherTool) -> None:
    if graph.worker.engine == "bolt":
        # ArcadeDB ignores READ access: the rollback undoes it.
        await graph.fetch("CREATE (:Person {name: 'Eve'})", trusted=True)
    else:
        with pytest.raises(ToolError):
            await graph.fetch("CREATE (:Person {name: 'Eve'})", trusted=True)
    assert (await graph.fetch("MATCH (n) RETURN count(n) AS n")).rows == ((3,),)


@pytest.mark.slow
async def test_a_query_without_end_is_stopped_and_the_next_one_works(graph: CypherTool) -> None:
    with pytest.raises(ToolError):
        await graph.call("UNWIND range(1, 1000000) AS x UNWIND range(1, 10000000) AS y RETURN count(*)")
    assert (await graph.call("RETURN 1 AS x")).records[0].fields == {"x": 1}


async def test_a_wrong_password_is_a_setup_error_without_the_password(server: str) -> None:
    wrong = server.replace("root:", "root:secret-")
    with pytest.raises(SetupError) as error:
        await CypherTool.open(wrong)
    assert "secret-" not in str(error.value)
