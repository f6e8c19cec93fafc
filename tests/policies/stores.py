"""The content of a released dump in each kind of database, for tests: made, opened as a tool, and dropped."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import psycopg
import pymysql

from decisor.databases.sql import SqlTool
from decisor.graphs.cypher import CypherTool
from decisor.graphs.load import drop_labelled_graph
from decisor.lab.dqa.databases import load_database
from decisor.lab.dqa.worlds import iterate_sql_dump
from decisor.types import Tool
from servers.neo4j_server import NEO4J
from servers.sql_databases import MYSQLS, lacking

Store = Literal["sqlite", "kglite", "postgresql", "mariadb", "mysql", "neo4j"]
STORES: tuple[Store, ...] = ("sqlite", "kglite", "postgresql", "mariadb", "mysql", "neo4j")
URLS = {"postgresql": "postgresql://postgres@127.0.0.1:5432/", **{name: f"{url}/" for name, url in MYSQLS.items()}}
NAME = f"decisor_policy_{os.getpid()}"
"""Of this process: tests may run side by side."""
GRAPH = {
    "trade_node": "CREATE (:Trade_node {name: row.trade_node, local_value: row.local_value, is_inland: row.is_inland, "
    "total_power: row.total_power, outgoing: row.outgoing, ingoing: row.ingoing})",
    "country": "CREATE (:Country {name: row.country_name, home_node: row.home_node, development: row.development})",
    "flow": "MATCH (s:Trade_node {name: row.source}), (d:Trade_node {name: row.dest}) "
    "CREATE (s)-[:source {flow: row.flow}]->(d)",
    "node_country": "MATCH (c:Country {name: row.country_name}), (t:Trade_node {name: row.trade_node}) "
    "CREATE (c)-[:NodeCountry {is_home: row.is_home, base_trading_power: row.base_trading_power, "
    "calculated_trading_power: row.calculated_trading_power}]->(t)",
    "goods": "CREATE (:Goods {name: row.goods_name, code: row.code, base_price: row.base_price, "
    "current_price: row.current_price, pop_demand: row.pop_demand})",
    "building": "CREATE (:Building {id: row.id, name: row.name, level: row.level})",
    "supply": "MATCH (b:Building {id: row.building_id}), (g:Goods {code: row.goods_id}) "
    "CREATE (b)-[:Supply {max_supply: row.max_supply, current_output: row.current_output, level: row.level}]->(g)",
    "demand": "MATCH (b:Building {id: row.building_id}), (g:Goods {code: row.goods_id}) "
    "CREATE (g)-[:Demand {max_demand: row.max_demand, current_input: row.current_input, level: row.level}]->(b)",
}


def content(dump: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows by table, in file order; nodes before what joins them."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in GRAPH}
    for table, fields in iterate_sql_dump(dump.read_text("utf-8")):
        found[table].append(dict(fields))
    return {name: rows for name, rows in found.items() if rows}


@asynccontextmanager
async def opened(store: Store, dump: Path, folder: Path) -> AsyncIterator[Tool]:
    """The tool of a database with the dump's content."""
    if store == "neo4j":
        place = f"{NEO4J}?label={NAME}_{dump.stem}"
        await load_database(dump, place)
        tool: Tool = await CypherTool.open(place)
        yield tool
        await tool.close()
        drop_labelled_graph(place)
        return
    if store == "kglite":
        path = folder / f"{dump.stem}.kgl"
        if not path.exists():
            write_graph(dump, path)
        tool = await CypherTool.open(f"kglite:///{path}")
        yield tool
        await tool.close()
        return
    with database(store, dump, folder) as url:
        tool = await SqlTool.open(url)
        yield tool
        await tool.close()


def write_graph(dump: Path, path: Path) -> None:
    import kglite

    graph = kglite.KnowledgeGraph()
    for table, rows in content(dump).items():
        graph.cypher(f"UNWIND $rows AS row {GRAPH[table]}", params={"rows": rows})
    graph.save(str(path))


@contextmanager
def database(store: Store, dump: Path, folder: Path) -> Iterator[str]:
    if store == "sqlite":
        path = folder / f"{dump.stem}.db"
        if not path.exists():
            with closing(sqlite3.connect(path)) as connection, connection:
                fill(connection.cursor(), "?", dump)
        yield f"sqlite:///{path}"
        return
    server = postgres if store == "postgresql" else partial(mysql, urlsplit(URLS[store]).port or 0)
    try:
        run(server, "", f"CREATE DATABASE {NAME}")
    except (psycopg.OperationalError, pymysql.OperationalError) as error:
        lacking(store, error)
    try:
        with closing(server(NAME)) as connection, connection.cursor() as cursor:
            fill(cursor, "%s", dump)
        yield URLS[store] + NAME
    finally:
        run(server, "", f"DROP DATABASE {NAME}")


def postgres(database: str) -> Any:
    return psycopg.connect(URLS["postgresql"] + (database or "postgres"), autocommit=True)


def mysql(port: int, database: str) -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user="root", database=database or "mysql", autocommit=True)


def run(server: Callable[[str], Any], database: str, statement: str) -> None:
    with closing(server(database)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)


def fill(cursor: Any, place: str, dump: Path) -> None:
    """Tables typed by their first row: text, whole numbers, doubles, truth. ``place``: how a parameter is written."""
    for table, rows in content(dump).items():
        columns = ", ".join(f"{name} {kind(name, value)}" for name, value in rows[0].items())
        cursor.execute(f"CREATE TABLE {table} ({columns})")
        places = ", ".join([place] * len(rows[0]))
        cursor.executemany(f"INSERT INTO {table} VALUES ({places})", [tuple(row.values()) for row in rows])


def kind(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, str):
        return "VARCHAR(120)"
    return "INTEGER" if name in ("id", "code", "level", "goods_id", "building_id") else "DOUBLE PRECISION"
