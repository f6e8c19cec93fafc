"""Asking a gigabyte of CSV: seconds from the start of Python to an answer with one query, the first time and again.

    python performance/large_csv.py [--gigabytes 1] [--late]

Bars: 30 s the first time, at once again, under 2 GB of memory. Written and removed in a folder of its own under the
temporary one. ``--late``: the last row has a word where numbers are, so that the file is read twice.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROW_BYTES = 59.7
ROWS = """SELECT i AS id, DATE '2020-01-01' + CAST(i % 2000 AS INTEGER) AS day,
    ['north', 'south', 'east', 'west'][1 + i % 4] AS region, printf('%05d', i % 90000) AS code,
    round(hash(i) % 100000 / 100, 2) AS price, i % 97 AS units, 'item ' || (i * 7919 % 100003) AS product,
    ['ok', 'late', 'returned', 'lost in transit'][1 + (i * 31) % 4] AS status FROM range({rows}) AS rows (i)"""
QUESTION = """import decisor

query = "SELECT region, count(*) AS orders, sum(price) AS earned FROM sales GROUP BY region ORDER BY earned DESC"
replies = [f"Thought: Add up.\\nAction: sql\\nInput: {query}", "Thought: The first.\\nFinal answer: the first [o1.r1]"]
result = decisor.ask("Which region?", db="sales.csv", llm=decisor.ScriptedLLM(replies), technique="iter_rag",
                     settings={"calling": "text"})
assert result.records[0].fields["orders"], result.trace
"""


def write(path: Path, gigabytes: float, late: bool) -> int:
    """Rows."""
    rows = int(gigabytes * 1e9 / ROW_BYTES)
    with duckdb.connect(config={"memory_limit": "1GB"}) as db:
        db.execute(f"COPY ({ROWS.format(rows=rows)}) TO '{path}' (HEADER)")
    if late:
        with path.open("a") as file:
            file.write("0,2020-01-01,north,00000,1.0,a dozen,item 1,ok\n")
    return rows


def ask(folder: Path) -> str:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    places = {f"XDG_{one}_HOME": str(folder / one) for one in ("CACHE", "DATA", "CONFIG")}
    subprocess.run([sys.executable, "-c", QUESTION], cwd=folder, check=True, env={**os.environ, **places})
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{wall:6.1f} s, {cpu:5.1f} s CPU, largest process {after.ru_maxrss / 1024:,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--late", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = write(folder / "sales.csv", options.gigabytes, options.late)
        size = (folder / "sales.csv").stat().st_size / 1e9
        print(f"{size:.2f} GB, {rows:,} rows; load {os.getloadavg()[0]:.0f}", flush=True)
        for what in ("first time", "again"):
            print(f"{what:11}{ask(folder)}", flush=True)


if __name__ == "__main__":
    main()
