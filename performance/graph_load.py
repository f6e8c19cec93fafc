"""How long 1,000 nodes and 2,000 relationships take into a new kglite file: the bar is a second.

python performance/graph_load.py

A second. Needs decisor[graph].
"""

from __future__ import annotations

import time
from tempfile import TemporaryDirectory

from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges
from head import words


def main() -> None:
    nodes = [GraphNode("A", {"name": f"n{number}", "x": number / 7}) for number in range(1000)]
    edges = [GraphEdge("T", number % 1000, number * 7 % 1000, {"w": number}) for number in range(2000)]
    seconds = []
    for _ in range(5):
        with TemporaryDirectory() as folder:
            began = time.perf_counter()
            load_nodes_and_edges(f"kglite:///{folder}/g.kgl", nodes, edges)
            seconds.append(time.perf_counter() - began)
    print(f"best of 5: {min(seconds):.2f} s, slowest {max(seconds):.2f} s")


if __name__ == "__main__":
    words(__doc__)
    main()
