"""Which service should we fix first? A graph of dependencies, asked in Cypher.

python examples/service_to_fix.py [FOLDER]

A service that fails takes down what depends on it, directly or over others. The one with the most failures is not the
one that hurts most. The LLM is scripted, so that this needs no key. Needs the extra `graph`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import decisor
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges

FAILURES = {"auth": 4, "billing": 5, "catalog": 3, "mail": 9, "search": 2, "shop": 1, "store": 3, "web": 2}
"""Failures in a quarter."""
NEEDS = (
    ("web", "shop"), ("web", "search"), ("shop", "auth"), ("shop", "catalog"), ("shop", "billing"),
    ("billing", "auth"), ("billing", "store"), ("catalog", "store"), ("search", "catalog"), ("mail", "auth"),
)  # fmt: skip
"""Who depends on whom."""
QUERY = (
    "MATCH (s:Service) OPTIONAL MATCH (other:Service)-[:NEEDS*1..6]->(s) "
    "WITH s, count(DISTINCT other) AS hit "
    "RETURN s.name AS service, s.failures AS failures, hit, s.failures * (hit + 1) AS outages "
    "ORDER BY outages DESC, service"
)
REPLIES = (
    "Plan: [Step 1: count what each service takes down, Step 2: weigh it by its failures]\n"
    f"Thought: One query does both.\nAction: cypher\nAction input: {QUERY}",
    "Re-plan: N\nThought: The first one.\nFinal answer: auth\nBecause: auth fails 4 times and takes 4 others "
    "down: 20 outages [o1.r1]. mail fails 9 times, and nothing depends on it: 9 outages [o1.r5].",
)


def write_data(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    names = list(FAILURES)
    nodes = [GraphNode("Service", {"name": name, "failures": FAILURES[name]}) for name in names]
    edges = [GraphEdge("NEEDS", names.index(one), names.index(other), {}) for one, other in NEEDS]
    url = f"kglite:///{path.resolve()}"
    load_nodes_and_edges(url, nodes, edges)
    return url


def decide(folder: Path, llm: object = None) -> decisor.Result:
    url = write_data(folder / "services.kgl")
    return decisor.ask(
        "Which service should we fix first?",
        rules="An outage counts once for the service and once for each that depends on it, directly or over others.",
        graph=url,
        llm=llm or decisor.ScriptedLLM(REPLIES),
        technique="plan_rag",
        settings={} if llm else {"calling": "text"},
    )


if __name__ == "__main__":
    print(decide(Path(sys.argv[1] if len(sys.argv) > 1 else "service_to_fix")))
