"""Workers are forks of a process that has loaded what they need, and share nothing else with it."""

import asyncio
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
import uvloop

from decisor.errors import SetupError, ToolError
from decisor.sandbox import process
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import LOADED, Worker
from decisor.system.fork_server import SERVERS, start_forked
from servers.processes import end

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"


@pytest.fixture
def shop(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT)")
    return f"sqlite:///{tmp_path}/shop.db"


@asynccontextmanager
async def working(url: str, seconds: float = 30) -> AsyncIterator[Worker]:
    worker = Worker("sqlite", url, Caps(seconds=seconds))
    await worker.start()
    try:
        yield worker
    finally:
        await worker.close()


def pid_of(worker: Worker) -> int:
    assert worker.child is not None
    return worker.child.pid


async def test_a_worker_has_its_own_files_environment_and_folder(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with working(shop):
        monkeypatch.setenv("TZ", "Asia/Tokyo")  # after the server was started
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        async with working(shop) as worker:
            place = Path(f"/proc/{pid_of(worker)}")
            files = [file.readlink() for file in (place / "fd").iterdir()]
            sockets = {str(name) for name in files if str(name).startswith("socket:")}
            server = SERVERS[os.getpid()].process.pid
            assert len(sockets) == 1, "the server's own and those of other workers are closed"
            assert not sockets & {str(file.readlink()) for file in Path(f"/proc/{server}/fd").iterdir()}
            assert os.getsid(pid_of(worker)) == pid_of(worker)
            assert list((place / "cwd").resolve().iterdir()) == []
            for pid in (pid_of(worker), server):
                assert b"sk-secret" not in Path(f"/proc/{pid}/environ").read_bytes()
            now = await worker.run(
                "SELECT strftime('%s', 'now', 'localtime') - strftime('%s', 'now') AS s", trusted=True
            )
            assert now.rows == ((9 * 3600,),)


@pytest.mark.parametrize("engine", LOADED)
async def test_a_server_that_has_loaded_an_engine_has_one_thread(engine: str) -> None:
    worker = Worker(engine, "{}")
    with suppress(SetupError):  # most take that for no database
        await worker.start()
    await worker.close()
    server = SERVERS[os.getpid()].process.pid
    assert len(list(Path(f"/proc/{server}/task").iterdir())) == 1


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
async def test_two_workers_draw_different_numbers(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "numbers"
    if engine == "duckdb":
        import duckdb

        duckdb.connect(str(path)).close()
    else:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("CREATE TABLE site (name TEXT)")
    drawn = set()
    for _ in range(3):
        worker = Worker(engine, f"{engine}:///{path}")
        drawn.add((await worker.run("SELECT random() AS x", trusted=True)).rows)
        await worker.close()
    assert len(drawn) == 3


async def test_a_killed_server_is_replaced_and_a_running_query_is_told(shop: str) -> None:
    async with working(shop) as worker:
        first = SERVERS[os.getpid()].process.pid
        running = asyncio.create_task(worker.run(ENDLESS, caps=Caps(seconds=5), trusted=True))
        await asyncio.sleep(0.5)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(ToolError, match="Stopped"):  # tried once more by another worker, until its time is over
            await running
        assert end([first], 10)
        assert (await worker.run("SELECT 1 AS x")).rows == ((1,),)
        assert SERVERS[os.getpid()].process.pid != first


async def test_a_worker_outlives_the_thread_that_started_the_server(shop: str) -> None:
    if server := SERVERS.get(os.getpid()):
        server.process.kill()
        server.process.wait()

    async def once() -> int:
        async with working(shop):
            return SERVERS[os.getpid()].process.pid

    started = await asyncio.to_thread(asyncio.run, once())
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    async with working(shop) as worker:
        assert SERVERS[os.getpid()].process.pid == started
        assert (await worker.run("SELECT 1 AS x")).rows == ((1,),)


def test_a_fork_of_this_process_has_a_server_of_its_own(shop: str) -> None:
    async def once() -> int:
        async with working(shop):
            return SERVERS[os.getpid()].process.pid

    ours = asyncio.run(once())
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        with os.fdopen(write, "w") as out:
            out.write(str(asyncio.run(once())))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        theirs = int(told.read())
    os.waitpid(pid, 0)
    assert theirs != ours
    assert end([theirs], 10)
    assert asyncio.run(once()) == ours


async def test_where_nothing_is_forked_a_worker_is_started_as_it_was(
    shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CAN_FORK", False)
    async with working(shop, 1) as worker:
        assert Path(f"/proc/{pid_of(worker)}/cmdline").read_bytes().split(b"\0").count(b"decisor.sandbox.worker") == 1
        with pytest.raises(ToolError, match="Stopped"):
            await worker.run(ENDLESS, trusted=True)
        assert (await worker.run("SELECT 1 AS x")).rows == ((1,),)


async def test_a_worker_that_cannot_be_forked_is_an_error_in_words(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise OSError("no process could be forked")

    monkeypatch.setattr(process, "start_forked", fail)
    with pytest.raises(SetupError, match="did not open: no process could be started; is a limit"):
        await Worker("sqlite", shop).start()


async def test_a_worker_that_is_killed_before_it_is_asked_is_started_again(
    shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = process.spawn
    pids = list[int]()

    async def kill_first(*given: object) -> process.Child:
        child = await began("sqlite", False, 0.0)
        pids.append(child.pid)
        if len(pids) == 1:
            os.kill(child.pid, signal.SIGKILL)
            await child.gone
        return child

    monkeypatch.setattr(process, "spawn", kill_first)
    async with working(shop) as worker:
        assert (await worker.run("SELECT 1 AS x")).rows == ((1,),) and len(pids) == 2


async def test_a_process_that_ends_at_once_is_gone() -> None:
    """Before its link is made or after: a module without ``main`` ends it."""
    start = process.worker_start()
    ended = [await start_forked(lambda: process.Child(False, 0.0), start, "decisor.system.text", ()) for _ in range(10)]
    await asyncio.wait_for(asyncio.gather(*(child.end(grace=5) for child in ended)), 20)


def test_it_works_under_another_event_loop(shop: str) -> None:
    async def once() -> object:
        async with working(shop, 1) as worker:
            with pytest.raises(ToolError, match="Stopped"):
                await worker.run(ENDLESS, trusted=True)
            return (await worker.run("SELECT 1 AS x")).rows

    assert uvloop.run(once()) == ((1,),)


def test_nothing_runs_on_after_the_program_has_ended(shop: str) -> None:
    import subprocess

    program = """import asyncio, os, sys
from decisor.sandbox.process import LOADED, Worker
async def ask():
    worker = Worker("sqlite", sys.argv[1])
    await worker.start()
    print(*(open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()), worker.child.pid)
asyncio.run(ask())"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run([sys.executable, "-c", program, shop], env=environment, capture_output=True, text=True)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2 and end(pids, 10)
    assert not done.stderr
