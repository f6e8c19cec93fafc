"""The tables of the two Decision QA worlds, their form in a graph, and how they are read in the order of writing.

The ordinary read-only tools read them. Sums run in the order of writing, and equal candidates are decided by it, so it
matters. No store is asked to carry an ordinal that its own keeping does not already have:

    SQLite, DuckDB      ORDER BY rowid
    PostgreSQL          ORDER BY ctid: the place in the file, which is the order of writing until rows change
    MariaDB, MySQL      ORDER BY ord: our loader adds an invisible column; without it the primary key's order
    graphs              sorted by the number that ends elementId()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from decisor.errors import SetupError, ToolError
from decisor.types import BulkSource, Table, Value


class CountryRow(NamedTuple):
    country_name: str
    home_node: str
    development: float


class NodeRow(NamedTuple):
    trade_node: str
    local_value: float
    is_inland: bool
    total_power: float
    outgoing: float
    ingoing: float


class FlowRow(NamedTuple):
    """An edge of the trade network, from upstream to downstream."""

    source: str
    dest: str
    flow: float


class PowerRow(NamedTuple):
    """The power of one country at one node (table node_country)."""

    trade_node: str
    country_name: str
    is_home: bool
    has_merchant: bool
    base_trading_power: float
    calculated_trading_power: float


class GoodsRow(NamedTuple):
    goods_name: str
    code: int
    base_price: float
    current_price: float
    pop_demand: float


class BuildingRow(NamedTuple):
    id: int
    name: str
    level: int


class SupplyRow(NamedTuple):
    goods_id: int
    building_id: int
    max_supply: float
    current_output: float
    level: int


class DemandRow(NamedTuple):
    goods_id: int
    building_id: int
    max_demand: float
    current_input: float
    level: int


@dataclass(frozen=True)
class WorldTable:
    """A table of the release, and its form in a graph: nodes, or relationships between two tables of nodes."""

    row: type[tuple[object, ...]]
    key: str
    """Columns of the primary key."""
    label: str
    """Label of its nodes, or type of its relationships."""
    named: str = ""
    """Column that is the property ``name`` of a node."""
    ends: tuple[tuple[str, str], ...] = ()
    """Column and table of the node where a relationship begins, then of the one where it ends; none for nodes."""

    @cached_property
    def types(self) -> dict[str, str]:
        """The type of each column: str, float, int or bool."""
        notes = self.row.__annotations__
        return {column: str(getattr(note, "__forward_arg__", note)) for column, note in notes.items()}

    @cached_property
    def properties(self) -> dict[str, str]:
        """The property of each column that is not an end."""
        ends = dict(self.ends)
        return {name: "name" if name == self.named else name for name in self.types if name not in ends}

    @property
    def key_property(self) -> str:
        return self.properties[self.key]


WORLD_TABLES = {
    "country": WorldTable(CountryRow, "country_name", "Country", "country_name"),
    "trade_node": WorldTable(NodeRow, "trade_node", "Trade_node", "trade_node"),
    "flow": WorldTable(FlowRow, "source, dest", "source", ends=(("source", "trade_node"), ("dest", "trade_node"))),
    "node_country": WorldTable(
        PowerRow,
        "trade_node, country_name",
        "NodeCountry",
        ends=(("country_name", "country"), ("trade_node", "trade_node")),
    ),
    "goods": WorldTable(GoodsRow, "code", "Goods", "goods_name"),
    "building": WorldTable(BuildingRow, "id", "Building"),
    "supply": WorldTable(
        SupplyRow, "goods_id, building_id", "Supply", ends=(("building_id", "building"), ("goods_id", "goods"))
    ),
    "demand": WorldTable(
        DemandRow, "goods_id, building_id", "Demand", ends=(("goods_id", "goods"), ("building_id", "building"))
    ),
}
LOCATING = ("country", "trade_node", "flow", "node_country")
BUILDING = ("goods", "building", "supply", "demand")
MISNAMED = {"has_has_merchant": "has_merchant"}  # six SQL and two Cypher files of the release


def parse_truth(value: Value) -> bool:
    """Read a boolean as stores and dumps write it: true, 1, "TRUE", or "  True" with blanks.

    >>> parse_truth("  True"), parse_truth("False"), parse_truth(1)
    (True, False, True)
    """
    # bool("False") is true. Released graphs hold "False", and "  True" with blanks.
    if isinstance(value, str):
        word = value.strip().lower()
        if word not in ("true", "false", "1", "0", "t", "f"):
            raise SetupError(f"{value!r} is neither true nor false.")
        return word in ("true", "1", "t")
    return bool(value)


CASTS = {"str": str, "float": float, "int": int, "bool": parse_truth}


def build_typed_row(table: WorldTable, fields: Mapping[str, Value]) -> tuple[object, ...]:
    """Build a row from columns by name; raise SetupError if one is missing or unreadable.

    >>> build_typed_row(WORLD_TABLES["flow"], {"source": "a", "dest": "b", "flow": "1.5"})
    FlowRow(source='a', dest='b', flow=1.5)
    """
    values = []
    for name, kind in table.types.items():
        if name not in fields:
            raise SetupError(f"A row of {table.row.__name__} has no {name}; it has {', '.join(fields)}.")
        try:
            values.append(CASTS[kind](fields[name]))  # type: ignore[operator]
        except (TypeError, ValueError) as error:
            raise SetupError(f"{name} of {table.row.__name__} is {fields[name]!r}: {error}.") from error
    return table.row(*values)


WorldRows: TypeAlias = "dict[str, list[tuple[object, ...]]]"
ORDERS = (" ORDER BY rowid", " ORDER BY ctid", " ORDER BY ord", "")
MAX_ROWS = 2_000_000


async def read_world_tables(source: BulkSource, names: Sequence[str]) -> WorldRows:
    """Read the tables of a world, typed, in the order of writing; raise SetupError if one is missing or cut."""
    return await (read_relations(source, names) if source.form == "sql" else read_graph_tables(source, names))


async def read_relations(source: BulkSource, names: Sequence[str]) -> WorldRows:
    rows: WorldRows = {}
    order = ""
    for name in names:
        if not rows:
            table, order = await read_in_first_order(source, name)
        else:
            table = await fetch_whole(source, f"SELECT * FROM {name}{order}")
        columns = [MISNAMED.get(column.lower(), column.lower()) for column in table.columns]
        rows[name] = [build_typed_row(WORLD_TABLES[name], dict(zip(columns, row, strict=True))) for row in table.rows]
    return rows


async def read_in_first_order(source: BulkSource, name: str) -> tuple[Table, str]:
    """Read the first table, and return the first of ``ORDERS`` that its store knows."""
    # A store refuses an order that it does not know, so trying is the only way to tell which kind it is.
    for order in ORDERS[:-1]:
        try:
            return await fetch_whole(source, f"SELECT * FROM {name}{order}"), order
        except ToolError:
            continue
    return await fetch_whole(source, f"SELECT * FROM {name}"), ""


async def read_graph_tables(source: BulkSource, names: Sequence[str]) -> WorldRows:
    rows: WorldRows = {}
    for name in names:
        query = build_cypher(name)
        table = await fetch_whole(source, query)
        # Cypher gives null for a property that does not exist, so the misspelt files show in the data only.
        if name == "node_country" and table.rows and all(row[3] is None for row in table.rows):
            table = await fetch_whole(source, query.replace("n.has_merchant", "n.has_has_merchant"))
        # Cypher has no order of writing; Neo4j ("4:1f0c:12") and kglite (12) number elements as they are made.
        in_order = sorted(table.rows, key=lambda row: int(str(row[-1]).rsplit(":", 1)[-1]))
        kind = WORLD_TABLES[name]
        rows[name] = [build_typed_row(kind, dict(zip(kind.types, row[:-1], strict=True))) for row in in_order]
    return rows


def build_cypher(name: str) -> str:
    """Build the Cypher query of one table, its element ids last.

    >>> build_cypher("country")
    'MATCH (n:Country) RETURN n.name AS c0, n.home_node AS c1, n.development AS c2, elementId(n) AS written'
    >>> build_cypher("supply").partition(" RETURN ")[0]
    'MATCH (a:Building)-[n:Supply]->(b:Goods)'
    """
    table = WORLD_TABLES[name]
    ends = {column: (end, WORLD_TABLES[of]) for end, (column, of) in zip("ab", table.ends, strict=False)}
    pattern = f"(n:{table.label})"
    if ends:
        start, end = (f"({end}:{node.label})" for end, node in ends.values())
        pattern = f"{start}-[n:{table.label}]->{end}"
    columns = [
        f"{ends[column][0]}.{ends[column][1].key_property}" if column in ends else f"n.{table.properties[column]}"
        for column in table.types
    ]
    parts = [f"{column} AS c{at}" for at, column in enumerate(columns)]
    return f"MATCH {pattern} RETURN {', '.join([*parts, 'elementId(n) AS written'])}"


async def fetch_whole(source: BulkSource, query: str) -> Table:
    table = await source.fetch(query, MAX_ROWS, trusted=True)  # made of the names in rows.py
    if table.truncated:
        raise SetupError(f"The database holds more than can be read at once: {query}")
    return table
