"""Model calls a second in one process, beside other libraries in the same run, each in an environment of its own.

    python performance/throughput.py --cache FOLDER [--peers openai,agno,langgraph,pydantic-ai,smolagents]
                                    [--rounds 3] [--cases 1200] [--peer-cases 200] [--memory-cases 10000] [--json]

`--peers "" --rounds 1 --cases 200 --memory-cases 200` takes some minutes on a busy machine; all of it half an hour.

200 cases at once of a technique of 8 calls, against a local server that answers after 100 ms: ideal is 2,000 calls a
second. Without queries, and with one SQLite query a step (ours through the sandbox). Of several rounds the best counts:
the machine may have other work, and the load is printed before each table. ``one core`` is what the process would reach
with a core to itself, from its CPU time; it is no measurement of throughput. Environments are made in FOLDER with uv,
else pip; a peer that cannot be installed is left out, with a line that says so.

Bars: 85 % of ideal without queries, 70 % with a query a step, an evaluation 60 % in either; ten times the best peer
with a query a step; memory flat; under 1 ms a step. Where a peer reaches more than a tenth of ideal, ten times that
cannot be reached by anybody: the share of it is told.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LATENCY, CALLS, AT_ONCE = 0.1, 8, 200
PEERS = {
    "openai": ["openai"],
    "agno": ["agno", "openai"],
    "langgraph": ["langgraph", "langchain-openai"],
    "pydantic-ai": ["pydantic-ai-slim[openai]"],
    "smolagents": ["smolagents[openai]"],
}
BARS = {
    ("without queries", "decisor"): 85,
    ("without queries", "decisor eval"): 60,
    ("a query a step", "decisor"): 70,
    ("a query a step", "decisor eval"): 60,
}
"""Percent of ideal."""
OURS = {"decisor": "decisor_loop", "decisor eval": "decisor_eval_loop"}


@dataclass(frozen=True)
class Measured:
    """Of one process: calls a second, CPU milliseconds a call, and megabytes at its end."""

    rate: float
    cpu: float
    rss: float
    memory: tuple[float, ...] = ()

    @property
    def one_core(self) -> float:
        return min(AT_ONCE / LATENCY, 1000 / self.cpu)


@contextmanager
def served(latency: float, calls: int) -> Iterator[str]:
    """The base URL of a fresh server."""
    command = [sys.executable, str(HERE / "peers" / "server.py"), str(latency), str(calls)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        server.stdin.close()


def measure(
    python: str, loop: str, cases: int, at_once: int, database: str, latency: float = LATENCY, calls: int = CALLS
) -> Measured:
    """Raises RuntimeError where the process fails."""
    path = os.pathsep.join([str(HERE), str(HERE.parent / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "OPENAI_API_KEY": "none", "ANONYMIZED_TELEMETRY": "false"}
    with served(latency, calls) as url:
        command = [python, str(HERE / "peers" / f"{loop}.py"), url, str(cases), str(at_once), database or "-"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise RuntimeError(f"{loop}: {done.stderr.strip().splitlines()[-1:]}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if row["calls"] != cases * calls:
        raise RuntimeError(f"{loop} made {row['calls']} calls, not {cases * calls}")
    return Measured(
        row["calls"] / row["seconds"], 1000 * row["cpu"] / row["calls"], row["rss_mb"], tuple(row.get("memory", ()))
    )


def python_of(name: str, cache: Path) -> str | None:
    """The interpreter of a peer's environment, made where there is none; None where it cannot be."""
    home = cache / name
    python = home / "bin" / "python"
    if python.exists():
        return str(python)
    if shutil.which("uv"):
        steps = [
            ["uv", "venv", "-q", "--python", sys.executable, str(home)],
            ["uv", "pip", "install", "-q", "--python", str(python), *PEERS[name]],
        ]
    else:
        steps = [[sys.executable, "-m", "venv", str(home)], [str(python), "-m", "pip", "install", "-q", *PEERS[name]]]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(home, ignore_errors=True)
            print(f"{name} is left out: it cannot be installed ({(done.stderr.strip().splitlines() or ['?'])[-1]})")
            return None
    return str(python)


def goods(folder: Path) -> str:
    path = folder / "goods.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE goods(id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        db.executemany("INSERT INTO goods VALUES(?, ?, ?)", [(n, f"good {n}", n * 1.5) for n in range(1, 1001)])
    return str(path)


def best_of(rounds: int, *arguments: Any, **more: Any) -> Measured:
    """The fastest round; the CPU of the one that used least."""
    results = [measure(*arguments, **more) for _ in range(rounds)]
    fastest = max(results, key=lambda one: one.rate)
    return Measured(fastest.rate, min(one.cpu for one in results), fastest.rss, fastest.memory)


