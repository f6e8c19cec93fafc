"""From a fresh account to a first cited decision through a client of the Model Context Protocol (bar 120 s).

python performance/fresh_account.py

A minute, most of it an installation.

What is committed here is cloned into an empty HOME, without caches, and three commands are run as that account would:
`make mcp`, the client's entry for the server, and the question. The client is the SDK's own, from the same .venv; it
stands where a coding agent would, so no LLM is in the figure. Packages come from the index that pip or uv is set to.
Times are wall and CPU, of each command and all that it starts.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from head import words

ROOT = Path(__file__).parent.parent
BAR = 120.0
MOST_SECONDS = 600.0
"""For one command."""
OWN = ("DECISOR_", "MAKE", "PIP_CACHE", "PIP_FIND", "PYTHON", "UV_CACHE", "VIRTUAL_ENV", "XDG_")
"""Variables that a fresh account does not have, by their beginning."""
CLIENT = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters

async def main():
    (entry,) = json.load(open(sys.argv[1]))["mcpServers"].values()
    async with Client(StdioServerParameters(**entry)) as client:
        reply = await client.call_tool("decide", {"question": "Which supplier should we drop?"})
        print(reply.content[0].text)

asyncio.run(main())
"""


@dataclass(frozen=True)
class Cost:
    """Seconds."""

    wall: float
    cpu: float


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(command: Sequence[str | Path], folder: Path, env: Mapping[str, str]) -> tuple[str, Cost]:
    """What it printed, and what it cost. Raises CalledProcessError, TimeoutExpired."""
    began, before = time.perf_counter(), cpu_of_children()
    ended = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, timeout=MOST_SECONDS, check=True
    )
    return ended.stdout, Cost(time.perf_counter() - began, cpu_of_children() - before)


def measure(home: Path) -> bool:
    """Prints a line a command. False where the decision cites nothing, or all of it took longer than the bar."""
    env = {name: text for name, text in os.environ.items() if not name.startswith(OWN)} | {"HOME": str(home)}
    checkout, entries = home / "decisor", home / "servers.json"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout], env=env, check=True)
    lines, first = timed(["make", "--no-print-directory", "mcp"], checkout, env)
    command, *rest = re.findall(r"-- (.+)", lines)[0].split()
    began = time.perf_counter()
    entries.write_text(json.dumps({"mcpServers": {"decisor": {"command": command, "args": rest}}}), "utf-8")
    second = Cost(time.perf_counter() - began, 0.0)
    python = Path(command).with_name("python")
    answer, third = timed([python, "-c", CLIENT, entries], home, env)
    costs = (first, second, third)
    for name, cost in zip(("make mcp", "the client's entry", "the question"), costs, strict=True):
        print(f"{name:20} {cost.wall:6.1f} s, {cost.cpu:5.1f} s of CPU")
    wall, cpu = sum(cost.wall for cost in costs), sum(cost.cpu for cost in costs)
    print(f"{'all of it':20} {wall:6.1f} s, {cpu:5.1f} s of CPU (bar {BAR:.0f} s); load {os.getloadavg()[0]:.1f}")
    records = set(re.findall(r"\[(o\d+\.\w+)\]", answer))
    print(f"\n{answer.splitlines()[0]}; {len(records)} records cited")
    return bool(records) and wall <= BAR


def main() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder))


if __name__ == "__main__":
    words(__doc__)
    sys.exit(0 if main() else 1)
