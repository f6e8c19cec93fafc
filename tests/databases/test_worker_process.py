"""The worker process: one statement at a time, killed at its limits, and it comes back."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.process import Worker

FOREVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
HUNGRY = "SELECT randomblob(900000000)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, total REAL, note)")
        db.executemany("INSERT INTO orders VALUES(?, ?, ?)", [(n, n / 2, "x" * n) for n in range(1, 501)])
    return path


@pytest.fixture
async def worker(path: Path) -> AsyncIterator[Worker]:
    worker = Worker("sqlite", f"sqlite:///{path}")
    yield worker
    await worker.close()


async def test_rows_come_back_typed_and_cut_at_the_cap(worker: Worker) -> None:
    table = await worker.run("SELECT id, total FROM orders ORDER BY id", caps=Caps(rows=2))
    assert table.columns == ("id", "total")
    assert table.rows == ((1, 0.5), (2, 1.0))
    assert table.truncated


async def test_columns_are_told_where_there_are_no_rows(worker: Worker) -> None:
    assert (await worker.run("SELECT id AS a, note FROM orders WHERE id < 0")).columns == ("a", "note")


async def test_bytes_are_capped(worker: Worker) -> None:
    table = await worker.run("SELECT note FROM orders", caps=Caps(rows=1000, bytes=1000))
    assert table.truncated and 10 < len(table.rows) < 100


async def test_parameters_are_bound(worker: Worker) -> None:
    table = await worker.run("SELECT total FROM orders WHERE id = :id", {"id": 7})
    assert table.rows == ((3.5,),)


async def test_a_query_without_end_is_stopped_and_the_next_one_runs(worker: Worker) -> None:
    async with asyncio.timeout(30):  # it would run for ever
        with pytest.raises(ToolError, match=r"more than 0\.3 s"):
            await worker.run(FOREVER, caps=Caps(seconds=0.3))
    assert (await worker.run("SELECT 1")).rows == ((1,),)


async def test_a_cancelled_query_does_not_answer_the_next_one(worker: Worker) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await worker.run(FOREVER)
    assert (await worker.run("SELECT 2")).rows == ((2,),)


async def test_a_worker_that_dies_is_replaced(worker: Worker) -> None:
    await worker.start()
    assert worker.child is not None
    os.kill(worker.child.pid, signal.SIGKILL)
    await worker.child.gone
    assert (await worker.run("SELECT 3")).rows == ((3,),)


async def test_requests_of_many_tasks_get_their_own_answers(worker: Worker) -> None:
    tables = await asyncio.gather(*(worker.run(f"SELECT {n}") for n in range(20)))
    assert [table.rows[0][0] for table in tables] == list(range(20))


async def test_a_check_runs_nothing(worker: Worker) -> None:
    await worker.check(FOREVER)
    with pytest.raises(ToolError) as refusal:
        await worker.check("DROP TABLE orders")
    assert refusal.value.refused


async def test_trusted_statements_still_cannot_write(worker: Worker, path: Path) -> None:
    before = path.read_bytes()
    for statement in ("DELETE FROM orders", f"ATTACH '{path.parent}/new.db' AS n", HUNGRY):
        with pytest.raises(ToolError):
            await worker.run(statement, trusted=True)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


async def test_a_missing_file_is_one_line_for_the_person_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="There is no database file"):
        await Worker("sqlite", f"sqlite:///{tmp_path}/none.db").start()
    assert not list(tmp_path.iterdir())


async def test_an_unknown_engine_is_told() -> None:
    with pytest.raises(SetupError, match="no engine 'nosuch'"):
        await Worker("nosuch", "nosuch://x").start()


async def test_a_query_that_is_stopped_takes_none_of_those_behind_it_along(worker: Worker) -> None:
    await worker.start()
    asking = [asyncio.ensure_future(worker.run(FOREVER, caps=Caps(seconds=0.3)))]
    asking += [asyncio.ensure_future(worker.run(f"SELECT {n}")) for n in range(40)]
    first, *tables = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(first, ToolError) and "more than 0.3 s" in str(first)
    assert [table.rows[0][0] for table in tables if not isinstance(table, BaseException)] == list(range(40))


async def test_queries_that_nobody_waits_for_any_more_leave_the_line(worker: Worker) -> None:
    await worker.start()
    left = [asyncio.ensure_future(worker.run(FOREVER)) for _ in range(30)]
    await asyncio.sleep(0.1)
    for task in left:
        task.cancel()
    assert (await worker.run("SELECT 7")).rows == ((7,),)
    assert all(
        isinstance(result, asyncio.CancelledError) for result in await asyncio.gather(*left, return_exceptions=True)
    )


async def test_a_crash_is_told_to_the_one_that_ran(worker: Worker) -> None:
    await worker.start()
    assert worker.child is not None
    asking = [asyncio.ensure_future(worker.run(FOREVER)), asyncio.ensure_future(worker.run("SELECT 8"))]
    await asyncio.sleep(0.1)
    os.kill(worker.child.pid, signal.SIGKILL)
    first, second = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(first, ToolError) and "crashed" in str(first)
    assert not isinstance(second, BaseException) and second.rows == ((8,),)
