"""A suite on a Ray cluster: the same runner on each machine, all on one run store.

The store does the work: it gives each case to one process, refuses late results, takes back the cases of a process that
is gone, and keeps every bought reply. It is a file on the machine that started the run, where an actor does the jobs of
all workers. So Ray only starts the processes, and starts them anew when a machine is lost.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import chdir, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from decisor.errors import SetupError
from decisor.lab.evaluation.runner import Stop, Tally, row_key
from decisor.lab.evaluation.store import RunStore, StoreThread, open_store
from decisor.lab.evaluation.suite import SuiteRequest
from decisor.system.extras import missing_extra_error
from decisor.system.processes import child_folder, working_folder

ENVIRONMENT = ("DECISOR_", "OPENAI_", "ANTHROPIC_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
LOOK_SECONDS = 1.0
HEAR_SECONDS = 5.0
RESTARTS = 20
REACH_SECONDS = 5.0
T = TypeVar("T")
Act = Callable[[RunStore], T]


class StoreKeeper:
    """An actor that keeps the run store: each worker has a connection, and so the lock of its cases, of its own."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.threads: dict[int, StoreThread] = {}

    async def do(self, worker: int, act: Act[T]) -> T:
        """Do a job of a worker on the store."""
        if worker not in self.threads:
            self.threads[worker] = StoreThread(open_store(self.path))
        return await self.threads[worker].do(act)

    async def leave(self, worker: int) -> None:
        """Let others have the unfinished cases of a worker that ended or is lost."""
        if thread := self.threads.pop(worker, None):
            await thread.close()
            thread.store.close()


@dataclass(frozen=True)
class KeptStore:
    """The store as a worker has it (``StoreJobs``)."""

    keeper: Any
    worker: int

    async def do(self, act: Act[T]) -> T:
        result: T = await self.keeper.do.remote(self.worker, act)
        return result

    async def close(self) -> None:
        await self.keeper.leave.remote(self.worker)


def run_suite_share(request: SuiteRequest, environment: Mapping[str, str], store: KeptStore) -> Tally:
    """Run one process's share of a suite and return the tally. Runs on a worker, in its process."""
    from decisor.lab.evaluation.runner import evaluate_suite
    from decisor.lab.evaluation.suite import open_suite

    # Keys and addresses of LLMs are in the environment of whoever started the run, not of the worker's machine.
    os.environ.update(environment)
    with suppress(OSError, KeyError):  # on another machine it may not be there
        os.chdir(environment["PWD"])
    return asyncio.run(evaluate_suite(open_suite(request, os.environ), store))


def evaluate_on_ray(
    request: SuiteRequest,
    store: RunStore,
    workers: int | None = None,
    stop: Stop | None = None,
    hear: Callable[[Tally], None] = lambda tally: None,
    run: Callable[[SuiteRequest, Mapping[str, str], KeptStore], Tally] = run_suite_share,
) -> Tally:
    """Run a suite on Ray until every case is finished or ``stop`` says so.

    The cluster is that of $RAY_ADDRESS, else this machine. workers: number of processes, by default one per core of the
    cluster. run: the function that each process calls.

    Raises:
        SetupError: Ray is missing or cannot be reached, or a worker says so.
        LLMError: an endpoint will not answer any case.
    """
    try:
        import ray
    except ImportError as error:
        raise missing_extra_error("--executor ray needs Ray", "ray") from error
    # Start Ray, or join the cluster; one that the caller started is left running.
    ours = not ray.is_initialized()
    if ours:
        check_cluster_reachable(os.environ.get("RAY_ADDRESS") or read_latest_cluster())
        try:
            with chdir(
                child_folder()
            ):  # Ray puts the working folder on the path of its workers, and it may be someone else's
                ray.init(log_to_driver=False)
        except (ConnectionError, OSError, ValueError) as error:
            raise SetupError(f"The Ray cluster of $RAY_ADDRESS cannot be reached: {error}") from error
    environment = {name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT)}
    environment["PWD"] = str(working_folder())
    # A worker that is lost is started anew by us, not by Ray, so that --grace and a stop hold.
    remote: Any = ray.remote(max_retries=0, num_cpus=1, max_calls=1)(run)
    many = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    keeper = start_store_keeper(ray, store)
    numbers = count(1)

    def start() -> tuple[Any, int]:
        number = next(numbers)
        return remote.remote(request, environment, KeptStore(keeper, number)), number

    try:
        return _watch(ray, start, keeper, store, many, stop or Stop(), hear)
    finally:
        if ours:
            ray.shutdown()


