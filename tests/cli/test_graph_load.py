"""``decisor graph load`` as a person types it, and what is then asked of the graph."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import polars
import pytest

from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import drop_labelled_graph
from local_llm import Decisor, LocalLLM
from servers.neo4j_server import neo4j_database

NODES = "id,label,name,pop\n1,City,Oslo,700000\n2,City,Bergen,280000\n3,Country,Norway,\n"
EDGES = "source,target,type,since\n1,3,LIES_IN,1814\n2,3,LIES_IN,1070\n2,9,LIES_IN,1\n"
SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, mentor_id INTEGER REFERENCES customer);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer(id), total REAL);
CREATE TABLE product (code TEXT PRIMARY KEY, name TEXT);
CREATE TABLE order_product (order_id INTEGER REFERENCES orders(id), product TEXT REFERENCES product(code),
  quantity INTEGER, PRIMARY KEY (order_id, product));
CREATE TABLE shelf (room TEXT, number INTEGER, PRIMARY KEY (room, number));
CREATE TABLE box (id INTEGER PRIMARY KEY, room TEXT, number INTEGER,
  FOREIGN KEY (room, number) REFERENCES shelf(room, number));
CREATE VIEW rich AS SELECT * FROM customer;
INSERT INTO customer VALUES (1, 'Ann', NULL), (2, 'Bo', 1);
INSERT INTO orders VALUES (10, 1, 5.5), (11, 2, 7), (12, 99, 1);
INSERT INTO product VALUES ('a', 'ale'), ('b', 'bun');
INSERT INTO order_product VALUES (10, 'a', 3), (11, 'b', 1), (11, 'a', 2);
INSERT INTO shelf VALUES ('x', 1), ('x', 2);
INSERT INTO box VALUES (1, 'x', 2), (2, 'x', NULL);
"""


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.executescript(SHOP)
    return tmp_path


async def rows(path: Path, query: str) -> tuple[tuple[object, ...], ...]:
    tool = await CypherTool.open(f"kglite:///{path}")
    try:
        return tuple((await tool.fetch(query)).rows)
    finally:
        await tool.close()


@pytest.mark.slow
async def test_nodes_and_edges_become_a_graph_and_an_edge_to_no_node_is_counted(towns: Path, decisor: Decisor) -> None:
    lines = decisor("graph", "load", "nodes.csv", "edges.csv", "--out", "g.kgl").stdout.splitlines()
    assert lines == [
        "g.kgl: 3 nodes (City 2, Country 1) and 2 relationships (LIES_IN 2)",
        "  nodes.csv: nodes; label by the column label; id by the column id",
        "  edges.csv: relationships source -> target; type by the column type",
        "Left out: edges.csv: 1 relationship to no node (such as id 9)",
    ]
    query = "MATCH (c:City)-[r:LIES_IN]->(n:Country) RETURN c.name, c.pop, r.since, n.name ORDER BY c.name"
    assert await rows(towns / "g.kgl", query) == (("Bergen", 280000, 1070, "Norway"), ("Oslo", 700000, 1814, "Norway"))


async def test_what_is_there_is_not_loaded_over(towns: Path, decisor: Decisor) -> None:
    (towns / "g.kgl").write_text("mine")
    failure = decisor("graph", "load", "nodes.csv", "edges.csv", "--out", "g.kgl", code=2)
    assert failure.stderr.strip().endswith("g.kgl already exists. Name another place, or remove it.")
    assert (towns / "g.kgl").read_text() == "mine"


@pytest.mark.slow
async def test_several_files_with_labels_and_types_by_their_names(tmp_path: Path, decisor: Decisor) -> None:
    (tmp_path / "city.csv").write_text("id,name\n1,Oslo\n2,Bergen\n")
    polars.DataFrame({"id": [1], "name": ["Norway"]}).write_parquet(tmp_path / "country.parquet")
    head = "source,source_label,target,target_label\n"
    (tmp_path / "lies_in.csv").write_text(f"{head}1,city,1,country\n2,city,1,country\n")
    (tmp_path / "road.csv").write_text(f"{head}1,city,2,city\n")
    words = ("graph", "load", "city.csv", "country.parquet", "lies_in.csv", "road.csv", "--out", "g.kgl", "--json")
    summary = json.loads(decisor(*words).stdout)
    assert summary["kinds"] == {"(:city)-[:lies_in]->(:country)": 2, "(:city)-[:road]->(:city)": 1}
    assert summary["left_out"] == []
    query = "MATCH (c)-[:road]->(d)-[:lies_in]->(n) RETURN c.name, d.name, n.name"
    assert await rows(tmp_path / "g.kgl", query) == (("Oslo", "Bergen", "Norway"),)


