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
from decisor.sandbox.engine import Caps
from decisor.sandbox.limits import memory_of
from decisor.sandbox.process import Worker

FOREVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
LONG = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2000000) SELECT max(x) FROM c"
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


async def kill_as_they_come(worker: Worker, times: int, signal_number: int) -> list[int]:
    """Kill so many processes of the worker from outside, each a moment after its query has begun."""
    gone: list[int] = []
    while len(gone) < times:
        await asyncio.sleep(0.02)
        child = worker.child
        if child and not child.ended and child.pid not in gone and child.sent and b"RECURSIVE" in child.sent[0].frame:
            await asyncio.sleep(0.1)
            os.kill(child.pid, signal_number)
            gone.append(child.pid)
    return gone


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_query_whose_process_is_killed_from_outside_is_tried_once_more(worker: Worker, number: int) -> None:
    await worker.start()
    asking = [asyncio.ensure_future(worker.run(LONG)), asyncio.ensure_future(worker.run("SELECT 8"))]
    (gone,) = await kill_as_they_come(worker, 1, number)
    first, second = await asyncio.gather(*asking)
    assert first.rows == ((2_000_000,),) and second.rows == ((8,),)
    assert worker.child is not None and worker.child.pid != gone


@pytest.mark.slow
async def test_a_query_whose_process_is_killed_twice_is_given_up_and_the_others_go_on(worker: Worker) -> None:
    await worker.start()
    asking = [asyncio.ensure_future(worker.run(FOREVER)), asyncio.ensure_future(worker.run("SELECT 8"))]
    await kill_as_they_come(worker, 2, signal.SIGKILL)
    first, second = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(first, ToolError) and "twice" in str(first)
    assert not isinstance(second, BaseException) and second.rows == ((8,),)


@pytest.mark.slow
async def test_a_query_that_held_much_memory_when_its_process_was_killed_is_not_tried_again(worker: Worker) -> None:
    await worker.start()
    assert worker.child is not None
    process = worker.child.pid
    growing = asyncio.ensure_future(worker.run(FOREVER.replace("UNION ALL", "UNION"), caps=Caps(memory_mb=200)))
    async with asyncio.timeout(30):
        while memory_of(process) < 120 * 2**20:  # noqa: ASYNC110 (nothing tells of memory)
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    with pytest.raises(ToolError, match="crashed"):
        await growing
    assert worker.child is not None and worker.child.pid == process


async def test_a_fault_of_the_process_itself_is_no_kill_from_outside(worker: Worker) -> None:
    await worker.start()
    crashing = asyncio.ensure_future(worker.run(FOREVER))
    await kill_as_they_come(worker, 1, signal.SIGSEGV)
    with pytest.raises(ToolError, match="crashed"):
        await crashing
