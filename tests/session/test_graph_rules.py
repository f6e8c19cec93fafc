"""Rows and masks are not applied to graphs, and so a graph is never opened with one."""

from __future__ import annotations

from pathlib import Path

import pytest

import decisor
from decisor.errors import SetupError
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import GraphNode, load_nodes_and_edges
from decisor.sandbox.engine import Caps, build_policy

REFUSED = (
    "Row and column rules are not applied to graphs. Use the roles of the graph's server, or "
    """(--deny-tables LABEL|deny_tables="LABEL")"""
)


@pytest.fixture
def graph(tmp_path: Path) -> str:
    url = f"kglite:///{tmp_path}/people.kgl"
    load_nodes_and_edges(
        url, [GraphNode("Person", {"name": "Ann", "region": "EU"}), GraphNode("Secret", {"code": "x"})], []
    )
    return url


@pytest.mark.parametrize(("rows", "mask"), [({"Person": "region = 'EU'"}, ()), ({}, "Person.name")])
async def test_a_graph_with_rows_or_masks_is_refused(graph: str, rows: dict[str, str], mask: str) -> None:
    with pytest.raises(SetupError, match=REFUSED):
        async with decisor.open(graph=graph, rows=rows, mask=mask):
            pass
    with pytest.raises(SetupError, match=REFUSED):
        await CypherTool.open(graph, caps=Caps(policy=build_policy(rows, [mask] if mask else [])))


async def test_a_database_beside_the_graph_keeps_its_rows(graph: str, tmp_path: Path) -> None:
    (tmp_path / "site.csv").write_text("name,region\noak,EU\nelm,US\n")
    table = str(tmp_path / "site.csv")
    async with decisor.open(db=table, graph=graph, rows={"sql.site": "region = 'EU'"}) as data:
        sql, cypher = data.databases
        assert (await sql.call("SELECT count(*) AS n FROM site")).records[0].fields == {"n": 1}
        assert (await cypher.call("MATCH (p:Person) RETURN count(p) AS n")).records[0].fields == {"n": 1}
    with pytest.raises(SetupError, match=REFUSED):
        async with decisor.open(db=table, graph=graph, rows={"site": "region = 'EU'"}):
            pass


async def test_labels_are_denied_as_before(graph: str) -> None:
    async with decisor.open(graph=graph, deny_tables="Secret") as data:
        assert "Secret" not in data.databases[0].describe()
