"""The types of Neo4j that come as text: what is described finds the rows when a query repeats it."""

import re

from decisor.graphs.cypher import CypherTool
from servers.neo4j_server import ask, neo4j_database

VALUES = {
    "born": "date('1990-01-02')",
    "seen": "datetime('2024-03-05T14:00:00+01:00[Europe/Berlin]')",
    "local": "localdatetime('2024-03-05T14:00:00')",
    "at": "localtime('09:30:00')",
    "zoned": "time('09:30:00+01:00')",
    "lasts": "duration('P1Y2M3DT4S')",
    "place": "point({x: 1.5, y: 2.0})",
    "home": "point({longitude: 12.5, latitude: 55.5})",
}
TYPES = ["date", "datetime", "localdatetime", "localtime", "time", "duration", "point", "point"]


async def test_a_query_written_from_the_description_finds_the_row() -> None:
    with neo4j_database() as url:
        properties = ", ".join(f"{name}: {value}" for name, value in VALUES.items())
        ask(f"CREATE (:Event {{name: 'a', days: [date('2024-01-01')], {properties}}})")
        ask("CREATE (:Stop {mixed: date('2024-01-01'), stops: [point({x: 1, y: 2})]}), (:Stop {mixed: 'soon'})")
        tool = await CypherTool.open(url)
        described = tool.describe()
        for name, kind in zip(VALUES, TYPES, strict=True):
            line = re.search(rf"^  {name}: (\w+) \(samples: (.*)\)$", described, re.M)
            assert line is not None and line[1] == kind, described
            found = await tool.call(f"MATCH (e:Event) WHERE e.{name} = {line[2]} RETURN count(e) AS n")
            assert found.records[0].fields == {"n": 1}, line[0]
        assert 'days: list of date (samples: [date("2024-01-01")])' in described
        assert "stops: list of point" in described and "mixed: date or string" in described
        for query in ('e.days = [date("2024-01-01")]', 'e.mixed = date("2024-01-01")', 'e.mixed = "soon"'):
            found = await tool.call(f"MATCH (e) WHERE {query} RETURN count(e) AS n")
            assert found.records[0].fields == {"n": 1}, query
        (node,) = (await tool.call("MATCH (e:Event) RETURN e")).records[0].fields.values()
        (alone,) = (await tool.call("MATCH (e:Event) RETURN e.lasts")).records[0].fields.values()
        await tool.close()
    assert isinstance(node, dict)
    assert node["lasts"] == alone == "P1Y2M3DT4S"
    assert node["place"] == "point({srid: 7203, x: 1.5, y: 2.0})"
