"""A suite on a local Ray cluster of two workers, one of which is killed."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from decisor.errors import SetupError
from decisor.evaluation.ray_executor import evaluate_on_ray
from decisor.evaluation.store_postgres import open_postgres
from decisor.evaluation.suite import Wanted
from evaluation.ray_run import AT_ONCE
from evaluation.small import model
from servers.arcadedb_server import free_port
from servers.openai_server import serve_threaded

ADDRESS = "postgresql://postgres@127.0.0.1:5432/postgres"
MANY = 30
TESTS = Path(__file__).parents[1]


@pytest.fixture
def url() -> Iterator[str]:
    try:
        admin = psycopg.connect(ADDRESS, autocommit=True, connect_timeout=2)
    except psycopg.Error:
        pytest.skip("no PostgreSQL at 127.0.0.1:5432")
    name = f"r{uuid4().hex[:10]}"
    yield f"{ADDRESS}?schema={name}"
    admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
    admin.close()


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
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2",
               "--include-dashboard=false", f"--port={port}", *ports]  # fmt: skip
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as ray:
        yield Cluster(ray.pid, {**environment, "RAY_ADDRESS": f"127.0.0.1:{port}"})
        for pid in below(ray.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


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
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::share_small"):
                found.append(pid)
    return found


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
            assert run.stdout is not None and enough.wait(120)
            killed = workers_of(cluster.pid)[:1]
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            done, total, bought = json.loads(run.stdout.read().splitlines()[-1])
    assert len(killed) == 1
    assert (done, total) == (MANY, MANY)
    store = open_postgres(url)
    assert sorted(outcome.case for outcome in store.outcomes()) == sorted(f"c{n}" for n in range(MANY))
    assert bought == 2 * MANY, "each reply is booked once"
    again = sum(count - 1 for count in asked.values())
    assert again <= AT_ONCE, "only what was in flight at the kill is paid twice"
    store.close()


def test_a_store_in_a_file_is_no_store_for_many_machines(url: str) -> None:
    store = open_postgres(url)
    with pytest.raises(SetupError, match="need a run store in PostgreSQL"):
        evaluate_on_ray(Wanted("run.db"), store)
    store.close()