def start_store_keeper(ray: ModuleType, store: RunStore) -> Any:
    """Start the actor that keeps the store, on this machine, as its file is here."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    # It waits for the disk only, and each worker has many jobs under way at once.
    options = {"num_cpus": 0, "max_concurrency": 100_000, "scheduling_strategy": here}
    return ray.remote(StoreKeeper).options(**options).remote(str(Path(store.db.name).resolve()))


def read_latest_cluster() -> str:
    """Return the cluster that was last started on this machine, empty for none. Ray joins it if no address is given."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    with suppress(OSError):
        return (Path(folder) / "ray" / "ray_current_cluster").read_text().strip()
    return ""


def check_cluster_reachable(address: str) -> None:
    """Raise SetupError if nothing listens at HOST:PORT or ray://HOST:PORT. Ray itself would try for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not (colon and port.isdecimal()):
        return  # none, auto, local: for Ray to find
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise SetupError(
            f"No Ray cluster answers at {address}: {error}. Name another as RAY_ADDRESS; with "
            "RAY_ADDRESS=local Ray is started on this machine."
        ) from error


def _watch(
    ray: ModuleType,
    start: Callable[[], tuple[Any, int]],
    keeper: Any,
    store: RunStore,
    workers: int,
    stop: Stop,
    hear: Callable[[Tally], None],
) -> Tally:
    number_of = dict(start() for _ in range(workers))
    running, lost, look = list(number_of), 0, time.monotonic()
    left_out: dict[tuple[str, str], str] = {}
    try:
        while running:
            # A timeout, so that a stop is noticed and progress is told while nothing ends.
            done, running = ray.wait(running, num_returns=1, timeout=LOOK_SECONDS)
            if time.monotonic() >= look:
                hear(tally_store(store, left_out))
                look = time.monotonic() + HEAR_SECONDS
            for one in done:
                try:
                    left_out |= ray.get(one).left_out
                except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
                    lost += 1
                    if lost > RESTARTS:
                        raise SetupError(f"{lost} workers were lost; the same command goes on. ({error})") from error
                    ray.get(keeper.leave.remote(number_of[one]))
                    task, number = start()
                    number_of[task] = number
                    running.append(task)
                except ray.exceptions.RayTaskError as error:
                    # Ray wraps what a worker raised; the person is shown the error itself.
                    cause = error.cause if isinstance(error.cause, Exception) else error
                    raise cause from None
            if stop.stopping.is_set():
                break
    finally:
        for one in running:
            ray.cancel(one, force=True)
            ray.get(keeper.leave.remote(number_of[one]))
    ended = tally_store(store, left_out)
    hear(ended)
    return ended


def tally_store(store: RunStore, left_out: dict[tuple[str, str], str]) -> Tally:
    """Count the states of every case in the store that was ever planned and not left out."""
    tally = Tally(usage=store.spent(), left_out=left_out)
    for outcome in store.each_outcome():
        row = tally.rows[row_key(outcome.key)]
        row.total += 1
        row.add(outcome.state, outcome.usage)
    open_ = "SELECT benchmark, technique, model, count(*) FROM cases WHERE outcome IS NULL GROUP BY 1, 2, 3"
    for benchmark, technique, model, many in store.db.rows(open_):
        if (benchmark, technique) not in left_out:
            tally.rows[benchmark, technique, model].total += many
    return tally
