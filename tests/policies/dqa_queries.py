"""The queries that a perfect model makes for a question of Decision QA, step by step, in SQL and in Cypher."""

from __future__ import annotations

import re
from dataclasses import dataclass

NODE = "trade_node, local_value, total_power, ingoing, outgoing, is_inland"
T_NODE = ", ".join(f"t.{name}" for name in NODE.split(", "))
G_NODE = "t.name AS trade_node, " + ", ".join(f"t.{name} AS {name}" for name in NODE.split(", ")[1:])
LOCATING = {
    "sql": {
        "country": "SELECT country_name, home_node, development FROM country WHERE country_name = '{country}'",
        "home": f"SELECT {NODE} FROM trade_node WHERE trade_node = '{{home}}'",
        "candidates": f"SELECT {T_NODE}, n.base_trading_power, n.calculated_trading_power FROM node_country n "
        "JOIN trade_node t ON t.trade_node = n.trade_node WHERE n.country_name = '{country}'",
        "flows": "SELECT source, dest, flow FROM flow WHERE dest = '{home}' OR source = '{home}'",
        "choice": f"SELECT {NODE} FROM trade_node WHERE trade_node = '{{choice}}'",
        "all": f"SELECT {NODE} FROM trade_node",
        "unable": f"SELECT {NODE} FROM trade_node WHERE trade_node NOT IN "
        "(SELECT trade_node FROM node_country WHERE country_name = '{country}')",
    },
    "cypher": {
        "country": "MATCH (c:Country {{name: '{country}'}}) "
        "RETURN c.name AS country_name, c.home_node AS home_node, c.development AS development",
        "home": f"MATCH (t:Trade_node {{{{name: '{{home}}'}}}}) RETURN {G_NODE}",
        "candidates": f"MATCH (c:Country {{{{name: '{{country}}'}}}})-[n:NodeCountry]->(t:Trade_node) RETURN {G_NODE}, "
        "n.base_trading_power AS base_trading_power, n.calculated_trading_power AS calculated_trading_power",
        "flows": "MATCH (s:Trade_node)-[f:source]->(d:Trade_node {{name: '{home}'}}) "
        "RETURN s.name AS source, d.name AS dest, f.flow AS flow",
        "choice": f"MATCH (t:Trade_node {{{{name: '{{choice}}'}}}}) RETURN {G_NODE}",
        "all": f"MATCH (t:Trade_node) RETURN {G_NODE}",
        "unable": "MATCH (t:Trade_node) WHERE NOT (t)<-[:NodeCountry]-(:Country {{name: '{country}'}}) "
        f"RETURN {G_NODE}",
    },
}
BUILDING = {
    "sql": {
        "goods": "SELECT goods_name, code, base_price, current_price, pop_demand FROM goods "
        "WHERE goods_name = '{goods}'",
        "demand": "SELECT d.building_id, d.max_demand, d.current_input FROM demand d "
        "JOIN goods g ON g.code = d.goods_id WHERE g.goods_name = '{goods}'",
        "candidates": "SELECT s.building_id AS id, s.max_supply, s.current_output, s.level FROM supply s "
        "JOIN goods g ON g.code = s.goods_id WHERE g.goods_name = '{goods}'",
        "inputs": "SELECT d.building_id, d.goods_id, d.max_demand, d.current_input FROM demand d JOIN supply s "
        "ON s.building_id = d.building_id JOIN goods g ON g.code = s.goods_id WHERE g.goods_name = '{goods}'",
        "choice": "SELECT id, name, level FROM building WHERE id = {choice}",
        "all": "SELECT s.building_id AS id, g.pop_demand, s.max_supply, s.current_output, s.level FROM supply s "
        "JOIN goods g ON g.code = s.goods_id WHERE g.goods_name = '{goods}'",
        "unable": "SELECT s.building_id AS id, g.pop_demand, s.max_supply, s.current_output FROM supply s "
        "JOIN goods g ON g.code = s.goods_id WHERE s.building_id NOT IN (SELECT o.building_id FROM supply o "
        "JOIN goods w ON w.code = o.goods_id WHERE w.goods_name = '{goods}')",
    },
    "cypher": {
        "goods": "MATCH (g:Goods {{name: '{goods}'}}) RETURN g.name AS goods_name, g.code AS code, "
        "g.base_price AS base_price, g.current_price AS current_price, g.pop_demand AS pop_demand",
        "demand": "MATCH (g:Goods {{name: '{goods}'}})-[d:Demand]->(b:Building) "
        "RETURN b.id AS building_id, d.max_demand AS max_demand, d.current_input AS current_input",
        "candidates": "MATCH (b:Building)-[s:Supply]->(g:Goods {{name: '{goods}'}}) RETURN b.id AS id, "
        "s.max_supply AS max_supply, s.current_output AS current_output, s.level AS level",
        "inputs": "MATCH (i:Goods)-[d:Demand]->(b:Building)-[s:Supply]->(g:Goods {{name: '{goods}'}}) "
        "RETURN b.id AS building_id, i.code AS goods_id, d.max_demand AS max_demand, d.current_input AS current_input",
        "choice": "MATCH (b:Building {{id: {choice}}}) RETURN b.id AS id, b.name AS name, b.level AS level",
        "all": "MATCH (b:Building)-[s:Supply]->(g:Goods {{name: '{goods}'}}) RETURN b.id AS id, "
        "g.pop_demand AS pop_demand, s.max_supply AS max_supply, s.current_output AS current_output",
        "unable": "MATCH (b:Building)-[s:Supply]->(g:Goods) WHERE NOT (b)-[:Supply]->(:Goods {{name: '{goods}'}}) "
        "RETURN b.id AS id, g.pop_demand AS pop_demand, s.max_supply AS max_supply, "
        "s.current_output AS current_output",
    },
}
STEPS = {
    "locating": ("country", "home", "candidates", "flows", "choice"),
    "building": ("goods", "demand", "candidates", "inputs", "choice"),
}
GOALS = {
    "country": "read the country and its home node",
    "home": "read the value and power at the home node",
    "candidates": "find every candidate with the values it depends on",
    "flows": "find which nodes feed the home node",
    "goods": "read the price and the demand of the goods",
    "demand": "add up what buildings demand",
    "inputs": "read what the suppliers need and get",
    "unable": "find every candidate with the values it depends on",
    "choice": "compute the outcome of each candidate and read the best one",
}


@dataclass(frozen=True)
class Asked:
    """What a question asks: the scenario, and the names its queries need."""

    scenario: str
    names: dict[str, str]

    def query(self, step: str, tool: str, choice: str) -> str:
        texts = (LOCATING if self.scenario == "locating" else BUILDING)[tool]
        return texts[step].format(**self.names, choice=choice)


def asked(question: str) -> Asked:
    """
    >>> asked("to maximally decrease the market price of furniture?").names
    {'goods': 'furniture'}
    """
    if goods := re.search(r"market price of (.+?)\?", question):
        return Asked("building", {"goods": goods[1].strip(" \"'")})
    country = re.search(r"country named \"(.+?)\"", question)
    home = re.search(r"home node is \"(.+?)\"", question)
    assert country and home, question
    return Asked("locating", {"country": country[1], "home": home[1]})
