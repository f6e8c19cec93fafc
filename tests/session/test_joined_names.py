"""Names of tables and columns, joined by commas or not, keep back what they name, or are refused."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.errors import SetupError, ToolError
from decisor.session.access import Reader
from decisor.session.pool import Pool, open_pool, split_into_members
from decisor.session.sources import build_sources
from servers.sql_databases import mysql_database, postgres_database

SECRETS = {"a": "+49 111", "b": "+49 222"}


@pytest.fixture
def shops(tmp_path: Path) -> list[str]:
    for name, phone in SECRETS.items():
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as database, database:
            database.execute("CREATE TABLE customers (name TEXT, phone TEXT)")
            database.execute("CREATE TABLE staff (name TEXT)")
            database.execute("INSERT INTO customers VALUES ('Ann', ?)", [phone])
            database.execute("INSERT INTO customers VALUES ('Bo', '5')")
    return [f"{name}={tmp_path / name}.db" for name in SECRETS]


async def readable(shops: list[str], words: Mapping[str, Any]) -> list[str]:
    """The phones of Ann that a query of a model brings from either shop."""
    found = []
    async with decisor.open(db=shops, **words) as data:
        for tool in data.tools[:2]:
            try:
                observation = await tool.call("SELECT phone FROM customers WHERE name = 'Ann'")
            except ToolError:
                continue
            found += [str(one.fields["phone"]) for one in observation.records]
            found += [phone for phone in SECRETS.values() if phone in tool.describe()]
    return [phone for phone in found if phone in SECRETS.values()]


BACK: list[dict[str, Any]] = [
    {"mask": "a.customers.phone,b.customers.phone"},
    {"mask": ["a.customers.phone, b.customers.phone"]},
    {"mask": "customers.phone"},
    {"mask": 'a.main.customers.phone,b."customers"."phone"'},
    {"mask": "A.customers.phone,b.customers.phone"},
    {"mask": "b.customers.phone,,a.customers.phone,"},
    {"deny_tables": "a.customers,b.customers"},
    {"deny_tables": ["a.customers ,b.CUSTOMERS"]},
    {"deny_tables": "a.customers;b.customers"},
    {"tables": "a.staff,b.staff"},
    {"tables": ["a.staff,b.staff"]},
    {"rows": {"a.customers,b.customers": "name = 'Bo'"}},
    {"rows": {"a.customers, b.main.customers": "name = 'Bo'"}},
    {"rows": {"customers": "name = 'Bo'"}},
]


@pytest.mark.parametrize("words", BACK, ids=str)
async def test_what_is_joined_by_commas_is_kept_back_of_each_source(shops: list[str], words: dict[str, Any]) -> None:
    with suppress(SetupError):
        assert await readable(shops, words) == []


async def test_the_usual_ways_to_join_are_taken(shops: list[str]) -> None:
    for words in (BACK[0], BACK[1], BACK[3], BACK[5], BACK[6], BACK[7], BACK[9], BACK[10], BACK[11], BACK[12]):
        assert await readable(shops, words) == [], words


NOTHING: list[dict[str, Any]] = [
    {"mask": "c.customers.phone"},
    {"mask": "a.customers.fax"},
    {"mask": "a.clients.phone"},
    {"mask": "a.hr.customers.phone"},
    {"mask": "phone"},
    {"deny_tables": "c.customers"},
    {"deny_tables": "a.clients"},
    {"deny_tables": "a.hr.customers"},
    {"deny_tables": "customers,c.staff"},
    {"tables": "c.staff"},
    {"tables": "a.hr.staff"},
    {"tables": "a.staff,b.stuff"},
    {"rows": {"c.customers": "name = 'Bo'"}},
    {"rows": {"a.hr.customers": "name = 'Bo'"}},
    {"rows": {"a.clients": "name = 'Bo'"}},
    {"rows": {"a.customers,c.customers": "name = 'Bo'"}},
    {"reveal": True},
    {"mask": ","},
    {"mask": [""]},
    {"deny_tables": [" , "]},
    {"tables": ","},
    {"tables": ["", "a.staff"]},
    {"rows": {",": "name = 'Bo'"}},
    {"rows": {"": "name = 'Bo'"}},
]


@pytest.mark.parametrize("words", NOTHING, ids=str)
async def test_a_name_a_schema_or_a_source_that_matches_nothing_is_an_error(
    shops: list[str], words: dict[str, Any]
) -> None:
    with pytest.raises(SetupError):
        await readable(shops, words)


@pytest.mark.parametrize("option", ["tables", "deny_tables"])
async def test_tables_of_no_database_are_an_error(tmp_path: Path, option: str) -> None:
    (tmp_path / "a.txt").write_text("The lease ends in May.")
    words: dict[str, Any] = {option: "staff"}
    with pytest.raises(SetupError, match="no database with a table staff"):
        async with decisor.open(docs=str(tmp_path), **words):
            pass


@pytest.mark.parametrize(
    "words",
    [
        {"deny_tables": "hr.Country"},
        {"tables": "hr.Country"},
        {"rows": {"hr.Country": "name = 'x'"}},
        {"mask": "hr.Country.name"},
    ],
    ids=str,
)
async def test_a_label_has_no_schema(words: dict[str, Any]) -> None:
    from decisor.lab.dqa.generator import make_example

    with pytest.raises(SetupError):
        async with decisor.open(graph=make_example("trade").graph_url, **words):
            pass


async def test_a_table_with_a_dot_or_a_comma_in_its_name_is_denied_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as database, database:
        for name in ("hr.staff", "pay, old", "staff"):
            database.execute(f'CREATE TABLE "{name}" (pay TEXT)')
    async with decisor.open(db=str(path), deny_tables='"hr.staff","pay, old"') as data:
        tool = data.tools[0]
        for name in ("hr.staff", "pay, old"):
            with pytest.raises(ToolError):
                await tool.call(f'SELECT * FROM "{name}"')
        await tool.call("SELECT * FROM staff")
    with pytest.raises(SetupError, match=r"hr\.staff"):
        async with decisor.open(db=str(path), deny_tables="hr.staff"):
            pass


@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
async def test_a_schema_that_a_server_has_not_is_an_error(engine: str) -> None:
    database = postgres_database if engine == "postgresql" else mysql_database
    with database(["CREATE TABLE staff (pay INT)", "CREATE TABLE site (name INT)"]) as url:
        schema = "public" if engine == "postgresql" else url.rpartition("/")[2].partition("?")[0]
        for words in ({"deny_tables": "nosuch.staff"}, {"tables": "nosuch.staff"}):
            with pytest.raises(SetupError, match="nosuch"):
                await opened_tables(url, **words)
        assert await opened_tables(url, deny_tables=f"{schema}.staff") == ["site"]


async def opened_tables(url: str, **words: Any) -> list[str]:
    async with decisor.open(db=url, **words) as data:
        return [one.bare for one in data.databases[0].tables]


async def test_a_reader_of_a_server_gets_no_source_open_by_a_comma(shops: list[str]) -> None:
    reader = Reader("ann", mask=("a.customers.phone,b.customers.phone",))
    async with open_pool(build_sources(db=shops)) as pool:
        for name in SECRETS:
            data = await pool.member(name, reader)
            observation = await data.tools[0].call("SELECT phone FROM customers WHERE name = 'Ann'")
            assert str(observation.records[0].fields["phone"]).startswith("masked_")


def test_documents_beside_databases_are_members_without_tables(shops: list[str]) -> None:
    members = split_into_members(build_sources(db=shops, docs="reports/", deny_tables="staff"))
    assert [one.deny_tables for one in members.values()] == [("staff",), ("staff",), ()]


@pytest.mark.parametrize(
    "line",
    [
        'mask = ["a.customers.phone,c.customers.phone"]',
        'rows = { "c.staff" = "1=1" }',
        "reveal = true",
        'mask = ["phone"]',
        'mask = [","]',
        'rows = { "" = "1=1" }',
    ],
)
async def test_a_file_of_users_that_keeps_nothing_back_opens_no_source(
    shops: list[str], tmp_path: Path, line: str
) -> None:
    from decisor.cli.serve import read_server_users

    file = tmp_path / "users.toml"
    file.write_text(f'[ann]\ntoken = "sha256:{"0" * 64}"\n{line}\n')
    sources = build_sources(db=shops)

    async def open_member(pool: Pool, name: str) -> None:
        users, _ = read_server_users(file, sources, is_local=True)
        await pool.member(name, (await users.by_name())["ann"].reader)

    async with open_pool(sources) as pool:
        for name in SECRETS:
            with pytest.raises(SetupError):
                await open_member(pool, name)


def test_a_connection_of_a_config_file_is_kept_back_alike(tmp_path: Path, shops: list[str]) -> None:
    from decisor.session.config import read_connection

    def phone(**table: object) -> str:
        place = shops[0].partition("=")[2]
        connection = read_connection("shop", {"url": f"sqlite:///{place}", **table}, tmp_path)

        async def look() -> str:
            async with decisor.open(db=connection) as data:
                observation = await data.tools[0].call("SELECT phone FROM customers WHERE name = 'Ann'")
                return str(observation.records[0].fields["phone"])

        return asyncio.run(look())

    assert phone(mask={"staff.name,customers.phone": "token"}).startswith("masked_")
    for table in ({"deny_tables": ["staff,customers"]}, {"tables": ["staff,staff"]}):
        with pytest.raises(ToolError):
            phone(**table)
    faults: list[dict[str, Any]] = [
        {"mask": {"customers.phone,customers.fax": "token"}},
        {"deny_tables": ["hr.staff"]},
        {"rows": {"customers,clients": "name = 'Bo'"}},
        {"mask": {",": "token"}},
        {"deny_tables": [""]},
        {"tables": [","]},
    ]
    for table in faults:
        with pytest.raises(SetupError):
            phone(**table)


def test_a_table_that_rows_names_twice_is_an_error(shops: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["--rows", "customers=name = 'Bo'", "--rows", "customers=1 = 1"]
    assert (
        run_command_line(["ask", "Who?", "--db", shops[0], *rows, "--llm", "none"]) == 2
        and "twice" in capsys.readouterr().err
    )
