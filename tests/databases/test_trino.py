"""Trino itself, through SQLAlchemy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from decisor.sandbox.engine import Caps, build_policy
from servers.trino_server import say, trino_database

PLANTS = (
    "CREATE TABLE {schema}.plant AS SELECT * FROM (VALUES (1, 'Ghent', 3.5), (2, '100%:x', 1.0)) AS t(id, city, cost)",
    "CREATE TABLE {schema}.secrets AS SELECT 'x' AS token",
    "CREATE VIEW {schema}.cheap AS SELECT city FROM {schema}.plant WHERE cost < 2",
    "CREATE VIEW {schema}.leak AS SELECT token FROM {schema}.secrets",
)
ENDLESS = "SELECT count(*) FROM tpch.sf1.lineitem AS a CROSS JOIN tpch.sf1.lineitem AS b WHERE a.comment < b.comment"
RUNNING = (
    "SELECT count(*) FROM system.runtime.queries WHERE state = 'RUNNING' AND query LIKE '%CROSS%JOIN%' "
    "AND query NOT LIKE '%runtime%'"
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with trino_database(PLANTS) as url:
        yield url


@pytest_asyncio.fixture
async def plants(url: str) -> AsyncIterator[SqlTool]:
    tool = await SqlTool.open(url, deny_tables=["secrets"], caps=Caps(seconds=30))
    yield tool
    await tool.close()


async def test_it_is_described_without_what_is_denied(plants: SqlTool) -> None:
    text = plants.describe()
    assert "A Trino database." in text and "table plant" in text and "view cheap" in text
    assert "secrets" not in text and "leak" not in text


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT City FROM Plant WHERE city LIKE '%:x%'", [("100%:x",)]),
        ("SELECT * FROM cheap", [("100%:x",)]),
        ("WITH p AS (SELECT cost FROM plant) SELECT sum(cost) AS total FROM p", [(4.5,)]),
        ("SELECT approx_percentile(CAST(cost AS DOUBLE), 0.5) AS x FROM plant", [(3.5,)]),
        ("SELECT array_join(array_agg(city ORDER BY id), '|') AS x FROM plant", [("Ghent|100%:x",)]),
        ("SELECT date_diff('day', DATE '2024-01-01', DATE '2024-03-01') AS x", [(60,)]),
        ("SELECT x FROM UNNEST(sequence(1, 3)) AS t(x) ORDER BY x DESC LIMIT 1", [(3,)]),
    ],
)
async def test_queries_bring_their_rows(query: str, rows: list[tuple[object, ...]], plants: SqlTool) -> None:
    seen = await plants.call(query)
    assert [tuple(record.fields.values()) for record in seen.records] == rows


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE plant",
        "INSERT INTO plant VALUES (3, 'x', 1)",
        "CREATE TABLE t AS SELECT 1 AS x",
        "DELETE FROM plant",
        "CALL system.runtime.kill_query('x')",
        "SELECT * FROM system.runtime.queries",
        "SELECT * FROM secrets",
        "SELECT * FROM leak",
        "SELECT * FROM tpch.tiny.nation",
        "SELECT * FROM TABLE(tpch.system.query(query => 'x'))",
        "SET SESSION query_max_run_time = '1d'",
        "SELECT 1; SELECT 2",
    ],
)
async def test_what_is_no_reading_of_what_may_be_read_is_refused(query: str, plants: SqlTool) -> None:
    with pytest.raises(ToolError) as complaint:
        await plants.call(query)
    assert complaint.value.refused


async def test_a_catalog_beside_is_read_where_nothing_is_denied(url: str) -> None:
    tool = await SqlTool.open(url, caps=Caps(seconds=30))
    seen = await tool.call("SELECT count(*) AS n FROM tpch.tiny.nation")
    assert seen.records[0].fields == {"n": 25}
    await tool.close()


async def test_a_misspelt_name_gets_a_hint(plants: SqlTool) -> None:
    with pytest.raises(ToolError, match=r"Did you mean: city \(in plant"):
        await plants.call("SELECT citty FROM plant")


async def test_rows_and_masks_of_readers_are_kept_to(url: str) -> None:
    policy = build_policy({"plant": "cost < 2"}, ["plant.city"], reveal=True)
    tool = await SqlTool.open(url, policy=policy, caps=Caps(seconds=30))
    seen = await tool.call("SELECT city, cost FROM plant")
    assert len(seen.records) == 1 and str(seen.records[0].fields["city"]).startswith("masked_")
    assert "Ghent" not in tool.describe() and "100%" not in tool.describe()
    through_view = await tool.call("SELECT city FROM cheap")
    assert through_view.records[0].fields["city"] == seen.records[0].fields["city"]
    values = await tool.worker.reveal(str(seen.records[0].fields["city"]))
    assert values.rows[0][1] == "100%:x"
    await tool.close()


@pytest.mark.slow
async def test_the_server_ends_a_query_that_is_too_long(url: str) -> None:
    tool = await SqlTool.open(url, caps=Caps(seconds=30))
    with pytest.raises(ToolError, match=r"(?i)exceeded|Stopped"):
        await tool.worker.run(ENDLESS, caps=Caps(seconds=3.0))
    async with asyncio.timeout(60):
        while say(RUNNING) != [[0]]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await tool.close()


@pytest.mark.slow
async def test_a_query_that_is_given_up_ends_on_the_server(url: str) -> None:
    tool = await SqlTool.open(url, caps=Caps(seconds=60))
    running = asyncio.create_task(tool.worker.run(ENDLESS))
    async with asyncio.timeout(60):
        while say(RUNNING) != [[1]]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        running.cancel()
        while say(RUNNING) != [[0]]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await tool.close()
