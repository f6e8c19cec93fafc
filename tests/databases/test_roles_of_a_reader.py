"""A person's own rights in the database: queries run in their role, and in no other, on real servers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.server.live import may_see, sight_of
from decisor.server.users import User
from decisor.session.access import Reader
from decisor.session.config import read_connection
from decisor.session.pool import Pool, open_pool
from decisor.session.sources import Sources, build_sources
from servers.sql_databases import MARIADB, MYSQL, POSTGRES, mysql_database, postgres_database

# Roles are of a whole server, which other tests use too.
OWN = f"t{os.getpid()}"
A, B, GATE, ROOT = f"{OWN}_ann", f"{OWN}_bob", f"{OWN}_gate", f"{OWN}_root"
ROLES = (A, B, f"app_{A}", f"{OWN}_sales", f"{OWN}_stray", f'{OWN} od"d; RESET ROLE')
LONG = f"{OWN}_{'l' * 63}"[:63]
"""As long as a name may be: a longer one is cut to it."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A shop in which each person sees their own orders, and Bob alone the salaries. Its account has no rights."""
    psycopg = pytest.importorskip("psycopg")
    names = [*ROLES, LONG]
    drop = [f"DROP ROLE IF EXISTS {quoted(name)}" for name in [*names, GATE, ROOT]]
    statements = [
        "CREATE TABLE orders (id integer PRIMARY KEY, owner text, total integer)",
        f"INSERT INTO orders VALUES (1, '{A}', 10), (2, '{B}', 20), (3, 'app_{A}', 30)",
        "CREATE TABLE salaries (name text, pay integer)",
        "INSERT INTO salaries VALUES ('carl', 99)",
        *drop,
        *(f"CREATE ROLE {quoted(name)} NOLOGIN" for name in names),
        f"CREATE ROLE {GATE} LOGIN NOINHERIT",
        f"CREATE ROLE {ROOT} LOGIN SUPERUSER",
        *(f"GRANT {quoted(name)} TO {GATE}" for name in names if "stray" not in name),
        *(f"GRANT SELECT ON orders TO {quoted(name)}" for name in names),
        f"GRANT SELECT ON salaries TO {B}",
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON orders USING (owner = current_user)",
    ]
    with postgres_database(statements) as url:
        name = url.rpartition("/")[2]
        yield f"postgresql://{GATE}@127.0.0.1:5432/{name}"
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"DROP OWNED BY {', '.join(map(quoted, names))}")
    with psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as admin:
        for statement in drop:
            admin.execute(statement)


def shop(url: str, role: str, **more: object) -> Sources:
    return build_sources(db=[read_connection("shop", {"url": url, "role": role, **more}, Path("/"))])


async def read(pool: Pool, reader: Reader, query: str, trusted: bool = False) -> list[list[object]]:
    data = await pool.member("shop", reader)
    tool = data.tools[0]
    assert isinstance(tool, SqlTool)
    return [list(row) for row in (await tool.worker.run(query, trusted=trusted)).rows]


WHO = "SELECT current_user::text"
"""A question of ours alone: the guard lets no statement of an LLM ask it."""
ORDERS = "SELECT id FROM orders ORDER BY id"
ANN, BOB = Reader(A, groups=(f"{OWN}_sales",)), Reader(B, groups=(f"{OWN}_sales",))


async def test_each_person_reads_what_their_role_may_in_a_worker_of_their_own(postgres: str) -> None:
    async with open_pool(shop(postgres, "{user}")) as pool:
        assert await read(pool, ANN, ORDERS) == [[1]]
        assert await read(pool, BOB, ORDERS) == [[2]]
        assert await read(pool, BOB, "SELECT pay FROM salaries") == [[99]]
        with pytest.raises(ToolError, match="permission denied"):
            await read(pool, ANN, "SELECT pay FROM salaries")
        assert await read(pool, ANN, WHO, True) == [[A]]
        # Both at once, again and again: no answer is another's.
        turns = [read(pool, one, ORDERS) for _ in range(20) for one in (ANN, BOB)]
        assert await asyncio.gather(*turns) == [[[1]], [[2]]] * 20
        assert len(pool.open) == 2


