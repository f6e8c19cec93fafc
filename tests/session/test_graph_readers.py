"""What an LM is sent where some nodes and properties of a graph are not for who asks: captured at the endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import decisor
from databases.graph_reader_world import (
    ATTACKS,
    FORBIDDEN,
    GRAPHS,
    MASK,
    OWN,
    ROWS,
    emails,
    graph_world,
    secrets,
)
from decisor.errors import SetupError, ToolError
from servers.capturing_lm import endpoint

FEWEST, AT_ONCE = 60, 30
TEXT = {"calling": "text"}


@pytest.fixture(scope="module", params=GRAPHS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with graph_world(request.param, tmp_path_factory.mktemp("graph")) as url:
        yield url


def leaks(text: str) -> list[str]:
    numbers = set(re.findall(r"(?<![\w.])\d+(?![\w.]*\d)", text))
    return [one for one in [*secrets(), *map(str, FORBIDDEN)] if (one in numbers if one.isdigit() else one in text)]


@pytest.mark.slow
async def test_nothing_of_a_graph_that_is_not_the_readers_reaches_an_lm(place: str, tmp_path: Path) -> None:
    assert len(ATTACKS) >= FEWEST
    actions = 0
    async with decisor.open(graph=place, rows=ROWS, mask=MASK) as data:
        for start in range(0, len(ATTACKS), AT_ONCE):
            some = ATTACKS[start : start + AT_ONCE]
            async with endpoint([f"Thought: look\nAction: cypher\nAction input: {text}" for text in some]) as (
                lm,
                bodies,
            ):
                result = await data.ask("What is there?", lm=lm, technique="iter_rag", trace=tmp_path / "run.jsonl",
                                        settings={**TEXT, "max_steps": AT_ONCE + 5})  # fmt: skip
            own = "\n".join(some)
            assert [leak for body in bodies for leak in leaks(body) if leak not in own] == []
            result.html(tmp_path / "run.html")
            for written in (tmp_path / "run.jsonl", tmp_path / "run.html"):
                assert [
                    leak
                    for leak in leaks(written.read_text())
                    if not leak.isdigit() or len(leak) > 6
                    if leak not in own
                ] == []
            actions += result.usage.actions
    assert actions == len(ATTACKS)


HARMLESS = """MATCH (c:Customer) RETURN count(DISTINCT c.email) AS n, count(c.phone) AS m | n=6 m=6
MATCH (o:Order) RETURN count(o) AS n, sum(o.total) AS s | n=12 s=780
MATCH (o:Order) WHERE 1 / (o.total - 8800005) > -1 RETURN count(o) AS n | n=12
MATCH (c:Customer)-[:PLACED]->(o:Order) RETURN c.email AS e, sum(o.total) AS s ORDER BY s DESC, e LIMIT 1 | s=180
MATCH (c:Customer)-[:PLACED]->(o) WHERE o.total > 60 RETURN count(DISTINCT c.email) AS n | n=6
MATCH (a:Customer)-[:KNOWS]->(b:Customer) WHERE a.email <> b.email RETURN count(*) AS n | n=6
MATCH (c:Customer {name: 'C1'})-[:PLACED]->(o) RETURN sum(o.total) AS s | s=80
MATCH (c:Customer) WHERE NOT (c)-[:PLACED]->(:Order {product: 'P1'}) RETURN count(c) AS n | n=4
MATCH (c:Customer) WHERE EXISTS { (c)-[:PLACED]->(o:Order) WHERE o.product = 'P1' } RETURN count(c) AS n | n=2
MATCH (t:City {email: 'town1@open.example'})<-[:LIVES_IN]-(c) RETURN count(c) AS n | n=2
MATCH (o:Order) RETURN o.product AS p, count(*) AS n ORDER BY p LIMIT 1 | p=P0 n=4
MATCH p = (a:Order {id: 1})-[:NEXT*1..15]->(b:Order) RETURN max(length(p)) AS n | n=11
MATCH (c:Customer)-[:PLACED]->(o) WITH c, max(o.total) AS most WHERE most > 100 RETURN count(c) AS n | n=2
MATCH (c:Customer) OPTIONAL MATCH (c)-[:PLACED]->(o {product: 'P2'}) WITH c, count(o) AS k RETURN max(k) AS n | n=2
MATCH (t:City)<-[:LIVES_IN]-(c)-[:PLACED]->(o) RETURN t.name AS t, sum(o.total) AS s ORDER BY t LIMIT 1 | t=city0 s=220
MATCH (c:Customer) RETURN c.name AS n ORDER BY n LIMIT 1 | n=C1""".splitlines()


@pytest.mark.slow
async def test_questions_about_the_readers_own_part_of_a_graph_stay_right(place: str) -> None:
    async with decisor.open(graph=place, rows=ROWS, mask=MASK) as data:
        for line in HARMLESS:
            query, _, expected = line.partition(" | ")
            fields = (await data.tools[0].call(query)).records[0].fields
            for pair in expected.split():
                name, _, value = pair.partition("=")
                assert str(fields[name]) == value, (query, fields)
        for query in (
            "MATCH (c:Customer) RETURN [(c)-[:PLACED]->() | c.email]",
            "MATCH (c:City) RETURN COUNT { (c)--() }",
        ):
            (column,) = (await data.tools[0].call(query)).records[0].fields
            assert column == query.partition("RETURN ")[2]
        by_email = await data.tools[0].call("MATCH (c:Customer) RETURN c.email, count(*) AS n")
        assert list(by_email.records[0].fields) == ["c.email", "n"]
        token = by_email.records[0].fields["c.email"]
        again = await data.tools[0].call(f"MATCH (c:Customer) WHERE c.email = '{token}' RETURN c")
        assert [one.fields["c"]["email"] for one in again.records] == [token]  # type: ignore[index,call-overload]
        inside = await data.tools[0].call(f"MATCH (c:Customer {{email: '{token}', name: 'C1'}}) RETURN c.name AS n")
        assert len(inside.records) == (again.records[0].fields["c"]["name"] == "C1")  # type: ignore[index,call-overload]


@pytest.mark.slow
async def test_a_reader_of_a_graph_who_may_sees_values_and_each_query_is_noted(place: str, tmp_path: Path) -> None:
    query = "MATCH (c:Customer {name: 'C1'}) RETURN c.email AS email, c"
    replies = [f"Thought: look\nAction: cypher\nAction input: {query}", ""]
    audit = tmp_path / "audit.jsonl"
    async with (
        endpoint(replies) as (lm, bodies),
        decisor.open(graph=place, rows=ROWS, mask=MASK, reveal=True, audit=audit, who="ann") as data,
    ):
        token = (await data.tools[0].call(query)).records[0].fields["email"]
        replies[1] = f"Final answer: {token}\nBecause: it is the first [o1.r1]"
        result = await data.ask("Who is first?", lm=lm, technique="iter_rag", settings=TEXT)
    assert result.answer == emails()[0] == result.records[0].fields["email"]
    assert [leak for body in bodies for leak in leaks(body)] == []
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["by"] for line in lines if line["statement"] == query] == ["person", "model"]
    assert {line["reader"] for line in lines} == {"ann"} and any(line["by"] == "decisor" for line in lines)
    async with decisor.open(graph=place, rows=ROWS, mask=MASK) as data:
        with pytest.raises(ToolError, match="may not see masked values"):
            await data.tools[0].worker.reveal(token)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "mask", "complaint"),
    [
        ({"Ordr": "region = 'EU'"}, (), "The graph has no label ordr"),
        ({"KNOWS": "letter = 'x'"}, (), "The graph has no label knows"),
        ({"Order": "region = "}, (), "is not one of a node's own properties"),
        ({"Order": "(Order)-->()"}, (), "is not one of a node's own properties"),
        ({"Order": "EXISTS { (n)-->() }"}, (), "is not one of a node's own properties"),
        ({"Order": "true) OR (true"}, (), "is not one of a node's own properties"),
        ({"Order": "x.region = 'EU'"}, (), "is not one of a node's own properties"),
        ({}, ("Customer.mail",), "Customer has no property mail to mask"),
        ({}, ("email",), "Write TABLE.COLUMN"),
    ],
)
async def test_what_cannot_be_kept_to_is_said_at_once(
    place: str, rows: dict[str, str], mask: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(SetupError, match=re.escape(complaint)):
        async with decisor.open(graph=place, rows=rows, mask=mask):
            pass


@pytest.mark.slow
async def test_rows_of_a_graph_beside_a_database_hold_for_each(place: str, tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute("CREATE TABLE site (name TEXT, region TEXT)")
        database.executemany("INSERT INTO site VALUES (?, ?)", [("oak", "EU"), ("elm", "US")])
    database.close()
    rows = {"sql.site": "region = 'EU'", "cypher.Order": "region = 'EU'"}
    async with decisor.open(db=f"sqlite:///{tmp_path}/s.db", graph=place, rows=rows) as data:
        sql, cypher = data.databases
        assert (await sql.call("SELECT count(*) AS n FROM site")).records[0].fields == {"n": 1}
        assert (await cypher.call("MATCH (o:Order) RETURN count(o) AS n")).records[0].fields == {"n": OWN}
