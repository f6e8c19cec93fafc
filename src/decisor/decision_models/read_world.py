"""Reads a world from a database through the ordinary read-only tools, in the order in which it was written.

Sums run in that order, and equal candidates are decided by it, so it matters. No store is asked to carry an ordinal
that its own keeping does not already have:

    SQLite, DuckDB      ORDER BY rowid
    PostgreSQL          ORDER BY ctid: the place in the file, which is the order of writing until rows change
    MariaDB, MySQL      ORDER BY ord: our loader adds an invisible column; without it the primary key's order
    graphs              sorted by the number that ends elementId()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from decisor.decision_models.rows import MISNAMED, typed
from decisor.errors import SetupError, ToolError
from decisor.types import BulkSource, Table

Kinds: TypeAlias = "Mapping[str, type[tuple[object, ...]]]"
Rows: TypeAlias = "dict[str, list[tuple[object, ...]]]"
ORDERS = (" ORDER BY rowid", " ORDER BY ctid", " ORDER BY ord", "")
MAX_ROWS = 2_000_000
ELEMENT = "elementId({0}) AS written"
GRAPH = {  # pattern, and the properties in the order of the columns
    "country": ("(n:Country)", ("n.name", "n.home_node", "n.development")),
    "trade_node": (
        "(n:Trade_node)",
        ("n.name", "n.local_value", "n.is_inland", "n.total_power", "n.outgoing", "n.ingoing"),
    ),
    "flow": ("(a:Trade_node)-[n:source]->(b:Trade_node)", ("a.name", "b.name", "n.flow")),
    "node_country": (
        "(a:Country)-[n:NodeCountry]->(b:Trade_node)",
        ("b.name", "a.name", "n.is_home", "n.has_merchant", "n.base_trading_power", "n.calculated_trading_power"),
    ),
    "goods": ("(n:Goods)", ("n.name", "n.code", "n.base_price", "n.current_price", "n.pop_demand")),
    "building": ("(n:Building)", ("n.id", "n.name", "n.level")),
    "supply": ("(a:Building)-[n:Supply]->(b:Goods)", ("b.code", "a.id", "n.max_supply", "n.current_output", "n.level")),
    "demand": ("(a:Goods)-[n:Demand]->(b:Building)", ("a.code", "b.id", "n.max_demand", "n.current_input", "n.level")),
}


async def tables(source: BulkSource, kinds: Kinds) -> Rows:
    """Every table of ``kinds``, typed, in the order of writing. Raises SetupError where one is missing or cut."""
    return await (relational(source, kinds) if source.form == "sql" else graph(source, kinds))


async def relational(source: BulkSource, kinds: Kinds) -> Rows:
    rows: Rows = {}
    order = ""
    for name, kind in kinds.items():
        if not rows:
            table, order = await in_first_order(source, name)
        else:
            table = await whole(source, f"SELECT * FROM {name}{order}")
        columns = [MISNAMED.get(column.lower(), column.lower()) for column in table.columns]
        rows[name] = [typed(kind, dict(zip(columns, row, strict=True))) for row in table.rows]
    return rows


async def in_first_order(source: BulkSource, name: str) -> tuple[Table, str]:
    """The first table, and the first order that its store knows."""
    for order in ORDERS[:-1]:
        try:
            return await whole(source, f"SELECT * FROM {name}{order}"), order
        except ToolError:
            continue
    return await whole(source, f"SELECT * FROM {name}"), ""


async def graph(source: BulkSource, kinds: Kinds) -> Rows:
    rows: Rows = {}
    for name, kind in kinds.items():
        table = await whole(source, cypher(name))
        if name == "node_country" and table.rows and all(row[3] is None for row in table.rows):
            misnamed = cypher(name).replace("n.has_merchant", "n.has_has_merchant")
            table = await whole(source, misnamed)
        columns = list(kind.__annotations__)
        in_order = sorted(table.rows, key=lambda row: place_of(row[-1]))
        rows[name] = [typed(kind, dict(zip(columns, row[:-1], strict=True))) for row in in_order]
    return rows


def cypher(name: str) -> str:
    """
    >>> cypher("country")
    'MATCH (n:Country) RETURN n.name AS c0, n.home_node AS c1, n.development AS c2, elementId(n) AS written'
    """
    pattern, properties = GRAPH[name]
    columns = [f"{each} AS c{at}" for at, each in enumerate(properties)]
    return f"MATCH {pattern} RETURN {', '.join([*columns, ELEMENT.format('n')])}"


def place_of(element: object) -> int:
    """The number that ends an element's id: "4:1f0c:12" (Neo4j), "12".

    >>> place_of("4:1f0c:12"), place_of(12)
    (12, 12)
    """
    return int(str(element).rsplit(":", 1)[-1])


async def whole(source: BulkSource, query: str) -> Table:
    table = await source.fetch(query, MAX_ROWS, trusted=True)  # made of the names in rows.py
    if table.truncated:
        raise SetupError(f"The database holds more than can be read at once: {query}")
    return table