def throughput(options: argparse.Namespace, pythons: dict[str, str], database: str) -> dict[str, dict[str, Measured]]:
    """The table of both kinds, as it is measured."""
    results: dict[str, dict[str, Measured]] = {}
    for kind, path in (("without queries", ""), ("a query a step", database)):
        print(f"\nload {os.getloadavg()[0]:.1f}")
        print(f"{kind:<24}{'calls/s':>9}{'of ideal':>10}{'CPU ms/call':>13}{'one core':>10}{'MB':>7}")
        rows = results[kind] = {}
        for name, loop in [*OURS.items(), *((peer, peer.replace("-", "_") + "_loop") for peer in pythons)]:
            cases = options.cases if name in OURS else options.peer_cases
            python = pythons.get(name, sys.executable)
            try:
                one = rows[name] = best_of(options.rounds, python, loop, cases, AT_ONCE, path)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{name:<24} failed: {error}")
                continue
            share = 100 * one.rate * LATENCY / AT_ONCE
            print(
                f"{name:<24}{one.rate:>9.0f}{share:>8.1f} %{one.cpu:>13.2f}{one.one_core:>10.0f}{one.rss:>7.0f}",
                flush=True,
            )
    return results


def growth(rounds: int, pythons: dict[str, str], database: str) -> dict[str, list[float]]:
    """CPU of a call where conversations are longer: milliseconds at 8, 32 and 128 calls, with queries."""
    print(f"\nCPU ms a call by calls a case{8:>8}{32:>8}{128:>8}")
    results = {}
    rows = [("decisor", sys.executable, "decisor_loop")]
    rows += [("openai", pythons["openai"], "openai_loop")] if "openai" in pythons else []
    for name, python, loop in rows:
        costs = [
            best_of(rounds, python, loop, 640 // calls, 20, database, latency=0.0, calls=calls).cpu
            for calls in (8, 32, 128)
        ]
        results[name] = costs
        print(f"{name:<29}" + "".join(f"{cost:>8.2f}" for cost in costs), flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="folder for the peers' environments")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", type=int, default=1200)
    parser.add_argument("--peer-cases", type=int, default=200)
    parser.add_argument("--memory-cases", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = [name for name in options.peers.split(",") if name]
    pythons = {name: python for name in names if (python := python_of(name, options.cache))}
    print(
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {AT_ONCE} cases at once, {CALLS} calls each, "
        f"{1000 * LATENCY:.0f} ms; ideal {AT_ONCE / LATENCY:.0f} calls/s; best of {options.rounds}"
    )
    with tempfile.TemporaryDirectory() as folder:
        database = goods(Path(folder))
        results = throughput(options, pythons, database)
        costs = growth(options.rounds, pythons, database)
        one = best_of(options.rounds, sys.executable, "decisor_loop", 40, 1, "", latency=0.0)
        print(f"\none case: {one.cpu:.2f} ms CPU, {1000 / one.rate:.2f} ms wall a step with its server (bar 1 ms)")
        many = (
            measure(sys.executable, "decisor_eval_loop", options.memory_cases, AT_ONCE, "", latency=0.0)
            if options.memory_cases
            else None
        )
        if many:
            sizes = ", ".join(f"{mb:.0f}" for mb in many.memory)
            print(f"MB after each 1,000 of {options.memory_cases} cases: {sizes}")
    judge(results, one)
    if options.json:
        tables = {kind: {name: vars(row) for name, row in rows.items()} for kind, rows in results.items()}
        print(json.dumps({"throughput": tables, "growth": costs, "one_case": vars(one)}))


def judge(results: dict[str, dict[str, Measured]], one: Measured) -> None:
    """What became of the bars; by CPU too, since wall time is shared with whatever else runs."""
    print()
    for (kind, name), bar in BARS.items():
        if name in results[kind]:
            share = 100 * results[kind][name].rate * LATENCY / AT_ONCE
            print(f"{bar} % of ideal {kind}: {name} {share:.0f} %, {'kept' if share >= bar else 'MISSED'}")
    rows = results["a query a step"]
    for name, peer in sorted(rows.items(), key=lambda row: -row[1].rate):
        if name not in OURS:
            times, less = rows["decisor"].rate / peer.rate, peer.cpu / rows["decisor"].cpu
            most = AT_ONCE / LATENCY / peer.rate
            print(
                f"ten times each peer with a query a step: {times:.1f} x {name} (ideal is {most:.1f} x), "
                f"{'kept' if times >= 10 else 'MISSED'}; by CPU a call {less:.1f} x"
            )
    print(f"under 1 ms a step: {one.cpu:.2f} ms CPU, {'kept' if one.cpu < 1 else 'MISSED'}")


if __name__ == "__main__":
    main()
