"""A world as a graph, with the labels, relationship types and properties of the release.

``has_merchant`` stays the text "True" or "False" that the release's graphs hold; blanks and the misspelt name go.
"""

from __future__ import annotations

from decisor.decision_models.building import BuildingData
from decisor.decision_models.locating import LocatingData
from decisor.tools.databases.graph_write import Edge, Node
from decisor.types import Value


def graph_of(world: LocatingData | BuildingData) -> tuple[list[Node], list[Edge]]:
    """Nodes and relationships in file order."""
    return trade(world) if isinstance(world, LocatingData) else economy(world)


def trade(world: LocatingData) -> tuple[list[Node], list[Edge]]:
    nodes = [Node("Trade_node", with_names(row._asdict(), trade_node="name")) for row in world.nodes]
    nodes += [Node("Country", with_names(row._asdict(), country_name="name")) for row in world.countries]
    place = {row.trade_node: at for at, row in enumerate(world.nodes)}
    country = {row.country_name: len(world.nodes) + at for at, row in enumerate(world.countries)}
    edges = [Edge("source", place[row.source], place[row.dest], {"flow": row.flow}) for row in world.flows]
    for row in world.powers:
        properties = row._asdict() | {"has_merchant": str(row.has_merchant)}
        del properties["trade_node"], properties["country_name"]
        edges.append(Edge("NodeCountry", country[row.country_name], place[row.trade_node], properties))
    return nodes, edges


def economy(world: BuildingData) -> tuple[list[Node], list[Edge]]:
    nodes = [Node("Goods", with_names(row._asdict(), goods_name="name")) for row in world.goods]
    nodes += [Node("Building", row._asdict()) for row in world.buildings]
    goods = {row.code: at for at, row in enumerate(world.goods)}
    building = {row.id: len(world.goods) + at for at, row in enumerate(world.buildings)}
    edges = []
    for need in world.demand:
        properties = {"max_demand": need.max_demand, "current_input": need.current_input, "level": need.level}
        edges.append(Edge("Demand", goods[need.goods_id], building[need.building_id], properties))
    for supply in world.supply:
        properties = {"max_supply": supply.max_supply, "current_output": supply.current_output, "level": supply.level}
        edges.append(Edge("Supply", building[supply.building_id], goods[supply.goods_id], properties))
    return nodes, edges


def with_names(fields: dict[str, Value], **names: str) -> dict[str, Value]:
    """Columns by their names as properties.

    >>> with_names({"trade_node": "a", "ingoing": 1.0}, trade_node="name")
    {'name': 'a', 'ingoing': 1.0}
    """
    return {names.get(name, name): value for name, value in fields.items()}
