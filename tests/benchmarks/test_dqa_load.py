"""Every store gives back what the dump holds: every digit, in the order of the file, and so the same decision."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest

from data import DATA
from decisor.databases.sql import SqlTool
from decisor.decision_models.ranking import rank_what_if
from decisor.errors import SetupError
from decisor.graphs.cypher import CypherTool
from decisor.lab.dqa import building, locating
from decisor.lab.dqa import worlds as dumps
from decisor.lab.dqa.databases import load_database
from decisor.lab.dqa.models import recognise_model
from decisor.lab.dqa.rows import BUILDING, LOCATING, read_world_tables
from decisor.lab.dqa.worlds import Scenario, read_dqa_questions
from servers.sql_databases import MYSQLS, POSTGRES, lacking

pytestmark = pytest.mark.skipif(not (DATA / "dqa").is_dir(), reason="no released questions at hand")
TABLES = {
    "locating": ["country", "trade_node", "flow", "node_country"],
    "building": ["goods", "building", "supply", "demand"],
}
SCENARIOS: tuple[Scenario, ...] = ("locating", "building")
SERVERS = {"postgres": f"{POSTGRES}/{{}}", **{name: f"{url}/{{}}" for name, url in MYSQLS.items()}}


def drop(store: str, name: str) -> None:
    if store == "postgres":
        with psycopg.connect(SERVERS[store].format("postgres"), autocommit=True) as server:
            server.execute(f"DROP DATABASE IF EXISTS {name}".encode())
    else:
        port = urlsplit(SERVERS[store]).port or 0
        with pymysql.connect(host="127.0.0.1", port=port, user="root") as db, db.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")


async def holds(url: str, scenario: Scenario) -> None:
    case = read_dqa_questions(DATA / "dqa", scenario, "sql")[1]
    await load_database(case.database, url)
    tool: SqlTool | CypherTool
    graph = url.startswith("kglite")
    tool = await (CypherTool.open(url) if graph else SqlTool.open(url))
    try:
        kind, tables = (
            (locating.LocatingData, LOCATING) if scenario == "locating" else (building.BuildingData, BUILDING)
        )
        assert kind.of(await read_world_tables(tool, tables)) == dumps.read_dump(case.database)
        model = await recognise_model(tool, TABLES[scenario], case.question.text, "released")
        assert model is not None and rank_what_if(model, trials=0).options[0].name == case.gold
    finally:
        await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("url", ["sqlite:///{}/world.db", "duckdb:///{}/world.duckdb", "kglite:///{}/world.kgl"])
async def test_an_embedded_store_keeps_a_world_as_it_was(url: str, scenario: Scenario, tmp_path: Path) -> None:
    await holds(url.format(tmp_path), scenario)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("store", SERVERS)
async def test_a_server_keeps_a_world_as_it_was(store: str, scenario: Scenario) -> None:
    name = f"decisor_worlds_{scenario}_{os.getpid()}"
    try:
        drop(store, name)
    except (psycopg.OperationalError, pymysql.OperationalError) as error:
        lacking(store, error)
    try:
        await holds(SERVERS[store].format(name), scenario)
    finally:
        drop(store, name)


async def test_a_store_that_holds_a_world_is_left_alone(tmp_path: Path) -> None:
    dump = read_dqa_questions(DATA / "dqa", "building", "sql")[0].database
    url = f"sqlite:///{tmp_path}/world.db"
    await load_database(dump, url)
    with pytest.raises(SetupError, match="already exists"):
        await load_database(dump, url)


def test_both_forms_of_a_dump_are_the_same_world() -> None:
    for scenario in SCENARIOS:
        for sql, graph in list(
            zip(
                read_dqa_questions(DATA / "dqa", scenario, "sql"),
                read_dqa_questions(DATA / "dqa", scenario, "graph"),
                strict=True,
            )
        )[::9]:
            assert dumps.read_dump(sql.database) == dumps.read_dump(graph.database)


def test_a_line_that_is_no_statement_is_named() -> None:
    with pytest.raises(SetupError, match="Line 2"):
        dumps.parse_dump(
            'INSERT INTO country(country_name,home_node,development) VALUES ("A", "b", 1);\nDROP TABLE country;'
        )


def test_the_misnamed_column_and_booleans_with_blanks_are_read() -> None:
    text = (
        'CREATE (b:Trade_node {name:"b", local_value:1, is_inland:false, total_power:0, outgoing:0, ingoing:0});\n'
        'CREATE (A:Country {name:"A", home_node:"b", development:2});\n'
        'MATCH (b:Trade_node {name:"b"}), (A:Country {name:"A"}) CREATE (A)-[r:NodeCountry{is_home: true, '
        'has_has_merchant:  "  True",base_trading_power: 1e-3,calculated_trading_power: 1}]->(b);'
    )
    world = dumps.parse_dump(text)
    assert isinstance(world, locating.LocatingData)
    assert world.powers[0] == ("b", "A", True, True, 0.001, 1.0)
