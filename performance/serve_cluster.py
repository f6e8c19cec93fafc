"""`decisor serve` with several processes on one PostgreSQL, beside one process with SQLite.

    python performance/serve_cluster.py [--rounds 3] [--runs 200] [--workers 4] [--kills 50] [--restarts 10]

Needs decisor[serve,cluster] and PostgreSQL's initdb; its own PostgreSQL lies in a temporary folder, without fsync.

A run has 4 calls of an LLM that answers after 100 ms (in this process) and 3 SQLite queries through the sandbox.

CPU: of all processes of a server without PostgreSQL, for each run of ``--runs`` at once, 50 of them watched by a stream
each. Both servers work at the same time, so that whatever else the machine does weighs on both alike; each has begun to
the end and done as many runs before. The median of the rounds' ratios counts. Bar: 1.3 times.

Kills: runs are asked for all the time, and a serving process is killed (SIGKILL) every six seconds, ``--kills`` times.
Counted are runs that are lost (no run answers to a key that was sent), stuck (not over a minute after the last kill),
and replies bought twice: delivered whole, and asked for again. Bar: 0 of each. Of the last it prints how long after a
kill each was delivered: what goes to a process that is gone, or has not stored it yet (below 0), cannot be kept.

Restarts: PostgreSQL is killed and started again while ``--runs`` runs are under way, ``--restarts`` times. Bar: every
run is finished.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import pwd
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from aiohttp import web

HERE = Path(__file__).parent
LATENCY, STEPS, STREAMS = 0.1, 4, 50
PLAN = "Thought: Look.\nAction: sql\nAction input: SELECT name, price FROM goods ORDER BY price LIMIT {number}"
ANSWER = "Final answer: good 1\nBecause: it costs 1.5 [o1.r1]"
BODY = {"technique": "iter_rag", "settings": {"max_steps": 9, "calling": "text"}, "rules": "Prices are in pounds."}
QUESTION = "Which good is the cheapest?"


@dataclass
class CountingLLM:
    """An LLM that takes ``STEPS`` calls for a run, and knows which replies were delivered when."""

    delivered: dict[str, list[float]] = field(default_factory=dict)
    """By prompt, when each reply to it was written whole."""

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = "\n".join(str(message["content"]) for message in body["messages"])
        await asyncio.sleep(LATENCY)
        step = len(set(re.findall(r"\bo(\d+)\.r1\b", prompt))) + 1
        text = ANSWER if step >= STEPS else PLAN.format(number=step)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 20}
        response = web.json_response({"choices": [choice], "usage": usage, "model": "m", "object": "chat.completion"})
        await response.prepare(request)
        await response.write_eof()
        self.delivered.setdefault(prompt, []).append(time.monotonic())
        return response

    def bought_twice(self, kills: list[float]) -> list[float]:
        """Return how many seconds after the nearest kill each reply was delivered that was bought twice."""
        twice = [times[0] for times in self.delivered.values() if len(times) > 1]
        return sorted(min((at - kill for kill in kills), key=abs) for at in twice)


@asynccontextmanager
async def llm_server() -> AsyncIterator[tuple[CountingLLM, str]]:
    llm = CountingLLM()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", llm.chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield llm, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


class Postgres:
    """A PostgreSQL of its own in a folder."""

    def __init__(self, folder: Path, port: int = 55432) -> None:
        self.folder, self.port = folder / "postgres", port
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), Path(shutil.which("initdb") or "initdb")]
        self.bin = found[0].parent
        # PostgreSQL does not run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        self.folder.mkdir()
        if self.user:
            folder.chmod(0o755)
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, pwd.getpwnam(self.user).pw_gid)
        self.do("initdb", "-D", str(self.folder), "-A", "trust", "-U", "postgres", "--encoding=UTF8", "--no-locale")
        self.start()

    def do(self, program: str, *words: str) -> None:
        subprocess.run([self.bin / program, *words], user=self.user, cwd="/", stdout=subprocess.DEVNULL, check=True)

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        self.do("pg_ctl", "-D", str(self.folder), "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self.do("pg_ctl", "-D", str(self.folder), "-m", "immediate", "stop")


@dataclass
class Server:
    url: str
    process: subprocess.Popen[str]
    http: aiohttp.ClientSession

    def serving(self) -> list[int]:
        """Return the processes that serve, of several."""
        command = ["pgrep", "-P", str(self.process.pid), "-f", "spawn_main"]
        return [int(line) for line in subprocess.run(command, capture_output=True, text=True).stdout.split()]

    def cpu(self) -> float:
        """Return the CPU seconds of all processes of the server, with those of its ended children."""
        parents = {int(path.parent.name): parent_of(path) for path in Path("/proc").glob("[0-9]*/stat")}
        own, total = {self.process.pid}, 0.0
        while more := {pid for pid, parent in parents.items() if parent in own} - own:
            own |= more
        for pid in own:
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        return total

    async def ask(self, question: str) -> str:
        """Ask until a process takes it: one that is killed answers nothing."""
        body, heads = {**BODY, "question": question}, {"idempotency-key": question}
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                async with self.http.post(f"{self.url}/api/ask", json=body, headers=heads) as reply:
                    if reply.status == 201:
                        return str((await reply.json())["id"])
            await asyncio.sleep(0.2)

    async def state(self, id: str) -> str:
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.http.get(f"{self.url}/api/runs/{id}") as reply:
                # 503: PostgreSQL is not there for now.
                return "unknown" if reply.status == 503 else str((await reply.json()).get("state", reply.status))
        return "unknown"

    async def watch(self, id: str) -> None:
        """Read the stream of a run to its end."""
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.http.get(f"{self.url}/api/runs/{id}/events") as reply:
                async for line in reply.content:
                    if line.startswith(b"event: end"):
                        return

    async def ended(self, ids: list[str], seconds: float) -> Counter[str]:
        """Wait until all runs are over, ``seconds`` at most; count them by state."""
        end, states = time.monotonic() + seconds, Counter[str]()
        while ids and time.monotonic() < end:
            found = await asyncio.gather(*map(self.state, ids))
            is_open = ["waiting", "running", "unknown"]
            states.update(state for state in found if state not in is_open)
            ids = [id for id, state in zip(ids, found, strict=True) if state in is_open]
            await asyncio.sleep(1)
        states["stuck"] += len(ids)
        return states


def parent_of(path: Path) -> int:
    try:
        return int(path.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@asynccontextmanager
async def server(folder: Path, llm: str, *words: str) -> AsyncIterator[Server]:
    command = [sys.executable, "-m", "decisor", "serve", "--db", f"sqlite:///{folder}/goods.db", "--llm", f"m@{llm}"]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "XDG_DATA_HOME": tempfile.mkdtemp(dir=folder)}
    command += ["--port", "0", "--no-browser", *words]
    process = await asyncio.to_thread(
        subprocess.Popen[str], command, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    line = await asyncio.to_thread(process.stdout.readline)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:
        one = Server(re.findall(r"http://[^\s#]+", line)[0].rstrip("/"), process, http)
        try:
            yield one
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.wait, 60)


async def cpu_of_a_run(one: Server, runs: int) -> float:
    began = one.cpu()
    ids = list(await asyncio.gather(*(one.ask(f"{QUESTION} {began} {number}") for number in range(runs))))
    await asyncio.gather(*map(one.watch, ids[:STREAMS]))
    states = await one.ended(ids, 300)
    if states != Counter(finished=runs, stuck=0):
        raise RuntimeError(f"{one.url}: {dict(states)}")
    return 1000 * (one.cpu() - began) / runs


async def compare_cpu(servers: list[Server], runs: int) -> list[float]:
    """Return the CPU of a run of each server, which work at the same time."""
    for one in servers:
        # Until it does nothing: all its processes have begun.
        before = -1.0
        while one.cpu() - before > 0.3:
            before = one.cpu()
            await asyncio.sleep(4)
    for _ in range(2):
        cpu = await asyncio.gather(*(cpu_of_a_run(one, runs) for one in servers))
        await asyncio.sleep(3)
    return list(cpu)


async def kill_processes(one: Server, llm: CountingLLM, kills: int) -> None:
    at, ids, asked, is_over = list[float](), list[str](), 0, False

    async def keep_asking() -> None:
        nonlocal asked
        while not is_over:
            asked += 1
            ids.append(await one.ask(f"{QUESTION} Kill {asked}"))
            await asyncio.sleep(0.1)

    # Not before a process answers.
    await one.ended([await one.ask(f"{QUESTION} Warm")], 60)
    asking = [asyncio.create_task(keep_asking()) for _ in range(2)]
    while len(at) < kills:
        await asyncio.sleep(6)
        if serving := one.serving():
            at.append(time.monotonic())
            os.kill(random.choice(serving), signal.SIGKILL)
    is_over = True
    await asyncio.wait(asking, timeout=90)
    states, twice = await one.ended(ids, 60), llm.bought_twice(at)
    print(f"{kills} kills, {asked} runs: {dict(states)}, {asked - len(set(ids))} lost")
    seconds = " ".join(f"{one:.2f}" for one in twice)
    print(f"{len(llm.delivered)} replies, {len(twice)} bought twice; delivered {seconds or 0} seconds after a kill")


async def restart_postgres(one: Server, database: Postgres, runs: int, restart: int) -> Counter[str]:
    ids = list(await asyncio.gather(*(one.ask(f"{QUESTION} Restart {restart} {number}") for number in range(runs))))
    await asyncio.to_thread(database.stop)
    await asyncio.sleep(2)
    await asyncio.to_thread(database.start)
    return await one.ended(ids, 60)


async def measure(options: argparse.Namespace, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "goods.db")) as db, db:
        db.execute("CREATE TABLE goods (name TEXT, price REAL)")
        db.executemany("INSERT INTO goods VALUES (?, ?)", [(f"good {n}", n * 1.5) for n in range(1, 1001)])
    database = Postgres(folder)
    several = ("--store", database.url, "--workers", str(options.workers))
    ratios = list[float]()
    try:
        for _ in range(options.rounds):
            async with (
                llm_server() as (_, url),
                server(folder, url) as alone,
                server(folder, url, *several) as together,
            ):
                first, second = await compare_cpu([alone, together], options.runs)
            ratios.append(second / first)
            load = f"load {os.getloadavg()[0]:.1f}"
            print(f"one process {first:.1f} ms, {options.workers} processes {second:.1f}: {ratios[-1]:.2f}, {load}")
        if ratios:
            print(f"ratio {median(ratios):.2f} (bar 1.3)", flush=True)
        async with llm_server() as (llm, url), server(folder, url, *several) as one:
            if options.kills:
                await kill_processes(one, llm, options.kills)
            states = Counter[str]()
            for restart in range(options.restarts):
                states += await restart_postgres(one, database, options.runs, restart)
            print(f"PostgreSQL restarted {options.restarts} times, each under {options.runs} runs: {dict(states)}")
    finally:
        database.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--restarts", type=int, default=10)
    options: Any = parser.parse_args()
    # It would tell each reply that a killed process did not read.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, Path(folder)))


if __name__ == "__main__":
    main()
