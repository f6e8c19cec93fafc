"""Generated worlds as the tables and the graph of the released databases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from decisor.benchmarks.dqa.generator.supply import Supply
from decisor.benchmarks.dqa.generator.trade import Trade

Cell = str | int | float | bool
NODE_COLUMNS = (
    "trade_node VARCHAR(30), local_value FLOAT, is_inland BOOLEAN, total_power FLOAT, outgoing FLOAT, ingoing FLOAT"
)
GOODS_COLUMNS = "goods_name VARCHAR(30), code INT, base_price FLOAT, current_price FLOAT, pop_demand FLOAT"
Rows = Iterator[tuple[Cell, ...]]


@dataclass(frozen=True)
class Sheet:
    """One table: its columns with their types, its key, and its rows (read once).

    ``graph`` is the Cypher that makes the node or relationship of one row, with {column} where a value goes.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    key: str
    graph: str
    rows: Rows

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)


def sheets(world: Trade | Supply) -> list[Sheet]:
    """The tables, in the order in which they are to be written: nodes before relationships."""
    return _trade(world) if isinstance(world, Trade) else _supply(world)


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    """
    >>> _columns("level INT, max_supply FLOAT")
    (('level', 'INT'), ('max_supply', 'FLOAT'))
    """
    pairs = (part.split() for part in text.split(","))
    return tuple((name, kind) for name, kind in pairs)


def _trade(world: Trade) -> list[Sheet]:
    """Nodes by name; edges by source, then dest; powers by node, then country as they come."""
    nodes, countries = world.nodes, world.countries
    order = np.argsort(np.array(nodes), kind="stable")
    rank = np.argsort(order)
    edges = np.argsort(rank[world.source], kind="stable").tolist()
    powers = np.argsort(rank[world.at], kind="stable").tolist()
    at_home, base = world.at_home.tolist(), world.base.tolist()
    at, of = world.at.tolist(), world.of.tolist()
    source, dest, flow = world.source.tolist(), world.dest.tolist(), world.flow.tolist()
    home, development = world.home.tolist(), world.development.tolist()
    state = (world.local_value, world.inland, world.total_power, world.outgoing, world.ingoing)
    return [
        Sheet(
            "country", _columns("country_name VARCHAR(30), home_node VARCHAR(30), development FLOAT"), "country_name",
            "CREATE (:Country {{name: {country_name}, home_node: {home_node}, development: {development}}})",
            ((name, nodes[home[i]], development[i]) for i, name in enumerate(countries)),
        ),
        Sheet(
            "trade_node",
            _columns(NODE_COLUMNS),
            "trade_node",
            "CREATE (:Trade_node {{name: {trade_node}, local_value: {local_value}, is_inland: {is_inland}, "
            "total_power: {total_power}, outgoing: {outgoing}, ingoing: {ingoing}}})",
            zip([nodes[i] for i in order.tolist()], *(column[order].tolist() for column in state), strict=True),
        ),
        Sheet(
            "flow", _columns("source VARCHAR(30), dest VARCHAR(30), flow FLOAT"), "source, dest",
            "MATCH (up:Trade_node {{name: {source}}}), (down:Trade_node {{name: {dest}}}) "
            "CREATE (up)-[:source {{flow: {flow}}}]->(down)",
            ((nodes[source[e]], nodes[dest[e]], flow[e]) for e in edges),
        ),
        Sheet(
            "node_country",
            _columns("trade_node VARCHAR(30), country_name VARCHAR(30), is_home BOOLEAN, has_merchant BOOLEAN, "
                     "base_trading_power FLOAT, calculated_trading_power FLOAT"),
            "trade_node, country_name",
            "MATCH (n:Trade_node {{name: {trade_node}}}), (c:Country {{name: {country_name}}}) "
            "CREATE (c)-[:NodeCountry {{is_home: {is_home}, has_merchant: {has_merchant}, "
            "base_trading_power: {base_trading_power}, calculated_trading_power: {calculated_trading_power}}}]->(n)",
            ((nodes[at[r]], countries[of[r]], at_home[r], False, base[r], base[r]) for r in powers),
        ),
    ]  # fmt: skip


def _supply(world: Supply) -> list[Sheet]:
    ids, level = world.ids.tolist(), world.level.tolist()
    prices = zip(world.base_price.tolist(), world.current_price.tolist(), world.pop_demand.tolist(), strict=True)
    supply = (world.supplied, world.supplier, world.max_supply, world.current_output)
    demand = (world.demanded, world.demander, world.max_demand, world.current_input)
    return [
        Sheet(
            "goods",
            _columns(GOODS_COLUMNS), "code",
            "CREATE (:Goods {{name: {goods_name}, code: {code}, base_price: {base_price}, "
            "current_price: {current_price}, pop_demand: {pop_demand}}})",
            ((name, code, *row) for code, (name, row) in enumerate(zip(world.goods, prices, strict=True))),
        ),
        Sheet(
            "building", _columns("id INT, name VARCHAR(80), level INT"), "id",
            "CREATE (:Building {{id: {id}, name: {name}, level: {level}}})",
            zip(ids, world.names, level, strict=True),
        ),
        Sheet(
            "supply", _columns("goods_id INT, building_id INT, max_supply FLOAT, current_output FLOAT, level INT"),
            "goods_id, building_id",
            "MATCH (g:Goods {{code: {goods_id}}}), (b:Building {{id: {building_id}}}) CREATE (b)-[:Supply "
            "{{max_supply: {max_supply}, current_output: {current_output}, level: {level}}}]->(g)",
            ((g, ids[b], most, now, level[b]) for g, b, most, now in zip(*(c.tolist() for c in supply), strict=True)),
        ),
        Sheet(
            "demand", _columns("goods_id INT, building_id INT, max_demand FLOAT, current_input FLOAT, level INT"),
            "goods_id, building_id",
            "MATCH (g:Goods {{code: {goods_id}}}), (b:Building {{id: {building_id}}}) CREATE (g)-[:Demand "
            "{{max_demand: {max_demand}, current_input: {current_input}, level: {level}}}]->(b)",
            ((g, ids[b], most, now, level[b]) for g, b, most, now in zip(*(c.tolist() for c in demand), strict=True)),
        ),
    ]  # fmt: skip
