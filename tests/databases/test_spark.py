"""Spark itself, through Spark Connect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.sandbox.access import Access
from decisor.sandbox.dialect import FullName
from decisor.sandbox.engine import Caps, build_policy
from decisor.sandbox.engines.spark import DIALECT, URL, spark_complaint
from decisor.sandbox.process import Worker
from decisor.sandbox.sql_guard import SqlGuard
from servers.spark_server import spark_database

PLANTS = (
    "CREATE TABLE {schema}.plant AS SELECT * FROM VALUES (1, 'Ghent', 3.5), (2, '100%:x', 1.0) AS t(id, city, cost)",
    "CREATE TABLE {schema}.secrets AS SELECT 'x' AS token",
    "CREATE VIEW {schema}.cheap AS SELECT city FROM {schema}.plant WHERE cost < 2",
    "CREATE VIEW {schema}.leak AS SELECT token FROM {schema}.secrets",
)
CAPS = Caps(seconds=60)
ENDLESS = "SELECT count(*) FROM range(10000000000) AS a CROSS JOIN range(1000) AS b WHERE a.id % 7 = b.id % 5"


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE plant",
        "INSERT INTO plant VALUES (3, 'x', 1)",
        "CACHE TABLE plant",
        "ADD JAR '/x.jar'",
        "SET spark.sql.ansi.enabled = false",
        "USE other",
        "CREATE TABLE t AS SELECT 1 AS x",
        "REFRESH TABLE plant",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
        "SELECT * FROM text.`/etc/passwd`",
        "SELECT * FROM csv.passwd",
        "SELECT TRANSFORM(city) USING 'cat' AS (x) FROM plant",
        "SELECT java_method('java.lang.System', 'exit', 1)",
        "SELECT reflect('java.lang.System', 'exit', 1)",
        "SELECT input_file_name() FROM plant",
        "SELECT current_user()",
        "SELECT /*+ BROADCAST(plant) */ * FROM plant",
        "SELECT * FROM secrets",
        "SELECT my_udf(city) FROM plant",
        "SELECT * FROM other.shop.plant",
        "SHOW TABLES",
        "DESCRIBE plant",
        "EXPLAIN SELECT 1",
        "SELECT 1; SELECT 2",
        "EXECUTE IMMEDIATE 'DROP TABLE plant'",
        "BEGIN SELECT 1; END",
        "FROM plant INSERT INTO other SELECT *",
    ],
)
def test_what_is_no_reading_of_what_may_be_read_is_refused(query: str) -> None:
    with pytest.raises(ToolError) as complaint:
        SqlGuard(DIALECT, Access(hidden=frozenset({FullName("", "secrets")}))).check(query)
    assert complaint.value.refused


def test_a_url_names_the_server_its_database_and_options() -> None:
    parts = URL.fullmatch("sc://host:15002/shop;token=x;use_ssl=true")
    assert parts and parts.groups() == ("host:15002", "shop", ";token=x;use_ssl=true")
    parts = URL.fullmatch("spark://host:15002")
    assert parts and parts.groups() == ("host:15002", "", None)


def test_a_complaint_comes_without_the_plan_of_the_query() -> None:
    error = Exception("[X] no column `a`. SQLSTATE: 42703; line 1 pos 7;\n'Project ['a]\n+- Relation")
    assert spark_complaint(error) == "[X] no column `a`. SQLSTATE: 42703"
    error = Exception('<RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "refused"\n>')
    assert spark_complaint(error) == "refused"


async def test_nobody_who_answers_is_told_in_a_line() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(SetupError, match="Spark cannot be reached") as error:
        await Worker("spark", "sc://127.0.0.1:1/shop").start()
    assert "\n" not in str(error.value)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with spark_database(PLANTS) as url:
        yield url


@pytest_asyncio.fixture
async def worker(url: str) -> AsyncIterator[Worker]:
    worker = Worker("spark", url, Caps(seconds=60, deny=("secrets",)))
    yield worker
    await worker.close()


@pytest.mark.slow
async def test_it_is_described_and_asked_without_what_is_denied(url: str) -> None:
    tool = await SqlTool.open(url, deny_tables=["secrets"], caps=CAPS)
    text = tool.describe()
    assert "A Spark database." in text and "table plant" in text and "view cheap" in text
    assert "secrets" not in text and "leak" not in text
    seen = await tool.call("SELECT City FROM plant WHERE city LIKE '%:x%'")
    assert [tuple(record.fields.values()) for record in seen.records] == [("100%:x",)]
    with pytest.raises(ToolError, match="may not be read"):
        await tool.call("SELECT * FROM leak")
    with pytest.raises(ToolError, match="citty"):
        await tool.call("SELECT citty FROM plant")
    await tool.close()


@pytest.mark.slow
async def test_rows_are_capped_and_parameters_are_values(worker: Worker) -> None:
    many = await worker.run("SELECT id FROM range(100000000)", caps=Caps(rows=3, seconds=60))
    assert len(many.rows) == 3 and many.truncated
    one = await worker.run("SELECT id FROM plant WHERE city = :city", {"city": "Ghent"}, trusted=True)
    assert one.rows == ((1,),)


@pytest.mark.slow
async def test_masks_of_readers_are_kept_to_and_their_rows_are_refused(url: str) -> None:
    with pytest.raises(SetupError, match="rows are not kept to on Spark"):
        await Worker("spark", url, Caps(policy=build_policy({"plant": "cost < 2"}, ()))).start()
    worker = Worker("spark", url, Caps(seconds=60, policy=build_policy({}, ["plant.city"])))
    cells = (await worker.run("SELECT city FROM plant UNION SELECT city FROM cheap")).rows
    assert len(cells) == 2 and all(str(cell[0]).startswith("masked_") for cell in cells)
    await worker.close()


@pytest.mark.slow
async def test_a_query_that_is_given_up_ends_on_the_server(worker: Worker) -> None:
    """With two cores, the next query would not end beside one that holds both."""
    await worker.start()
    running = asyncio.create_task(worker.run(ENDLESS))
    await asyncio.sleep(5)
    running.cancel()
    assert (await worker.run("SELECT count(*) FROM plant")).rows == ((2,),)
