"""How much of Cypher each graph engine answers right, through the whole sandbox.

    python performance/cypher_conformance.py SUITE.py [BOLT_URL]

A minute. Needs decisor[graph].

SUITE.py is a Python file with ``Q``: (id, category, query, expected rows). Writing rows must be refused. The engines
kglite is measured; a Bolt URL of an empty scratch database may be given as a second argument.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from decisor.errors import ToolError
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges
from head import words

PEOPLE = [
    GraphNode("Person", {"name": "Ann", "age": 30, "city": "Oslo", "score": 1.5}),
    GraphNode("Person", {"name": "Bob", "age": 40, "city": "Rome", "score": 2}),
    GraphNode("Person", {"name": "Cid", "age": 25, "city": "Oslo"}),
    GraphNode("Person", {"name": "Dee", "age": 35, "nick": "D"}),
    GraphNode("City", {"name": "Oslo", "pop": 700000}),
    GraphNode("City", {"name": "Rome", "pop": 2800000}),
]
LINKS = [
    GraphEdge("KNOWS", 0, 1, {"since": 2010, "w": 0.5}),
    GraphEdge("KNOWS", 1, 2, {"since": 2015, "w": 1}),
    GraphEdge("KNOWS", 2, 3, {"since": 2020, "w": 2.5}),
    GraphEdge("KNOWS", 3, 0, {"since": 2021, "w": 4}),
    *(GraphEdge("LIVES_IN", person, city) for person, city in ((0, 4), (1, 5), (2, 4))),
]
PARAMETERS: dict[str, Any] = {"a": 30, "l": ["Ann", "Bob", "Cid"]}


def queries(path: str) -> list[tuple[str, str, str, Any]]:
    spec = importlib.util.spec_from_file_location("suite", path)
    assert spec is not None and spec.loader is not None
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    return list(suite.Q)


def same(got: Any, wanted: Any) -> bool:
    match wanted:
        case {"anyorder": values}:
            return isinstance(got, list) and sorted(got) == sorted(values)
        case bool() | None | str():
            return got is wanted or got == wanted
        case int() | float():
            number = isinstance(got, int | float) and not isinstance(got, bool)
            return number and math.isclose(got, wanted, rel_tol=1e-9)
        case list() | tuple():
            return len(got) == len(wanted) and all(map(same, got, wanted))
        case dict():
            return isinstance(got, dict) and got.keys() == wanted.keys() and all(same(got[k], wanted[k]) for k in got)
        case _:
            return bool(got == wanted)


def right(rows: Sequence[Sequence[Any]], wanted: Sequence[Any], query: str) -> bool:
    match wanted:
        case [{"custom": "labels_type"}]:
            labels, kind, keys = rows[0]
            return labels == ["Person"] and kind == "KNOWS" and sorted(keys) == ["since", "w"]
        case [{"custom": "node"}]:
            return same(rows[0][0], {"_labels": ["City"], "name": "Oslo", "pop": 700000})
        case [{"custom": "labels"}]:
            return sorted(row[0] for row in rows) == ["City", "Person"]
        case [{"custom": _}]:
            return True
        case [{"anyrows": wanted_rows}]:
            return sorted(map(tuple, rows)) == sorted(wanted_rows)
        case [{"anyorder": _}]:
            return len(rows) == 1 and same(rows[0][0], wanted[0])
    if "ORDER BY" in query:
        return same(rows, wanted)
    return same(sorted(rows, key=repr), sorted(wanted, key=repr)) or same(rows, wanted)


async def measure(url: str, suite: Sequence[tuple[str, str, str, Any]]) -> None:
    started = time.perf_counter()
    load_nodes_and_edges(url, PEOPLE, LINKS)
    tool = await CypherTool.open(url)
    found: Counter[str] = Counter()
    print(f"## {url.partition(':')[0]}  (loaded and open after {time.perf_counter() - started:.2f} s)")
    for name, category, query, wanted in suite:
        given = PARAMETERS if query.startswith("PARAM:") else {}
        query = query.removeprefix("PARAM:")
        try:
            table = await tool.worker.run(query, given)
            if category == "write":
                verdict = "RAN"
            else:
                verdict = "right" if right(table.rows, wanted, query) else f"wrong: {table.rows}"
        except ToolError as error:
            verdict = "refused" if category == "write" and error.refused else f"error: {error}"
        found[verdict.partition(":")[0]] += 1
        if verdict not in ("right", "refused"):
            print(f"  {name}: {query}\n    {verdict[:300]}")
    print(f"  {dict(found)}")
    await tool.close()


async def main() -> None:
    place, *urls = words(__doc__)
    suite = queries(place)
    with tempfile.TemporaryDirectory() as folder:
        for url in [f"kglite:///{folder}/suite.kgl", *urls]:
            await measure(url, suite)


if __name__ == "__main__":
    asyncio.run(main())
