"""What the database tools say of a query that brought nothing, of joins and keys, and of what takes too long."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges
from decisor.sandbox.engine import Caps

FLEET = """
CREATE TABLE unit (name TEXT PRIMARY KEY, cost REAL);
CREATE TABLE port (port_id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE build (unit TEXT, port_id INTEGER, days INTEGER, PRIMARY KEY (unit, port_id));
CREATE TABLE load (unit TEXT, port INTEGER, tons REAL, FOREIGN KEY (unit, port) REFERENCES build (unit, port_id));
CREATE TABLE lane (a TEXT, b TEXT, km REAL);
CREATE TABLE secret (name TEXT PRIMARY KEY);
INSERT INTO unit VALUES ('manowars', 12.3456789), ('galleys', 3), ('Frigates', 7), ('carracks', 9);
INSERT INTO port VALUES (1, 'Sevilla'), (2, 'Genua'), (3, 'Lübeck');
INSERT INTO build VALUES ('manowars', 1, 90), ('galleys', 2, 30), ('Frigates', 2, 40);
INSERT INTO load VALUES ('manowars', 1, 5);
INSERT INTO lane VALUES ('manowars', 'galleys', 1), ('galleys', 'Frigates', 2), ('carracks', 'manowars', 3);
INSERT INTO secret VALUES ('man-o-war');
"""


@pytest_asyncio.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[SqlTool]:
    with closing(sqlite3.connect(tmp_path / "fleet.db")) as db, db:
        db.executescript(FLEET)
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/fleet.db", deny_tables=["secret"])
    yield tool
    await tool.close()


@pytest_asyncio.fixture
async def roads(tmp_path: Path) -> AsyncIterator[CypherTool]:
    towns = [
        GraphNode("Town", {"name": name, "people": at * 1000}) for at, name in enumerate(("Ghent", "Bruges", "Ypres"))
    ]
    lord = GraphNode("Lord", {"name": "Guy", "gold": 12.5})
    edges = [GraphEdge("ROAD", 0, 1, {"km": 45}), GraphEdge("ROAD", 2, 1, {"km": 60}), GraphEdge("RULES", 3, 0)]
    load_nodes_and_edges(f"kglite:///{tmp_path}/roads.kgl", [*towns, lord], edges)
    tool = await CypherTool.open(f"kglite:///{tmp_path}/roads.kgl")
    yield tool
    await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("SELECT * FROM unit WHERE name = 'man-o-war'", 'No rows. unit.name has no "man-o-war"; nearest: "manowars".'),
        (
            "SELECT u.cost, b.days FROM unit u JOIN build b ON b.unit = u.name WHERE u.name IN ('galleys', 'galeys')",
            'unit.name has no "galeys"; nearest: "galleys".',
        ),
        ("SELECT cost FROM unit WHERE name = 'frigates'", 'No rows. unit.name has no "frigates"; nearest: "Frigates".'),
        ("SELECT cost FROM unit WHERE lower(name) = 'frigates' AND cost > 100", "No rows."),
        (
            "SELECT * FROM port WHERE name LIKE '%ubec%'",
            'No rows. port.name has nothing with "ubec"; it has: "Sevilla", "Genua", "Lübeck".',
        ),
        (
            "SELECT * FROM unit WHERE cost = 12.34568",
            "No rows. unit.cost has no 12.34568; nearest: 12.3456789, 9.0, 7.0.",
        ),
        (
            "SELECT days FROM build WHERE unit = 'galleys' AND port_id = 1",
            "No rows. Each value in the query is stored, but no row meets all of its conditions together.",
        ),
        ("SELECT sum(cost) FROM unit WHERE name = 'galley'", 'unit.name has no "galley"; nearest: "galleys".'),
    ],
)
async def test_a_query_without_rows_is_answered_with_what_is_stored(fleet: SqlTool, query: str, note: str) -> None:
    assert (await fleet.call(query)).note == note


async def test_what_is_denied_is_not_looked_up(fleet: SqlTool) -> None:
    with pytest.raises(ToolError) as refusal:
        await fleet.call("SELECT * FROM secret WHERE name = 'man'")
    assert refusal.value.refused and "man-o-war" not in str(refusal.value)
    seen = await fleet.call("SELECT * FROM unit WHERE name = 'man-o'")
    assert seen.note == 'No rows. unit.name has no "man-o"; nearest: "manowars".'
    assert "secret" not in fleet.describe()


async def test_keys_of_several_columns_stand_on_one_line_and_joins_are_guessed(fleet: SqlTool) -> None:
    text = fleet.describe()
    assert "  primary key (unit, port_id)\n" in text and text.count("primary key") == 3
    assert "  (unit, port) references build(unit, port_id)" in text and text.count("references") == 1
    assert "  unit text, not null, joins unit(name)" in text or "  unit text, joins unit(name)" in text
    assert "port_id int, joins port(port_id)" in text
    assert "a text, joins unit(name)" in text and "b text, joins unit(name)" in text
    assert "  days int\n" in text and "  tons float" in text


async def test_numbers_that_happen_to_be_keys_elsewhere_are_no_join(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.executescript("CREATE TABLE item (id INTEGER PRIMARY KEY); CREATE TABLE sale (day INTEGER, pieces INTEGER);")
        db.executemany("INSERT INTO item VALUES (?)", [(at,) for at in range(50)])
        db.executemany("INSERT INTO sale VALUES (?, ?)", [(at, at) for at in range(20)])
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/shop.db")
    assert "joins" not in tool.describe()
    await tool.close()


async def test_a_query_that_takes_too_long_is_answered_with_advice(fleet: SqlTool, tmp_path: Path) -> None:
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/fleet.db", caps=Caps(seconds=0.5))
    with pytest.raises(ToolError, match="filter before joining"):
        await tool.call("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n")
    await tool.close()


async def test_a_relationship_within_a_label_has_a_real_edge_as_example(roads: CypherTool) -> None:
    assert '(:Town)-[:ROAD]->(:Town) 2, e.g. from name "Ghent" to name "Bruges"' in roads.describe()
    assert "(:Lord)-[:RULES]->(:Town) 1\n" in roads.describe()


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("MATCH (t:Town {name: 'Gent'}) RETURN t.people", 'No rows. (:Town).name has no "Gent"; nearest: "Ghent".'),
        (
            "MATCH (t:Town) WHERE t.name CONTAINS 'aris' RETURN t.people",
            'No rows. (:Town).name has nothing with "aris"; it has: "Ghent", "Bruges", "Ypres".',
        ),
        ("MATCH ()-[r:ROAD]->() WHERE r.km = 50 RETURN r.km", "No rows. [:ROAD].km has no 50; nearest: 45, 60."),
        (
            "MATCH (t:Town {name: 'Ghent'})-[:RULES]->(l:Lord {name: 'Gui'}) RETURN l.gold",
            'No rows. (:Lord).name has no "Gui"; it has: "Guy". There is no (:Town)-[:RULES]->(:Lord); '
            "there is (:Lord)-[:RULES]->(:Town).",
        ),
        ("MATCH (t:Town) RETURN t.height LIMIT 1", "There is no property height. (:Town) has name, people."),
        ("MATCH (t:Town) RETURN date('2024-01-03').year AS y, {km: 1}.km AS k LIMIT 1", ""),
    ],
)
async def test_a_graph_says_what_it_holds_instead(roads: CypherTool, query: str, note: str) -> None:
    assert (await roads.call(query)).note == note