@pytest.mark.slow
def test_an_id_of_two_labels_must_be_told_apart(tmp_path: Path, decisor: Decisor) -> None:
    (tmp_path / "city.csv").write_text("id,name\n1,Oslo\n")
    (tmp_path / "country.csv").write_text("id,name\n1,Norway\n")
    (tmp_path / "lies_in.csv").write_text("source,target\n1,1\n")
    failure = decisor("graph", "load", "city.csv", "country.csv", "lies_in.csv", "--out", "g.kgl", code=2)
    assert "the id 1 is of a city and of a country" in failure.stderr and "source_label" in failure.stderr
    assert not (tmp_path / "g.kgl").exists()


@pytest.mark.slow
def test_an_id_that_two_nodes_have_is_an_error(towns: Path, decisor: Decisor) -> None:
    (towns / "nodes.csv").write_text(NODES + "2,City,Stavanger,1\n")
    failure = decisor("graph", "load", "nodes.csv", "edges.csv", "--out", "g.kgl", code=2)
    assert "nodes.csv: the id '2' (column id) is of two nodes with one label (1 such)" in failure.stderr


@pytest.mark.slow
async def test_headers_of_neo4j_and_columns_that_a_person_names(tmp_path: Path, decisor: Decisor) -> None:
    (tmp_path / "people.csv").write_text("personId:ID,name:string,:LABEL\np1,Ann,Person;Boss\np2,Bo,Person\np3,Cy,\n")
    (tmp_path / "knows.csv").write_text(":START_ID,:END_ID,:TYPE\np1,p2,KNOWS\np2,p3,KNOWS\n")
    decisor("graph", "load", "people.csv", "knows.csv", "--out", "g.kgl")
    assert await rows(tmp_path / "g.kgl", "MATCH (p:Person:Boss) RETURN p.personId, p.name") == (("p1", "Ann"),)
    assert await rows(tmp_path / "g.kgl", "MATCH (:Person)-[:KNOWS]->(p:people) RETURN p.name") == (("Cy",),)
    (tmp_path / "town.csv").write_text("code,label\na,Oslo\nb,Bergen\nc,Hamar\n")
    (tmp_path / "road.csv").write_text("start,end,type\na,b,paved\nb,c,gravel\n")
    words = ("--id", "code", "--source", "start", "--target", "end", "--type", "none", "--out", "h.kgl")
    decisor("graph", "load", "town.csv", "road.csv", *words)
    query = "MATCH (a:town)-[r:road]->(b:town) RETURN a.label, r.type, b.label ORDER BY a.code"
    assert await rows(tmp_path / "h.kgl", query) == (("Oslo", "paved", "Bergen"), ("Bergen", "gravel", "Hamar"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nodes.csv", "--out", "g.txt"), "name a file that ends in .kgl"),
        (("--out", "g.kgl"), "Name the files with nodes and edges, or a database"),
        (("nowhere.csv", "--out", "g.kgl"), "nowhere.csv"),
        (("edges.csv", "--out", "g.kgl"), "No file holds nodes"),
        (("nodes.csv", "--id", "code", "--out", "g.kgl"), "No file has a column code, which --id names."),
        (("nodes.csv", "--out", "sqlite:///g.db"), "names no graph"),
        (("nodes.csv", "--out", "bolt://127.0.0.1:1"), "127.0.0.1:1 cannot be used"),
        (("--from", "sqlite:///none.db", "--out", "g.kgl"), "none.db. Check the path"),
    ],
)
def test_what_cannot_be_loaded_is_one_clear_line(
    words: tuple[str, ...], complaint: str, towns: Path, decisor: Decisor
) -> None:
    failure = decisor("graph", "load", *words, code=2)
    assert complaint in failure.stderr and len(failure.stderr.strip().splitlines()) == 1, failure.stderr
    assert not (towns / "g.kgl").exists()


