"""A name that the engine reads as another one, or that a WITH lends to a view, opens nothing."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which

import pytest

from databases.test_hidden_tables import KINDS, SHOP, database
from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from decisor.sandbox.engine import build_policy
from servers.sql_databases import postgres_database

LONG = "x" * 63
ACTING = {
    "postgres": (
        "CREATE FUNCTION touch() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT max(token) FROM secrets'",
        "CREATE VIEW v_touch AS SELECT touch() AS t",
    ),
    "mysql": ("CREATE VIEW v_touch AS SELECT SLEEP(0.01) AS t",),
    "mariadb": ("CREATE VIEW v_touch AS SELECT SLEEP(0.01) AS t",),
}
"""A view that does what no query may."""


async def refusals(tool: SqlTool, texts: Sequence[str]) -> None:
    for text in texts:
        with pytest.raises(ToolError) as complaint:
            await tool.call(text)
        assert complaint.value.refused, text


@pytest.mark.parametrize("kind", ACTING)
async def test_a_with_of_its_name_does_not_open_a_view_that_acts(kind: str, tmp_path: Path) -> None:
    quote = '"' if kind == "postgres" else "`"
    with database(kind, tmp_path, [*SHOP, *ACTING[kind]]) as url:
        tool = await SqlTool.open(url, deny_tables=["secrets"])
        await refusals(
            tool,
            (
                "SELECT t FROM v_touch",
                "WITH v_touch AS (SELECT t FROM v_touch) SELECT t FROM v_touch",
                f"WITH {quote}V_TOUCH{quote} AS (SELECT 1 AS t) SELECT t FROM v_touch",
                "SELECT v_touch.t FROM v_touch, (WITH v_touch AS (SELECT 1 AS t) SELECT t FROM v_touch) AS z",
            ),
        )
        await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_with_of_its_name_does_not_open_a_denied_table(kind: str, tmp_path: Path) -> None:
    texts = [
        text.format(name=name)
        for name in ("secrets", "SECRETS", "peek")
        for text in (
            "WITH {name} AS (SELECT * FROM {name}) SELECT * FROM {name}",
            "SELECT 1 FROM {name}, (WITH {name} AS (SELECT 1 AS t) SELECT t FROM {name}) AS z",
        )
    ]
    with database(kind, tmp_path) as url:
        for tool in (await SqlTool.open(url, deny_tables=["secrets"]), await SqlTool.open(url, tables=["plant"])):
            await refusals(tool, texts)
            await tool.close()


async def test_postgres_reads_a_long_name_only_in_part_and_so_does_the_guard() -> None:
    tables = (f"CREATE TABLE {LONG}(token text)", f"INSERT INTO {LONG} VALUES ('CANARY')", "CREATE TABLE plant(id int)")
    with postgres_database(tables) as url:
        denied = await SqlTool.open(url, deny_tables=[LONG])
        await refusals(
            denied,
            (
                f"SELECT * FROM {LONG}y",
                f'SELECT * FROM "{LONG}é"',
                f'TABLE "{LONG}z"',
                f"WITH {LONG}y AS (SELECT 1) SELECT * FROM {LONG}",
            ),
        )
        await denied.close()
        masked = await SqlTool.open(url, policy=build_policy({}, [f"{LONG}.token"]))
        seen = await masked.call(f"SELECT token FROM {LONG}y")
        assert str(seen.records[0].fields["token"]).startswith("masked_")
        await masked.close()
        plain = await SqlTool.open(url)
        assert len((await plain.call(f"SELECT 1 AS {'a' * 80}")).records) == 1
        await plain.close()


@pytest.fixture(scope="module")
def lower_case_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A MariaDB of its own that keeps names in lower case, as on Windows and macOS."""
    pymysql = pytest.importorskip("pymysql")
    if not which("mariadbd") or not which("mariadb-install-db"):
        pytest.skip("no mariadbd here")
    folder = tmp_path_factory.mktemp("lower")
    (folder / "data").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}  # its threads break
    own = ["--no-defaults", f"--datadir={folder}/data", "--lower-case-table-names=1", "--user=root"]
    subprocess.run(
        ["mariadb-install-db", *own, "--auth-root-authentication-method=normal"],
        check=True,
        capture_output=True,
        env=variables,
    )
    server = subprocess.Popen(
        [
            "mariadbd",
            *own,
            f"--port={port}",
            "--bind-address=127.0.0.1",
            f"--socket={folder}/socket",
            "--innodb-buffer-pool-size=16M",
            "--skip-log-bin",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=variables,
    )
    try:
        for _ in range(300):
            try:
                db = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True)
                break
            except pymysql.Error:
                time.sleep(0.1)
        with db, db.cursor() as cursor:
            for statement in (
                "CREATE DATABASE shop CHARACTER SET utf8mb4",
                "USE shop",
                "CREATE TABLE private(token TEXT)",
                "INSERT INTO private VALUES ('CANARY')",
            ):
                cursor.execute(statement)
        yield f"mysql://root@127.0.0.1:{port}/shop"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.slow
async def test_a_letter_that_mysql_folds_in_its_own_way_opens_no_denied_table(lower_case_server: str) -> None:
    denied = await SqlTool.open(lower_case_server, deny_tables=["private"])
    await refusals(
        denied,
        (
            "SELECT * FROM `prİvate`",
            "SELECT * FROM `SHOP`.`PRİVATE`",
            "SHOW COLUMNS FROM `prİvate`",
            "SELECT info FROM `İnformation_schema`.processlist",
            "SELECT * FROM `İnformation_schema`.`vİews`",
        ),
    )
    await denied.close()
    masked = await SqlTool.open(lower_case_server, policy=build_policy({}, ["private.token"]))
    seen = await masked.call("SELECT token FROM `prİvate`")
    assert str(seen.records[0].fields["token"]).startswith("masked_")
    await refusals(masked, ("WITH `prİvate` AS (SELECT 1) SELECT * FROM private",))
    await masked.close()
