"""The rows of the two Decision QA worlds, read from a database in the order of writing.

The ordinary read-only tools read them. Sums run in the order of writing, and equal candidates are decided by it, so it
matters. No store is asked to carry an ordinal that its own keeping does not already have:

    SQLite, DuckDB      ORDER BY rowid
    PostgreSQL          ORDER BY ctid: the place in the file, which is the order of writing until rows change
    MariaDB, MySQL      ORDER BY ord: our loader adds an invisible column; without it the primary key's order
    graphs              sorted by the number that ends elementId()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, TypeVar

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


Row = TypeVar("Row", bound=tuple[object, ...])

LOCATING = {"country": CountryRow, "trade_node": NodeRow, "flow": FlowRow, "node_country": PowerRow}
BUILDING = {"goods": GoodsRow, "building": BuildingRow, "supply": SupplyRow, "demand": DemandRow}
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


def build_typed_row(kind: type[Row], fields: Mapping[str, Value]) -> Row:
    """Build a row of ``kind`` from columns by name; raise SetupError if one is missing or unreadable.

    >>> build_typed_row(FlowRow, {"source": "a", "dest": "b", "flow": "1.5"})
    FlowRow(source='a', dest='b', flow=1.5)
    """
    values = []
    for name, cast in column_casts(kind):
        if name not in fields:
            raise SetupError(f"A row of {kind.__name__} has no {name}; it has {', '.join(fields)}.")
        try:
            values.append(cast(fields[name]))
        except (TypeError, ValueError) as error:
            raise SetupError(f"{name} of {kind.__name__} is {fields[name]!r}: {error}.") from error
    return kind(*values)


def column_casts(kind: type[Row]) -> list[tuple[str, type]]:
    """Return each column with the function that reads it; annotations are strings here."""
    return [(name, CASTS[str(getattr(note, "__forward_arg__", note))]) for name, note in kind.__annotations__.items()]  # type: ignore[misc]


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


async def read_world_tables(source: BulkSource, kinds: Kinds) -> Rows:
    """Read every table of ``kinds``, typed, in the order of writing; raise SetupError if one is missing or cut."""
    return await (relational(source, kinds) if source.form == "sql" else read_graph_tables(source, kinds))


async def relational(source: BulkSource, kinds: Kinds) -> Rows:
    rows: Rows = {}
    order = ""
    for name, kind in kinds.items():
        if not rows:
            table, order = await read_in_first_order(source, name)
        else:
            table = await fetch_whole(source, f"SELECT * FROM {name}{order}")
        columns = [MISNAMED.get(column.lower(), column.lower()) for column in table.columns]
        rows[name] = [build_typed_row(kind, dict(zip(columns, row, strict=True))) for row in table.rows]
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


async def read_graph_tables(source: BulkSource, kinds: Kinds) -> Rows:
    rows: Rows = {}
    for name, kind in kinds.items():
        table = await fetch_whole(source, build_cypher(name))
        # Cypher gives null for a property that does not exist, so the misspelt files show in the data only.
        if name == "node_country" and table.rows and all(row[3] is None for row in table.rows):
            misnamed = build_cypher(name).replace("n.has_merchant", "n.has_has_merchant")
            table = await fetch_whole(source, misnamed)
        columns = list(kind.__annotations__)
        # Cypher has no order of writing; Neo4j and kglite number elements as they are made.
        in_order = sorted(table.rows, key=lambda row: element_number(row[-1]))
        rows[name] = [build_typed_row(kind, dict(zip(columns, row[:-1], strict=True))) for row in in_order]
    return rows


def build_cypher(name: str) -> str:
    """Build the Cypher query of one table, its element ids last.

    >>> build_cypher("country")
    'MATCH (n:Country) RETURN n.name AS c0, n.home_node AS c1, n.development AS c2, elementId(n) AS written'
    """
    pattern, properties = GRAPH[name]
    columns = [f"{each} AS c{at}" for at, each in enumerate(properties)]
    return f"MATCH {pattern} RETURN {', '.join([*columns, ELEMENT.format('n')])}"


def element_number(element: object) -> int:
    """Return the number that ends an element's id, such as "4:1f0c:12" (Neo4j) or "12".

    >>> element_number("4:1f0c:12"), element_number(12)
    (12, 12)
    """
    return int(str(element).rsplit(":", 1)[-1])


async def fetch_whole(source: BulkSource, query: str) -> Table:
    table = await source.fetch(query, MAX_ROWS, trusted=True)  # made of the names in rows.py
    if table.truncated:
        raise SetupError(f"The database holds more than can be read at once: {query}")
    return table