async def test_what_is_open_for_a_person_is_closed_when_it_is_idle_and_opens_again(postgres: str) -> None:
    async with open_pool(shop(postgres, "{user}")) as pool:
        for reader in (ANN, BOB):
            await read(pool, reader, ORDERS)
        workers = sessions_of(postgres)
        await pool.close_idle(60.0, set())
        assert sessions_of(postgres) == workers == 2
        # Ann has a run under way.
        await pool.close_idle(0.0, {A})
        assert [reader for _, reader in pool.open] == [ANN] and sessions_of(postgres) == 1
        assert await asyncio.gather(*(read(pool, one, ORDERS) for one in (ANN, BOB))) == [[[1]], [[2]]]


def sessions_of(url: str) -> int:
    """Count the sessions of the account that the server signs in by."""
    import psycopg

    with psycopg.connect(POSTGRES) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND datname = %s"
        row = connection.execute(query, (GATE, url.rpartition("/")[2].partition("?")[0])).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_role_is_a_name_with_a_part_of_the_persons_or_one_for_all(postgres: str) -> None:
    async with open_pool(shop(postgres, "app_{user}")) as pool:
        assert await read(pool, ANN, ORDERS) == [[3]]
    async with open_pool(shop(postgres, "{group}")) as pool:
        assert await read(pool, ANN, WHO, True) == [[f"{OWN}_sales"]]
        assert await read(pool, ANN, ORDERS) == await read(pool, BOB, ORDERS) == []
        assert len(pool.open) == 2
        with pytest.raises(SetupError, match="with one group"):
            await read(pool, replace(ANN, groups=("sales", "hr")), ORDERS)
    async with open_pool(shop(postgres, B)) as pool:
        assert await read(pool, ANN, ORDERS) == await read(pool, Reader(), ORDERS) == [[2]]


async def test_who_has_no_name_reads_in_no_role_of_a_person(postgres: str) -> None:
    async with open_pool(shop(postgres, "{user}")) as pool:
        with pytest.raises(SetupError, match="serve --users"):
            await read(pool, Reader(), ORDERS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "another role"),  # SET ROLE "none" is RESET ROLE
        ("NONE", "does not exist"),
        (GATE, "the account itself"),
        ("postgres", "permission denied to set role"),
        (f"{OWN}_stray", "permission denied to set role"),
        ("nobody", "does not exist"),
        (LONG + "x", "another role"),  # the server cuts it to the name of another role
        ('ann"; RESET ROLE; --', "does not exist"),
        ("ann\x00", "cannot be reached"),
    ],
    # Names hold the number of the process, and all processes of a run of tests must call a test alike.
    ids=range(9),
)
async def test_a_name_that_is_no_role_of_its_own_opens_nothing(postgres: str, name: str, words: str) -> None:
    async with open_pool(shop(postgres, "{user}")) as pool:
        with pytest.raises(SetupError, match=words):
            await read(pool, Reader(name), ORDERS)


async def test_a_name_with_quotes_is_one_name(postgres: str) -> None:
    async with open_pool(shop(postgres, "{user}")) as pool:
        name = ROLES[-1]
        assert await read(pool, Reader(name), WHO, True) == [[name]]


async def test_a_superuser_takes_the_role_of_nobody(postgres: str) -> None:
    url = postgres.replace(GATE, ROOT)
    async with open_pool(shop(url, "{user}")) as pool:
        with pytest.raises(SetupError, match="superuser"):
            await read(pool, ANN, ORDERS)


LEAVING = (
    "RESET ROLE",
    "SET ROLE bob",
    "SET ROLE NONE",
    "SET SESSION AUTHORIZATION DEFAULT",
    "SET LOCAL ROLE bob",
    "SELECT set_config('role', 'bob', false)",
    "SELECT pg_catalog.set_config('role', 'none', true)",
    "SELECT 1; SET ROLE bob",
    "ROLLBACK; RESET ROLE",
    "DISCARD ALL",
    "WITH one AS (SELECT set_config('role', 'bob', false) AS x) SELECT * FROM one, salaries",
    "DO $$ BEGIN EXECUTE 'SET ROLE bob'; END $$",
    "SELECT query_to_xml('RESET ROLE', true, true, '')",
    "UPDATE pg_settings SET setting = 'bob' WHERE name = 'role'",
)