async def test_a_database_becomes_a_graph_by_its_foreign_keys(shop: Path, decisor: Decisor) -> None:
    summary = json.loads(decisor("graph", "load", "--from", "sqlite:///shop.db", "--out", "shop.kgl", "--json").stdout)
    assert summary["labels"] == {"box": 2, "customer": 2, "orders": 3, "product": 2, "shelf": 2}
    assert summary["kinds"] == {
        "(:box)-[:SHELF]->(:shelf)": 1,
        "(:customer)-[:MENTOR]->(:customer)": 1,
        "(:orders)-[:ORDER_PRODUCT]->(:product)": 3,
        "(:orders)-[:CUSTOMER]->(:customer)": 2,
    }
    assert "orders, customer_id: (:orders)-[:CUSTOMER]->(:customer), 2" in summary["notes"]
    [lost] = summary["left_out"]
    assert lost.startswith("orders: 1 relationship to no node")
    query = (
        "MATCH (c:customer)<-[:CUSTOMER]-(:orders)-[r:ORDER_PRODUCT]->(p:product) "
        "RETURN c.name, p.name, r.quantity ORDER BY c.name, p.name"
    )
    assert await rows(shop / "shop.kgl", query) == (("Ann", "ale", 3), ("Bo", "ale", 2), ("Bo", "bun", 1))
    assert await rows(shop / "shop.kgl", "MATCH (b:box)-[:SHELF]->(s) RETURN b.id, s.number") == ((1, 2),)


async def test_without_foreign_keys_those_that_values_suggest_are_taken_and_that_is_said(
    tmp_path: Path, decisor: Decisor
) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        database.executescript(
            "CREATE TABLE site (site_id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE visit (site_id INTEGER, day TEXT);"
            "INSERT INTO site VALUES (7, 'oak'), (8, 'elm'); INSERT INTO visit VALUES (7, 'Monday'), (8, 'Friday');"
        )
    lines = decisor("graph", "load", "--from", "s.db", "--out", "s.kgl").stdout
    assert "guessed from the values of columns" in lines
    query = "MATCH (v:visit)-[:SITE]->(s:site) RETURN v.site_id, s.name ORDER BY v.day"
    assert await rows(tmp_path / "s.kgl", query) == ((8, "elm"), (7, "oak"))


@pytest.mark.slow
def test_a_question_is_decided_from_a_graph_that_was_loaded(shop: Path, decisor: Decisor, local_llm: LocalLLM) -> None:
    decisor("graph", "load", "--from", "sqlite:///shop.db", "--out", "shop.kgl")
    query = (
        "MATCH (c:customer)<-[:CUSTOMER]-(o:orders)-[r:ORDER_PRODUCT]->() "
        "RETURN c.name AS customer, sum(r.quantity) AS pieces ORDER BY customer"
    )
    local_llm.replies = [
        f"Plan: [Step 1: count pieces]\nThought: Start.\nAction: cypher\nAction input: {query}",
        "Final answer: Ann\nBecause: 3 pieces [o1.r1], and Bo has 3 [o1.r2] in two lines",
    ]
    words = ("ask", "Who buys most?", "--graph", "shop.kgl", "--llm", local_llm.name, "-o", "calling=text", "--json")
    result = json.loads(decisor(*words, "--no-history").stdout)
    assert result["answer"] == "Ann"
    assert [record["fields"] for record in result["evidence"]["records"]] == [
        {"customer": "Ann", "pieces": 3},
        {"customer": "Bo", "pieces": 3},
    ]


@pytest.mark.slow
async def test_a_graph_server_gets_a_graph_under_its_label_once(towns: Path, decisor: Decisor) -> None:
    with neo4j_database() as whole:
        url = f"{whole.partition('?')[0]}?label=towns_of_test"
        try:
            lines = decisor("graph", "load", "nodes.csv", "edges.csv", "--out", url).stdout
            assert "3 nodes (City 2, Country 1) and 2 relationships" in lines and "password" not in lines
            failure = decisor("graph", "load", "nodes.csv", "edges.csv", "--out", url, code=2)
            assert "The graph towns_of_test already exists." in failure.stderr
            failure = decisor("graph", "load", "nodes.csv", "--out", whole.partition("?")[0], code=2)
            assert "nodes already: give the graph a label of its own" in failure.stderr
        finally:
            drop_labelled_graph(url)
