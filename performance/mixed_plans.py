"""Plans over passages, a property graph and a database, made here, with the three sources for real: an index on disk,
kglite and SQLite. Each question joins one to three teams: where a team is, in which town that lies, what it costs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from decisor.databases.sql import SqlTool
from decisor.documents.index import build_index, open_index
from decisor.documents.passage import Passage
from decisor.documents.tool import PassagesTool
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges
from decisor.parsing.plan import PlanGraph, parse_plan_graph
from decisor.types import Tool
from gold_plans import GoldPlan

SITES = ("oak", "elm", "ash", "fir", "yew", "box")
QUERIES = {
    "cypher": "MATCH (s:Site {name: 'oak'})-[:LIES_IN]->(t:Town) RETURN t.name AS town, t.people AS people",
    "sql": "SELECT rent FROM site WHERE name = 'oak'",
}
"""What the model of the benchmark writes; what it asks for does not matter to the time."""


@dataclass(frozen=True)
class MixedPlan(GoldPlan):
    """``reply`` as JSON, with the source of each node."""

    def graph(self) -> PlanGraph:
        return parse_plan_graph(self.reply, 30, ("passages", "cypher", "sql", "none"), mend=True)


def mixed(data: Path) -> list[GoldPlan]:
    """``data`` is not read."""
    return [plan(number, 1 + number // 10) for number in range(30)]


def plan(number: int, teams: int) -> MixedPlan:
    nodes: list[dict[str, object]] = []

    def add(id: str, ask: str, source: str, *needs: str) -> None:
        nodes.append({"id": id, "ask": ask, "needs": needs, "source": source})

    for team in range(1, teams + 1):
        site = SITES[(number + team) % len(SITES)]
        add(f"1.{team}", f"To which site did the team {team} of {site} move?", "passages")
        add(f"2.{2 * team}", f"In which town does <A1.{team}> lie?", "cypher", f"1.{team}")
        add(f"2.{2 * team + 1}", f"What is the rent of <A1.{team}>?", "sql", f"1.{team}")
        add(f"3.{team}", f"How many people live in <A2.{2 * team}>?", "cypher", f"2.{2 * team}")
    last = [*(f"3.{team}" for team in range(1, teams + 1)), *(f"2.{2 * team + 1}" for team in range(1, teams + 1))]
    add("4.1", f"Which is best: {', '.join(f'<A{id}>' for id in last)}?", "none", *last)
    return MixedPlan(
        f"mixed {number}", f"Which team of question {number} pays least?", "x", json.dumps({"nodes": nodes})
    )


@asynccontextmanager
async def sources() -> AsyncIterator[list[Tool]]:
    """The three of them, open."""
    with TemporaryDirectory() as folder:
        passages = [Passage(site, f"The team of {site} moved to the site {site} in May.", site) for site in SITES]
        build_index(passages, f"{folder}/notes.index")
        towns = [GraphNode("Town", {"name": f"{site}ville", "people": 1_000 * at}) for at, site in enumerate(SITES, 1)]
        nodes = [*(GraphNode("Site", {"name": site}) for site in SITES), *towns]
        load_nodes_and_edges(
            f"kglite:///{folder}/towns.kgl",
            nodes,
            [GraphEdge("LIES_IN", at, at + len(SITES)) for at in range(len(SITES))],
        )
        with closing(sqlite3.connect(f"{folder}/sites.db")) as db, db:
            db.execute("CREATE TABLE site (name TEXT, rent REAL)")
            db.executemany("INSERT INTO site VALUES (?, ?)", [(site, 100.5 * at) for at, site in enumerate(SITES, 1)])
        tools: list[Tool] = [
            await SqlTool.open(f"sqlite:///{folder}/sites.db"),
            await CypherTool.open(f"kglite:///{folder}/towns.kgl"),
            PassagesTool(open_index(f"{folder}/notes.index")),
        ]
        try:
            yield tools
        finally:
            for tool in tools:
                await tool.close()
