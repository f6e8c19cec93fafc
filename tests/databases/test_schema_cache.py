"""Catalogs of large databases are kept by their fingerprint: what makes a database be read again, and who sees what."""

import json
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import psycopg
import pymysql
import pytest

from decisor.databases.schema import TableInfo
from decisor.databases.sql import SqlTool
from servers.sql_databases import MYSQLS, mysql_database, postgres_database

TABLES = (
    "CREATE TABLE city (id integer PRIMARY KEY, name text)",
    "CREATE TABLE site (id integer PRIMARY KEY, city text)",
)


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("schema", "sql"):
        monkeypatch.setattr(f"decisor.databases.{module}.LARGE", 1)


@pytest.fixture
def cities(tmp_path: Path) -> Path:
    path = tmp_path / "cities.db"
    change(path, *TABLES)
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


async def schema_of(url: str, **options: tuple[str, ...]) -> dict[str, TableInfo]:
    tool = await SqlTool.open(url, **options)  # type: ignore[arg-type]
    await tool.close()
    return {table.name: table for table in tool.tables}


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "decisor" / "schemas").glob("*.json"))


def mark(file: Path) -> None:
    """A comment that only the file has."""
    data = json.loads(file.read_text())
    for table in data["tables"]:
        table["comment"] = "from the file"
    file.write_text(json.dumps(data))


async def test_a_database_that_did_not_change_is_read_from_its_file(cities: Path, tmp_path: Path) -> None:
    first = await schema_of(str(cities))
    (file,) = files(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert await schema_of(str(cities)) == first
    mark(file)
    change(cities, "INSERT INTO city VALUES (1, 'Genua')")
    again = await schema_of(str(cities))
    assert [table.comment for table in again.values()] == ["from the file"] * 2
    assert "Genua" not in file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE rent (euros int)",
        "ALTER TABLE city ADD COLUMN country text",
        "DROP TABLE site",
        "ALTER TABLE city RENAME COLUMN name TO called",
        "CREATE VIEW v AS SELECT name FROM city",
    ],
)
async def test_any_change_of_a_table_is_seen_at_the_next_opening(statement: str, cities: Path, tmp_path: Path) -> None:
    before = await schema_of(str(cities))
    mark(files(tmp_path)[0])
    change(cities, statement)
    after = await schema_of(str(cities))
    assert after != before
    assert not any(table.comment for table in after.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE rent (euros int)",
        "ALTER TABLE city ADD COLUMN country text",
        "DROP TABLE site",
        "ALTER TABLE city RENAME COLUMN name TO called",
        "ALTER TABLE site ALTER COLUMN city TYPE varchar(9)",
        "COMMENT ON TABLE city IS 'towns too'",
        "COMMENT ON COLUMN city.name IS 'in its own language'",
        "ALTER TABLE site ADD FOREIGN KEY (id) REFERENCES city (id)",
        "ALTER TABLE site ALTER COLUMN city SET NOT NULL",
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'glum'",
    ],
)
async def test_any_change_of_a_table_in_postgresql_is_seen_at_the_next_opening(statement: str, tmp_path: Path) -> None:
    moods = ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "ALTER TABLE site ADD COLUMN felt mood")
    with postgres_database([*TABLES, *moods]) as url:
        before = await schema_of(url)
        assert await schema_of(url) == before
        (file,) = files(tmp_path)
        mark(file)
        assert {table.comment for table in (await schema_of(url)).values()} == {"from the file"}
        with psycopg.connect(url) as db:
            db.execute(statement.encode())
        after = await schema_of(url)
        assert after != before
        assert "from the file" not in {table.comment for table in after.values()}
        assert await schema_of(url) == after


