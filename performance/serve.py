"""200 runs at once on one server, beside the library alone, in the same run of this file.

    python performance/serve.py [--rounds 3] [--runs 600] [--watch] [--memory-runs 2000] [--json]

`--rounds 1 --runs 100 --memory-runs 100` takes two minutes. Needs decisor[serve].

Each run has 8 calls of an LLM that answers after 100 ms (a local HTTP server in a process of its own) and 7 SQLite
queries through the sandbox. The library: ``decisor.open`` and ``data.ask``. The server: ``decisor serve`` in a process
of its own, with its history; a client asks over HTTP. With ``--watch`` each run is also watched to its end by
server-sent events, else its end is waited for by one stream of all. Rounds of both take turns, and of each the best
counts: the machine may have other work, and the load is printed. CPU is that of the library's or the server's process
alone.

Bar: the server keeps 80 % of the library's calls a second. Memory: that of the server after each 500 runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from throughput import CALLS, LATENCY, goods, served

HERE = Path(__file__).parent
AT_ONCE = 200
QUESTION = "Which good is the cheapest?"
ASK = {
    "question": QUESTION,
    "rules": "Prices are in pounds.",
    "technique": "iter_rag",
    "settings": {"max_steps": 400, "calling": "text"},
    "limits": {"calls": 500},
}
BAR = 0.8


@dataclass(frozen=True)
class Measured:
    """Calls a second, and CPU milliseconds a call."""

    rate: float
    cpu: float


async def library(url: str, database: str, runs: int) -> Measured:
    import decisor
    from decisor.llms.openai_compatible import OpenAICompatible
    from decisor.system.tasks import map_concurrently

    llm = OpenAICompatible("m", url)
    async with decisor.open(db=f"sqlite:///{database}") as data:

        async def one(number: int) -> int:
            result = await data.ask(
                QUESTION,
                rules="Prices are in pounds.",
                llm=llm,
                technique="iter_rag",
                settings={"max_steps": 400, "calling": "text"},
                limits=decisor.Limits(calls=500),
            )
            return result.usage.calls

        await map_concurrently(one, range(2))
        began, cpu = time.perf_counter(), time.process_time()
        calls = sum(await map_concurrently(one, range(runs), AT_ONCE))
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
    await llm.close()
    check(calls, runs)
    return Measured(calls / seconds, 1000 * used / calls)


def check(calls: int, runs: int) -> None:
    if calls != runs * CALLS:
        raise RuntimeError(f"{calls} calls were made, not {runs * CALLS}")


@contextmanager
def server(url: str, database: str, folder: str) -> Iterator[tuple[str, int]]:
    """Its address and its process."""
    command = [
        sys.executable,
        "-m",
        "decisor",
        "serve",
        "--db",
        f"sqlite:///{database}",
        "--llm",
        f"m@{url}",
        "--port",
        "0",
        "--no-browser",
    ]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "XDG_DATA_HOME": folder}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        match = re.search(r"http://[^\s#]+", process.stdout.readline())
        if match is None:
            raise RuntimeError("the server did not start")
        try:
            yield match[0].rstrip("/"), process.pid
        finally:
            process.terminate()


def cpu_of(pid: int) -> float:
    """Seconds of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_of(pid: int) -> float:
    """Megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


class Client:
    """Asks, and hears when runs are over."""

    def __init__(self, http: aiohttp.ClientSession, address: str) -> None:
        self.http, self.address = http, address
        self.calls: dict[str, int] = {}
        self.over: dict[str, asyncio.Event] = {}

    async def ask(self) -> str:
        async with self.http.post(f"{self.address}/api/ask", json=ASK) as response:
            run = await response.json()
            assert response.status == 201, run
            return str(run["id"])

    async def watched(self, number: int) -> int:
        """By a stream of its own."""
        id = await self.ask()
        async with self.http.get(f"{self.address}/api/runs/{id}/events") as response:
            last = b""
            async for line in response.content:
                last = line if line.startswith(b"data: ") else last
            return int(json.loads(last[6:])["usage"]["calls"])

    async def waited(self, number: int) -> int:
        """By the stream of all."""
        id = await self.ask()
        await self.over.setdefault(id, asyncio.Event()).wait()
        return self.calls[id]

    async def hear(self) -> None:
        async with self.http.get(f"{self.address}/api/events") as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    run = json.loads(line[6:])
                    if run["state"] in ("finished", "failed", "stopped"):
                        self.calls[run["id"]] = run["usage"]["calls"]
                        self.over.setdefault(run["id"], asyncio.Event()).set()


async def through(address: str, pid: int, runs: int, watch: bool) -> Measured:
    from decisor.system.tasks import map_concurrently

    limit = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=limit, read_bufsize=2**22) as http:
        client = Client(http, address)
        hearing = asyncio.create_task(client.hear())
        one = client.watched if watch else client.waited
        await map_concurrently(one, range(2))
        began, cpu = time.perf_counter(), cpu_of(pid)
        calls = sum(await map_concurrently(one, range(runs), AT_ONCE))
        seconds, used = time.perf_counter() - began, cpu_of(pid) - cpu
        hearing.cancel()
    check(calls, runs)
    return Measured(calls / seconds, 1000 * used / calls)


def in_a_process(url: str, database: str, runs: int) -> Measured:
    """The library in a process of its own, as the server is."""
    command = [sys.executable, __file__, "--library", url, database, str(runs)]
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parent / 'src'}{os.pathsep}{HERE}"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1800, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def say(library: Measured, server: Measured) -> None:
    load = os.getloadavg()[0]
    print(
        f"library {library.rate:6.0f} calls/s, {library.cpu:.2f} ms CPU a call; server {server.rate:6.0f}, "
        f"{server.cpu:.2f}; load {load:.1f}",
        flush=True,
    )


def best(rounds: list[Measured]) -> Measured:
    return Measured(max(one.rate for one in rounds), min(one.cpu for one in rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--memory-runs", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--library", nargs=3, metavar=("URL", "DATABASE", "RUNS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.library:
        url, database, runs = options.library
        print(json.dumps(vars(asyncio.run(library(url, database, int(runs))))))
        return
    print(
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {AT_ONCE} runs at once, {CALLS} calls each, "
        f"{1000 * LATENCY:.0f} ms; {'each watched' if options.watch else 'one stream of all'}"
    )
    alone: list[Measured] = []
    there: list[Measured] = []
    sizes: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        database = goods(Path(folder))
        with served(LATENCY, CALLS) as url, server(url, database, folder) as (address, pid):
            for _ in range(options.rounds):
                alone.append(in_a_process(url, database, options.runs))
                there.append(asyncio.run(through(address, pid, options.runs, options.watch)))
                say(alone[-1], there[-1])
            for _ in range(options.memory_runs // 500):
                asyncio.run(through(address, pid, 500, options.watch))
                sizes.append(round(rss_of(pid)))
    library_best, server_best = best(alone), best(there)
    share, by_cpu = server_best.rate / library_best.rate, library_best.cpu / server_best.cpu
    print(
        f"the server keeps {share:.0%} of the library's calls a second, {by_cpu:.0%} by CPU: "
        f"{'kept' if share >= BAR else 'MISSED'}"
    )
    print(f"MB after each 500 runs: {sizes}")
    if options.json:
        print(json.dumps({"library": vars(library_best), "server": vars(server_best), "share": share, "mb": sizes}))


if __name__ == "__main__":
    main()
