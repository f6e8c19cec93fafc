"""Worlds on servers: each in a place of its own, kept, loaded anew on request; another world is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from decisor.cli import run_command_line
from decisor.errors import SetupError
from decisor.graphs.cypher import CypherTool
from decisor.lab.dqa.bench import DqaBench
from decisor.lab.dqa.databases import Stores, drop_own_place, load_world, own_place_url
from decisor.lab.dqa.generator import generate_dataset
from decisor.lab.dqa.worlds import DqaWorld
from servers.neo4j_server import NEO4J, ask, neo4j_database
from servers.sql_databases import MYSQLS, POSTGRES, mysql_database, postgres_database

SERVERS = {**MYSQLS, "postgres": POSTGRES, "neo4j": NEO4J}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small worlds: one of each scenario."""
    folder = tmp_path_factory.mktemp("dqa")
    generate_dataset("locating", "tiny", 1, folder, 3)
    generate_dataset("building", "tiny", 2, folder, 3)
    return folder


def form_of(server: str) -> str:
    return "graph" if server == "neo4j" else "sql"


def worlds(data: Path, form: str = "sql") -> Mapping[str, DqaWorld]:
    """By scenario."""
    bench = DqaBench(data, form="graph" if form == "graph" else "sql")
    bench.cases()
    return {one.case.group: one.world for one in bench.shared.cases.values()}


@contextmanager
def empty(server: str, data: Path) -> Iterator[str]:
    """The server's URL, where neither world lies before or after; the test is skipped where it does not run."""
    runs: AbstractContextManager[str]
    if server == "neo4j":
        runs = neo4j_database()
    else:
        runs = postgres_database([]) if server == "postgres" else mysql_database([], SERVERS[server])
    with runs:
        try:
            yield SERVERS[server]
        finally:
            for world in worlds(data, form_of(server)).values():
                drop_own_place(own_place_url(SERVERS[server], world.key))


def change(place: str, sql: str, cypher: str) -> None:
    """As the administrator of the server."""
    if place.startswith("postgres"):
        import psycopg

        with psycopg.connect(place, autocommit=True) as db:
            db.execute(sql.encode())
    elif place.startswith("bolt"):
        ask(cypher)
    else:
        from decisor.sandbox.engines.mysql import open_mysql

        with open_mysql(place) as connection, connection.cursor() as cursor:
            cursor.execute(sql)


async def count(stores: Stores, world: DqaWorld, what: str = "goods") -> object:
    """Of its goods, or of tables (in a graph: goods) that were made beside them."""
    async with stores.tool(world) as tool:
        query = "SELECT count(*) AS n FROM goods"
        if isinstance(tool, CypherTool):
            query = f"MATCH (g:Goods) {'WHERE g.beside = 1' if what == 'beside' else ''} RETURN count(g) AS n"
        elif what == "beside":
            return tool.describe().count("table beside")
        return (await tool.call(query)).records[0].fields["n"]


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_a_world_has_a_place_of_its_own_on_a_server_and_is_kept_there(server: str, data: Path) -> None:
    with empty(server, data) as url:
        both = worlds(data, form_of(server))
        world = both["building"]
        place = own_place_url(url, world.key)
        stores = Stores(form_of(server), url)
        async with stores.tool(world) as tool, stores.tool(both["locating"]) as other:
            assert "oods" in tool.describe() and "rade_node" not in tool.describe()
            assert "rade_node" in other.describe() and "oods" not in other.describe()
            assert "decisor_" not in tool.describe() and "ord " not in tool.describe()
        await stores.close()
        change(place, "CREATE TABLE beside(a INT)", "MATCH (g:Goods) SET g.beside = 1")
        for fresh, there in ((False, True), (True, False)):
            stores = Stores(form_of(server), url, fresh)
            assert bool(await count(stores, world, "beside")) == there
            await stores.close()
        change(place, "UPDATE goods SET base_price = base_price + 7", "MATCH (g:Goods) SET g.base_price = 7.0")
        stores = Stores(form_of(server), url)
        with pytest.raises(SetupError, match="holds another world than its name says: --fresh loads it anew"):
            await count(stores, world)
        await stores.close()


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_two_who_load_a_world_at_once_load_it_once(server: str, data: Path) -> None:
    with empty(server, data) as url:
        world = worlds(data, form_of(server))["building"]
        pair = [Stores(form_of(server), url) for _ in range(2)]
        counts = await asyncio.gather(*(count(stores, world) for stores in pair))
        assert counts == [len(getattr(world.data, "goods"))] * 2  # noqa: B009
        for stores in pair:
            await stores.close()


async def test_a_database_that_holds_another_world_is_refused(data: Path, tmp_path: Path) -> None:
    both = worlds(data)
    url = f"sqlite:///{tmp_path}/world.db"
    await load_world(both["building"].data, url)
    stores = Stores("sql", url)
    assert await count(stores, both["building"])
    with pytest.raises(SetupError, match="holds not the world that the question is about"):
        await count(stores, both["locating"])
    await stores.close()
    generate_dataset("building", "tiny", 5, tmp_path / "more", 3)
    stores = Stores("sql", url)
    with pytest.raises(SetupError, match="holds another world than the question is about"):
        await count(stores, worlds(tmp_path / "more")["building"])
    await stores.close()


def test_the_command_says_so_in_one_line(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/world.db"
    asyncio.run(load_world(worlds(data)["building"].data, url))
    for scenario, code in (("building", 0), ("locating", 2)):
        capsys.readouterr()
        bench = f"dqa data={data} db={url} scenario={scenario}"
        words = ["eval", "-b", bench, "-t", "heuristic", "--store", str(tmp_path / f"{scenario}.db")]
        assert run_command_line(words) == code
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and "each world is loaded into a place of its own" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
def test_the_command_asks_a_server(server: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[dict[str, object]] = []
    with empty(server, data) as url:
        for more in (f"db={url} fresh=yes", ""):
            bench = f"dqa data={data} form={form_of(server)} {more}"
            words = ["eval", "-b", bench, "-t", "heuristic", "--json", "--store", str(tmp_path / f"{len(answers)}.db")]
            capsys.readouterr()
            assert run_command_line(words) == 0
            rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            answers.append({row["case"]: row["answer"] for row in rows})
    assert len(answers[0]) == 6 and answers[0] == answers[1]