IN_DUCKDB = [
    "CREATE TABLE rent (euros int)",
    "ALTER TABLE city ADD COLUMN country text",
    "DROP TABLE site",
    "ALTER TABLE city RENAME COLUMN name TO called",
    "ALTER TABLE site ALTER COLUMN city TYPE integer",
    "COMMENT ON TABLE city IS 'towns too'",
    "COMMENT ON COLUMN city.name IS 'in its own language'",
    "ALTER TABLE site ALTER COLUMN city SET NOT NULL",
    "CREATE VIEW v AS SELECT name FROM city",
    "INSERT INTO city SELECT i, 'x' FROM range(20) AS t(i)",
]


@pytest.mark.slow
@pytest.mark.parametrize("statement", IN_DUCKDB)
async def test_any_change_of_a_table_in_duckdb_is_seen_at_the_next_opening(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "cities.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(";".join(TABLES))
    before = await schema_of(str(path))
    assert await schema_of(str(path)) == before
    mark(files(tmp_path)[0])
    assert {table.comment for table in (await schema_of(str(path))).values()} == {"from the file"}
    with duckdb.connect(str(path)) as db:
        db.execute(statement)
    after = await schema_of(str(path))
    assert after != before
    assert "from the file" not in {table.comment for table in after.values()}


IN_MYSQL = [
    "CREATE TABLE rent (euros int)",
    "ALTER TABLE city ADD COLUMN country text",
    "DROP TABLE site",
    "ALTER TABLE site MODIFY COLUMN city varchar(9)",
    "ALTER TABLE city COMMENT = 'towns too'",
    "ALTER TABLE city MODIFY COLUMN name text COMMENT 'its own'",
    "ALTER TABLE site ADD FOREIGN KEY (id) REFERENCES city (id)",
    "ALTER TABLE site MODIFY COLUMN city text NOT NULL",
    "ALTER TABLE city MODIFY COLUMN size enum('S', 'L')",
    "CREATE VIEW v AS SELECT id FROM city",
    "ALTER TABLE city CHANGE COLUMN name called text",
]


@pytest.mark.slow
@pytest.mark.parametrize("server", MYSQLS)
async def test_any_change_of_a_table_in_mysql_is_seen_at_the_next_opening(server: str, tmp_path: Path) -> None:
    with mysql_database([*TABLES, "ALTER TABLE city ADD COLUMN size enum('S', 'M')"], MYSQLS[server]) as url:
        parts = urlsplit(url)
        with pymysql.connect(host="127.0.0.1", port=parts.port or 3306, user="root", database=parts.path[1:]) as db:
            for statement in IN_MYSQL:
                before = await schema_of(url)
                assert await schema_of(url) == before
                mark(files(tmp_path)[0])
                assert {table.comment for table in (await schema_of(url)).values()} == {"from the file"}
                with db.cursor() as cursor:
                    cursor.execute(statement)
                after = await schema_of(url)
                assert after != before, statement
                assert "from the file" not in {table.comment for table in after.values()}, statement
                if statement.startswith("DROP"):
                    with db.cursor() as cursor:
                        cursor.execute(TABLES[1])


async def test_who_may_see_less_does_not_read_the_file_of_who_sees_more(cities: Path, tmp_path: Path) -> None:
    change(cities, "CREATE TABLE salary (euros int)")
    assert "salary" in await schema_of(str(cities))
    for _ in range(2):
        assert sorted(await schema_of(str(cities), deny_tables=("salary",))) == ["city", "site"]
    assert len(files(tmp_path)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "fingerprint": 3, "relations": [1]}'])
async def test_a_damaged_file_is_written_anew(text: str, cities: Path, tmp_path: Path) -> None:
    first = await schema_of(str(cities))
    (file,) = files(tmp_path)
    whole = file.read_text()
    file.write_text(text)
    assert await schema_of(str(cities)) == first
    assert file.read_text() == whole


async def test_where_nothing_can_be_written_the_catalog_is_read_each_time(cities: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert sorted(await schema_of(str(cities))) == sorted(await schema_of(str(cities))) == ["city", "site"]


def test_the_catalogs_of_databases_need_nothing_of_documents() -> None:
    code = "import sys, decisor.databases.schema; print([m for m in sys.modules if '.documents' in m])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