async def test_no_statement_leaves_the_role(postgres: str) -> None:
    async with open_pool(shop(postgres, "{user}")) as pool:
        for statement in LEAVING:
            with pytest.raises(ToolError) as refused:
                await read(pool, ANN, statement)
            assert refused.value.refused, statement
            assert await read(pool, ANN, WHO, True) == [[A]]
        with pytest.raises(ToolError, match="permission denied"):
            await read(pool, ANN, "SELECT pay FROM salaries")


async def test_a_connection_that_broke_off_comes_back_in_the_role(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    async with open_pool(shop(postgres, "{user}")) as pool:
        assert await read(pool, ANN, ORDERS) == [[1]]
        with psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (GATE,))
        for _ in range(2):
            with suppress(ToolError):  # the first statement may be the one that hears of it
                assert await read(pool, ANN, ORDERS) == [[1]]
        assert await read(pool, ANN, WHO, True) == [[A]]


async def test_a_run_in_one_role_is_shown_to_nobody_in_another(postgres: str) -> None:
    async with open_pool(shop(postgres, "{user}")) as pool:
        sight = sight_of(pool, ["shop"], ANN)
        assert may_see(User(A, None, ANN), sight, pool)
        assert not may_see(User(B, None, BOB), sight, pool)
        assert not may_see(User("", None, Reader()), sight, pool)
    async with open_pool(shop(postgres, "{group}")) as pool:
        assert may_see(User(B, None, BOB), sight_of(pool, ["shop"], ANN), pool)


@pytest.mark.parametrize("server", [MARIADB, MYSQL], ids=["mariadb", "mysql"])
async def test_mysql_and_mariadb_read_in_the_role_too(server: str) -> None:
    statements = [
        "CREATE TABLE orders (id integer PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)",
        "CREATE TABLE salaries (pay integer)",
        "INSERT INTO salaries VALUES (99)",
        f"CREATE ROLE {A}",
        f"CREATE ROLE {B}",
        f"CREATE USER {GATE}@'%'",
        f"GRANT {A} TO {GATE}@'%'",
        f"GRANT {B} TO {GATE}@'%'",
        f"GRANT SELECT ON orders TO {A}",
        f"GRANT SELECT ON orders TO {B}",
        f"GRANT SELECT ON salaries TO {B}",
    ]
    with mysql_database(statements, server) as url:
        async with open_pool(shop(url.replace("root@", f"{GATE}@"), "{user}")) as pool:
            assert await read(pool, BOB, "SELECT pay FROM salaries") == [[99]]
            assert await read(pool, ANN, "SELECT id FROM orders") == [[1]]
            with pytest.raises(ToolError, match="denied"):
                await read(pool, ANN, "SELECT pay FROM salaries")
            for statement in (
                f"SET ROLE {B}",
                "SET ROLE ALL",
                f"SET DEFAULT ROLE {B} TO {GATE}",
                f"SELECT 1; SET ROLE {B}",
            ):
                with pytest.raises(ToolError) as refused:
                    await read(pool, ANN, statement)
                assert refused.value.refused, statement
            for name in ("none", "NONE", "all", "default", "nobody", f"{B}`@`%", f"{A}`, `{B}"):
                with pytest.raises(SetupError):
                    await read(pool, Reader(name), "SELECT id FROM orders")
    with mysql_database([f"DROP ROLE {A}", f"DROP ROLE {B}", f"DROP USER {GATE}@'%'"], server):
        pass


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///{folder}/a.db", "SQLite sets no role here"),
        ("duckdb:///{folder}/a.duckdb", "DuckDB sets no role here"),
        ("{folder}/notes", "no database with roles"),
    ],
)
async def test_what_has_no_roles_is_refused_in_a_sentence(tmp_path: Path, url: str, words: str) -> None:
    import sqlite3

    import duckdb

    sqlite3.connect(tmp_path / "a.db").close()
    duckdb.connect(tmp_path / "a.duckdb").close()
    (tmp_path / "notes").mkdir()
    connection = read_connection("shop", {"url": url.format(folder=tmp_path), "role": "{user}"}, tmp_path)
    sources = build_sources(docs=[connection]) if "notes" in url else build_sources(db=[connection])
    async with open_pool(sources) as pool:
        with pytest.raises(SetupError, match=words):
            await pool.member(next(iter(pool.members)), ANN)
