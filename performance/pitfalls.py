"""How long the rules take over a query, without asking for what is stored.

    python performance/pitfalls.py

Ten seconds.

prints the median and the slowest of the tests' queries, in milliseconds. Parsing is counted.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from databases.pitfall_world import kinds, queries, world
from decisor.databases.pitfalls.rules import Pitfalls
from decisor.databases.sql import SqlTool
from head import words

ROUNDS = 3


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, world("sqlite", Path(folder)) as url:
        tool = await SqlTool.open(url)
        dialect = tool.worker.description.dialect
        assert dialect is not None
        pitfalls = Pitfalls.of(tool.worker, dialect, tool.tables)
        texts = [*queries("inflating", "sqlite"), *queries("harmless", "sqlite"), *(one[2] for one in kinds("sqlite"))]
        seconds: dict[str, float] = {}
        for number in range(ROUNDS + 1):
            for text in texts:
                began = time.perf_counter()
                await pitfalls.look(text)
                if number:  # in the first round it asks, and keeps what it learns
                    seconds[text] = min(seconds.get(text, 9.0), time.perf_counter() - began)
        slowest = max(seconds, key=lambda text: seconds[text])
        median, most = (1000 * one for one in (statistics.median(seconds.values()), seconds[slowest]))
        print(f"{len(texts)} queries, median {median:.1f} ms, slowest {most:.1f} ms: {slowest}")
        await tool.close()


if __name__ == "__main__":
    words(__doc__)
    asyncio.run(main())
