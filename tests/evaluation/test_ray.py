"""A suite on a local Ray cluster of two workers, one of which is killed."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import pytest

from decisor.errors import SetupError
from decisor.lab.evaluation.ray import check_cluster_reachable
from decisor.lab.evaluation.store import open_store
from evaluation.ray_run import AT_ONCE
from evaluation.small import model
from policies.game24 import Game24LLM
from servers.openai_server import serve_threaded
from servers.processes import free_port

MANY, PUZZLES = 30, 20
TESTS = Path(__file__).parents[1]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "ray.db")


@dataclass(frozen=True)
class Cluster:
    """``pid``: the process that started it, which all its others are below."""

    pid: int
    environment: dict[str, str]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A Ray cluster of two workers. Its ports are named, for Ray waits only 15 s for them where it chooses them."""
    path = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    port, *others = (free_port() for _ in range(5))
    names = ("dashboard-agent-listen", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")
    ports = [f"--{name}-port={number}" for name, number in zip(names, others, strict=True)]
    command = [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        "--head",
        "--block",
        "--num-cpus=2",
        "--include-dashboard=false",
        f"--port={port}",
        *ports,
    ]
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as ray:
        listening(port)
        yield Cluster(ray.pid, {**environment, "RAY_ADDRESS": f"127.0.0.1:{port}"})
        for pid in below(ray.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def listening(port: int) -> None:
    """Waits until the cluster can be reached."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.2)


def below(parent: int) -> list[int]:
    """That process and all that descend from it."""
    found = [parent]
    for pid in found:
        for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, tasks.read_text().split())
    return found


def workers_of(parent: int) -> list[int]:
    """Processes of Ray below that one that run a share."""
    found = []
    for pid in below(parent):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith((b"ray::share", b"ray::run_suite")):
                found.append(pid)
    return found


@dataclass
class Slow:
    """Plays Game of 24, and counts what it is asked. ``enough`` is set at the call number ``at``."""

    at: int
    seconds: float = 0.1
    policy: Game24LLM = field(default_factory=lambda: Game24LLM(3))
    asked: Counter[str] = field(default_factory=Counter)
    enough: threading.Event = field(default_factory=threading.Event)

    def __call__(self, request: dict[str, Any]) -> str:
        prompt = str(request["messages"][-1]["content"])
        self.asked[f"{request.get('seed')} {prompt}"] += 1
        if self.asked.total() >= self.at:
            self.enough.set()
        time.sleep(self.seconds)
        return self.policy.reply(prompt, request.get("seed") or 0)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """20 puzzles and two techniques, one of which cannot work on them."""
    lines = [f"{n},{a} {b} {c} {d}" for n, (a, b, c, d) in enumerate(islice(combinations(range(1, 10), 4), PUZZLES))]
    (tmp_path / "24.csv").write_text("\n".join(["Rank,Puzzles", *lines]) + "\n")
    found = tmp_path / "suite.toml"
    found.write_text(
        f'benches = ["game24 data={tmp_path / "24.csv"} first=0 last={PUZZLES - 1}"]\n'
        f'techniques = ["cot", "exact"]\nseed = 3\ncases_at_once = {AT_ONCE}\n'
    )
    return found


def command(suite: Path, store: str, base_url: str, executor: str = "ray") -> list[str]:
    start = [sys.executable, "-c", "from decisor.cli import main; main()", "eval", str(suite), "--store", store]
    many = ["--workers", "2"] if executor == "ray" else []
    return [*start, "--llm", f"m@{base_url}", "--executor", executor, *many]


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="needs decisor[ray]")
def test_a_worker_that_is_lost_is_replaced_and_each_case_is_finished_once(url: str, cluster: Cluster) -> None:
    asked: Counter[str] = Counter()
    enough = threading.Event()

    def slow(request: dict[str, Any]) -> str:
        asked[str(request["messages"])] += 1
        if sum(asked.values()) >= MANY // 2:
            enough.set()
        time.sleep(0.05)
        return model(request)

    with serve_threaded(slow) as base_url:
        command = [sys.executable, "-m", "evaluation.ray_run", url, base_url, str(MANY)]
        with subprocess.Popen(command, env=cluster.environment, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None and enough.wait(300)
            killed = workers_of(cluster.pid)[:1]
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            done, total, bought = json.loads(run.stdout.read().splitlines()[-1])
    assert len(killed) == 1
    assert (done, total) == (MANY, MANY)
    store = open_store(url)
    assert sorted(outcome.case for outcome in store.outcomes()) == sorted(f"c{n}" for n in range(MANY))
    assert bought == len(asked), "each reply is booked once"
    again = sum(count - 1 for count in asked.values())
    assert again <= AT_ONCE, "only what was in flight at the kill is paid twice"
    store.close()


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="needs decisor[ray]")
def test_the_command_survives_the_loss_of_a_worker_and_prints_the_table_of_one_machine(
    url: str, cluster: Cluster, suite: Path
) -> None:
    reply, alone = Slow(at=PUZZLES), Slow(at=1, seconds=0.0)
    with serve_threaded(reply) as base_url:
        with subprocess.Popen(
            command(suite, url, base_url),
            env=cluster.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            assert reply.enough.wait(300)
            (killed, *_) = workers_of(cluster.pid)
            os.kill(killed, signal.SIGKILL)
            out, error = run.communicate(timeout=300)
        assert run.returncode == 0, error
        once = reply.asked.total()
        again = subprocess.run(command(suite, url, base_url), env=cluster.environment, capture_output=True, text=True)
        assert (again.returncode, again.stdout) == (0, out) and reply.asked.total() == once, "nothing is left to do"
    with serve_threaded(alone) as base_url:
        here = command(suite, str(suite.with_name("run.db")), base_url, "local")
        told = subprocess.run(here, env=cluster.environment, capture_output=True, text=True)
    assert out == told.stdout, "the same to the byte as on one machine"
    assert f"{PUZZLES} of {PUZZLES} cases" in error and error.count("exact on game24 first=0") == 1
    assert once - alone.asked.total() <= AT_ONCE, "only what was in flight at the kill is paid twice"


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="needs decisor[ray]")
def test_ctrl_c_ends_the_workers_and_the_same_command_goes_on(url: str, cluster: Cluster, suite: Path) -> None:
    reply = Slow(at=PUZZLES)
    with serve_threaded(reply) as base_url:
        with subprocess.Popen(
            command(suite, url, base_url),
            env=cluster.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            assert reply.enough.wait(300)
            run.send_signal(signal.SIGINT)
            _, error = run.communicate(timeout=300)
        assert run.returncode == 130, error
        assert "stopping" in error and "the same command goes on from here" in error
        ended = time.monotonic() + 60
        while workers_of(cluster.pid) and time.monotonic() < ended:
            time.sleep(0.1)
        assert workers_of(cluster.pid) == [], "no worker outlives the command"
        asked = reply.asked.total()
        assert asked < 2 * PUZZLES
        on = subprocess.run(command(suite, url, base_url), env=cluster.environment, capture_output=True, text=True)
    assert on.returncode == 0 and f"{PUZZLES} of {PUZZLES} cases" in on.stderr
    assert sum(count - 1 for count in reply.asked.values()) <= 2 * AT_ONCE, "only what was in flight is paid twice"


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="needs decisor[ray]")
def test_workers_run_nothing_of_the_folder_that_the_command_is_given_in_and_read_its_data(
    url: str, cluster: Cluster, suite: Path
) -> None:
    folder = suite.parent / "folder"
    folder.mkdir()
    for name in ("apsw", "brotli", "hashlib", "rich", "shlex", "sqlglot", "tomllib", "uvloop"):
        (folder / f"{name}.py").write_text(f"open({str(suite.parent / 'ran')!r}, 'a').write(__name__)\n")
    suite.write_text(suite.read_text().replace(str(suite.parent), ".."))
    reply = Slow(at=PUZZLES, seconds=0)
    with serve_threaded(reply) as base_url:
        words = command(suite, url, base_url)
        done = subprocess.run([words[0], "-P", *words[1:]], cwd=folder, env=cluster.environment, capture_output=True)
    assert done.returncode == 0 and f"{PUZZLES} of {PUZZLES} cases" in done.stderr.decode()
    assert not (suite.parent / "ran").exists()


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://localhost:{port}"])
def test_a_cluster_that_is_not_there_is_told_at_once(address: str) -> None:
    address = address.format(port=free_port())
    with pytest.raises(SetupError, match=f"No Ray cluster answers at {address}"):
        check_cluster_reachable(address)


@pytest.mark.parametrize("address", ["", "auto", "local"])
def test_where_ray_is_to_look_itself_nothing_is_tried(address: str) -> None:
    check_cluster_reachable(address)
