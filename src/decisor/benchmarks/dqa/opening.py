"""Databases and graphs by their URLs."""

from __future__ import annotations

from decisor.types import Tool


async def open_database(url: str) -> Tool:
    """The tool for a URL: a graph for kglite, bolt and neo4j, else SQL.

    Raises:
        SetupError: it cannot be opened.
    """
    if form_of(url) == "graph":
        from importlib import import_module

        graph: Tool = await import_module("decisor.tools.databases.cypher").CypherTool.open(url)
        return graph
    from decisor.tools.databases.sql import SqlTool

    return await SqlTool.open(url)


def form_of(url: str) -> str:
    """
    >>> form_of("bolt://localhost:7687"), form_of("trade.db")
    ('graph', 'sql')
    """
    scheme = url.partition("://")[0].partition("+")[0]
    return "graph" if scheme in ("kglite", "bolt", "neo4j") else "sql"
