"""A graph under way: nodes and relationships from rows, with what is to be said of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from decisor.errors import SetupError
from decisor.tools.databases.graph_write import Edge, Node, labels_of
from decisor.tools.databases.sql import SqlTool
from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import Value

MOST_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Rows:
    """A table, whole. ``origin``: where it is from, for people."""

    name: str
    origin: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(eq=False)
class Draft:
    """``notes``: how the rows were read. ``lost``: what is not in the graph, and why."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def labels(self) -> Counter[str]:
        """How many nodes have each as the main one."""
        return Counter(labels_of(node)[0] for node in self.nodes)

    def kinds(self) -> Counter[str]:
        """How many relationships there are of each kind, as ``(:City)-[:LIES_IN]->(:Country)``."""
        ends = [labels_of(node)[0] for node in self.nodes]
        return Counter(f"(:{ends[edge.source]})-[:{edge.type}]->(:{ends[edge.target]})" for edge in self.edges)


async def rows_of(tool: SqlTool, table: TableInfo, origin: str) -> Rows:
    """Raises SetupError where there are more than ``MOST_ROWS``, ToolError where they cannot be read."""
    rows = await tool.fetch(f"SELECT * FROM {tool.quoted(table.name)}", MOST_ROWS, trusted=True)
    if rows.truncated:
        raise SetupError(f"{table.name} is too large to be loaded: at most {MOST_ROWS:,} rows and 1 GB are read.")
    return Rows(table.name, origin, tuple(rows.columns), tuple(rows.rows))


def key_of(value: Value) -> str:
    """An id as text, alike for 7, 7.0 and '7'.

    >>> key_of(7), key_of(7.0), key_of(" a7 ")
    ('7', '7', 'a7')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
