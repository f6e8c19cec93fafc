"""What the sandbox costs a query once its worker is warm: against the same query on a connection in this process.

    python performance/sandbox_overhead.py [--queries 300] [--json]

Half a minute.

Times are medians in milliseconds, with the 95th percentile. ``start`` is the first worker of a
program: process, driver, database; ``next`` the median of ten more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from decisor.sandbox.process import Worker

ROWS = 1000
QUERIES = {
    "1 row": "SELECT count(*) AS n, sum(total) AS s FROM orders",
    "200 rows": "SELECT id, customer, total FROM orders LIMIT 200",
}


def build(folder: Path) -> dict[str, str]:
    """The same table for both embedded engines."""
    import duckdb

    rows = [(number, f"customer {number % 50}", number / 4) for number in range(ROWS)]
    lite, duck = folder / "shop.db", folder / "shop.duckdb"
    create = "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer VARCHAR, total DOUBLE)"
    with closing(sqlite3.connect(lite)) as db, db:
        db.execute(create)
        db.executemany("INSERT INTO orders VALUES(?, ?, ?)", rows)
    with duckdb.connect(str(duck)) as other:
        other.execute(create)
        other.executemany("INSERT INTO orders VALUES(?, ?, ?)", rows)
    return {"sqlite": f"sqlite:///{lite}", "duckdb": f"duckdb:///{duck}"}


def plain(engine: str, url: str, query: str, times: int) -> list[float]:
    """Milliseconds of each query without a sandbox."""
    import duckdb

    path = url.partition(":///")[2]
    db = sqlite3.connect(path) if engine == "sqlite" else duckdb.connect(path, read_only=True)
    with closing(db):
        taken = []
        for _ in range(times):
            began = time.perf_counter()
            db.execute(query).fetchall()
            taken.append((time.perf_counter() - began) * 1000)
    return taken


async def milliseconds_to_start(worker: Worker) -> float:
    began = time.perf_counter()
    await worker.start()
    return (time.perf_counter() - began) * 1000


async def measure(engine: str, url: str, times: int) -> list[dict[str, float | str]]:
    worker = Worker(engine, url)
    start = await milliseconds_to_start(worker)
    others = [Worker(engine, url) for _ in range(10)]
    after = statistics.median([await milliseconds_to_start(other) for other in others])
    for other in others:
        await other.close()
    found: list[dict[str, float | str]] = []
    for name, query in QUERIES.items():
        for _ in range(5):
            await worker.run(query)
        taken = []
        for _ in range(times):
            began = time.perf_counter()
            await worker.run(query)
            taken.append((time.perf_counter() - began) * 1000)
        bare = statistics.median(plain(engine, url, query, times))
        median, high = statistics.median(taken), statistics.quantiles(taken, n=20)[-1]
        figures = {"start": start, "next": after, "sandbox": median, "sandbox_p95": high, "plain": bare}
        figures["overhead"] = median - bare
        found.append({"engine": engine, "query": name, **{key: round(value, 3) for key, value in figures.items()}})
    await worker.close()
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        urls = build(Path(folder))
        found = [row for engine, url in urls.items() for row in await measure(engine, url, options.queries)]
    if options.json:
        print(json.dumps(found))
        return
    for row in found:
        print("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    asyncio.run(main())
