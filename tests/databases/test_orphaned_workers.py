"""A worker ends with the process that started it, killed with SIGKILL, whatever it computes and on every engine."""

import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from servers.neo4j_server import NEO4J
from servers.processes import children, end
from servers.sql_databases import MYSQLS, NAME, POSTGRES, mysql_database, postgres_database

ROOT = Path(__file__).resolve().parents[2]
PATHS = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
ASK = """import asyncio, sys
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker

async def ask(engine, url, statement):
    worker = Worker(engine, url, Caps(seconds=600))
    await worker.start()
    print("begins", flush=True)
    await worker.run(statement, trusted=True)

asyncio.run(ask(*sys.argv[1:]))"""
ENDS = 5.0
"""Seconds within which a worker is gone; one of a server tells it first that nobody waits any more."""
RECURSIVE = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
UNWOUND = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a + b = 0 RETURN count(*) AS n"
ENDLESS = {
    "sqlite": RECURSIVE,
    "duckdb": "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = -1",
    "postgres": "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 10000000) b WHERE a + b = 0",
    **dict.fromkeys(MYSQLS, "SELECT BENCHMARK(1000000000000, SHA2('endless', 512)) AS n"),
    "kglite": UNWOUND,
    "neo4j": UNWOUND,
}


ENDLESS_MODEL = """format = 3
decide = "a site"
choice.pick.rows = '''
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT name FROM site WHERE 0 = (SELECT max(x) FROM c)'''
seconds = 600
[measure.cost]
goal = "min"
sql = "SELECT 1"
"""
PYTHON_ALONE = """import os, subprocess, sys
from decisor.system import processes
start = processes.build_python_start("endless_python")
child = subprocess.Popen(start.command, env=start.environment, cwd=start.folder)
print("begins", flush=True)
child.wait()"""
WATCHED = """import os, subprocess, sys
code = "import os; from decisor.system.processes import watch_parent; "
code += "print('begins', flush=True); watch_parent(int(os.sys.argv[1]))"
subprocess.run([sys.executable, "-c", code, str(os.getpid())])"""
TOO_LATE = "import os; from decisor.system.processes import end_with; end_with(int(os.sys.argv[1])); print('goes on')"


@contextmanager
def begun(command: list[str], said: bytes) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own that has said so on its standard output, and computes since."""
    environment = {**os.environ, "PYTHONPATH": PATHS}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and said in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def kill_parent(parent: subprocess.Popen[bytes]) -> list[int]:
    """Kill it as the system does where memory is short; return its children."""
    time.sleep(0.5)  # the statement is on its way
    workers = children(parent.pid)
    assert workers
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    return workers


@contextmanager
def source(engine: str, folder: Path) -> Iterator[tuple[str, str]]:
    """The engine's own name, and a URL of a database with a table."""
    with ExitStack() as stack:
        match engine:
            case "sqlite":
                path = folder / "shop.db"
                with closing(sqlite3.connect(path)) as db, db:
                    db.execute("CREATE TABLE site (name TEXT)")
                yield "sqlite", f"sqlite:///{path}"
            case "duckdb":
                import duckdb

                path = folder / "shop.duckdb"
                with duckdb.connect(str(path)) as made:
                    made.execute("CREATE TABLE site (name TEXT)")
                yield "duckdb", f"duckdb:///{path}"
            case "postgres":
                yield "postgres", stack.enter_context(postgres_database(["CREATE TABLE site (name TEXT)"]))
            case "kglite":
                from decisor.graphs.load import GraphNode, load_nodes_and_edges

                url = f"kglite:///{folder}/sites.kgl"
                load_nodes_and_edges(url, [GraphNode("Site", {"name": "elm"})], [])
                yield "kglite", url
            case "neo4j":
                if not importlib.util.find_spec("neo4j"):
                    pytest.skip("needs decisor[neo4j]")
                yield "neo4j", NEO4J
            case name:
                yield name, stack.enter_context(mysql_database(["CREATE TABLE site (name TEXT)"], MYSQLS[name]))


def nobody_runs(engine: str) -> bool:
    """Whether the server, if it is one, runs nothing of the test's database any more, at last."""
    deadline = time.monotonic() + ENDS
    while runs_on_server(engine):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def runs_on_server(engine: str) -> bool:
    if engine == "postgres":
        import psycopg

        with psycopg.connect(f"{POSTGRES}/postgres") as db:
            return bool(db.execute("SELECT 1 FROM pg_stat_activity WHERE datname = %s", [NAME]).fetchall())
    if engine in MYSQLS:
        import pymysql

        port = urlsplit(MYSQLS[engine]).port or 3306
        with pymysql.connect(host="127.0.0.1", port=port, user="root") as db, db.cursor() as cursor:
            return bool(
                cursor.execute("SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT BENCHMARK%'")
            )
    return False


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENDLESS)
def test_a_worker_that_computes_without_end_is_gone_when_its_parent_is_killed(engine: str, tmp_path: Path) -> None:
    from decisor.sandbox.engines import parse_url

    with source(engine, tmp_path) as (_, url):
        name, address = parse_url(url)
        with begun([sys.executable, "-c", ASK, name, address, ENDLESS[engine]], b"begins") as parent:
            workers = kill_parent(parent)
            try:
                assert end(workers, ENDS)
                assert nobody_runs(engine)
            finally:
                for worker in workers:
                    if not end([worker], 0):
                        os.kill(worker, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["rank"], ["check"], ["show"]], ids=lambda words: words[0])
def test_the_machine_of_a_model_is_gone_when_the_command_is_killed(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "endless.toml").write_text(ENDLESS_MODEL)
    with source("sqlite", tmp_path) as (_, url):
        command = [sys.executable, "-m", "decisor", "model", *words, str(tmp_path / "endless.toml"), "--db", url]
        environment = {**os.environ, "PYTHONPATH": PATHS}
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as parent:
            deadline = time.monotonic() + 30
            while not any(seconds_of(child) > 1.5 for child in children(parent.pid)):
                assert parent.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            workers = kill_parent(parent)
        assert end(workers, ENDS)


def seconds_of(process: int) -> float:
    """Of CPU, that it has had."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_child_that_never_lets_go_of_the_interpreter_is_gone_too() -> None:
    with begun([sys.executable, "-c", PYTHON_ALONE], b"begins") as parent:
        assert end(kill_parent(parent), ENDS)


def test_the_thread_that_watches_where_the_kernel_tells_nothing_ends_its_process() -> None:
    with begun([sys.executable, "-c", WATCHED], b"begins") as parent:
        assert end(kill_parent(parent), ENDS)


def test_a_child_whose_parent_ended_before_it_could_ask_for_the_signal_ends_at_once() -> None:
    environment = {**os.environ, "PYTHONPATH": PATHS}
    gone = subprocess.run([sys.executable, "-c", TOO_LATE, "999999999"], env=environment, capture_output=True)
    assert (gone.returncode, gone.stdout) == (1, b"")
