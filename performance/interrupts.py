"""Ctrl-C at random moments: how long each command takes to end, and whether it ends with 130.

    python performance/interrupts.py --times 16

`--times 1` takes two minutes.

An interrupt goes to the whole process group, as a terminal sends it, or with --alone to the command only. A run that
has not ended after LONG seconds counts as hung; after WORST it is killed. The moments are drawn from the time that the
command takes undisturbed. A shell says 130 of a process that SIGINT ended (-2 here) too.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from servers.openai_server import serve_threaded

SERVED = 8.0
"""Seconds in which a server is interrupted: it does not end by itself."""
LONG = 15.0
WORST = 60.0
Send: TypeAlias = Callable[[int, int], None]
MODEL = """
format = 3
decide = "three sites"
choice.pick.rows = "SELECT name FROM site"
choice.pick.take = 3
change = "DELETE FROM site WHERE name NOT IN (SELECT name FROM pick)"

[measure.cost]
goal = "min"
sql = "SELECT sum(rent) + sum(abs(rent - 500)) FROM site"

[input]
"site.rent" = { spread = "5 % each" }
"""
PLAN = "Plan: [Step 1: look]\nThought: a\nAction: sql\nAction input: SELECT name, rent FROM site WHERE rent > {turn}"


@dataclass(frozen=True)
class Interrupted:
    """``after``: seconds from the start to the interrupt; ``took``: from there to the end."""

    after: float
    took: float
    code: int | None
    last_line: str
    had_ended: bool = False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=16)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true")
    arguments = parser.parse_args()
    send = os.kill if arguments.alone else os.killpg
    with tempfile.TemporaryDirectory() as folder, serve_threaded(slow_reply) as url:
        make_data(Path(folder))
        for name, words in commands(url).items():
            if arguments.only in name:
                print(
                    measure(name, words, Path(folder), arguments.times, random.Random(arguments.seed), send), flush=True
                )


def commands(url: str) -> Mapping[str, list[str]]:
    llm = f"test-model@{url}"
    ask = ["ask", "Which site?", "--db", "sites.db", "--no-history"]
    return {
        "index": ["index", "docs", "--out", "docs.index"],
        "ask": [*ask, "--llm", llm, "-o", "calling=text"],
        "ask --model": [*ask, "--model", "sites.toml", "--llm", "none"],
        "eval": [
            "eval",
            "--questions",
            "mine.jsonl",
            "--db",
            "sites.db",
            "-t",
            "iter_rag",
            "--llm",
            llm,
            "--grace",
            "2",
        ],
        "model rank": ["model", "rank", "sites.toml", "--db", "sites.db", "--trials", "2000"],
        "serve": ["serve", "--db", "sites.db", "--llm", llm, "--port", "0", "--no-browser", "--no-history"],
        "mcp": ["mcp", "--db", "sites.db", "--llm", llm, "--http", "--port", "0"],
    }


def measure(name: str, words: list[str], folder: Path, times: int, draw: random.Random, send: Send) -> str:
    whole = SERVED if name in ("serve", "mcp") else undisturbed(words, folder)
    runs = [interrupted(words, folder, draw.uniform(0.05, whole * 0.95), send) for _ in range(times)]
    over = [one for one in runs if one.had_ended]
    hung = [one for one in runs if one.took >= LONG]
    noisy = [one for one in runs if "Traceback" in one.last_line or one.code not in (0, 130, -2, None)]
    length = "of serving" if whole == SERVED else "undisturbed"
    line = (
        f"{name}: {whole:.1f} s {length}; {times} interrupts: {len(hung)} took {LONG:g} s or more, median "
        f"{median(one.took for one in runs):.2f} s, worst {max(one.took for one in runs):.2f} s, "
        f"{len(over)} had ended already, {len(noisy)} with another code or a traceback"
    )
    return "\n".join(
        [
            line,
            *(
                f"    at {one.after:.2f} s: {one.took:.2f} s, code {one.code}: {one.last_line}"
                for one in [*hung, *noisy]
            ),
        ]
    )


def undisturbed(words: list[str], folder: Path) -> float:
    """Seconds, at most WORST."""
    began = time.monotonic()
    with started(words, folder) as process:
        try:
            process.communicate(timeout=WORST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    return time.monotonic() - began


def interrupted(words: list[str], folder: Path, after: float, send: Send) -> Interrupted:
    with started(words, folder) as process:
        time.sleep(after)
        began = time.monotonic()
        had_ended = process.poll() is not None
        if not had_ended:
            send(process.pid, signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=WORST)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            code = None
    lines = [line for line in output.splitlines() if line.strip()]
    trouble = next((line for line in lines if "Traceback" in line), "")
    return Interrupted(after, time.monotonic() - began, code, trouble + (lines[-1] if lines else ""), had_ended)


@contextmanager
def started(words: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    for name in ("docs.index", "run.db"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    with subprocess.Popen(
        [sys.executable, "-m", "decisor", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        yield process


def slow_reply(body: dict[str, Any]) -> str:
    """Eight queries, then an answer."""
    text = body["messages"][-1]["content"]
    turn = text.count("Action input:")
    time.sleep(0.05)
    return PLAN.format(turn=turn) if turn < 8 else "Final answer: site1\nBecause: it is [o1.r1]"


def make_data(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "sites.db")) as database, database:
        database.execute("CREATE TABLE site (name TEXT, rent REAL)")
        database.executemany(
            "INSERT INTO site VALUES (?, ?)", [(f"site{at}", 100.0 + 7 * at % 900) for at in range(60)]
        )
    (folder / "sites.toml").write_text(MODEL)
    (folder / "docs").mkdir()
    words = [f"word{at}" for at in range(5_000)]
    draw = random.Random(3)
    for at in range(1_500):
        text = " ".join(draw.choices(words, k=400))
        kind, body = (".html", f"<html><body><p>{text}</p></body></html>") if at % 2 else (".txt", text)
        (folder / "docs" / f"{at}{kind}").write_text(body)
    lines = [f'{{"id": "{at}", "question": "Which site, {at}?", "answer": "site1"}}' for at in range(40)]
    (folder / "mine.jsonl").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
