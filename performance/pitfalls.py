"""How long the rules take over a query, without asking for what is stored, beside sqlglot's parse of its text.

    python performance/pitfalls.py

Ten seconds. Prints the median and the slowest of the tests' queries, in milliseconds of CPU with parsing, and how many
times as long as parsing alone that is.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import sqlglot

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
        seconds: dict[str, float] = defaultdict(lambda: 9.0)
        parsing: dict[str, float] = defaultdict(lambda: 9.0)
        for number in range(ROUNDS + 1):
            for text in texts:
                began = time.thread_time()
                await pitfalls.look(text)
                looked = time.thread_time()
                sqlglot.parse_one(text, dialect=dialect.name)
                if number:  # in the first round it asks, and keeps what it learns
                    seconds[text] = min(seconds[text], looked - began)
                    parsing[text] = min(parsing[text], time.thread_time() - looked)
        slowest = max(seconds, key=lambda text: seconds[text])
        median, most = (1000 * one for one in (statistics.median(seconds.values()), seconds[slowest]))
        ratios = [seconds[text] / parsing[text] for text in texts]
        print(f"{len(texts)} queries, median {median:.2f} ms, slowest {most:.1f} ms: {slowest}")
        print(f"times as long as parsing: median {statistics.median(ratios):.1f}, most {max(ratios):.1f}")
        await tool.close()


if __name__ == "__main__":
    words(__doc__)
    asyncio.run(main())
